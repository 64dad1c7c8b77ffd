/* Queue, chance, counts. Everything random comes from here, so a seed is a run. */
#include "tests/sim/sim.h"

#include <stdarg.h>
#include <stdlib.h>

/* clang-format off */
const char *const fault_names[_FAULT_N] = {
	"rank dies by a signal", "rank exits 1", "rank exits 0 early",
	"ranks of two nodes die at once",
	"rank stopped", "stepd killed", "stepd stopped", "attempt stands, and moves",
	"hang confirmed", "agent killed", "node reboots", "node loses power", "node cut off",
	"node suspended", "node stopped by its hypervisor", "node's wall clock set",
	"first of deaths on several nodes known", "deaths on several nodes at once",
	"controller killed", "controller paused", "controller dies with its machine",
	"controller dies before the store", "controller dies between store and reply",
	"controller dies between replies", "controller dies while it starts",
	"agent dies between effects", "agent dies within what it writes", "and its node with it",
	"stepd dies between effects", "stepd dies within what it writes",
	"journal cannot be written",
	"request lost", "reply lost", "message delayed",
	"message duplicated", "an old reply comes again", "port busy",
	"file of a variable cannot be read", "file of a variable hangs", "exec fails", "bind fails",
	"spool fails", "fence fails", "GPU given back late", "GPU not given back",
	"process cannot be killed", "checkpoint torn",
	"checkpoint changed after it was verified", "checkpoint cannot be loaded",
	"checkpoint suspect", "checkpoint verified after its save",
	"scan fails", "spool of an earlier boot", "checkpoint removed (keep)",
	"checkpoint.dir of an unfinished job", "step stopped by its machine",
	"step killed by its machine: too slow", "planned reboot", "planned reboot given up",
	"planned reboot: all ends were reported", "planned reboot: not all ends were reported",
	"controller's clock ahead", "controller's clock corrected", "controller's time moved",
	"controller's time held", "backup", "older backup restored",
	"the same backup restored again", "bit of the controller's disk flips",
	"flipped bit found: the newest backup is put back", "attempt adopted after a restore",
	"unknown step of an unknown job", "unknown step of a known job", "journal trimmed",
	"a person ends an unknown step", "a person says that a missing step is gone",
	"a check goes critical", "checks go critical on 30 % of the nodes",
	"a critical check is ok again", "checks after a failure come late", "node cordoned",
	"node not cordoned: cap", "attempt waits for checks", "restart --from 0",
	"restart --from the newest", "restart --from an older one",
	"restart --from a superseded one", "restart --from a damaged one",
	"restart --from one being written", "restart --from a tainted one",
	"restart --from a number between two",
	"restart --from a number beyond all", "restart --from, queued", "restart --from, running",
	"restart --from, recovering", "restart --from, stopping", "restart --from, paused",
	"restart --from, ended", "restart --from taken", "restart --from refused",
	"restart --from waits for a person", "an old job is forgotten",
	"an old job is still needed",
	"GPU slow for a while", "straggler found",
	"straggler is as fast as its peers again", "job leaves the node of its straggler",
	"weights break", "weights break again at the same iteration", "loss NaN for a moment",
	"loss too high for a while", "checkpoint tainted", "job goes back behind a bad loss",
	"job went back often enough", "tainted checkpoint taken by its name",
	"engine starts for minutes", "first step compiles for minutes", "save of minutes",
	"save that nobody announced", "save beside the steps", "evaluation",
	"evaluation that nobody announced", "attempt suspected to hang, and cleared",
};
/* clang-format on */

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
	struct queued *e = MO_GROW(s->heap, s->n_heap);
	size_t i = s->n_heap - 1;

	*e = (struct queued){ .at = MO_MAX(at, s->now),
			      .seq = ++s->seq,
			      .kind = kind,
			      .a = a,
			      .b = b,
			      .p = p,
			      .q = q };
	while (i > 0 && before(&s->heap[i], &s->heap[(i - 1) / 2])) {
		struct queued up = s->heap[(i - 1) / 2];

		s->heap[(i - 1) / 2] = s->heap[i];
		s->heap[i] = up;
		i = (i - 1) / 2;
	}
}

bool sim_pop(struct sim *s, struct queued *ret)
{
	size_t i = 0, n;

	if (s->n_heap == 0)
		return false;
	*ret = s->heap[0];
	s->heap[0] = s->heap[s->n_heap - 1];
	n = --s->n_heap;
	for (;;) {
		size_t least = i;
		struct queued down;

		for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < n; k++)
			if (before(&s->heap[k], &s->heap[least]))
				least = k;
		if (least == i)
			return true;
		down = s->heap[i];
		s->heap[i] = s->heap[least];
		s->heap[least] = down;
		i = least;
	}
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
