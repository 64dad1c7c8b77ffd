/* In place of agent/supervisor.c: what a supervisor and the agent of its node say to each other,
 * in the words of production (agent/core/stepd/spool.h), a moment later. A supervisor that is
 * stopped hears and says nothing until it goes on; one that dies ends the line. */
#include "agent/supervisor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/step_dir.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"
#include "tests/sim/notes.h"
#include "tests/sim/shell.h"
#include "tests/sim/writer.h"

#define WORD_US 200

struct supervisor {
	struct simstep *step;
	struct sim *sim;
	int64_t number;
	struct mo_buf *in;
	supervisor_fn fn;
	struct step_dir *dir;
};

int supervisor_connect(sd_event *loop, int dir, struct mo_buf *in, size_t max, supervisor_fn fn,
		       void *arg, struct supervisor **ret)
{
	struct step_dir *d = arg;
	const struct shell *sh = shell_of(d->manager);
	struct simstep *st = step_of(sh->sim, sh->node, d->job, d->attempt);

	if (!st || !st->stepd)
		return -ECONNREFUSED;
	struct supervisor *l = mo_alloc(sizeof(*l));

	*l = (struct supervisor){ .step = st,
				  .sim = sh->sim,
				  .number = ++sh->sim->n_lines,
				  .in = in,
				  .fn = fn,
				  .dir = d };
	*ret = st->line = l;
	line_up(sh->sim, st);
	return 0;
}

struct supervisor *supervisor_free(struct supervisor *l)
{
	if (l && l->step->line == l)
		l->step->line = NULL;
	free(l);
	return NULL;
}

static void obey(struct sim *s, struct simstep *st, const struct stepd_order *o)
{
	struct stepd_event e;

	if (mo_streq(o->cmd, "ping")) {
		line_up(s, st);
		return;
	}
	past_check_order(s, st);
	stepd_event_init(&e, mo_streq(o->cmd, "stop") ? SE_STOP : SE_KILL);
	e.signal = o->signal;
	e.grace_us = o->grace_us == MO_NONE ? 0 : o->grace_us;
	stepd_later(s, st, 100, &e);
}

int supervisor_send(struct supervisor *l, const void *data, size_t n)
{
	struct stepd_order o;

	if (!l->step->stepd)
		return -EPIPE;
	mo_desc_init(&stepd_order_desc, &o);
	if (wire_decode(&stepd_order_desc, data, n, false, &o, NULL) < 0)
		sim_violation(l->sim, "a supervisor cannot read its order");
	obey(l->sim, l->step, &o);
	mo_desc_done(&stepd_order_desc, &o);
	return 0;
}

void line_say(struct sim *s, struct simstep *st, const struct stepd_word *w)
{
	struct mo_buf b = { 0 };

	if (!st->line)
		return;
	wire_encode(&stepd_word_desc, w, &b);
	mo_buf_add(&b, "\n", 1);
	sim_at(s, s->now + WORD_US, K_WORD, st->line->number, w->written, st, mo_buf_take(&b));
}

void line_up(struct sim *s, struct simstep *st)
{
	struct stepd_word w;

	if (st->hung) {
		st->asked = true;
		return;
	}
	st->asked = false;
	mo_desc_init(&stepd_word_desc, &w);
	w.up = 1;
	w.written = writer_written(st->writer);
	line_say(s, st, &w);
}

void line_end(struct sim *s, struct simstep *st)
{
	if (st->line)
		sim_at(s, s->now + WORD_US, K_WORD, st->line->number, MO_NONE, st, NULL);
}

void line_arrived(struct sim *s, struct simstep *st, const struct queued *e)
{
	struct supervisor *l = st->line;
	const char *word = e->q;

	if (!l || l->number != e->a)
		return;
	struct step_dir *d = l->dir;

	shell_enter(s->nodes[st->node].shell);
	if (word)
		mo_buf_str(l->in, word);
	l->fn(d, !word);
	shell_leave();
	if (e->b != MO_NONE && d->journal.last < e->b)
		sim_violation(s,
			      "note %lld of j-%lld attempt %lld on %s is written, and the agent "
			      "reads %lld",
			      (long long)e->b, (long long)st->job, (long long)st->attempt,
			      s->nodes[st->node].name, (long long)d->journal.last);
	shell_drain(s, st->node);
}
