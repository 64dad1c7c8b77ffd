/* The words of launchers: what becomes of each. Private to lib/recipe. */
#pragma once
#include "lib/recipe/launch_line.h"

#define PLACED "moectl places the ranks and gives them this"
#define RESTARTS \
	"moectl restarts by itself, from the newest verified checkpoint: recovery in " \
	"docs/recipe.md"
#define LOGS "moectl keeps the output of every rank: moectl logs JOB --rank R"
#define BINDS "moectl binds each rank beside its GPU: bind in docs/recipe.md"
#define IMAGE \
	"containers are not part of a recipe here: run moe-agent inside the image " \
	"(docs/first-day.md)"
#define ACCELERATES \
	"accelerate tells its ranks by variables ACCELERATE_..: write those that you need " \
	"into env"
#define LOCAL_RANK_IS_SET \
	"its launcher adds this word for each rank, moectl gives LOCAL_RANK instead: read that " \
	"in " \
	"the script"
#define LAUNCH_ALL (-2) /* processes of a node: as many as it has GPUs */

struct option;
struct launcher {
	const char *name;
	const struct option *options;
	size_t n;
};
extern const struct launcher launch_torchrun, launch_deepspeed, launch_slurm, launch_primus,
	launch_accelerate, launch_mpi, launch_flux;
/* Options of a launcher up to its first other word, or "--"; *at is behind them. */
void launch_options(struct launch_line *l, const struct launcher *p, char *const *words, size_t n,
		    size_t *at, bool *module);
void launch_lose(struct launch_line *l, const char *what, const char *value, const char *why);
void launch_env(struct launch_line *l, const char *name, size_t n, const char *value);
size_t launch_assigned(const char *word); /* X in X=1; 0 = no assignment */
bool launch_among(const char *names, const char *word, size_t n);
