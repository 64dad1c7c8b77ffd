/* See motion.h. */
#include "agent/core/agent/motion.h"

#include <stdlib.h>

#include "agent/core/agent/agent_steps.h"
#include "agent/core/agent/link.h"
#include "lib/base/assert.h"

/* A program that waits uses its processors a little: threads that look every second whether there
 * is something to do. */
#define CPU_SHARE 20
/* and programs beside it read /proc, or write a line about it: less than that a second */
#define IO_BYTES_PER_S 65536
/* A card is read every 5 seconds while somebody asks, by a helper that has 5 more: what was read
 * earlier is not known any more. */
#define CARD_FRESH_US (15 * 1000000LL)
/* between two readings */
#define LATE_US (10 * 1000000LL)
#define ANCESTORS_MAX 64

static int by_pid(const void *a, const void *b)
{
	int64_t x = ((const struct motion_process *)a)->pid,
		y = ((const struct motion_process *)b)->pid;

	return (x > y) - (x < y);
}

static bool is_rank(const struct motion_reading *ranks, size_t n, int64_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (ranks[i].pid == pid)
			return true;
	return false;
}

void motion_trees(struct motion_process *all, size_t n, const struct motion_reading *ranks,
		  size_t n_ranks)
{
	qsort(all, n, sizeof(*all), by_pid);
	for (size_t i = 0; i < n; i++) {
		const struct motion_process *p = &all[i];

		all[i].root = 0;
		for (int depth = 0; p && depth < ANCESTORS_MAX; depth++) {
			if (is_rank(ranks, n_ranks, p->pid)) {
				all[i].root = p->pid;
				break;
			}
			p = bsearch(&(struct motion_process){ .pid = p->ppid }, all, n,
				    sizeof(*all), by_pid);
		}
	}
}

int motion_state(char state)
{
	switch (state) {
	case 'D': return PROCESS_WAITS;
	case 'T': return PROCESS_STOPPED;
	default: return PROCESS_RUNS; /* also one that a debugger holds */
	}
}

int64_t motion_net(const struct motion_card *cards, size_t n, int64_t now)
{
	int64_t last = MO_NONE;
	bool known = n > 0;

	for (size_t i = 0; i < n; i++) {
		const struct motion_card *c = &cards[i];
		bool moves = c->moved_at != MO_NONE && now - c->moved_at <= CARD_FRESH_US;

		known &= c->read_at != MO_NONE && now - c->read_at <= CARD_FRESH_US &&
			 !(c->shared && moves);
		if (!(c->shared && moves))
			last = MO_MAX(last, c->moved_at);
	}
	return known || (last != MO_NONE && now - last <= CARD_FRESH_US) ? last : MO_NONE;
}

struct motion_work motion_work(const struct motion_gpu *gpus, size_t n, int64_t now)
{
	const struct motion_work unknown = { MO_NONE, MO_NONE };
	struct motion_work ret = unknown;
	bool spins = true;

	for (size_t i = 0; i < n; i++) {
		const struct motion_gpu *g = &gpus[i];

		if (g->shared || g->worked_at == MO_NONE || g->read_at == MO_NONE ||
		    now - g->read_at > CARD_FRESH_US)
			return unknown;
		ret.worked_at = MO_MAX(ret.worked_at, g->worked_at);
		ret.spins_since = MO_MAX(ret.spins_since, g->spins_since);
		spins &= g->spins_since != MO_NONE;
	}
	if (!spins)
		ret.spins_since = MO_NONE;
	return ret;
}

bool motion_shared(const struct nodeinfo *info, const struct gpu_slot *slot, bool nic,
		   const int64_t *others, size_t n)
{
	for (size_t i = 0; i < info->n_gpus; i++) {
		const struct gpu_slot *g = &info->gpus[i];

		for (size_t k = 0; k < n; k++)
			if (g->index == others[k] &&
			    (nic ? mo_streq(g->nic, slot->nic) : mo_streq(g->bdf, slot->bdf)))
				return true;
	}
	return false;
}

/* least: so much more is moving. */
static void mark(struct motion_mark *m, int64_t value, int64_t least, bool begins, int64_t now)
{
	bool moved = begins || m->value == MO_NONE || value < m->value || value - m->value >= least;

	if (value != MO_NONE && moved)
		m->moved_at = now;
	m->value = value;
}

