/* DIR/ballast, 16 MiB that are given up when the disk is full, so that running jobs still record.
 * Called by store.c. */
#pragma once
#include <stdbool.h>

/* what must stay free beside a ballast or a snapshot that is made */
#define BALLAST_FREE_MIN (64LL << 20)

bool ballast_there(const char *dir);
/* Gives it up when the disk has no room for what a start writes: before the first write. */
void ballast_before_start(const char *dir);
/* true when there was one */
bool ballast_release(const char *dir);
/* 0 also when there is one; -ENOSPC: less than BALLAST_FREE_MIN is free; another negative errno. */
int ballast_make(const char *dir);
