/* The one turn of the loop. It runs when every readable socket was read (lib/loop), so deadlines
 * are checked only after all input:
 *   1. core_decide for each queued input, IN_CLOCK and IN_LATE first, IN_TICK last; what would
 *      take too long waits for the next turn; core_settle for all of them
 *   2. all records of the turn in ONE synced transaction (group commit: thirty submits cost one
 *      fsync)
 *   3. only then the effects: replies, commands, streams, log entries
 *   4. the deadline timer            5. the watchdog
 * Disk full: the ballast is given up and the batch tried once more; from then on submits are
 * refused (507) until there is room. Any other failure: nothing is sent and the process ends;
 * ranks run on and the next start replays what was stored. */
#include "daemon/turn.h"
#include <errno.h>
#include <string.h>
#include "daemon/auth.h"
#include "daemon/core/update/check.h"
#include "daemon/effects.h"
#include "daemon/fatal.h"
#include "daemon/journal.h"
#include "daemon/quota.h"
#include "daemon/sample_files.h"
#include "daemon/disk.h"
#include "daemon/snapshot.h"
#include "daemon/streams.h"
#include "daemon/webhooks.h"
#include "daemon/timing.h"
#include "lib/base/assert.h"
#include "lib/loop/loop.h"

#define PULSE_US 250000
/* CPU time after which a turn stores what it has: the rest of its input is the next one's. As much
 * as the last sync took, so that with a slow disk no more than half of the time is waiting. */
#define TURN_NS 10000000
#define TURN_MOST_NS 50000000
#define LATE_US 500000
#define SLOW_SYNC_US 1000000
#define WATCHDOG_EVERY_US 1000000
#define SLOW_REPORTED_EVERY_US (60 * 1000000LL)

/* One of this type comes before all others. */
static void put_first(struct input **inputs, size_t n, int type)
{
	for (size_t i = 1; i < n; i++)
		if (inputs[i]->core.type == type) {
			struct input *first = inputs[i];
			memmove(inputs + 1, inputs, i * sizeof(*inputs));
			inputs[0] = first;
		}
	mo_assert(n == 0 || inputs[0]);
}

static int append(struct manager *m, char *const *texts, size_t n, struct mo_error *err)
{
	int r = store_append(m->store, texts, n, err);

	assert(n > 0);
	if (r != -ENOSPC || !store_release_ballast(m->store))
		return r;
	mo_error_done(err);
	r = store_append(m->store, texts, n, err);
	if (r == 0)
		disk_lost(m);
	return r;
}

/* 0, or a negative errno after fatal_stop(). */
static int store_records(struct manager *m, const struct core_out *out)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	if (out->n_records == 0)
		return 0;
	char **texts = mo_alloc_array(out->n_records, sizeof(*texts));
	for (size_t i = 0; i < out->n_records; i++)
		snapshots_count(m, strlen(texts[i] = journal_record_text(m->journal,
									 &out->records[i])));
	int64_t began = mo_clock_boot_us();
	int r = append(m, texts, out->n_records, &err);
	int64_t took = mo_clock_boot_us() - began;
	for (size_t i = 0; i < out->n_records; i++)
		free(texts[i]);
	free(texts);
	if (r < 0) {
		fatal_stop(m, mo_error_text(&err, r));
		return r;
	}
	m->n_records += (int64_t)out->n_records;
	timing_add(&m->sync_time, took);
	m->sync_us = took;
	if (took > SLOW_SYNC_US &&
	    (!m->slow_reported_at || began - m->slow_reported_at > SLOW_REPORTED_EVERY_US)) {
		m->slow_reported_at = began;
		disk_tell(m, EVENT_STORE_SLOW,
			  "storing %zu records took %lld ms: is the disk of state_dir busy or "
			  "failing?",
			  out->n_records, (long long)(took / 1000));
	}
	return 0;
}

static void carry_out(struct manager *m, struct input **inputs, size_t n,
		      const struct core_out *out)
{
	size_t at = 0;

	mo_assert(n > 0 && inputs[n - 1]->effects_end <= out->n_effects);
	for (size_t i = 0; i < out->n_effects; i++) {
		while (at < n - 1 && i >= inputs[at]->effects_end)
			at++;
		effect_do(m, inputs[at], &out->effects[i]);
	}
	streams_flush(m);
	webhooks_flush(m);
}

static void set_deadline(struct manager *m)
{
	int64_t due = core_deadline(m->core);

	/* core time and CLOCK_BOOTTIME advance alike */
	mo_timer_at(m->deadline, due == INT64_MAX
					 ? INT64_MAX
					 : mo_clock_boot_us() + MO_MAX(due - manager_now(m), 0));
}

/* IN_CLOCK: so did their ends. */
static bool tokens_changed(struct input **inputs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (inputs[i]->core.type == IN_TOKEN || inputs[i]->core.type == IN_TOKEN_REVOKE ||
		    inputs[i]->core.type == IN_TOKEN_USED || inputs[i]->core.type == IN_CLOCK)
			return true;
	return false;
}

