/* Snapshots of the whole state, so that a start need not replay everything: see snapshot.c. */
#pragma once
#include "daemon/manager.h"

void snapshots_new(struct manager *m);
struct snapshots *snapshots_free(struct snapshots *s);
/* a record of that many bytes was stored */
void snapshots_count(struct manager *m, size_t bytes);
/* after each turn, now: boot us: begins one when it is due, ends one that takes far too long */
void snapshots_check(struct manager *m, int64_t now);
