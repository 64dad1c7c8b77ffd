/* See scenarios.h: what happens, when the cell's moment has come, and what agents see of it. */
#include "tests/scenarios/scenarios.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define HOUR (3600 * S)

const char *const kind_names[_KIND_N] = {
	"nothing",
	"segfault",
	"killed",
	"exception",
	"ras-said",
	"ras-proved",
	"watchdog",
	"oom-host",
	"oom-gpu",
	"no-space",
	"reboot",
	"quick-reboot",
	"cut",
	"cut-spare",
	"flapping",
	"agent-killed",
	"supervisor-lost",
	"stopped",
	"asleep",
	"collective",
	"collective-unread",
	"disk-wait",
	"nfs-minute",
	"straggler",
	"nan",
	"spike",
	"torn",
	"rotten",
	"vanished",
	"log-disk-full",
	"state-disk-full",
	"clock-jump",
	"contradiction",
	"liar",
	"announced",
};
const char *const kind_means[_KIND_N] = {
	"nothing happens; the phase takes as long as such phases do",
	"a rank dies of SIGSEGV",
	"a rank is killed (SIGKILL)",
	"a rank exits 1 with a Python exception",
	"a rank's log says an uncorrectable ECC error, and it aborts",
	"the same, and a check of its node finds it too",
	"all ranks abort: the collective watchdog timed out",
	"a rank is killed for the memory of the host",
	"a rank exits 1: the GPU is out of memory",
	"a rank exits 1: no space left on device",
	"a node goes silent and is back with another boot a minute later",
	"a node boots between two beats",
	"a node is cut off for ever; on_node_loss: wait",
	"the same with on_node_loss: spare and a fence_command that proves it off",
	"a node's link flaps: six times 5 s away and 5 s back",
	"an agent is killed and back after 20 s",
	"the supervisor of a node's step is lost",
	"a rank is stopped by SIGSTOP; the GPUs of the others spin",
	"a rank sleeps; the GPUs of the others spin",
	"all ranks wait in a collective; GPUs and cards can be read",
	"the same; neither can be read",
	"a rank waits in the kernel for ever (D); the GPUs of the others spin",
	"the file system of all ranks stands for a minute (D)",
	"a GPU takes half as long again for each step",
	"the loss is no number from now on",
	"the loss is a hundred times too high from now on",
	"the newest checkpoint is half written; then a rank is killed",
	"whoever loads the newest checkpoint dies; then a rank is killed",
	"checkpoint.dir is gone; then a rank is killed",
	"the disk of a node's steps is full when it launches",
	"the controller can store nothing for ten minutes, ends and starts again",
	"the controller's clock jumps twelve hours ahead",
	"a rank dies of SIGSEGV, and another's log tells of broken hardware",
	"a rank tells of iteration 1,000,000",
	"a checkpoint is announced that is not there; then a rank is killed",
};

static void killed(struct play *p)
{
	play_ends(p, p->rank, 0, SIGKILL, NULL, "");
}

static void node_back(struct play *p)
{
	p->w.toys[p->node].deaf = false;
	world_reboot(&p->w, p->node);
}

static void away(struct play *p, int64_t us)
{
	p->w.toys[p->node].deaf = true;
	p->back_at = p->w.now + us;
}

static struct found_checkpoint *newest_file(struct play *p)
{
	struct found_checkpoint *f = NULL;

	for (size_t i = 0; i < p->w.scan.n_items; i++)
		if (p->w.scan.items[i].iteration == play_newest(p))
			f = &p->w.scan.items[i];
	return f;
}

static void supervisor_lost(struct play *p)
{
	struct toy_step *s = world_toy_step(&p->w, p->node, p->id);

	world_note(&p->w, p->node, p->id, NOTE_LOST)->cause = mo_strdup("supervisor-lost");
	world_note(&p->w, p->node, p->id, NOTE_GONE)->text = mo_strdup("no process is left");
	s->gone = p->over = true;
}

