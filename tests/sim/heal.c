/* What people repair, and the end of all that breaks. */
#include "tests/sim/sim.h"

/* What a user went back behind stays so, unless the state was restored: attempts that it does not
 * know may have written it again. */
static void repair(struct sim *s, int64_t job, struct file *f, int64_t stamp)
{
	const struct job *j = job_find(core_state(s->ctl.shadow), job);

	*f = (struct file){ .iteration = f->iteration,
			    .complete = true,
			    .given_up = f->given_up && j && j->attempt >= j->attempt_floor,
			    .named = f->named,
			    .changed_at = s->now,
			    .stamp = stamp,
			    .told = MO_NONE };
}

/* What was verified comes back as it was: the controller says that it changed. */
void fault_bring_back(struct sim *s)
{
	int64_t was;

	for (int job = 0; job < JOBS_MAX; job++)
		for (size_t i = 0; i < s->jobs[job].n_files && !s->jobs[job].unrepaired; i++)
			if (train_changed(s, s->jobs[job].id, &s->jobs[job].files[i], &was))
				repair(s, s->jobs[job].id, &s->jobs[job].files[i], was);
}

void fault_repair_job(struct sim *s, struct truth *t)
{
	for (size_t i = 0; i < t->n_files && !t->unrepaired; i++)
		if ((!t->files[i].complete || t->files[i].rotten) && !t->files[i].altered)
			repair(s, t->id, &t->files[i], t->files[i].stamp);
}

void fault_repair(struct sim *s)
{
	/* a person repairs what most jobs would wait for */
	for (int job = 0; job < JOBS_MAX; job++) {
		s->jobs[job].unrepaired = s->jobs[job].id % 4 == 0;
		fault_repair_job(s, &s->jobs[job]);
	}
	fault_bring_back(s);
}

/* A hang is ended by what an agent of now tells of it; one of before leaves that to people. */
static void upgrade_all(struct sim *s)
{
	for (int n = 0; n < NODES; n++)
		if (s->nodes[n].before && s->nodes[n].agent)
			agent_kill(s, n, S);
		else if (s->nodes[n].before)
			node_upgrade(s, n);
}

/* Nothing breaks any more, and what is broken is repaired. */
void fault_heal(struct sim *s)
{
	s->faults = false;
	control_spare(s);
	s->ctl.wall_ahead = 0;
	s->ctl.synced = true;
	for (int n = 0; n < NODES; n++) {
		s->nodes[n].mute_until = s->nodes[n].deaf_until = 0;
		node_well(s, n);
		if (n < s->plan.nodes)
			node_boot(s, n);
	}
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->hung)
			stepd_hang_end(s, s->steps[i]);
	fault_repair(s);
	upgrade_all(s);
}
