/* The controller's decisions. Pure: no clock, descriptor, log or randomness.
 *
 *   core_decide(core, input, now) -> records + effects, for each input of a turn
 *   core_settle(core, now)        -> those that follow from all of them together
 *
 * Called by moed's turn (daemon/turn.c), the simulator, fuzzers and the beds of tests: the same
 * code each time. The shell stores all records of a turn in one synced transaction
 * and only then carries out the effects. State changes only through records. After a crash:
 * core_new(), core_load() (the snapshot), core_update() for each later record, then IN_START.
 *
 * The rooms behind it are described in README.md.
 *
 * What never happens: an input makes it fail (bad ones become a refusal), the same records lead to
 * another state, time goes back but by IN_CLOCK. */
#pragma once
#include "daemon/core/rules/commands.h"
#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/readings.h"
#include "daemon/core/rules/release.h"
#include "daemon/core/rules/turn_io.h"
#include "daemon/core/state/core_config.h"
#include "daemon/core/state/record.h"
#include "daemon/core/state/state.h"
#include "daemon/core/update/update.h"
#include "daemon/core/view/view.h"
#include "lib/base/error.h"

struct core;
extern const struct core_config core_config_default;

struct core *core_new(const struct core_config *config);
void core_free(struct core *core);
MO_DEFINE_CLEANUP(struct core, core_free)
/* What lines of ranks and kernels mean; it stays the caller's and is used until core_free(). Only
 * decisions use it: a replay does without. */
struct classifier;
void core_signatures(struct core *core, const struct classifier *signatures);
const struct state *core_state(const struct core *core);
/* Takes over a decoded snapshot (state is emptied). */
void core_load(struct core *core, struct state *state);
/* One input. Appends to out. now: core time in us, never decreasing but by IN_CLOCK, the first
 * input of its turn. Never fails: bad input becomes a reply. */
void core_decide(struct core *core, const struct core_input *in, int64_t now, struct core_out *out);
/* The end of a turn, with the same time: who gets which GPUs, and whom that wakes. Appends to out
 * what no input is answered by. */
void core_settle(struct core *core, int64_t now, struct core_out *out);
/* Core time of the next tick; INT64_MAX = none. */
int64_t core_deadline(const struct core *core);
