/* An attempt in which nothing moves: suspected, confirmed, cleared; see hang.c. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct core;
struct job;
struct step;
struct turn;

/* True when the judgement changed. */
bool hang_act(struct turn *t, int64_t id);
/* Called when hangs_at was reached: every job that runs is visited in this turn, and says when it
 * is due again. The queue is not its business. */
void hang_judge_all(struct core *c);
/* The step's node is asked what moves of its ranks (CMD_MOTION). */
bool hang_asks(const struct core *c, const struct job *j, const struct step *s);
/* The step is ended because of a hang, and its ranks are to say where they stand (stands.h): by
 * HANG_SIGNAL, with HANG_GRACE_US before they are killed. */
bool hang_asks_stands(const struct core *c, const struct job *j, const struct step *s);
#define HANG_SIGNAL SIGABRT
#define HANG_GRACE_US 5000000
