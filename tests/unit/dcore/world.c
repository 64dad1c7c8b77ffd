/* A controller core with toy agents in virtual time: every step is replayed into a second core, which must become equal. Shared by the tests of this room. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/refusal.h"
#include "lib/wire/json.h"

/* Through JSON, as the store does. */
static void feed_shadow(struct world *w, const struct record *r)
{
	struct mo_buf b = { 0 };
	struct mo_error err = { 0 };
	struct record back;

	wire_encode(&record_desc, r, &b);
	mo_desc_init(&record_desc, &back);
	if (wire_decode(&record_desc, b.data, b.len, false, &back, &err) != 0)
		fail_msg("record does not read back: %s: %s", err.text, b.data);
	if (core_update(w->shadow, &back) != 0)
		fail_msg("record refused at replay: %s", b.data);
	mo_desc_done(&record_desc, &back);
	mo_buf_done(&b);
}

static void check_equal(struct world *w)
{
	struct state a, b;
	char *diff;

	mo_desc_init(&state_desc, &a);
	mo_desc_init(&state_desc, &b);
	mo_desc_copy(&state_desc, &a, core_state(w->core));
	mo_desc_copy(&state_desc, &b, core_state(w->shadow));
	state_strip_volatile(&a);
	state_strip_volatile(&b);
	diff = mo_desc_diff(&state_desc, &a, &b);
	if (diff)
		fail_msg("replay differs at %s", diff);
	mo_desc_done(&state_desc, &a);
	mo_desc_done(&state_desc, &b);
}

static void check_ledger(const struct job *j)
{
	int64_t sum = 0;

	for (size_t i = 0; i < j->n_ledger; i++) {
		assert_true(j->ledger[i] >= 0);
		sum += j->ledger[i];
	}
	assert_int_equal(sum, job_gpus(j) * (j->ledger_at - j->created_at));
}

/* What placement would refuse is what every view says, with what ends it. */
static void check_refusals(const struct state *s)
{
	struct slots slots;

	slots_init(s, &slots);
	for (size_t i = 0; i < s->n_nodes; i++) {
		_cleanup_(refusal_done) struct refusal r = { 0 };
		bool refuses = node_refuses(s, &s->nodes[i], &r);

		if (refuses == (slots.usable[i] && slots.well[i]))
			fail_msg("node %s: placement and views disagree: %s", s->nodes[i].name, refuses ? r.text : "it takes work");
		assert_true(!refuses || (r.text && r.next));
	}
	slots_done(&slots);
}

static void check_gpus(const struct state *s)
{
	for (size_t n = 0; n < s->n_nodes; n++) {
		bool used[64] = { false };

		for (size_t i = 0; i < s->n_jobs; i++)
			for (size_t k = 0; k < s->jobs[i].n_places; k++)
				for (size_t g = 0; mo_streq(s->jobs[i].places[k].node, s->nodes[n].name) && g < s->jobs[i].places[k].n_gpus; g++) {
					assert_false(used[s->jobs[i].places[k].gpus[g]]);
					used[s->jobs[i].places[k].gpus[g]] = true;
				}
	}
}

void world_step(struct world *w, const struct core_event *e)
{
	struct core_event ev = *e;

	core_out_done(&w->out);
	ev.request = 1;
	w->reply_status = 0;
	free(w->reply_text);
	w->reply_text = NULL;
	core_step(w->core, &ev, w->now, &w->out);
	for (size_t i = 0; i < w->out.n_records; i++)
		feed_shadow(w, &w->out.records[i]);
	w->n_records += (int64_t)w->out.n_records;
	for (size_t i = 0; i < w->out.n_effects; i++)
		if (w->out.effects[i].type == FX_REPLY) {
			w->reply_status = w->out.effects[i].status;
			w->reply_job = w->out.effects[i].job;
			free(w->reply_text);
			w->reply_text = mo_strdup(w->out.effects[i].text);
		}
	check_equal(w);
	for (size_t i = 0; i < core_state(w->core)->n_jobs; i++)
		check_ledger(&core_state(w->core)->jobs[i]);
	check_gpus(core_state(w->core));
	check_refusals(core_state(w->core));
}

static void event(struct world *w, int type)
{
	world_step(w, &(struct core_event){ .type = type });
}

void world_tick(struct world *w, int64_t us)
{
	int64_t until = w->now + us;

	while (core_deadline(w->core) <= until) {
		w->now = MO_MAX(w->now, core_deadline(w->core));
		event(w, EV_TICK);
	}
	w->now = until;
}

