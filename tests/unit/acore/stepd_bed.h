/* The core of a step's supervisor alone, in virtual time: events go in, what it wants done comes
 * out as words. For test_step*.c; in a header, because the agent's core has a bed of the same
 * words. */
#pragma once
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/stepd/stepd_core.h"
#include "lib/base/buf.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

struct bed {
	struct stepd_core *core;
	int64_t now;
	struct stepd_out out;
	struct launch launch;
};

static inline int setup_n(void **state, int64_t first, int64_t n, int64_t world, int metrics_rank,
			  bool ports)
{
	struct bed *b = mo_alloc(sizeof(*b));

	mo_desc_init(&launch_desc, &b->launch);
	b->launch.job = 7;
	b->launch.attempt = 1;
	b->launch.first_rank = first;
	b->launch.n_local = n;
	b->launch.world = world;
	b->launch.metrics_rank = metrics_rank;
	b->launch.hold_ports = ports;
	b->core = stepd_core_new(&b->launch, false);
	b->now = 1000000;
	*state = b;
	return 0;
}

static inline int setup(void **state)
{
	return setup_n(state, 0, 2, 2, 0, true);
}

static inline int setup_last(void **state)
{
	return setup_n(state, 2, 2, 4, 1, false);
}

static inline int setup_any(void **state)
{
	return setup_n(state, 0, 2, 4, 2, false);
}

static inline int teardown(void **state)
{
	struct bed *b = *state;

	stepd_out_done(&b->out);
	stepd_core_free(b->core);
	mo_desc_done(&launch_desc, &b->launch);
	free(b);
	return 0;
}

/* Effects since the last call as words: "hold fork note:started@0 kill done ...". */
static inline const char *said(struct bed *b)
{
	static const char *const names[] = { "hold", "fork", "release", "signal", "kill",
					     "note", "done", "prepare", "config", "namespace" };
	static char text[4096];
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; i < b->out.n_effects; i++) {
		const struct stepd_effect *x = &b->out.effects[i];
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "",
				      names[x->type]);
		if (x->type == SX_SIGNAL_RANKS)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ":%lld",
					      (long long)x->signal);
		if (x->type != SX_NOTE)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, ":%s",
				      note_kind_names[x->note.kind]);
		if (x->note.rank != MO_NONE)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "@%lld",
					      (long long)x->note.rank);
		if (x->note.kind == NOTE_SAMPLE)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "=%lld",
					      (long long)x->note.sample->iteration);
		else if (x->note.iteration != MO_NONE)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "=%lld",
					      (long long)x->note.iteration);
		if (x->note.cause)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "/%s", x->note.cause);
	}
	stepd_out_done(&b->out);
	return text;
}

static inline struct stepd_event event(int type, int64_t rank)
{
	struct stepd_event e = { .type = type, .ok = true };

	mo_desc_init(&note_desc, &e.note);
	e.note.rank = rank;
	return e;
}

static inline void give(struct bed *b, struct stepd_event *e)
{
	int64_t before = 0;

	stepd_core_decide(b->core, e, b->now, &b->out);
	mo_desc_done(&note_desc, &e->note);
	for (size_t i = 0; i < b->out.n_effects; i++)
		if (b->out.effects[i].type == SX_NOTE) {
			assert_true(before == 0 || b->out.effects[i].note.n == before + 1);
			before = b->out.effects[i].note.n;
		}
}

static inline void simple(struct bed *b, int type, int64_t rank)
{
	struct stepd_event e = event(type, rank);
	give(b, &e);
}

static inline void started(struct bed *b, int64_t rank)
{
	struct stepd_event e = event(SE_STARTED, rank);
	e.note.pid = 100 + rank;
	give(b, &e);
}

static inline void exited(struct bed *b, int64_t rank, int64_t code, int64_t signo)
{
	struct stepd_event e = event(SE_EXIT, rank);
	e.note.code = code;
	e.note.signal = signo;
	give(b, &e);
}

static inline void stop(struct bed *b, int64_t signo, int64_t grace)
{
	struct stepd_event e = event(SE_STOP, MO_NONE);
	e.signal = signo;
	e.grace_us = grace;
	give(b, &e);
}

static inline void stop_outside(struct bed *b, int64_t signo, int64_t grace)
{
	struct stepd_event e = event(SE_STOP, MO_NONE);

	e.outside = true;
	e.signal = signo;
	e.grace_us = grace;
	give(b, &e);
}

static inline void sample(struct bed *b, int64_t rank, int64_t iteration, double loss,
			  double grad_norm)
{
	struct stepd_event e = event(SE_SAMPLE, rank);
	e.note.sample = mo_desc_new(&sample_desc);
	e.note.sample->iteration = iteration;
	e.note.sample->loss = loss;
	e.note.sample->grad_norm = grad_norm;
	give(b, &e);
}

static inline void fact(struct bed *b, int type, int64_t rank, int64_t iteration, const char *path)
{
	struct stepd_event e = event(type, rank);
	e.note.iteration = iteration;
	e.note.path = mo_strdup(path);
	give(b, &e);
}

static inline void phase(struct bed *b, int64_t rank, int p)
{
	struct stepd_event e = event(SE_PHASE, rank);
	e.note.phase = p;
	give(b, &e);
}

static inline void run(struct bed *b)
{
	simple(b, SE_LAUNCH, MO_NONE);
	simple(b, SE_PORTS, MO_NONE);
	for (int64_t r = 0; r < b->launch.n_local; r++)
		started(b, b->launch.first_rank + r);
	said(b);
}

/* A row of the table of tests: a step of two ranks on one node, as setup() makes it. */
#define STEP_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
