/* Messages of agents as bytes choose them -> core -> records -> text -> replay: no hello, sync or
 * note makes a record that cannot be read, that another core refuses, or that makes another state
 * of it; a snapshot at any time is that state, and what holds after every turn (update/check.h)
 * holds. With the low bit of the first byte set the rest is one message as text.
 * ROOMS: dcore plan wire model base */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/core.h"
#include "daemon/core/rules/intake.h"
#include "daemon/core/update/check.h"
#include "daemon/core/view/report.h"
#include "daemon/core/view/why_view.h"
#include "lib/model/limits.h"
#include "tests/core_inside.h"
#include "tests/shadow.h"
#include "daemon/core/view/why.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define NODES 3
#define OPS 25
#define START_US INT64_C(1795249850000000)

/* ---- bytes that choose; when they are used up, numbers that follow from them: a short input is a
 * whole story */
struct bytes {
	const uint8_t *data;
	size_t n;
	uint64_t seed;
};

static unsigned take(struct bytes *b, unsigned of)
{
	b->seed = b->seed * 6364136223846793005u + 1442695040888963407u + (b->n ? *b->data : 0);
	if (!b->n)
		return (unsigned)(b->seed >> 33) % of;
	b->n--;
	return *b->data++ % of;
}

static int64_t any_int(struct bytes *b)
{
	static const int64_t table[] = { 0,         1,
					 2,         3,
					 7,         100,
					 -1,        MO_NONE,
					 INT64_MAX, INT64_MIN + 1,
					 1LL << 53, 1LL << 60,
					 1LL << 31, -(1LL << 56),
					 131072,    255 };

	return take(b, 2) ? (int64_t)take(b, 4) : table[take(b, ELEMENTSOF(table))];
}

static double any_real(struct bytes *b)
{
	static const double table[] = { 1,         0,     -1,     100,    NAN,  INFINITY,
					-INFINITY, 1e308, -1e308, 5e-324, 1e15, MO_NONE_F };

	return table[take(b, ELEMENTSOF(table))];
}

static int64_t any_time(struct bytes *b)
{
	static const int64_t table[] = { MO_NONE,
					 START_US,
					 START_US + 1,
					 START_US - 5000000,
					 0,
					 INT64_C(-62135596800000000),
					 INT64_C(253402300799999999) };

	return table[take(b, ELEMENTSOF(table))];
}

/* caller frees */
static char *any_text(struct bytes *b)
{
	/* clang-format off */
	static const char *const table[] = {
		NULL, "", "word", "killed", "exited", "signalled", "oom", "port-busy", "stale",
		"bind", "/ckpt/100", "/ckpt/../x", "rel/7", "address already in use",
		"\"\\\n\t\x01\x7f", "\xe2\x82\xac", "RuntimeError: x", "crc", "marker",
	};
	/* clang-format on */
	unsigned which = take(b, ELEMENTSOF(table) + 1);
	char *big;

	if (which < ELEMENTSOF(table))
		return mo_strdup(table[which]);
	big = mo_alloc(10001);
	for (size_t i = 0; i + 3 < 10000; i += 3)
		memcpy(big + i, "\xe2\x82\xac", 3);
	return big;
}

/* Fills a described struct: each field absent, or as the bytes choose; lists of up to `most`. */
static void fill(struct bytes *b, const struct mo_desc *d, void *obj, unsigned most)
{
	for (size_t i = 0; i < d->n_fields; i++) {
		const struct mo_field *f = &d->fields[i];
		void *p = (char *)obj + f->offset;
		size_t *n = (void *)((char *)obj + f->count_offset);

		if (f->kind != MO_STRUCT && !take(b, 2))
			continue;
		switch (f->kind) {
		case MO_BOOL: *(bool *)p = take(b, 2); break;
		case MO_TRI: *(int8_t *)p = (int8_t)((int)take(b, 3) - 1); break;
		case MO_INT:
		case MO_ID: *(int64_t *)p = any_int(b); break;
		case MO_TIME: *(int64_t *)p = any_time(b); break;
		case MO_REAL: *(double *)p = any_real(b); break;
		case MO_STR:
			free(*(char **)p);
			*(char **)p = any_text(b);
			break;
		case MO_ENUM: *(int *)p = (int)take(b, (unsigned)f->n_names + 1) - 1; break;
		case MO_STRUCT: fill(b, f->sub, p, most); break;
		case MO_OPT:
			fill(b, f->sub,
			     *(void **)p ? *(void **)p : (*(void **)p = mo_desc_new(f->sub)), most);
			break;
		case MO_VEC:
			for (unsigned k = take(b, most + 1); k > 0; k--)
				fill(b, f->sub, mo_vec_append(f, obj), most);
			break;
		case MO_STRS:
			for (unsigned k = take(b, most + 1); k > 0; k--) {
				_cleanup_(mo_freep) char *s = any_text(b);
				mo_strs_add(p, n, s);
			}
			break;
		case MO_INTS:
			for (unsigned k = take(b, most + 1); k > 0; k--)
				mo_ints_add(p, n, any_int(b));
			break;
		case MO_REALS:
			for (unsigned k = take(b, most + 1); k > 0; k--)
				mo_reals_add(p, n, (double)any_int(b) / 3);
			break;
		case MO_RAWJSON: break;
		}
	}
}

