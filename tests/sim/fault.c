/* What breaks, at random instants between any two steps of the simulation (the ones tied to a
 * message or effect are where that happens). */
#include "tests/sim/sim.h"

#include <math.h>
#include <signal.h>

static struct attempt *some_attempt(struct sim *s)
{
	struct attempt *a;

	if (s->n_attempts == 0)
		return NULL;
	for (int tries = 0; tries < 8; tries++) {
		a = s->attempts[s->n_attempts - 1 - sim_random(s) % MO_MIN(s->n_attempts, 24)];
		if (a->n_alive > 0)
			return a;
	}
	return NULL;
}

static struct proc *some_proc(struct sim *s)
{
	struct attempt *a = some_attempt(s);

	for (int tries = 0; a && tries < 8; tries++) {
		struct proc *p = a->ranks[sim_random(s) % (uint64_t)a->world];

		if (p && p->alive && !p->stuck && !p->frozen && !clock_stands(s, p->step->node))
			return p;
	}
	return NULL;
}

static void count(struct sim *s, int fault)
{
	s->fault_counts[fault]++;
	sim_trace(s, "FAULT %s", fault_names[fault]);
}

/* Of one cause, on two of its nodes. */
static void at_once(struct sim *s, struct attempt *a, struct proc *p)
{
	int64_t r = sim_between(s, 0, a->world - 1);

	if (!a->ranks[r] || a->ranks[r]->step == p->step)
		return;
	count(s, F_RANKS_AT_ONCE);
	sim_harm(s, a->job, a->number);
	sim_at(s, s->now + sim_between(s, 0, 3 * MS), K_EXIT, r, 1, a, NULL);
	proc_end(s, p, 1, MO_NONE);
}

static void on_process(struct sim *s, int fault)
{
	static const int signals[] = { SIGKILL, SIGSEGV, SIGABRT, SIGBUS },
			 codes[] = { 1, 1, 2, 3, 127, 128 + SIGSEGV, 255 };
	struct proc *p = some_proc(s);
	struct attempt *a = p ? sim_attempt(s, p->step->job, p->step->attempt) : NULL;

	if (!p || (fault == F_STEPD_HANG && p->step->hung) ||
	    ((fault == F_RANK_STOPPED || fault == F_SLOW) && !(a && train_runs(a))) ||
	    (fault == F_STOPPED_OUTSIDE && p->step->outside_at))
		return;
	if (fault == F_RANKS_AT_ONCE) {
		if (a)
			at_once(s, a, p);
		return;
	}
	count(s, fault);
	if (fault < F_STEPD_KILL)
		sim_harm(s, p->step->job, p->step->attempt);
	switch (fault) {
	case F_RANK_SIGNAL: proc_end(s, p, MO_NONE, signals[sim_random(s) % 4]); break;
	case F_RANK_EXIT_1:
		proc_end(s, p, codes[sim_random(s) % ELEMENTSOF(codes)], MO_NONE);
		break;
	case F_RANK_EXIT_0: proc_end(s, p, 0, MO_NONE); break;
	case F_RANK_STOPPED: p->frozen = true; break;
	case F_SLOW:
		/* what waits for it is put off till the later one */
		a->stands_until = MO_MAX(a->stands_until, s->now + sim_between(s, 5 * S, 150 * S));
		break;
	case F_STEPD_KILL: stepd_kill(s, p->step); break;
	case F_STEPD_HANG: stepd_hang(s, p->step, sim_between(s, 2 * S, 25 * S)); break;
	case F_STOPPED_OUTSIDE:
		if (sim_chance(s, 0.1)) /* it does not hear of it */
			stepd_hang(s, p->step, 60 * S);
		outside_stop(s, p->step);
		break;
	}
}

/* One node, or a part of them. What is on its way is lost, however short it is. */
static void cut_off(struct sim *s, int node, int fault)
{
	int n = sim_chance(s, 0.1) ? 16 : 1, end = MO_MIN(NODES, node + n);

	for (int k = node; k < end; k++) {
		int64_t until = s->now + sim_between(s, S, sim_chance(s, 0.1) ? 120 * S : 30 * S);

		if (fault != F_DEAF)
			s->nodes[k].mute_until = MO_MAX(s->nodes[k].mute_until, until);
		if (fault != F_MUTE)
			s->nodes[k].deaf_until = MO_MAX(s->nodes[k].deaf_until, until);
		sim_trouble(s, k);
	}
}

