/* The toy agents of a world: they start and end at once what they are told to, unless the test says
 * otherwise, and repeat what is not acknowledged. */
#include "tests/unit/dcore/world_inner.h"

#include <signal.h>

static struct toy_step *toy_step_of(struct toy *t, int64_t job, int64_t attempt)
{
	for (size_t i = 0; i < t->n_steps; i++)
		if (t->steps[i].job == job && (attempt == 0 || t->steps[i].attempt == attempt))
			return &t->steps[i];
	return NULL;
}

static struct note *toy_note(struct toy_step *s, int kind)
{
	struct note *n = mo_vec_add(&note_desc, (void **)&s->notes, &s->n_notes);

	n->n = ++s->written;
	n->kind = kind;
	n->code = kind == NOTE_EXIT ? 0 : MO_NONE;
	n->mono_ns = s->written * 1000;
	return n;
}

static void toy_launch(struct world *w, struct toy *t, const struct command *c)
{
	struct toy_step *s;

	if (toy_step_of(t, c->job, c->attempt) || w->no_launch)
		return;
	s = MO_GROW(t->steps, t->n_steps);
	*s = (struct toy_step){ .job = c->job,
				.attempt = c->attempt,
				.first_rank = c->launch->first_rank,
				.n_ranks = c->launch->n_local,
				.resume = c->launch->resume };
	for (int64_t r = 0; r < s->n_ranks; r++) {
		struct note *n = toy_note(s, NOTE_STARTED);

		n->rank = s->first_rank + r;
		n->pid = 1000 + n->rank;
	}
	toy_note(s, NOTE_RUNNING);
}

static bool rank_exited(const struct toy_step *s, int64_t rank)
{
	for (size_t i = 0; i < s->n_notes; i++)
		if (s->notes[i].kind == NOTE_EXIT && s->notes[i].rank == rank)
			return true;
	return false;
}

static void toy_end(struct world *w, struct toy *t, const struct command *c)
{
	struct toy_step *s = toy_step_of(t, c->job, c->attempt);

	if (w->no_kill || (s && (s->gone || s->hold)))
		return;
	if (!s) {
		s = MO_GROW(t->steps, t->n_steps);
		*s = (struct toy_step){ .job = c->job, .attempt = c->attempt };
		toy_note(s, NOTE_REFUSED)->cause = mo_strdup("stale");
	}
	for (int64_t r = s->first_rank; r < s->first_rank + s->n_ranks; r++)
		if (!rank_exited(s, r)) {
			struct note *n = toy_note(s, NOTE_EXIT);

			n->rank = r;
			n->code = c->kind == CMD_KILL ? MO_NONE : 143;
			n->signal = c->kind == CMD_KILL ? SIGKILL : MO_NONE;
			n->cause = mo_strdup(c->kind == CMD_KILL ? "killed" : "stopped");
		}
	toy_note(s, NOTE_GONE)->text = mo_strdup("reaped");
	s->gone = true;
}

static void toy_forget(struct toy *t, int64_t job, int64_t attempt)
{
	struct toy_step *s = toy_step_of(t, job, attempt);

	if (!s)
		return;
	mo_vec_clear(&note_desc, (void **)&s->notes, &s->n_notes);
	*s = t->steps[t->n_steps - 1];
	t->n_steps--;
}

void toy_reports(const struct toy *t, bool notes, struct step_report **steps, size_t *n)
{
	for (size_t i = 0; i < t->n_steps; i++) {
		const struct toy_step *s = &t->steps[i];
		struct step_report *r = mo_vec_add(&step_report_desc, (void **)steps, n);

		r->job = s->job;
		r->attempt = s->attempt;
		r->written = s->written;
		r->state = s->gone    ? STEP_GONE
			   : s->hung  ? STEP_HUNG
			   : s->waits ? STEP_SPOOLED
				      : STEP_RUNNING;
		r->waits = mo_strdup(s->waits);
		for (size_t k = 0; notes && k < s->n_notes; k++)
			if (s->notes[k].n > s->through)
				mo_desc_copy(&note_desc, MO_ADD(r, notes, &note_desc),
					     &s->notes[k]);
	}
}

