/* In place of lib/base/clock.c, lib/base/chance.c, lib/loop/loop.c and daemon/child.c. Timers, the
 * turn and the child belong to the process that runs. */
#include "tests/sim/moed.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/child.h"
#include "lib/base/chance.h"
#include "lib/base/clock.h"
#include "lib/loop/loop.h"
#include "tests/sim/seams.h"
#include "tests/sim/shell.h"

#define BOOTED (100 * S) /* for so long, at its machine's start */

/* One event of a timer is queued: when it comes too early, the next one is. Of a node's, due is
 * what its clock says then. */
struct mo_timer {
	int node; /* -1: the controller's */
	void (*fn)(void *arg);
	void *arg;
	bool used;
	int64_t due, queued; /* ours, INT64_MAX never */
	int64_t event;       /* number of the one that is queued */
};
struct mo_turn {
	void (*fn)(void *arg);
	void *arg;
};
static struct sim *sim;
static struct mo_timer timers[32];
static struct mo_timer **of_nodes;
static size_t n_of_nodes;
static struct mo_turn turn;
static bool ended;
static int node_runs = -1;

void seams_of_node(int node)
{
	node_runs = node;
}

void seams_begin(struct sim *s)
{
	sim = s;
	ended = false;
	s->ctl.turn_due = false;
	for (size_t i = 0; i < ELEMENTSOF(timers); i++)
		mo_timer_free(&timers[i]);
}

bool seams_ended(void)
{
	return ended;
}

int64_t moed_boot_us(const struct sim *s)
{
	return s->now - s->ctl.boot_at + BOOTED;
}

int64_t mo_clock_boot_us(void)
{
	return node_runs >= 0 ? clock_boot_us(sim, node_runs) : moed_boot_us(sim);
}

int64_t mo_clock_mono_ns(void)
{
	return mo_clock_boot_us() * 1000;
}

int64_t mo_clock_wall_us(void)
{
	return node_runs >= 0 ? clock_wall_us(sim, node_runs) : wall_now(sim);
}

/* Nothing costs anything here. */
int64_t mo_clock_thread_ns(void)
{
	return 0;
}

bool mo_clock_synced(void)
{
	return sim->ctl.synced;
}

void mo_clock_rest_ms(int ms) {}

bool mo_clock_rest_unless(int fd, int ms)
{
	return true;
}

int mo_random(void *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((unsigned char *)data)[i] = (unsigned char)sim_random(sim);
	return 0;
}

/* ---- lib/loop/loop.h ---- */

int mo_loop_run(sd_event *loop, int64_t *longest_ns)
{
	abort();
}

void mo_loop_end(sd_event *loop, int code)
{
	ended = true;
}

void mo_loop_notify(const char *state) {}

static int node_timer(void (*fn)(void *arg), void *arg, struct mo_timer **ret)
{
	struct mo_timer *t = NULL;

	for (size_t i = 0; i < n_of_nodes && !t; i++)
		t = of_nodes[i]->used ? NULL : of_nodes[i];
	if (!t)
		t = *MO_GROW(of_nodes, n_of_nodes) = mo_alloc(sizeof(*t));
	*t = (struct mo_timer){ .node = node_runs,
				.fn = fn,
				.arg = arg,
				.used = true,
				.due = INT64_MAX,
				.queued = INT64_MAX,
				.event = t->event + 1 };
	*ret = t;
	return 0;
}

int mo_timer_new(sd_event *loop, void (*fn)(void *arg), void *arg, struct mo_timer **ret)
{
	if (node_runs >= 0)
		return node_timer(fn, arg, ret);
	for (size_t i = 0; i < ELEMENTSOF(timers); i++)
		if (!timers[i].used) {
			timers[i] = (struct mo_timer){ .node = -1,
						       .fn = fn,
						       .arg = arg,
						       .used = true,
						       .due = INT64_MAX,
						       .queued = INT64_MAX,
						       .event = timers[i].event + 1 };
			*ret = &timers[i];
			return 0;
		}
	return -EMFILE;
}

static void queue_timer(struct mo_timer *t)
{
	int64_t at = t->due;

	if (at >= t->queued)
		return;
	t->queued = at;
	if (t->node >= 0)
		sim_at(sim, clock_true(sim, t->node, at), K_NODE_TIMER, t->node, ++t->event, t,
		       NULL);
	else
		sim_at(sim, at, K_TIMER, sim->ctl.instance, ++t->event, t, NULL);
}

void mo_timer_at(struct mo_timer *t, int64_t boot_us)
{
	t->due = boot_us == INT64_MAX || t->node >= 0 ? boot_us
						      : boot_us + sim->ctl.boot_at - BOOTED;
	queue_timer(t);
}

void mo_timer_in(struct mo_timer *t, int64_t us)
{
	mo_timer_at(t, us == INT64_MAX ? us : mo_clock_boot_us() + us);
}

struct mo_timer *mo_timer_free(struct mo_timer *t)
{
	if (t)
		t->used = false;
	return NULL;
}

int mo_turn_new(sd_event *loop, void (*fn)(void *arg), void *arg, struct mo_turn **ret)
{
	turn = (struct mo_turn){ fn, arg };
	*ret = &turn;
	return 0;
}

void mo_turn_wait(struct mo_turn *t, int64_t us) {}

/* Agents have none: the simulator takes what they queue. */
void mo_turn_arm(struct mo_turn *t)
{
	if (!t)
		return;
	if (!sim->ctl.turn_due)
		sim_at(sim, sim->now + 100, K_TURN, sim->ctl.instance, 0, NULL, NULL);
	sim->ctl.turn_due = true;
}

void mo_turn_now(struct mo_turn *t)
{
	t->fn(t->arg);
}

struct mo_turn *mo_turn_free(struct mo_turn *t)
{
	return NULL;
}

static void ring(struct mo_timer *t, const struct queued *e, int64_t now)
{
	if (!t->used || t->event != e->b)
		return;
	t->queued = INT64_MAX;
	if (t->due <= now) {
		t->due = INT64_MAX;
		t->fn(t->arg);
	} else {
		queue_timer(t);
	}
}

void moed_timer(struct sim *s, const struct queued *e)
{
	ring(e->p, e, s->now);
}

void seams_timer(struct sim *s, int node, const struct queued *e)
{
	if (!s->nodes[node].shell)
		return;
	shell_enter(s->nodes[node].shell);
	ring(e->p, e, clock_boot_us(s, node));
	shell_leave();
	shell_drain(s, node);
}

void moed_turn(struct sim *s)
{
	s->ctl.turn_due = false;
	turn.fn(turn.arg);
}

/* ---- daemon/child.h: it works at once, and its end is told a little later ---- */

struct child {
	child_ended ended;
	void *arg;
	int error;
	struct mo_timer *timer;
};

static void on_child(void *arg)
{
	struct child *c = arg;
	child_ended fn = c->ended;
	void *to = c->arg;
	int error = c->error;

	child_free(c);
	fn(to, error, false);
}

int child_start(sd_event *loop, int (*work)(void *arg), child_ended fn, void *arg,
		struct child **ret)
{
	struct child *c = mo_alloc(sizeof(*c));

	c->ended = fn;
	c->arg = arg;
	c->error = -work(arg);
	mo_timer_new(loop, on_child, c, &c->timer);
	mo_timer_in(c->timer, sim_between(sim, MS, 3 * S));
	*ret = c;
	return 0;
}

void child_kill(struct child *c)
{
	abort(); /* none is late */
}

struct child *child_free(struct child *c)
{
	if (c)
		mo_timer_free(c->timer);
	free(c);
	return NULL;
}
