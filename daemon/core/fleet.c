/* Nodes: hello, beats, silence, drains, fences, and what a node reports of its steps.
 * Proof of death made here: a changed boot id (hello) and a fence. Silence only makes a node suspect, then down; it proves nothing.
 * A step that a node no longer reports under the same boot is not dead either: its agent lost contact with it, and only a person can know. */
#include "daemon/core/inner.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

static void node_state(struct turn *t, const char *name, int state, const char *reason)
{
	static const char *const types[] = { [NODE_UP] = "node.up", [NODE_SUSPECT] = "node.suspect", [NODE_DOWN] = "node.down" };
	struct record r;

	record_init(&r, REC_NODE_STATE);
	r.node = mo_strdup(name);
	r.value = state;
	r.text = mo_strdup(reason);
	turn_emit(t, &r);
	event_emit(t, types[state], MO_NONE, name, MO_NONE, MO_NONE, NULL, "node %s is %s%s%s", name, node_state_names[state], reason ? ": " : "", reason ? reason : "");
}

void fleet_heard(struct turn *t, const char *name)
{
	struct node *n = node_find(&t->core->state, name);

	n->heard_at = t->now;
	t->core->liveness_at = MO_MIN(t->core->liveness_at, t->now + t->core->config.suspect_us);
	if (n->state != NODE_UP)
		node_state(t, name, NODE_UP, NULL);
}

/* Called when liveness_at was reached: looks at every node and sets the next time to look. */
void fleet_silence(struct turn *t)
{
	const struct core_config *config = &t->core->config;
	struct state *s = &t->core->state;
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < s->n_nodes; i++) {
		int64_t silent = t->now - s->nodes[i].heard_at;
		_cleanup_(mo_freep) char *reason = mo_printf("not heard for %lld ms", (long long)(silent / 1000));

		if (s->nodes[i].state == NODE_UP && silent >= config->suspect_us)
			node_state(t, s->nodes[i].name, NODE_SUSPECT, reason);
		if (s->nodes[i].state == NODE_SUSPECT && silent >= config->down_us)
			node_state(t, s->nodes[i].name, NODE_DOWN, reason);
		if (s->nodes[i].state == NODE_UP)
			next = MO_MIN(next, s->nodes[i].heard_at + config->suspect_us);
		else if (s->nodes[i].state == NODE_SUSPECT)
			next = MO_MIN(next, s->nodes[i].heard_at + config->down_us);
	}
	t->core->liveness_at = next;
}

/* The controller itself was late: nobody can be blamed for that time. */
void fleet_late(struct core *c, int64_t by, int64_t now)
{
	if (by <= 0)
		return;
	for (size_t i = 0; i < c->state.n_nodes; i++)
		c->state.nodes[i].heard_at = MO_MIN(now, c->state.nodes[i].heard_at + by);
	if (c->liveness_at != INT64_MAX)
		c->liveness_at += by;
}

/* ---- proofs ---- */

static void step_gone(struct turn *t, int64_t job, const struct step *st, const char *how)
{
	struct record r;

	record_init(&r, REC_GONE);
	r.job = job;
	r.attempt = st->attempt;
	r.node = mo_strdup(st->node);
	r.text = mo_strdup(how);
	turn_emit(t, &r);
}

/* boot NULL: every step of the node (fence); else those of other boots. */
static void prove_gone(struct turn *t, const char *node, const char *boot, const char *how)
{
	const struct live *l = core_live(t->core, node);

	for (size_t i = 0; i < l->n_jobs; i++) {
		const struct job *j = job_find(&t->core->state, l->jobs[i]);

		for (size_t k = 0; j && k < j->n_steps; k++) {
			const struct step *st = &j->steps[k];

			if (!st->gone && mo_streq(st->node, node) && !(boot && mo_streq(st->boot_id, boot)))
				step_gone(t, j->id, st, how);
		}
	}
}

/* ---- what a node reports ---- */

