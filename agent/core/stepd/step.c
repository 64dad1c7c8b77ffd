/* The step supervisor's decisions. Called by moe-stepd and by the simulator; never touches the world.
 *
 *   state    | LAUNCH      PORTS ok   PORTS busy      START_FAILED/BIND_FAILED  STOP               KILL             last exit  EMPTY
 *   NEW      | hold/fork   -          -               -                         gone               gone             -          -
 *   PREPARING| as NEW; PREPARED ok -> as LAUNCH, not ok or too late -> refused, kill -> DOWN; STOP and KILL: kill -> DOWN
 *   PORTS    | -           fork all   refused, gone   -                         gone               gone             -          -
 *   UP       | -           -          -               refused, kill -> DOWN     signal -> STOPPING kill -> DOWN     kill->DOWN gone
 *   STOPPING | -           -          -               refused, kill -> DOWN     earlier deadline   kill -> DOWN     kill->DOWN gone
 *   DOWN     | -           -          -               -                         -                  kill again       -          gone
 *   GONE     | nothing more happens
 *
 * Invariants: notes are numbered from 1 without gaps; NOTE_GONE is written exactly once, last, and only when no process of the step is left; every rank that
 * started has one NOTE_EXIT before it; one iteration has at most one NOTE_SAMPLE.
 * A sample waits SAMPLE_WAIT_US for more pieces (a datagram and a printed line tell of the same iteration); any other note writes it first, so that the
 * journal never shows a checkpoint before its iteration. */
#include "agent/core/stepd/step.h"
#include "agent/core/text/lines.h"

#include <signal.h>

#define SAMPLE_WAIT_US 100000
#define SAMPLE_US 1000                 /* room for one sample: 1,000 a second in the long run, */
#define SAMPLES_BURST 20000            /* and so many at once */
#define KILL_AGAIN_US 1000000          /* a tree that forks while it is killed; doubles up to KILL_AGAIN_MAX_US for processes that cannot die */
#define KILL_AGAIN_MAX_US 16000000
#define STUCK_MAX 64                   /* unkillable pids told of */

enum state { NEW, PREPARING, PORTS, UP, STOPPING, DOWN, GONE };

struct local_rank {
	bool started, failed, exited;
	int64_t pid;
	struct rank_progress progress;
};

struct step_core {
	struct launch launch;
	enum state state;
	bool ports_held, refused, stopped;     /* stopped: a planned stop was begun */
	struct local_rank *ranks; size_t n_ranks;
	size_t n_started, n_ended;             /* ended: exited or failed to start */
	int64_t n_notes;
	int64_t prepare_due;                   /* PREPARING: its end */
	int64_t kill_at, kill_again_us;        /* STOPPING: end of grace; DOWN: next repetition */
	bool pending; struct note sample;      /* the sample that waits for more pieces */
	int64_t room_us, room_at, left_out, left_told; /* time saved up for further samples; iterations that came too fast to be told each, and how many of them a note said */
	int64_t sample_due, sample_last;       /* sample_last: highest iteration written */
	int phase; size_t phase_rank;          /* the step's phase is that of its lowest rank that reports any */
	int64_t saving, resumed;               /* iterations last told, MO_NONE none */
	char *saves_to;                        /* told before any save: where all of them go */
	char *saving_to; bool saving_beside;   /* of the last one told: its place; and it was told of a second one */
	struct note checkpoint;                /* last one told */
	int64_t *stuck; size_t n_stuck;
};

struct step_core *step_new(const struct launch *l) {
	struct step_core *s = mo_alloc(sizeof(*s));

	mo_desc_init(&launch_desc, &s->launch);
	mo_desc_copy(&launch_desc, &s->launch, l);
	mo_desc_init(&note_desc, &s->sample);
	mo_desc_init(&note_desc, &s->checkpoint);
	s->room_us = (int64_t)SAMPLES_BURST * SAMPLE_US;
	s->n_ranks = l->n_local > 0 ? (size_t)l->n_local : 0;
	s->ranks = mo_alloc_array(s->n_ranks + 1, sizeof(*s->ranks));
	for (size_t i = 0; i < s->n_ranks; i++) {
		mo_desc_init(&rank_progress_desc, &s->ranks[i].progress);
		s->ranks[i].progress.rank = l->first_rank + (int64_t)i;
	}
	s->phase = PHASE_NONE;
	s->phase_rank = SIZE_MAX;
	s->sample_last = s->saving = s->resumed = MO_NONE;
	return s;
}

