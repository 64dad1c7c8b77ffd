/* Level-triggered commands: what is due for a node follows from the state alone and is repeated
 * in every reply until notes or reports show that it happened.
 *   step                                                        command
 *   wanted, not reported by the agent                           LAUNCH, unless its node holds a
 *                                                               step that was never stored
 *   planned stop                                                STOP (signal, then SIGKILL after
 *                                                               grace)
 *   failed attempt, cancel --now, stop of a launch never seen   KILL
 *   taken for dead by a fence, its node is back in that boot    KILL, unless its agent does not
 *                                                               know the step
 *   gone, everything applied, attempt over                      FORGET
 *   never stored, an operator wants it ended (moectl resolve)   KILL, then FORGET
 *   failed, the next attempt waits for the node's checks        CHECK
 *   a spare of a job, and its checks are not answered            CHECK
 *   the job that is to be placed there has an image             IMAGE
 *   a spare of a job that has an image                          IMAGE
 *   somebody wants an image there before a job does             IMAGE, of no job
 *   may hang, and the attempt goes on                           MOTION, to agents that know it
 * SCANs that verify a checkpoint after its save go to the nodes that verify.c names. And one
 * SCAN by the node of rank 0 when a job is completed, or is over while checkpoint.keep was
 * removing (checkpoint_end_node), beside those that schedule.c and checkpoint.keep want. What
 * was sent last is remembered only to decide whether a held sync is answered at once; nothing
 * depends on it. */
#include "daemon/core/rules/commands.h"

#include <string.h>

#include "daemon/core/rules/acks.h"
#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/hang.h"
#include "daemon/core/rules/images.h"
#include "daemon/core/rules/launch.h"
#include "daemon/core/rules/prefetch.h"
#include "daemon/core/rules/spares.h"
#include "daemon/core/rules/strays.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/unread.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/incarnation.h"
#include "daemon/core/update/checkpoint_keep.h"
#include "daemon/core/update/verify.h"
#include "lib/base/assert.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

/* in one scan order; older checkpoints are judged anew */
#define KNOWN_MAX 256
/* and that are opened, beside the newest whole ones that the node sees */
#define CLOSE_MAX 4

int command_for(const struct core *c, const struct job *j, const struct step *s)
{
	const struct node *n = node_find(&c->state, s->node);
	bool over = s->attempt != j->attempt || j->run.n_places == 0;

	if (!n || !mo_streq(n->boot.id, s->boot_id))
		return -1;
	if (s->gone && s->ended)
		return over ? CMD_FORGET : -1;
	if (s->missing)
		/* its agent could only answer that it has no such step, which proves nothing of
		 * one that it lost */
		return -1;
	if (s->gone)
		return CMD_KILL;
	if (over)
		return -1;
	if (j->state != JOB_STOPPING && !j->failure.decided && !node_runs_image(n, &j->spec.recipe))
		return -1; /* its agent would start the ranks without the image */
	if (j->state != JOB_STOPPING && !j->failure.decided)
		/* a step that nobody knows may use the same GPUs */
		return s->accepted || n->agent.token_expired || n->strays.any ? -1 : CMD_LAUNCH;
	if (hang_asks_stands(c, j, s))
		return CMD_STOP;
	return j->failure.decided || j->intent_now || !s->accepted ? CMD_KILL : CMD_STOP;
}

static struct command *add(const struct core *c, struct sync_reply *ret, int kind, int64_t job,
			   int64_t attempt, const char *node)
{
	struct command *k = MO_ADD(ret, commands, &command_desc);

	mo_assert(kind >= 0 && kind < _COMMAND_KIND_N && node);
	k->epoch = c->state.epoch;
	k->kind = kind;
	k->job = job;
	k->attempt = attempt;
	k->node = mo_strdup(node);
	k->boot_id = mo_strdup(node_find(&c->state, node)->boot.id);
	return k;
}

static void add_step(const struct core *c, const struct job *j, const struct step *s,
		     struct sync_reply *ret)
{
	int kind = command_for(c, j, s);
	struct command *k;

	if (kind < 0)
		return;
	k = add(c, ret, kind, j->id, s->attempt, s->node);
	if (kind == CMD_STOP) {
		bool stands = hang_asks_stands(c, j, s);

		k->signal = stands ? HANG_SIGNAL : j->spec.recipe.stop_signal;
		k->grace_us = stands ? HANG_GRACE_US : j->spec.recipe.stop_grace_us;
	}
	if (kind == CMD_LAUNCH) {
		k->launch = mo_desc_new(&launch_desc);
		launch_make(&c->state, j, (size_t)(place_of(j, s->node) - j->run.places),
			    k->launch);
	}
}

