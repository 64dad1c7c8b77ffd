/* See check.h: what jobs, nodes and indexes say of each other; check_job.c is asked for each job.
 * Each function checks one promise of one thing; the table at the end is the list. It stands in
 * this room, not beside the state, as it measures texts with the words of retained.c. */
#include "daemon/core/update/check.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/update/check_job.h"
#include "daemon/core/update/retained.h"

#define LL(x) ((long long)(x))

static bool unfinished(const struct job *j)
{
	return !job_state_final(j->state);
}

static char *state_order(const struct core *c)
{
	const struct state *s = &c->state;

	for (size_t i = 0; i < s->n_jobs; i++)
		if ((i && s->jobs[i]->id <= s->jobs[i - 1]->id) || s->jobs[i]->id >= s->next_job)
			return mo_printf("j-%lld is out of order, the next new one is j-%lld",
					 LL(s->jobs[i]->id), LL(s->next_job));
	for (size_t i = 1; i < s->n_nodes; i++)
		if (strcmp(s->nodes[i - 1]->name, s->nodes[i]->name) >= 0)
			return mo_printf("node %s is out of order", s->nodes[i]->name);
	for (size_t i = 0; i < s->n_events; i++)
		if ((i && s->events[i].seq <= s->events[i - 1].seq) ||
		    s->events[i].seq >= s->next_event_seq)
			return mo_printf("event %lld is out of order, the next new one is %lld",
					 LL(s->events[i].seq), LL(s->next_event_seq));
	return NULL;
}

/* A GPU that an attempt holds. */
struct held {
	const char *node;
	int64_t gpu, job;
};

