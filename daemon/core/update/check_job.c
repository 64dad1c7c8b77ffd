/* See check_job.h. Each function checks one promise; the table at the end is the list. */
#include "daemon/core/update/check_job.h"

#include <string.h>

#include "daemon/core/update/claims.h"
#include "daemon/core/update/retained.h"

#define LL(x) ((long long)(x))

static bool unfinished(const struct job *j)
{
	return !job_state_final(j->state);
}

/* The GPU time of a job is all accounted for: what its categories add up to is what has passed. */
static char *job_ledger(const struct core *c, const struct job *j)
{
	int64_t sum = 0, total = job_gpus(j) * job_age(j, j->ledger_at);

	for (size_t i = 0; i < j->n_ledger; i++) {
		if (j->ledger[i] < 0)
			return mo_printf("the ledger of j-%lld is below nothing: %lld in category "
					 "%zu",
					 LL(j->id), LL(j->ledger[i]), i);
		sum += j->ledger[i];
	}
	if (sum != total)
		return mo_printf("the ledger of j-%lld does not close: %lld of %lld", LL(j->id),
				 LL(sum), LL(total));
	if (!unfinished(j) && j->ledger_at != j->ended_at)
		return mo_printf("the ledger of j-%lld does not end with it", LL(j->id));
	return NULL;
}

static bool slot_of(const struct node *n, int64_t index)
{
	for (size_t i = 0; i < n->info.n_gpus; i++)
		if (n->info.gpus[i].index == index)
			return true;
	return false;
}

/* Its GPUs are of the node when it gets them, and new attempts go where they may. Later a GPU may
 * vanish, and a node say that it obeyed somebody else: those are words of nodes. */
static char *place_new(const struct core *c, const struct job *j, const struct place *p)
{
	const struct node *n = node_find(&c->state, p->node);

	if (!n || j->state != JOB_STARTING || j->state_since != c->state.time)
		return NULL;
	if (n->agent.obeys != MO_NONE && n->agent.obeys > c->state.epoch)
		return mo_printf("j-%lld begins on %s, which obeyed epoch %lld, and ours is %lld",
				 LL(j->id), p->node, LL(n->agent.obeys), LL(c->state.epoch));
	for (size_t i = 0; i < p->n_gpus; i++)
		if (!slot_of(n, p->gpus[i]))
			return mo_printf("j-%lld has GPU %lld of %s, which has none of that number",
					 LL(j->id), LL(p->gpus[i]), p->node);
	return NULL;
}

/* Ranks are contiguous over the places, which stand in the order of their nodes. */
static char *job_places(const struct core *c, const struct job *j)
{
	int64_t rank = 0, n_gpus = 0;

	for (size_t i = 0; i < j->run.n_places; i++) {
		const struct place *p = &j->run.places[i];

		if (!node_find(&c->state, p->node))
			return mo_printf("j-%lld has a place on %s, which is no node", LL(j->id),
					 p->node);
		if (i > 0 && strcmp(p[-1].node, p->node) >= 0)
			return mo_printf("the places of j-%lld do not ascend at %s", LL(j->id),
					 p->node);
		if (p->n_ranks < 1 || p->n_ranks > (int64_t)p->n_gpus || p->first_rank != rank)
			return mo_printf("the ranks of j-%lld do not follow each other on %s",
					 LL(j->id), p->node);
		rank += p->n_ranks;
		n_gpus += (int64_t)p->n_gpus;
	}
	if (j->run.n_places && (n_gpus != job_gpus(j) || rank != (int64_t)j->run.n_ranks))
		return mo_printf("j-%lld has %lld GPUs and %lld ranks of %lld and %lld", LL(j->id),
				 LL(n_gpus), LL(rank), LL(job_gpus(j)), LL(j->run.n_ranks));
	if (j->run.n_places && !unfinished(j))
		return mo_printf("j-%lld is %s and holds GPUs", LL(j->id),
				 job_state_names[j->state]);
	return NULL;
}

