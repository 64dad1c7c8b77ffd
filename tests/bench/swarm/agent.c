/* One emulated agent: hello, a sync that is held, news when somebody waits for them, and what
 * commands ask for. See swarm.h. */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"
#include "tests/bench/swarm/swarm.h"
#include "tests/bench/swarm/step.h"

#define MS 1000000LL
#define HELLO_WAIT_NS (100 * MS) /* as docs/protocol.md says: doubling to a second */
#define HELLO_WAIT_MOST_NS (1000 * MS)
#define HELLO_LIMIT_NS (2000 * MS) /* doubling to ten, while none is answered */
#define HELLO_LIMIT_MOST_NS (10000 * MS)
/* This process writes them all: between so many it hears what was answered. */
#define HELLOS_AT_ONCE 256
#define SYNC_LIMIT_NS (5000 * MS) /* after the beat */

MO_DEFINE_DONE(agent_hello)
MO_DEFINE_DONE(agent_welcome)
MO_DEFINE_DONE(sync_reply)

static void name_it(const struct agent *a, char **node, char **boot_id, char **instance)
{
	*node = mo_printf("swarm-%zu", a->index);
	*boot_id = mo_printf("boot-%zu-%lld", a->index, (long long)a->boot);
	*instance = mo_printf("start-%zu-%lld", a->index, (long long)a->start);
}

static void away(struct agent *a, int64_t now)
{
	if (a->state == AGENT_UP) {
		a->swarm->n_up--;
		a->swarm->counts.lost++;
	}
	a->state = AGENT_AWAY;
	a->next_ns = now + a->wait_ns;
	a->wait_ns = MO_MIN(2 * a->wait_ns, HELLO_WAIT_MOST_NS);
}

/* Nobody answered: the connection is of no more use. */
static void cut_off(struct agent *a, int64_t now)
{
	away(a, now);
	line_close(&a->swarm->lines, &a->sync);
}

/* Within a second. */
static int64_t spread(struct swarm *s)
{
	s->chance = s->chance * 1664525u + 1013904223u;
	return (s->chance >> 8) % 1000 * MS;
}

/* Refused, and perhaps asked to come later: within a second more, so that not all come at once. */
static void refused(struct agent *a, int64_t now)
{
	bool hello = a->state == AGENT_HELLO;

	away(a, now);
	if (hello && a->sync.after_s)
		a->next_ns = now + a->sync.after_s * 1000 * MS + spread(a->swarm);
	a->limit_ns = HELLO_LIMIT_NS;
}

static void post(struct agent *a, struct line *l, const char *path, const struct mo_desc *d,
		 const void *message)
{
	_cleanup_(mo_buf_done) struct mo_buf body = {};

	wire_encode(d, message, &body);
	line_post(&a->swarm->lines, l, path, &body);
}

static void say_hello(struct agent *a)
{
	_cleanup_(agent_hello_done) struct agent_hello h;

	mo_desc_init(&agent_hello_desc, &h);
	name_it(a, &h.node, &h.boot_id, &h.instance);
	h.protocol = MO_PROTOCOL;
	h.version = mo_strdup("swarm");
	h.address =
		mo_printf("10.%zu.%zu.%zu", a->index >> 16, a->index >> 8 & 255, a->index & 255);
	swarm_nodeinfo(a, &h.info);
	for (size_t i = 0; i < a->n_steps; i++) {
		struct step_report *r = MO_ADD(&h, steps, &step_report_desc);

		r->job = a->steps[i].job;
		r->attempt = a->steps[i].attempt;
		r->state = a->steps[i].state;
		r->written = a->steps[i].written;
	}
	a->swarm->counts.hellos++;
	a->state = AGENT_HELLO;
	post(a, &a->sync, "/v1/agent/hello", &agent_hello_desc, &h);
}

/* The message borrows notes and scans. */
static void speak(struct agent *a, struct line *l, const char *path)
{
	struct step_report *reports = mo_alloc_array(a->n_steps + 1, sizeof(*reports));
	struct agent_sync m;
	_cleanup_(mo_freep) char *node = NULL, *boot = NULL, *instance = NULL;

	mo_desc_init(&agent_sync_desc, &m);
	name_it(a, &node, &boot, &instance);
	m.node = node;
	m.boot_id = boot;
	m.instance = instance;
	m.epoch = a->epoch;
	m.beat = a->beat;
	m.mono_ns = mo_clock_mono_ns();
	for (size_t i = 0; i < a->n_steps; i++)
		step_report_fill(&a->steps[i], a->swarm->progress && l == &a->sync, &reports[i]);
	m.steps = reports;
	m.n_steps = a->n_steps;
	m.scans = a->scans;
	m.n_scans = l == &a->sync ? a->n_scans : 0;
	post(a, l, path, &agent_sync_desc, &m);
	for (size_t i = 0; i < a->n_steps; i++)
		free(reports[i].progress);
	free(reports);
	if (l == &a->sync)
		mo_vec_clear(&scan_result_desc, (void **)&a->scans, &a->n_scans);
}

