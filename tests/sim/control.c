/* moed's shell in virtual time: messages become events; one turn = steps, one store of all records,
 * only then replies. It may die before the store, between store and replies, or between two
 * replies; then it starts again from what was stored. Store contents reach the shadow core record
 * by record: that core is the restarted controller. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#include "tests/signatures.h"

#define ANSWERED -1 /* node of a message whose answer left */

void message_free(struct message *m)
{
	if (m->hello)
		mo_desc_free(&agent_hello_desc, m->hello);
	if (m->sync)
		mo_desc_free(&agent_sync_desc, m->sync);
	free(m);
}

/* Those that stay are not answered any more. */
static void drop_inbox(struct sim *s)
{
	for (size_t i = 0; i < s->ctl.n_inbox; i++)
		if (s->ctl.inbox[i])
			message_free(s->ctl.inbox[i]);
	s->ctl.n_inbox = 0;
}

void answer_free(struct answer *a)
{
	mo_desc_free(&agent_welcome_desc, a->welcome);
	mo_desc_free(&sync_reply_desc, a->reply);
	free(a);
}

/* The answer travels back; it may be lost. */
static void answer(struct sim *s, struct answer *a)
{
	int64_t delay = sim_between(s, 50, 3 * MS);

	if (s->nodes[a->node].cut_until > s->now || sim_fault(s, F_LOSE_REPLY, 0.004)) {
		sim_trouble(s, a->node);
		answer_free(a);
		return;
	}
	/* repetition is harmless, says the protocol */
	if (a->reply && a->reply->n_commands && sim_fault(s, F_OLD_REPLY, 0.02)) {
		struct answer *copy = mo_alloc(sizeof(*copy));

		*copy = (struct answer){ .kind = a->kind,
					 .node = a->node,
					 .old = true,
					 .reply = mo_desc_dup(&sync_reply_desc, a->reply) };
		sim_at(s, s->now + sim_between(s, MS, 40 * S), K_ANSWER, a->node, 0, copy, NULL);
	}
	sim_at(s, s->now + delay, K_ANSWER, a->node, 0, a, NULL);
}

static struct answer *answer_new(const struct message *m, bool failed)
{
	struct answer *a = mo_alloc(sizeof(*a));

	a->kind = m->kind;
	a->node = m->node;
	a->request = m->request;
	a->instance = m->instance;
	a->failed = failed;
	return a;
}

static void schedule_turn(struct sim *s, int64_t at)
{
	if (s->ctl.turn_due)
		return;
	s->ctl.turn_due = true;
	sim_at(s, MO_MAX(at, s->ctl.paused_until), K_TURN, s->ctl.instance, 0, NULL, NULL);
}

/* The controller's end of the connection is gone: people try again; agents learn of it at once
 * (reset or refused), or never when the machine is dead. */
static void broken(struct sim *s, const struct message *m)
{
	if (m->kind == M_USER)
		sim_at(s, s->now + S, K_RETRY, 0, 0, m->op, NULL);
	else if (s->ctl.dark)
		sim_trouble(s, m->node);
	else
		answer(s, answer_new(m, true));
}

void control_message(struct sim *s, struct message *m)
{
	if (!s->ctl.up) {
		broken(s, m);
		message_free(m);
		return;
	}
	*MO_GROW(s->ctl.inbox, s->ctl.n_inbox) = m;
	schedule_turn(s, s->now + 100);
}

static void arm_timer(struct sim *s)
{
	int64_t at = core_deadline(s->ctl.core);

	if (at != INT64_MAX)
		at -= s->ctl.skew;
	if (at == INT64_MAX || (s->ctl.timer_at <= at && s->ctl.timer_at > s->now))
		return;
	s->ctl.timer_at = MO_MAX(at, s->now + 1);
	sim_at(s, s->ctl.timer_at, K_TIMER, s->ctl.instance, 0, NULL, NULL);
}

