/* See stepd_start.h. */
#include "agent/core/stepd/stepd_start.h"

#include "agent/core/stepd/stepd_end.h"
#include "lib/base/assert.h"

static bool has_files(const struct launch *l)
{
	for (size_t i = 0; i < l->n_env; i++)
		if (l->env[i].file)
			return true;
	return false;
}

/* Files of variables and the engine's own configuration are read where the ranks will run, before
 * any of them. */
static void go_up(struct stepd_core *s, struct stepd_out *out)
{
	bool read = s->launch.config || s->launch.n_inputs || has_files(&s->launch);

	mo_assert(s->state == PREPARING || s->state == PORTS || s->state == NEW ||
		  s->state == NAMESPACE);
	s->state = read ? READING : UP;
	stepd_effect(out, read ? SX_READ_CONFIG : SX_FORK_ALL);
}

static void go_on(struct stepd_core *s, struct stepd_out *out)
{
	if (!s->launch.hold_ports) {
		go_up(s, out);
		return;
	}
	s->state = PORTS;
	stepd_effect(out, SX_HOLD_PORTS);
}

/* Nothing of the job runs yet, not even engine.prepare. */
static void begin(struct stepd_core *s, int64_t now, struct stepd_out *out)
{
	int64_t limit = s->launch.prepare_limit_us;

	if (!s->launch.n_prepare) {
		go_on(s, out);
		return;
	}
	s->state = PREPARING;
	s->prepare_due = limit > 0 && limit < INT64_MAX - now ? now + limit : INT64_MAX;
	stepd_effect(out, SX_PREPARE);
}

void stepd_on_launch(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		     struct stepd_out *out)
{
	mo_assert(s->state == NEW);
	if (!s->own_namespace && !s->launch.container) {
		begin(s, now, out);
		return;
	}
	s->state = NAMESPACE;
	stepd_effect(out, SX_NAMESPACE);
}

/* No rank was started, and none will be; what was started before goes. */
static void refuse_step(struct stepd_core *s, const struct note *fact, const char *cause,
			int64_t now, struct stepd_out *out)
{
	struct note *n = stepd_core_note(s, out, NOTE_REFUSED, fact);

	n->rank = MO_NONE;
	if (!n->cause)
		n->cause = mo_strdup(cause);
	s->refused = true;
	stepd_kill_tree(s, now, out);
}

void stepd_on_namespace(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			struct stepd_out *out)
{
	if (e->ok)
		begin(s, now, out);
	else
		refuse_step(s, &e->note, "namespace", now, out);
}

void stepd_on_prepared(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		       struct stepd_out *out)
{
	if (e->ok)
		go_on(s, out);
	else
		refuse_step(s, &e->note, "prepare", now, out);
}

void stepd_on_ports(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		    struct stepd_out *out)
{
	mo_assert(s->state == PORTS && !s->ports_held);
	if (e->ok) {
		s->ports_held = true;
		go_up(s, out);
		return;
	}
	struct note *n = stepd_core_note(s, out, NOTE_REFUSED, &e->note);
	n->rank = MO_NONE;
	if (!n->cause)
		n->cause = mo_strdup("port-busy");
	stepd_go_gone(s, out, "no rank was started: a port of the job is in use");
}

/* No rank was started, and none will be; who reads is in the tree. */
void stepd_on_config_read(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			  struct stepd_out *out)
{
	if (e->ok) {
		s->state = UP;
		stepd_effect(out, SX_FORK_ALL);
		return;
	}
	struct note *n = stepd_core_note(s, out, NOTE_REFUSED, &e->note);
	if (!n->cause)
		n->cause = mo_strdup("config");
	s->refused = true;
	stepd_kill_tree(s, now, out);
}

static bool rank_started(struct stepd_core *s, const struct note *fact, struct stepd_out *out)
{
	struct local_rank *r = stepd_core_rank_of(s, fact);

	if (!r || r->started || r->failed)
		return false;
	r->started = true;
	r->pid = fact->pid;
	mo_assert(s->n_started < s->n_ranks);
	stepd_core_note(s, out, NOTE_STARTED, fact);
	if (++s->n_started == s->n_ranks && !s->refused) {
		stepd_release_ports(s, out);
		stepd_core_note(s, out, NOTE_RUNNING, NULL);
	}
	return true;
}

void stepd_on_started(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		      struct stepd_out *out)
{
	rank_started(s, &e->note, out);
}

/* It was forked before the kill and is found now. */
void stepd_on_started_late(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			   struct stepd_out *out)
{
	if (rank_started(s, &e->note, out))
		stepd_kill_tree(s, now, out);
}

/* No process of this rank is left; true: reported for the first time. */
static bool rank_failed(struct stepd_core *s, const struct note *fact)
{
	struct local_rank *r = stepd_core_rank_of(s, fact);

	if (!r || r->failed || r->started)
		return false;
	r->failed = true;
	s->n_ended++;
	mo_assert(s->n_ended <= s->n_ranks);
	return true;
}

static void refuse_rank(struct stepd_core *s, const struct note *fact, const char *cause,
			int64_t now, struct stepd_out *out)
{
	struct note *n = stepd_core_note(s, out, NOTE_REFUSED, fact);

	s->refused = true;
	if (!n->cause)
		n->cause = mo_strdup(cause);
	stepd_kill_tree(s, now, out);
}

void stepd_on_start_failed(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			   struct stepd_out *out)
{
	if (rank_failed(s, &e->note))
		refuse_rank(s, &e->note, "exec", now, out);
}

void stepd_on_start_failed_late(struct stepd_core *s, const struct stepd_event *e, int64_t now,
				struct stepd_out *out)
{
	rank_failed(s, &e->note);
}

/* The rank runs, but not where it was asked for; it is killed with the rest. */
void stepd_on_bind_failed(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			  struct stepd_out *out)
{
	const struct local_rank *r = stepd_core_rank_of(s, &e->note);

	if (r && !r->failed)
		refuse_rank(s, &e->note, "bind", now, out);
}

void stepd_on_binding(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		      struct stepd_out *out)
{
	const struct local_rank *r = stepd_core_rank_of(s, &e->note);

	if (r && !r->exited)
		stepd_core_note(s, out, NOTE_BINDING, &e->note);
}

void stepd_on_tick_preparing(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			     struct stepd_out *out)
{
	struct note late;

	if (now < s->prepare_due)
		return;
	mo_desc_init(&note_desc, &late);
	late.text = mo_printf("engine.prepare has not ended after %lld s and was killed",
			      (long long)(s->launch.prepare_limit_us / 1000000));
	refuse_step(s, &late, "prepare", now, out);
	mo_desc_done(&note_desc, &late);
}
