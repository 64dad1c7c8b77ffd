/* See hangs.h. One controller, two nodes with two ranks each, one job; agents beat once a second.
 * What moves is read as agents read it (agent/core/agent/motion.h), from counters as in /proc. */
#include "tests/hangs/bed_inner.h"

#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 300
#define TEXT_BYTES_PER_S 200
#define FILE_BYTES_PER_S 50000000
#define CARDS_S 5

static void step_done(struct bed_step *s)
{
	mo_vec_clear(&note_desc, (void **)&s->notes, &s->n_notes);
}

struct bed_step *bed_step(struct bed_node *n, int64_t job, int64_t attempt)
{
	for (size_t i = 0; i < n->n_steps; i++)
		if (n->steps[i].job == job && n->steps[i].attempt == attempt)
			return &n->steps[i];
	return NULL;
}

struct note *bed_note(struct bed *b, int rank, int kind)
{
	struct bed_node *node = &b->nodes[rank / LOCAL];
	struct bed_step *s = bed_step(node, b->job, b->attempt);
	struct note *n;

	if (!s || s->gone)
		return NULL;
	n = mo_vec_add(&note_desc, (void **)&s->notes, &s->n_notes);
	n->n = ++s->written;
	n->kind = kind;
	n->rank = rank;
	n->time = b->now;
	n->mono_ns = b->now * 1000 + n->n;
	return n;
}

/* ---- what the ranks do ---- */

static int printer(const struct bed *b)
{
	return b->s->engine.last ? RANKS - 1 : 0;
}

static void word(struct bed *b, int kind, int phase, int64_t iteration)
{
	struct note *n = bed_note(b, printer(b), kind);

	if (!n)
		return;
	b->ranks[n->rank].log += LINE_BYTES;
	n->phase = phase;
	n->iteration = iteration;
	if (kind == NOTE_CHECKPOINT)
		n->path = mo_printf("/ckpt/%lld", (long long)iteration);
}

static void deliver(struct bed *b)
{
	bool behind = b->s->behind && b->s->engine.all;

	for (int i = 0; i < b->n_lines; i++) {
		struct note *n = bed_note(b, printer(b), NOTE_SAMPLE);

		if (!n)
			break;
		n->sample = mo_desc_new(&sample_desc);
		n->sample->iteration = b->lines[i];
		n->sample->step_ms = b->line_ms[i];
		n->sample->loss = 2;
		for (int r = 0; r < RANKS; r++)
			if (b->s->engine.all || r == printer(b)) {
				b->ranks[r].iteration =
					b->lines[i] - (behind && r == b->s->stuck_odd);
				b->ranks[r].step_ms = b->line_ms[i];
				b->ranks[r].log += LINE_BYTES;
			}
	}
	b->n_lines = 0;
}

static void iterated(struct bed *b)
{
	int64_t i = b->course.iteration;
	int interval = MO_MAX(b->s->engine.interval, 1);

	b->v->steps++;
	/* gradients, at its end; nothing in pauses, evaluations and saves */
	for (int r = 0; r < RANKS && !b->s->sockets; r++)
		b->ranks[r].net = true;
	b->since_line_s += b->stretch.seconds;
	b->since_line_n++;
	if (i % interval && i != 1)
		return;
	b->lines[b->n_lines] = i;
	b->line_ms[b->n_lines++] = b->since_line_s * 1000 / b->since_line_n;
	b->since_line_s = 0;
	b->since_line_n = 0;
	if (b->n_lines >= MO_MAX(b->s->batch, 1))
		deliver(b);
}

