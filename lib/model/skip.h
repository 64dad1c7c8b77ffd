/* Data that a job leaves out: iterations whose loss went bad, and those just before them. The
 * windows stay with the job, and every later attempt's command has all of them.
 *
 * Which iterations: rules/numbers.c. A window begins at the checkpoint itself at the earliest,
 * though that iteration is behind it: engines of before 2026 count from 0. */
#pragma once
#include "lib/base/desc.h"

struct engine;

#define SKIPS_MAX 10             /* windows of a job: recovery.loss_spike.skip */
#define SKIP_MARGIN 100          /* iterations before the first bad loss: what broke the weights */
#define SKIP_ITERATIONS_MAX 1000 /* of one window: they stand one by one on a command */

struct skip {
	int64_t time, attempt; /* when, and which attempt it came from */
	int64_t first, last;   /* iterations, both left out */
};
extern const struct mo_desc skip_desc;

/* Appends the engine's words for them; none without windows. */
void skip_words(const struct engine *e, const struct skip *skips, size_t n, char ***argv,
		size_t *n_argv);
