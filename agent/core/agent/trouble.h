/* Which trouble with the controller is worth a line of the log: each kind once, and again when it
 * is another one. Pure; called by agent/link.c, whose tries come several times a second. */
#pragma once
#include "lib/base/util.h"

#define TROUBLES 8                        /* lines in TROUBLE_AGAIN_US at most, whatever comes */
#define TROUBLE_AGAIN_US (60 * 1000000LL) /* two that take turns are said so often each */

struct trouble {
	char *last;
	struct {
		char *text;
		int64_t at;
	} said[TROUBLES];
	size_t next;
};
/* Whether to say it; remembered as said then. Durations in it ("after 12 ms") make no
 * difference. */
bool trouble_say(struct trouble *t, const char *text, int64_t now_us);
/* It is over: whatever comes next is new. */
void trouble_over(struct trouble *t);