/* An order that is repeated no more is forgotten, as the agent does. */
static void toy_forget_checks(struct toy *t, const struct sync_reply *r)
{
	for (size_t i = t->health ? t->health->n_checked : 0; i > 0; i--) {
		bool repeated = false;

		for (size_t k = 0; k < r->n_commands; k++)
			repeated |= r->commands[k].kind == CMD_CHECK &&
				    r->commands[k].job == t->health->checked[i - 1].job &&
				    r->commands[k].attempt == t->health->checked[i - 1].attempt;
		if (repeated || t->health_acked != t->health->version)
			continue;
		mo_vec_remove(&checked_attempt_desc, t->health->checked, &t->health->n_checked,
			      i - 1);
		t->health->version++;
	}
}

static void toy_check(struct world *w, struct toy *t, const struct command *c)
{
	struct checked_attempt *k;

	t->thorough = c->thorough;
	for (size_t i = 0; i < t->health->n_checked; i++)
		if (t->health->checked[i].job == c->job &&
		    t->health->checked[i].attempt == c->attempt)
			return;
	if (w->no_check)
		return;
	k = MO_ADD(t->health, checked, &checked_attempt_desc);
	k->job = c->job;
	k->attempt = c->attempt;
	t->health->version++;
}

/* As moe-ckpt: one checkpoint after its save, else all; what was verified is compared by its
 * manifest. */
static void toy_scan(struct world *w, size_t toy, const struct command *c, struct scan_result *ret)
{
	mo_desc_copy(&scan_result_desc, ret, &w->scan);
	ret->job = c->job;
	ret->attempt = c->attempt;
	ret->order = c->order;
	ret->id = c->id;
	for (size_t i = ret->n_items; i > 0; i--) {
		struct found_checkpoint *f = &ret->items[i - 1];
		bool known = false;

		if (c->only != MO_NONE && f->iteration != c->only) {
			mo_vec_remove(&found_checkpoint_desc, ret->items, &ret->n_items, i - 1);
			continue;
		}
		for (size_t k = 0; k < c->n_known; k++)
			if (c->known[k].iteration == f->iteration && !c->known[k].manifest) {
				if (c->known[k].complete && !w->old_agents &&
				    mo_streq(f->reason, "COMPLETE is missing"))
					f->complete = true;
			} else if (c->known[k].iteration == f->iteration && c->known[k].level &&
				   !w->old_agents) {
				bool read = mo_streq(c->known[k].level, "read");

				known = !mo_streq(c->known[k].manifest, f->manifest);
				f->complete &= f->iteration != w->rotten && !known;
				mo_str_set(&f->reason, !f->complete ? "its content is not what was "
								      "verified"
						       : read       ? "all of it can be read"
								    : NULL);
				mo_str_set(&f->level, f->complete ? c->known[k].level : NULL);
			} else if (c->known[k].iteration == f->iteration) {
				known = true;
				f->complete &= mo_streq(c->known[k].manifest, f->manifest);
			}
		if (known && !f->complete)
			mo_str_set(&f->reason, "a file changed since it was verified");
		if (f->complete && !known && f->manifest && !f->level)
			mo_str_set(&f->level, c->level);
	}
	if (c->only == MO_NONE)
		return;
	assert_in_range(w->n_verified, 0, (int64_t)ELEMENTSOF(w->verified) - 1);
	w->verified[w->n_verified].toy = toy;
	w->verified[w->n_verified].marker = mo_streq(c->level, "marker");
	w->verified[w->n_verified].part = c->part;
	w->verified[w->n_verified++].parts = c->parts;
}

/* What it says of an image that it is ordered: of which one that is, as the order or it knows. */
static void toy_image(struct toy *t, const struct command *c)
{
	struct image_report *r = MO_ADD(t, ordered, &image_report_desc);

	mo_desc_copy(&image_report_desc, r, &t->image);
	mo_str_set(&r->image, c->image->image);
	mo_str_set(&r->user, c->image->user);
	if (c->image->digest)
		mo_str_set(&r->digest, c->image->digest);
	r->job = c->job;
}