struct step_core *step_free(struct step_core *s) {
	if (!s)
		return NULL;
	mo_desc_done(&launch_desc, &s->launch);
	mo_desc_done(&note_desc, &s->sample);
	mo_desc_done(&note_desc, &s->checkpoint);
	free(s->saves_to);
	free(s->saving_to);
	free(s->ranks);
	free(s->stuck);
	free(s);
	return NULL;
}

void step_out_done(struct step_out *out) {
	for (size_t i = 0; i < out->n_effects; i++)
		mo_desc_done(&note_desc, &out->effects[i].note);
	free(out->effects);
	*out = (struct step_out){ 0 };
}

bool note_urgent(const struct note *n) {
	bool exit = n->kind == NOTE_EXIT && !mo_streq(n->cause, "killed"); /* the killed ones travel with the proof that all are gone, a moment later */

	return exit || n->kind == NOTE_REFUSED || n->kind == NOTE_LOST || n->kind == NOTE_GONE ||
	       n->kind == NOTE_RUNNING || n->kind == NOTE_UNKILLABLE || n->kind == NOTE_STOPPING;
}

static struct step_effect *effect(struct step_out *out, int type) {
	struct step_effect *e = MO_GROW(out->effects, out->n_effects);

	e->type = type;
	mo_desc_init(&note_desc, &e->note);
	return e;
}

/* The number is given here and nowhere else. from: the fact told by the shell, NULL none. The caller may fill the rest of the returned note. */
static struct note *put_note(struct step_core *s, struct step_out *out, int kind, const struct note *from) {
	struct note *n = &effect(out, SX_NOTE)->note;

	if (from)
		mo_desc_copy(&note_desc, n, from);
	n->kind = kind;
	n->n = ++s->n_notes;
	return n;
}

static void flush_sample(struct step_core *s, struct step_out *out) {
	if (!s->pending)
		return;
	s->pending = false;
	s->sample_last = s->sample.iteration;
	struct note *n = put_note(s, out, NOTE_SAMPLE, NULL);
	n->rank = s->sample.rank;
	n->sample = TAKE_PTR(s->sample.sample); /* moved: thousands a second may come */
	n->time = s->sample.time;
	n->mono_ns = s->sample.mono_ns;
	if (s->left_out > s->left_told)
		n->left_out = s->left_out - s->left_told;
	s->left_told = s->left_out;
}

/* Every iteration is told, as long as they come no faster than anybody trains; of a flood only as many as there is room for, and the last one. */
static bool sample_room(struct step_core *s, int64_t now) {
	s->room_us = MO_MIN((int64_t)SAMPLES_BURST * SAMPLE_US, s->room_us + MO_MAX(now - s->room_at, 0));
	s->room_at = now;
	if (s->room_us < SAMPLE_US)
		return false;
	s->room_us -= SAMPLE_US;
	return true;
}

static struct note *note(struct step_core *s, struct step_out *out, int kind, const struct note *from) {
	flush_sample(s, out);
	return put_note(s, out, kind, from);
}

static struct local_rank *rank_of(struct step_core *s, const struct note *n) {
	int64_t i = n->rank == MO_NONE ? -1 : n->rank - s->launch.first_rank;

	return i >= 0 && (size_t)i < s->n_ranks ? &s->ranks[i] : NULL;
}

static void release_ports(struct step_core *s, struct step_out *out) {
	if (s->ports_held)
		effect(out, SX_RELEASE_PORTS);
	s->ports_held = false;
}

static void go_gone(struct step_core *s, struct step_out *out, const char *text) {
	release_ports(s, out);
	s->state = GONE;
	mo_str_set(&note(s, out, NOTE_GONE, NULL)->text, text);
	effect(out, SX_DONE);
}

