/* What a check of the fabric found over the nodes of a job (moectl fabric check --job): who
 * measured is outside, so that the job has his word and the figures, and nothing follows from it.
 * The newest one counts. */
#pragma once
#include "lib/base/desc.h"
#include "lib/plan/fabric.h"

#define FABRIC_ODD_MAX 64   /* nodes and links that are named */
#define FABRIC_CURVE_MAX 32 /* sizes, as many as a curve has */
#define FABRIC_EVIDENCE_MAX 512

struct fabric_odd {
	char *node, *peer; /* peer NULL: the node itself; else the link between the two */
	char *evidence;    /* its measurements, in words */
};
struct fabric_point {
	int64_t bytes;
	double gbs; /* 10^9 bytes/s */
};
struct fabric_result {
	int verdict;              /* enum fabric_verdict */
	int64_t nodes;            /* how many were measured */
	double all_gbs, pair_gbs; /* all together, and what a pair reaches; MO_NONE_F: neither */
	struct fabric_odd *odd;
	size_t n_odd;
	struct fabric_point *curve; /* all together, sizes ascending, as plans read it */
	size_t n_curve;
};
struct fabric_check {
	int64_t time;
	char *by;
	struct fabric_result found;
};
extern const struct mo_desc fabric_odd_desc, fabric_point_desc, fabric_result_desc,
	fabric_check_desc;

/* What is wrong with one from outside, and what to do; caller frees. NULL: nothing. */
char *fabric_result_problem(const struct fabric_result *f);
/* In a sentence without a full stop; caller frees. */
char *fabric_result_text(const struct fabric_result *f);