static struct toy_step *find_step(struct toy *t, int64_t job, int64_t attempt)
{
	for (size_t i = 0; i < t->n_steps; i++)
		if (t->steps[i].job == job && (attempt == 0 || t->steps[i].attempt == attempt))
			return &t->steps[i];
	return NULL;
}

static struct note *step_note(struct toy_step *s, int kind)
{
	struct note *n = mo_vec_add(&note_desc, (void **)&s->notes, &s->n_notes);

	n->n = ++s->written;
	n->kind = kind;
	n->code = kind == NOTE_EXIT ? 0 : MO_NONE;
	n->mono_ns = s->written * 1000;
	return n;
}

static void toy_launch(struct world *w, struct toy *t, const struct command *c)
{
	struct toy_step *s;

	if (find_step(t, c->job, c->attempt) || w->no_launch)
		return;
	s = MO_GROW(t->steps, t->n_steps);
	*s = (struct toy_step){ .job = c->job, .attempt = c->attempt, .first_rank = c->launch->first_rank, .n_ranks = c->launch->n_local, .resume = c->launch->resume };
	for (int64_t r = 0; r < s->n_ranks; r++) {
		struct note *n = step_note(s, NOTE_STARTED);

		n->rank = s->first_rank + r;
		n->pid = 1000 + n->rank;
	}
	step_note(s, NOTE_RUNNING);
}

static bool rank_exited(const struct toy_step *s, int64_t rank)
{
	for (size_t i = 0; i < s->n_notes; i++)
		if (s->notes[i].kind == NOTE_EXIT && s->notes[i].rank == rank)
			return true;
	return false;
}

static void toy_end(struct world *w, struct toy *t, const struct command *c)
{
	struct toy_step *s = find_step(t, c->job, c->attempt);

	if (w->no_kill || (s && (s->gone || s->hold)))
		return;
	if (!s) {
		s = MO_GROW(t->steps, t->n_steps);
		*s = (struct toy_step){ .job = c->job, .attempt = c->attempt };
		step_note(s, NOTE_REFUSED)->cause = mo_strdup("stale");
	}
	for (int64_t r = s->first_rank; r < s->first_rank + s->n_ranks; r++)
		if (!rank_exited(s, r)) {
			struct note *n = step_note(s, NOTE_EXIT);

			n->rank = r;
			n->code = c->kind == CMD_KILL ? MO_NONE : 143;
			n->signal = c->kind == CMD_KILL ? SIGKILL : MO_NONE;
			n->cause = mo_strdup(c->kind == CMD_KILL ? "killed" : "stopped");
		}
	step_note(s, NOTE_GONE)->text = mo_strdup("reaped");
	s->gone = true;
}

static void toy_forget(struct toy *t, int64_t job, int64_t attempt)
{
	struct toy_step *s = find_step(t, job, attempt);

	if (!s)
		return;
	mo_vec_clear(&note_desc, (void **)&s->notes, &s->n_notes);
	*s = t->steps[t->n_steps - 1];
	t->n_steps--;
}

void world_lose_spool(struct world *w, size_t toy)
{
	while (w->toys[toy].n_steps)
		toy_forget(&w->toys[toy], w->toys[toy].steps[0].job, w->toys[toy].steps[0].attempt);
}

static void fill_reports(const struct toy *t, bool notes, struct step_report **steps, size_t *n)
{
	for (size_t i = 0; i < t->n_steps; i++) {
		const struct toy_step *s = &t->steps[i];
		struct step_report *r = mo_vec_add(&step_report_desc, (void **)steps, n);

		r->job = s->job;
		r->attempt = s->attempt;
		r->written = s->written;
		r->state = s->gone ? STEP_GONE : STEP_RUNNING;
		for (size_t k = 0; notes && k < s->n_notes; k++)
			if (s->notes[k].n > s->through)
				mo_desc_copy(&note_desc, MO_ADD(r, notes, &note_desc), &s->notes[k]);
	}
}

/* An order that is repeated no more is forgotten, as the agent does. */
static void toy_forget_checks(struct toy *t, const struct sync_reply *r)
{
	for (size_t i = t->health ? t->health->n_checked : 0; i > 0; i--) {
		bool repeated = false;

		for (size_t k = 0; k < r->n_commands; k++)
			repeated |= r->commands[k].kind == CMD_CHECK && r->commands[k].job == t->health->checked[i - 1].job && r->commands[k].attempt == t->health->checked[i - 1].attempt;
		if (repeated || t->health_acked != t->health->version)
			continue;
		mo_vec_remove(&checked_attempt_desc, t->health->checked, &t->health->n_checked, i - 1);
		t->health->version++;
	}
}

