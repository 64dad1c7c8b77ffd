/* What becomes of the options of each launcher. Private to lib/recipe. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define PLACED "moectl places the ranks and gives them this"
#define RESTARTS \
	"moectl restarts by itself, from the newest verified checkpoint: recovery in " \
	"docs/recipe.md"
#define LOGS "moectl keeps the output of every rank: moectl logs JOB --rank R"
#define BINDS "moectl binds each rank beside its GPU: bind in docs/recipe.md"
#define IMAGE \
	"unpack the image on each node (moe-image) and write engine.container: {image: " \
	"dir:PATH} (docs/recipe.md)"
#define MOUNTS "write it as engine.container: {mounts: [SOURCE:TARGET]} (docs/recipe.md)"
#define RIGHTS \
	"ranks in an image (engine.container) have the node's network, the job's GPUs and the " \
	"user's own rights"
#define ACCELERATES \
	"accelerate tells its ranks by variables ACCELERATE_..: write those that you need " \
	"into env"
#define LOCAL_RANK_IS_SET \
	"its launcher adds this word for each rank, moectl gives LOCAL_RANK instead: read that " \
	"in " \
	"the script"

/* What becomes of an option: a number or text that is kept, or words that are lost for this
 * reason. */
enum launch_keeps {
	KEEP_NOTHING,
	KEEP_SAME,
	KEEP_ONE,
	KEEP_TASKS,
	KEEP_TASKS_PER_NODE,
	KEEP_TOTAL,
	KEEP_INCLUDED,
	KEEP_CONFIG,
	KEEP_REPORTED,
	KEEP_USE_ENV,
	KEEP_PAIR,
	KEEP_NODES,
	KEEP_GPUS,
	KEEP_GRES,
	KEEP_MODULE,
	KEEP_ENV,
	KEEP_DIR,
	KEEP_NAME,
	KEEP_TIME
};
struct launch_option {
	const char *names;
	bool valued;
	enum launch_keeps keeps;
	const char *why;
};

struct launcher {
	const char *name;
	const struct launch_option *options;
	size_t n;
};
extern const struct launcher launch_torchrun, launch_deepspeed, launch_slurm, launch_primus,
	launch_accelerate, launch_mpi, launch_flux;
