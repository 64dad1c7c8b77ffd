/* The controller's world (world.h): agents are whoever calls agent_message(). */
#pragma once
#include "tests/unit/seams/world.h"

#include "daemon/agent_message.h"
#include "daemon/manager.h"

/* answers.c: what went back to the message of this number */
struct seam_answer {
	int status;
	char *text;
};
const struct seam_answer *seam_answer(int64_t request); /* NULL: none yet */
void seam_token(const char *id);                        /* with which every message comes */
int64_t seam_request(void);                             /* its number */
int64_t seam_say(struct manager *m, enum agent_word word, const struct mo_desc *d, const void *obj);
void seam_done(void);