static void toy_check(struct world *w, struct toy *t, const struct command *c)
{
	struct checked_attempt *k;

	for (size_t i = 0; i < t->health->n_checked; i++)
		if (t->health->checked[i].job == c->job && t->health->checked[i].attempt == c->attempt)
			return;
	if (w->no_check)
		return;
	k = MO_ADD(t->health, checked, &checked_attempt_desc);
	k->job = c->job;
	k->attempt = c->attempt;
	t->health->version++;
}

/* As moe-ckpt: one checkpoint after its save, else all; what was verified is compared by its manifest. */
static void toy_scan(struct world *w, size_t toy, const struct command *c, struct scan_result *ret)
{
	mo_desc_copy(&scan_result_desc, ret, &w->scan);
	ret->job = c->job;
	ret->attempt = c->attempt;
	for (size_t i = ret->n_items; i > 0; i--) {
		struct found_checkpoint *f = &ret->items[i - 1];
		bool known = false;

		if (c->only != MO_NONE && f->iteration != c->only) {
			mo_vec_remove(&found_checkpoint_desc, ret->items, &ret->n_items, i - 1);
			continue;
		}
		for (size_t k = 0; k < c->n_known; k++)
			if (c->known[k].iteration == f->iteration) {
				known = true;
				f->complete &= mo_streq(c->known[k].manifest, f->manifest);
			}
		if (known && !f->complete)
			mo_str_set(&f->reason, "a file changed since it was verified");
		if (f->complete && !known && f->manifest)
			mo_str_set(&f->level, c->level);
	}
	if (c->only == MO_NONE)
		return;
	assert_in_range(w->n_verified, 0, (int64_t)ELEMENTSOF(w->verified) - 1);
	w->verified[w->n_verified].toy = toy;
	w->verified[w->n_verified].part = c->part;
	w->verified[w->n_verified++].parts = c->parts;
}

static void obey(struct world *w, struct toy *t, struct agent_sync *sync, const struct sync_reply *r)
{
	t->health_acked = r->health;
	toy_forget_checks(t, r);
	for (size_t i = 0; i < r->n_acks; i++) {
		struct toy_step *s = find_step(t, r->acks[i].job, r->acks[i].attempt);

		if (s)
			s->through = r->acks[i].through;
	}
	for (size_t i = 0; i < r->n_commands; i++) {
		const struct command *c = &r->commands[i];

		mo_desc_copy(&command_desc, mo_vec_add(&command_desc, (void **)&t->log, &t->n_log), c);
		assert_string_equal(c->node, t->name);
		switch (c->kind) {
		case CMD_LAUNCH: toy_launch(w, t, c); break;
		case CMD_STOP: case CMD_KILL: toy_end(w, t, c); break;
		case CMD_FORGET: toy_forget(t, c->job, c->attempt); break;
		case CMD_SCAN:
			if (w->no_scan && c->only == MO_NONE)
				break;
			for (size_t k = 0; k < c->n_prune && !w->prune_fails; k++)
				for (size_t m = w->scan.n_items; m > 0; m--)
					if (w->scan.items[m - 1].iteration == c->prune[k].iteration)
						mo_vec_remove(&found_checkpoint_desc, w->scan.items, &w->scan.n_items, m - 1);
			if (c->only == MO_NONE || w->verify)
				toy_scan(w, (size_t)(t - w->toys), c, MO_ADD(sync, scans, &scan_result_desc));
			break;
		case CMD_CHECK: toy_check(w, t, c); break;
		default: fail_msg("command kind %d", c->kind);
		}
	}
}

static void sync_head(const struct world *w, struct toy *t, struct agent_sync *sync)
{
	mo_desc_init(&agent_sync_desc, sync);
	sync->node = mo_strdup(t->name);
	sync->boot_id = mo_strdup(t->boot);
	sync->instance = mo_strdup(t->instance);
	sync->epoch = core_state(w->core)->epoch;
	sync->beat = ++t->beat;
}

