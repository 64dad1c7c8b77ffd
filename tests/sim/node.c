/* moe-agent's shell in virtual time: its link, its disk (spool entries, fence), and the node around
 * it, which may lose power. The agent may die between any two effects. */
#include "tests/sim/shell.h"
#include "agent/core/agent/motion.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/state/health.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

#define RELEASE_US (30 * S)
#define SEGMENT 16 /* notes of a bulky journal's segment */

struct simstep *step_of(const struct sim *s, int node, int64_t job, int64_t attempt)
{
	for (size_t i = s->n_steps; i > 0; i--) {
		struct simstep *st = s->steps[i - 1];

		if (st->node == node && st->job == job && st->attempt == attempt && st->spooled)
			return st;
	}
	return NULL;
}

int sim_node(const struct sim *s, const char *name)
{
	for (int n = 0; n < NODES; n++)
		if (mo_streq(s->nodes[n].name, name))
			return n;
	return 0;
}

void node_boot_name(const struct simnode *n, char buf[static 64])
{
	snprintf(buf, 64, "%s-boot-%lld", n->name, (long long)n->boot);
}

static void arm(struct sim *s, int node)
{
	struct simnode *n = &s->nodes[node];
	int64_t at = n->agent ? agent_core_deadline(n->agent) : INT64_MAX;

	if (at == INT64_MAX || (n->tick_at > s->now && n->tick_at <= at))
		return;
	n->tick_at = MO_MAX(at, s->now + 1);
	sim_at(s, n->tick_at, K_AGENT_TICK, node, n->instance, NULL, NULL);
}

/* One of eight nodes cannot: its agent is of before, or not root. */
static bool runs_images(const struct sim *s, int node)
{
	return ((uint64_t)node + s->seed) % 8 != 0;
}

static bool cut(const struct sim *s, int node)
{
	return s->nodes[node].cut_until > s->now;
}

static void send_message(struct sim *s, int node, struct message *m)
{
	int64_t delay = sim_between(s, 50, 3 * MS);

	m->node = node;
	m->request = ++s->ctl.request;
	m->instance = s->nodes[node].instance;
	if (m->kind == M_SYNC)
		s->nodes[node].sync_request = m->request;
	else if (m->kind == M_URGENT)
		s->nodes[node].urgent_request = m->request;
	else
		s->nodes[node].hello_request = m->request;
	sim_trace(s, "%s sends %s %lld", s->nodes[node].name,
		  m->kind == M_SYNC     ? "sync"
		  : m->kind == M_URGENT ? "news"
					: "hello",
		  (long long)m->request);
	if (cut(s, node) || sim_fault(s, F_LOSE_REQUEST, 0.004)) {
		sim_trouble(s, node);
		message_free(m);
		return;
	}
	if (sim_fault(s, F_DELAY, 0.01)) {
		delay = sim_between(s, 5 * MS, 9 * S);
		sim_trouble(s, node);
	}
	/* a copy arrives too, maybe much later; its answer goes nowhere */
	if (sim_fault(s, F_DUPLICATE, 0.005)) {
		struct message *copy = mo_alloc(sizeof(*copy));

		*copy = (struct message){ .kind = m->kind,
					  .node = node,
					  .request = ++s->ctl.request,
					  .instance = m->instance };
		copy->hello = mo_desc_dup(&agent_hello_desc, m->hello);
		copy->sync = mo_desc_dup(&agent_sync_desc, m->sync);
		sim_at(s, s->now + sim_between(s, MS, 15 * S), K_MESSAGE, 0, 0, copy, NULL);
	}
	sim_at(s, s->now + delay, K_MESSAGE, 0, 0, m, NULL);
}

static void hello(struct sim *s, int node)
{
	struct simnode *n = &s->nodes[node];
	struct message *m = mo_alloc(sizeof(*m));

	m->kind = M_HELLO;
	m->hello = mo_desc_new(&agent_hello_desc);
	agent_core_hello(n->agent, m->hello);
	m->hello->health = true;
	m->hello->address = mo_printf("10.0.0.%d", node);
	m->hello->info.images = runs_images(s, node);
	m->hello->info.image_root = m->hello->info.images;
	for (int64_t i = 0; i < GPUS; i++) {
		struct gpu_slot *g = MO_ADD(&m->hello->info, gpus, &gpu_slot_desc);

		g->index = i;
		g->vendor = mo_strdup("amd");
		g->model = mo_strdup("mi300x");
	}
	send_message(s, node, m);
}