static void kill_tree(struct step_core *s, int64_t now, struct step_out *out) {
	release_ports(s, out);
	s->state = DOWN;
	s->kill_again_us = KILL_AGAIN_US;
	s->kill_at = now + s->kill_again_us;
	effect(out, SX_KILL_TREE);
}

static void go_on(struct step_core *s, struct step_out *out) {
	s->state = s->launch.hold_ports ? PORTS : UP;
	effect(out, s->launch.hold_ports ? SX_HOLD_PORTS : SX_FORK_ALL);
}

static void on_launch(struct step_core *s, int64_t now, struct step_out *out) {
	if (s->state != NEW)
		return;
	if (!s->launch.n_prepare) {
		go_on(s, out);
		return;
	}
	s->state = PREPARING;
	s->prepare_due = s->launch.prepare_limit_us > 0 && s->launch.prepare_limit_us < INT64_MAX - now ? now + s->launch.prepare_limit_us : INT64_MAX;
	effect(out, SX_PREPARE);
}

/* No rank was started, and none will be; what the preparation has started goes. */
static void refuse_prepare(struct step_core *s, const struct note *fact, int64_t now, struct step_out *out) {
	struct note *n = note(s, out, NOTE_REFUSED, fact);

	n->rank = MO_NONE;
	if (!n->cause)
		n->cause = mo_strdup("prepare");
	if (!n->text)
		n->text = mo_printf("engine.prepare has not ended after %lld s and was killed", (long long)(s->launch.prepare_limit_us / 1000000));
	s->refused = true;
	kill_tree(s, now, out);
}

static void on_prepared(struct step_core *s, const struct step_event *e, int64_t now, struct step_out *out) {
	if (s->state != PREPARING)
		return;
	if (e->ok)
		go_on(s, out);
	else
		refuse_prepare(s, &e->note, now, out);
}

static void on_ports(struct step_core *s, const struct step_event *e, struct step_out *out) {
	if (s->state != PORTS)
		return;
	if (e->ok) {
		s->ports_held = true;
		s->state = UP;
		effect(out, SX_FORK_ALL);
		return;
	}
	struct note *n = note(s, out, NOTE_REFUSED, &e->note);
	n->rank = MO_NONE;
	if (!n->cause)
		n->cause = mo_strdup("port-busy");
	go_gone(s, out, "no rank was started: a port of the job is in use");
}

static void on_started(struct step_core *s, const struct step_event *e, int64_t now, struct step_out *out) {
	struct local_rank *r = rank_of(s, &e->note);

	if (!r || r->started || r->failed || s->state < UP)
		return;
	r->started = true;
	r->pid = e->note.pid;
	note(s, out, NOTE_STARTED, &e->note);
	if (++s->n_started == s->n_ranks && !s->refused) {
		release_ports(s, out);
		note(s, out, NOTE_RUNNING, NULL);
	}
	if (s->state == DOWN)
		kill_tree(s, now, out);
}

/* A rank that could not be started (no process of it is left) or whose binding is not what was asked for (it runs, and is killed with the rest). */
static void on_refused(struct step_core *s, const struct step_event *e, int64_t now, struct step_out *out) {
	struct local_rank *r = rank_of(s, &e->note);

	if (!r || s->state < UP || r->failed || (e->type == SE_START_FAILED && r->started))
		return;
	if (e->type == SE_START_FAILED) {
		r->failed = true;
		s->n_ended++;
	}
	if (s->refused || s->state == DOWN)
		return;
	s->refused = true;
	struct note *n = note(s, out, NOTE_REFUSED, &e->note);
	if (!n->cause)
		n->cause = mo_strdup(e->type == SE_BIND_FAILED ? "bind" : "exec");
	kill_tree(s, now, out);
}

static const char *exit_cause(const struct step_core *s, const struct note *n) {
	bool signalled = n->signal != MO_NONE && n->signal > 0;

	if (s->state == DOWN && n->signal == SIGKILL)
		return "killed";
	if (s->stopped)
		return "stopped";
	return signalled ? "signalled" : "exited";
}