void world_beat(struct world *w, size_t toy)
{
	struct toy *t = &w->toys[toy];
	struct scan_result *scans = NULL;
	size_t n_scans = 0;

	for (int round = 0; round < 2; round++) {   /* the second time with what the first answer brought about */
		struct agent_sync sync;
		struct sync_reply reply;

		sync_head(w, t, &sync);
		fill_reports(t, true, &sync.steps, &sync.n_steps);
		sync.scans = scans, sync.n_scans = n_scans;
		sync.leaving = t->leaving;
		if (t->health && t->health->version != t->health_acked)
			sync.health = mo_desc_dup(&node_health_desc, t->health);
		for (size_t i = 0; i < t->n_sensors; i++)
			*MO_ADD(&sync, sensors, &gpu_sensors_desc) = t->sensors[i];
		world_step(w, &(struct core_event){ .type = EV_SYNC, .sync = &sync, .flag = t->token_expired });
		mo_vec_clear(&scan_result_desc, (void **)&sync.scans, &sync.n_scans);
		if (w->reply_status == 409)
			world_hello(w, toy);
		mo_desc_init(&sync_reply_desc, &reply);
		if (w->reply_status == 0)
			core_sync_reply(w->core, t->name, &reply);
		obey(w, t, &sync, &reply);
		scans = sync.scans, n_scans = sync.n_scans;
		sync.scans = NULL, sync.n_scans = 0;
		mo_desc_done(&sync_reply_desc, &reply);
		mo_desc_done(&agent_sync_desc, &sync);
	}
	mo_vec_clear(&scan_result_desc, (void **)&scans, &n_scans);
}

void world_run(struct world *w, int64_t us)
{
	for (int64_t until = w->now + us; w->now < until;) {
		for (size_t i = 0; i < w->n_toys; i++)
			if (!w->toys[i].deaf)
				world_beat(w, i);
		world_tick(w, MO_MIN(S / 2, until - w->now));
	}
}

void world_hello(struct world *w, size_t toy)
{
	struct toy *t = &w->toys[toy];
	struct agent_hello h;

	mo_desc_init(&agent_hello_desc, &h);
	h.node = mo_strdup(t->name);
	h.boot_id = mo_strdup(t->boot);
	h.instance = mo_strdup(t->instance);
	h.protocol = MO_PROTOCOL;
	h.address = mo_printf("10.0.0.%zu", toy);
	for (int64_t i = 0; i < t->gpus; i++) {
		struct gpu_slot *g = MO_ADD(&h.info, gpus, &gpu_slot_desc);

		g->index = i;
		g->vendor = mo_strdup("amd");
		g->model = mo_strdup("mi300x");
	}
	h.health = t->health != NULL;
	fill_reports(t, false, &h.steps, &h.n_steps);
	world_step(w, &(struct core_event){ .type = EV_HELLO, .hello = &h, .flag = t->token_expired });
	mo_desc_done(&agent_hello_desc, &h);
}

void world_reboot(struct world *w, size_t toy)
{
	struct toy *t = &w->toys[toy];

	world_lose_spool(w, toy);
	snprintf(t->boot, sizeof(t->boot), "boot-%lld", (long long)w->now % 1000000007);
	snprintf(t->instance, sizeof(t->instance), "i-%lld", (long long)w->now % 1000000007);
	t->beat = 0;
	world_tick(w, core_config_default.suspect_us);
	world_hello(w, toy);
	assert_int_equal(w->reply_status, 0);
}

void world_crash(struct world *w)
{
	core_free(w->core);
	w->core = w->shadow;
	w->shadow = core_new(&core_config_default);
	struct state copy;
	mo_desc_init(&state_desc, &copy);
	mo_desc_copy(&state_desc, &copy, core_state(w->core));
	core_load(w->shadow, &copy);
	mo_desc_done(&state_desc, &copy);
	event(w, EV_START);
}

void world_init(struct world *w, size_t n_nodes, int64_t gpus)
{
	memset(w, 0, sizeof(*w));
	mo_desc_init(&scan_result_desc, &w->scan);
	w->scan.writable = true;
	w->core = core_new(&core_config_default);
	w->shadow = core_new(&core_config_default);
	w->now = 1000 * S;
	w->n_toys = n_nodes;
	event(w, EV_START);
	for (size_t i = 0; i < n_nodes; i++) {
		struct toy *t = &w->toys[i];

		snprintf(t->name, sizeof(t->name), "n%zu", i);
		snprintf(t->boot, sizeof(t->boot), "boot-n%zu", i);
		snprintf(t->instance, sizeof(t->instance), "i-n%zu", i);
		t->gpus = gpus;
		world_hello(w, i);
	}
}

void world_done(struct world *w)
{
	for (size_t i = 0; i < w->n_toys; i++) {
		world_lose_spool(w, i);
		free(w->toys[i].steps);
		mo_desc_free(&node_health_desc, w->toys[i].health);
		mo_vec_clear(&command_desc, (void **)&w->toys[i].log, &w->toys[i].n_log);
	}
	core_out_done(&w->out);
	core_free(w->core);
	core_free(w->shadow);
	mo_desc_done(&scan_result_desc, &w->scan);
	free(w->reply_text);
}

const struct job *world_job(const struct world *w, int64_t id)
{
	const struct job *j = job_find(core_state(w->core), id);

	assert_non_null(j);
	return j;
}