static void add_health(struct sim *s, struct simnode *n, struct agent_sync *sync)
{
	size_t retained = 0;

	if (!n->health.preflight_done && n->looked_at <= s->now) {
		n->health.preflight_done = true;
		n->health.version++;
	}
	for (size_t i = 0; i < n->n_orders; i++) {
		if (n->orders[i].done_at > s->now) {
			n->orders[retained++] = n->orders[i];
			continue;
		}
		*MO_ADD(&n->health, checked, &checked_attempt_desc) =
			(struct checked_attempt){ n->orders[i].job, n->orders[i].attempt };
		n->health.version++;
	}
	n->n_orders = retained;
	if (n->health.version != n->health_acked)
		sync->health = mo_desc_dup(&node_health_desc, &n->health);
}

/* Orders to check: new ones are begun, those that are said no more are forgotten. */
static void take_orders(struct sim *s, struct simnode *n, const struct sync_reply *r)
{
	size_t retained = 0;

	n->health_acked = r->health;
	for (size_t i = 0; i < r->n_commands; i++) {
		const struct command *c = &r->commands[i];
		bool known = c->kind != CMD_CHECK || health_checked(&n->health, c->job, c->attempt);

		for (size_t k = 0; k < n->n_orders; k++)
			known |= n->orders[k].job == c->job && n->orders[k].attempt == c->attempt;
		if (!known)
			*MO_GROW(n->orders, n->n_orders) = (struct order){
				c->job, c->attempt,
				s->now + (sim_fault(s, F_CHECK_LATE, 0.2)
						  ? 100 * S
						  : sim_between(s, 50 * MS, 5 * S))
			};
	}
	if (n->health_acked != n->health.version)
		return;
	for (size_t i = 0; i < n->health.n_checked; i++) {
		bool repeated = false;

		for (size_t k = 0; k < r->n_commands; k++)
			repeated |= r->commands[k].kind == CMD_CHECK &&
				    r->commands[k].job == n->health.checked[i].job &&
				    r->commands[k].attempt == n->health.checked[i].attempt;
		if (repeated)
			n->health.checked[retained++] = n->health.checked[i];
	}
	n->health.version += n->health.n_checked != retained;
	n->health.n_checked = retained;
}

void node_finding(struct sim *s, int node, const char *check, int action)
{
	struct node_health *h = &s->nodes[node].health;
	struct check_result *r;

	if (health_find(h, check, "gpu0"))
		return;
	r = MO_ADD(h, results, &check_result_desc);
	r->check = mo_strdup(check);
	r->object = mo_strdup("gpu0");
	r->text = mo_strdup("broken");
	r->state = CHECK_CRIT;
	r->action = action;
	r->when = WHEN_PREFLIGHT | WHEN_PERIODIC | WHEN_FAILURE;
	h->version++;
}

void node_well(struct sim *s, int node)
{
	struct node_health *h = &s->nodes[node].health;

	if (h->n_results)
		h->version++;
	mo_vec_clear(&check_result_desc, (void **)&h->results, &h->n_results);
}

static void sync_message(struct sim *s, int node, bool urgent)
{
	struct message *m = mo_alloc(sizeof(*m));

	m->kind = urgent ? M_URGENT : M_SYNC;
	m->sync = mo_desc_new(&agent_sync_desc);
	m->sync->mono_ns = s->now * 1000;
	if (!urgent) {
		agent_core_sync(s->nodes[node].agent, m->sync);
	} else if (!agent_core_urgent(s->nodes[node].agent, m->sync)) {
		struct agent_event e = { .type = AE_NO_ANSWER, .ok = false };

		message_free(m);
		agent_later(s, node, 1, &e);
		return;
	}
	add_health(s, &s->nodes[node], m->sync);
	m->sync->leaving = s->nodes[node].leaving;
	m->sync->motion = true;
	send_message(s, node, m);
}