static void on_rank_exit(struct step_core *s, const struct step_event *e, int64_t now, struct step_out *out) {
	struct local_rank *r = rank_of(s, &e->note);

	if (!r || r->exited || r->failed || s->state < UP)
		return;
	r->exited = true;
	struct note *n = note(s, out, NOTE_EXIT, &e->note);
	if (n->pid == MO_NONE)
		n->pid = r->started ? r->pid : MO_NONE;
	if (!n->cause)
		n->cause = mo_strdup(exit_cause(s, n));
	n->iteration = r->progress.iteration;  /* the last word of its progress: beats may not have carried it */
	if (++s->n_ended == s->n_ranks && s->state != DOWN)
		kill_tree(s, now, out);        /* what the ranks left behind: nothing of it is of use any more */
}

static void on_stop(struct step_core *s, const struct step_event *e, int64_t now, struct step_out *out) {
	int64_t kill_at = e->grace_us > INT64_MAX - now ? INT64_MAX : now + MO_MAX(e->grace_us, 0);

	if (e->outside && s->state < STOPPING)
		mo_str_set(
			&note(s, out, NOTE_STOPPING, NULL)->text,
			"its supervisor was told to end by its machine (SIGTERM: systemctl stop, or a shutdown)");
	if (s->state == PREPARING) {
		kill_tree(s, now, out);
	} else if (s->state < UP) {
		go_gone(s, out, "stopped before any rank was started");
	} else if (s->state == UP) {
		s->state = STOPPING;
		s->stopped = true;
		s->kill_at = kill_at;
		effect(out, SX_SIGNAL_RANKS)->signal = e->signal > 0 ? e->signal : SIGTERM;
	} else if (s->state == STOPPING) {
		s->kill_at = MO_MIN(s->kill_at, kill_at);   /* a repeated order never gives more time */
	}
}

static void on_empty(struct step_core *s, struct step_out *out) {
	if (s->state < UP)
		return;
	for (size_t i = 0; i < s->n_ranks; i++) {
		struct local_rank *r = &s->ranks[i];

		if (!r->started || r->exited)
			continue;
		r->exited = true;
		struct note *n = note(s, out, NOTE_EXIT, NULL);
		n->rank = r->progress.rank;
		n->pid = r->pid;
		n->cause = mo_strdup("unknown");     /* the status went to nobody: told rather than left out */
	}
	go_gone(s, out, s->n_started ? "every process of the step was reaped" : "no rank was started");
}

static void on_binding(struct step_core *s, const struct step_event *e, struct step_out *out) {
	const struct local_rank *r = rank_of(s, &e->note);

	if (r && s->state == UP && !r->exited)
		note(s, out, NOTE_BINDING, &e->note);
}

static void on_stuck(struct step_core *s, const struct step_event *e, struct step_out *out) {
	for (size_t i = 0; i < s->n_stuck; i++)
		if (s->stuck[i] == e->note.pid)
			return;
	if (s->n_stuck == STUCK_MAX)
		return;
	mo_ints_add(&s->stuck, &s->n_stuck, e->note.pid);
	note(s, out, NOTE_UNKILLABLE, &e->note);
}

static void on_tick(struct step_core *s, int64_t now, struct step_out *out) {
	if (s->pending && now >= s->sample_due)
		flush_sample(s, out);
	if (s->state == PREPARING && now >= s->prepare_due) {
		refuse_prepare(s, NULL, now, out);
	} else if (s->state == STOPPING && now >= s->kill_at) {
		kill_tree(s, now, out);
	} else if (s->state == DOWN && now >= s->kill_at) {
		s->kill_again_us = MO_MIN(s->kill_again_us * 2, KILL_AGAIN_MAX_US);
		s->kill_at = now + s->kill_again_us;
		effect(out, SX_KILL_TREE);
	}
}

static void advance(struct local_rank *r, int64_t iteration) {
	if (iteration != MO_NONE && (r->progress.iteration == MO_NONE || iteration > r->progress.iteration))
		r->progress.iteration = iteration;
}