struct node *world_node(const struct world *w, size_t toy)
{
	return node_find(core_state(w->core), w->toys[toy].name);
}

void world_recipe(struct submit *ret, int64_t gpus)
{
	mo_desc_init(&submit_desc, ret);
	ret->user = mo_strdup("ann");
	ret->recipe.name = mo_strdup("job");
	ret->recipe.gpus = gpus;
	ret->recipe.priority = 50;
	ret->recipe.checkpoint.resume = -1;
	ret->recipe.checkpoint.keep = 0;
	ret->recipe.stop_signal = SIGTERM;
	ret->recipe.stop_grace_us = 120 * S;
	ret->recipe.max_cycles = 3;
	ret->recipe.grace_us = 0;
	ret->engine.kind = mo_strdup("torch");
	mo_strs_add(&ret->argv, &ret->n_argv, "/bin/train");
}

int64_t world_submit(struct world *w, const struct submit *spec)
{
	struct submit copy = *spec;

	world_step(w, &(struct core_event){ .type = EV_SUBMIT, .submit = &copy });
	return w->reply_status == 201 || w->reply_status == 200 ? w->reply_job : -w->reply_status;
}

int64_t world_submit_gpus(struct world *w, int64_t gpus)
{
	struct submit spec;
	int64_t id;

	world_recipe(&spec, gpus);
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	return id;
}

void world_verb(struct world *w, int type, int64_t job)
{
	world_step(w, &(struct core_event){ .type = type, .job = job, .value = MO_NONE, .user = "op", .may_all = true });
}

void world_node_verb(struct world *w, int type, size_t toy, const char *when)
{
	world_step(w, &(struct core_event){ .type = type, .node = w->toys[toy].name, .text = type == EV_DRAIN ? "maintenance" : type == EV_ACK ? when : NULL, .when = type == EV_ACK ? NULL : when, .user = "op", .may_all = true });
}

struct toy_step *world_toy_step(struct world *w, size_t toy, int64_t job)
{
	struct toy_step *newest = NULL;

	for (size_t i = 0; i < w->toys[toy].n_steps; i++)
		if (w->toys[toy].steps[i].job == job && (!newest || w->toys[toy].steps[i].attempt > newest->attempt))
			newest = &w->toys[toy].steps[i];
	return newest;
}

struct note *world_note(struct world *w, size_t toy, int64_t job, int kind)
{
	struct toy_step *s = world_toy_step(w, toy, job);

	assert_non_null(s);
	return step_note(s, kind);
}

void world_iteration(struct world *w, size_t toy, int64_t job, int64_t iteration)
{
	struct note *n = world_note(w, toy, job, NOTE_SAMPLE);

	n->rank = world_toy_step(w, toy, job)->first_rank;
	n->sample = mo_desc_new(&sample_desc);
	n->sample->iteration = iteration;
	n->sample->loss = 1.0 / (double)(iteration + 1);
}

void world_exit(struct world *w, size_t toy, int64_t job, int64_t rank, int64_t code, int64_t signal)
{
	struct note *n = world_note(w, toy, job, NOTE_EXIT);
	struct toy_step *s = world_toy_step(w, toy, job);
	bool all = true;

	n->rank = rank;
	n->code = signal ? MO_NONE : code;
	n->signal = signal ? signal : MO_NONE;
	n->cause = mo_strdup(signal ? "signalled" : "exited");
	mo_strs_add(&n->tail, &n->n_tail, "last words");
	for (int64_t r = s->first_rank; r < s->first_rank + s->n_ranks; r++)
		all &= rank_exited(s, r);
	if (all) {
		step_note(s, NOTE_GONE)->text = mo_strdup("reaped");
		s->gone = true;
	}
}

size_t world_count(const struct world *w, size_t toy, int kind)
{
	size_t n = 0;

	for (size_t i = 0; i < w->toys[toy].n_log; i++)
		n += w->toys[toy].log[i].kind == kind;
	return n;
}

bool world_event_seen(const struct world *w, const char *type)
{
	for (size_t i = 0; i < core_state(w->core)->n_events; i++)
		if (mo_streq(core_state(w->core)->events[i].type, type))
			return true;
	return false;
}

void world_found(struct world *w, int64_t iteration, bool complete)
{
	struct found_checkpoint *f = MO_ADD(&w->scan, items, &found_checkpoint_desc);

	f->iteration = iteration;
	f->path = mo_printf("/ckpt/%lld", (long long)iteration);
	f->bytes = 100;
	f->complete = complete;
	f->reason = complete ? NULL : mo_strdup("no COMPLETE file");
}