void control_start(struct sim *s)
{
	struct state copy;
	bool other_machine = s->ctl.dark || !s->ctl.shadow;

	if (s->ctl.up)
		return;
	if (!s->ctl.shadow)
		s->ctl.shadow = sim_core(s);
	past_restore(s);
	s->ctl.core = sim_core(s);
	core_signatures(s->ctl.core, test_signatures());
	mo_desc_init(&state_desc, &copy);
	mo_desc_copy(&state_desc, &copy, core_state(s->ctl.shadow));
	core_load(s->ctl.core, &copy);
	mo_desc_done(&state_desc, &copy);
	s->ctl.up = true;
	s->ctl.dark = false;
	s->ctl.up_since = s->now;
	wall_start(s, other_machine);
	s->ctl.instance++;
	s->ctl.turn_due = false;
	s->ctl.timer_at = 0;
	memset(s->ctl.held, 0, sizeof(s->ctl.held));
	sim_trace(s, "controller starts");
	check_promises(s);
	*MO_GROW(s->ctl.inbox, s->ctl.n_inbox) = NULL; /* NULL = IN_START */
	schedule_turn(s, s->now);
}

/* inbox: of the turn in which it dies. */
static void die(struct sim *s, int64_t down_us, struct message **inbox, size_t n)
{
	sim_trace(s, "controller dies for %lld ms", (long long)(down_us / MS));
	s->ctl.dark = sim_fault(s, F_CONTROLLER_HOST, 0.15);
	check_equal(s);
	s->ctl.up = false;
	core_free(s->ctl.core);
	s->ctl.core = NULL;
	for (size_t i = 0; i < n; i++)
		if (inbox[i] && inbox[i]->node != ANSWERED)
			broken(s, inbox[i]);
	for (size_t i = 0; i < s->ctl.n_inbox; i++)
		if (s->ctl.inbox[i])
			broken(s, s->ctl.inbox[i]);
	drop_inbox(s);
	for (int k = 0; k < NODES; k++)
		if (s->ctl.held[k])
			broken(s, &(struct message){ .kind = M_SYNC,
						     .node = k,
						     .request = s->ctl.held[k],
						     .instance = s->nodes[k].instance });
	sim_at(s, s->now + down_us, K_CONTROLLER_UP, 0, 0, NULL, NULL);
}

void control_crash(struct sim *s, int64_t down_us)
{
	if (s->ctl.up)
		die(s, down_us, NULL, 0);
}

static void reply_sync(struct sim *s, const struct message *m)
{
	struct answer *a = answer_new(m, false);

	a->reply = mo_desc_new(&sync_reply_desc);
	core_sync_reply(s->ctl.core, s->nodes[m->node].name, a->reply);
	if (m->kind == M_URGENT)
		mo_vec_clear(&command_desc, (void **)&a->reply->commands, &a->reply->n_commands);
	answer(s, a);
}

static void answer_held(struct sim *s, int node)
{
	struct message m = { .kind = M_SYNC,
			     .node = node,
			     .request = s->ctl.held[node],
			     .instance = s->nodes[node].instance };

	if (!s->ctl.held[node])
		return;
	s->ctl.held[node] = 0;
	reply_sync(s, &m);
}

void control_beat(struct sim *s, int node, int64_t request)
{
	if (s->ctl.up && s->ctl.held[node] == request && s->ctl.paused_until <= s->now)
		answer_held(s, node);
	else if (s->ctl.up && s->ctl.held[node] == request)
		sim_at(s, s->ctl.paused_until, K_BEAT, node, request, NULL, NULL);
}

static int node_index(const char *name)
{
	int64_t v = 0;

	for (const char *p = name + 1; *p; p++)
		v = v * 10 + (*p - '0');
	return (int)v;
}

static void op_input(struct sim *s, const struct op *op, struct core_input *in);

static void hold(struct sim *s, const struct message *m)
{
	answer_held(s, m->node); /* one per node */
	s->ctl.held[m->node] = m->request;
	sim_at(s, s->now + core_config_default.beat_us, K_BEAT, m->node, m->request, NULL, NULL);
}

