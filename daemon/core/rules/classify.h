/* What kind of failure was it? Pure: rules and texts in, verdict with evidence out. Callers:
 * moectl classify; verdict.c with the last lines of the ranks that ended. Order of the
 * rules: kernel and runtime statements beat what a program says of itself, which beats what its
 * peers say; collateral is never primary while anything else matches. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/failure.h"

struct classifier;
/* Compiles the rules (copied). -EINVAL with err for a bad pattern. */
int classifier_new(const struct failure_rules *rules, struct classifier **ret,
		   struct mo_error *err);
struct classifier *classifier_free(struct classifier *c);
MO_DEFINE_CLEANUP(struct classifier, classifier_free)

struct classify_input {
	const char *log, *kernel; /* whole texts, NULL = not given */
	size_t n_log, n_kernel;
	int64_t code, signal; /* exit status, MO_NONE = not known */
	int64_t iteration;    /* that it is known to have reached, whatever the log shows */
};
/* ret must be initialised. FAIL_OK when nothing matches and the exit status (if known) is 0. */
void classify(const struct classifier *c, const struct classify_input *in,
	      struct failure_verdict *ret);
/* The line tells of an iteration: what stands before it did not end the program. */
bool classify_progress(const struct classifier *c, const char *line);
