/* Where the ranks of a step in an image write what lies in no mount: a directory of this node for
 * each step, state_dir/layers/jN.aM, which ends with the step. Made before its supervisor is
 * started, and removed by a process beside the agent: packages that engine.prepare installed there
 * are many files. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct manager;
struct layers;
int layers_new(struct manager *m, struct layers **ret);
struct layers *layers_free(struct layers *l);
int layers_make(struct layers *l, int64_t job, int64_t attempt); /* 0, or a negative errno */
/* No process of the step is left. */
void layers_remove(struct layers *l, int64_t job, int64_t attempt);
/* Once, when the steps of an agent before this one are known: those of others go, and what it did
 * not come to remove. */
void layers_sweep(struct layers *l);
/* Whether what the ranks of the step wrote into its layer is at this absolute path of the image, by
 * no link that leads out of the layer: it is gone with the step. */
bool layers_hold(const struct layers *l, int64_t job, int64_t attempt, const char *path);
