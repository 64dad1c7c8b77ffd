/* See world.h. The toy agents are in toy.c, what must hold after every step in world_check.c. */
#include "tests/unit/dcore/world_inner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/state/incarnation.h"
#include "lib/model/orders.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"
#include "tests/signatures.h"

void *written_and_read(const struct mo_desc *d, const char *what, const void *obj)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	void *again = mo_desc_new(d);

	wire_encode(d, obj, &text);
	int r = wire_decode(d, text.data, text.len, true, again, &err);
	if (r == -E2BIG)
		mo_desc_copy(d, again, obj);
	else if (r < 0)
		fail_msg("%s: %s", what, err.text);
	_cleanup_(mo_freep) char *diff = mo_desc_diff(d, obj, again);
	if (diff)
		fail_msg("%s: as JSON it differs at %s", what, diff);
	return again;
}

void world_step(struct world *w, const struct core_input *in)
{
	struct core_input *again =
		written_and_read(&core_input_desc, core_input_type_names[in->type], in);

	core_out_done(&w->out);
	again->request = 1;
	w->reply_status = 0;
	free(w->reply_text);
	w->reply_text = NULL;
	core_turn(w->core, again, w->now, &w->out);
	mo_desc_free(&core_input_desc, again);
	w->n_records += (int64_t)w->out.n_records;
	for (size_t i = 0; w->log && i < w->out.n_records; i++)
		mo_desc_copy(&record_desc, MO_ADD(w->log, items, &record_desc), &w->out.records[i]);
	for (size_t i = 0; i < w->out.n_effects; i++)
		if (w->out.effects[i].type == FX_REPLY) {
			w->reply_status = (int)w->out.effects[i].reply->status;
			w->reply_job = w->out.effects[i].job;
			free(w->reply_text);
			w->reply_text = mo_strdup(w->out.effects[i].reply->text);
			w->reply_after_s = w->out.effects[i].reply->after_s;
		}
	for (size_t i = 0; i < w->out.n_effects; i++)
		w->n_powers += w->out.effects[i].type == FX_POWER;
	world_check(w);
}

static void event(struct world *w, int type)
{
	world_step(w, &(struct core_input){ .type = type });
}

void world_tick(struct world *w, int64_t us)
{
	int64_t until = w->now + us;

	while (core_deadline(w->core) <= until) {
		w->now = MO_MAX(w->now, core_deadline(w->core));
		event(w, IN_TICK);
	}
	w->now = until;
}

/* What an agent of before reads of it. */
static void forget_names(struct sync_reply *reply)
{
	orders_to_wire(reply);
	for (size_t i = 0; i < reply->n_commands; i++) {
		reply->commands[i].order = -1;
		reply->commands[i].id = MO_NONE;
	}
}

void world_beat(struct world *w, size_t toy)
{
	struct toy *t = &w->toys[toy];
	struct scan_result *scans = NULL;
	size_t n_scans = 0;

	/* The second time with what the first answer brought about. */
	for (int round = 0; round < 2; round++) {
		struct agent_sync sync;
		struct sync_reply reply;

		toy_sync(w, t, &sync);
		toy_reports(t, true, &sync.steps, &sync.n_steps);
		toy_tell_motion(w, t, &sync);
		sync.scans = scans, sync.n_scans = n_scans;
		if (w->old_agents)
			answers_from_wire(&sync);
		sync.leaving = t->leaving;
		if (t->health && t->health->version != t->health_acked)
			sync.health = mo_desc_dup(&node_health_desc, t->health);
		for (size_t i = 0; i < t->n_sensors; i++)
			*MO_ADD(&sync, sensors, &gpu_sensors_desc) = t->sensors[i];
		world_step(w, &(struct core_input){ .type = IN_SYNC,
						    .sync = &(struct in_sync){
							    .message = &sync,
							    .token_expired = t->token_expired } });
		mo_vec_clear(&scan_result_desc, (void **)&sync.scans, &sync.n_scans);
		if (w->reply_status == 409)
			world_hello(w, toy);
		mo_desc_init(&sync_reply_desc, &reply);
		if (w->reply_status == 0)
			core_sync_reply(w->core, t->name, &reply);
		if (w->old_agents)
			forget_names(&reply);
		toy_obey(w, t, &sync, &reply);
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
		g->bdf = t->addresses ? mo_printf("0000:9%lld:00.0", (long long)i) : NULL;
	}
	h.info.images = t->images;
	h.info.image_root = t->image_root;
	if (t->holds)
		mo_strs_add(&h.info.holders, &h.info.n_holders, t->holds);
	h.health = t->health != NULL;
	toy_reports(t, false, &h.steps, &h.n_steps);
	world_step(w, &(struct core_input){
			      .type = IN_HELLO,
			      .hello = &(struct in_hello){ .message = &h,
							   .token_expired = t->token_expired } });
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
	core_signatures(w->core, test_signatures());
	w->shadow = core_new(&core_config_default);
	struct state copy;
	mo_desc_init(&state_desc, &copy);
	mo_desc_copy(&state_desc, &copy, core_state(w->core));
	core_load(w->shadow, &copy);
	mo_desc_done(&state_desc, &copy);
	/* as the shell does it: what time it is, before anything is decided */
	world_step(w, &(struct core_input){ .type = IN_CLOCK,
					    .clock = &(struct in_clock){
						    .boot_id = (char *)"boot",
						    .boottime_us = w->now,
						    .synced = true,
					    } });
	event(w, IN_START);
}