/* The last stretch is over. */
static void say(struct bed *b)
{
	const struct prints *e = &b->s->engine;
	int64_t i = b->course.iteration;

	switch (b->stretch.said) {
	case SAID_LOAD:
		if (e->phases)
			word(b, NOTE_PHASE, PHASE_LOAD, MO_NONE);
		break;
	case SAID_ITERATION: iterated(b); break;
	case SAID_SAVING: word(b, NOTE_SAVING, PHASE_NONE, i); break;
	case SAID_SAVED:
		b->saved = i - i % MO_MAX(b->s->save_every, 1);
		word(b, NOTE_CHECKPOINT, PHASE_NONE, b->saved);
		break;
	case SAID_EVAL: word(b, NOTE_PHASE, PHASE_EVAL, MO_NONE); break;
	case SAID_DEATH: bed_end(b, 0, 1, MO_NONE); break;
	case SAID_DONE:
		deliver(b);
		for (int r = 0; r < RANKS; r++)
			bed_end(b, r, 0, MO_NONE);
		break;
	}
}

void bed_end(struct bed *b, int rank, int64_t code, int64_t signal)
{
	struct bed_step *s = bed_step(&b->nodes[rank / LOCAL], b->job, b->attempt);
	struct note *n;

	if (!s || s->gone || s->exited[rank % LOCAL])
		return;
	n = bed_note(b, rank, NOTE_EXIT);
	n->code = code;
	n->signal = signal;
	n->cause = mo_strdup(signal == MO_NONE ? "exited" : "killed");
	s->exited[rank % LOCAL] = true;
	b->trains = false;
	for (int r = 0; r < LOCAL; r++)
		if (!s->exited[r])
			return;
	bed_note(b, rank, NOTE_GONE)->text = mo_strdup("reaped");
	s->gone = true;
}

static void begin(struct bed *b)
{
	b->trains = true;
	b->n_lines = 0;
	for (int r = 0; r < RANKS; r++)
		b->ranks[r] = (struct bed_rank){ .iteration = MO_NONE,
						 .told = MO_NONE,
						 .net_at = MO_NONE };
	for (int r = 0; r < RANKS; r++)
		gpu_work_begin(&b->ranks[r].work);
	course_begin(&b->course, b->s, &b->rng, b->attempt, b->resume);
	b->stretch = (struct stretch){
		.said = SAID_NOTHING, .odd = -1, .others = ACT_COMPUTE, .gpus = GPU_RESTS
	};
	b->stretch_end = b->now;
	if (b->s->engine.phases)
		word(b, NOTE_PHASE, PHASE_INIT, MO_NONE);
}

static void train(struct bed *b)
{
	while (b->trains && b->stretch_end <= b->now && b->stretch.said != SAID_FOR_EVER) {
		say(b);
		if (!b->trains)
			return;
		b->stretch = course_next(&b->course);
		b->stretch_end += (int64_t)(b->stretch.seconds * 1e6);
		if (b->stretch.said == SAID_FOR_EVER)
			b->v->hung_at = b->now;
	}
}

/* A second of what they do, as its counters in /proc. */
static void act(struct bed_rank *r, int what)
{
	r->act = what;
	r->cpu += what == ACT_COMPUTE || what == ACT_TALK ? S
		  : what == ACT_WRITE || what == ACT_READ ? S / 3
		  : what == ACT_SLEEP                     ? S / 200
							  : 0;
	if (what == ACT_WRITE || what == ACT_READ)
		r->io += FILE_BYTES_PER_S;
	if (what == ACT_TALK)
		r->log += TEXT_BYTES_PER_S;
}

/* As measured on two H200 (docs/measured.md). One that trains is seen waiting now and then. */
static void compute(struct bed *b, struct bed_rank *r, int what)
{
	if (what == GPU_WORKS && b->stretch.said == SAID_ITERATION && draw(&b->rng) % 8 == 0)
		what = GPU_SPINS;
	switch (b->s->frozen ? GPU_SPINS : what) {
	case GPU_WORKS:
		gpu_work_take(&r->work, draw_real(&b->rng, 74, 94), draw_real(&b->rng, 20, 28),
			      draw_real(&b->rng, 661, 705), b->now);
		break;
	case GPU_BURNS:
		gpu_work_take(&r->work, 100, 0, draw_real(&b->rng, 400, 700), b->now);
		break;
	case GPU_SPINS:
		gpu_work_take(&r->work, 100, 0, draw_real(&b->rng, 118, 120), b->now);
		break;
	default: gpu_work_take(&r->work, 0, 0, draw_real(&b->rng, 116, 118), b->now); break;
	}
}

