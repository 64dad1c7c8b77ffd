/* One job of two ranks on one node that saves to /ckpt, and what happens to it: for tests of what becomes of its checkpoints. */
#pragma once
#include "tests/unit/dcore/world.h"

struct saver { struct world w; int64_t id; };

int saver_setup(void **state);      /* resume: auto; nothing lies there yet, and nothing was looked at */
int saver_teardown(void **state);
void saver_again(struct saver *o, int64_t resume, int64_t keep);   /* the same with another recipe, from the beginning */
void saver_strict(struct saver *o);                                /* the same, of an engine whose checkpoints are judged by its layout alone */
void saver_tells_end(struct saver *o);   /* as saver_strict(), and its lines say of each save that it ended, and where */

void saver_run(struct saver *o, int64_t seconds);
void saver_save(struct saver *o, int64_t iteration);               /* announced, and it lies there complete */
void saver_crash(struct saver *o);                                 /* rank 0 dies; the next attempt, if any, runs */
int saver_restart(struct saver *o, int64_t iteration);             /* status of moectl restart --from */

const struct job *saver_job(const struct saver *o);
int saver_state(const struct saver *o, int64_t iteration);         /* enum checkpoint_state */
void saver_resumed(const struct saver *o, int64_t attempt, int64_t resume);   /* that attempt was launched from there; its ranks may not have iterated yet */