void world_restored(struct world *w)
{
	struct record r;

	record_init(&r, REC_RESTORED);
	r.time = core_state(w->core)->time;
	r.restored->epoch = incarnation_epoch(core_state(w->core)->epoch, INCARNATION_ZERO_US);
	r.restored->from_backup = true;
	r.restored->backup_at = r.time;
	assert_int_equal(core_update(w->core, &r), 0);
	assert_int_equal(core_update(w->shadow, &r), 0);
	assert_int_equal(core_update(w->core, &r), -EINVAL); /* an epoch never falls */
	mo_desc_done(&record_desc, &r);
	world_crash(w);
}

void world_init(struct world *w, size_t n_nodes, int64_t gpus)
{
	memset(w, 0, sizeof(*w));
	mo_desc_init(&scan_result_desc, &w->scan);
	w->scan.writable = true;
	w->core = core_new(&core_config_default);
	core_signatures(w->core, test_signatures());
	w->shadow = core_new(&core_config_default);
	w->now = 1000 * S;
	w->n_toys = n_nodes;
	event(w, IN_START);
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
		mo_vec_clear(&image_report_desc, (void **)&w->toys[i].ordered,
			     &w->toys[i].n_ordered);
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
	return (struct node *)(uintptr_t)node_find(core_state(w->core), w->toys[toy].name);
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
	ret->recipe.grace_us = ret->recipe.backoff_us = 0;
	ret->engine.kind = mo_strdup("torch");
	mo_strs_add(&ret->argv, &ret->n_argv, "/bin/train");
}

int64_t world_submit(struct world *w, const struct submit *spec)
{
	world_step(w, &(struct core_input){ .type = IN_SUBMIT, .submit = (struct submit *)spec });
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

int64_t world_submit_running(struct world *w, int64_t gpus, int64_t iterations)
{
	int64_t id = world_submit_gpus(w, gpus);

	world_run(w, S);
	for (int64_t i = 1; i <= iterations; i++)
		world_iteration(w, 0, id, i);
	if (iterations)
		world_run(w, S);
	assert_int_equal(world_job(w, id)->state, JOB_RUNNING);
	return id;
}

void world_verb(struct world *w, int type, int64_t job)
{
	struct in_cancel cancel = { .job = job };
	struct in_pause pause = { job };
	struct in_resume resume = { job };
	struct in_restart restart = { .job = job, .from_iteration = MO_NONE };

	world_step(w, &(struct core_input){ .type = type,
					    .by = { .user = (char *)"op", .may_all = true },
					    .cancel = type == IN_CANCEL ? &cancel : NULL,
					    .pause = type == IN_PAUSE ? &pause : NULL,
					    .resume = type == IN_RESUME ? &resume : NULL,
					    .restart = type == IN_RESTART ? &restart : NULL });
}

void world_node_verb(struct world *w, int type, size_t toy, const char *when)
{
	char *node = w->toys[toy].name;
	struct in_drain drain = { node, (char *)"maintenance", (char *)when };
	struct in_undrain undrain = { node, mo_streq(when, "force") };
	struct in_ack ack = { .node = node, .check = (char *)when, .learned = !when };
	struct in_fence fence = { .node = node };

	world_step(w, &(struct core_input){ .type = type,
					    .by = { .user = (char *)"op", .may_all = true },
					    .drain = type == IN_DRAIN ? &drain : NULL,
					    .undrain = type == IN_UNDRAIN ? &undrain : NULL,
					    .ack = type == IN_ACK ? &ack : NULL,
					    .fence = type == IN_FENCE ? &fence : NULL });
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
