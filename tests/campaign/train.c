/* See campaign.h: what the job does, what goes wrong and who mends it, each at its time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/hang_limits.h"
#include "tests/campaign/campaign.h"
#include "tests/core_inside.h"

#define STRAGGLERS (1 / 6.5) /* to a failure */
#define HANGS 0.1     /* of the failures; half of them a rank that is stopped, else all spin */
#define NODES_DIE 0.3 /* of the others */
#define LATER (10 * S)

const char *const fault_names[_FAULT_N] = {
	"a rank dies", "a node dies", "a rank is stopped", "all ranks spin", "a straggler",
};

static int64_t us(double seconds)
{
	return (int64_t)(seconds * 1e6);
}

static bool trains(const struct cnode *n)
{
	return n->has && !n->gone && !n->dead && n->attempt == w.attempt;
}

/* ---- the job ---- */

static void slow_ends(void)
{
	w.slow_us += w.now - w.slow_since;
	w.slow = -1;
}

void train_launched(const struct cnode *n)
{
	if (n->attempt != w.attempt) {
		if (w.attempt && w.pending < 0)
			broken("attempt %lld is for no failure", (long long)n->attempt);
		w.attempt = n->attempt;
		w.n_launched = 0;
		w.pending = w.hung = -1;
	}
	if (++w.n_launched < w.o.nodes)
		return;
	if (w.slow >= 0 && !trains(&w.nodes[w.slow]))
		slow_ends();
	w.stage = STAGE_INIT;
	w.next_at = w.now + us(INIT_S);
}

static void step_begins(void)
{
	w.stage = STAGE_STEP;
	w.next_at = w.now + us(w.o.step_s * (w.slow >= 0 ? SLOWER : 1));
}

static void whole(void)
{
	w.whole_at = INT64_MAX;
	w.saved_iteration = w.saving;
	w.saved_at = w.now;
	w.n_saves++;
	lead_says(NOTE_CHECKPOINT, PHASE_NONE, w.saving);
}

/* The engine says when it goes on: of a save that goes on beside the training, and else by the
 * save being whole. */
static void stalled(void)
{
	w.unsaved = 0;
	w.whole_at = w.now + us(w.o.write_s);
	if (w.o.write_s > 0 && w.o.stall_s > 0)
		lead_says(NOTE_PHASE, PHASE_TRAIN, MO_NONE);
	else if (w.o.write_s <= 0)
		whole();
	step_begins();
}

static void iterated(void)
{
	lead_says(NOTE_SAMPLE, PHASE_NONE, ++w.iteration);
	if (++w.unsaved < w.o.every || w.whole_at != INT64_MAX) {
		step_begins();
		return;
	}
	w.saving = w.iteration;
	if (w.o.stall_s <= 0) {
		stalled();
		return;
	}
	lead_says(NOTE_SAVING, PHASE_NONE, w.iteration);
	w.stage = STAGE_SAVE;
	w.next_at = w.now + us(w.o.stall_s);
}

static void train(void)
{
	switch (w.stage) {
	case STAGE_INIT:
		lead_says(NOTE_PHASE, PHASE_LOAD, MO_NONE);
		w.stage = STAGE_LOAD;
		w.next_at = w.now + us(LOAD_S);
		return;
	case STAGE_LOAD:
		w.iteration = w.resume;
		w.unsaved = 0;
		w.whole_at = INT64_MAX;
		if (w.attempt > 1)
			times_add(&w.restarted, w.now - w.faulted_at);
		step_begins();
		return;
	case STAGE_STEP: iterated(); return;
	default: stalled(); return;
	}
}

/* ---- what goes wrong ---- */

static int victim(void)
{
	int i;

	do
		i = (int)(chance() * w.n_all);
	while (!trains(&w.nodes[i]));
	return i;
}

static void all_beat(void)
{
	for (int i = 0; i < w.n_all; i++)
		node_wake(i);
	w.beat_at = w.now + S;
}

static void silence_counts(bool does)
{
	w.core->config.suspect_us = does ? core_config_default.suspect_us : NEVER;
	w.core->config.down_us = does ? core_config_default.down_us : NEVER;
}

/* All are heard once more; from here on silence is something, and they are each second. */
static void node_dies(int i)
{
	for (int k = 0; k < w.n_all; k++)
		node_beat(k);
	w.nodes[i].dead = true;
	w.nodes[i].returns_at = w.now + RETURNS;
	w.return_at = MO_MIN(w.return_at, w.nodes[i].returns_at);
	w.stage = STAGE_NONE;
	w.silent = i;
	silence_counts(true);
	all_beat();
}

static void hang(int what, int i)
{
	w.stage = STAGE_NONE;
	w.hung = what;
	w.hung_rank = w.nodes[i].first + (int64_t)(chance() * LOCAL);
	if (w.iteration - w.resume > HANG_STEPS_MIN)
		return;
	w.early[what]++;
	w.early_s += expected_early_s(what, w.iteration == w.resume, w.attempt > 1);
}

static int draw_fault(void)
{
	if (chance() < STRAGGLERS / (1 + STRAGGLERS))
		return FAULT_SLOW;
	if (chance() < HANGS)
		return chance() < 0.5 ? FAULT_STOPPED : FAULT_SPINS;
	return chance() < NODES_DIE ? FAULT_NODE : FAULT_RANK;
}

