/* See step_talk.h. */
#include "agent/step_talk.h"

#include <string.h>

#include "agent/messages.h"
#include "agent/queue.h"
#include "agent/supervisor.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

/* together 5 s: so long may a supervisor stand before it is told of */
#define SILENT_US 3000000
#define PING_US 2000000
#define RETRY_US 20000
#define RETRY_SILENT_US 1000000
#define WORDS_MAX (1024 * 1024) /* unread bytes of one stepd */

static void queue(struct step_dir *d, int type)
{
	struct agent_event e = { .type = type, .job = d->job, .attempt = d->attempt };
	queue_event(d->manager, &e);
}

void step_talk_end(struct step_dir *d)
{
	d->supervisor = supervisor_free(d->supervisor);
	mo_buf_reset(&d->in);
	d->answered = d->up_reported = false;
}

static void word_is_due(struct step_dir *d)
{
	if (d->quiet_since_us == 0)
		d->quiet_since_us = mo_clock_boot_us();
}

static void tell_if_silent(struct step_dir *d)
{
	if (d->silent_reported || d->quiet_since_us == 0 ||
	    mo_clock_boot_us() - d->quiet_since_us < SILENT_US)
		return;
	d->silent_reported = true;
	mo_log(MO_ERR, MSG_STEPD_SILENT,
	       &(struct mo_log_where){ .job = d->job,
				       .attempt = d->attempt,
				       .rank = -1,
				       .node = d->manager->config->node },
	       "%s: the supervisor holds its lock but does not answer; its ranks are left alone. "
	       "Look at its process; `moectl cancel --now` cannot reach it",
	       d->path);
	queue(d, AE_STEPD_SILENT);
}

static void on_word(struct step_dir *d, const struct stepd_word *w)
{
	d->answered = true;
	d->quiet_since_us = 0;
	mo_timer_in(d->timer, PING_US);
	if (!d->up_reported || d->silent_reported)
		queue(d, AE_STEPD_UP);
	d->up_reported = true;
	d->silent_reported = false;
	if (w->written != MO_NONE && w->written > d->journal.last)
		step_dir_read(d);
	for (size_t i = 0; i < w->n_progress; i++) {
		struct agent_event e = { .type = AE_PROGRESS,
					 .job = d->job,
					 .attempt = d->attempt,
					 .progress = mo_desc_dup(&rank_progress_desc,
								 &w->progress[i]) };
		queue_event(d->manager, &e);
	}
}

static void take_words(struct step_dir *d)
{
	size_t at = 0;
	for (char *nl; at < d->in.len && (nl = memchr(d->in.data + at, '\n', d->in.len - at));) {
		struct stepd_word w;
		size_t len = (size_t)(nl - d->in.data) - at;
		mo_desc_init(&stepd_word_desc, &w);
		if (wire_decode(&stepd_word_desc, d->in.data + at, len, false, &w, NULL) == 0)
			on_word(d, &w);
		mo_desc_done(&stepd_word_desc, &w);
		at += len + 1;
	}
	mo_buf_consume(&d->in, at);
}

static void on_words(void *arg, bool ended)
{
	struct step_dir *d = arg;

	take_words(d);
	if (!ended)
		return;
	step_talk_end(d);
	word_is_due(d);
	step_talk_connect(d);
}

void step_talk_connect(struct step_dir *d)
{
	if (d->supervisor || d->lock_fd >= 0)
		return;
	word_is_due(d);
	if (supervisor_connect(d->manager->loop, d->fd, &d->in, WORDS_MAX, on_words, d,
			       &d->supervisor) >= 0) {
		mo_timer_in(d->timer, SILENT_US);
		return;
	}
	step_talk_end(d);
	if (step_dir_lock(d)) {
		step_dir_lost(d, NULL);
		return;
	}
	tell_if_silent(d);
	mo_timer_in(d->timer, d->silent_reported ? RETRY_SILENT_US : RETRY_US);
}

/* Whoever gets the lock has proof that no stepd lives; else one does after all. */
void step_talk_start_failed(struct step_dir *d, const char *text)
{
	if (step_dir_lock(d))
		step_dir_lost(d, text);
	else
		step_talk_connect(d);
}

void step_talk_started(struct step_dir *d, const char *problem)
{
	_cleanup_(mo_freep) char *text =
		problem ? mo_printf("the supervisor could not be started: %s (see %s/stepd.log)",
				    problem, d->path)
			: NULL;
	if (text)
		step_talk_start_failed(d, text);
	else
		step_talk_connect(d);
}

void step_talk_timer(void *arg)
{
	struct step_dir *d = arg;
	if (!d->supervisor) {
		step_talk_connect(d);
		return;
	}
	if (d->answered) {
		d->answered = false;
		word_is_due(d);
		step_talk_order(d, &(struct stepd_order){ .cmd = (char *)"ping",
							  .exec = MO_NONE,
							  .signal = MO_NONE,
							  .grace_us = MO_NONE });
		mo_timer_in(d->timer, SILENT_US);
		return;
	}
	tell_if_silent(d);
	mo_timer_in(d->timer, RETRY_SILENT_US);
}

void step_talk_order(struct step_dir *d, const struct stepd_order *o)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	if (!d->supervisor)
		return; /* the core repeats its orders when stepd answers again */
	wire_encode(&stepd_order_desc, o, &b);
	mo_buf_add(&b, "\n", 1);
	if (supervisor_send(d->supervisor, b.data, b.len) == 0)
		return;
	step_talk_end(d); /* half an order must not stay in the stream */
	word_is_due(d);
	mo_timer_in(d->timer, RETRY_US);
}