/* What a message costs is paid by the node of its token. began, and what is returned: CPU time. */
static int64_t step(struct manager *m, struct input *in, int64_t now, int64_t began,
		    struct core_out *out)
{
	const char *user = in->core.by.user;
	bool agents = user && (in->core.type == IN_HELLO || in->core.type == IN_SYNC ||
			       in->core.type == IN_URGENT);

	mo_assert(out->n_effects >= in->effects_end);
	core_decide(m->core, &in->core, now, out);
	in->effects_end = out->n_effects;
	int64_t ended = mo_clock_thread_ns(); /* costs half a microsecond: once for each */
	if (agents)
		quota_charge(m, user, (ended - began) / 1000);
	return ended;
}

#ifndef MO_CHECK
#define MO_CHECK 0
#endif
/* Of builds that check themselves (make CHECK=1): what is broken is never stored. */
static void must_hold(const struct manager *m)
{
	_cleanup_(mo_freep) char *wrong = MO_CHECK ? state_check(m->core) : NULL;

	if (MO_CHECK && !wrong)
		wrong = state_check_placed(m->core);
	if (!wrong)
		return;
	mo_log(MO_ERR, NULL, NULL, "the state is broken: %s", wrong);
	abort();
}

/* Returns how many were taken: of a crowd no more than may keep everybody else waiting. */
static size_t steps(struct manager *m, struct input **inputs, size_t n_inputs, int64_t now)
{
	int64_t limit = MO_MIN(MO_MAX(TURN_NS, m->sync_us * 1000), TURN_MOST_NS);
	int64_t began = mo_clock_thread_ns(), at = began;
	struct core_out out = { 0 };
	size_t n = 0;

	mo_assert(n_inputs > 0 && !m->fatal);
	put_first(inputs, n_inputs, IN_LATE);
	put_first(inputs, n_inputs, IN_CLOCK);
	while (n < n_inputs && (n == 0 || at - began < limit))
		at = step(m, inputs[n++], now, at, &out);
	core_settle(m->core, now, &out);
	must_hold(m);
	if (store_records(m, &out) == 0) {
		if (tokens_changed(inputs, n)) {
			auth_reload(m);
			streams_check(m);
		}
		carry_out(m, inputs, n, &out);
		for (size_t i = 0; i < out.n_records; i++)
			if (out.records[i].type == REC_NOTES || out.records[i].type == REC_JOB)
				sample_files_take(m, out.records[i].job);
		snapshots_check(m, mo_clock_boot_us());
	}
	core_out_done(&out);
	return n;
}

/* What was not taken comes before what effects have pushed meanwhile; but deadlines are looked
 * at only after all input. */
static void put_back(struct manager *m, struct input **rest, size_t n)
{
	struct input **newer = TAKE_PTR(m->inputs);
	size_t n_newer = m->n_inputs;

	mo_assert(n > 0);
	if (n > 0 && rest[n - 1]->core.type == IN_TICK)
		input_free(rest[--n]);
	m->n_inputs = 0;
	for (size_t i = 0; i < n; i++)
		*MO_GROW(m->inputs, m->n_inputs) = rest[i];
	for (size_t i = 0; i < n_newer; i++)
		*MO_GROW(m->inputs, m->n_inputs) = newer[i];
	free(newer);
	mo_turn_arm(m->turn);
}

void turn_pulse(struct manager *m)
{
	m->pulse_due = mo_clock_boot_us() + PULSE_US;
	mo_timer_at(m->pulse, m->pulse_due);
}

/* A pulse that is overdue tells how long this process did not run (sync, VM pause, SIGSTOP): no
 * node was silent because of that. Checked here, and not in the timer's callback, because the
 * deadlines of the same turn must know it. */
static void tell_lateness(struct manager *m, int64_t boot_now)
{
	int64_t late = boot_now - m->pulse_due;

	if (!m->pulse_due || late < 0)
		return;
	timing_add(&m->lag_time, late);
	if (late > LATE_US) {
		struct input *in = input_new(IN_LATE, NULL);
		in->core.late = mo_desc_new(&in_late_desc);
		in->core.late->late_us = late;
		input_push(m, in);
	}
	turn_pulse(m);
}

void turn_run(struct manager *m)
{
	int64_t began = mo_clock_boot_us(), now = manager_now(m);

	if (m->fatal)
		return;
	tell_lateness(m, began);
	if (now >= core_deadline(m->core))
		input_push(m, input_new(IN_TICK, NULL));
	/* What effects push meanwhile belongs to the next turn. */
	struct input **inputs = TAKE_PTR(m->inputs);
	size_t n_inputs = m->n_inputs, n = 0;
	m->n_inputs = 0;
	if (n_inputs > 0) {
		n = steps(m, inputs, n_inputs, now);
		if (n < n_inputs)
			put_back(m, inputs + n, n_inputs - n);
		timing_add(&m->turn_time, mo_clock_boot_us() - began);
	}
	for (size_t i = 0; i < n; i++)
		input_free(inputs[i]);
	free(inputs);
	if (m->fatal)
		return;
	set_deadline(m);
	if (began - m->notified_at > WATCHDOG_EVERY_US) {
		m->notified_at = began;
		mo_loop_notify("WATCHDOG=1");
	}
}