static void refused(struct play *p)
{
	const struct command *c = NULL;
	const struct toy *t = &p->w.toys[p->node];
	struct toy_step *s;
	struct note *n;

	for (size_t i = 0; i < t->n_log; i++)
		if (t->log[i].kind == CMD_LAUNCH)
			c = &t->log[i];
	assert_non_null(c);
	s = MO_GROW(p->w.toys[p->node].steps, p->w.toys[p->node].n_steps);
	*s = (struct toy_step){ .job = c->job, .attempt = c->attempt, .gone = true };
	n = world_note(&p->w, p->node, p->id, NOTE_REFUSED);
	n->cause = mo_strdup("spool");
	n->text = mo_strdup("the step directory cannot be written: No space left on device");
	world_note(&p->w, p->node, p->id, NOTE_GONE)->text = mo_strdup("nothing was started");
}

static void dies_with(struct play *p)
{
	static const char ecc[] = "HIP error: uncorrectable ECC error encountered";

	switch (p->kind) {
	case K_SEGV: play_ends(p, p->rank, 0, SIGSEGV, NULL, ""); break;
	case K_EXIT: play_ends(p, p->rank, 1, 0, NULL, "ValueError: x is not in list"); break;
	case K_RAS_PROVED:
		world_finding(&p->w, p->node, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
		p->w.toys[p->node].health->results[0].hardware = true;
		play_ends(p, p->rank, 0, SIGABRT, NULL, ecc);
		break;
	case K_RAS_SAID: play_ends(p, p->rank, 0, SIGABRT, NULL, ecc); break;
	case K_WATCHDOG:
		for (int64_t r = 0; r < 2 * LOCAL; r++)
			play_ends(p, r, 0, SIGABRT, NULL,
				  "[rank0]:[E] Watchdog caught collective operation timeout: "
				  "WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 600000 "
				  "milliseconds before timing out");
		break;
	case K_OOM_HOST: play_ends(p, p->rank, 0, SIGKILL, "oom", ""); break;
	case K_OOM_GPU:
		play_ends(p, p->rank, 1, 0, NULL,
			  "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 8.00 GiB");
		break;
	case K_NO_SPACE:
		play_ends(p, p->rank, 1, 0, NULL, "OSError: [Errno 28] No space left on device");
		break;
	case K_CONTRADICTION:
		play_ends(p, p->rank, 0, SIGSEGV, NULL, "Connection reset by peer");
		play_ends(p, 0, 0, SIGABRT, NULL, ecc);
		break;
	default: killed(p); break;
	}
}

static void spoils(struct play *p)
{
	struct found_checkpoint *f = newest_file(p);
	struct note *n;

	switch (p->kind) {
	case K_TORN:
		f->complete = false;
		mo_str_set(&f->reason, "COMPLETE is empty");
		break;
	case K_ROTTEN: p->rotten = f->iteration; break;
	case K_VANISHED: p->w.scan.error = mo_strdup("No such file or directory"); break;
	case K_ANNOUNCED:
		n = world_note(&p->w, p->on[0], p->id, NOTE_CHECKPOINT);
		n->iteration = p->iteration + 1;
		n->path = mo_strdup("/ckpt/nowhere");
		break;
	default: break;
	}
}

void kind_happens(struct play *p)
{
	switch (p->kind) {
	case K_NOTHING: break;
	case K_REBOOT:
	case K_AGENT:
		away(p, p->kind == K_REBOOT ? MINUTE : 20 * S);
		p->over |= p->kind == K_REBOOT;
		break;
	case K_QUICK_REBOOT:
		node_back(p);
		p->over = true;
		break;
	case K_CUT:
	case K_CUT_SPARE: p->w.toys[p->node].deaf = p->over = true; break;
	case K_FLAPPING: p->flaps = 12; break;
	case K_SUPERVISOR: supervisor_lost(p); break;
	case K_STOPPED:
	case K_ASLEEP:
	case K_COLLECTIVE:
	case K_COLLECTIVE_UNREAD:
	case K_DISK: p->stuck = true; break;
	case K_NFS: p->asleep_until = p->w.now + MINUTE; break;
	case K_STRAGGLER: p->slow = true; break;
	case K_NAN: p->loss = NAN; break;
	case K_SPIKE: p->loss = 100; break;
	case K_LOG_DISK: refused(p); break;
	case K_STATE_DISK:
		p->absent = true;
		p->back_at = p->w.now + 10 * MINUTE;
		break;
	case K_CLOCK: /* the ranks need as long as before */
		p->w.now += 12 * HOUR;
		p->until += 12 * HOUR;
		p->changed_at = p->hurt_at = p->w.now;
		break;
	case K_LIAR: p->lies = true; break;
	case K_TORN:
	case K_ROTTEN:
	case K_VANISHED:
	case K_ANNOUNCED:
		spoils(p);
		if (p->attempt && !p->over)
			killed(p);
		break;
	default: dies_with(p); break;
	}
}

static void powers(struct play *p)
{
	struct in_power power = { p->w.toys[p->node].name, p->w.toys[p->node].boot, true,
				  (char *)"chassis power is off" };

	if (p->w.n_powers == p->powers)
		return;
	p->powers = p->w.n_powers;
	world_step(&p->w, &(struct core_input){ .type = IN_POWER, .power = &power });
}

void kind_goes_on(struct play *p)
{
	struct toy *t = &p->w.toys[p->node];
	bool due = p->back_at && p->back_at <= p->w.now;

	powers(p);
	if (play_job(p)->attempt > p->attempt_before && !p->stuck)
		p->slow = p->lies = false, p->loss = MO_NONE_F;
	if (p->flaps && p->hurt_at + (13 - p->flaps) * 5 * S <= p->w.now) {
		t->deaf = --p->flaps % 2;
		p->changed_at = p->w.now;
	}
	if (!due)
		return;
	p->back_at = 0;
	p->changed_at = p->w.now;
	play_pace(p);
	if (p->kind == K_REBOOT) {
		node_back(p);
	} else if (p->kind == K_AGENT) {
		t->deaf = false;
		snprintf(t->instance, sizeof(t->instance), "again");
		t->beat = 0;
		world_hello(&p->w, p->node);
	} else {
		p->absent = false;
		world_crash(&p->w);
	}
}

/* A rank that is well, by what it does. */
static struct toy_motion well(const struct play *p)
{
	struct toy_motion m = { .log_at = p->changed_at,
				.io_at = p->changed_at,
				.cpu_at = MOVES,
				.net_at = p->changed_at,
				.state = PROCESS_RUNS,
				.gpu = true,
				.worked_at = p->changed_at };

	switch (p->doing) {
	case DO_IMPORT:
	case DO_LOAD:
	case DO_SAVE: m.io_at = MOVES; break;
	case DO_STEP: m.worked_at = m.net_at = MOVES; break;
	case DO_EVAL: m.worked_at = MOVES; break;
	default: break;
	}
	return m;
}

/* It waits for a peer since then. */
static struct toy_motion waits(const struct play *p)
{
	struct toy_motion m = well(p);

	m.log_at = m.io_at = m.net_at = m.worked_at = m.spins_since = p->hurt_at;
	return m;
}

static struct toy_motion odd(const struct play *p)
{
	struct toy_motion m = waits(p);

	if (p->kind == K_STOPPED || p->kind == K_ASLEEP || p->kind == K_DISK) {
		m.cpu_at = p->hurt_at;
		m.spins_since = 0;
	}
	if (p->kind == K_STOPPED)
		m.state = PROCESS_STOPPED;
	if (p->kind == K_DISK)
		m.state = PROCESS_WAITS;
	return m;
}

void kind_moves(struct play *p)
{
	for (size_t i = 0; i < NODES; i++)
		for (size_t k = 0; k < LOCAL; k++) {
			struct toy_motion *m = &p->w.toys[i].moves[k];

			*m = !p->stuck                                       ? well(p)
			     : i == p->node && (int64_t)k == p->rank % LOCAL ? odd(p)
									     : waits(p);
			if (p->asleep_until > p->w.now) {
				*m = waits(p);
				m->state = PROCESS_WAITS;
				m->cpu_at = p->hurt_at;
				m->spins_since = 0;
			}
			if (p->kind == K_COLLECTIVE_UNREAD) {
				m->gpu = false;
				m->net_at = MO_NONE;
				m->spins_since = 0;
			}
		}
}