static void spool(struct sim *s, int node, const struct agent_effect *x)
{
	struct agent_event e = {
		.type = AE_SPOOL_DONE, .job = x->job, .attempt = x->attempt, .ok = true
	};
	struct simstep *st;

	if (sim_fault(s, F_SPOOL_FAILS, 0.01)) {
		sim_harm(s, x->job, x->attempt);
		e.ok = false;
		e.text = "no space left on device";
		agent_later(s, node, MS, &e);
		return;
	}
	if (step_of(s, node, x->job, x->attempt))
		sim_violation(s, "j-%lld attempt %lld is spooled twice on %s", (long long)x->job,
			      (long long)x->attempt, s->nodes[node].name);
	st = mo_alloc(sizeof(*st));
	st->node = node;
	st->job = x->job;
	st->attempt = x->attempt;
	st->boot = s->nodes[node].boot;
	mo_desc_init(&launch_desc, &st->launch);
	mo_desc_copy(&launch_desc, &st->launch, x->command->launch);
	if (st->launch.container && !runs_images(s, node))
		sim_violation(s, "j-%lld, which has an image, is given to %s, which cannot run it",
			      (long long)x->job, s->nodes[node].name);
	st->spooled = true;
	st->bulky = sim_chance(s, 0.3);
	*MO_GROW(s->steps, s->n_steps) = st;
	agent_later(s, node, sim_between(s, 100, 2 * MS), &e);
}

static void write_note(struct sim *s, int node, const struct agent_effect *x)
{
	struct simstep *st = step_of(s, node, x->job, x->attempt);
	struct agent_event e = { .type = AE_NOTE, .job = x->job, .attempt = x->attempt };
	struct note *n;

	if (!st)
		return;
	if (st->stepd)
		sim_violation(s,
			      "the agent writes into the journal of a living supervisor, j-%lld "
			      "attempt %lld on %s",
			      (long long)x->job, (long long)x->attempt, s->nodes[node].name);
	if (st->n_notes == 0 || st->notes[st->n_notes - 1].n < x->note->n) {
		n = mo_vec_add(&note_desc, (void **)&st->notes, &st->n_notes);
		mo_desc_copy(&note_desc, n, x->note);
		n->mono_ns = s->now * 1000;
		n->time = s->now;
	}
	e.note = x->note;
	agent_later(s, node, 100, &e);
}

static void scan(struct sim *s, int node, const struct agent_effect *x)
{
	struct agent_event e = { .type = AE_SCANNED };
	struct scan_result result;

	mo_desc_init(&scan_result_desc, &result);
	result.job = x->job;
	result.attempt = x->attempt;
	result.order = x->command->order;
	result.id = x->command->id;
	result.writable = true;
	if (sim_fault(s, F_SCAN_FAILS, 0.05))
		result.error = mo_strdup("the helper timed out");
	else
		train_scan(s, x->command, &result);
	e.scan = &result;
	agent_later(s, node, sim_between(s, MS, S), &e);
	mo_desc_done(&scan_result_desc, &result);
}

static void to_stepd(struct sim *s, int node, const struct agent_effect *x)
{
	struct simstep *st = step_of(s, node, x->job, x->attempt);
	struct stepd_event e;

	if (!st || !st->stepd)
		return;
	past_check_order(s, st);
	stepd_event_init(&e, x->type == AX_STOP ? SE_STOP : SE_KILL);
	e.signal = x->signal;
	e.grace_us = x->grace_us;
	stepd_later(s, st, 100, &e);
}

/* Segments of a journal go once the controller has all of them; never the first, nor the newest. */
static bool is_there(const struct simstep *st, size_t i)
{
	return i < SEGMENT || i >= st->trimmed;
}

static void trim(struct sim *s, int node)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		struct simstep *st = s->steps[i];
		int64_t through =
			st->node == node && st->bulky && st->spooled
				? agent_core_through(s->nodes[node].agent, st->job, st->attempt)
				: 0;

		while ((int64_t)st->trimmed + SEGMENT <= through &&
		       st->trimmed + SEGMENT < st->n_notes) {
			st->trimmed += SEGMENT;
			s->fault_counts[F_TRIMMED] += st->trimmed > SEGMENT;
		}
	}
}