/* ---- a core, and another one that only gets what was written */
struct world {
	struct core *core, *shadow;
	int64_t now, beat[NODES], n_notes;
	unsigned boot[NODES];
};

static void must(char *wrong)
{
	if (!wrong)
		return;
	fprintf(stderr, "%s\n", wrong);
	abort();
}

static void step(struct world *w, const struct core_input *e)
{
	struct core_out out = { 0 };

	core_turn(w->core, e, w->now, &out);
	for (size_t i = 0; i < out.n_records; i++)
		must(shadow_feed(w->shadow, &out.records[i]));
	core_out_done(&out);
	/* Every record here is one that a turn has made, of whatever messages. Not
	 * state_check_placed(): time stands still between messages here, and the next one may say
	 * that a GPU is gone. */
	must(state_check(w->core));
}

static void plain(struct world *w, int type)
{
	step(w, &(struct core_input){ .type = type, .request = 1 });
}

/* The controller dies and comes back from a snapshot of its state. */
static void restart(struct world *w)
{
	struct state state;

	must(shadow_differs(w->core, w->shadow));
	core_free(w->core);
	w->core = w->shadow;
	w->shadow = core_new(&core_config_default);
	mo_desc_init(&state_desc, &state);
	must(through_text(&state_desc, core_state(w->core), &state));
	core_load(w->shadow, &state);
	mo_desc_done(&state_desc, &state);
	must(shadow_differs(w->core, w->shadow));
	plain(w, IN_START);
}

static void submit(struct world *w, struct bytes *b)
{
	struct submit s;

	mo_desc_init(&submit_desc, &s);
	s.user = mo_strdup("ann");
	s.recipe.name = mo_strdup("job");
	s.recipe.gpus = 1 + take(b, 4);
	s.recipe.priority = 50;
	s.recipe.steps = take(b, 2) ? 100 : MO_NONE;
	s.recipe.checkpoint.dir = take(b, 2) ? mo_printf("/ckpt/%u", take(b, 3)) : NULL;
	s.recipe.checkpoint.resume = -1;
	s.recipe.checkpoint.keep = take(b, 3);
	s.recipe.stop_signal = SIGTERM;
	s.recipe.stop_grace_us = 1000000;
	s.recipe.max_cycles = 3;
	s.recipe.grace_us = 0;
	s.engine.layout.announced_is_complete = take(b, 2);
	s.engine.kind = mo_strdup("torch");
	mo_strs_add(&s.argv, &s.n_argv, "/bin/train");
	step(w, &(struct core_input){ .type = IN_SUBMIT, .submit = &s, .request = 1 });
	mo_desc_done(&submit_desc, &s);
}

static void names(const struct world *w, struct bytes *b, unsigned node, char **name, char **boot,
		  char **instance)
{
	free(*name);
	free(*boot);
	free(*instance);
	*name = mo_printf("n%u", node);
	*boot = mo_printf("boot-%u", take(b, 16) ? w->boot[node] : take(b, 4));
	*instance = mo_strdup(*boot);
}

/* As it comes over the network: written, read strictly, taken in. NULL: refused. */
static void *received(const struct mo_desc *d, void *obj)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	void *back = mo_desc_new(d);

	wire_encode(d, obj, &b);
	if (wire_decode(d, b.data, b.len, true, back, NULL) == 0)
		return back;
	mo_desc_free(d, back);
	return NULL;
}

static void give_hello(struct world *w, struct agent_hello *h)
{
	char *why = h ? intake_hello(h) : NULL;

	if (h && !why)
		step(w, &(struct core_input){ .type = IN_HELLO,
					      .hello = &(struct in_hello){ .message = h },
					      .request = 1 });
	free(why);
	mo_desc_free(&agent_hello_desc, h);
}