static void note_event(struct turn *t, const struct job *j, const struct step *st, const struct note *n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	bool ours = mo_streq(n->cause, "killed") || mo_streq(n->cause, "stopped");

	switch (n->kind) {
	case NOTE_EXIT:
		if (ours && j->n_ranks > 512)
			return;   /* thousands of ends by our own order would push everything else out of the ring */
		data_int(&b, "code", n->code);
		data_int(&b, "signal", n->signal);
		data_str(&b, "cause", n->cause);
		event_emit(t, "rank.exited", j->id, st->node, n->rank, st->attempt, data_end(&b), "rank %lld on %s ended: %s", (long long)n->rank, st->node, n->cause ? n->cause : "?");
		break;
	case NOTE_CHECKPOINT:
		data_int(&b, "iteration", n->iteration);
		data_str(&b, "path", n->path);
		event_emit(t, "checkpoint.saved", j->id, st->node, MO_NONE, st->attempt, data_end(&b), "checkpoint %lld saved%s%s", (long long)n->iteration, n->path ? ": " : "", n->path ? n->path : "");
		break;
	case NOTE_RESUMED:
		data_int(&b, "iteration", n->iteration);
		event_emit(t, "job.resumed", j->id, st->node, n->rank, st->attempt, data_end(&b), "the engine says it resumed from iteration %lld", (long long)n->iteration);
		break;
	case NOTE_REFUSED:
		data_str(&b, "cause", n->cause);
		event_emit(t, "step.refused", j->id, st->node, n->rank, st->attempt, data_end(&b), "%s refused the launch: %s: %s", st->node, n->cause ? n->cause : "?", n->text ? n->text : "");
		break;
	case NOTE_LOST:
		event_emit(t, "step.lost", j->id, st->node, MO_NONE, st->attempt, NULL, "the supervisor of %s on %s died", j->spec.recipe.name, st->node);
		break;
	case NOTE_UNKILLABLE:
		event_emit(t, "step.unkillable", j->id, st->node, n->rank, st->attempt, NULL, "process %lld on %s cannot be killed; the node gets no work until it is gone", (long long)n->pid, st->node);
		break;
	default: break;
	}
}

static void apply_notes(struct turn *t, int64_t id, const char *node, const struct step_report *rep)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct step *st = step_find(j, rep->attempt, node);
	int64_t through = st->through;
	size_t first;
	struct record r;

	record_init(&r, REC_NOTES);
	for (size_t i = 0; i < rep->n_notes; i++) {
		if (rep->notes[i].n <= through || st->ended)
			continue;
		through = rep->notes[i].n;
		mo_desc_copy(&note_desc, MO_ADD(&r, notes, &note_desc), &rep->notes[i]);
		if (rep->notes[i].kind == NOTE_GONE)
			break;
	}
	if (r.n_notes == 0)
		return;
	first = rep->n_notes;
	while (first > 0 && rep->notes[first - 1].n > st->through)
		first--;
	r.job = id;
	r.attempt = rep->attempt;
	r.node = mo_strdup(node);
	turn_emit(t, &r);
	for (size_t i = first; i < rep->n_notes && rep->notes[i].n <= through; i++) {
		j = job_find(&t->core->state, id);
		note_event(t, j, step_find(j, rep->attempt, node), &rep->notes[i]);
	}
}

static void step_flag(struct turn *t, int type, int64_t job, const struct step_report *rep, const char *node, bool flag)
{
	struct record r;

	record_init(&r, type);
	r.job = job;
	r.attempt = rep->attempt;
	r.node = mo_strdup(node);
	r.flag = flag;
	turn_emit(t, &r);
}

static void progress(struct turn *t, struct job *j, const struct step *st, const struct step_report *rep)
{
	for (size_t i = 0; i < rep->n_progress && st->attempt == j->attempt; i++) {
		const struct rank_progress *p = &rep->progress[i];
		struct rank *k;

		if (p->rank < st->first_rank || p->rank >= st->first_rank + st->n_ranks || (uint64_t)p->rank >= j->n_ranks)
			continue;
		k = &j->ranks[p->rank];
		if (p->step_ms != MO_NONE_F)
			k->step_ms = p->step_ms;
		if (p->iteration <= k->iteration)
			continue;
		k->iteration = p->iteration;
		j->progress_at = t->now;
		if (j->waiting_node)
			core_touch(t->core, j->id);
	}
}