static void step_message(struct sim *s, struct message *m, struct core_out *out)
{
	struct core_input in;

	core_input_init(&in, m->kind == M_HELLO  ? IN_HELLO
			     : m->kind == M_SYNC ? IN_SYNC
						 : IN_URGENT);
	in.request = m->request;
	switch (m->kind) {
	case M_HELLO:
		in.hello = mo_desc_new(&in_hello_desc);
		in.hello->message = TAKE_PTR(m->hello);
		break;
	case M_SYNC:
	case M_URGENT:
		in.sync = mo_desc_new(&in_sync_desc);
		in.sync->message = TAKE_PTR(m->sync);
		break;
	default: op_input(s, m->op, &in); break;
	}
	core_decide(s->ctl.core, &in, wall_core(s), out);
	m->hello = in.hello ? TAKE_PTR(in.hello->message) : NULL;
	m->sync = in.sync ? TAKE_PTR(in.sync->message) : NULL;
	mo_desc_done(&core_input_desc, &in);
}

/* What changed since a user went back behind it may be the work of an attempt that was not heard to
 * its end: a controller that takes it for that may resume from it, whoever repairs it. */
static void written_unheard(struct sim *s, int64_t job)
{
	const struct job *j = job_find(core_state(s->ctl.shadow), job);
	struct truth *t = sim_job(s, job);

	for (size_t i = 0; j && j->unheard && i < t->n_files; i++) {
		const struct checkpoint *c = checkpoint_find(j, t->files[i].iteration);

		t->files[i].given_up &= !c || c->state == CKPT_SUPERSEDED;
	}
}

/* A node that has just lost its power, and is not silent for long enough, is given ranks. */
static void placed_on_lost(struct sim *s, const struct record *r)
{
	for (size_t i = 0; i < r->place->n_places; i++)
		if (!s->nodes[sim_node(s, r->place->places[i].node)].power)
			sim_harm(s, r->job, r->attempt);
}

static void store(struct sim *s, const struct core_out *out)
{
	for (size_t i = 0; i < out->n_records; i++) {
		const struct record *r = &out->records[i];
		const struct job *j =
			r->type == REC_JOB ? job_find(core_state(s->ctl.shadow), r->job) : NULL;

		if (j && j->state != r->transition->state)
			s->move_counts[j->state * _JOB_STATE_N + r->transition->state]++;
		check_health(s, r);
		check_history(s, r);
		if (r->type == REC_PLACE)
			sim_job(s, r->job)->unheard =
				job_find(core_state(s->ctl.shadow), r->job)->unheard;
		if (core_update(s->ctl.shadow, r) != 0)
			sim_violation(s, "a stored record of type %s is refused at replay",
				      record_type_names[r->type]);
		if (r->type == REC_SCAN)
			written_unheard(s, r->job);
		if (r->type == REC_PLACE)
			placed_on_lost(s, r);
		wall_check(s, r);
	}
}

static struct message *message_of(struct message **inbox, size_t n, int64_t request)
{
	for (size_t i = 0; i < n; i++)
		if (inbox[i] && inbox[i]->request == request)
			return inbox[i];
	return NULL;
}

/* One effect leaves. */
static void effect(struct sim *s, const struct effect *fx, struct message **inbox, size_t n)
{
	struct message *m = fx->request ? message_of(inbox, n, fx->request) : NULL;
	struct answer *a;

	switch (fx->type) {
	case FX_REPLY:
		if (!m)
			return;
		if (m->kind == M_USER) {
			if (sim_fault(s, F_LOSE_REPLY, 0.02))
				sim_at(s, s->now + 2 * S, K_RETRY, 0, 0, m->op, NULL);
			else
				user_answer(s, m->op, (int)fx->reply->status, fx->job);
		} else {
			answer(s, answer_new(m, true));
		}
		m->node = ANSWERED;
		break;
	case FX_WELCOME:
		a = answer_new(m, false);
		a->welcome = mo_desc_dup(&agent_welcome_desc, fx->welcome);
		answer(s, a);
		m->node = ANSWERED;
		break;
	case FX_ACK:
		reply_sync(s, m);
		m->node = ANSWERED;
		break;
	case FX_HOLD:
		hold(s, m);
		m->node = ANSWERED;
		break;
	case FX_WAKE: answer_held(s, node_index(fx->node)); break;
	default: break;
	}
}

static void free_inbox(struct message **inbox, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (inbox[i])
			message_free(inbox[i]);
	free(inbox);
}