static void give_sync(struct world *w, struct agent_sync *s, bool urgent)
{
	char *unfit = NULL, *why = s ? intake_sync(s, &unfit) : NULL;

	if (s && !why) {
		struct sync_reply reply;

		step(w, &(struct core_input){ .type = urgent ? IN_URGENT : IN_SYNC,
					      .sync = &(struct in_sync){ .message = s },
					      .request = 1 });
		mo_desc_init(&sync_reply_desc, &reply);
		if (node_find(core_state(w->core), s->node)) {
			_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
			core_sync_reply(w->core, s->node, &reply);
			wire_encode(&sync_reply_desc, &reply, &b);
		}
		mo_desc_done(&sync_reply_desc, &reply);
	}
	free(unfit);
	free(why);
	mo_desc_free(&agent_sync_desc, s);
}

static void hello(struct world *w, struct bytes *b)
{
	unsigned node = take(b, NODES);
	bool wild = !take(b, 4);
	struct agent_hello h;

	mo_desc_init(&agent_hello_desc, &h);
	if (wild)
		fill(b, &agent_hello_desc, &h, 3);
	w->boot[node] += !take(b, 4);
	names(w, b, node, &h.node, &h.boot_id, &h.instance);
	h.protocol = MO_PROTOCOL;
	h.health = take(b, 2);
	for (int64_t i = 0; !wild && i < 2; i++) {
		struct gpu_slot *g = MO_ADD(&h.info, gpus, &gpu_slot_desc);
		fill(b, &gpu_slot_desc, g, 2);
		g->index = take(b, 16) ? i : any_int(b);
	}
	give_hello(w, received(&agent_hello_desc, &h));
	mo_desc_done(&agent_hello_desc, &h);
}

/* One of the node's steps, most times; its notes are numbered on, most times. */
static void fill_step(struct world *w, struct bytes *b, struct step_report *r)
{
	const struct state *s = core_state(w->core);
	const struct job *j = s->n_jobs ? s->jobs[take(b, (unsigned)s->n_jobs)] : NULL;

	r->job = j && take(b, 16) ? j->id : any_int(b);
	r->attempt = j && take(b, 16) ? j->attempt : any_int(b);
	r->state = (int)take(b, _STEP_STATE_N + 1) - 1;
	r->written = any_int(b);
	for (unsigned k = take(b, 6); k > 0; k--) {
		struct note *n = MO_ADD(r, notes, &note_desc);

		fill(b, &note_desc, n, 2);
		n->n = take(b, 16) ? ++w->n_notes : any_int(b);
		n->kind = (int)take(b, _NOTE_KIND_N + 1) - 1;
		n->rank = take(b, 8) ? (int64_t)take(b, 4) : n->rank;
	}
	for (unsigned k = take(b, 3); k > 0; k--)
		fill(b, &rank_progress_desc, MO_ADD(r, progress, &rank_progress_desc), 2);
}

/* An answer to what was asked, most times. */
static void fill_scan(struct world *w, struct bytes *b, const char *node, struct scan_result *scan)
{
	struct sync_reply reply;

	fill(b, &scan_result_desc, scan, 3);
	mo_desc_init(&sync_reply_desc, &reply);
	if (node_find(core_state(w->core), node))
		core_sync_reply(w->core, node, &reply);
	for (size_t i = 0; i < reply.n_commands && take(b, 16); i++)
		if (reply.commands[i].kind == CMD_SCAN) {
			scan->job = reply.commands[i].job;
			scan->attempt = reply.commands[i].attempt;
			scan->order = reply.commands[i].order;
			scan->id = reply.commands[i].id;
			if (take(b, 4))
				mo_str_set(&scan->error, NULL);
			for (size_t k = 0;
			     k < scan->n_items && reply.commands[i].only != MO_NONE && take(b, 4);
			     k++)
				scan->items[k].iteration = reply.commands[i].only;
		}
	mo_desc_done(&sync_reply_desc, &reply);
}

static void sync_of(struct world *w, struct bytes *b)
{
	unsigned node = take(b, NODES);
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	names(w, b, node, &s.node, &s.boot_id, &s.instance);
	s.epoch = take(b, 32) ? core_state(w->core)->epoch : any_int(b);
	s.beat = take(b, 16) ? ++w->beat[node] : any_int(b);
	s.mono_ns = any_int(b);
	for (unsigned k = take(b, 3); k > 0; k--)
		fill_step(w, b, MO_ADD(&s, steps, &step_report_desc));
	for (unsigned k = take(b, 3); k > 0; k--)
		fill_scan(w, b, s.node, MO_ADD(&s, scans, &scan_result_desc));
	if (take(b, 3) == 1)
		fill(b, &node_health_desc, s.health = mo_desc_new(&node_health_desc), 3);
	if (take(b, 3) == 1)
		fill(b, &gpu_sensors_desc, MO_ADD(&s, sensors, &gpu_sensors_desc), 2);
	if (take(b, 4) == 1)
		fill(b, &nic_sensors_desc, MO_ADD(&s, nics, &nic_sensors_desc), 2);
	give_sync(w, received(&agent_sync_desc, &s), take(b, 3) == 1);
	mo_desc_done(&agent_sync_desc, &s);
}