static void hung(struct turn *t, int64_t id, const struct step_report *rep, const char *node, bool flag, const char *why)
{
	step_flag(t, REC_HUNG, id, rep, node, flag);
	if (flag)
		event_emit(t, "step.hung", id, node, MO_NONE, rep->attempt, NULL, "%s on node %s: not proof of death, so nothing is restarted; 'moectl fence %s --confirmed' after a power-off is", why, node, node);
}

/* fresh: this is the newest word of the agent's present instance about all its steps. */
static void known_step(struct turn *t, int64_t id, const struct step_report *rep, const char *node, bool fresh)
{
	struct job *j = job_find(&t->core->state, id);
	struct step *st = step_find(j, rep->attempt, node);

	/* An agent that died between spool and start comes back with an entry that nothing runs for: only the launch, told again, starts it. */
	if (!st->accepted && (rep->state != STEP_SPOOLED || rep->written > 0))
		step_flag(t, REC_ACCEPT, id, rep, node, true);
	if (rep->n_notes)
		apply_notes(t, id, node, rep);
	j = job_find(&t->core->state, id);
	st = step_find(j, rep->attempt, node);
	progress(t, j, st, rep);
	if (fresh && st->hung != (rep->state == STEP_HUNG) && !st->gone)
		hung(t, id, rep, node, rep->state == STEP_HUNG, "the step's supervisor does not answer");
}

static bool reported(const struct step_report *steps, size_t n, int64_t job, int64_t attempt)
{
	for (size_t i = 0; i < n; i++)
		if (steps[i].job == job && steps[i].attempt == attempt)
			return true;
	return false;
}

/* Steps of the node that its agent does not have (any more). */
static void absent_steps(struct turn *t, const struct node *n, const struct step_report *steps, size_t n_steps)
{
	const struct live *l = core_live(t->core, n->name);
	_cleanup_(mo_freep) char *name = mo_strdup(n->name);

	for (size_t i = l->n_jobs; i > 0; i--) {
		const struct job *j = job_find(&t->core->state, l->jobs[i - 1]);

		for (size_t k = j ? j->n_steps : 0; k > 0; k--) {
			const struct step *st = &j->steps[k - 1];
			struct step_report rep = { .job = j->id, .attempt = st->attempt };
			bool over = st->attempt != j->attempt || j->n_places == 0;

			if (!mo_streq(st->node, name) || reported(steps, n_steps, j->id, st->attempt))
				continue;
			if (st->gone && over)
				step_flag(t, REC_FORGOTTEN, j->id, &rep, name, true);
			else if (!st->gone && st->accepted && !st->hung)
				hung(t, j->id, &rep, name, true, "the agent no longer knows the step");
			j = job_find(&t->core->state, rep.job);
		}
	}
}

/* Steps we do not have. One that lives keeps its node from work. */
static void stray_steps(struct turn *t, const char *name, const struct step_report *steps, size_t n_steps)
{
	struct live *l = core_live(t->core, name);
	const struct node *n = node_find(&t->core->state, name);
	bool strange = false;

	l->n_strays = 0;
	for (size_t i = 0; i < n_steps; i++) {
		const struct job *j = job_find(&t->core->state, steps[i].job);
		struct stray stray = { .job = steps[i].job, .attempt = steps[i].attempt, .written = steps[i].written, .gone = steps[i].state == STEP_GONE };

		if (j && step_find(j, steps[i].attempt, name))
			continue;
		stray.ours = steps[i].job > 0 && steps[i].job < t->core->state.next_job && (!j || steps[i].attempt <= j->attempt);
		*MO_GROW(l->strays, l->n_strays) = stray;
		strange |= !stray.gone;
		if (!stray.gone && !n->strange_steps)
			event_emit(t, "step.unknown", steps[i].job, name, MO_NONE, steps[i].attempt, NULL, "node %s holds step j-%lld.a%lld, which this controller never stored; it is kept and the node gets no work until it is gone",
				name, (long long)steps[i].job, (long long)steps[i].attempt);
	}
	n = node_find(&t->core->state, name);
	if (n->strange_steps != strange) {
		struct record r;

		record_init(&r, REC_STRANGE);
		r.node = mo_strdup(name);
		r.flag = strange;
		turn_emit(t, &r);
	}
}