static void sync_now(struct agent *a)
{
	a->beat++;
	a->swarm->counts.syncs++;
	for (size_t i = 0; i < a->n_steps; i++)
		step_advance(&a->steps[i]);
	speak(a, &a->sync, "/v1/agent/sync");
}

static void news_now(struct agent *a)
{
	if (a->state != AGENT_UP || a->news.state == LINE_ASKED || a->news.state == LINE_CONNECTING)
		return;
	a->urgent = false;
	a->swarm->counts.news++;
	speak(a, &a->news, "/v1/agent/news");
}

static struct swarm_step *step_of(struct agent *a, int64_t job, int64_t attempt)
{
	for (size_t i = 0; i < a->n_steps; i++)
		if (a->steps[i].job == job && a->steps[i].attempt == attempt)
			return &a->steps[i];
	return NULL;
}

static void forget(struct agent *a, struct swarm_step *s)
{
	step_done(s);
	*s = a->steps[--a->n_steps];
}

static void acknowledged(struct agent *a, const struct step_ack *acks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct swarm_step *s = step_of(a, acks[i].job, acks[i].attempt);

		if (s && !acks[i].known)
			forget(a, s);
		else if (s)
			step_acknowledged(s, acks[i].through);
	}
}

static void launch(struct agent *a, const struct command *c, int64_t now)
{
	struct swarm *w = a->swarm;
	struct swarm_step *s;

	if (step_of(a, c->job, c->attempt) || !c->launch)
		return;
	s = MO_GROW(a->steps, a->n_steps);
	step_begin(s, c, now + w->spawn_ms * MS);
	w->counts.launches++;
	w->launch_last = mo_clock_wall_us();
	if (!w->launch_first)
		w->launch_first = w->launch_last;
}

static void scan(struct agent *a, const struct command *c)
{
	struct scan_result *r = MO_ADD(a, scans, &scan_result_desc);

	r->job = c->job;
	r->attempt = c->attempt;
	r->order = c->order;
	r->id = c->id;
	r->writable = true;
}

static void obey(struct agent *a, const struct command *c, int64_t now)
{
	struct swarm_step *s = step_of(a, c->job, c->attempt);

	if (c->kind == CMD_LAUNCH)
		launch(a, c, now);
	else if (c->kind == CMD_SCAN)
		scan(a, c);
	else if (s && c->kind == CMD_FORGET)
		forget(a, s);
	else if (s && (c->kind == CMD_STOP || c->kind == CMD_KILL) && step_end(s, SIGNAL_KILL)) {
		a->swarm->counts.ended++;
		a->urgent = true;
	}
}

static bool decoded(const struct mo_desc *d, const char *body, size_t n, void *ret)
{
	_cleanup_(mo_error_done) struct mo_error err = {};
	int r = wire_decode(d, body, n, false, ret, &err);

	if (r < 0)
		fprintf(stderr, "an answer: %s\n", err.text);
	return r >= 0;
}

static void heard(struct agent *a, const char *body, size_t n, int64_t now)
{
	_cleanup_(sync_reply_done) struct sync_reply r;

	mo_desc_init(&sync_reply_desc, &r);
	if (!decoded(&sync_reply_desc, body, n, &r))
		return;
	a->epoch = r.epoch;
	acknowledged(a, r.acks, r.n_acks);
	for (size_t i = 0; i < r.n_commands; i++)
		obey(a, &r.commands[i], now);
}

static void welcomed(struct agent *a, const char *body, size_t n)
{
	_cleanup_(agent_welcome_done) struct agent_welcome w;

	mo_desc_init(&agent_welcome_desc, &w);
	if (!decoded(&agent_welcome_desc, body, n, &w))
		return;
	a->epoch = w.epoch;
	a->beat_ms = w.beat_ms;
	a->wait_ns = HELLO_WAIT_NS;
	acknowledged(a, w.steps, w.n_steps);
	a->limit_ns = HELLO_LIMIT_NS;
	a->state = AGENT_UP;
	a->swarm->n_up++;
	a->swarm->counts.welcomes++;
	sync_now(a);
}

static void late(struct agent *a, int64_t now)
{
	int64_t by = (now - a->sync.asked_ns) / 100000 - a->beat_ms * 10;

	a->swarm->late[MO_MIN(MO_MAX(by, 0), LATE_BUCKETS - 1)]++;
}

