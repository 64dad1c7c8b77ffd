/* build/sim: runs seeds, prints how often each fault, each transition and each row of
 * docs/states.md came. Exit 1 at a violation, or (with --seeds) when one of them never did. With
 * --lie no sync of a file, or of the names in a directory, of such a name does anything: one that
 * is owed shows by a violation. */
#include "tests/sim/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/parse.h"
#include "tests/hangs/recorded.h"
#include "tests/unit/seams/world.h"

#define PROCESSES_MAX 16

/* One of the runs at a time that have their counts there, in a process of its own. */
struct worker {
	struct counts *counts;
	pid_t pid; /* 0: none */
};

static void start(struct worker *w, int64_t seed)
{
	fflush(stdout);
	w->pid = fork();
	if (w->pid < 0)
		abort();
	if (w->pid > 0)
		return;
	run_seed((uint64_t)seed, &(struct less){ 0 }, false, w->counts);
	exit(0);
}

/* False: its run ended with a violation, which it has told. */
static bool await(struct worker *list, int n, struct worker **ret)
{
	int status;
	pid_t pid = wait(&status);

	for (int i = 0; i < n; i++)
		if (pid > 0 && list[i].pid == pid)
			*ret = &list[i];
	(*ret)->pid = 0;
	return status == 0;
}

/* A seed is the same alone and among others: each has a process of its own. False: one ended with a
 * violation; no others began then. */
static bool run_many(int64_t first, int64_t last, struct counts *total)
{
	int n = (int)MO_MIN(MO_MIN(sysconf(_SC_NPROCESSORS_ONLN), PROCESSES_MAX), last - first + 1);
	struct counts *counts = mmap(NULL, (size_t)n * sizeof(*counts), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct worker list[PROCESSES_MAX] = { 0 }, *next;
	bool good = true;
	int running = 0;

	if (counts == MAP_FAILED)
		abort();
	for (int i = 0; i < n; i++)
		list[i].counts = &counts[i];
	while ((good && first <= last) || running > 0) {
		next = &list[running];
		if (running == n || !good || first > last) {
			good &= await(list, n, &next);
			running--;
		}
		if (good && first <= last) {
			start(next, first++);
			running++;
		}
	}
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(*counts) / sizeof(int64_t); k++)
			((int64_t *)total)[k] += ((const int64_t *)&counts[i])[k];
	munmap(counts, (size_t)n * sizeof(*counts));
	return good;
}

/* Every move between two states that the table of daemon/core/rules/transitions.c allows. */
static int summary(const struct counts *c, bool demand)
{
	bool allowed[_JOB_STATE_N * _JOB_STATE_N] = { false };
	int never = 0;

	for (int f = 0; f < _FAULT_N; f++) {
		printf("fault       %-44s %10lld\n", fault_names[f], (long long)c->faults[f]);
		never += c->faults[f] == 0;
	}
	for (size_t i = 0; i < n_job_rows; i++)
		if (job_rows[i].next >= 0 && job_rows[i].next != job_rows[i].state)
			allowed[job_rows[i].state * _JOB_STATE_N + job_rows[i].next] = true;
	for (int m = 0; m < _JOB_STATE_N * _JOB_STATE_N; m++) {
		if (!allowed[m])
			continue;
		printf("transition  %-20s -> %-20s %10lld\n", job_state_names[m / _JOB_STATE_N],
		       job_state_names[m % _JOB_STATE_N], (long long)c->moves[m]);
		never += c->moves[m] == 0;
	}
	never += coverage_print(c->rows);
	if (demand && never)
		printf("sim: %d of these never happened\n", never);
	return demand ? never : 0;
}

/* Without a word of it. */
static bool fails(uint64_t seed, const struct less *less)
{
	static struct counts none;
	int status;

	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stderr))
			abort();
		run_seed(seed, less, false, &none);
		exit(0);
	}
	return waitpid(pid, &status, 0) == pid && status != 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: sim --seed N [--steps | --shrink] [--off KIND,...] [--jobs N] "
			"[--nodes N] [--fault-time S] | --seeds A-B | --states; "
			"with seeds: [--lie PATTERN]\n");
	return 2;
}

struct options {
	int64_t first, last;
	bool trace, range, shrink;
	struct less less;
};

static bool parse_range(char *text, struct options *o)
{
	char *dash = strchr(text, '-');

	if (!dash)
		return false;
	*dash = '\0';
	o->range = mo_parse_i64(text, 0, INT64_MAX, &o->first) == 0 &&
		   mo_parse_i64(dash + 1, o->first, INT64_MAX, &o->last) == 0;
	return o->range;
}

static bool parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		if (mo_streq(argv[i], "--steps")) {
			o->trace = true;
		} else if (mo_streq(argv[i], "--shrink")) {
			o->shrink = true;
		} else if (mo_streq(argv[i], "--seed") && i + 1 < argc &&
			   mo_parse_i64(argv[i + 1], 0, INT64_MAX, &o->first) == 0) {
			o->last = o->first;
			i++;
		} else if (mo_streq(argv[i], "--lie") && i + 1 < argc) {
			seam_syncs_lie(argv[++i]);
		} else if (mo_streq(argv[i], "--seeds") && i + 1 < argc) {
			if (!parse_range(argv[++i], o))
				return false;
		} else if (less_option(&o->less, argv[i], argv[i + 1])) {
			i++;
		} else {
			return false;
		}
	}
	return !o->range || !(o->trace || o->shrink);
}

int main(int argc, char **argv)
{
	static struct counts total;
	struct options o = { .first = 1, .last = 1 };

	if (argc == 2 && mo_streq(argv[1], "--states")) {
		states_print();
		return 0;
	}
	if (!parse(argc, argv, &o))
		return usage();
	recorded_init();
	if (o.shrink)
		return shrink((uint64_t)o.first, &o.less, fails);
	if (!o.range)
		run_seed((uint64_t)o.first, &o.less, o.trace, &total);
	else if (!run_many(o.first, o.last, &total))
		return 1;
	int never = summary(&total, o.range);
	printf("sim: %lld seeds from %lld, %lld jobs, %lld steps, no violation\n",
	       (long long)(o.last - o.first + 1), (long long)o.first, (long long)total.jobs,
	       (long long)total.events);
	return never ? 1 : 0;
}