static void on_node(struct sim *s, int fault)
{
	struct proc *p = sim_chance(s, 0.6) ? some_proc(s) : NULL;
	int n = p ? p->step->node : (int)(sim_random(s) % NODES);

	if (!s->nodes[n].power || clock_stands(s, n) ||
	    (fault == F_AGENT_KILL && !s->nodes[n].agent) ||
	    (s->nodes[n].leaving && fault >= F_STOPPED_OUTSIDE))
		return;
	count(s, fault);
	switch (fault) {
	case F_AGENT_KILL: agent_kill(s, n, sim_between(s, 20 * MS, 15 * S)); break;
	case F_REBOOT: node_lose(s, n, sim_between(s, 500 * MS, 30 * S)); break;
	case F_POWER_OFF: node_lose(s, n, INT64_MAX); break;
	case F_SHUTDOWN:
	case F_SHUTDOWN_GIVEN_UP: outside_leave(s, n, fault == F_SHUTDOWN_GIVEN_UP); break;
	case F_SUSPENDED:
	case F_FROZEN:
		clock_stand(s, n, sim_between(s, 200 * MS, 40 * S), fault == F_FROZEN);
		break;
	case F_NODE_CLOCK_SET:
		s->nodes[n].clock.wall_ahead = sim_between(s, -3600 * S, 3600 * S);
		break;
	case F_PARTITION:
	case F_MUTE:
	case F_DEAF: cut_off(s, n, fault); break;
	}
}

static void torn(struct sim *s)
{
	struct attempt *a = some_attempt(s);
	struct truth *t = a ? sim_job(s, a->job) : NULL;
	struct file *f;

	if (!t || t->n_files == 0)
		return;
	f = &t->files[t->n_files - 1];
	if (!f->complete)
		return;
	count(s, F_TORN);
	f->complete = false;
	f->torn = true;
	f->changed_at = s->now;
}

/* Its marker says that it is whole still: only the manifest tells. */
static void altered(struct sim *s)
{
	struct attempt *a = some_attempt(s);
	struct truth *t = a ? sim_job(s, a->job) : NULL;
	struct file *f = t && t->n_files
				 ? &t->files[t->n_files - 1 - sim_random(s) % MO_MIN(t->n_files, 2)]
				 : NULL;
	const struct job *j = f ? job_find(core_state(s->ctl.shadow), a->job) : NULL;
	const struct checkpoint *c = j ? checkpoint_find(j, f->iteration) : NULL;

	_cleanup_(mo_freep) char *stamp = f ? mo_printf("%lld", (long long)f->stamp) : NULL;

	if (!c || !mo_streq(c->manifest, stamp) || !f->complete || f->altered ||
	    c->state != CKPT_VERIFIED || a->saving == f->iteration)
		return;
	count(s, F_ALTERED);
	f->altered = true;
	f->altered_at = s->now;
	f->was = f->stamp++;
}

/* Of its data, of a GPU that computes wrong, or of nothing that lasts. */
static void bad_loss(struct sim *s, int fault)
{
	struct attempt *a = some_attempt(s);

	if (!a || !train_runs(a) || a->broken_from || a->odd_until)
		return;
	count(s, fault);
	if (fault == F_LOSS_BLIP) {
		train_odd(s, a, NAN, sim_between(s, 1, 3));
	} else if (fault == F_LOSS_HIGH) {
		train_odd(s, a, (double)sim_between(s, HIGH_LOSS + 1, 100), sim_between(s, 1, 40));
	} else {
		train_break(s, a);
		if (sim_chance(s, 0.3))
			sim_job(s, a->job)->breaks_at = a->iteration;
	}
}

/* It may stay so when everything else is repaired. */
static void slow_gpu(struct sim *s)
{
	struct proc *p = some_proc(s);
	struct simnode *n = p ? &s->nodes[p->step->node] : NULL;
	int64_t until = s->now + sim_between(s, 20 * S, 300 * S);
	bool all = sim_chance(s, 0.1);

	if (!n || n->slow_until[p->gpu] > s->now)
		return;
	count(s, F_SLOW_GPU);
	for (int64_t g = 0; g < GPUS; g++)
		if (all || g == p->gpu) {
			n->slow_until[g] = until;
			n->slow_pct[g] = sim_between(s, 110, 350);
		}
}

/* It looks whole, and whoever loads it dies; the attempt that wrote it does so now. */
static void rotten(struct sim *s)
{
	struct attempt *a = some_attempt(s);
	struct truth *t = a ? sim_job(s, a->job) : NULL;
	struct file *f = t && t->n_files ? &t->files[t->n_files - 1] : NULL;

	if (!f || !f->complete || f->rotten)
		return;
	count(s, F_ROTTEN);
	f->rotten = true;
	for (int64_t r = 0; r < a->world; r++)
		if (a->ranks[r] && a->ranks[r]->alive && !a->ranks[r]->stuck &&
		    !clock_stands(s, a->ranks[r]->step->node)) {
			sim_harm(s, a->job, a->number);
			proc_end(s, a->ranks[r], MO_NONE, SIGSEGV);
			return;
		}
}

static void on_controller(struct sim *s, int fault)
{
	if (!s->ctl.up || s->ctl.paused_until > s->now)
		return;
	count(s, fault);
	if (fault == F_CONTROLLER_KILL) {
		control_crash(s, sim_between(s, 20 * MS, 20 * S));
	} else {
		s->ctl.paused_for = sim_between(s, 600 * MS, 25 * S);
		s->ctl.paused_until = s->now + s->ctl.paused_for;
	}
}