static void reread(struct sim *s, const struct simstep *st)
{
	struct agent_event again = { .type = AE_REREAD, .job = st->job, .attempt = st->attempt };

	agent_later(s, st->node, 1, &again);
	for (size_t i = 0; i < st->n_notes; i++) {
		struct agent_event line = { .type = AE_NOTE,
					    .job = st->job,
					    .attempt = st->attempt,
					    .note = &st->notes[i] };

		if (is_there(st, i))
			agent_later(s, st->node, 1, &line);
	}
}

static void look(struct sim *s, int node, const struct agent_effect *x)
{
	struct agent_event e = { .type = AE_MOTION, .job = x->job, .attempt = x->attempt };
	struct attempt *a = sim_attempt(s, x->job, x->attempt);
	struct motion_reading *ranks =
		agent_core_ranks(s->nodes[node].agent, x->job, x->attempt, &e.n_readings);

	for (size_t i = 0; a && i < e.n_readings; i++)
		engine_motion(s, a, &ranks[i]);
	e.readings = ranks;
	agent_event(s, node, &e);
	free(ranks);
}

/* Drivers give GPUs back late, or never: an agent that began anew finds it as it was. */
static void release(struct sim *s, int node, const struct agent_effect *x)
{
	struct simstep *st = step_of(s, node, x->job, x->attempt);
	struct agent_event held = {
		.type = AE_HELD, .job = x->job, .attempt = x->attempt, .text = "GPU 0 is held"
	};
	struct agent_event e = { .type = AE_RELEASED, .job = x->job, .attempt = x->attempt };

	if (!st)
		return;
	if (!st->freed_at)
		st->freed_at = sim_fault(s, F_GPU_LATE, 0.05) ? s->now + sim_between(s, MS, 30 * S)
			       : sim_fault(s, F_GPU_HELD, 0.01) ? INT64_MAX
								: s->now;
	e.ok = st->freed_at <= s->now + RELEASE_US;
	if (st->freed_at > s->now)
		agent_event(s, node, &held);
	if (!e.ok) {
		sim_harm(s, x->job, x->attempt);
		e.text = "GPU 0 is not given back";
	}
	agent_later(s, node, e.ok ? MO_MAX(st->freed_at - s->now, 1) : RELEASE_US, &e);
}

static void start(struct sim *s, struct simstep *st)
{
	if (st->launch.n_gpus && (!st->freed_at || st->freed_at > s->now))
		sim_violation(s, "j-%lld attempt %lld starts on %s before its GPUs are given back",
			      (long long)st->job, (long long)st->attempt, s->nodes[st->node].name);
	stepd_start(s, st);
}

static void run_effect(struct sim *s, int node, const struct agent_effect *x)
{
	struct simstep *st = x->job > 0 ? step_of(s, node, x->job, x->attempt) : NULL;
	struct agent_event e = { .type = AE_SWEPT, .job = x->job, .attempt = x->attempt };

	switch (x->type) {
	case AX_FENCE: shell_fence(s, node, x); break;
	case AX_SPOOL: spool(s, node, x); break;
	case AX_RELEASE: release(s, node, x); break;
	case AX_START:
		if (st)
			start(s, st);
		break;
	case AX_STOP:
	case AX_KILL: to_stepd(s, node, x); break;
	case AX_SWEEP:
		if (st) {
			int64_t until = stepd_sweep(s, st);

			agent_later(s, node, until - s->now + sim_between(s, MS, 50 * MS), &e);
		}
		break;
	case AX_WRITE_NOTE: write_note(s, node, x); break;
	case AX_REREAD:
		if (st)
			reread(s, st);
		break;
	case AX_SCAN: scan(s, node, x); break;
	case AX_MOTION: look(s, node, x); break;
	case AX_FORGET:
		if (st)
			st->spooled = false;
		break;
	case AX_HELLO: hello(s, node); break;
	case AX_SYNC: sync_message(s, node, false); break;
	case AX_SEND_URGENT: sync_message(s, node, true); break;
	default: break;
	}
}