static int by_slot(const void *a, const void *b)
{
	const struct held *x = a, *y = b;
	int order = strcmp(x->node, y->node);

	return order ? order : (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

static char *state_gpus(const struct core *c)
{
	const struct state *s = &c->state;
	struct held *held = NULL;
	char *wrong = NULL;
	size_t n = 0;

	for (size_t i = 0; i < s->n_jobs; i++)
		for (size_t k = 0; k < s->jobs[i]->run.n_places; k++) {
			const struct place *p = &s->jobs[i]->run.places[k];

			for (size_t g = 0; g < p->n_gpus; g++)
				*MO_GROW(held, n) =
					(struct held){ p->node, p->gpus[g], s->jobs[i]->id };
		}
	if (n)
		qsort(held, n, sizeof(*held), by_slot);
	for (size_t i = 1; i < n && !wrong; i++)
		if (by_slot(&held[i - 1], &held[i]) == 0)
			wrong = mo_printf("GPU %lld of %s is held by j-%lld and by j-%lld",
					  LL(held[i].gpu), held[i].node, LL(held[i - 1].job),
					  LL(held[i].job));
	free(held);
	return wrong;
}

static int by_dir(const void *a, const void *b)
{
	const struct job *const *x = a, *const *y = b;

	return strcmp((*x)->saves.dir, (*y)->saves.dir);
}

/* checkpoint.dir belongs to one job from its first attempt until it ends. */
static char *state_dirs(const struct core *c)
{
	const struct job **jobs = NULL;
	char *wrong = NULL;
	size_t n = 0;

	for (size_t i = 0; i < c->state.n_jobs; i++) {
		const struct job *j = c->state.jobs[i];

		if (unfinished(j) && j->attempt > 0 && j->saves.dir)
			*MO_GROW(jobs, n) = j;
	}
	if (n)
		qsort(jobs, n, sizeof(*jobs), by_dir);
	for (size_t i = 1; i < n && !wrong; i++)
		if (by_dir(&jobs[i - 1], &jobs[i]) == 0)
			wrong = mo_printf("j-%lld and j-%lld both save to %s", LL(jobs[i - 1]->id),
					  LL(jobs[i]->id), jobs[i]->saves.dir);
	free(jobs);
	return wrong;
}

static char *total_wrong(const char *what, int64_t has, int64_t is)
{
	return mo_printf("%lld %s are counted, and there are %lld", LL(has), what, LL(is));
}

/* An index holds nothing that its jobs do not say; what they say is looked for in job_indexes(). */
static char *state_indexes(const struct core *c)
{
	const struct state *s = &c->state;
	size_t n_unfinished = 0, n_holders = 0, n_ending = 0, n_names = 0, n_dirs = 0;

	for (size_t i = 0; i < s->n_jobs; i++) {
		const struct job_saves *k = &s->jobs[i]->saves;

		n_unfinished += unfinished(s->jobs[i]);
		n_names += unfinished(s->jobs[i]) && s->jobs[i]->spec.recipe.name;
		if (unfinished(s->jobs[i]))
			n_dirs += (k->dir != NULL) +
				  (k->by_config && !mo_streq(k->by_config, k->dir));
		n_holders += s->jobs[i]->n_steps > 0;
		n_ending += s->jobs[i]->scan.at_end;
	}
	if (c->n_unfinished != n_unfinished)
		return total_wrong("unfinished jobs", LL(c->n_unfinished), LL(n_unfinished));
	if (c->names.n != n_names || c->dirs.n != n_dirs)
		return total_wrong("names and directories of unfinished jobs",
				   LL(c->names.n + c->dirs.n), LL(n_names + n_dirs));
	if (s->n_holders != n_holders)
		return total_wrong("jobs with steps", LL(s->n_holders), LL(n_holders));
	if (c->n_ending != n_ending)
		return total_wrong("jobs that end", LL(c->n_ending), LL(n_ending));
	for (size_t i = 1; i < c->n_dirty; i++)
		if (c->dirty[i] <= c->dirty[i - 1])
			return mo_printf("j-%lld stands twice in the jobs to look at, or not in "
					 "order",
					 LL(c->dirty[i]));
	return NULL;
}

static char *state_texts(const struct core *c)
{
	int64_t active = 0, retained = 0;
	size_t n_retained = 0, n_texts = 0;

	for (size_t i = 0; i < c->state.n_jobs; i++) {
		const struct job *j = c->state.jobs[i];

		int64_t bytes = retained_of(c, j->id);

		*(unfinished(j) ? &active : &retained) += bytes;
		n_retained += !unfinished(j) && bytes;
		n_texts += bytes > 0;
	}
	if (c->active_bytes != active)
		return total_wrong("bytes of texts of unfinished jobs", c->active_bytes, active);
	if (c->retained_bytes != retained)
		return total_wrong("bytes of texts of finished jobs", c->retained_bytes, retained);
	if (c->n_texts != n_texts)
		return total_wrong("jobs with texts", LL(c->n_texts), LL(n_texts));
	if (c->n_retained != n_retained)
		return total_wrong("finished jobs with texts", LL(c->n_retained), LL(n_retained));
	return NULL;
}

/* A spare is of a job that may have it, and nobody else's place. */
static char *state_spares(const struct core *c)
{
	for (size_t i = 0; i < c->state.n_nodes; i++) {
		const struct node *n = c->state.nodes[i];
		const struct job *j = job_find(&c->state, n->spare.job);

		if (j && (!unfinished(j) || j->state == JOB_PAUSED || j->spec.recipe.spares <= 0))
			return mo_printf("%s is a spare of j-%lld, which is %s and asks for %lld",
					 n->name, LL(j->id), job_state_names[j->state],
					 LL(MO_MAX(j->spec.recipe.spares, 0)));
		for (size_t k = 0; j && k < c->state.n_holders; k++) {
			const struct job *other = job_find(&c->state, c->state.holders[k]);

			if (other && place_of(other, n->name))
				return mo_printf("%s is a spare of j-%lld and has ranks of j-%lld",
						 n->name, LL(j->id), LL(other->id));
		}
	}
	return NULL;
}

static char *state_nodes(const struct core *c)
{
	int64_t draining = 0, leaving = 0, spares = 0, cordoned = 0, hardware = 0;

	for (size_t i = 0; i < c->state.n_nodes; i++) {
		const struct node *n = c->state.nodes[i];

		draining += n->drain.asked && !n->drain.done;
		leaving += n->boot.leaving;
		spares += n->spare.job != MO_NONE;
		cordoned += n->drain.asked && n->drain.cordon;
		hardware += n->drain.asked && n->drain.cordon && n->drain.hardware;
	}
	if ((int64_t)c->n_draining != draining)
		return total_wrong("draining nodes", LL(c->n_draining), draining);
	if ((int64_t)c->n_leaving != leaving)
		return total_wrong("leaving nodes", LL(c->n_leaving), leaving);
	if ((int64_t)c->n_spares != spares)
		return total_wrong("spares", LL(c->n_spares), spares);
	if ((int64_t)c->n_cordoned != cordoned)
		return total_wrong("cordoned nodes", LL(c->n_cordoned), cordoned);
	if ((int64_t)c->n_cordoned_hardware != hardware)
		return total_wrong("nodes cordoned for their hardware", LL(c->n_cordoned_hardware),
				   hardware);
	return NULL;
}

/* The jobs of a node are those that have a step on it, and no others. */
static char *state_lives(const struct core *c)
{
	for (size_t i = 0; i < c->state.n_nodes; i++) {
		const struct live *l = c->lives[i];
		const char *name = c->state.nodes[i]->name;

		for (size_t k = 0; k < l->n_jobs; k++) {
			const struct job *j = job_find(&c->state, l->jobs[k]);

			if (!j || !step_next(j, name, -1))
				return mo_printf("%s has no step of j-%lld, and counts one", name,
						 LL(l->jobs[k]));
		}
	}
	return NULL;
}

static char *tally_wrong(const struct tally *has, const struct tally *is)
{
	if (has->gpus != is->gpus)
		return total_wrong("GPUs", has->gpus, is->gpus);
	if (has->free != is->free)
		return total_wrong("free GPUs", has->free, is->free);
	if (has->awaited != is->awaited)
		return total_wrong("nodes that are awaited", has->awaited, is->awaited);
	for (int i = 0; i < _NODE_STATE_N; i++)
		if (has->nodes[i] != is->nodes[i])
			return mo_printf("%lld nodes are counted that are %s, and there are %lld",
					 LL(has->nodes[i]), node_state_names[i], LL(is->nodes[i]));
	for (int i = 0; i < _JOB_STATE_N; i++)
		if (has->jobs[i] != is->jobs[i])
			return mo_printf("%lld jobs are counted that are %s, and there are %lld",
					 LL(has->jobs[i]), job_state_names[i], LL(is->jobs[i]));
	return NULL;
}

static char *slots_text(const struct node_slots *slots)
{
	_cleanup_(mo_freep) char *spare =
		slots->spare_of == MO_NONE ? mo_strdup("no spare")
					   : mo_printf("spare of j-%lld", LL(slots->spare_of));

	return mo_printf("%zu free slots (usable %d, well %d, %s)", slots->n_free, slots->usable,
			 slots->well, spare);
}

static char *slots_wrong(const char *node, const struct node_slots *has,
			 const struct node_slots *is)
{
	_cleanup_(mo_freep) char *kept = slots_text(has), *anew = slots_text(is);

	return mo_printf("%s has %s, and kept are %s", node, anew, kept);
}

/* What is kept of free slots is what the whole state says of them; between turns. */
static char *state_slots(const struct core *c)
{
	struct slots anew;
	struct tally tally;
	char *wrong = NULL;

	if (c->tally.n_stale)
		return NULL;
	slots_init(&c->state, &anew);
	for (size_t i = 0; i < anew.n && !wrong; i++)
		if (!node_slots_equal(c->slots.nodes[i], anew.nodes[i]))
			wrong = slots_wrong(c->state.nodes[i]->name, c->slots.nodes[i],
					    anew.nodes[i]);
	if (!wrong) {
		tally_count(&c->state, &anew, &tally);
		wrong = tally_wrong(&c->tally, &tally);
	}
	slots_done(&anew);
	return wrong;
}

static char *(*const of_state[])(const struct core *c) = {
	state_gpus,  state_dirs,  state_indexes, state_texts,
	state_nodes, state_lives, state_spares,  state_slots,
};

char *state_check(const struct core *c)
{
	char *wrong = state_order(c); /* the others find things by it */

	for (size_t i = 0; i < c->state.n_jobs && !wrong; i++)
		wrong = check_job(c, c->state.jobs[i]);
	for (size_t k = 0; k < ELEMENTSOF(of_state) && !wrong; k++)
		wrong = of_state[k](c);
	return wrong;
}

char *state_check_placed(const struct core *c)
{
	char *wrong = NULL;

	for (size_t i = 0; i < c->state.n_jobs && !wrong; i++)
		wrong = check_job_placed(c, c->state.jobs[i]);
	return wrong;
}
