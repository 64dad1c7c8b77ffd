/* See snapshot_pace.h. */
#include "daemon/core/rules/snapshot_pace.h"
#include "lib/base/assert.h"
#include "lib/base/util.h"

void snapshot_stored(struct snapshot_pace *p, size_t bytes)
{
	p->bytes_since += (int64_t)bytes;
}

/* As many bytes of records as the last snapshot had must have come: what a record costs then
 * does not grow with the state. */
bool snapshot_due(const struct snapshot_pace *p, int64_t n_records, int64_t now)
{
	mo_assert(p->bytes_since >= 0);
	return !p->under_way && now >= p->not_before && p->bytes_since >= p->bytes &&
	       (n_records >= SNAPSHOT_RECORDS_MIN || p->bytes_since >= SNAPSHOT_BYTES_MIN);
}

void snapshot_began(struct snapshot_pace *p, int64_t now)
{
	mo_assert(!p->under_way);
	p->under_way = true;
	p->late = false;
	p->began = now;
	p->bytes_since = 0;
}

bool snapshot_overdue(struct snapshot_pace *p, int64_t now)
{
	if (!p->under_way || p->late || now - p->began <= SNAPSHOT_LIMIT_US)
		return false;
	p->late = true;
	return true;
}

/* The bytes since the last snapshot still count, or the next try would wait for as many again. */
void snapshot_failed(struct snapshot_pace *p, int64_t now)
{
	p->under_way = false;
	p->not_before = now + SNAPSHOT_AGAIN_US;
	p->bytes_since = MO_MAX(p->bytes_since, p->bytes);
}

void snapshot_adopted(struct snapshot_pace *p, int64_t bytes)
{
	p->under_way = false;
	p->bytes = bytes;
}