void motion_take(struct motion_marks *m, const struct motion_reading *r, int64_t now)
{
	int64_t passed = now - m->at;
	bool begins = !m->since || passed > LATE_US || passed < 0;

	if (begins)
		m->since = now;
	mark(&m->log, r->log_bytes, 1, begins, now);
	mark(&m->io, r->io_bytes, MO_MAX(IO_BYTES_PER_S * passed / 1000000, 1), begins, now);
	mark(&m->cpu, r->cpu_us, MO_MAX(passed / CPU_SHARE, 1), begins, now);
	m->net_at = r->net_at;
	m->work = r->work;
	m->state = r->state;
	m->at = now;
}

static int64_t age_ms(const struct motion_marks *m, const struct motion_mark *k)
{
	return k->value == MO_NONE ? MO_NONE : (m->at - k->moved_at) / 1000;
}

/* It may be longer ago than somebody looks, or since a moment that was read meanwhile. */
static int64_t since_ms(const struct motion_marks *m, int64_t at)
{
	return at == MO_NONE ? MO_NONE : MO_MAX(m->at - at, 0) / 1000;
}

bool motion_tell(const struct motion_marks *m, int64_t rank, struct rank_motion *ret)
{
	if (!m->since)
		return false;
	mo_assert(m->at >= m->since);
	*ret = (struct rank_motion){ .rank = rank,
				     .watched_ms = (m->at - m->since) / 1000,
				     .log_ms = age_ms(m, &m->log),
				     .io_ms = age_ms(m, &m->io),
				     .cpu_ms = age_ms(m, &m->cpu),
				     .net_ms = since_ms(m, m->net_at),
				     .gpu_work_ms = since_ms(m, m->work.worked_at),
				     .gpu_spin_ms = since_ms(m, m->work.spins_since),
				     .state = m->state };
	return true;
}

/* ---- what is asked ---- */

void agent_core_motion(struct agent_core *s, const struct command *c, int64_t now,
		       struct agent_out *out)
{
	struct agent_step *e = agent_core_find(s, c->job, c->attempt);

	if (c->epoch < s->epoch || !e || (e->phase != AS_UP && e->phase != AS_HUNG) ||
	    (e->looked_at && now - e->looked_at < s->beat_us / 2))
		return;
	e->looked_at = now;
	agent_effect(out, AX_MOTION, c->job, c->attempt);
	if (s->recorder && !e->recorder_asked)
		agent_effect(out, AX_RECORDER, c->job, c->attempt);
	e->recorder_asked |= s->recorder;
}

void agent_step_recorder(struct agent_step *e, const struct recorder_answer *answer)
{
	e->recorder_sent = false;
	mo_desc_copy(&recorder_answer_desc, &e->recorder, answer);
}

struct motion_reading *agent_core_ranks(const struct agent_core *s, int64_t job, int64_t attempt,
					size_t *ret_n)
{
	const struct agent_step *e = agent_core_find(s, job, attempt);
	struct motion_reading *ranks = mo_alloc_array(e ? e->n_ranks + 1 : 1, sizeof(*ranks));

	*ret_n = 0;
	for (size_t i = 0; e && i < e->n_ranks; i++) {
		const struct agent_step_rank *r = &e->ranks[i];

		if (r->started && !r->exited && r->pid > 0)
			ranks[(*ret_n)++] = (struct motion_reading){
				.rank = e->first_rank + (int64_t)i,
				.pid = r->pid,
				.log_bytes = MO_NONE,
				.io_bytes = MO_NONE,
				.cpu_us = MO_NONE,
				.net_at = MO_NONE,
				.work = { MO_NONE, MO_NONE },
				.state = -1,
			};
	}
	return ranks;
}

void agent_step_motion(struct agent_step *e, const struct agent_event *ev, int64_t now)
{
	for (size_t i = 0; i < ev->n_readings; i++) {
		int64_t at = ev->readings[i].rank - e->first_rank;

		if (at >= 0 && (size_t)at < e->n_ranks)
			motion_take(&e->ranks[at].motion, &ev->readings[i], now);
	}
}

void agent_core_motion_due(struct agent_core *s, const struct sync_reply *r)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		struct agent_step *e = s->steps[i];
		bool due = false;

		for (size_t k = 0; k < r->n_commands; k++)
			due |= r->commands[k].kind == CMD_MOTION && r->commands[k].job == e->job &&
			       r->commands[k].attempt == e->attempt;
		for (size_t k = 0; !due && k < e->n_ranks; k++)
			e->ranks[k].motion.since = 0;
		e->recorder_asked &= due;
		if (e->recorder_sent || !due)
			mo_desc_done(&recorder_answer_desc, &e->recorder);
		e->recorder_sent = false;
	}
}