static void move(struct bed *b)
{
	for (int r = 0; r < RANKS; r++) {
		struct bed_rank *k = &b->ranks[r];
		bool odd = b->stretch.odd == r;

		act(k, odd ? b->stretch.act : b->stretch.others);
		if (b->s->gpus && b->now / S % CARDS_S == r)
			compute(b, k, odd ? b->stretch.gpu : b->stretch.gpus);
		if (b->now / S % CARDS_S)
			continue;
		if (k->net)
			k->net_at = b->now;
		k->net = false;
	}
}

/* ---- its agents ---- */

static void launched(struct bed *b, struct bed_node *n, const struct command *c)
{
	bool all = true;
	int first = (int)(n - b->nodes) * LOCAL;

	if (bed_step(n, c->job, c->attempt))
		return;
	*MO_GROW(n->steps, n->n_steps) = (struct bed_step){ .job = c->job, .attempt = c->attempt };
	b->job = c->job;
	b->attempt = c->attempt;
	b->resume = MO_MAX(c->launch->resume, 0);
	for (int r = first; r < first + LOCAL; r++)
		bed_note(b, r, NOTE_STARTED)->pid = 1000 + r;
	bed_note(b, first, NOTE_RUNNING)->rank = MO_NONE;
	for (int k = 0; k < BEDS; k++)
		all &= bed_step(&b->nodes[k], c->job, c->attempt) != NULL;
	if (all)
		begin(b);
}

static void scanned(struct bed *b, struct bed_node *n, const struct command *c)
{
	struct scan_result *r = mo_vec_add(&scan_result_desc, (void **)&n->scans, &n->n_scans);
	int64_t last = b->saved;

	r->job = c->job;
	r->attempt = c->attempt;
	r->order = c->order;
	r->id = c->id;
	r->writable = true;
	if (!last || (c->only != MO_NONE && c->only != last))
		return;
	struct found_checkpoint *f = MO_ADD(r, items, &found_checkpoint_desc);
	f->iteration = last;
	f->path = mo_printf("/ckpt/%lld", (long long)last);
	f->bytes = 100;
	f->complete = true;
	f->manifest = mo_printf("m%lld", (long long)last);
	f->level = mo_strdup(c->level);
	f->saved_at = b->now;
}

static void forget(struct bed_node *n, const struct command *c)
{
	struct bed_step *s = bed_step(n, c->job, c->attempt);

	if (!s)
		return;
	step_done(s);
	*s = n->steps[--n->n_steps];
}

static void obey(struct bed *b, struct bed_node *n, const struct sync_reply *r)
{
	bool asked = false;
	int first = (int)(n - b->nodes) * LOCAL;

	for (size_t i = 0; i < r->n_acks; i++) {
		struct bed_step *s = bed_step(n, r->acks[i].job, r->acks[i].attempt);

		if (s)
			s->through = r->acks[i].through;
		while (s && s->n_notes && s->notes[0].n <= s->through)
			mo_vec_remove(&note_desc, s->notes, &s->n_notes, 0);
	}
	for (size_t i = 0; i < r->n_commands; i++) {
		const struct command *c = &r->commands[i];

		switch (c->kind) {
		case CMD_LAUNCH: launched(b, n, c); break;
		case CMD_STOP:
		case CMD_KILL:
			for (int k = first; k < first + LOCAL; k++)
				if (c->attempt == b->attempt)
					bed_end(b, k, MO_NONE, 9);
			break;
		case CMD_FORGET: forget(n, c); break;
		case CMD_SCAN: scanned(b, n, c); break;
		case CMD_MOTION: asked = true; break;
		}
	}
	for (int k = first; k < first + LOCAL; k++) {
		b->ranks[k].told = b->ranks[k].iteration;
		if (!asked)
			b->ranks[k].marks.since = 0;
	}
	n->asked = asked;
}