void swarm_ready(struct swarm *s, struct line *l, uint32_t events)
{
	struct agent *a = l->owner;
	const char *body = NULL;
	size_t n = 0;
	int status = line_step(&s->lines, l, events, &body, &n);
	int64_t now = mo_clock_mono_ns();

	if (status == 0)
		return;
	s->counts.refused += status >= 300;
	if (l == &a->news) {
		if (status == 200)
			heard(a, body, n, now);
	} else if (status < 0) {
		cut_off(a, now);
	} else if (status != 200) {
		refused(a, now);
	} else if (a->state == AGENT_HELLO) {
		welcomed(a, body, n);
	} else {
		late(a, now);
		heard(a, body, n, now);
		sync_now(a);
	}
	if (a->urgent)
		news_now(a);
}

/* True: it said hello. */
static bool tick(struct agent *a, int64_t now)
{
	int64_t limit = a->state == AGENT_UP ? a->beat_ms * MS + SYNC_LIMIT_NS : a->limit_ns;
	bool hello = a->state == AGENT_AWAY && now >= a->next_ns;

	if (hello)
		say_hello(a);
	else if (a->state != AGENT_AWAY && now - a->sync.asked_ns > limit) {
		if (a->state == AGENT_HELLO)
			a->limit_ns = MO_MIN(2 * a->limit_ns, HELLO_LIMIT_MOST_NS);
		cut_off(a, now);
	} else if (a->state != AGENT_AWAY && a->sync.state == LINE_CLOSED)
		cut_off(a, now);
	for (size_t i = 0; i < a->n_steps; i++) {
		struct swarm_step *s = &a->steps[i];

		if (now < s->due_ns)
			continue;
		a->urgent = true;
		if (s->state == STEP_STARTING) {
			step_run(s,
				 a->swarm->exit_ms < 0 ? INT64_MAX : now + a->swarm->exit_ms * MS);
			a->swarm->counts.running++;
		} else if (step_end(s, 0)) {
			a->swarm->counts.ended++;
		}
	}
	if (a->urgent)
		news_now(a);
	return hello;
}

void swarm_tick(struct swarm *s, int64_t now_ns)
{
	int hellos = 0;

	for (size_t i = 0; i < s->n_agents && hellos < HELLOS_AT_ONCE; i++) {
		hellos += tick(&s->agents[s->next], now_ns);
		s->next = (s->next + 1) % s->n_agents;
	}
}

void swarm_begin(struct swarm *s, size_t n_agents)
{
	s->agents = mo_alloc_array(n_agents, sizeof(*s->agents));
	s->n_agents = n_agents;
	for (size_t i = 0; i < n_agents; i++) {
		struct agent *a = &s->agents[i];

		*a = (struct agent){
			.swarm = s, .index = i, .wait_ns = HELLO_WAIT_NS, .limit_ns = HELLO_LIMIT_NS
		};
		line_begin(&a->sync, a, i);
		line_begin(&a->news, a, i);
	}
}

void swarm_cut(struct swarm *s)
{
	for (size_t i = 0; i < s->n_agents; i++) {
		struct agent *a = &s->agents[i];

		a->wait_ns = 0;
		cut_off(a, 0);
		a->wait_ns = HELLO_WAIT_NS;
		line_close(&s->lines, &a->news);
	}
}

void swarm_reboot(struct swarm *s)
{
	swarm_cut(s);
	for (size_t i = 0; i < s->n_agents; i++) {
		struct agent *a = &s->agents[i];

		a->boot++;
		a->start++;
		a->beat = 0;
		while (a->n_steps)
			forget(a, a->steps);
	}
}

void swarm_fail(struct swarm *s, int64_t n)
{
	for (size_t i = 0; i < s->n_agents && n > 0; i++)
		for (size_t k = 0; k < s->agents[i].n_steps && n > 0; k++)
			if (step_fail(&s->agents[i].steps[k])) {
				s->agents[i].urgent = true;
				s->counts.failed++;
				n--;
			}
}

void swarm_mark(struct swarm *s)
{
	s->launch_first = s->launch_last = 0;
	memset(s->late, 0, sizeof(s->late));
}

void swarm_done(struct swarm *s)
{
	for (size_t i = 0; i < s->n_agents; i++) {
		struct agent *a = &s->agents[i];

		while (a->n_steps)
			forget(a, a->steps);
		free(a->steps);
		mo_vec_clear(&scan_result_desc, (void **)&a->scans, &a->n_scans);
		line_done(&a->sync);
		line_done(&a->news);
	}
	free(s->agents);
}