/* Whether samples of this rank become notes. `any`: whoever tells of an iteration first owns it. */
static bool is_metrics_rank(const struct step_core *s, int64_t rank, int64_t iteration) {
	if (s->launch.metrics_rank == 0)
		return rank == 0;
	if (s->launch.metrics_rank == 1)
		return rank == s->launch.world - 1;
	return !s->pending || s->sample.rank == rank || s->sample.iteration != iteration;
}

static void on_phase(struct step_core *s, struct local_rank *r, const struct note *fact, int phase, struct step_out *out) {
	size_t index = (size_t)(r - s->ranks);

	if (phase <= PHASE_NONE || phase >= _PHASE_N)
		return;
	r->progress.phase = phase;
	if (index > s->phase_rank)
		return;
	s->phase_rank = index;
	if (phase == s->phase)
		return;
	s->phase = phase;
	struct note *n = note(s, out, NOTE_PHASE, fact);
	n->phase = phase;
	n->iteration = MO_NONE;
}

static void on_sample(struct step_core *s, struct local_rank *r, const struct note *fact, int64_t now, struct step_out *out) {
	if (!fact->sample)
		return;
	if (r->progress.phase == PHASE_INIT || r->progress.phase == PHASE_LOAD)
		on_phase(s, r, fact, PHASE_TRAIN, out);        /* an engine that does not say when it begins to train */
	int64_t iteration = fact->sample->iteration != MO_NONE ? fact->sample->iteration : r->progress.iteration;
	advance(r, iteration);
	if (fact->sample->step_ms != MO_NONE_F)
		r->progress.step_ms = fact->sample->step_ms;
	if (iteration == MO_NONE || (s->sample_last != MO_NONE && iteration <= s->sample_last) || !is_metrics_rank(s, fact->rank, iteration))
		return;
	if (s->pending && iteration < s->sample.iteration)
		return;
	if (s->pending && iteration != s->sample.iteration) {
		if (sample_room(s, now)) {
			flush_sample(s, out);
		} else {
			s->pending = false;
			s->left_out++;
		}
	}
	if (s->pending) {
		sample_merge(s->sample.sample, fact->sample);
		return;
	}
	if (!s->sample.sample)
		s->sample.sample = mo_alloc(sizeof(*s->sample.sample));
	*s->sample.sample = *fact->sample;      /* plain values: tens of thousands a second may come */
	s->sample.rank = fact->rank;
	s->sample.time = fact->time;
	s->sample.mono_ns = fact->mono_ns;
	s->sample.iteration = s->sample.sample->iteration = iteration;
	if (s->sample.sample->phase == PHASE_NONE)
		s->sample.sample->phase = r->progress.phase;
	s->pending = true;
	s->sample_due = now + SAMPLE_WAIT_US;
}

static void on_checkpoint(struct step_core *s, const struct note *fact, struct step_out *out) {
	bool again = s->checkpoint.kind == NOTE_CHECKPOINT && s->checkpoint.iteration == fact->iteration;

	if (again && (fact->iteration != MO_NONE || mo_streq(s->checkpoint.path, fact->path)))
		return;
	mo_desc_copy(&note_desc, &s->checkpoint, fact);
	s->checkpoint.kind = NOTE_CHECKPOINT;
	note(s, out, NOTE_CHECKPOINT, fact);
}

/* Every rank of a job may print the same save or resume line: one note each. */
static void on_iteration_fact(struct step_core *s, int kind, int64_t *told, const struct note *fact, struct step_out *out) {
	if (fact->iteration == MO_NONE || *told == fact->iteration)
		return;
	*told = fact->iteration;
	note(s, out, kind, fact);
}

/* The same of a save, but where it has two places: a program of one's own may keep one more on a disk of the node. */
static void on_saving(struct step_core *s, const struct note *fact, struct step_out *out)
{
	bool beside = s->saving == fact->iteration && s->saving_to && fact->path && !s->saving_beside &&
		      !mo_streq(s->saving_to, fact->path);

	if (fact->iteration == MO_NONE || (s->saving == fact->iteration && !beside))
		return;
	s->saving = fact->iteration;
	s->saving_beside = beside;
	mo_str_set(&s->saving_to, fact->path);
	note(s, out, NOTE_SAVING, fact);
}

