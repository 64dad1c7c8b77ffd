/* Any bytes as a notify datagram.
 * ROOMS: acore model base */
#include <stdlib.h>
#include "agent/core/text/lines.h"
#include "agent/core/text/notify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_fact f;

	if (notify_read((const char *)data, size, 4, &f) == 0 &&
	    (f.kind < -1 || f.kind >= _LINE_KIND_N || f.phase < -1 || f.phase >= _PHASE_N))
		abort();
	return 0;
}