void control_turn(struct sim *s)
{
	struct message **inbox = TAKE_PTR(s->ctl.inbox);
	size_t n = s->ctl.n_inbox;
	struct core_out out = { 0 };
	int64_t down = sim_between(s, 50 * MS, 12 * S);
	bool died = false;

	s->ctl.n_inbox = 0;
	s->ctl.turn_due = false;
	s->n_turns++;
	wall_step(s, &out);
	if (s->ctl.paused_at && s->now - s->ctl.paused_at > 500 * MS)
		core_decide(s->ctl.core,
			    &(struct core_input){
				    .type = IN_LATE,
				    .late = &(struct in_late){ s->now - s->ctl.paused_at } },
			    wall_core(s), &out);
	s->ctl.paused_at = 0;
	for (size_t i = 0; i < n; i++) {
		if (inbox[i])
			step_message(s, inbox[i], &out);
		else
			core_decide(s->ctl.core, &(struct core_input){ .type = IN_START },
				    wall_core(s), &out);
	}
	/* deadlines only after all input was read */
	if (core_deadline(s->ctl.core) <= wall_core(s))
		core_decide(s->ctl.core, &(struct core_input){ .type = IN_TICK }, wall_core(s),
			    &out);
	if (out.n_records && sim_fault(s, F_CRASH_BEFORE_STORE, 0.0006)) {
		/* nothing of this turn ever happened: the stored state is older than the core's */
		core_free(s->ctl.core);
		s->ctl.core = sim_core(s);
		core_signatures(s->ctl.core, test_signatures());
		struct state copy;
		mo_desc_init(&state_desc, &copy);
		mo_desc_copy(&state_desc, &copy, core_state(s->ctl.shadow));
		core_load(s->ctl.core, &copy);
		mo_desc_done(&state_desc, &copy);
		died = true;
	} else {
		store(s, &out);
		check_records(s, &out);
		died = out.n_records && sim_fault(s, F_CRASH_BEFORE_REPLY, 0.0006);
	}
	for (size_t i = 0; !died && i < out.n_effects; i++) {
		effect(s, &out.effects[i], inbox, n);
		died = out.n_records && sim_fault(s, F_CRASH_BETWEEN_REPLIES, 0.0003);
	}
	if (died)
		die(s, down, inbox, n);
	else
		arm_timer(s);
	core_out_done(&out);
	free_inbox(inbox, n);
}

void control_timer(struct sim *s)
{
	s->ctl.timer_at = 0;
	if (s->ctl.up && core_deadline(s->ctl.core) <= wall_core(s))
		schedule_turn(s, s->now);
	else if (s->ctl.up)
		arm_timer(s);
}

void control_pulse(struct sim *s)
{
	if (s->ctl.up && s->ctl.paused_until <= s->now && wall_pulse(s))
		schedule_turn(s, s->now);
}

void control_free(struct sim *s)
{
	free(s->ctl.clock_text);
	drop_inbox(s);
	free(s->ctl.inbox);
	core_free(s->ctl.core);
	core_free(s->ctl.shadow);
}

/* ---- what people ask for, as the REST shell hands it in ---- */

