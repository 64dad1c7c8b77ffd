/* See campaign.h: the agents, and how they and the controller speak. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/hang.h"
#include "tests/campaign/campaign.h"
#include "tests/core_inside.h"

void node_wake(int i)
{
	if (w.nodes[i].queued || w.nodes[i].dead)
		return;
	w.nodes[i].queued = true;
	w.woken[w.n_woken++] = i;
}

static int node_of(const char *name)
{
	int64_t ret = 0;

	for (const char *c = name + 1; *c; c++)
		ret = ret * 10 + (*c - '0');
	return (int)ret;
}

static void heard(const struct core_out *out, int64_t *status)
{
	for (size_t i = 0; i < out->n_effects; i++) {
		const struct effect *e = &out->effects[i];

		switch (e->type) {
		case FX_WAKE: node_wake(node_of(e->node)); break;
		case FX_POWER: train_power_asked(e->node); break;
		case FX_REPLY: *status = e->reply->status; break;
		case FX_EVENT:
			if (getenv("TRACE") && strncmp(e->event->event->type, "rank.", 5) != 0)
				printf("%.1f %s %s\n", (double)(w.now - w.began) / 1e6,
				       e->event->event->type, e->event->event->message);
			train_event(e->event->event->type, e->event->event->rank);
			break;
		default: break;
		}
	}
}

int64_t decide(struct core_input *in)
{
	struct core_out out = { 0 };
	int64_t status = 0;
	const struct job *j;

	in->request = 1;
	core_turn(w.core, in, w.now, &out);
	heard(&out, &status);
	core_out_done(&out);
	j = the_job();
	if (j && j->failure.decided && w.pending >= 0 && !w.decided) {
		w.decided = true;
		times_add(&w.detected[w.pending], w.now - w.faulted_at);
	}
	return status;
}

static void boot_name(const struct cnode *n, char buf[static 32])
{
	snprintf(buf, 32, "%s-%lld", n->name, (long long)n->boot);
}

void node_hello(int i)
{
	struct cnode *n = &w.nodes[i];
	struct agent_hello h;
	char boot[32];

	boot_name(n, boot);
	mo_desc_init(&agent_hello_desc, &h);
	h.node = mo_strdup(n->name);
	h.boot_id = mo_strdup(boot);
	h.instance = mo_strdup(boot);
	h.protocol = MO_PROTOCOL;
	h.address = mo_strdup("10.0.0.1");
	for (int64_t k = 0; k < LOCAL; k++) {
		struct gpu_slot *g = MO_ADD(&h.info, gpus, &gpu_slot_desc);

		g->index = k;
		g->vendor = mo_strdup("amd");
		g->model = mo_strdup("mi300x");
	}
	decide(&(struct core_input){ .type = IN_HELLO,
				     .hello = &(struct in_hello){ .message = &h } });
	mo_desc_done(&agent_hello_desc, &h);
	node_wake(i);
}

void node_boots(int i)
{
	struct cnode *n = &w.nodes[i];

	n->dead = n->has = false;
	n->boot++;
	n->ends_at = n->asked_at = 0;
	mo_vec_clear(&note_desc, (void **)&n->notes, &n->n_notes);
	node_hello(i);
}

static struct note *note(int i, int kind, int64_t rank)
{
	struct cnode *n = &w.nodes[i];
	struct note *k = mo_vec_add(&note_desc, (void **)&n->notes, &n->n_notes);

	k->n = ++n->written;
	k->kind = kind;
	k->rank = rank;
	k->time = w.now;
	k->mono_ns = w.now * 1000;
	node_wake(i);
	return k;
}

void node_rank_ends(int i, int64_t rank, int64_t signal)
{
	struct cnode *n = &w.nodes[i];
	bool all = true;
	struct note *k;

	if (!n->has || n->gone || n->exited[rank])
		return;
	k = note(i, NOTE_EXIT, n->first + rank);
	k->signal = signal;
	k->cause = mo_strdup(signal == 9 ? "killed" : "signalled");
	n->exited[rank] = true;
	w.stage = STAGE_NONE;
	for (int r = 0; r < LOCAL; r++)
		all &= n->exited[r];
	if (!all)
		return;
	note(i, NOTE_GONE, MO_NONE)->text = mo_strdup("reaped");
	n->gone = true;
}

void node_all_end(int i)
{
	w.nodes[i].ends_at = 0;
	for (int64_t r = 0; r < LOCAL; r++)
		node_rank_ends(i, r, 9);
}

void lead_says(int kind, int phase, int64_t iteration)
{
	const struct cnode *n = &w.nodes[w.lead];
	struct note *k;

	if (n->gone || n->dead)
		return;
	k = note(w.lead, kind, 0);
	k->phase = phase;
	k->iteration = iteration;
	if (kind == NOTE_CHECKPOINT)
		k->path = mo_printf("/ckpt/%lld", (long long)iteration);
	if (kind == NOTE_SAMPLE) {
		k->iteration = MO_NONE;
		k->sample = mo_desc_new(&sample_desc);
		k->sample->iteration = iteration;
		k->sample->step_ms = w.o.step_s * 1000 * (w.slow >= 0 ? SLOWER : 1);
	}
}

static void launched(int i, const struct command *c)
{
	struct cnode *n = &w.nodes[i];

	if (n->has && n->attempt == c->attempt)
		return;
	mo_vec_clear(&note_desc, (void **)&n->notes, &n->n_notes);
	n->has = true, n->gone = false;
	n->job = c->job, n->attempt = c->attempt, n->first = c->launch->first_rank;
	n->written = n->through = 0;
	memset(n->exited, 0, sizeof(n->exited));
	for (int64_t r = 0; r < LOCAL; r++)
		note(i, NOTE_STARTED, n->first + r)->pid = 1000 + r;
	note(i, NOTE_RUNNING, MO_NONE);
	w.resume = MO_MAX(c->launch->resume, 0);
	if (n->first == 0)
		w.lead = i;
	train_launched(n);
}

static void scanned(int i, const struct command *c)
{
	struct cnode *n = &w.nodes[i];
	struct scan_result *r = mo_vec_add(&scan_result_desc, (void **)&n->scans, &n->n_scans);
	struct found_checkpoint *f;

	r->job = c->job, r->attempt = c->attempt, r->order = c->order, r->id = c->id;
	r->writable = true;
	node_wake(i);
	if (!w.saved_iteration || (c->only != MO_NONE && c->only != w.saved_iteration))
		return;
	f = MO_ADD(r, items, &found_checkpoint_desc);
	f->iteration = w.saved_iteration;
	f->path = mo_printf("/ckpt/%lld", (long long)w.saved_iteration);
	f->bytes = 100;
	f->complete = true;
	f->manifest = mo_printf("m%lld", (long long)w.saved_iteration);
	f->level = mo_strdup(c->level);
	f->saved_at = w.saved_at;
}

static void stopped(struct cnode *n, int i, const struct command *c)
{
	if (c->attempt != n->attempt || n->gone)
		return;
	/* asked where they stand, they take all the time that they are given */
	if (c->kind == CMD_STOP && c->signal == HANG_SIGNAL && !n->ends_at) {
		n->ends_at = w.now + c->grace_us;
		w.end_at = MO_MIN(w.end_at, n->ends_at);
	} else if (c->kind == CMD_KILL || c->signal != HANG_SIGNAL) {
		node_all_end(i);
	}
}