/* Numbers of attempts ascend and none is used twice: the next one is above all that is known. */
static char *job_attempts(const struct core *c, const struct job *j)
{
	if (j->attempt < 0 || j->restarts < 0 || j->restarts > j->attempt)
		return mo_printf("j-%lld has restarted %lld times in %lld attempts", LL(j->id),
				 LL(j->restarts), LL(j->attempt));
	if (j->run.n_places && j->attempt == 0)
		return mo_printf("j-%lld holds GPUs without an attempt", LL(j->id));
	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i], *before = i ? st - 1 : NULL;

		if (st->attempt < 1 || st->attempt > j->attempt)
			return mo_printf("j-%lld, of %lld attempts, has a step of attempt %lld",
					 LL(j->id), LL(j->attempt), LL(st->attempt));
		if (before &&
		    (before->attempt > st->attempt ||
		     (before->attempt == st->attempt && strcmp(before->node, st->node) >= 0)))
			return mo_printf("the steps of j-%lld do not ascend at attempt %lld on %s",
					 LL(j->id), LL(st->attempt), st->node);
	}
	for (size_t i = 1; i < j->n_incidents; i++)
		if (j->incidents[i].attempt <= j->incidents[i - 1].attempt)
			return mo_printf("attempt %lld of j-%lld failed twice",
					 LL(j->incidents[i].attempt), LL(j->id));
	return NULL;
}

/* What is proved dead is not alive: of a job that may get a next attempt nothing is. */
static char *job_lives(const struct core *c, const struct job *j)
{
	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];

		if (!step_dead(st) && (j->run.n_places == 0 || st->attempt != j->attempt))
			return mo_printf("attempt %lld of j-%lld is over, and its step on %s may "
					 "live",
					 LL(st->attempt), LL(j->id), st->node);
		if (st->forgotten && !st->gone)
			return mo_printf("the step of attempt %lld of j-%lld on %s is forgotten "
					 "and may live",
					 LL(st->attempt), LL(j->id), st->node);
	}
	return NULL;
}

/* The counts over the steps of the current attempt. */
struct counts {
	int64_t started, dead, trouble, exited, silent, drained, forgotten, swept;
};

static struct counts counts_of(const struct core *c, const struct job *j)
{
	struct counts n = { .swept = (int64_t)j->run.n_places };

	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];
		const struct node *node = node_find(&c->state, st->node);
		bool dead = step_dead(st);

		n.forgotten += st->forgotten;
		if (st->attempt != j->attempt || j->run.n_places == 0)
			continue;
		n.swept--;
		n.started += st->started;
		n.dead += dead;
		n.trouble += st->refused || st->lost || st->n_bad > 0 ||
			     (dead && st->n_exited < st->n_ranks);
		n.exited += st->n_exited;
		n.silent += !dead && node && node->state == NODE_DOWN;
	}
	for (size_t i = 0; i < j->run.n_places; i++) {
		const struct node *node = node_find(&c->state, j->run.places[i].node);

		n.drained += node && node->drain.asked;
	}
	return n;
}

static char *count_wrong(const struct job *j, const char *what, int64_t has, int64_t is)
{
	return mo_printf("j-%lld counts %lld %s, and there are %lld", LL(j->id), LL(has), what,
			 LL(is));
}

/* Steps that were forgotten and swept are counted still: they were dead. */
static char *job_counts(const struct core *c, const struct job *j)
{
	struct counts n = counts_of(c, j);

	if (j->counts.forgotten != n.forgotten)
		return count_wrong(j, "forgotten steps", j->counts.forgotten, n.forgotten);
	if (j->counts.dead != n.dead + n.swept)
		return count_wrong(j, "dead steps", j->counts.dead, n.dead + n.swept);
	if (j->counts.silent != n.silent)
		return count_wrong(j, "steps on silent nodes", j->counts.silent, n.silent);
	if (j->counts.drained != n.drained)
		return count_wrong(j, "places on drained nodes", j->counts.drained, n.drained);
	if (n.swept)
		return NULL;
	if (j->counts.trouble != n.trouble)
		return count_wrong(j, "steps in trouble", j->counts.trouble, n.trouble);
	if (j->counts.exited != n.exited)
		return count_wrong(j, "ranks that ended", j->counts.exited, n.exited);
	if (j->run.n_places && j->counts.started != n.started)
		return count_wrong(j, "steps that run", j->counts.started, n.started);
	return NULL;
}

