/* See api_images.h. Names of images, and on which nodes they are, are for everybody, as they are in
 * jobs; what is in an image nobody is shown. */
#include "daemon/api_images.h"

#include <string.h>

#include "daemon/api.h"
#include "daemon/api_image_check.h"
#include "daemon/api_submit.h"
#include "daemon/core/rules/prefetch.h"
#include "daemon/images.h"
#include "daemon/input.h"
#include "daemon/quota.h"
#include "lib/base/parse.h"
#include "lib/model/reference.h"

#define TEXT_MAX 4096 /* of an image's name, as in a recipe */
#define NODES_MAX 100000

/* "a,b": caller frees */
static void split(const char *text, char ***ret, size_t *n_ret)
{
	for (const char *at = text; at && *at; at += strspn(at, ",")) {
		size_t n = strcspn(at, ",");
		_cleanup_(mo_freep) char *one = mo_strndup(at, n);

		if (n > 0)
			mo_strs_add(ret, n_ret, one);
		at += n;
	}
}

/* 0 after the refusal */
static int64_t hold(struct manager *m, struct http_request *r, const char *what, char *const *nodes,
		    size_t n)
{
	if (!quota_hold(m, r))
		return 0;
	int64_t id = image_questions_add(m, http_id(r), what, nodes, n);

	if (id == 0)
		http_problem(r, 429, "images: nodes are asked by enough others; try again");
	return id;
}

void api_images_list(void *arg, struct http_request *r)
{
	const char *node = http_query(r, "node");
	char **nodes = NULL;
	size_t n = 0;

	split(node, &nodes, &n);
	if (n == 1 && !node_find(manager_state(arg), nodes[0])) {
		http_problem(r, 404, "node %.100s: no such node; see 'moectl nodes'", nodes[0]);
	} else {
		int64_t id = hold(arg, r, NULL, nodes, n);

		if (id) {
			http_hold(r);
			image_questions_ask(arg, id);
		}
	}
	mo_strs_clear(&nodes, &n);
}

void api_images_remove(void *arg, struct http_request *r)
{
	const char *image = http_query(r, "image");
	struct in_images_remove *w;

	if (!image || !*image || *image == '-' || strlen(image) > TEXT_MAX) {
		http_problem(r, 422,
			     "image: must be a digest or a name, as 'moectl image list' "
			     "shows them");
		return;
	}
	w = mo_desc_new(&in_images_remove_desc);
	w->what = mo_strdup(image);
	split(http_query(r, "nodes"), &w->nodes, &w->n_nodes);
	int64_t id = hold(arg, r, image, w->nodes, w->n_nodes);

	if (!id) {
		mo_desc_free(&in_images_remove_desc, w);
		return;
	}
	struct input *in = input_new(IN_IMAGES_REMOVE, r);

	in->core.images_remove = w;
	in->answer = ANSWER_IMAGES;
	in->answer_id = id;
	input_push(arg, in);
}

struct image_pull_body {
	char *image, *auth;
	char **nodes;
	size_t n_nodes;
};
static const struct mo_field image_pull_body_fields[] = {
	MO_D(image_pull_body, image, MO_STR, "the image, as a recipe says it", .max = TEXT_MAX),
	MO_D_LIST(image_pull_body, nodes, MO_STRS, "names of the nodes; not given: all that are up",
		  .max = NODES_MAX),
	MO_D(image_pull_body, auth, MO_STR,
	     "the caller's file with passwords of registries, on the nodes: the image is then his "
	     "alone",
	     .max = TEXT_MAX),
};
const struct mo_desc image_pull_body_desc = MO_DESC(image_pull_body, image_pull_body_fields);

/* Why nothing can be brought; NULL: it can. Caller frees. */
static char *problem_of(const struct image_pull_body *b)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(reference_done) struct reference ref = { 0 };
	int source = b->image ? image_source(b->image) : IMAGE_OF_DIR;
	const char *path = b->image ? strchr(b->image, ':') : NULL;

	if (!b->image || !*b->image || *b->image == '-')
		return mo_strdup("image: is missing: name one as a recipe does");
	if (image_lies_there(b->image ? b->image : IMAGE_DIR) || source == IMAGE_OF_STORE)
		return mo_printf("image: %.200s lies on the nodes already or does not: nothing is "
				 "brought for it",
				 b->image);
	if (source != IMAGE_OF_REGISTRY && (!path || path[1] != '/'))
		return mo_printf("image: %.200s: the path must begin with /", b->image);
	if (b->auth && (b->auth[0] != '/' || source != IMAGE_OF_REGISTRY))
		return mo_strdup(
			"auth: must be the whole path of a file on the nodes, for an image "
			"of a registry");
	const char *name = mo_starts_with(b->image, IMAGE_REGISTRY)
				   ? b->image + strlen(IMAGE_REGISTRY)
				   : b->image;
	if (source == IMAGE_OF_REGISTRY && reference_read(name, NULL, 0, &ref, &err) < 0)
		return mo_printf("image: %.200s: %s", b->image, err.text);
	return NULL;
}

void api_images_pull(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	struct image_pull_body b;

	mo_desc_init(&image_pull_body_desc, &b);
	bool ok = api_body(r, &image_pull_body_desc, &b);
	_cleanup_(mo_freep) char *problem = ok ? problem_of(&b) : NULL;

	if (problem)
		http_problem(r, 422, "%s", problem);
	if (ok && !problem && (!b.auth || api_caller_account(m, r))) {
		struct input *in = input_new(IN_PREFETCH, r);
		struct in_prefetch *w = in->core.prefetch = mo_desc_new(&in_prefetch_desc);

		w->image = TAKE_PTR(b.image);
		w->auth_file = TAKE_PTR(b.auth);
		w->nodes = TAKE_PTR(b.nodes);
		w->n_nodes = b.n_nodes;
		b.n_nodes = 0;
		w->allow_root = api_may_be_root(m, http_caller(r));
		in->answer = ANSWER_PREFETCH;
		input_push(m, in);
	}
	mo_desc_done(&image_pull_body_desc, &b);
}

void api_images_pull_get(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	int64_t id;
	const struct prefetch *p = mo_parse_i64(http_param(r, "pull"), 1, INT64_MAX / 2, &id) == 0
					   ? prefetch_find(m->core, id)
					   : NULL;

	if (p)
		api_send_doc(r, 200, &prefetch_desc, p);
	else
		http_problem(r, 404,
			     "pull %.20s: there is none: the newest are kept, and none over a "
			     "start "
			     "of the controller; what nodes have they keep: see 'moectl image "
			     "list'",
			     http_param(r, "pull"));
}
