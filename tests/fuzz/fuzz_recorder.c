/* Any bytes as a dump of a flight recorder: what is told of it fits its message, and what is whole
 * is not whole without its last byte. ROOMS: acore wire model base */
#include <stdlib.h>

#include "agent/core/text/recorder.h"
#include "lib/base/desc_fit.h"
#include "tests/fuzz/whole.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct rank_recorder k, fit;

	mo_desc_init(&rank_recorder_desc, &k);
	mo_desc_init(&rank_recorder_desc, &fit);
	bool whole = !recorder_read(data, n, INT64_MAX, &k);

	mo_desc_copy(&rank_recorder_desc, &fit, &k);
	mo_desc_fit(&rank_recorder_desc, &fit);
	if (k.n_waits > RECORDER_WAITS_MAX || !mo_desc_equal(&rank_recorder_desc, &k, &fit))
		abort();
	mo_desc_done(&rank_recorder_desc, &k);
	if (whole && !recorder_read(data, n - 1, 0, &fit))
		abort();
	mo_desc_done(&rank_recorder_desc, &fit);
	return 0;
}
