/* Images that jobs name and nodes do not have: a phase before an attempt, as the scan of its
 * checkpoints is one. The first of the job's nodes says which image the name means; that digest is
 * the job's from then on. All nodes of the attempt are to have it before it begins. */
#pragma once
#include "daemon/core/rules/turn_io.h"
#include "daemon/core/state/live.h"

struct turn;

enum images {
	IMAGES_READY, /* all places have it, or the job needs none */
	IMAGES_WAIT,  /* they are being brought: the places are the job's meanwhile */
	IMAGES_STAY,  /* one is refused, of a job that has run: a person is needed */
	IMAGES_NEVER, /* one is refused, of a job that never ran: why is in error */
};
/* Asks these nodes for what is missing. ret: made unless READY, the caller's. */
int images_wait(struct turn *t, const struct job *j, const struct place *places, size_t n,
		struct waiting *ret);
/* The job runs, and this node may become one of its own (a spare): it is asked for what it misses,
 * as long as passes say so. */
void images_bring(struct turn *t, const struct job *j, const char *node);
/* How far a node is that images_bring() asks: ", its image is there", or why not yet. Caller frees;
 * "" where the job has none to bring. l: what is known of it, NULL nothing. */
char *images_words(const struct job *j, const struct live *l);
/* A pass over the whole queue begins: what it does not ask for is not wanted any more. */
void images_pass(struct core *c);
/* May it be asked now? idle: it has what is asked for, or was refused it. False: enough others are
 * busy; the turn comes again. */
bool images_may_ask(struct turn *t, struct live *l, bool idle);
/* IN_IMAGES_REMOVE: answered with 200 when the nodes exist; the shell then asks them. */
void images_remove(struct turn *t);
/* Its agent knows what images are. */
bool images_known(const struct core *c, const char *node);
/* Ids ("j-7") of jobs that have this image on the node, or are about to; appended. */
void images_jobs(const struct core *c, const char *node, const char *digest, char ***ret,
		 size_t *n_ret);
/* A node has spoken. */
void images_reported(struct turn *t, const struct agent_sync *s);
/* What is ordered of a node for the job. Caller frees. */
struct image_order *image_order_new(const struct job *j);