void agent_event(struct sim *s, int node, struct agent_event *e)
{
	struct simnode *n = &s->nodes[node];
	struct agent_out out = { 0 };
	int64_t instance = n->instance;

	if (!n->agent)
		return;
	agent_core_decide(n->agent, e, s->now, &out);
	for (size_t i = 0; i < out.n_effects; i++) {
		bool act = out.effects[i].type <= AX_SCAN || out.effects[i].type == AX_FORGET;

		if (act && sim_fault(s, F_AGENT_BETWEEN_EFFECTS, 0.004)) {
			agent_kill(s, node, sim_between(s, 50 * MS, 5 * S));
			break;
		}
		run_effect(s, node, &out.effects[i]);
		if (!n->agent || n->instance != instance)
			break;
	}
	agent_out_done(&out);
	arm(s, node);
}

void agent_event_free(struct agent_event *e)
{
	mo_desc_free(&note_desc, (void *)e->note);
	mo_desc_free(&scan_result_desc, (void *)e->scan);
	free((void *)e->progress);
	free(e);
}

void agent_later(struct sim *s, int node, int64_t delay, const struct agent_event *e)
{
	struct agent_event *copy = mo_alloc(sizeof(*copy));

	*copy = *e;
	copy->note = mo_desc_dup(&note_desc, e->note);
	copy->scan = mo_desc_dup(&scan_result_desc, e->scan);
	if (e->progress) {
		struct rank_progress *p = mo_alloc(sizeof(*p));

		*p = *e->progress;
		copy->progress = p;
	}
	sim_at(s, s->now + delay, K_AGENT_EVENT, node, s->nodes[node].instance, copy, NULL);
}

void agent_tick(struct sim *s, int node)
{
	struct agent_event e = { .type = AE_TICK };

	s->nodes[node].tick_at = 0;
	if (s->nodes[node].agent && agent_core_deadline(s->nodes[node].agent) <= s->now)
		agent_event(s, node, &e);
	else
		arm(s, node);
}

/* A step directory found at the start: the entry, then every line of its journal. */
static void read_spool(struct sim *s, int node, struct simstep *st)
{
	struct simnode *n = &s->nodes[node];
	struct agent_event e = { .type = AE_SPOOLED_STEP,
				 .job = st->job,
				 .attempt = st->attempt,
				 .launch = &st->launch };

	e.boot_same = st->boot == n->boot;
	e.lock_held = e.boot_same && st->stepd;
	agent_event(s, node, &e);
	for (size_t i = 0; e.boot_same && n->agent && i < st->n_notes; i++) {
		struct agent_event line = { .type = AE_NOTE,
					    .job = st->job,
					    .attempt = st->attempt,
					    .note = &st->notes[i] };

		if (is_there(st, i))
			agent_event(s, node, &line);
	}
	if (e.lock_held && st->hung) {
		sim_at(s, s->now + 5 * S, K_SILENT, st->instance, 0, st, NULL);
	} else if (e.lock_held) {
		struct agent_event up = { .type = AE_STEPD_UP,
					  .job = st->job,
					  .attempt = st->attempt };

		agent_later(s, node, MS, &up);
	}
}

void agent_up(struct sim *s, int node)
{
	struct simnode *n = &s->nodes[node];
	char boot[64], instance[64];
	struct agent_event e = { .type = AE_STARTED };
	int64_t born;

	if (!n->power || n->agent)
		return;
	n->instance++;
	born = n->instance;
	node_boot_name(n, boot);
	snprintf(instance, sizeof(instance), "%s-i%lld", n->name, (long long)n->instance);
	n->agent = agent_core_new(n->name, boot, instance);
	n->tick_at = 0;
	n->health.preflight_done = false; /* it probes again; what was found stays found */
	n->health.failure_checks = true;
	n->health.version = s->now;
	n->looked_at = s->now + sim_between(s, 0, 3 * S);
	n->n_orders = 0;
	n->sync_request = n->urgent_request = n->hello_request = 0;
	sim_trace(s, "%s: agent starts", n->name);
	shell_open(s, node);
	for (size_t i = 0; i < s->n_steps && n->agent && n->instance == born; i++)
		if (s->steps[i]->node == node && s->steps[i]->spooled)
			read_spool(s, node, s->steps[i]);
	if (n->agent && n->instance == born)
		agent_event(s, node, &e);
}