static void obey(int i, const struct sync_reply *r)
{
	struct cnode *n = &w.nodes[i];
	bool asked = false;

	for (size_t k = 0; k < r->n_acks; k++)
		if (n->has && r->acks[k].attempt == n->attempt)
			n->through = r->acks[k].through;
	if (n->n_notes && n->notes[n->n_notes - 1].n <= n->through)
		mo_vec_clear(&note_desc, (void **)&n->notes, &n->n_notes);
	for (size_t k = 0; k < r->n_commands; k++) {
		const struct command *c = &r->commands[k];

		switch (c->kind) {
		case CMD_LAUNCH: launched(i, c); break;
		case CMD_STOP:
		case CMD_KILL: stopped(n, i, c); break;
		case CMD_SCAN: scanned(i, c); break;
		case CMD_MOTION: asked = true; break;
		case CMD_FORGET:
			if (c->attempt == n->attempt)
				n->has = false, node_wake(i);
			break;
		default: break;
		}
	}
	if (asked)
		w.look_at = MO_MIN(w.look_at, w.now + LOOKS);
	n->asked_at = !asked ? 0 : n->asked_at ? n->asked_at : w.now;
}

/* As agents read it: from when they were asked on, each kind by when it last moved. */
static void motion(const struct cnode *n, struct step_report *rep)
{
	for (int64_t r = 0; r < LOCAL; r++) {
		bool one = w.hung == FAULT_STOPPED && n->first + r == w.hung_rank;
		int64_t age = w.hung < 0 ? 0 : (w.now - MO_MAX(w.faulted_at, n->asked_at)) / 1000;
		int64_t gpu = w.hung < 0 ? 0 : MO_MAX(w.now - w.faulted_at - READS, 0) / 1000;

		*MO_ADD(rep, motion, &rank_motion_desc) =
			(struct rank_motion){ .rank = n->first + r,
					      .watched_ms = (w.now - n->asked_at) / 1000,
					      .log_ms = age,
					      .io_ms = age,
					      .cpu_ms = one ? age : 0,
					      .net_ms = w.o.net ? age : MO_NONE,
					      .gpu_work_ms = w.o.gpus ? gpu : MO_NONE,
					      .gpu_spin_ms =
						      !w.o.gpus || one || !gpu ? MO_NONE : gpu,
					      .state = one ? PROCESS_STOPPED : PROCESS_RUNS };
	}
}

void node_beat(int i)
{
	struct cnode *n = &w.nodes[i];
	struct agent_sync sync;
	struct sync_reply reply;
	char boot[32];
	int64_t status;

	n->queued = false;
	if (n->dead)
		return;
	boot_name(n, boot);
	mo_desc_init(&agent_sync_desc, &sync);
	sync.node = mo_strdup(n->name);
	sync.boot_id = mo_strdup(boot);
	sync.instance = mo_strdup(boot);
	sync.epoch = core_state(w.core)->epoch;
	sync.beat = ++n->beat;
	sync.motion = true;
	if (n->has) {
		struct step_report *rep = MO_ADD(&sync, steps, &step_report_desc);

		rep->job = n->job, rep->attempt = n->attempt, rep->written = n->written;
		rep->state = n->gone ? STEP_GONE : STEP_RUNNING;
		for (size_t k = 0; k < n->n_notes; k++)
			mo_desc_copy(&note_desc, MO_ADD(rep, notes, &note_desc), &n->notes[k]);
		if (n->asked_at && !n->gone)
			motion(n, rep);
	}
	sync.scans = n->scans, sync.n_scans = n->n_scans;
	n->scans = NULL, n->n_scans = 0;
	status = decide(&(struct core_input){ .type = IN_SYNC,
					      .sync = &(struct in_sync){ .message = &sync } });
	mo_desc_done(&agent_sync_desc, &sync);
	if (status == 409) {
		node_hello(i);
		return;
	}
	mo_desc_init(&sync_reply_desc, &reply);
	core_sync_reply(w.core, n->name, &reply);
	obey(i, &reply);
	mo_desc_done(&sync_reply_desc, &reply);
}