static struct command *add_scan(const struct core *c, const struct job *j, int order, int64_t id,
				const char *node, struct sync_reply *ret)
{
	bool all = order == ORDER_SCAN || order == ORDER_LAST_SCAN;
	struct command *k = add(c, ret, CMD_SCAN, j->id, all ? id : MO_NONE, node);

	mo_assert(order >= 0 && order < _ORDER_N && id >= 0);
	k->order = order;
	k->id = id;
	k->dir = mo_strdup(j->saves.dir);
	k->named = checkpoint_named(j);
	k->layout = mo_desc_dup(&ckpt_layout_desc, &j->spec.engine.layout);
	k->user = mo_strdup(j->spec.user);
	k->allow_root = j->spec.allow_root;
	/* crc is for the time after a save (verify.c) */
	k->level = mo_strdup(mo_streq(j->spec.recipe.checkpoint.verify, "marker") ? "marker"
										  : "sizes");
	k->world = job_world(j);
	return k;
}

/* What was verified: only its manifest is compared. Superseded ones are scanned anew: they may
 * be written again. Of what was announced the engine's word counts as a marker; and the newest of
 * those that may be resumed from are opened, however many lie behind them. */
static void add_known(const struct job *j, struct command *k)
{
	int64_t limit = j->restart_from == MO_NONE ? INT64_MAX : j->restart_from;
	int n_close = 0;

	for (size_t i = j->n_checkpoints; i > 0 && k->n_known < KNOWN_MAX; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];
		bool announced = checkpoint_announced(j, c), close;
		struct found_checkpoint *f;

		if (c->state == CKPT_SUPERSEDED || c->state == CKPT_DELETED)
			continue;
		close = c->iteration <= limit && (checkpoint_usable(c) || c->iteration == limit) &&
			n_close++ < CLOSE_MAX;
		if (!c->manifest && !announced && !close)
			continue;
		f = MO_ADD(k, known, &found_checkpoint_desc);
		f->iteration = c->iteration;
		f->manifest = mo_strdup(c->manifest);
		if (c->manifest)
			continue;
		f->complete = announced;
		f->path = announced ? mo_strdup(c->path) : NULL;
		f->level = close ? mo_strdup(k->level) : NULL;
	}
}

static void add_verify(const struct core *c, const struct job *j, const char *node,
		       struct sync_reply *ret)
{
	for (int64_t part = verify_next(&c->state, j, node, 0); part >= 0;
	     part = verify_next(&c->state, j, node, part + 1))
		verify_command(j, part,
			       add_scan(c, j, ORDER_VERIFY, verify_id(j, part), node, ret));
}

/* checkpoint.keep: the node of rank 0 removes. Id of its order, MO_NONE = none. */
static int64_t prune_id(const struct job *j, const char *node)
{
	return j->run.n_places > 0 && mo_streq(j->run.places[0].node, node) ? checkpoint_prune_id(j)
									    : MO_NONE;
}

static void add_removals(const struct job *j, struct command *k)
{
	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (checkpoint_removing(&j->checkpoints[i])) {
			struct found_checkpoint *f = MO_ADD(k, prune, &found_checkpoint_desc);

			f->iteration = j->checkpoints[i].iteration;
			f->path = mo_strdup(j->checkpoints[i].path);
		}
}

static bool verify_asked(const struct core *c, const struct job *j, const char *node, int64_t id)
{
	for (int64_t part = verify_next(&c->state, j, node, 0); part >= 0;
	     part = verify_next(&c->state, j, node, part + 1))
		if (verify_id(j, part) == id)
			return true;
	return false;
}

bool scan_asked(const struct core *c, const struct job *j, const char *node,
		const struct scan_result *scan)
{
	const struct live *l = live_of(c, node);

	if (scan->id == MO_NONE)
		return false;
	switch (scan->order) {
	case ORDER_SCAN: return l && ids_has(l->scans, l->n_scans, j->id);
	case ORDER_VERIFY: return verify_asked(c, j, node, scan->id);
	case ORDER_PRUNE: return prune_id(j, node) == scan->id;
	case ORDER_LAST_SCAN: return mo_streq(checkpoint_end_node(j), node);
	default: return false;
	}
}