/* A hello may be a late copy of a dead agent's, so only a beat of the present instance shows what is absent. */
static void reports(struct turn *t, const char *name, const struct step_report *steps, size_t n_steps, bool fresh, bool hello)
{
	for (size_t i = 0; i < n_steps; i++) {
		const struct job *j = job_find(&t->core->state, steps[i].job);

		if (j && step_find(j, steps[i].attempt, name))
			known_step(t, j->id, &steps[i], name, fresh);
	}
	if (fresh)
		absent_steps(t, node_find(&t->core->state, name), steps, n_steps);
	if (fresh || hello)
		stray_steps(t, name, steps, n_steps);
}

/* ---- messages ---- */

static bool replaced(char *const *past, size_t n, const char *id)
{
	return mo_enum_parse((const char *const *)past, n, id) >= 0;
}

static bool hello_refused(struct turn *t, const struct agent_hello *h)
{
	const struct node *n = node_find(&t->core->state, h->node);

	if (h->protocol != MO_PROTOCOL)
		turn_reply(t, 426, MO_NONE, "agent %s: it speaks protocol %lld, this controller speaks %d; install the same version on both", h->node ? h->node : "?", (long long)h->protocol, MO_PROTOCOL);
	else if (!h->node || !mo_name_valid(h->node) || !h->boot_id || !*h->boot_id || !h->instance || !*h->instance)
		turn_reply(t, 422, MO_NONE, "agent: hello without a valid node name, boot id or instance; set node: in agent.yaml");
	else if (h->info.n_gpus > MO_GPUS_PER_NODE_MAX)
		turn_reply(t, 422, MO_NONE, "agent %s: %zu GPU slots, at most %d are supported", h->node, h->info.n_gpus, MO_GPUS_PER_NODE_MAX);
	else if (!n && t->core->state.n_nodes >= MO_NODES_MAX)
		turn_reply(t, 429, MO_NONE, "agent %s: this controller knows %d nodes already, which is its limit", h->node, MO_NODES_MAX);
	else if (n && !mo_streq(n->instance, h->instance) && replaced(n->past_instances, n->n_past_instances, h->instance))
		turn_reply(t, 409, MO_NONE, "agent %s: a later agent of this node took over; only one may run under this name", h->node);
	else if (n && !mo_streq(n->boot_id, h->boot_id) && replaced(n->past_boots, n->n_past_boots, h->boot_id))
		turn_reply(t, 409, MO_NONE, "agent %s: boot %s was replaced by a later one; another machine uses this node name", h->node, h->boot_id);
	else if (n && !mo_streq(n->boot_id, h->boot_id) && n->reconciled && t->now - n->heard_at < t->core->config.suspect_us)
		turn_reply(t, 409, MO_NONE, "agent %s: another live agent has this node name (boot %s, heard %lld ms ago); give one of them another name", h->node, n->boot_id, (long long)((t->now - n->heard_at) / 1000));
	else
		return false;
	return true;
}

static void welcome(struct turn *t, const struct agent_hello *h)
{
	struct effect *e;

	e = MO_ADD(t->out, effects, &effect_desc);
	e->type = FX_WELCOME;
	e->request = t->event->request;
	e->node = mo_strdup(h->node);
	e->welcome = mo_desc_new(&agent_welcome_desc);
	e->welcome->epoch = t->core->state.epoch;
	e->welcome->beat_ms = t->core->config.beat_us / 1000;
	for (size_t i = 0; i < h->n_steps; i++) {
		const struct job *j = job_find(&t->core->state, h->steps[i].job);
		const struct step *st = j ? step_find(j, h->steps[i].attempt, h->node) : NULL;
		struct step_ack *ack = MO_ADD(e->welcome, steps, &step_ack_desc);

		ack->job = h->steps[i].job;
		ack->attempt = h->steps[i].attempt;
		ack->through = st ? st->through : 0;
		ack->known = st != NULL;
	}
}

