/* One job of two ranks on one node that saves to /ckpt, and what happens to it: for tests of what
 * becomes of its checkpoints. */
#pragma once
#include "tests/unit/dcore/world.h"

struct saver {
	struct world w;
	int64_t id;
};

/* resume: auto; nothing lies there yet, and nothing was scanned */
int saver_setup(void **state);
int saver_teardown(void **state);
/* the same on so many nodes */
void saver_on(struct saver *o, size_t nodes);
/* the same with another recipe, from the beginning */
void saver_again(struct saver *o, int64_t resume, int64_t keep);
/* the same, that makes so many steps; nodes verify */
void saver_steps(struct saver *o, int64_t steps, int64_t every, int64_t keep);
/* the same, of an engine that marks its saves with COMPLETE, or announces them */
void saver_marked(struct saver *o);
/* the same, with that checkpoint.verify, and nodes that do verify */
void saver_compares(struct saver *o, const char *level, size_t nodes);
/* the same on two nodes, which read a part each */
void saver_compares_in_parts(struct saver *o, const char *level);
/* the same, with a time limit */
void saver_limited(struct saver *o, int64_t limit_us);
/* the same, of an engine whose checkpoints are judged by its layout alone */
void saver_strict(struct saver *o);
/* as saver_strict(), and its lines say of each save that it ended, and where */
void saver_tells_end(struct saver *o);
/* recovery.loss_spike; NULL, MO_NONE_F, MO_NONE: not said */
void saver_losses(struct saver *o, const char *action, double factor, int64_t max);
/* recovery.loss_spike.skip, of an engine with --skip and this word */
void saver_skips(struct saver *o, int64_t n, const char *word);
/* of an engine that prints no loss when it is NaN */
void saver_leaves_nan_out(struct saver *o);
/* in an image, whose /work/c is /ckpt of the nodes */
void saver_in_image(struct saver *o);

void saver_run(struct saver *o, int64_t seconds);
/* announced, and it lies there complete */
void saver_save(struct saver *o, int64_t iteration);
/* rank 0 dies; the next attempt, if any, runs */
void saver_crash(struct saver *o);
/* status of moectl restart --from */
int saver_restart(struct saver *o, int64_t iteration);

const struct job *saver_job(const struct saver *o);
int saver_state(const struct saver *o, int64_t iteration); /* enum checkpoint_state */
/* that attempt was launched from there; its ranks may not have iterated yet */
void saver_resumed(const struct saver *o, int64_t attempt, int64_t resume);
