/* A world of its own for a shell: linked in place of the seams of docs/decisions/010-seams.md. Time
 * is virtual, the disk and the store are memory, agents are whoever calls agent_message(). One
 * world per program. */
#pragma once
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/agent_message.h"
#include "daemon/manager.h"

#define S 1000000LL
/* time.c */
int64_t seam_now(void);      /* CLOCK_BOOTTIME, us */
void seam_run(int64_t us);   /* time passes: turns and timers as they are due */
bool seam_ended(void);       /* the loop was told to end */
void seam_new_process(void); /* timers and turns of the one before are gone */
/* disk.c */
void seam_put(const char *path, const char *text);
size_t seam_syncs(void); /* how often something was synced */
/* store.c */
size_t seam_records(void);
void seam_store_fails(int error); /* from now on; 0: it works again */
/* answers.c: what went back to the message of this number */
struct seam_answer {
	int status;
	char *text;
};
const struct seam_answer *seam_answer(int64_t request); /* NULL: none yet */
void seam_token(const char *id);                        /* with which every message comes */
int64_t seam_say(struct manager *m, enum agent_word word, const struct mo_desc *d, const void *obj);
void seam_done(void);
