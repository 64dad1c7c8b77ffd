/* See clock.h. */
#include "tests/sim/sim.h"

#define MILLION 1000000LL
#define PPM_MAX 200 /* a quartz that nobody disciplines */

void clock_begin(struct sim *s, int node)
{
	int64_t up = sim_between(s, S, 3000 * S);

	s->nodes[node].clock = (struct sim_clock){
		.boot_at = s->now - up,
		.ppm = sim_between(s, -PPM_MAX, PPM_MAX),
		.wall_ahead = sim_chance(s, 0.2) ? sim_between(s, -3600 * S, 3600 * S)
						 : sim_between(s, -10 * MS, 10 * MS),
	};
}

static int64_t up_us(const struct sim_clock *c, int64_t now)
{
	int64_t up = now - c->boot_at - c->frozen;

	return up + up * c->ppm / MILLION;
}

int64_t clock_boot_us(const struct sim *s, int node)
{
	return up_us(&s->nodes[node].clock, s->now);
}

int64_t clock_wall_us(const struct sim *s, int node)
{
	return WALL_US + s->now + s->nodes[node].clock.wall_ahead;
}

int64_t clock_true(const struct sim *s, int node, int64_t boot_us)
{
	const struct sim_clock *c = &s->nodes[node].clock;
	int64_t at = c->boot_at + c->frozen + boot_us - boot_us * c->ppm / (MILLION + c->ppm) - 2;

	while (up_us(c, at) < boot_us)
		at++;
	return at;
}

bool clock_stands(const struct sim *s, int node)
{
	return s->nodes[node].clock.stands_until > s->now;
}

void clock_stand(struct sim *s, int node, int64_t us, bool frozen)
{
	struct sim_clock *c = &s->nodes[node].clock;

	sim_trace(s, "%s stands for %lld ms", s->nodes[node].name, (long long)(us / MS));
	sim_trouble(s, node);
	c->stands_until = s->now + us;
	if (frozen) {
		c->frozen += us;
		c->frozen_until = c->stands_until;
	}
}

void clock_wake(struct sim *s, int node)
{
	struct sim_clock *c = &s->nodes[node].clock;
	int64_t left = c->stands_until - s->now;

	if (left <= 0)
		return;
	if (c->frozen_until == c->stands_until)
		c->frozen -= left;
	c->stands_until = s->now;
	c->frozen_until = MO_MIN(c->frozen_until, s->now);
}

/* All its ranks wait for those that stand. */
static int64_t of_attempt(const struct sim *s, const struct attempt *a)
{
	int64_t until = 0;

	for (int64_t r = 0; r < a->world; r++)
		if (a->ranks[r])
			until = MO_MAX(until, s->nodes[a->ranks[r]->step->node].clock.stands_until);
	return until;
}

static int64_t until_of(const struct sim *s, const struct queued *e)
{
	const struct attempt *a = e->p;
	int node = -1;

	switch (e->kind) {
	case K_ANSWER:
	case K_AGENT_TICK:
	case K_AGENT_UP:
	case K_AGENT_EVENT:
	case K_NODE_TIMER:
	case K_LEAVE:
	case K_STAY: node = (int)e->a; break;
	case K_STEP_TICK:
	case K_STEP_EVENT:
	case K_WORD:
	case K_SPAWN:
	case K_FORK:
	case K_UNIT_KILL:
	case K_HUNG_END: node = ((const struct simstep *)e->p)->node; break;
	case K_STUCK:
	case K_STUCK_END: node = ((const struct proc *)e->p)->step->node; break;
	case K_EXIT: node = a && a->ranks[e->a] ? a->ranks[e->a]->step->node : -1; break;
	case K_ITERATE:
	case K_PHASE:
	case K_SAVED: return of_attempt(s, a);
	default: break;
	}
	return node < 0 ? 0 : s->nodes[node].clock.stands_until;
}

bool clock_stood(const struct sim *s, const struct attempt *a, int64_t since)
{
	return of_attempt(s, a) > s->now - since;
}

int64_t clock_waits(const struct sim *s, const struct queued *e)
{
	int64_t until = until_of(s, e);

	return until > s->now ? until : 0;
}