static struct note *add_note(struct world *w, struct step_report *r, int kind, int64_t rank)
{
	struct note *n = MO_ADD(r, notes, &note_desc);

	n->n = r->written = ++w->n_notes;
	n->kind = kind;
	n->rank = rank;
	return n;
}

/* Begins or ends the step, as a sane agent does. */
static void carry_out(struct world *w, struct bytes *b, const struct command *c,
		      struct agent_sync *s)
{
	struct step_report *r = MO_ADD(s, steps, &step_report_desc);
	const struct job *j = job_find(core_state(w->core), c->job);
	const struct step *st = j ? step_find(j, c->attempt, s->node) : NULL;
	int64_t first = st ? st->first_rank : 0, end = st ? first + st->n_ranks : 0;

	r->job = c->job;
	r->attempt = c->attempt;
	r->state = c->kind == CMD_LAUNCH ? STEP_RUNNING : STEP_GONE;
	for (int64_t k = first; k < end; k++) {
		struct note *n =
			add_note(w, r, c->kind == CMD_LAUNCH ? NOTE_STARTED : NOTE_EXIT, k);
		n->pid = 100 + k;
		n->code = c->kind == CMD_LAUNCH ? MO_NONE : (int64_t)take(b, 2);
		n->mono_ns = w->n_notes * 1000;
	}
	add_note(w, r, c->kind == CMD_LAUNCH ? NOTE_RUNNING : NOTE_GONE, MO_NONE);
}

/* The node does what it is ordered, reports an iteration more of its steps, or ends them. */
static void obey(struct world *w, struct bytes *b, unsigned node)
{
	const struct state *state = core_state(w->core);
	bool ends = take(b, 4) == 1;
	struct sync_reply reply;
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	mo_desc_init(&sync_reply_desc, &reply);
	s.node = mo_printf("n%u", node);
	s.boot_id = mo_printf("boot-%u", w->boot[node]);
	s.instance = mo_strdup(s.boot_id);
	s.epoch = state->epoch;
	s.beat = ++w->beat[node];
	if (node_find(state, s.node))
		core_sync_reply(w->core, s.node, &reply);
	for (size_t i = 0; i < reply.n_commands; i++) {
		const struct command *c = &reply.commands[i];
		if (c->kind == CMD_LAUNCH || c->kind == CMD_KILL || c->kind == CMD_STOP)
			carry_out(w, b, c, &s);
	}
	for (size_t i = 0; i < state->n_jobs; i++) {
		const struct job *j = state->jobs[i];
		const struct step *st = step_find(j, j->attempt, s.node);
		const struct command end = { .kind = CMD_KILL,
					     .job = j->id,
					     .attempt = j->attempt };
		if (!st || !st->started || st->gone)
			continue;
		if (ends)
			carry_out(w, b, &end, &s);
		struct step_report *r = MO_ADD(&s, steps, &step_report_desc);
		r->job = j->id;
		r->attempt = j->attempt;
		r->state = STEP_RUNNING;
		struct note *n = add_note(w, r, NOTE_SAMPLE, st->first_rank);
		n->sample = mo_desc_new(&sample_desc);
		n->sample->iteration = MO_MAX(j->progress.iteration, 0) + (int64_t)take(b, 60);
	}
	for (unsigned k = take(b, 2); k > 0; k--)
		fill_scan(w, b, s.node, MO_ADD(&s, scans, &scan_result_desc));
	mo_desc_done(&sync_reply_desc, &reply);
	give_sync(w, received(&agent_sync_desc, &s), false);
	mo_desc_done(&agent_sync_desc, &s);
}

static void good_hello(struct world *w, unsigned node)
{
	struct agent_hello h;

	mo_desc_init(&agent_hello_desc, &h);
	h.node = mo_printf("n%u", node);
	h.boot_id = mo_printf("boot-%u", w->boot[node]);
	h.instance = mo_strdup(h.boot_id);
	h.protocol = MO_PROTOCOL;
	for (int64_t i = 0; i < 2; i++)
		MO_ADD(&h.info, gpus, &gpu_slot_desc)->index = i;
	give_hello(w, received(&agent_hello_desc, &h));
	mo_desc_done(&agent_hello_desc, &h);
}

