/* See scenarios.h: options, each cell in a process of its own, the table as docs have it. */
#include "tests/scenarios/scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/core/update/check.h"

#define PROCESSES_MAX 16

const struct row *row_of(int kind, int at)
{
	const struct row *found = NULL;

	for (size_t i = 0; i < n_rows; i++) {
		if (rows[i].kind != kind || !(rows[i].at & 1U << at))
			continue;
		if (found)
			return NULL;
		found = &rows[i];
	}
	return found;
}

/* True: what the controller made of it is what the table says. */
static bool cell(int kind, int at)
{
	const struct row *row = row_of(kind, at);
	struct play p;

	if (!row) {
		printf("FAIL %s, %s: not exactly one row of the table has it\n", kind_names[kind],
		       at_names[at]);
		return false;
	}
	if (row->impossible) {
		printf("-    %s, %s: impossible: %s\n", kind_names[kind], at_names[at],
		       row->impossible);
		return true;
	}
	play_begin(&p, kind, at);
	play_run(&p);
	_cleanup_(mo_freep) char *made = verdict_words(&p);
	_cleanup_(mo_freep) char *broken = state_check(p.w.core);
	bool same = mo_streq(made, row->verdict) && !broken;

	world_done(&p.w);
	printf("%s %s, %s: %s\n", same ? "ok  " : "FAIL", kind_names[kind], at_names[at], made);
	if (!same)
		printf("     the table says: %s%s%s\n", row->verdict, broken ? "; broken: " : "",
		       broken ? broken : "");
	return same;
}

/* What breaks in a cell (an assertion of the bed) is its own. */
static bool apart(int kind, int at)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		bool good = cell(kind, at);

		fflush(stdout);
		_exit(!good);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	if (status != 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 1))
		printf("FAIL %s, %s: the bed ended with status %d\n", kind_names[kind],
		       at_names[at], status);
	return status == 0;
}

/* Of the cells that are asked for (-1: all), each nth. */
static bool share(int kind, int at, int n, int first)
{
	bool good = true;
	int i = 0;

	for (int k = 0; k < _KIND_N; k++)
		for (int a = 0; a < _AT_N; a++)
			if ((kind < 0 || k == kind) && (at < 0 || a == at) && i++ % n == first)
				good &= apart(k, a);
	fflush(stdout);
	return good;
}

static int run(int kind, int at)
{
	int n = (int)MO_MAX(1, MO_MIN(sysconf(_SC_NPROCESSORS_ONLN), PROCESSES_MAX)), failed = 0;

	fflush(stdout);
	for (int i = 0; i < n; i++)
		if (fork() == 0)
			_exit(!share(kind, at, n, i));
	for (int status, i = 0; i < n; i++)
		failed += wait(&status) < 0 || status != 0;
	return failed > 0;
}

/* ---- the table, as docs/scenarios.md has it ---- */

static void print_phases(unsigned at)
{
	bool first = true;

	for (int a = 0; a < _AT_N; a++)
		if (at & 1U << a) {
			printf("%s%s", first ? "" : ", ", at_names[a]);
			first = false;
		}
}

static int table(void)
{
	printf("# Scenarios\n"
	       "Each kind of failure in each phase of a job, and what the controller makes of it. "
	       "Made by `build/scenarios --table`; `build/scenarios [KIND] [PHASE]` runs the cells "
	       "(the suite `scenarios`) on the controller's core in virtual time and fails where "
	       "one comes out otherwise. One job of four ranks on two of four nodes; the first "
	       "iteration compiles for 20 silent minutes, a save takes 30 and an evaluation 60; "
	       "one thing happens in the midst of that.\n\n"
	       "A verdict names the failures that were counted: class, cause, whom it blames, what "
	       "followed; from where the attempts began behind it (*the newest* of the checkpoints "
	       "that were whole then); how it ended; and events that matter.\n\n"
	       "| kind | what happens | phase | verdict |\n|--|--|--|--|\n");
	for (size_t i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i];
		bool again = i > 0 && rows[i - 1].kind == r->kind;

		printf("| %s | %s | ", again ? "" : kind_names[r->kind],
		       again ? "" : kind_means[r->kind]);
		print_phases(r->at);
		printf(" | %s%s |\n", r->impossible ? "impossible: " : "",
		       r->impossible ? r->impossible : r->verdict);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int kind = argc > 1 ? mo_enum_parse(kind_names, _KIND_N, argv[1]) : -1,
	    at = argc > 2 ? mo_enum_parse(at_names, _AT_N, argv[2]) : -1;

	if (argc == 2 && mo_streq(argv[1], "--table"))
		return table();
	if (argc > 3 || (argc > 1 && kind < 0) || (argc > 2 && at < 0)) {
		fprintf(stderr, "usage: scenarios [KIND [PHASE]] | --table\n");
		return 2;
	}
	return run(kind, at);
}