void fleet_hello(struct turn *t)
{
	const struct agent_hello *h = t->event->hello;
	const struct node *n = node_find(&t->core->state, h->node);
	struct live *l = core_live(t->core, h->node);
	bool repeated = n && n->reconciled && l->last_beat > 0 && mo_streq(n->instance, h->instance) && mo_streq(n->boot_id, h->boot_id);
	struct record r;
	bool is_new = !n;

	if (hello_refused(t, h))
		return;
	if (repeated) {   /* a late copy: its list of steps is older than the beats already heard */
		fleet_heard(t, h->node);
		welcome(t, h);
		return;
	}
	record_init(&r, REC_NODE);
	r.hello = mo_desc_dup(&agent_hello_desc, h);
	mo_vec_clear(&step_report_desc, (void **)&r.hello->steps, &r.hello->n_steps);
	turn_emit(t, &r);
	if (is_new)
		event_emit(t, "node.up", MO_NONE, h->node, MO_NONE, MO_NONE, NULL, "node %s joined with %zu GPU slots", h->node, h->info.n_gpus);
	fleet_heard(t, h->node);
	prove_gone(t, h->node, h->boot_id, "the node was rebooted (its boot id changed)");
	reports(t, h->node, h->steps, h->n_steps, false, true);
	welcome(t, h);
}

static void scan_events(struct turn *t, int64_t id, const struct checkpoint *before, size_t n_before)
{
	const struct job *j = job_find(&t->core->state, id);

	for (size_t i = 0; i < j->n_checkpoints; i++) {
		struct checkpoint c = j->checkpoints[i];
		bool same = false, torn = c.state == CKPT_TORN;
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

		for (size_t k = 0; k < n_before; k++)
			same |= before[k].iteration == c.iteration && before[k].state == c.state;
		if (same || (!torn && c.state != CKPT_VERIFIED))
			continue;
		data_int(&b, "iteration", c.iteration);
		data_str(&b, "path", c.path);
		data_str(&b, "reason", c.reason);
		event_emit(t, torn ? "checkpoint.torn" : "checkpoint.verified", id, NULL, MO_NONE, c.attempt, data_end(&b), "checkpoint %lld is %s%s%s", (long long)c.iteration,
			torn ? "not usable" : "complete", c.reason ? ": " : "", c.reason ? c.reason : "");
		j = job_find(&t->core->state, id);
	}
}

static void scanned(struct turn *t, const struct scan_result *scan)
{
	const struct job *j = job_find(&t->core->state, scan->job);
	struct job before;
	struct record r;

	if (!j || job_state_final(j->state) || j->n_places > 0 || scan->attempt != j->attempt + 1 || scan_fresh(j, t->now) || scan->n_items > MO_CHECKPOINTS_MAX)
		return;
	mo_desc_init(&job_desc, &before);
	for (size_t i = 0; i < j->n_checkpoints; i++)
		mo_desc_copy(&checkpoint_desc, MO_ADD(&before, checkpoints, &checkpoint_desc), &j->checkpoints[i]);
	record_init(&r, REC_SCAN);
	r.job = scan->job;
	r.attempt = scan->attempt;
	r.scan = mo_desc_dup(&scan_result_desc, scan);
	turn_emit(t, &r);
	scan_events(t, scan->job, before.checkpoints, before.n_checkpoints);
	mo_desc_done(&job_desc, &before);
}

void fleet_sync(struct turn *t)
{
	const struct agent_sync *s = t->event->sync;
	const struct node *n = node_find(&t->core->state, s->node);
	bool fresh, news = t->event->type == EV_NEWS;
	struct live *l;

	if (!n || !n->reconciled || !mo_streq(n->instance, s->instance) || !mo_streq(n->boot_id, s->boot_id) || s->epoch != t->core->state.epoch) {
		turn_reply(t, 409, MO_NONE, "agent %s: this controller does not know this instance; say hello again", s->node ? s->node : "?");
		return;
	}
	fleet_heard(t, s->node);
	l = core_live(t->core, s->node);
	fresh = !news && s->beat > l->last_beat;
	if (fresh)
		l->last_beat = s->beat;
	reports(t, s->node, s->steps, s->n_steps, fresh, false);
	for (size_t i = 0; i < s->n_scans; i++)
		scanned(t, &s->scans[i]);
	if (!news)
		wake_node(t->core, s->node);   /* what became due while no sync was held */
	if (news) {
		struct effect *e = MO_ADD(t->out, effects, &effect_desc);

		e->type = FX_ACK;
		e->request = t->event->request;
		e->node = mo_strdup(s->node);
	}
}

