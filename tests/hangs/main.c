/* build/hangs: options, the campaign, what it prints. */
#include "tests/hangs/hangs.h"
#include "tests/hangs/recorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"

struct tally {
	int64_t runs, steps, suspected, confirmed, unfinished;
};
struct times {
	double seconds[64];
	size_t n, missed, misnamed;
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The seed of a run follows from that of the campaign and its number, so that it can be repeated
 * alone. */
static uint64_t seed_of(uint64_t seed, int64_t run)
{
	uint64_t rng = seed * 1000003 + (uint64_t)run;

	return draw(&rng);
}

static void one(uint64_t seed, int64_t run, bool trace, struct scenario *s, struct verdicts *v)
{
	uint64_t rng = seed_of(seed, run);

	healthy_draw((size_t)run % healthy_kinds(), &rng, s);
	/* each kind with and without, but mostly with GPUs, which make verdicts earlier */
	s->cards = (run + run / (int64_t)healthy_kinds()) % 2;
	s->gpus = run / (int64_t)healthy_kinds() % 4 != 3;
	if (trace)
		printf("run %lld: %s, %s, step %.2f s, %lld steps\n", (long long)run, s->name,
		       s->engine.name, s->step_s, (long long)s->steps);
	bed_run(s, rng, trace, v);
}

/* True: no verdict. */
static bool healthy(uint64_t seed, int64_t least)
{
	struct tally *of = calloc(healthy_kinds(), sizeof(*of)), all = { 0 };

	for (int64_t run = 0; all.steps < least || run % (int64_t)healthy_kinds(); run++) {
		struct tally *t = &of[(size_t)run % healthy_kinds()];
		struct scenario s;
		struct verdicts v;

		one(seed, run, false, &s, &v);
		t->runs++, t->steps += v.steps, t->suspected += v.suspected;
		t->confirmed += v.confirmed, t->unfinished += !v.completed;
		all.steps += v.steps, all.confirmed += v.confirmed;
		all.suspected += v.suspected, all.unfinished += !v.completed;
		if (v.confirmed || !v.completed)
			printf("FALSE --seed %llu --run %lld: %s, %s, step %.2f s, %lld steps: "
			       "%s\n",
			       (unsigned long long)seed, (long long)run, s.name, s.engine.name,
			       s.step_s, (long long)s.steps,
			       v.confirmed ? v.why : "it did not complete");
	}
	printf("%-44s %6s %9s %9s %9s\n", "healthy", "runs", "steps", "suspected", "confirmed");
	for (size_t i = 0; i < healthy_kinds(); i++)
		printf("%-44s %6lld %9lld %9lld %9lld\n", healthy_name(i), (long long)of[i].runs,
		       (long long)of[i].steps, (long long)of[i].suspected,
		       (long long)of[i].confirmed);
	printf("%-44s %6s %9lld %9lld %9lld\n", "all", "", (long long)all.steps,
	       (long long)all.suspected, (long long)all.confirmed);
	free(of);
	return all.confirmed == 0 && all.unfinished == 0;
}

static void detected(const struct scenario *s, const struct verdicts *v, struct times *t)
{
	bool told = s->stuck_odd >= 0 && (!s->unnamed || s->gpus),
	     named = v->rank == (told ? s->stuck_odd : MO_NONE);

	t->seconds[t->n++] = (double)(v->detected_at - v->hung_at) / 1e6;
	t->misnamed += !named;
	if (!named)
		printf("MISNAMED %s in %s, step %.1f s: rank %lld, not %d: %s\n", s->name,
		       phase_of_names[s->stuck_in], s->step_s, (long long)v->rank, s->stuck_odd,
		       v->why);
}

static bool print_times(const char *name, int phase, struct times *t)
{
	if (t->n)
		qsort(t->seconds, t->n, sizeof(*t->seconds), by_size);
	printf("%-40s %-12s", name, phase_of_names[phase]);
	if (t->n)
		printf(" %8.0f %8.0f %8.0f %8.0f", t->seconds[0], t->seconds[t->n / 2],
		       t->seconds[t->n * 95 / 100], t->seconds[t->n - 1]);
	if (t->missed)
		printf("  %zu missed", t->missed);
	printf("\n");
	return !t->missed && !t->misnamed;
}

static bool stuck(uint64_t seed, int times, bool gpus)
{
	static const double steps_s[] = { 0.2, 2, 20, 120 };
	bool good = true;

	printf("%-40s %-12s %8s %8s %8s %8s s to the verdict\n",
	       gpus ? "stuck, GPUs read" : "stuck, GPUs not read", "in", "min", "p50", "p95",
	       "max");
	for (size_t kind = 0; kind < stuck_kinds(); kind++)
		for (int phase = IN_INIT; phase < _PHASE_OF_N; phase++) {
			struct times t = { 0 };
			bool happens = false;

			for (int i = 0; i < times; i++) {
				struct scenario s;
				struct verdicts v;
				uint64_t rng =
					seed_of(seed, (int64_t)kind * 1000 + phase * 100 + i);

				if (!stuck_make(kind, phase, steps_s[i % 4], &rng, &s))
					break;
				happens = true;
				s.cards = i / 4 % 2;
				s.gpus = gpus;
				bed_run(&s, rng, false, &v);
				if (v.confirmed && v.acts && v.hung_at)
					detected(&s, &v, &t);
				else
					t.missed++;
			}
			if (happens)
				good &= print_times(stuck_name(kind), phase, &t);
		}
	return good;
}

int main(int argc, char **argv)
{
	int64_t seed = 1, steps = 60000, run = -1;
	bool good;

	for (int i = 1; i < argc; i += 2) {
		int64_t *to = mo_streq(argv[i], "--seed")    ? &seed
			      : mo_streq(argv[i], "--steps") ? &steps
			      : mo_streq(argv[i], "--run")   ? &run
							     : NULL;

		if (!to || i + 1 == argc || mo_parse_i64(argv[i + 1], 0, INT64_MAX, to) < 0) {
			fprintf(stderr, "usage: hangs [--seed N] [--steps N] [--run N]\n");
			return 2;
		}
	}
	recorded_init();
	if (run >= 0) {
		struct scenario s;
		struct verdicts v;

		one((uint64_t)seed, run, true, &s, &v);
		return v.confirmed != 0;
	}
	printf("seed %lld\n", (long long)seed);
	good = healthy((uint64_t)seed, steps);
	for (int gpus = 0; gpus < 2; gpus++)
		good &= stuck((uint64_t)seed, steps >= 1000000 ? 40 : 8, gpus);
	return !good;
}
