/* The loop itself, the movable one-shot timer and the turn. The turn is a deferred source of the
 * lowest priority: sd-event polls before each dispatch, so it runs only when every readable source
 * was read empty. A stream of requests that never pauses must not starve it: a post source runs it
 * when it has waited for MO_TURN_WAIT_US (or mo_turn_wait). */
#include "lib/loop/loop.h"
#include <assert.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include "lib/base/assert.h"
#include "lib/base/clock.h"
#include "lib/base/util.h"

/* As sd_event_run() does it: one dispatch is one callback. */
static int run_once(sd_event *loop, int64_t *longest_ns)
{
	int r = sd_event_prepare(loop);

	if (r == 0)
		r = sd_event_wait(loop, UINT64_MAX);
	if (r <= 0)
		return r;
	int64_t began = mo_clock_thread_ns();
	r = sd_event_dispatch(loop);
	*longest_ns = MO_MAX(*longest_ns, mo_clock_thread_ns() - began);
	return r;
}

int mo_loop_run(sd_event *loop, int64_t *longest_ns)
{
	int r = 0, code = 0;

	assert(loop && longest_ns);
	while (r >= 0 && sd_event_get_state(loop) != SD_EVENT_FINISHED)
		r = run_once(loop, longest_ns);
	if (r >= 0)
		r = sd_event_get_exit_code(loop, &code);
	return r < 0 ? r : code;
}

void mo_loop_end(sd_event *loop, int code)
{
	sd_event_exit(loop, code);
}

void mo_loop_notify(const char *state)
{
	sd_notify(0, state);
}

struct mo_timer {
	sd_event_source *source;
	void (*fn)(void *arg);
	void *arg;
};

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct mo_timer *t = userdata;

	mo_assert(t->source == s); /* a freed one is disabled before */
	t->fn(t->arg);
	return 0;
}

int mo_timer_new(sd_event *loop, void (*fn)(void *arg), void *arg, struct mo_timer **ret)
{
	struct mo_timer *t = mo_alloc(sizeof(*t));

	assert(fn && ret);
	t->fn = fn;
	t->arg = arg;
	int r = sd_event_add_time(loop, &t->source, CLOCK_BOOTTIME, UINT64_MAX, MO_TIMER_SLACK_US,
				  on_timer, t);
	if (r >= 0)
		r = sd_event_source_set_priority(t->source, SD_EVENT_PRIORITY_IMPORTANT);
	if (r >= 0)
		r = sd_event_source_set_enabled(t->source, SD_EVENT_OFF);
	if (r < 0) {
		mo_timer_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void mo_timer_at(struct mo_timer *t, int64_t boot_us)
{
	mo_assert(t->source && boot_us >= 0);
	if (boot_us == INT64_MAX) {
		sd_event_source_set_enabled(t->source, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time(t->source, (uint64_t)MO_MAX(boot_us, 1));
	sd_event_source_set_enabled(t->source, SD_EVENT_ONESHOT);
}

void mo_timer_in(struct mo_timer *t, int64_t us)
{
	assert(us >= 0);
	mo_timer_at(t, us == INT64_MAX ? INT64_MAX : mo_clock_boot_us() + us);
}

struct mo_timer *mo_timer_free(struct mo_timer *t)
{
	if (!t)
		return NULL;
	sd_event_source_disable_unref(t->source);
	free(t);
	return NULL;
}

struct mo_turn {
	sd_event *loop;
	sd_event_source *idle, *post;
	void (*fn)(void *arg);
	void *arg;
	bool armed;
	uint64_t armed_at, wait;
};

void mo_turn_now(struct mo_turn *t)
{
	mo_assert(t->fn && t->idle && t->post);
	t->armed = false;
	sd_event_source_set_enabled(t->idle, SD_EVENT_OFF);
	sd_event_source_set_enabled(t->post, SD_EVENT_OFF);
	t->fn(t->arg);
}

static int on_idle(sd_event_source *s, void *userdata)
{
	struct mo_turn *t = userdata;

	if (t->armed)
		mo_turn_now(t);
	return 0;
}

static int on_post(sd_event_source *s, void *userdata)
{
	struct mo_turn *t = userdata;
	uint64_t now;

	if (t->armed && sd_event_now(t->loop, CLOCK_MONOTONIC, &now) >= 0 &&
	    now - t->armed_at > t->wait)
		mo_turn_now(t);
	return 0;
}

int mo_turn_new(sd_event *loop, void (*fn)(void *arg), void *arg, struct mo_turn **ret)
{
	struct mo_turn *t = mo_alloc(sizeof(*t));

	assert(fn && ret);
	t->loop = sd_event_ref(loop);
	t->wait = MO_TURN_WAIT_US;
	t->fn = fn;
	t->arg = arg;
	int r = sd_event_add_defer(loop, &t->idle, on_idle, t);
	if (r >= 0)
		r = sd_event_source_set_priority(t->idle, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_event_source_set_enabled(t->idle, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_post(loop, &t->post, on_post, t);
	if (r >= 0)
		r = sd_event_source_set_priority(t->post, SD_EVENT_PRIORITY_IMPORTANT);
	if (r >= 0)
		r = sd_event_source_set_enabled(t->post, SD_EVENT_OFF);
	if (r < 0) {
		mo_turn_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void mo_turn_wait(struct mo_turn *t, int64_t us)
{
	assert(us >= 0);
	t->wait = (uint64_t)us;
}

void mo_turn_arm(struct mo_turn *t)
{
	mo_assert(t->idle && t->post);
	if (t->armed)
		return;
	t->armed = true;
	if (sd_event_now(t->loop, CLOCK_MONOTONIC, &t->armed_at) < 0)
		t->armed_at = 0;
	sd_event_source_set_enabled(t->idle, SD_EVENT_ON);
	sd_event_source_set_enabled(t->post, SD_EVENT_ON);
}

struct mo_turn *mo_turn_free(struct mo_turn *t)
{
	if (!t)
		return NULL;
	sd_event_source_disable_unref(t->idle);
	sd_event_source_disable_unref(t->post);
	sd_event_unref(t->loop);
	free(t);
	return NULL;
}