static void on_health(struct sim *s, int fault)
{
	static const char *const checks[] = { "gpu.ras_ue", "nic.state", "host.disk" };
	int n = (int)(sim_random(s) % NODES);

	if (fault == F_CHECK_OK) {
		for (int k = 0; k < NODES && !s->nodes[n].health.n_results; k++)
			n = (n + 1) % NODES;
		if (!s->nodes[n].health.n_results)
			return;
		count(s, fault);
		node_well(s, n);
		return;
	}
	count(s, fault);
	for (int k = 0; k < (fault == F_CHECK_MASS ? NODES * 3 / 10 : 1); k++)
		node_finding(s, (n + k) % NODES, checks[sim_random(s) % 3],
			     sim_chance(s, 0.7) ? ACTION_CORDON : ACTION_WARN);
}

void fault_happen(struct sim *s)
{
	static const struct {
		int fault, weight;
	} table[] = {
		{ F_RANK_SIGNAL, 8 },
		{ F_RANK_EXIT_1, 4 },
		{ F_RANK_EXIT_0, 1 },
		{ F_RANKS_AT_ONCE, 8 },
		{ F_STEPD_KILL, 4 },
		{ F_STEPD_HANG, 3 },
		{ F_AGENT_KILL, 8 },
		{ F_REBOOT, 4 },
		{ F_POWER_OFF, 2 },
		{ F_PARTITION, 3 },
		{ F_MUTE, 1 },
		{ F_DEAF, 1 },
		{ F_SUSPENDED, 2 },
		{ F_FROZEN, 2 },
		{ F_NODE_CLOCK_SET, 2 },
		{ F_CONTROLLER_KILL, 3 },
		{ F_CONTROLLER_PAUSE, 1 },
		{ F_TORN, 3 },
		{ F_ALTERED, 6 },
		{ F_CHECK_CRIT, 4 },
		{ F_CHECK_OK, 6 },
		{ F_CHECK_MASS, 1 },
		{ F_CLOCK_AHEAD, 1 },
		{ F_CLOCK_SET, 2 },
		{ F_BACKUP, 2 },
		{ F_RESTORE, 1 },
		{ F_STOPPED_OUTSIDE, 3 },
		{ F_SHUTDOWN, 4 },
		{ F_SHUTDOWN_GIVEN_UP, 1 },
		{ F_ROTTEN, 12 },
		{ F_RANK_STOPPED, 2 },
		{ F_SLOW, 3 },
		{ F_SLOW_GPU, 12 },
		{ F_LOSS_BROKEN, 5 },
		{ F_LOSS_BLIP, 4 },
		{ F_LOSS_HIGH, 6 },
		{ F_TOKEN_REVOKED, 2 },
		{ F_TOKEN_GONE, 2 },
		{ F_TOKEN_SHORT, 2 },
	};
	double pick = 0;

	if (!s->faults)
		return;
	for (size_t i = 0; i < ELEMENTSOF(table); i++)
		pick += table[i].weight * s->plan.rate[plan_kind(table[i].fault)];
	pick *= (double)sim_between(s, 0, 999999) / 1e6;
	for (size_t i = 0; i < ELEMENTSOF(table); i++) {
		pick -= table[i].weight * s->plan.rate[plan_kind(table[i].fault)];
		if (pick >= 0)
			continue;
		switch (table[i].fault) {
		case F_TORN: torn(s); break;
		case F_CLOCK_AHEAD:
		case F_CLOCK_SET:
			if ((s->ctl.wall_ahead == 0) != (table[i].fault == F_CLOCK_AHEAD))
				break;
			count(s, table[i].fault);
			(table[i].fault == F_CLOCK_AHEAD ? wall_ahead : wall_set)(s);
			break;
		case F_BACKUP:
			count(s, F_BACKUP);
			past_backup(s);
			break;
		case F_RESTORE:
			if (past_lose(s))
				count(s, F_RESTORE);
			break;
		case F_ALTERED: altered(s); break;
		case F_ROTTEN: rotten(s); break;
		case F_SLOW_GPU: slow_gpu(s); break;
		case F_LOSS_BROKEN:
		case F_LOSS_BLIP:
		case F_LOSS_HIGH: bad_loss(s, table[i].fault); break;
		case F_CHECK_CRIT:
		case F_CHECK_OK:
		case F_CHECK_MASS: on_health(s, table[i].fault); break;
		case F_TOKEN_REVOKED:
		case F_TOKEN_GONE:
		case F_TOKEN_SHORT:
			if (token_mishap(s, table[i].fault))
				count(s, table[i].fault);
			break;
		case F_CONTROLLER_KILL:
		case F_CONTROLLER_PAUSE: on_controller(s, table[i].fault); break;
		case F_AGENT_KILL:
		case F_REBOOT:
		case F_POWER_OFF:
		case F_PARTITION:
		case F_MUTE:
		case F_DEAF:
		case F_SUSPENDED:
		case F_FROZEN:
		case F_NODE_CLOCK_SET:
		case F_SHUTDOWN:
		case F_SHUTDOWN_GIVEN_UP: on_node(s, table[i].fault); break;
		default: on_process(s, table[i].fault); break;
		}
		break;
	}
	int64_t pause = sim_between(s, 50 * MS, 2 * S);

	sim_at(s, s->now + (int64_t)((double)pause / s->plan.pace), K_FAULT, 0, 0, NULL, NULL);
}
