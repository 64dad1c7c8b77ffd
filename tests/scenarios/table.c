/* See scenarios.h. What each cell must come to, or why there is none. A verdict has, in this order:
 * the failures that were counted (class, cause, whom it blames, what followed), from where each
 * attempt behind the moment began ("the newest": of the whole checkpoints of that moment), the
 * cordon, how it ended, and the events that matter. */
#include "tests/scenarios/scenarios.h"

#define Q (1U << AT_QUEUED)
#define L (1U << AT_LAUNCHING)
#define I (1U << AT_IMPORTING)
#define LD (1U << AT_LOADING)
#define F (1U << AT_FIRST)
#define ST (1U << AT_STEPPING)
#define SV (1U << AT_SAVING)
#define E (1U << AT_EVALUATING)
#define FI (1U << AT_FINISHING)
#define B (1U << AT_BACKING_OFF)
#define R (1U << AT_RESUMING)
#define IDLE (Q | L | B) /* no rank lives */
#define LIVES (I | LD | F | ST | SV | E | FI | R)
#define NO_RANK "no rank lives"
#define WELL "no failure; the same attempt; completed"
#define LATER "no failure; again from the newest; completed"

const struct row rows[] = {
	{ K_NOTHING, L | LIVES, WELL, NULL },
	{ K_NOTHING, Q | B, LATER, NULL },
	{ K_SEGV, I | LD | F | ST | E | FI,
	  "suspect (signal 11 SIGSEGV) of the rank: retry; again from the newest; completed",
	  NULL },
	{ K_SEGV, R,
	  "suspect (signal 11 SIGSEGV) of the rank: elsewhere; again from the newest; completed",
	  NULL },
	{ K_SEGV, SV,
	  "suspect (signal 11 SIGSEGV) of the rank: retry; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_SEGV, IDLE, NULL, NO_RANK },
	{ K_KILLED, I | LD | F | ST | E | FI,
	  "transient (signal 9 SIGKILL) of the rank: retry; again from the newest; completed",
	  NULL },
	{ K_KILLED, SV,
	  "transient (signal 9 SIGKILL) of the rank: retry; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_KILLED, R,
	  "transient (signal 9 SIGKILL) of the rank: elsewhere; again from the newest; completed",
	  NULL },
	{ K_KILLED, IDLE, NULL, NO_RANK },
	{ K_EXIT, I | LD | F,
	  "user_error (exit code 1) of the rank: stop; the same attempt; failed", NULL },
	{ K_EXIT, ST | E | FI,
	  "user_error (exit code 1) of the rank: retry; again from the newest; completed", NULL },
	{ K_EXIT, R,
	  "user_error (exit code 1) of the rank: elsewhere; again from the newest; completed",
	  NULL },
	{ K_EXIT, SV,
	  "user_error (exit code 1) of the rank: retry; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_EXIT, IDLE, NULL, NO_RANK },
	{ K_RAS_SAID, I | LD | F | ST | E | FI | R,
	  "node_fault (signal 6 SIGABRT) of the rank: elsewhere; again from the newest; completed",
	  NULL },
	{ K_RAS_SAID, SV,
	  "node_fault (signal 6 SIGABRT) of the rank: elsewhere; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_RAS_SAID, IDLE, NULL, NO_RANK },
	{ K_RAS_PROVED, I | LD | F | ST | E | FI | R,
	  "node_fault (signal 6 SIGABRT) of the rank: elsewhere; again from the newest; its node "
	  "cordoned; completed",
	  NULL },
	{ K_RAS_PROVED, SV,
	  "node_fault (signal 6 SIGABRT) of the rank: elsewhere; again from the newest; its node "
	  "cordoned; completed; checkpoint.torn",
	  NULL },
	{ K_RAS_PROVED, IDLE, NULL, NO_RANK },
	{ K_WATCHDOG, I | LD | F | ST | E | FI | R,
	  "hang (signal 6 SIGABRT) of rank 0: retry; again from the newest; completed", NULL },
	{ K_WATCHDOG, SV,
	  "hang (signal 6 SIGABRT) of rank 0: retry; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_WATCHDOG, IDLE, NULL, NO_RANK },
	{ K_OOM_HOST, I | LD | F | ST | E | FI,
	  "transient (oom) of the rank: retry; again from the newest; completed", NULL },
	{ K_OOM_HOST, SV,
	  "transient (oom) of the rank: retry; again from the newest; completed; checkpoint.torn",
	  NULL },
	{ K_OOM_HOST, R, "transient (oom) of the rank: elsewhere; again from the newest; completed",
	  NULL },
	{ K_OOM_HOST, IDLE, NULL, NO_RANK },
	{ K_OOM_GPU, I | LD | F,
	  "user_error (exit code 1) of the rank: stop; the same attempt; failed", NULL },
	{ K_OOM_GPU, ST | E | FI,
	  "user_error (exit code 1) of the rank: retry; again from the newest; completed", NULL },
	{ K_OOM_GPU, R,
	  "user_error (exit code 1) of the rank: elsewhere; again from the newest; completed",
	  NULL },
	{ K_OOM_GPU, SV,
	  "user_error (exit code 1) of the rank: retry; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_OOM_GPU, IDLE, NULL, NO_RANK },
	{ K_NO_SPACE, I | LD | F | ST | E | FI | R,
	  "storage (exit code 1) of the rank: retry; again from the newest; completed", NULL },
	{ K_NO_SPACE, SV,
	  "storage (exit code 1) of the rank: retry; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_NO_SPACE, IDLE, NULL, NO_RANK },
	{ K_REBOOT, L | I | LD | F | ST | E | FI | R,
	  "node_fault (node-lost) of the node: retry; again from the newest; completed; node.down",
	  NULL },
	{ K_REBOOT, SV,
	  "node_fault (node-lost) of the node: retry; again from the newest; completed; node.down "
	  "checkpoint.torn",
	  NULL },
	{ K_REBOOT, Q | B, "no failure; again from the newest; completed; node.down", NULL },
	{ K_QUICK_REBOOT, L | I | LD | F | ST | E | FI | R,
	  "node_fault (node-lost) of the node: retry; again from the newest; completed", NULL },
	{ K_QUICK_REBOOT, SV,
	  "node_fault (node-lost) of the node: retry; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_QUICK_REBOOT, Q | B, "no failure; again from the newest; completed", NULL },
	{ K_CUT, L | LIVES, "no failure; the same attempt; waits (node-silent); node.down", NULL },
	{ K_CUT, Q | B, "no failure; again from the newest; completed; node.down", NULL },
	{ K_CUT_SPARE, L | I | LD | F | ST | E | FI | R,
	  "node_fault (node-lost) of the node: retry; again from the newest; completed; node.down "
	  "node.power_asked node.fenced",
	  NULL },
	{ K_CUT_SPARE, SV,
	  "node_fault (node-lost) of the node: retry; again from the newest; completed; node.down "
	  "node.power_asked node.fenced checkpoint.torn",
	  NULL },
	{ K_CUT_SPARE, Q | B, "no failure; again from the newest; completed; node.down", NULL },
	{ K_FLAPPING, L | LIVES, WELL, NULL },
	{ K_FLAPPING, Q | B, LATER, NULL },
	{ K_AGENT, L | LIVES, "no failure; the same attempt; completed; node.down", NULL },
	{ K_AGENT, Q | B, "no failure; again from the newest; completed; node.down", NULL },
	{ K_SUPERVISOR, I | LD | F | ST | E | FI,
	  "transient (supervisor-lost) of the node: retry; again from the newest; completed; "
	  "step.lost",
	  NULL },
	{ K_SUPERVISOR, SV,
	  "transient (supervisor-lost) of the node: retry; again from the newest; completed; "
	  "checkpoint.torn step.lost",
	  NULL },
	{ K_SUPERVISOR, R,
	  "transient (supervisor-lost) of the node: elsewhere; again from the newest; completed; "
	  "step.lost",
	  NULL },
	{ K_SUPERVISOR, IDLE, NULL, "no supervisor lives" },
	{ K_STOPPED, I | LD | F | ST | E | FI,
	  "hang (hang) of the rank: retry; again from the newest; completed; hang.confirmed",
	  NULL },
	{ K_STOPPED, SV,
	  "hang (hang) of the rank: retry; again from the newest; completed; hang.confirmed "
	  "checkpoint.torn",
	  NULL },
	{ K_STOPPED, R,
	  "hang (hang) of the rank: elsewhere; again from the newest; completed; hang.confirmed",
	  NULL },
	{ K_STOPPED, IDLE, NULL, NO_RANK },
	{ K_ASLEEP, I | LD | F | ST | E | FI,
	  "hang (hang) of the rank: retry; again from the newest; completed; hang.confirmed",
	  NULL },
	{ K_ASLEEP, SV,
	  "hang (hang) of the rank: retry; again from the newest; completed; hang.confirmed "
	  "checkpoint.torn",
	  NULL },
	{ K_ASLEEP, R,
	  "hang (hang) of the rank: elsewhere; again from the newest; completed; hang.confirmed",
	  NULL },
	{ K_ASLEEP, IDLE, NULL, NO_RANK },
	{ K_COLLECTIVE, I | LD | F | ST | E | FI | R,
	  "hang (hang) of nobody: retry; again from the newest; completed; hang.confirmed", NULL },
	{ K_COLLECTIVE, SV,
	  "hang (hang) of nobody: retry; again from the newest; completed; hang.confirmed "
	  "checkpoint.torn",
	  NULL },
	{ K_COLLECTIVE, IDLE, NULL, NO_RANK },
	{ K_COLLECTIVE_UNREAD, I | LD | F | ST | E | FI | R,
	  "hang (hang) of nobody: retry; again from the newest; completed; hang.confirmed", NULL },
	{ K_COLLECTIVE_UNREAD, SV,
	  "hang (hang) of nobody: retry; again from the newest; completed; hang.confirmed "
	  "checkpoint.torn",
	  NULL },
	{ K_COLLECTIVE_UNREAD, IDLE, NULL, NO_RANK },
	{ K_DISK, I | LD | F | ST | E | FI,
	  "hang (hang) of the rank: retry; again from the newest; completed; hang.confirmed",
	  NULL },
	{ K_DISK, SV,
	  "hang (hang) of the rank: retry; again from the newest; completed; hang.confirmed "
	  "checkpoint.torn",
	  NULL },
	{ K_DISK, R,
	  "hang (hang) of the rank: elsewhere; again from the newest; completed; hang.confirmed",
	  NULL },
	{ K_DISK, IDLE, NULL, NO_RANK },
	{ K_NFS, LIVES, WELL, NULL },
	{ K_NFS, IDLE, NULL, NO_RANK },
	{ K_STRAGGLER, I | LD | F | ST | SV | E | R,
	  "no failure; the same attempt; completed; straggler.found", NULL },
	{ K_STRAGGLER, FI, NULL, "no step follows" },
	{ K_STRAGGLER, IDLE, NULL, NO_RANK },
	{ K_NAN, I | LD | F | R,
	  "numerical (loss NaN) of nobody: retry; again from the one before; completed; loss.nan "
	  "checkpoint.tainted",
	  NULL },
	{ K_NAN, ST | E,
	  "numerical (loss NaN) of nobody: retry; again from the newest; completed; loss.nan "
	  "checkpoint.torn",
	  NULL },
	{ K_NAN, SV,
	  "numerical (loss NaN) of nobody: retry; again from the newest; completed; loss.nan "
	  "checkpoint.tainted",
	  NULL },
	{ K_NAN, FI, NULL, "no loss follows" },
	{ K_NAN, IDLE, NULL, NO_RANK },
	{ K_SPIKE, ST | SV | E,
	  "numerical (loss too high) of nobody: retry; again from the newest; completed; "
	  "loss.spike checkpoint.tainted",
	  NULL },
	{ K_SPIKE, I | LD | F | R, NULL, "too few losses came before to say what is usual" },
	{ K_SPIKE, FI, NULL, "no loss follows" },
	{ K_SPIKE, IDLE, NULL, NO_RANK },
	{ K_TORN, I | LD | F | ST | SV | E | FI,
	  "transient (signal 9 SIGKILL) of the rank: retry; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_TORN, R,
	  "transient (signal 9 SIGKILL) of the rank: elsewhere; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_TORN, Q | B, "no failure; again from the newest; completed; checkpoint.torn", NULL },
	{ K_TORN, L, NULL, "the launch has chosen, and nobody loads yet" },
	{ K_ROTTEN, I | LD | F | ST | E | FI,
	  "transient (signal 9 SIGKILL) of the rank: retry, then suspect (signal 11 SIGSEGV) of "
	  "rank 0: retry, then suspect (signal 11 SIGSEGV) of rank 0: elsewhere; again from the "
	  "newest, the newest, the one before; completed; checkpoint.suspect",
	  NULL },
	{ K_ROTTEN, SV,
	  "transient (signal 9 SIGKILL) of the rank: retry, then suspect (signal 11 SIGSEGV) of "
	  "rank 0: retry, then suspect (signal 11 SIGSEGV) of rank 0: elsewhere; again from the "
	  "newest, the newest, the one before; completed; checkpoint.torn checkpoint.suspect",
	  NULL },
	{ K_ROTTEN, R,
	  "transient (signal 9 SIGKILL) of the rank: elsewhere, then suspect (signal 11 SIGSEGV) "
	  "of rank 0: retry, then suspect (signal 11 SIGSEGV) of rank 0: elsewhere; again from the "
	  "newest, the newest, the one before; completed; checkpoint.suspect",
	  NULL },
	{ K_ROTTEN, Q | B,
	  "suspect (signal 11 SIGSEGV) of rank 0: retry, then suspect (signal 11 SIGSEGV) of rank "
	  "0: elsewhere; again from the newest, the newest, the one before; completed; "
	  "checkpoint.suspect",
	  NULL },
	{ K_ROTTEN, L,
	  "suspect (signal 11 SIGSEGV) of rank 0: retry, then suspect (signal 11 SIGSEGV) of rank "
	  "0: elsewhere; again from the newest, the one before; completed; checkpoint.suspect",
	  NULL },
	{ K_VANISHED, LIVES & ~R,
	  "transient (signal 9 SIGKILL) of the rank: retry; the same attempt; waits (checkpoint)",
	  NULL },
	{ K_VANISHED, R,
	  "transient (signal 9 SIGKILL) of the rank: elsewhere; the same attempt; waits "
	  "(checkpoint)",
	  NULL },
	{ K_VANISHED, Q, "no failure; never; waits (checkpoint)", NULL },
	{ K_VANISHED, B, "no failure; the same attempt; waits (checkpoint)", NULL },
	{ K_VANISHED, L, NULL, "the launch has chosen, and nobody loads yet" },
	{ K_LOG_DISK, L,
	  "transient (spool) of the node: retry; again from the newest; completed; step.refused",
	  NULL },
	{ K_LOG_DISK, LIVES, NULL,
	  "what ranks print is dropped, and they run on: nothing is told to the controller" },
	{ K_LOG_DISK, Q | B, NULL, "nothing is written there" },
	{ K_STATE_DISK, L | LIVES, WELL, NULL },
	{ K_STATE_DISK, Q | B, LATER, NULL },
	{ K_CLOCK, L | LIVES, WELL, NULL },
	{ K_CLOCK, Q | B, LATER, NULL },
	{ K_LIAR, LIVES, WELL, NULL },
	{ K_LIAR, IDLE, NULL, NO_RANK },
	{ K_CONTRADICTION, LIVES & ~SV,
	  "node_fault (signal 6 SIGABRT) of rank 0: elsewhere; again from the newest; completed",
	  NULL },
	{ K_CONTRADICTION, SV,
	  "node_fault (signal 6 SIGABRT) of rank 0: elsewhere; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_CONTRADICTION, IDLE, NULL, NO_RANK },
	{ K_ANNOUNCED, LIVES & ~R,
	  "transient (signal 9 SIGKILL) of the rank: retry; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_ANNOUNCED, R,
	  "transient (signal 9 SIGKILL) of the rank: elsewhere; again from the newest; completed; "
	  "checkpoint.torn",
	  NULL },
	{ K_ANNOUNCED, IDLE, NULL, NO_RANK },
};
const size_t n_rows = ELEMENTSOF(rows);