static void recipe_of(struct sim *s, const struct op *op, struct submit *spec)
{
	/* the same body at every retry */
	uint64_t h = ((uint64_t)op->key + 1) * 0x9e3779b97f4a7c15u ^ s->seed;
	static const int64_t sizes[] = { 1, 2, 3, 4, 4, 8, 8, 12, 16, 24, 32, 48 };

	h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9u;
	spec->user = mo_strdup(op->key % 3 ? "ann" : "bob");
	spec->idempotency_key = mo_printf("k%lld", (long long)op->key);
	spec->digest = mo_printf("d%lld", (long long)op->key);
	spec->recipe.name = mo_printf("job-%lld", (long long)op->key);
	spec->recipe.gpus = op->key % 40 == 39 ? NODES * GPUS + 1 : sizes[h % ELEMENTSOF(sizes)];
	spec->recipe.priority = (int64_t)(h >> 8) % 100;
	spec->recipe.stop_signal = 15;
	spec->recipe.stop_grace_us = (int64_t)(1 + (h >> 16) % 10) * S;
	spec->recipe.max_cycles = 3;
	spec->recipe.hang = mo_strdup("auto");
	spec->recipe.grace_us = h >> 24 & 7 ? 0 : 3 * S;
	/* 5: there is none */
	spec->recipe.checkpoint.resume = (h >> 28 & 15) == 1 ? -2 : (h >> 28 & 15) == 2 ? 5 : -1;
	mo_str_set(&spec->recipe.checkpoint.verify, (h >> 56 & 3) == 1 ? "crc" : NULL);
	spec->recipe.checkpoint.keep = (h >> 58 & 3) == 1 ? KEEP : 0;
	spec->recipe.time_limit_us = (h >> 44 & 15) == 3 ? 60 * S : MO_NONE;
	if ((h >> 60 & 7) < 2)
		mo_strs_add(&spec->recipe.preflight, &spec->recipe.n_preflight,
			    (h >> 60 & 7) == 0 ? "none" : "gpu.ras_ue");
	spec->recipe.parallelism.tp = (h >> 48 & 3) == 1 ? 2 : 1;
	if (h >> 32 & 3)
		/* some name another job's */
		spec->recipe.checkpoint.dir =
			mo_printf(op->key % 9 == 8 ? "/ckpt//%lld/" : "/ckpt/%lld",
				  (long long)(op->key % 9 == 8 ? op->key / 18 : op->key));
	if (op->key % 4 == 2) {
		spec->recipe.engine.container = mo_desc_new(&recipe_container_desc);
		spec->recipe.engine.container->image = mo_strdup("dir:/images/train");
	}
	if (h >> 36 & 7)
		spec->recipe.steps = (int64_t)(20 + (h >> 40) % 60);
	spec->engine.kind = mo_strdup("torch");
	mo_strs_add(&spec->engine.layout.markers, &spec->engine.layout.n_markers, "COMPLETE");
	spec->engine.layout.announced_is_complete = op->key % 3 == 2;
	spec->engine.metrics_rank = (int)((h >> 52) % 2);
	mo_strs_add(&spec->argv, &spec->n_argv, "/bin/train");
	if (op->key % 3 == 1) {
		struct env_item *item = MO_ADD(spec, env, &env_item_desc);

		item->name = mo_strdup("API_KEY");
		item->file = mo_strdup("/home/ann/key");
		item->layer = ENV_RECIPE;
	}
}

static void op_input(struct sim *s, const struct op *op, struct core_input *in)
{
	const char *node = op->node >= 0 ? s->nodes[op->node].name : NULL;

	in->type = op->type;
	in->by.user = mo_strdup("op");
	in->by.may_all = true;
	switch (op->type) {
	case IN_SUBMIT:
		in->submit = mo_desc_new(&submit_desc);
		recipe_of(s, op, in->submit);
		break;
	case IN_CANCEL:
		in->cancel = mo_desc_new(&in_cancel_desc);
		*in->cancel = (struct in_cancel){ .job = op->job, .now = op->flag };
		break;
	case IN_PAUSE:
		in->pause = mo_desc_new(&in_pause_desc);
		in->pause->job = op->job;
		break;
	case IN_RESUME:
		in->resume = mo_desc_new(&in_resume_desc);
		in->resume->job = op->job;
		break;
	case IN_RESTART:
		in->restart = mo_desc_new(&in_restart_desc);
		*in->restart = (struct in_restart){ .job = op->job, .from_iteration = op->value };
		break;
	case IN_DRAIN:
		in->drain = mo_desc_new(&in_drain_desc);
		*in->drain = (struct in_drain){ .node = mo_strdup(node),
						.reason = mo_strdup("maintenance"),
						.when = mo_strdup(op->when) };
		break;
	case IN_UNDRAIN:
		in->undrain = mo_desc_new(&in_undrain_desc);
		in->undrain->node = mo_strdup(node);
		break;
	case IN_FENCE:
		in->fence = mo_desc_new(&in_fence_desc);
		*in->fence = (struct in_fence){ .node = mo_strdup(node),
						.boot_seen = mo_strdup(op->boot) };
		break;
	default:
		in->resolve = mo_desc_new(&in_resolve_desc);
		*in->resolve = (struct in_resolve){ .job = op->job,
						    .attempt = op->value,
						    .how = mo_strdup(op->when),
						    .node = mo_strdup(node) };
	}
}