static void add_prune(const struct core *c, const struct job *j, const char *node,
		      struct sync_reply *ret)
{
	int64_t id = prune_id(j, node);

	if (id != MO_NONE)
		add_removals(j, add_scan(c, j, ORDER_PRUNE, id, node, ret));
}

/* The last scan of an ended job's directory; what was to be removed goes with it. */
static void add_end_scan(const struct core *c, const struct job *j, const char *node,
			 struct sync_reply *ret)
{
	struct command *k = add_scan(c, j, ORDER_LAST_SCAN, job_next_attempt(j), node, ret);

	add_known(j, k);
	add_removals(j, k);
}

/* Before an attempt. A fresh start that was asked for needs nothing back. */
static void add_scan_before(const struct core *c, const struct job *j, const char *node,
			    struct sync_reply *ret)
{
	struct command *k = add_scan(c, j, ORDER_SCAN, job_next_attempt(j), node, ret);

	add_known(j, k);
	k->restore = j->spec.engine.layout.unnumbered && j->restart_from == MO_NONE &&
		     (j->attempt > 0 || j->spec.recipe.checkpoint.resume != -2);
}

/* FNV-1a over what is due. 0 = nothing. */
static uint64_t mix_order(uint64_t hash, int64_t kind, int64_t order, int64_t job, int64_t id)
{
	const int64_t words[] = { kind, order, job, id };

	if (hash == 0)
		hash = 14695981039346656037u;
	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		hash = (hash ^ (uint64_t)words[i]) * 1099511628211u;
	return hash ? hash : 1;
}

static uint64_t mix(uint64_t hash, int64_t kind, int64_t job, int64_t attempt)
{
	return mix_order(hash, kind, MO_NONE, job, attempt);
}

static uint64_t mix_scan(uint64_t hash, int order, int64_t job, int64_t id)
{
	return mix_order(hash, CMD_SCAN, order, job, id);
}

/* The completed job whose checkpoints this node shall scan; NULL = none, or another node. */
static const struct job *ends_here(const struct core *c, size_t i, const char *node)
{
	const struct job *j = job_find(&c->state, c->ending[i]);

	return j && mo_streq(checkpoint_end_node(j), node) ? j : NULL;
}

static uint64_t due(const struct core *c, const char *node, const struct live *l)
{
	const struct node *n = node_find(&c->state, node);
	uint64_t hash = 0;

	for (size_t i = 0; i < l->n_jobs; i++) {
		const struct job *j = job_find(&c->state, l->jobs[i]);

		for (const struct step *st = j ? step_next(j, node, -1) : NULL; st;
		     st = step_next(j, node, st->attempt)) {
			int kind = command_for(c, j, st);

			if (kind >= 0)
				hash = mix(hash, kind, j->id, st->attempt);
			if (hang_asks(c, j, st))
				hash = mix(hash, CMD_MOTION, j->id, st->attempt);
		}
		if (j && prune_id(j, node) != MO_NONE)
			hash = mix_scan(hash, ORDER_PRUNE, j->id, prune_id(j, node));
		for (int64_t part = j ? verify_next(&c->state, j, node, 0) : -1; part >= 0;
		     part = verify_next(&c->state, j, node, part + 1))
			hash = mix_scan(hash, ORDER_VERIFY, j->id, verify_id(j, part));
	}
	for (size_t i = 0; i < l->n_scans; i++) {
		const struct job *j = job_find(&c->state, l->scans[i]);

		hash = j ? mix_scan(hash, ORDER_SCAN, j->id, job_next_attempt(j)) : hash;
	}
	for (size_t i = 0; i < l->n_pulls; i++) {
		const struct job *j = job_find(&c->state, l->pulls[i]);

		hash = j ? mix(hash, CMD_IMAGE, j->id, j->image.digest != NULL) : hash;
	}
	for (size_t i = 0; i < l->n_prefetches; i++) {
		const struct prefetch *p = prefetch_find(c, l->prefetches[i]);

		hash = p ? mix(hash, CMD_IMAGE, -p->id, p->order.digest != NULL) : hash;
	}
	for (size_t i = 0; i < l->n_checks; i++) {
		const struct job *j = job_find(&c->state, l->checks[i]);

		if (j && health_check_due(c, j, node))
			hash = mix(hash, CMD_CHECK, j->id, j->checks.attempt);
	}
	if (n && spare_check_due(&c->state, n))
		hash = mix(hash, CMD_CHECK, n->spare.job, n->spare.asked);
	if (n && n->drain.back != MO_NONE)
		hash = mix(hash, CMD_CHECK, 0, n->drain.back);
	for (size_t i = 0; i < c->n_ending; i++)
		if (ends_here(c, i, node))
			hash = mix_scan(hash, ORDER_LAST_SCAN, c->ending[i], MO_NONE);
	for (size_t i = 0; i < l->n_strays; i++) {
		int kind = stray_command(c, node, &l->strays[i]);

		if (kind >= 0)
			hash = mix(hash, kind, l->strays[i].job, l->strays[i].attempt);
	}
	return hash;
}

