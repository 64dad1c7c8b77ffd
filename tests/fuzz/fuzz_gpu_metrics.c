/* Any bytes as gpu_metrics: no read beyond them, and the readings are a document.
 * ROOMS: acore wire model base */
#include <stdlib.h>
#include <string.h>

#include "agent/core/health/gpu_metrics.h"
#include "agent/core/health/reading.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct gpu_metrics m;
	struct probe p;

	mo_desc_init(&probe_desc, &p);
	int r = gpu_metrics_decode(data, n, &m, &err);
	if ((r < 0) != (err.text != NULL))
		abort();
	gpu_metrics_readings(&m, &p);
	wire_encode(&probe_desc, &p, &b);
	if (wire_decode(&probe_desc, b.data, b.len, true, &p, NULL) < 0)
		abort();
	mo_desc_done(&probe_desc, &p);
	return 0;
}