void agent_kill(struct sim *s, int node, int64_t down_us)
{
	struct simnode *n = &s->nodes[node];

	if (!n->agent)
		return;
	sim_trace(s, "%s: agent dies for %lld ms", n->name, (long long)(down_us / MS));
	n->agent = agent_core_free(n->agent);
	shell_close(n);
	sim_at(s, s->now + down_us, K_AGENT_UP, node, 0, NULL, NULL);
}

void node_answer(struct sim *s, struct answer *a)
{
	struct simnode *n = &s->nodes[a->node];
	int64_t *waits = a->kind == M_SYNC     ? &n->sync_request
			 : a->kind == M_URGENT ? &n->urgent_request
					       : &n->hello_request;
	struct agent_event e = { .type = AE_NO_ANSWER, .ok = a->kind != M_URGENT };

	sim_trace(s, "%s hears the answer to %lld%s%s", n->name, (long long)a->request,
		  a->failed ? ", a failure" : "", a->old ? ", again" : "");

	if (n->agent && a->old) {
		e = (struct agent_event){ .type = AE_REPLY, .ok = false, .reply = a->reply };
		agent_event(s, a->node, &e);
	} else if (n->agent && a->instance == n->instance && a->request == *waits &&
		   !cut(s, a->node)) {
		*waits = 0;
		if (a->welcome) {
			e.type = AE_WELCOME;
			e.welcome = a->welcome;
		} else if (a->reply) {
			e.type = AE_REPLY;
			e.ok = a->kind == M_SYNC;
			e.reply = a->reply;
		}
		if (a->reply && a->kind == M_SYNC)
			take_orders(s, n, a->reply);
		agent_event(s, a->node, &e);
		if (n->agent && a->reply)
			trim(s, a->node);
	}
	answer_free(a);
}

void node_boot(struct sim *s, int node)
{
	struct simnode *n = &s->nodes[node];

	if (n->power)
		return;
	n->power = true;
	n->leaving = false;
	n->boot++;
	mo_vec_clear(&checked_attempt_desc, (void **)&n->health.checked, &n->health.n_checked);
	sim_trace(s, "%s boots", n->name);
	sim_at(s, s->now + sim_between(s, 0, 2 * S), K_AGENT_UP, node, 0, NULL, NULL);
}

void node_lose(struct sim *s, int node, int64_t off_us)
{
	for (size_t i = 0; i < s->n_steps && s->nodes[node].power; i++)
		if (s->steps[i]->node == node && s->steps[i]->spooled &&
		    s->steps[i]->boot == s->nodes[node].boot)
			sim_harm(s, s->steps[i]->job, s->steps[i]->attempt);
	node_off(s, node, off_us);
}

void node_off(struct sim *s, int node, int64_t off_us)
{
	struct simnode *n = &s->nodes[node];
	bool runtime_on_disk = false;

	if (!n->power)
		return;
	sim_trace(s, "%s loses power", n->name);
	n->power = false;
	n->agent = agent_core_free(n->agent);
	shell_power_loss(s, node);
	for (size_t i = 0; i < s->n_steps; i++) {
		struct simstep *st = s->steps[i];

		if (st->node != node)
			continue;
		step_lost(s, st);
		if (!st->spooled)
			continue;
		if (sim_fault(s, F_OLD_SPOOL, 0.3))
			runtime_on_disk = true;
		st->spooled = runtime_on_disk;
	}
	if (off_us != INT64_MAX)
		sim_at(s, s->now + off_us, K_BOOT, node, 0, NULL, NULL);
}

void node_free(struct sim *s, int node)
{
	agent_core_free(s->nodes[node].agent);
	shell_free(&s->nodes[node]);
	free(s->nodes[node].orders);
	mo_desc_done(&node_health_desc, &s->nodes[node].health);
}
