/* Queue, chance, counts. Everything random comes from here, so a seed is a run. */
#include "tests/sim/sim.h"

#include <stdarg.h>
#include <stdlib.h>

uint64_t sim_random(struct sim *s)
{
	uint64_t z = s->rng += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

int64_t sim_between(struct sim *s, int64_t low, int64_t high)
{
	return low + (int64_t)(sim_random(s) % (uint64_t)(high - low + 1));
}

bool sim_chance(struct sim *s, double p)
{
	return (double)(sim_random(s) >> 11) / 9007199254740992.0 < p;
}

bool sim_fault(struct sim *s, int fault, double p)
{
	if (!s->faults || !sim_chance(s, p * s->plan.rate[plan_kind(fault)]))
		return false;
	s->fault_counts[fault]++;
	sim_trace(s, "FAULT %s", fault_names[fault]);
	return true;
}

static bool before(const struct queued *a, const struct queued *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void sim_at(struct sim *s, int64_t at, int kind, int64_t a, int64_t b, void *p, void *q)
{
	const struct queued e = { .at = MO_MAX(at, s->now),
				  .seq = ++s->seq,
				  .kind = kind,
				  .a = a,
				  .b = b,
				  .p = p,
				  .q = q };
	size_t i = s->n_heap;

	(void)MO_GROW(s->heap, s->n_heap);
	for (; i > 0 && before(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = e;
}

bool sim_pop(struct sim *s, struct queued *ret)
{
	size_t i = 0, n;

	if (s->n_heap == 0)
		return false;
	*ret = s->heap[0];
	n = --s->n_heap;
	const struct queued last = s->heap[n];
	for (size_t k = 1; k < n; k = 2 * i + 1) {
		k += k + 1 < n && before(&s->heap[k + 1], &s->heap[k]);
		if (!before(&s->heap[k], &last))
			break;
		s->heap[i] = s->heap[k];
		i = k;
	}
	s->heap[i] = last;
	return true;
}

void sim_trouble(struct sim *s, int node)
{
	s->nodes[node].trouble_at = s->now;
}

void sim_trace(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->trace)
		return;
	printf("%10.6f  ", (double)s->now / 1e6);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

void sim_violation(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "sim: seed %llu: VIOLATION at %.6f s: ", (unsigned long long)s->seed,
		(double)s->now / 1e6);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr,
		"\nsim: replay it with 'make sim SEED=%llu' (build/sim --seed %llu --steps shows "
		"every step)\n",
		(unsigned long long)s->seed, (unsigned long long)s->seed);
	abort();
}

struct truth *sim_job(struct sim *s, int64_t id)
{
	size_t i = (size_t)id % JOBS_MAX;

	if (id <= 0)
		sim_violation(s, "job id %lld", (long long)id);
	for (int tries = 0; s->jobs[i].id && s->jobs[i].id != id; i = (i + 1) % JOBS_MAX)
		if (++tries >= JOBS_MAX)
			sim_violation(s, "more than %d jobs", JOBS_MAX);
	s->jobs[i].id = id;
	return &s->jobs[i];
}

void sim_harm(struct sim *s, int64_t job, int64_t attempt)
{
	struct truth *t = sim_job(s, job);

	t->harmed = MO_MAX(t->harmed, attempt);
}

int64_t sim_history(const struct sim *s)
{
	return s->seed % 3 == 0 ? HISTORY : 0;
}

struct core *sim_core(const struct sim *s)
{
	struct core_config config = core_config_default;

	config.hang_percent = SIM_HANG_PERCENT;
	config.history_us = sim_history(s);
	return core_new(&config);
}

struct attempt *sim_attempt(struct sim *s, int64_t job, int64_t number)
{
	struct attempt *a = job > 0 ? sim_job(s, job)->now : NULL;

	return a && a->number == number ? a : NULL;
}

struct attempt *sim_past_attempt(const struct sim *s, int64_t job, int64_t number)
{
	for (size_t i = 0; i < s->n_attempts; i++)
		if (s->attempts[i]->job == job && s->attempts[i]->number == number)
			return s->attempts[i];
	return NULL;
}