/* Of a saving line that names its place alone: before the first iteration that is where all saves go, whatever it ends in;
 * later one that ends in digits is one checkpoint. */
static int64_t number_of(const struct local_rank *r, const struct note *fact)
{
	return r->progress.iteration == MO_NONE ? MO_NONE : lines_path_number(fact->path);
}

/* What a rank's lines and datagrams say. */
static void on_fact(struct step_core *s, const struct step_event *e, int64_t now, struct step_out *out) {
	struct local_rank *r = rank_of(s, &e->note);

	if (!r || s->state < UP)
		return;
	struct note fact = e->note;   /* borrowed */

	if (e->type == SE_SAVING && fact.iteration == MO_NONE && fact.path) {
		fact.iteration = number_of(r, &fact);
		if (fact.iteration == MO_NONE && *fact.path != '/')
			return;                /* what a relative one means nobody here knows */
		mo_str_set(&s->saves_to, fact.iteration == MO_NONE ? fact.path : NULL);
		if (fact.iteration == MO_NONE)
			return;
	}
	if ((e->type == SE_SAVING || e->type == SE_CHECKPOINT) && fact.iteration == MO_NONE && !fact.path)
		fact.iteration = r->progress.iteration;   /* "Saving the checkpoint": that of the iteration just told */
	if ((e->type == SE_SAVING || e->type == SE_CHECKPOINT) && !fact.path)
		fact.path = s->saves_to;
	if (e->type != SE_SAMPLE && e->type != SE_SAVING)
		advance(r, e->note.iteration);
	switch (e->type) {
	case SE_SAMPLE: on_sample(s, r, &fact, now, out); break;
	case SE_PHASE: on_phase(s, r, &fact, fact.phase, out); break;
	case SE_READY: on_phase(s, r, &fact, fact.phase > PHASE_NONE ? fact.phase : PHASE_TRAIN, out); break;
	case SE_CHECKPOINT: on_checkpoint(s, &fact, out); break;
	case SE_SAVING: on_saving(s, &fact, out); break;
	case SE_RESUMED: on_iteration_fact(s, NOTE_RESUMED, &s->resumed, &fact, out); break;
	}
}

void step_event(struct step_core *s, const struct step_event *e, int64_t now_us, struct step_out *out) {
	if (s->state == GONE)
		return;
	switch (e->type) {
	case SE_LAUNCH: on_launch(s, now_us, out); break;
	case SE_PREPARED: on_prepared(s, e, now_us, out); break;
	case SE_PORTS: on_ports(s, e, out); break;
	case SE_STARTED: on_started(s, e, now_us, out); break;
	case SE_START_FAILED: case SE_BIND_FAILED: on_refused(s, e, now_us, out); break;
	case SE_EXIT: on_rank_exit(s, e, now_us, out); break;
	case SE_STOP: on_stop(s, e, now_us, out); break;
	case SE_KILL: s->state < UP && s->state != PREPARING ? go_gone(s, out, "killed before any rank was started") : kill_tree(s, now_us, out); break;
	case SE_EMPTY: on_empty(s, out); break;
	case SE_BINDING: on_binding(s, e, out); break;
	case SE_STUCK: on_stuck(s, e, out); break;
	case SE_TICK: on_tick(s, now_us, out); break;
	default: on_fact(s, e, now_us, out); break;
	}
}

int64_t step_deadline(const struct step_core *s) {
	int64_t d = INT64_MAX;

	if (s->state == GONE)
		return d;
	if (s->pending)
		d = s->sample_due;
	if (s->state == PREPARING)
		d = s->prepare_due;
	if (s->state == STOPPING || s->state == DOWN)
		d = MO_MIN(d, s->kill_at);
	return d;
}

void step_progress(const struct step_core *s, size_t i, struct rank_progress *ret) {
	*ret = s->ranks[i].progress;
}

size_t step_n_ranks(const struct step_core *s) {
	return s->n_ranks;
}

int64_t step_left_out(const struct step_core *s) {
	return s->left_out;
}
