/* `moectl exec`: the agent leaves what is asked as exec.ID.ask in the step's directory and says so;
 * what came of it is exec.ID.json there. A child of this process runs it (exec_run.c), so that all
 * that the command starts are descendants of this one and end with the step as everything does.
 * Which ids were taken is remembered, so that an agent may ask again, also a new one, and nothing
 * runs twice. */
#include "agent/stepd/exec.h"

#include <errno.h>
#include <string.h>

#include "agent/core/stepd/exec_words.h"
#include "agent/stepd/exec_run.h"
#include "lib/base/fd.h"
#include "lib/wire/decode.h"

#define ASK_BYTES_MAX (16 * EXEC_BYTES_MAX)

static bool was_taken(const struct stepd *s, int64_t id)
{
	for (size_t i = 0; i < STEPD_EXECS_KEPT; i++)
		if (s->execs[i].id == id)
			return true;
	return false;
}

/* In the place of the oldest one that is over, of which was read what came of it. NULL: all run. */
static struct taken *remember(struct stepd *s, int64_t id)
{
	struct taken *place;
	size_t tried = 0;

	do
		place = &s->execs[s->n_execs++ % STEPD_EXECS_KEPT];
	while (place->pid && ++tried < STEPD_EXECS_KEPT);
	if (place->pid)
		return NULL;
	_cleanup_(mo_freep) char *old = mo_printf("exec.%lld.json", (long long)place->id);

	if (place->id)
		mo_remove_at(s->dir_fd, old, 0);
	*place = (struct taken){ .id = id };
	return place;
}

static char *refusal(const struct stepd *s, const struct exec_ask *ask)
{
	const struct launch *l = &s->spool.launch;
	int64_t local = ask->rank - l->first_rank;
	const struct rank *r = local >= 0 && local < l->n_local ? &s->ranks[local] : NULL;
	const struct exec_step step = {
		.node = s->spool.node,
		.first_rank = l->first_rank,
		.n_local = l->n_local,
		/* env.json is there too */
		.started = r && r->started && !s->prepared,
		.exited = r && r->exited,
		.ending = s->killing,
	};

	return exec_refusal(ask, &step);
}

static int read_ask(const struct stepd *s, const char *name, struct exec_ask *ask,
		    struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = mo_read_file_at(s->dir_fd, name, ASK_BYTES_MAX, &b);

	mo_remove_at(s->dir_fd, name, 0);
	return r < 0 ? mo_error_set(err, r, "%s/%s: %s", s->dir, name, strerror(-r))
		     : wire_decode(&exec_ask_desc, b.data ? b.data : "", b.len, false, ask, err);
}

void exec_order(struct stepd *s, int64_t id)
{
	_cleanup_(mo_freep) char *name = mo_printf("exec.%lld.ask", (long long)id),
				 *result = mo_path(s->dir, "exec.%lld.json", (long long)id);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_freep) char *why = NULL;
	_cleanup_(exec_ask_done) struct exec_ask ask;

	mo_desc_init(&exec_ask_desc, &ask);
	if (id <= 0 || was_taken(s, id)) {
		mo_remove_at(s->dir_fd, name, 0);
		return;
	}
	struct taken *t = remember(s, id);
	int r = read_ask(s, name, &ask, &err);
	if (r < 0)
		why = mo_strdup(mo_error_text(&err, r));
	else
		why = t ? refusal(s, &ask) : mo_strdup("too many commands run beside the ranks");
	pid_t pid = why ? 0 : exec_run(s, &ask, result);
	if (pid < 0)
		why = mo_printf("it could not be started on %s: %s", s->spool.node, strerror(-pid));
	if (why)
		exec_leave_refusal(result, why);
	if (t)
		t->pid = MO_MAX(pid, 0);
}

bool exec_reaped(struct stepd *s, const siginfo_t *si)
{
	for (size_t i = 0; i < STEPD_EXECS_KEPT; i++) {
		struct taken *t = &s->execs[i];
		_cleanup_(mo_freep) char *result =
			mo_path(s->dir, "exec.%lld.json", (long long)t->id);

		if (!t->pid || t->pid != si->si_pid)
			continue;
		t->pid = 0;
		if (mo_access(result, F_OK) < 0)
			exec_leave_refusal(result, "the process that ran the command was killed: "
						   "nothing is known of its end");
		return true;
	}
	return false;
}