static int state_of(int what)
{
	return what == ACT_DISK || what == ACT_WORKERS_DISK ? PROCESS_WAITS
	       : what == ACT_STOPPED                        ? PROCESS_STOPPED
							    : PROCESS_RUNS;
}

static void report_ranks(struct bed *b, const struct bed_node *n, struct step_report *rep)
{
	int first = (int)(n - b->nodes) * LOCAL;

	for (int k = first; k < first + LOCAL; k++) {
		struct bed_rank *r = &b->ranks[k];
		struct rank_motion m;

		if (r->iteration != r->told) {
			struct rank_progress *p = MO_ADD(rep, progress, &rank_progress_desc);

			p->rank = k;
			p->iteration = r->iteration;
			p->step_ms = r->step_ms;
			p->phase = PHASE_TRAIN;
		}
		if (!n->asked)
			continue;
		motion_take(&r->marks,
			    &(struct motion_reading){
				    .rank = k,
				    .work = motion_work(&(struct motion_gpu){ r->work.read_at,
									      r->work.worked_at,
									      r->work.spins_since,
									      false },
							1, b->now),
				    .pid = 1000 + k,
				    .log_bytes = r->log,
				    .io_bytes = r->io,
				    .cpu_us = r->cpu,
				    .net_at = b->s->cards ? r->net_at : MO_NONE,
				    .state = state_of(r->act) },
			    b->now);
		if (motion_tell(&r->marks, k, &m))
			*MO_ADD(rep, motion, &rank_motion_desc) = m;
	}
}

static void report(struct bed *b, struct bed_node *n, struct agent_sync *sync)
{
	for (size_t i = 0; i < n->n_steps; i++) {
		const struct bed_step *s = &n->steps[i];
		struct step_report *rep = MO_ADD(sync, steps, &step_report_desc);

		rep->job = s->job;
		rep->attempt = s->attempt;
		rep->written = s->written;
		rep->state = s->gone ? STEP_GONE : STEP_RUNNING;
		for (size_t k = 0; k < s->n_notes; k++)
			mo_desc_copy(&note_desc, MO_ADD(rep, notes, &note_desc), &s->notes[k]);
		if (s->attempt == b->attempt && !s->gone)
			report_ranks(b, n, rep);
	}
}

static void beat(struct bed *b, struct bed_node *n)
{
	struct agent_sync sync;
	struct sync_reply reply;

	mo_desc_init(&agent_sync_desc, &sync);
	sync.node = mo_strdup(n->name);
	sync.boot_id = mo_strdup(n->name);
	sync.instance = mo_strdup(n->name);
	sync.epoch = core_state(b->core)->epoch;
	sync.beat = ++n->beat;
	sync.motion = true;
	report(b, n, &sync);
	sync.scans = n->scans, sync.n_scans = n->n_scans;
	n->scans = NULL, n->n_scans = 0;
	int64_t status =
		bed_decide(b,
			   &(struct core_input){ .type = IN_SYNC,
						 .sync = &(struct in_sync){ .message = &sync } });
	mo_desc_done(&agent_sync_desc, &sync);
	if (status == 409) {
		bed_hello(b, n);
		return;
	}
	mo_desc_init(&sync_reply_desc, &reply);
	core_sync_reply(b->core, n->name, &reply);
	obey(b, n, &reply);
	mo_desc_done(&sync_reply_desc, &reply);
}

void bed_second(struct bed *b)
{
	b->now += S;
	train(b);
	move(b);
	for (int i = 0; i < BEDS; i++) {
		struct bed_node *n = &b->nodes[i];

		if (b->s->cuts && n->cut_until <= b->now && draw(&b->rng) % 300 == 0)
			n->cut_until = b->now + (int64_t)draw_real(&b->rng, 2, 45) * S;
		if (b->away_until <= b->now && n->cut_until <= b->now)
			beat(b, n);
	}
}
