/* Discovering the machine although a device does not answer. A pass is one run of moe-discover;
 * where one hangs, the next one leaves that device out, and what the device said at the last
 * full pass of this boot stays in use. A round is the passes from the first, which leaves out
 * only what a process still hangs in, to one that ends. Pure; the shell is agent/discovery.c. */
#pragma once
#include "lib/model/nodeinfo.h"

/* The last full pass, stored on disk: good for this boot and these options of moe-discover. */
struct known_machine {
	char *boot_id, *options;
	struct nodeinfo info;
};
extern const struct mo_desc known_machine_desc;

struct left_out {
	/* of moe-discover --leave-out; address or name of the device. Both NULL: the file is of
	 * no device */
	char *dir, *object;
	char *file;     /* that could not be read in time; NULL not known */
	int64_t stuck;  /* processes that read it live on: nobody else reads it */
	int64_t orphan; /* pid of one that is of an agent that is no more; 0: none is */
};
struct left_outs {
	struct left_out *items;
	size_t n;
};
void left_outs_done(struct left_outs *l);
/* A new round. false: not now, a process hangs in what cannot be left out. */
bool left_outs_begin(struct left_outs *l);
/* A pass hung at this file (NULL: not known), and its process may live on. true: start another,
 * leaving its device out. */
bool left_outs_add(struct left_outs *l, const char *file);
/* A process of an agent before this one hangs at this file; the file that left_outs_gone() takes
 * for it (another one of the same device hangs already). */
const char *left_outs_orphan(struct left_outs *l, const char *file, int64_t pid);
/* A process that hung there has ended. file: as given to left_outs_add(). */
void left_outs_gone(struct left_outs *l, const char *file);

/* Gives what is left out the place and the values that it had before (NULL: there is none), and
 * a finding that names its file; the other devices are as this pass found them. */
void discovery_join(struct nodeinfo *info, const struct nodeinfo *before,
		    const struct left_outs *l);
bool discovery_has(const struct nodeinfo *info, const char *bdf); /* a slot of this card */
/* A full pass. GPUs that were there before in this boot and are not any more keep their slots,
 * with a finding: running jobs were given slots by number, and checks that tell of a GPU that is
 * missing need to know it. A card that is partitioned in another way is there. before: NULL:
 * there was none. */
void discovery_vanished(struct nodeinfo *info, const struct nodeinfo *before);
/* What is left out and why, for the finding host.discovery; caller frees, NULL: nothing is.
 * problem: why the round gave nothing, NULL: it gave info. */
char *discovery_says(const struct left_outs *l, const char *problem, bool before);
