/* When the whole state is written down next, when one that is being written takes too long, and
 * when to try again after a failure. A value of the shell, no part of the state: a restart begins
 * anew. Pure; the shell is daemon/snapshot.c. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SNAPSHOT_RECORDS_MIN 10000
/* or as many bytes: a node may have stored 2 MB with each of its messages */
#define SNAPSHOT_BYTES_MIN (128LL << 20)
#define SNAPSHOT_AGAIN_US (60 * 1000000LL)   /* after a failure */
#define SNAPSHOT_LIMIT_US (1800 * 1000000LL) /* a slow disk rests a second after each MiB */

/* All zero: none was written yet. Times are of one clock, us. */
struct snapshot_pace {
	int64_t bytes;       /* of the last snapshot */
	int64_t bytes_since; /* of records, since it began */
	int64_t began, not_before;
	bool under_way;
	bool late; /* the one under way: said once */
};

void snapshot_stored(struct snapshot_pace *p, size_t bytes); /* a turn's records */
/* n_records: in the store since its last snapshot. */
bool snapshot_due(const struct snapshot_pace *p, int64_t n_records, int64_t now);
void snapshot_began(struct snapshot_pace *p, int64_t now);
/* true, once: the one under way is to be ended. */
bool snapshot_overdue(struct snapshot_pace *p, int64_t now);
/* It ended, or could not begin. */
void snapshot_failed(struct snapshot_pace *p, int64_t now);
/* It is the store's now, and so large. */
void snapshot_adopted(struct snapshot_pace *p, int64_t bytes);