static void verb(struct world *w, struct bytes *b)
{
	static const int jobs[] = { IN_CANCEL, IN_PAUSE, IN_RESUME, IN_RESTART },
			 nodes[] = { IN_DRAIN, IN_UNDRAIN, IN_FENCE };
	char name[] = "n0";
	int64_t job = 1 + take(b, 4);
	bool now = take(b, 2);
	struct core_input e = { .by = { .user = (char *)"op", .may_all = true }, .request = 1 };

	name[1] = (char)('0' + take(b, NODES));
	e.type = take(b, 2) ? jobs[take(b, ELEMENTSOF(jobs))] : nodes[take(b, ELEMENTSOF(nodes))];
	e.cancel = &(struct in_cancel){ .job = job, .now = now };
	e.pause = &(struct in_pause){ .job = job };
	e.resume = &(struct in_resume){ .job = job };
	e.restart = &(struct in_restart){ .job = job, .from_iteration = MO_NONE };
	if (e.type == IN_RESTART)
		e.restart->from_iteration = take(b, 2) ? MO_NONE : any_int(b);
	e.drain = &(struct in_drain){ .node = name };
	e.undrain = &(struct in_undrain){ .node = name };
	e.fence = &(struct in_fence){ .node = name };
	step(w, &e);
}

static void pass(struct world *w, struct bytes *b)
{
	static const int64_t us[] = { 1000, 300000, 3000000, 31000000, 400000000 };
	int64_t until = w->now + us[take(b, ELEMENTSOF(us))];

	for (int i = 0; i < 1000 && core_deadline(w->core) <= until; i++) {
		w->now = MO_MAX(w->now + 1, core_deadline(w->core));
		plain(w, IN_TICK);
	}
	w->now = MO_MAX(w->now, until);
}

static void views(struct world *w)
{
	const struct state *s = core_state(w->core);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t i = 0; i < s->n_jobs; i++) {
		struct why_view why;
		struct job_view job;
		struct report_view report;

		mo_desc_init(&why_view_desc, &why);
		mo_desc_init(&job_view_desc, &job);
		mo_desc_init(&report_view_desc, &report);
		job_why(s, s->jobs[i], w->now, &why);
		job_view(s, s->jobs[i], w->now, &job);
		job_report(s, s->jobs[i], w->now, &report);
		wire_encode(&why_view_desc, &why, &b);
		wire_encode(&job_view_desc, &job, &b);
		wire_encode(&report_view_desc, &report, &b);
		mo_desc_done(&why_view_desc, &why);
		mo_desc_done(&job_view_desc, &job);
		mo_desc_done(&report_view_desc, &report);
	}
}

static void as_text(struct world *w, const char *text, size_t n)
{
	struct agent_hello *h = mo_desc_new(&agent_hello_desc);
	struct agent_sync *s = mo_desc_new(&agent_sync_desc);

	if (wire_decode(&agent_hello_desc, text, n, true, h, NULL) == 0 && h->node) {
		give_hello(w, TAKE_PTR(h));
		restart(w);
	}
	if (wire_decode(&agent_sync_desc, text, n, true, s, NULL) == 0 && s->node)
		give_sync(w, TAKE_PTR(s), false);
	mo_desc_free(&agent_hello_desc, h);
	mo_desc_free(&agent_sync_desc, s);
}

static void begin(struct world *w, struct bytes *b)
{
	take(b, 1);
	good_hello(w, 0);
	good_hello(w, 1);
	submit(w, b);
	for (unsigned i = 0; i < 4; i++)
		obey(w, b, i % 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct bytes b = { data, n, 0 };
	struct world w = { .core = core_new(&core_config_default),
			   .shadow = core_new(&core_config_default),
			   .now = START_US };

	plain(&w, IN_START);
	if (n && data[0] & 1)
		as_text(&w, (const char *)data + 1, n - 1);
	else
		begin(&w, &b);
	for (int i = 0; !(n && data[0] & 1) && i < OPS; i++)
		switch (take(&b, 16)) {
		case 0: restart(&w); break;
		case 1:
		case 2: submit(&w, &b); break;
		case 3:
		case 4: hello(&w, &b); break;
		case 5: verb(&w, &b); break;
		case 6: pass(&w, &b); break;
		case 7: views(&w); break;
		case 8: good_hello(&w, take(&b, NODES)); break;
		case 9:
		case 10:
		case 11: obey(&w, &b, take(&b, NODES)); break;
		default: sync_of(&w, &b); break;
		}
	must(shadow_differs(w.core, w.shadow));
	core_free(w.core);
	core_free(w.shadow);
	return 0;
}