static char *job_checkpoints(const struct core *c, const struct job *j)
{
	for (size_t i = 1; i < j->n_checkpoints; i++)
		if (j->checkpoints[i].iteration <= j->checkpoints[i - 1].iteration)
			return mo_printf("the checkpoints of j-%lld do not ascend at %lld",
					 LL(j->id), LL(j->checkpoints[i].iteration));
	return NULL;
}

/* What of its texts counts: of a finished job only large ones. */
static char *job_texts(const struct core *c, const struct job *j)
{
	int64_t bytes = retained_bytes_of(j), counted = retained_of(c, j->id);

	if (counted != bytes)
		return mo_printf("the texts of j-%lld count %lld bytes, and they are %lld",
				 LL(j->id), LL(counted), LL(bytes));
	return NULL;
}

static bool claims(const struct claims *k, const char *text, int64_t job)
{
	size_t n;
	const struct claim *c = claims_of(k, text, &n);

	while (n > 0 && c[n - 1].job != job)
		n--;
	return n > 0;
}

/* Of a job that is over the count of all says that it has none (check.c). */
static char *job_claims(const struct core *c, const struct job *j)
{
	const char *const dirs[] = { j->saves.dir, j->saves.by_config };
	bool found = !j->spec.recipe.name || claims(&c->names, j->spec.recipe.name, j->id);

	for (size_t i = 0; i < ELEMENTSOF(dirs) && found; i++)
		found = !dirs[i] || claims(&c->dirs, dirs[i], j->id);
	return found || !unfinished(j)
		       ? NULL
		       : mo_printf("j-%lld is not found by its name and where it saves", LL(j->id));
}

static char *job_indexes(const struct core *c, const struct job *j)
{
	const struct state *s = &c->state;

	if (ids_has(c->unfinished, c->n_unfinished, j->id) != unfinished(j))
		return mo_printf("j-%lld is %s, and the index of unfinished jobs differs",
				 LL(j->id), job_state_names[j->state]);
	if (ids_has(s->holders, s->n_holders, j->id) != (j->n_steps > 0))
		return mo_printf("j-%lld has %zu steps, and the index of those that have any "
				 "differs",
				 LL(j->id), j->n_steps);
	if (ids_has(c->ending, c->n_ending, j->id) != j->scan.at_end)
		return mo_printf("j-%lld: the index of those whose last checkpoints are looked at "
				 "differs",
				 LL(j->id));
	return job_claims(c, j);
}

/* Each node knows the jobs that have a step on it, and those that wait for its checks. */
static char *job_on_nodes(const struct core *c, const struct job *j)
{
	for (size_t i = 0; i < j->n_steps; i++) {
		const struct live *l = live_of(c, j->steps[i].node);

		if (l && !j->steps[i].forgotten && !ids_has(l->jobs, l->n_jobs, j->id))
			return mo_printf("%s does not know that it has a step of j-%lld",
					 j->steps[i].node, LL(j->id));
	}
	for (size_t i = 0; i < j->checks.n_nodes; i++) {
		const struct live *l = live_of(c, j->checks.nodes[i]);

		if (l && !ids_has(l->checks, l->n_checks, j->id))
			return mo_printf("%s does not know that j-%lld waits for its checks",
					 j->checks.nodes[i], LL(j->id));
	}
	return NULL;
}

static char *(*const of_job[])(const struct core *c, const struct job *j) = {
	job_ledger,      job_places, job_attempts, job_lives,    job_counts,
	job_checkpoints, job_texts,  job_indexes,  job_on_nodes,
};

char *check_job(const struct core *c, const struct job *j)
{
	char *wrong = NULL;

	for (size_t k = 0; k < ELEMENTSOF(of_job) && !wrong; k++)
		wrong = of_job[k](c, j);
	return wrong;
}

char *check_job_placed(const struct core *c, const struct job *j)
{
	char *wrong = NULL;

	for (size_t k = 0; k < j->run.n_places && !wrong; k++)
		wrong = place_new(c, j, &j->run.places[k]);
	return wrong;
}
