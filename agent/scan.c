/* Checkpoint scans: moe-ckpt does them in a process of its own with a deadline, because file
 * systems hang; here only its start and its answer. */
#include "agent/scan.h"
#include <errno.h>
#include <string.h>
#include "agent/helper.h"
#include "agent/layers.h"
#include "agent/queue.h"
#include "agent/step_dir.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define SCAN_OUT_MAX (16 * 1024 * 1024)

struct scan {
	struct manager *m;
	struct helper *helper;
	int64_t job, attempt;
	int order; /* enum scan_order */
	int64_t id;
	char *dir, *doubt; /* of the order; NULL: nothing is in doubt */
};

static void scan_free(struct scan *s)
{
	helper_free(s->helper);
	free(s->dir);
	free(s->doubt);
	free(s);
}

void scans_free(struct manager *m)
{
	while (m->n_scans > 0)
		scan_free(m->scans[--m->n_scans]);
	free(m->scans);
}

static void deliver(struct scan *s, struct scan_result *result)
{
	struct agent_event e = {
		.type = AE_SCANNED, .job = s->job, .attempt = s->attempt, .scan = result
	};
	result->job = s->job;
	result->attempt = s->attempt;
	result->order = s->order;
	result->id = s->id;
	struct manager *m = s->m;
	queue_event(m, &e);
	for (size_t i = 0; i < m->n_scans; i++)
		if (m->scans[i] == s)
			m->scans[i] = m->scans[--m->n_scans];
	scan_free(s);
}

/* The job's attempt that runs here; NULL: none does. An order has a number of its own. */
static const struct step_dir *newest_step(const struct manager *m, int64_t job)
{
	const struct step_dir *found = NULL;

	for (size_t i = 0; i < m->n_steps; i++) {
		const struct step_dir *d = m->steps[i];

		if (d->job == job && !d->gone && (!found || d->attempt > found->attempt))
			found = d;
	}
	return found;
}

/* moe-ckpt knows the node's files. What ranks in an image write into no mount is not among them,
 * and is gone with the step, however it is named. */
static void look_in_layer(const struct scan *s, struct scan_result *result)
{
	const struct step_dir *d = newest_step(s->m, s->job);
	const struct recipe_container *c = d ? d->spool.launch.container : NULL;
	_cleanup_(mo_freep) char *path = c && s->doubt ? mo_path_clean(s->doubt) : NULL;

	if (path && *path == '/' && !result->place && result->n_items == 0 && d->spool.layer &&
	    !container_mount_of(c, path) && layers_hold(s->m->layers, d->job, d->attempt, path))
		mo_str_set(&result->place, "other");
}

static void on_scanned(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct scan *s = arg;
	s->helper = NULL; /* frees itself */
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct scan_result *result = mo_desc_new(&scan_result_desc);
	int r = problem ? mo_error_set(&err, -EIO, "%s", problem)
			: wire_decode(&scan_result_desc, out, n, false, result, &err);
	if (r < 0)
		result->error = mo_printf("checkpoint directory %s on %s: %s", s->dir,
					  s->m->config->node, mo_error_text(&err, r));
	else
		look_in_layer(s, result);
	deliver(s, result);
}

void scan_start(struct manager *m, const struct command *c)
{
	_cleanup_(mo_buf_done) struct mo_buf order = { 0 };
	struct scan *s = mo_alloc(sizeof(*s));
	*s = (struct scan){ .m = m,
			    .job = c->job,
			    .attempt = c->attempt,
			    .order = c->order,
			    .id = c->id,
			    .dir = mo_strdup(c->dir),
			    .doubt = c->doubt ? mo_strdup(c->doubt) : NULL };
	*MO_GROW(m->scans, m->n_scans) = s;
	wire_encode(&command_desc, c, &order);
	_cleanup_(mo_freep) char *bandwidth =
		mo_printf("%lld", (long long)m->config->verify_bandwidth);
	_cleanup_(mo_freep) char *min_uid = mo_printf("%lld", (long long)m->config->min_uid);
	char *argv[] = { (char *)"moe-ckpt",
			 (char *)"--scan",
			 order.data,
			 (char *)"--bandwidth",
			 bandwidth,
			 (char *)"--min-uid",
			 min_uid,
			 m->config->allow_root && c->allow_root ? (char *)"--allow-root" : NULL,
			 NULL };
	int r = helper_start(m->loop, m->ckpt_path, argv,
			     c->order == ORDER_VERIFY ? m->config->verify_deadline_us
						      : m->config->scan_deadline_us,
			     SCAN_OUT_MAX, on_scanned, s, &s->helper);
	if (r < 0)
		on_scanned(s, 0, "", 0, strerror(-r));
}
