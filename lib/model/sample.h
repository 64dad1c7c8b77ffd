/* One iteration's metrics; the Sample of the REST interface. Unknown = MO_NONE / MO_NONE_F. */
#pragma once
#include "lib/base/desc.h"

enum phase {
	PHASE_NONE = -1,
	PHASE_INIT,
	PHASE_LOAD,
	PHASE_TRAIN,
	PHASE_SAVE,
	PHASE_EVAL,
	_PHASE_N
};
extern const char *const phase_names[_PHASE_N];

struct sample {
	int64_t iteration;
	int64_t time; /* core time, us */
	double loss, grad_norm, lr, step_ms;
	int64_t tokens;
	double tokens_per_s_per_gpu, tflops_per_gpu, mfu, mem_gb;
	int64_t skipped, nan;
	/* samples of data: of all iterations through this one, and of this one alone */
	int64_t consumed_samples, batch_samples;
	int phase; /* enum phase */
	int64_t attempt;
};
extern const struct mo_desc sample_desc;
/* Takes every field of b that is known and unknown in a. */
void sample_merge(struct sample *a, const struct sample *b);