bool core_commands_due(const struct core *c, const char *node)
{
	const struct live *l = live_of(c, node);
	uint64_t hash = l ? due(c, node, l) : 0;

	return hash != 0 && hash != l->commands_sent;
}

void core_sync_reply(struct core *c, const char *node, struct sync_reply *ret)
{
	const struct node *n = node_find(&c->state, node);
	struct live *l = core_live(c, node);

	core_acks(c, node, ret);
	if (!l)
		return;
	for (size_t i = 0; i < l->n_jobs; i++) {
		const struct job *j = job_find(&c->state, l->jobs[i]);

		for (const struct step *st = j ? step_next(j, node, -1) : NULL; st;
		     st = step_next(j, node, st->attempt)) {
			add_step(c, j, st, ret);
			if (hang_asks(c, j, st))
				add(c, ret, CMD_MOTION, j->id, st->attempt, node);
		}
		if (j)
			add_prune(c, j, node, ret);
		if (j)
			add_verify(c, j, node, ret);
	}
	for (size_t i = 0; i < l->n_scans; i++) {
		const struct job *j = job_find(&c->state, l->scans[i]);

		if (j)
			add_scan_before(c, j, node, ret);
	}
	for (size_t i = 0; i < l->n_pulls; i++) {
		const struct job *j = job_find(&c->state, l->pulls[i]);

		if (j)
			add(c, ret, CMD_IMAGE, j->id, MO_NONE, node)->image = image_order_new(j);
	}
	for (size_t i = 0; i < l->n_prefetches; i++) {
		const struct prefetch *p = prefetch_find(c, l->prefetches[i]);

		if (p)
			add(c, ret, CMD_IMAGE, MO_NONE, MO_NONE, node)->image =
				mo_desc_dup(&image_order_desc, &p->order);
	}
	for (size_t i = 0; i < l->n_checks; i++) {
		const struct job *j = job_find(&c->state, l->checks[i]);

		if (j && health_check_due(c, j, node))
			add(c, ret, CMD_CHECK, j->id, j->checks.attempt, node)->thorough =
				l->doubts && j->checks.thorough &&
				(!j->checks.doubted || mo_streq(j->checks.doubted, node));
	}
	if (n && spare_check_due(&c->state, n))
		add(c, ret, CMD_CHECK, n->spare.job, n->spare.asked, node)->thorough = l->doubts;
	if (n && n->drain.back != MO_NONE)
		add(c, ret, CMD_CHECK, 0, n->drain.back, node)->thorough = l->doubts;
	for (size_t i = 0; i < c->n_ending; i++) {
		const struct job *j = ends_here(c, i, node);

		if (j)
			add_end_scan(c, j, node, ret);
	}
	for (size_t i = 0; i < l->n_strays; i++) {
		int kind = stray_command(c, node, &l->strays[i]);

		if (kind >= 0)
			add(c, ret, kind, l->strays[i].job, l->strays[i].attempt, node);
	}
	l->commands_sent = due(c, node, l);
}

static void wake(struct turn *t, const char *node)
{
	if (core_commands_due(t->core, node))
		turn_effect(t, FX_WAKE, node);
}

void commands_wake(struct turn *t)
{
	struct core *c = t->core;

	for (size_t i = 0; i < c->n_wake_jobs; i++) {
		const struct job *j = job_find(&c->state, c->wake_jobs[i]);

		for (size_t k = 0; j && k < j->n_steps; k++)
			if (!j->steps[k].forgotten)
				wake(t, j->steps[k].node);
	}
	for (size_t i = 0; i < c->n_wake_nodes; i++) {
		wake(t, c->wake_nodes[i]->node->name);
		c->wake_nodes[i]->wakes = false;
	}
	c->n_wake_jobs = c->n_wake_nodes = 0;
}
