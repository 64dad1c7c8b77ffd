/* Which time it is: see clock.h. Called by the shell at its start and at each pulse, and by
 * update.c. */
#include "daemon/core/state/clock.h"

#include <stdio.h>

#include "lib/base/assert.h"
#include "lib/base/parse.h"

#define SECOND 1000000LL

static int64_t distance(int64_t a, int64_t b)
{
	return a > b ? a - b : b - a;
}

/* "2 d 03:04:05" */
static const char *span(int64_t us, char buf[static 48])
{
	int64_t s = distance(us, 0) / SECOND;

	if (s < 86400)
		snprintf(buf, 48, "%02lld:%02lld:%02lld h", (long long)(s / 3600),
			 (long long)(s / 60 % 60), (long long)(s % 60));
	else
		snprintf(buf, 48, "%lld d %02lld:%02lld:%02lld h", (long long)(s / 86400),
			 (long long)(s / 3600 % 24), (long long)(s / 60 % 60), (long long)(s % 60));
	return buf;
}

static void moved(struct clock_word *w, int64_t before, const struct clock_reading *r,
		  const char *of)
{
	char is[32], was[32], by[48];

	w->verdict = CLOCK_MOVED;
	w->shift = (r->wall - before) / 1000 * 1000; /* times are whole milliseconds */
	w->now = before + w->shift;
	mo_time_format(before, was);
	mo_time_format(r->wall, is);
	w->text = mo_printf("%s %s is %s %s the %swall clock: time goes on from %s; unfinished "
			    "jobs are charged nothing for the difference, and tokens made "
			    "meanwhile keep their lifetime",
			    of, was, span(w->shift, by), w->shift < 0 ? "ahead of" : "behind",
			    r->synced ? "synchronised " : "", is);
}

static void held(struct clock_word *w, int64_t now, const struct clock_reading *r)
{
	char is[32], was[32], by[48];

	w->verdict = CLOCK_HELD;
	w->now = now;
	mo_time_format(now, was);
	mo_time_format(r->wall, is);
	w->text = mo_printf("the wall clock (%s) is not synchronised and %s %s: time goes on from "
			    "%s until a time service has set the clock (timedatectl shows it)",
			    is, span(r->wall - now, by),
			    r->wall > now ? "ahead of what it should be"
					  : "behind the last record or what it should be",
			    was);
}

/* The same boot: what CLOCK_BOOTTIME says is what passed. */
static void same_boot(int64_t expected, int64_t floor, const struct clock_reading *r,
		      struct clock_word *w)
{
	if (distance(r->wall, expected) <= CLOCK_FAR_US)
		w->now = MO_MAX(r->wall, floor);
	else if (r->synced || (expected < CLOCK_SANE_US && r->wall >= CLOCK_SANE_US))
		moved(w, expected, r, "this controller's time");
	else
		held(w, expected, r);
}

static void other_boot(int64_t last, const struct clock_reading *r, struct clock_word *w)
{
	if (r->wall < last - CLOCK_FAR_US && !r->synced)
		held(w, last, r);
	else if (r->wall < last - CLOCK_FAR_US || (r->wall > last + CLOCK_FAR_US && !r->synced))
		moved(w, last, r, "the last record");
	else
		w->now = MO_MAX(r->wall, last);
}

void clock_at_start(const struct state *s, const struct clock_reading *r, struct clock_word *ret)
{
	mo_assert(r->boot_id && r->boot >= 0 && ret);
	*ret = (struct clock_word){ .verdict = CLOCK_RIGHT, .now = r->wall };
	if (s->time <= 0)
		return;
	if (s->clock_boot_id && mo_streq(s->clock_boot_id, r->boot_id) && r->boot >= s->clock_boot)
		same_boot(MO_MAX(s->clock_time + (r->boot - s->clock_boot), s->time), s->time, r,
			  ret);
	else
		other_boot(s->time, r, ret);
	mo_assert(ret->verdict == CLOCK_MOVED || ret->shift == 0);
}

void clock_in_run(int64_t now, const struct clock_reading *r, struct clock_word *ret)
{
	mo_assert(r->boot >= 0 && ret);
	*ret = (struct clock_word){ .verdict = CLOCK_RIGHT, .now = now };
	if (distance(r->wall, now) > CLOCK_FAR_US)
		same_boot(now, now, r, ret);
}

/* 0 is none too. Of a job that was over meanwhile, and whose age is without that time, a mark may
 * well be of before 1970. */
static void move(int64_t *mark, int64_t shift)
{
	if (*mark != MO_NONE && *mark != 0)
		*mark += shift;
}

/* Made in the time that was wrong? */
static bool of_wrong_time(const struct state *s, int64_t time, int64_t now)
{
	return time != MO_NONE &&
	       (time > now || (s->clock_doubt != MO_NONE && time >= s->clock_doubt));
}

static void shift_job(struct job *j, int64_t shift)
{
	int64_t *const marks[] = { &j->created_at,   &j->started_at,       &j->state_since,
				   &j->queued_since, &j->not_before,       &j->progress.at,
				   &j->failure.at,   &j->failure.exit0_at, &j->ledger_at,
				   &j->scan.at,      &j->waterfall.at,     &j->waterfall.gone_at,
				   &j->checks.until, &j->streak.since,     &j->hang.at,
				   &j->hang.since,   &j->straggler.at,     &j->saves.space_at };

	for (size_t i = 0; i < ELEMENTSOF(marks); i++)
		move(marks[i], shift);
	for (size_t i = 0; i < j->n_ledger_marks; i++)
		move(&j->ledger_marks[i].at, shift);
}

static void shift_node(const struct state *s, struct node *n, int64_t shift, int64_t now)
{
	move(&n->spare.since, shift); /* as the ledger of its job */
	if (of_wrong_time(s, n->registered_at, now)) {
		move(&n->registered_at, shift);
		move(&n->findings.learn_until, shift);
	}
	if (of_wrong_time(s, n->drain.at, now))
		move(&n->drain.at, shift);
}

static void shift_token(const struct state *s, struct token *t, int64_t shift, int64_t now)
{
	if (of_wrong_time(s, t->created_at, now)) {
		move(&t->created_at, shift);
		move(&t->expires_at, shift);
	}
	/* or no join token made from now on would bring its node back */
	if (of_wrong_time(s, t->revoked_at, now))
		move(&t->revoked_at, shift);
}

void clock_shift(struct state *s, int64_t shift, int64_t now)
{
	for (size_t i = 0; i < s->n_jobs; i++)
		if (!job_state_final(s->jobs[i]->state))
			shift_job(s->jobs[i], shift);
	for (size_t i = 0; i < s->n_nodes; i++)
		shift_node(s, s->nodes[i], shift, now);
	for (size_t i = 0; i < s->n_tokens; i++)
		shift_token(s, &s->tokens[i], shift, now);
	move(&s->clock_doubt, shift);
	move(&s->clock_leapt, shift);
	move(&s->restored_wait, shift);
}