/* It looks as long as it is asked in each answer. */
static void toy_watch(const struct world *w, struct toy *t, const struct sync_reply *r)
{
	bool asked = false;

	for (size_t i = 0; i < r->n_commands; i++)
		asked |= r->commands[i].kind == CMD_MOTION;
	if (!asked)
		t->watched_since = 0;
	else if (!t->watched_since)
		t->watched_since = w->now;
}

static int64_t motion_age_ms(const struct world *w, const struct toy *t, int64_t at)
{
	return at == MO_NONE     ? MO_NONE
	       : at == INT64_MAX ? 0
				 : MO_MIN(MO_MAX(w->now - at, 0), w->now - t->watched_since) / 1000;
}

/* Cards and GPUs are read before anybody asks, too. */
static int64_t device_age_ms(const struct world *w, int64_t at)
{
	return at == MO_NONE ? MO_NONE : MO_MAX(w->now - MO_MIN(at, w->now), 0) / 1000;
}

void toy_tell_motion(const struct world *w, const struct toy *t, struct agent_sync *sync)
{
	sync->motion = t->tells_motion;
	sync->doubts = t->doubts;
	for (size_t i = 0; sync->n_steps && i < t->n_progress; i++)
		*MO_ADD(&sync->steps[sync->n_steps - 1], progress, &rank_progress_desc) =
			t->progress[i];
	for (size_t i = 0; sync->n_steps && i < t->n_activity; i++)
		*MO_ADD(&sync->steps[sync->n_steps - 1], activity, &rank_activity_desc) =
			t->activity[i];
	for (size_t i = 0; t->watched_since && i < sync->n_steps; i++)
		for (int64_t r = 0; r < t->steps[i].n_ranks; r++) {
			const struct toy_motion *from = &t->moves[r];
			struct rank_motion *m = MO_ADD(&sync->steps[i], motion, &rank_motion_desc);

			m->rank = t->steps[i].first_rank + r;
			m->watched_ms = (w->now - t->watched_since) / 1000;
			m->log_ms = motion_age_ms(w, t, from->log_at);
			m->io_ms = motion_age_ms(w, t, from->io_at);
			m->cpu_ms = motion_age_ms(w, t, from->cpu_at);
			m->net_ms = device_age_ms(w, from->net_at);
			m->gpu_work_ms = device_age_ms(w, from->gpu ? from->worked_at : MO_NONE);
			m->gpu_spin_ms =
				device_age_ms(w, from->spins_since ? from->spins_since : MO_NONE);
			m->state = from->state;
		}
	for (size_t i = 0; t->watched_since && sync->n_steps && i < t->n_recorders; i++)
		mo_desc_copy(&rank_recorder_desc,
			     MO_ADD(&sync->steps[sync->n_steps - 1], recorder, &rank_recorder_desc),
			     &t->recorders[i]);
}

void toy_obey(struct world *w, struct toy *t, struct agent_sync *sync, const struct sync_reply *r)
{
	t->health_acked = r->health;
	mo_vec_clear(&image_report_desc, (void **)&t->ordered, &t->n_ordered);
	toy_forget_checks(t, r);
	toy_watch(w, t, r);
	for (size_t i = 0; i < r->n_acks; i++) {
		struct toy_step *s = toy_step_of(t, r->acks[i].job, r->acks[i].attempt);

		if (s)
			s->through = r->acks[i].through;
	}
	for (size_t i = 0; i < r->n_commands; i++) {
		const struct command *c = &r->commands[i];

		mo_desc_copy(&command_desc, mo_vec_add(&command_desc, (void **)&t->log, &t->n_log),
			     c);
		assert_string_equal(c->node, t->name);
		switch (c->kind) {
		case CMD_LAUNCH: toy_launch(w, t, c); break;
		case CMD_STOP:
		case CMD_KILL: toy_end(w, t, c); break;
		case CMD_FORGET: toy_forget(t, c->job, c->attempt); break;
		case CMD_SCAN:
			if (w->no_scan && c->only == MO_NONE)
				break;
			for (size_t k = 0; k < c->n_prune && !w->prune_fails; k++)
				for (size_t m = w->scan.n_items; m > 0; m--)
					if (w->scan.items[m - 1].iteration == c->prune[k].iteration)
						mo_vec_remove(&found_checkpoint_desc, w->scan.items,
							      &w->scan.n_items, m - 1);
			if (c->only == MO_NONE || w->verify)
				toy_scan(w, (size_t)(t - w->toys), c,
					 MO_ADD(sync, scans, &scan_result_desc));
			break;
		case CMD_CHECK: toy_check(w, t, c); break;
		case CMD_IMAGE: toy_image(t, c); break;
		case CMD_MOTION: break;
		default: fail_msg("command kind %d", c->kind);
		}
	}
}