/* ---- verbs on nodes ---- */

static void drain(struct turn *t, bool on)
{
	const struct core_event *e = t->event;
	const char *when = e->when ? e->when : "idle";
	struct record r;

	if (on && !mo_streq(when, "idle") && !mo_streq(when, "checkpoint") && !mo_streq(when, "now")) {
		turn_reply(t, 422, MO_NONE, "drain --when %s: it must be idle, checkpoint or now", when);
		return;
	}
	record_init(&r, REC_DRAIN);
	r.node = mo_strdup(e->node);
	r.flag = on;
	r.text = mo_strdup(on ? e->text : NULL);
	r.cause = mo_strdup(on ? when : NULL);
	turn_emit(t, &r);
	if (on)
		event_emit(t, "node.draining", MO_NONE, e->node, MO_NONE, MO_NONE, NULL, "node %s is being drained (%s)%s%s", e->node, when, e->text ? ": " : "", e->text ? e->text : "");
	else
		event_emit(t, "node.undrained", MO_NONE, e->node, MO_NONE, MO_NONE, NULL, "node %s takes work again", e->node);
	turn_reply(t, 200, MO_NONE, NULL);
}

static void fence(struct turn *t, const struct node *n)
{
	_cleanup_(mo_freep) char *name = mo_strdup(n->name), *how = mo_printf("fenced by %s", t->event->user ? t->event->user : "an operator");

	if (n->state == NODE_UP) {
		turn_reply(t, 409, MO_NONE, "node %s: it is up (heard %lld ms ago), so it cannot be powered off; drain it instead", name, (long long)((t->now - n->heard_at) / 1000));
		return;
	}
	event_emit(t, "node.fenced", MO_NONE, name, MO_NONE, MO_NONE, NULL, "node %s %s: its ranks are taken for dead", name, how);
	prove_gone(t, name, NULL, how);
	turn_reply(t, 200, MO_NONE, NULL);
}

void fleet_verb(struct turn *t)
{
	const struct core_event *e = t->event;
	const struct node *n = node_find(&t->core->state, e->node);

	if (!n)
		turn_reply(t, 404, MO_NONE, "node %s: no such node; see 'moectl nodes'", e->node ? e->node : "?");
	else if (!e->may_all)
		turn_reply(t, 403, MO_NONE, "node %s: only an operator may do that", n->name);
	else if (e->type == EV_FENCE)
		fence(t, n);
	else if (e->type == EV_UNDRAIN && !n->drain)
		turn_reply(t, 409, MO_NONE, "node %s: it is not drained", n->name);
	else
		drain(t, e->type == EV_DRAIN);
}

/* Drains that are done: no rank is left on the node. */
bool fleet_drain(struct turn *t)
{
	bool emitted = false;

	for (size_t i = 0; i < t->core->state.n_nodes; i++) {
		const struct node *n = &t->core->state.nodes[i];
		const struct live *l = &t->core->lives[i];
		bool busy = !n->drain || n->drained;
		struct record r;

		for (size_t k = 0; !busy && k < l->n_jobs; k++) {
			const struct job *j = job_find(&t->core->state, l->jobs[k]);

			for (size_t m = 0; j && m < j->n_steps; m++)
				busy |= mo_streq(j->steps[m].node, n->name) && (!j->steps[m].gone || (j->n_places > 0 && j->steps[m].attempt == j->attempt));
		}
		if (busy)
			continue;
		record_init(&r, REC_DRAIN);
		r.node = mo_strdup(n->name);
		r.value = 1;
		turn_emit(t, &r);
		event_emit(t, "node.drained", MO_NONE, t->core->state.nodes[i].name, MO_NONE, MO_NONE, NULL, "node %s is drained: no rank is left on it", t->core->state.nodes[i].name);
		emitted = true;
	}
	return emitted;
}
