/* In place of lib/base/clock.c, lib/base/chance.c and lib/loop/loop.c. */
#include "tests/unit/seams/world.h"

#include "lib/base/chance.h"
#include "lib/base/clock.h"
#include "lib/loop/loop.h"

#define WALL_US (1790000000 * S)

struct mo_timer {
	void (*fn)(void *arg);
	void *arg;
	int64_t at;
	bool used;
};
struct mo_turn {
	void (*fn)(void *arg);
	void *arg;
	bool armed;
};
static struct mo_timer timers[32];
static struct mo_turn turn;
static int64_t now = 1000 * S;
static unsigned chance;
static bool ended;
static int64_t wall_ahead;
bool (*seam_ready)(void);

int64_t mo_clock_boot_us(void)
{
	return now;
}

int64_t mo_clock_mono_ns(void)
{
	return now * 1000;
}

int64_t mo_clock_wall_us(void)
{
	return WALL_US + now + wall_ahead;
}

/* Nothing costs anything here. */
int64_t mo_clock_thread_ns(void)
{
	return 0;
}

bool mo_clock_synced(void)
{
	return true;
}

void mo_clock_rest_ms(int ms)
{
	now += ms * 1000LL;
}

bool mo_clock_rest_unless(int fd, int ms)
{
	mo_clock_rest_ms(ms);
	return true;
}

int mo_random(void *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((unsigned char *)data)[i] =
			(unsigned char)((chance = chance * 1103515245 + 12345) >> 16);
	return 0;
}

int mo_loop_run(sd_event *loop, int64_t *longest_ns)
{
	fail_msg("nothing runs by itself here");
	return -1;
}

void mo_loop_end(sd_event *loop, int code)
{
	ended = true;
}

void mo_loop_notify(const char *state) {}

int mo_timer_new(sd_event *loop, void (*fn)(void *arg), void *arg, struct mo_timer **ret)
{
	for (size_t i = 0; i < ELEMENTSOF(timers); i++)
		if (!timers[i].used) {
			timers[i] = (struct mo_timer){ fn, arg, INT64_MAX, true };
			*ret = &timers[i];
			return 0;
		}
	return -1;
}

void mo_timer_at(struct mo_timer *t, int64_t boot_us)
{
	t->at = boot_us;
}

void mo_timer_in(struct mo_timer *t, int64_t us)
{
	t->at = us == INT64_MAX ? us : now + us;
}

struct mo_timer *mo_timer_free(struct mo_timer *t)
{
	if (t)
		*t = (struct mo_timer){ 0 };
	return NULL;
}

int mo_turn_new(sd_event *loop, void (*fn)(void *arg), void *arg, struct mo_turn **ret)
{
	turn = (struct mo_turn){ fn, arg, false };
	*ret = &turn;
	return 0;
}

void mo_turn_wait(struct mo_turn *t, int64_t us) {}

void mo_turn_arm(struct mo_turn *t)
{
	t->armed = true;
}

void mo_turn_now(struct mo_turn *t)
{
	t->armed = false;
	t->fn(t->arg);
}

struct mo_turn *mo_turn_free(struct mo_turn *t)
{
	return NULL;
}

int64_t seam_now(void)
{
	return now;
}

void seam_wall_ahead(int64_t us)
{
	wall_ahead = us;
}

void seam_time_at(int64_t boot_us)
{
	now = MO_MAX(now, boot_us);
}

bool seam_ended(void)
{
	return ended;
}

void seam_new_process(void)
{
	memset(timers, 0, sizeof(timers));
	turn = (struct mo_turn){ 0 };
	ended = false;
}

static struct mo_timer *next_timer(void)
{
	struct mo_timer *first = NULL;

	for (size_t i = 0; i < ELEMENTSOF(timers); i++)
		if (timers[i].used && (!first || timers[i].at < first->at))
			first = &timers[i];
	return first;
}

/* What is due comes before the turn, as lib/loop has it. */
void seam_run(int64_t us)
{
	for (int64_t until = now + us; !ended;) {
		struct mo_timer *t = next_timer();

		if (seam_ready && seam_ready())
			continue;
		if (turn.armed && !(t && t->at <= now)) {
			mo_turn_now(&turn);
		} else if (t && t->at <= until) {
			now = MO_MAX(now, t->at);
			t->at = INT64_MAX;
			t->fn(t->arg);
		} else {
			now = until;
			return;
		}
	}
}
