/* See runtimes.h. One helper at a time: runtimes lock their stores anyway. */
#include "agent/runtimes.h"

#include <errno.h>
#include <string.h>

#include "agent/helper.h"
#include "agent/manager.h"
#include "agent/service.h"
#include "agent/step_dir.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"
#include "lib/model/runtime.h"

#define DEADLINE_US (INT64_C(120) * 1000000)
#define ASK_DEADLINE_US (INT64_C(30) * 1000000) /* above that of moe-runtime */
#define OUT_MAX 65536
/* of what could not be given up: doubled by each that fails */
#define RETRY_US (INT64_C(10) * 1000000)
#define TRIES 6

/* Words of a moe-runtime that is to be run. */
struct order {
	char **argv;
	size_t n_argv;
	size_t name; /* of the runtime, among them; the verb comes before it, what behind it */
	int tries;   /* that failed */
};

struct runtimes {
	struct manager *m;
	char *program; /* NULL: it is missing */
	struct helper *helper;
	struct order *orders; /* the first is being run while there is a helper */
	size_t n_orders;
	struct order *later; /* that failed */
	size_t n_later;
	struct mo_timer *timer;
};

static void begin(struct runtimes *r);

static void order_done(struct order *o)
{
	mo_strs_clear(&o->argv, &o->n_argv);
}

static struct order take_first(struct runtimes *r)
{
	struct order o = r->orders[0];

	memmove(r->orders, r->orders + 1, --r->n_orders * sizeof(*r->orders));
	return o;
}

/* A runtime whose client was killed may make a container after it was told to remove it. */
static void failed(struct runtimes *r, struct order o, const char *why)
{
	int64_t wait_us = RETRY_US << o.tries;
	_cleanup_(mo_freep) char *when =
		++o.tries < TRIES ? mo_printf("in %lld s", (long long)(wait_us / 1000000))
				  : mo_strdup("at the agent's next start");

	mo_log(MO_WARNING, NULL, NULL,
	       "%s still keeps what it kept for steps that are gone (%s %s): %s; it is tried again "
	       "%s",
	       o.argv[o.name], o.argv[o.name - 1], o.argv[o.name + 1], why, when);
	if (o.tries == TRIES) {
		order_done(&o);
		return;
	}
	*MO_GROW(r->later, r->n_later) = o;
	mo_timer_in(r->timer, wait_us);
}

/* Whatever of it failed last: one timer serves all. */
static void on_due(void *arg)
{
	struct runtimes *r = arg;

	for (size_t i = 0; i < r->n_later; i++)
		*MO_GROW(r->orders, r->n_orders) = r->later[i];
	r->n_later = 0;
	begin(r);
}

static void on_end(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct runtimes *r = arg;
	/* "ERRNO WHAT" */
	const char *space = n > 0 ? memchr(out, ' ', n) : NULL;
	size_t said = space ? n - (size_t)(space + 1 - out) : 0;
	_cleanup_(mo_freep) char *what = said ? mo_strndup(space + 1, said - 1) : NULL;

	r->helper = NULL; /* frees itself */
	struct order o = take_first(r);

	if (problem)
		failed(r, o, what ? what : problem);
	else
		order_done(&o);
	begin(r);
}

static void begin(struct runtimes *r)
{
	while (!r->helper && r->n_orders > 0) {
		struct order *o = &r->orders[0];
		_cleanup_(mo_freep) char **argv = mo_alloc_array(o->n_argv + 1, sizeof(*argv));

		memcpy(argv, o->argv, o->n_argv * sizeof(*argv));
		const char *path = service_path(r->m, r->program);
		int e = path ? helper_start_group(r->m->loop, path, argv, DEADLINE_US, OUT_MAX,
						  on_end, r, &r->helper)
			     : -ENOENT;
		if (e < 0)
			failed(r, take_first(r), strerror(-e));
	}
}

static struct order *order(struct runtimes *r, const char *verb, const char *name, const char *what)
{
	struct order *o = MO_GROW(r->orders, r->n_orders);

	*o = (struct order){ 0 };
	service_words(r->m, r->program ? r->program : "moe-runtime", &o->argv, &o->n_argv);
	o->name = o->n_argv + 1;
	mo_strs_add(&o->argv, &o->n_argv, verb);
	mo_strs_add(&o->argv, &o->n_argv, name);
	mo_strs_add(&o->argv, &o->n_argv, what);
	return o;
}

bool runtimes_allowed(const struct runtimes *r, const char *name)
{
	const char *list = r->m->config->runtimes;

	for (size_t n; list && *list; list += n + strspn(list + n, ", ")) {
		n = strcspn(list, ", ");
		if (n == strlen(name) && strncmp(list, name, n) == 0)
			return true;
	}
	return false;
}

int runtimes_digest(struct runtimes *r, const char *name, const char *image, helper_fn fn,
		    void *arg, struct helper **ret)
{
	struct order o = { 0 };
	const char *path = service_path(r->m, r->program);

	service_words(r->m, r->program ? r->program : "moe-runtime", &o.argv, &o.n_argv);
	mo_strs_add(&o.argv, &o.n_argv, "digest");
	mo_strs_add(&o.argv, &o.n_argv, name);
	mo_strs_add(&o.argv, &o.n_argv, image);
	mo_strs_add(&o.argv, &o.n_argv, r->m->config->runtime_dir);
	size_t n = o.n_argv;

	*MO_GROW(o.argv, o.n_argv) = NULL;
	int e = path ? helper_start_group(r->m->loop, path, o.argv, ASK_DEADLINE_US, OUT_MAX, fn,
					  arg, ret)
		     : -ENOENT;
	mo_strs_clear(&o.argv, &n);
	return e;
}

void runtimes_release(struct runtimes *r, const struct step_dir *d)
{
	const struct recipe_container *c = d->spool.launch.container;
	const char *image, *name = c && c->image ? runtime_of_image(c->image, &image) : NULL;

	/* of one that was refused nothing is kept */
	for (size_t i = 0; name && i < d->spool.n_runtimes; i++)
		if (mo_streq(d->spool.runtimes[i], name))
			order(r, "release", name, d->spool.step_id);
	begin(r);
}

static void sweep(struct runtimes *r, const char *name)
{
	struct order *o = order(r, "sweep", name, r->m->config->node);

	_cleanup_(mo_freep) char *steps = mo_path(r->m->config->runtime_dir, "steps");

	mo_strs_add(&o->argv, &o->n_argv, steps);
}

void runtimes_sweep(struct runtimes *r)
{
	char **names = NULL;
	size_t n = 0;

	runtime_list(r->m->config->runtimes, &names, &n);
	for (size_t i = 0; i < n; i++)
		sweep(r, names[i]);
	mo_strs_clear(&names, &n);
	begin(r);
}

struct runtimes *runtimes_free(struct runtimes *r)
{
	if (!r)
		return NULL;
	helper_free(r->helper);
	mo_timer_free(r->timer);
	for (size_t i = 0; i < r->n_orders; i++)
		order_done(&r->orders[i]);
	for (size_t i = 0; i < r->n_later; i++)
		order_done(&r->later[i]);
	free(r->orders);
	free(r->later);
	free(r->program);
	free(r);
	return NULL;
}

int runtimes_new(struct manager *m, struct runtimes **ret)
{
	struct runtimes *r = *ret = mo_alloc(sizeof(*r));

	r->m = m;
	r->program = mo_libexec("moe-runtime");
	return mo_timer_new(m->loop, on_due, r, &r->timer);
}
