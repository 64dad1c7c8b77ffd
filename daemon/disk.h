/* Room on the disk of the state directory. */
#pragma once
#include "daemon/manager.h"

/* May a new job be taken? */
bool disk_for_submit(struct manager *m);
/* The disk was full and the ballast is gone. */
void disk_lost(struct manager *m);
/* At the start: a disk without room for the ballast is as full as one that took it. */
void disk_start(struct manager *m);
/* Checks whether there is room again; each pulse. */
void disk_check(struct manager *m);
/* An event of the store. */
void disk_tell(struct manager *m, enum event_type type, const char *fmt, ...) _printf_(3, 4);
