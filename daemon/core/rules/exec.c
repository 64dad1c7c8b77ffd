/* Who may run a command beside a rank, and beside which: the owner of the job and admins, beside
 * one of its newest attempt whose step is not gone. What the rank itself does just now its node
 * knows. Nothing is stored of it but the event. */
#include "daemon/core/rules/exec.h"

#include <string.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/words.h"
#include "lib/base/buf.h"
#include "lib/base/utf8.h"
#include "lib/model/exec.h"
#include "lib/model/mask.h"

#define COMMAND_SHOWN 600 /* bytes of it in the event */

/* The step that has this rank; NULL after the refusal. */
static const struct step *step_of(struct turn *t, const struct job *j, int64_t rank)
{
	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *s = &j->steps[i];

		if (s->attempt == j->attempt && !s->gone && rank >= s->first_rank &&
		    rank < s->first_rank + s->n_ranks)
			return s;
	}
	if (j->run.n_ranks > 0 && rank >= (int64_t)j->run.n_ranks)
		turn_reply(t, 404, j->id, "job j-%lld has no rank %lld: ranks are 0 to %zu",
			   (long long)j->id, (long long)rank, j->run.n_ranks - 1);
	else
		turn_reply(t, 409, j->id,
			   "job j-%lld: its rank %lld does not run: the job is %s; a command runs "
			   "beside a rank that does",
			   (long long)j->id, (long long)rank, job_state_names[j->state]);
	return NULL;
}

/* Words with blanks between them, without what looks like a credential. Caller frees. */
static char *shown(char *const *argv, size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	char **words = NULL;
	size_t n_words = 0;

	for (size_t i = 0; i < n; i++)
		mo_strs_add(&words, &n_words, argv[i]);
	mo_mask_words(words, n_words);
	for (size_t i = 0; i < n_words; i++)
		mo_buf_printf(&b, "%s%s", i ? " " : "", words[i]);
	mo_strs_clear(&words, &n_words);
	char *text = mo_buf_take(&b);
	if (strlen(text) > COMMAND_SHOWN)
		text[mo_utf8_cut(text, COMMAND_SHOWN)] = 0;
	return text;
}

static void tell(struct turn *t, const struct job *j, const struct step *s)
{
	const struct in_exec *in = t->input->exec;
	const struct in_caller *by = &t->input->by;
	_cleanup_(mo_freep) char *command = shown(in->argv, in->n_argv);
	struct mo_buf data = { 0 };

	data_str(&data, "user", by->user);
	data_str(&data, "via", by->via);
	data_int(&data, "rank", in->rank);
	data_str(&data, "command", command);
	event_emit(t, EVENT_JOB_EXEC, j->id, s->node, in->rank, s->attempt, data_end(&data),
		   "%s runs a command beside rank %lld" COMMAND_IS "%s",
		   by->user ? by->user : "somebody", (long long)in->rank, command);
}

char *exec_forbidden(const struct job *j, const char *user, bool admin)
{
	if (admin || (user && mo_streq(user, j->spec.user)))
		return NULL;
	return mo_printf("job j-%lld: commands beside its ranks are for its owner %s and for "
			 "admins",
			 (long long)j->id, j->spec.user ? j->spec.user : "somebody else");
}

void job_exec(struct turn *t)
{
	const struct in_exec *in = t->input->exec;
	const struct job *j = job_find(&t->core->state, in->job);
	_cleanup_(mo_freep) char *why = j ? exec_forbidden(j, t->input->by.user, in->admin) : NULL;

	if (!j) {
		turn_reply(t, 404, MO_NONE, "job j-%lld: no such job; see 'moectl list --all'",
			   (long long)in->job);
		return;
	}
	if (why) {
		turn_reply(t, 403, j->id, "%s", why);
		return;
	}
	const struct step *s = step_of(t, j, in->rank);
	if (!s)
		return;
	const struct node *n = node_find(&t->core->state, s->node);
	if (!n || n->state == NODE_DOWN) {
		turn_reply(t, 409, j->id, "job j-%lld: node %s of its rank %lld is down",
			   (long long)j->id, s->node, (long long)in->rank);
		return;
	}
	tell(t, j, s);
	turn_reply(t, 202, j->id, NULL);
}
