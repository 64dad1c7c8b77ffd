/* Asks PyTorch's flight recorders of a step whose job may hang (AX_RECORDER). moe-recorder does, as
 * the job's user: pipes and dumps are the user's, and may be anything. Here only its start and its
 * answer, which is taken for ranks that were asked. */
#include "agent/recorder.h"

#include <string.h>

#include "agent/core/agent/motion.h"
#include "agent/helper.h"
#include "agent/queue.h"
#include "agent/step_dir.h"
#include "lib/base/desc_fit.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/wire/decode.h"

/* Dumps took 4 to 8 s after the question (PyTorch 2.11): moe-recorder waits 15 s. */
#define DEADLINE_US (20 * 1000000LL)
#define OUT_MAX (4 * 1024 * 1024)

static void trouble(const struct step_dir *d, const char *problem)
{
	struct mo_log_where w = {
		.job = d->job, .attempt = d->attempt, .rank = -1, .node = d->manager->config->node
	};

	mo_log(MO_NOTICE, NULL, &w, "flight recorders: %s; nothing is said of them", problem);
}

static bool is_ours(const struct step_dir *d, int64_t rank)
{
	const struct launch *l = &d->spool.launch;

	return rank >= l->first_rank && rank < l->first_rank + l->n_local;
}

static void on_answer(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct step_dir *d = arg;
	struct agent_event e = { .type = AE_RECORDER, .job = d->job, .attempt = d->attempt };
	struct recorder_answer *answer = mo_desc_new(&recorder_answer_desc);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	d->recorder = NULL; /* frees itself */
	int r = problem ? 0 : wire_decode(&recorder_answer_desc, out, n, false, answer, &err);

	if (problem || r < 0) {
		trouble(d, problem ? problem : mo_error_text(&err, r));
		mo_desc_free(&recorder_answer_desc, answer);
		return;
	}
	for (size_t i = answer->n_ranks; i-- > 0;)
		if (!is_ours(d, answer->ranks[i].rank))
			mo_vec_remove(&rank_recorder_desc, answer->ranks, &answer->n_ranks, i);
	mo_desc_fit(&recorder_answer_desc, answer);
	e.recorder = answer;
	queue_event(d->manager, &e);
}

void recorder_ask(struct step_dir *d)
{
	struct manager *m = d->manager;
	_cleanup_(mo_freep) char *dir = mo_path(d->path, RECORDER_DIR);
	_cleanup_(mo_freep) char *min_uid = mo_printf("%lld", (long long)d->spool.min_uid);
	size_t n_ranks = 0, n = 0;
	_cleanup_(mo_freep) struct motion_reading *ranks =
		agent_core_ranks(m->core, d->job, d->attempt, &n_ranks);
	char **argv = NULL;

	if (d->recorder || n_ranks == 0)
		return;
	mo_strs_add(&argv, &n, "moe-recorder");
	mo_strs_add(&argv, &n, "--min-uid");
	mo_strs_add(&argv, &n, min_uid);
	if (d->spool.allow_root)
		mo_strs_add(&argv, &n, "--allow-root");
	if (d->spool.launch.user) {
		mo_strs_add(&argv, &n, "--user");
		mo_strs_add(&argv, &n, d->spool.launch.user);
	}
	mo_strs_add(&argv, &n, dir);
	for (size_t i = 0; i < n_ranks; i++) {
		_cleanup_(mo_freep) char *rank = mo_printf("%lld", (long long)ranks[i].rank);

		mo_strs_add(&argv, &n, rank);
	}
	*MO_GROW(argv, n) = NULL;
	int r = helper_start(m->loop, m->recorder_path, argv, DEADLINE_US, OUT_MAX, on_answer, d,
			     &d->recorder);

	if (r < 0)
		trouble(d, strerror(-r));
	n--;
	mo_strs_clear(&argv, &n);
}
