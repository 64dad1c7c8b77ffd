/* See image_check.h. */
#include "agent/image_check.h"

#include <string.h>

#include "agent/helper.h"
#include "agent/link.h"
#include "agent/paths.h"
#include "agent/starter.h"
#include "lib/model/image_check.h"

#define DEADLINE_US (20 * 1000000LL) /* an image on a file system that hangs */
#define OUT_MAX (256 * 1024)
#define AT_ONCE 8

struct image_ask {
	struct image_asks *all;
	struct helper *helper; /* NULL: it is free */
	int64_t query;
};
struct image_asks {
	struct manager *m;
	struct image_ask items[AT_ONCE];
};

static void answer(struct image_asks *a, int64_t query, const char *error, char *text)
{
	struct query_answer q;

	mo_desc_init(&query_answer_desc, &q);
	q.node = mo_strdup(a->m->config->node);
	q.query = query;
	q.error = mo_strdup(error);
	q.text = text;
	q.end = true;
	link_answer(a->m->link, &q);
	mo_desc_done(&query_answer_desc, &q);
}

static void on_end(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct image_ask *k = arg;

	k->helper = NULL; /* frees itself */
	answer(k->all, k->query, problem, problem ? NULL : mo_strndup(out, n));
}

static int start(struct image_ask *k, const struct command *c)
{
	const struct manager *m = k->all->m;
	const struct agent_config *config = m->config;
	_cleanup_(mo_freep) char *min_uid = mo_printf("%lld", (long long)config->min_uid);
	_cleanup_(mo_freep) char *layers = path_layers(config);
	char *argv[] = { (char *)"moe-probe",
			 (char *)"image",
			 (char *)"--layers",
			 layers,
			 (char *)"--min-uid",
			 min_uid,
			 (char *)"--user",
			 c->user,
			 c->dir,
			 NULL,
			 NULL,
			 NULL };
	size_t n = 9;

	if (config->allow_root && c->allow_root)
		argv[n++] = (char *)"--allow-root";
	if (m->cgroup_base || m->starter->in_units)
		argv[n++] = (char *)"--cgroup";
	return helper_start(m->loop, m->probe_path, argv, DEADLINE_US, OUT_MAX, on_end, k,
			    &k->helper);
}

bool image_query(struct image_asks *a, const struct command *c)
{
	struct image_ask *k = NULL;

	if (!mo_streq(c->what, IMAGE_CHECK_WHAT))
		return false;
	for (size_t i = 0; i < AT_ONCE && !k; i++)
		if (!a->items[i].helper)
			k = &a->items[i];
	if (!k || !c->user || !c->dir) {
		answer(a, c->query,
		       k ? "the question names no user or no image"
			 : "too many images are looked at on this node; try again",
		       NULL);
		return true;
	}
	*k = (struct image_ask){ .all = a, .query = c->query };
	int r = start(k, c);

	if (r < 0)
		answer(a, c->query, strerror(-r), NULL);
	return true;
}

void image_asks_new(struct manager *m, struct image_asks **ret)
{
	*ret = mo_alloc(sizeof(**ret));
	(*ret)->m = m;
}

struct image_asks *image_asks_free(struct image_asks *a)
{
	for (size_t i = 0; a && i < AT_ONCE; i++)
		helper_free(a->items[i].helper);
	free(a);
	return NULL;
}
