/* Shared by bed.c, which has nodes and ranks, and run.c, which has the controller. */
#pragma once
#include "tests/hangs/hangs.h"

struct bed_step {
	int64_t job, attempt, written, through;
	bool gone, exited[LOCAL];
	struct note *notes;
	size_t n_notes; /* that are not acknowledged */
};
struct bed_node {
	char name[8];
	int64_t beat, cut_until;
	struct bed_step *steps;
	size_t n_steps;
	bool asked; /* what moves */
	struct scan_result *scans;
	size_t n_scans;
};
struct bed_rank {
	int64_t log, io, cpu, iteration, told;
	int64_t net_at; /* its cards moved a good deal, as a reading every 5 s saw it; MO_NONE */
	bool net;       /* since the last of these */
	double step_ms;
	struct motion_marks marks;
	struct gpu_work work;
	int act;
};
struct bed {
	const struct scenario *s;
	uint64_t rng;
	bool trace;
	struct core *core;
	int64_t now, job, attempt, resume, saved;
	int64_t away_until; /* the controller is */
	struct bed_node nodes[BEDS];
	struct bed_rank ranks[RANKS];
	struct course course;
	struct stretch stretch;
	int64_t stretch_end;
	bool trains;
	/* iterations that are printed and not delivered yet, and the mean time of their steps */
	int64_t lines[64];
	double line_ms[64];
	int n_lines;
	double since_line_s;
	int since_line_n;
	struct verdicts *v;
};
/* Status of the reply; 0 none. */
int64_t bed_decide(struct bed *b, const struct core_input *in);
void bed_hello(struct bed *b, struct bed_node *n);
void bed_second(struct bed *b);
void bed_end(struct bed *b, int rank, int64_t code, int64_t signal);
struct bed_step *bed_step(struct bed_node *n, int64_t job, int64_t attempt);
/* Of the step that runs; NULL: it is over there. */
struct note *bed_note(struct bed *b, int rank, int kind);
