/* One turn of the core, from inside (turn.h, turn_io.h): how a rule says what it decided.
 *
 * Called by every rule, with the struct turn that core_decide() made. turn_emit() takes a record,
 * applies it (core_update()) and keeps it for the shell, so that the next rule of the same turn
 * sees the state behind it; nodes and jobs that it concerns are marked. turn_reply() answers the
 * request of this input, if there is one. turn_deadline() says when to run again.
 *
 * What never happens: a record that update refuses (a rule that makes one is wrong, and the
 * controller ends before it is stored: assert), an effect that leaves before its records are on
 * disk (the shell's turn), two replies that differ for one request. After turn_emit() pointers into
 * the state may be stale: find again, or copy before. */
#include "daemon/core/rules/turn.h"

#include <stdarg.h>
#include <stdio.h>

#include "daemon/core/rules/turn_io.h"
#include "daemon/core/state/record.h"
#include "daemon/core/update/update.h"
#include "daemon/core/update/wake.h"
#include "lib/base/assert.h"

static const struct mo_field effect_fields[] = {
	MO_D(effect, request, MO_INT, "the shell's handle of who waits for the answer"),
	MO_D(effect, job, MO_INT, "number of the job that it is about; unset: of none"),
	MO_D(effect, node, MO_STR, "name of the node that it is about; unset: of none"),
	MO_D(effect, text, MO_STR, "problem detail of a reply: what, why, what to do; unset: none"),
	MO_D_SUB(effect, welcome, MO_OPT, &agent_welcome_desc, "answer to an agent that registers"),
	MO_D_SUB(effect, event, MO_OPT, &event_desc, "what the log says"),
};
const struct mo_desc effect_desc = MO_DESC(effect, effect_fields);

void core_out_done(struct core_out *out)
{
	mo_vec_clear(&record_desc, (void **)&out->records, &out->n_records);
	mo_vec_clear(&effect_desc, (void **)&out->effects, &out->n_effects);
}

void turn_emit(struct turn *t, struct record *r)
{
	struct record *slot;
	int result;

	assert(r->version == RECORD_VERSION && r->type >= 0 && r->type < _REC_N);
	r->time = t->now;
	slot = MO_GROW(t->out->records, t->out->n_records);
	*slot = *r;
	mo_desc_init(&record_desc, r);
	result = core_update(t->core, slot);
	assert(result == 0);
	(void)result;
	wake_changed(t->core, slot);
}

static struct effect *effect_add(struct turn *t, int type)
{
	struct effect *e = MO_ADD(t->out, effects, &effect_desc);

	mo_assert(t->out && t->core);
	e->type = type;
	e->request = t->input ? t->input->request : 0;
	return e;
}

void turn_reply(struct turn *t, int status, int64_t job, const char *fmt, ...)
{
	struct effect *e;
	va_list ap;

	if (!t->input || t->input->request == 0)
		return;
	assert(status >= 200 && status <= 599 && (fmt || status < 300)); /* a refusal says why */
	e = effect_add(t, FX_REPLY);
	e->status = status;
	e->job = job;
	if (fmt) {
		char text[1024];

		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		e->text = mo_strdup(text);
	}
}

void turn_deadline(struct turn *t, int64_t at)
{
	mo_assert(at >= 0);
	t->core->jobs_at = MO_MIN(t->core->jobs_at, at);
}
