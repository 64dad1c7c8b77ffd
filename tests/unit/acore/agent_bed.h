/* The agent's core alone, in virtual time: events go in, what it wants done comes out as words. For
 * all test_steps_*.c. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/agent/agent_step.h"

struct bed {
	struct agent_core *core;
	int64_t now;
	struct agent_out out;
};
struct order {
	bool gpus;
	int kind;
	int64_t job, attempt, epoch;
};
struct got {
	int64_t job, attempt, through;
	bool unknown;
};

int bed_setup(void **state);
int bed_teardown(void **state);
/* Effects since the last call: "spool:7.1 start:7.1 write:7.1:exit@0 ...". */
const char *said(struct bed *b);
void give(struct bed *b, struct agent_event e);
void simple(struct bed *b, int type, int64_t job, int64_t attempt);
void note(struct bed *b, int64_t job, int64_t attempt, int64_t n, int kind, int64_t rank);
void welcome_with(struct bed *b, int64_t epoch, int64_t job, int64_t attempt, int64_t through);
void up(struct bed *b);
/* One reply after `took` microseconds. */
void reply_full(struct bed *b, bool sync, int64_t epoch, int64_t took, const struct order *orders,
		size_t n_orders, const struct got *acks, size_t n_acks);
void orders(struct bed *b, int kind, int64_t job, int64_t attempt);
/* A launch that names a GPU. */
void orders_with_gpus(struct bed *b, int64_t job, int64_t attempt);
void acks(struct bed *b, int64_t job, int64_t attempt, int64_t through);
/* What the next sync says of a step: "state written:first-last". */
const char *synced(struct bed *b, int64_t job, int64_t attempt);
/* Job 7 attempt 1 with both ranks running. */
void running(struct bed *b);
#define T(f) cmocka_unit_test_setup_teardown(f, bed_setup, bed_teardown)
