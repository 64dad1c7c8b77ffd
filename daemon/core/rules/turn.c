/* One turn of the core, from inside (turn.h, turn_io.h): how a rule says what it decided.
 *
 * Called by every rule, with the struct turn that core.c made. turn_emit() takes a record,
 * applies it (core_update()) and hands it to the shell, so that the next rule of the same turn
 * sees the state behind it; nodes and jobs that it concerns are marked. turn_reply() answers the
 * request of this input, if there is one. turn_deadline() says when to run again.
 *
 * What never happens: a record that update refuses (a rule that makes one is wrong, and the
 * controller ends before it is stored: assert), an effect that leaves before its records are on
 * disk (the shell's turn), two replies that differ for one request. Jobs and nodes stay where they
 * are; what their arrays hold (steps, ranks, checkpoints) may have moved after turn_emit(): find it
 * again, or copy before. */
#include "daemon/core/rules/turn.h"

#include <stdarg.h>
#include <stdio.h>

#include "daemon/core/rules/turn_io.h"
#include "daemon/core/state/record.h"
#include "daemon/core/update/update.h"
#include "daemon/core/update/wake.h"
#include "lib/base/assert.h"

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

struct effect *turn_effect(struct turn *t, enum effect_type type, const char *node)
{
	struct effect *e = MO_ADD(t->out, effects, &effect_desc);

	mo_assert(t->core && type >= 0 && type < _FX_N);
	e->type = type;
	e->node = mo_strdup(node);
	return e;
}

struct effect *turn_answer(struct turn *t, enum effect_type type, const char *node)
{
	struct effect *e = turn_effect(t, type, node);

	mo_assert(t->input);
	e->request = t->input->request;
	return e;
}

/* NULL: nobody waits for it. */
static _printf_(3, 0) struct effect *reply(struct turn *t, int status, const char *fmt, va_list ap)
{
	struct effect *e;

	if (!t->input || t->input->request == 0)
		return NULL;
	assert(status >= 200 && status <= 599 && (fmt || status < 300)); /* a refusal says why */
	e = turn_answer(t, FX_REPLY, NULL);
	e->reply = mo_desc_new(&effect_reply_desc);
	e->reply->status = status;
	if (fmt) {
		char text[1024];

		vsnprintf(text, sizeof(text), fmt, ap);
		e->reply->text = mo_strdup(text);
	}
	return e;
}

void turn_reply(struct turn *t, int status, int64_t job, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	struct effect *e = reply(t, status, fmt, ap);
	va_end(ap);
	if (e)
		e->job = job;
}

void turn_reply_later(struct turn *t, int status, int64_t after_us, const char *fmt, ...)
{
	va_list ap;

	mo_assert(status >= 400 && after_us >= 0);
	va_start(ap, fmt);
	struct effect *e = reply(t, status, fmt, ap);
	va_end(ap);
	if (e)
		e->reply->after_s = (after_us + 999999) / 1000000;
}

void turn_deadline(struct turn *t, int64_t at)
{
	mo_assert(at >= 0);
	t->core->jobs_at = MO_MIN(t->core->jobs_at, at);
}
