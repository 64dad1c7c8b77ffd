/* See image_asks.h. What is removed is none that a step has or that a job waits for: who may lock
 * it a moment later is known here, and what comes meanwhile is brought after that. */
#include "agent/image_asks.h"

#include <errno.h>
#include <string.h>

#include "agent/helper.h"
#include "agent/link.h"
#include "agent/paths.h"
#include "agent/starter.h"
#include "agent/step_dir.h"
#include "lib/model/image_check.h"
#include "lib/model/image_stored.h"

#define DEADLINE_US (20 * 1000000LL) /* an image on a file system that hangs */
#define OUT_MAX (256 * 1024)
#define AT_ONCE 8

struct image_ask {
	struct image_asks *all;
	struct helper *helper; /* NULL: it is free */
	int64_t query;
	bool removes;
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

static int look(struct image_ask *k, const struct command *c)
{
	const struct manager *m = k->all->m;
	const struct agent_config *config = m->config;
	_cleanup_(mo_freep) char *min_uid = mo_printf("%lld", (long long)config->min_uid);
	_cleanup_(mo_freep) char *layers = path_layers(config);
	char *argv[] = { (char *)"moe-probe",
			 (char *)"image",
			 (char *)"--layers",
			 layers,
			 (char *)"--images",
			 config->images_dir,
			 (char *)"--min-uid",
			 min_uid,
			 (char *)"--user",
			 c->user,
			 c->dir,
			 NULL,
			 NULL,
			 NULL };
	size_t n = 11;

	if (config->allow_root && c->allow_root)
		argv[n++] = (char *)"--allow-root";
	if (m->cgroup_base || m->starter->in_units)
		argv[n++] = (char *)"--cgroup";
	return helper_start(m->loop, m->probe_path, argv, DEADLINE_US, OUT_MAX, on_end, k,
			    &k->helper);
}

bool image_asks_wanted(const struct manager *m, char ***ret, size_t *n_ret)
{
	for (size_t i = 0; i < m->n_steps; i++) {
		const struct recipe_container *c = m->steps[i]->spool.launch.container;

		if (c && c->digest && !m->steps[i]->gone)
			mo_strs_add(ret, n_ret, c->digest);
	}
	return agent_core_images(m->core, ret, n_ret);
}

static int stock(struct image_ask *k, const struct command *c)
{
	const struct manager *m = k->all->m;
	char **argv = NULL, **keep = NULL;
	size_t n = 0, n_keep = 0;

	mo_strs_add(&argv, &n, "moe-image");
	mo_strs_add(&argv, &n, "stock");
	mo_strs_add(&argv, &n, m->config->images_dir);
	k->removes = mo_streq(c->what, IMAGES_REMOVE_WHAT);
	int r = k->removes && !image_asks_wanted(m, &keep, &n_keep) ? -EBUSY : 0;

	if (k->removes) {
		mo_strs_add(&argv, &n, "--remove");
		mo_strs_add(&argv, &n, c->dir);
	}
	for (size_t i = 0; i < n_keep; i++) {
		mo_strs_add(&argv, &n, "--keep");
		mo_strs_add(&argv, &n, keep[i]);
	}
	*MO_GROW(argv, n) = NULL;
	if (r == 0)
		r = helper_start_group(m->loop, m->image_path, argv, DEADLINE_US, OUT_MAX, on_end,
				       k, &k->helper);
	n--;
	mo_strs_clear(&argv, &n);
	mo_strs_clear(&keep, &n_keep);
	return r;
}

bool image_asks_remove(const struct image_asks *a)
{
	for (size_t i = 0; i < AT_ONCE; i++)
		if (a->items[i].helper && a->items[i].removes)
			return true;
	return false;
}

/* What it is that cannot be answered; NULL: it can. */
static const char *lacks(const struct image_ask *k, const struct command *c, bool check)
{
	if (!k)
		return "too many images are looked at on this node; try again";
	if (check && (!c->user || !c->dir))
		return "the question names no user or no image";
	return mo_streq(c->what, IMAGES_REMOVE_WHAT) && (!c->dir || c->dir[0] == '-')
		       ? "the question names no image"
		       : NULL;
}

bool image_query(struct image_asks *a, const struct command *c)
{
	bool check = mo_streq(c->what, IMAGE_CHECK_WHAT);
	struct image_ask *k = NULL;

	if (!check && !mo_streq(c->what, IMAGES_WHAT) && !mo_streq(c->what, IMAGES_REMOVE_WHAT))
		return false;
	for (size_t i = 0; i < AT_ONCE && !k; i++)
		if (!a->items[i].helper)
			k = &a->items[i];
	const char *problem = lacks(k, c, check);

	if (problem) {
		answer(a, c->query, problem, NULL);
		return true;
	}
	*k = (struct image_ask){ .all = a, .query = c->query };
	int r = check ? look(k, c) : stock(k, c);

	if (r < 0)
		answer(a, c->query,
		       r == -EBUSY ? "an image is being brought there, and it is not known yet "
				     "which one it is; try again"
				   : strerror(-r),
		       NULL);
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