static void fault(void)
{
	int what, i;

	w.fault_at = w.now + LATER;
	if (w.stage != STAGE_STEP || w.pending >= 0)
		return;
	what = draw_fault();
	if (what == FAULT_SLOW && w.slow >= 0)
		return;
	w.fault_at = w.now + us(-log(chance()) * 86400 * 1000 /
				(w.o.failures * (1 + STRAGGLERS) * (double)w.o.nodes));
	i = victim();
	if (what == FAULT_SLOW) {
		w.slow = i;
		w.n_slow++;
		w.slow_since = w.now;
		w.drain_at = w.now + DRAINED;
		return;
	}
	w.faults[what]++;
	w.pending = what;
	w.faulted_at = w.now;
	w.decided = false;
	switch (what) {
	case FAULT_RANK: node_rank_ends(i, (int64_t)(chance() * LOCAL), 11); break;
	case FAULT_NODE: node_dies(i); break;
	default: hang(what, i); break;
	}
}

void train_event(const char *type, int64_t rank)
{
	bool hangs = mo_streq(type, "hang.confirmed"),
	     named = rank == (w.hung == FAULT_STOPPED ? w.hung_rank : MO_NONE);

	w.suspected += mo_streq(type, "hang.suspected");
	if ((hangs && (w.hung < 0 || !named)) || mo_streq(type, "straggler.found") ||
	    mo_streq(type, "node.cordoned")) {
		w.wrong++;
		broken("%s of rank %lld is false", type, (long long)rank);
	}
}

/* ---- who mends it ---- */

static void drain(const char *node, bool drains)
{
	struct in_drain d = { .node = (char *)node,
			      .reason = (char *)"slow",
			      .when = (char *)"checkpoint" };
	struct in_undrain u = { .node = (char *)node };
	struct core_input in = { .type = drains ? IN_DRAIN : IN_UNDRAIN,
				 .by = { .user = (char *)"op", .may_all = true } };

	in.drain = drains ? &d : NULL;
	in.undrain = drains ? NULL : &u;
	decide(&in);
}

static void straggler_is_drained(void)
{
	struct cnode *n = &w.nodes[w.slow];

	w.drain_at = w.now + LATER;
	if (w.stage != STAGE_STEP || w.pending >= 0)
		return;
	w.drain_at = INT64_MAX;
	w.faults[FAULT_SLOW]++;
	w.pending = FAULT_SLOW;
	w.faulted_at = w.now;
	n->returns_at = w.now + RETURNS;
	w.return_at = MO_MIN(w.return_at, n->returns_at);
	drain(n->name, true);
}

void train_power_asked(const char *node)
{
	if (w.silent < 0 || !mo_streq(node, w.nodes[w.silent].name))
		broken("fence_command is asked to power off %s, which lives", node);
	w.power_at = w.now + us(w.o.power_s);
}

static void powered_off(void)
{
	struct cnode *n = &w.nodes[w.silent];
	_cleanup_(mo_freep) char *boot = mo_printf("%s-%lld", n->name, (long long)n->boot);

	w.power_at = w.beat_at = INT64_MAX;
	w.silent = -1;
	silence_counts(false);
	decide(&(struct core_input){
		.type = IN_POWER,
		.power = &(struct in_power){ .node = n->name, .boot_id = boot, .off = true } });
}

static void nodes_return(void)
{
	w.return_at = INT64_MAX;
	for (int i = 0; i < w.n_all; i++) {
		struct cnode *n = &w.nodes[i];

		if (n->returns_at && n->returns_at <= w.now) {
			n->returns_at = 0;
			if (n->dead) {
				/* its old boot is not heard any more */
				silence_counts(true);
				node_boots(i);
				silence_counts(w.silent >= 0);
			}
			drain(n->name, false);
		}
		if (n->returns_at)
			w.return_at = MO_MIN(w.return_at, n->returns_at);
	}
}

static void looks(void)
{
	w.look_at = INT64_MAX;
	for (int i = 0; i < w.n_all; i++)
		if (w.nodes[i].asked_at)
			node_wake(i);
}

static void steps_end(void)
{
	w.end_at = INT64_MAX;
	for (int i = 0; i < w.n_all; i++) {
		if (w.nodes[i].ends_at && w.nodes[i].ends_at <= w.now)
			node_all_end(i);
		if (w.nodes[i].ends_at)
			w.end_at = MO_MIN(w.end_at, w.nodes[i].ends_at);
	}
}

int64_t train_next(void)
{
	int64_t at[] = { w.fault_at,
			 w.look_at,
			 w.beat_at,
			 w.power_at,
			 w.end_at,
			 w.return_at,
			 w.stage ? w.next_at : INT64_MAX,
			 w.stage ? w.whole_at : INT64_MAX,
			 w.slow >= 0 ? w.drain_at : INT64_MAX };
	int64_t ret = core_deadline(w.core);

	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		ret = MO_MIN(ret, at[i]);
	return ret;
}

void train_act(void)
{
	if (w.stage && w.whole_at <= w.now)
		whole();
	if (w.stage && w.next_at <= w.now)
		train();
	if (w.fault_at <= w.now)
		fault();
	if (w.look_at <= w.now)
		looks();
	if (w.beat_at <= w.now)
		all_beat();
	if (w.power_at <= w.now)
		powered_off();
	if (w.end_at <= w.now)
		steps_end();
	if (w.slow >= 0 && w.drain_at <= w.now)
		straggler_is_drained();
	if (w.return_at <= w.now)
		nodes_return();
	if (core_deadline(w.core) <= w.now)
		decide(&(struct core_input){ .type = IN_TICK });
}