void toy_sync(const struct world *w, struct toy *t, struct agent_sync *sync)
{
	mo_desc_init(&agent_sync_desc, sync);
	sync->node = mo_strdup(t->name);
	sync->boot_id = mo_strdup(t->boot);
	sync->instance = mo_strdup(t->instance);
	sync->epoch = core_state(w->core)->epoch;
	sync->beat = ++t->beat;
	sync->mono_ns = t->clock_us ? (w->now - t->clock_us) * 1000 : MO_NONE;
	sync->pulls = t->brings;
	for (size_t i = 0; i < t->n_ordered; i++)
		mo_desc_copy(&image_report_desc, MO_ADD(sync, images, &image_report_desc),
			     &t->ordered[i]);
}

void world_lose_spool(struct world *w, size_t toy)
{
	while (w->toys[toy].n_steps)
		toy_forget(&w->toys[toy], w->toys[toy].steps[0].job, w->toys[toy].steps[0].attempt);
}

struct toy_step *world_toy_step(struct world *w, size_t toy, int64_t job)
{
	struct toy_step *newest = NULL;

	for (size_t i = 0; i < w->toys[toy].n_steps; i++)
		if (w->toys[toy].steps[i].job == job &&
		    (!newest || w->toys[toy].steps[i].attempt > newest->attempt))
			newest = &w->toys[toy].steps[i];
	return newest;
}

struct note *world_note(struct world *w, size_t toy, int64_t job, int kind)
{
	struct toy_step *s = world_toy_step(w, toy, job);

	assert_non_null(s);
	return toy_note(s, kind);
}

void world_iteration(struct world *w, size_t toy, int64_t job, int64_t iteration)
{
	struct note *n = world_note(w, toy, job, NOTE_SAMPLE);

	n->rank = world_toy_step(w, toy, job)->first_rank;
	n->sample = mo_desc_new(&sample_desc);
	n->sample->iteration = iteration;
	n->sample->loss = 1.0 / (double)(iteration + 1);
}

void world_exit(struct world *w, size_t toy, int64_t job, int64_t rank, int64_t code,
		int64_t signal)
{
	struct note *n = world_note(w, toy, job, NOTE_EXIT);
	struct toy_step *s = world_toy_step(w, toy, job);
	bool all = true;

	n->rank = rank;
	n->code = signal ? MO_NONE : code;
	n->signal = signal ? signal : MO_NONE;
	n->cause = mo_strdup(signal ? "signalled" : "exited");
	mo_strs_add(&n->tail, &n->n_tail, "last words");
	for (int64_t r = s->first_rank; r < s->first_rank + s->n_ranks; r++)
		all &= rank_exited(s, r);
	if (all) {
		toy_note(s, NOTE_GONE)->text = mo_strdup("reaped");
		s->gone = true;
	}
}

void world_found(struct world *w, int64_t iteration, bool complete)
{
	struct found_checkpoint *f = MO_ADD(&w->scan, items, &found_checkpoint_desc);

	f->iteration = iteration;
	f->path = mo_printf("/ckpt/%lld", (long long)iteration);
	f->bytes = 100;
	f->saved_at = w->now;
	f->complete = complete;
	f->reason = complete ? NULL : mo_strdup("no COMPLETE file");
}
