/* What somebody types to start a training today, read as a launch: `torchrun ..`, `primus-cli
 * ..`, `srun torchrun ..`, or a shell script that ends in one of them, with its `#SBATCH`
 * lines. Pure. What the launcher's words ask for is kept where moectl has it (GPUs, variables,
 * directory), and every other word of a launcher is in `lost` with the reason: nothing
 * disappears. The words of the program itself are kept as they are. */
#pragma once
#include "lib/model/recipe.h"
#include "lib/base/error.h"

/* A variable of which accelerate's words or its file speak. */
struct launch_setting {
	const char *name, *needs; /* needs: it is set beside this one alone; NULL = always */
	char *value, *where;      /* where: as it is written; NULL = it follows from others */
	char *over; /* the word with another value, over which a file's is taken; NULL = none */
};

struct launch_line {
	char **program;
	size_t n_program; /* SCRIPT WORD.. or -m MODULE WORD.. */
	char *python;     /* an absolute path that the line names; NULL = none */
	/* of the script that was given, where it stands or is called; 0 = no script */
	int64_t line;
	char *program_path; /* of Primus' launcher as it is written, when it is a path */
	char *launcher;     /* torchrun, primus-cli, deepspeed, python; borrowed from the code */
	struct kv *env;
	size_t n_env;            /* variables that are set for it, the last value of each */
	int64_t nodes, per_node; /* processes of a node; MO_NONE = not said */
	char *all; /* the words that ask for as many as a node has; NULL = they are counted */
	struct launch_setting *settings; /* until the file is read: then they are in env */
	size_t n_settings;
	const char *accelerate_type; /* distributed_type by a word; NULL = its file's */
	char *accelerate_config;     /* the file of accelerate that was read; NULL = none */
	int64_t total;               /* of all nodes; MO_NONE = not said */
	int64_t world;   /* WORLD_SIZE that a process of its own is given; MO_NONE = none */
	int64_t visible; /* GPUs that a variable names; MO_NONE = none does */
	int64_t tasks, tasks_per_node; /* of Slurm or MPI */
	bool spread;                   /* srun or mpirun starts it, once per task */
	bool use_env;                  /* the launcher was asked to give no --local_rank */
	char *dir;         /* `cd DIR` before it; NULL = none, or nobody knows where that leads */
	char *dir_unknown; /* then: DIR as it is written */
	char *name;        /* --job-name of sbatch; NULL = none */
	char *time_limit;  /* of sbatch as a recipe's duration; NULL = none */
	char **lost;
	size_t n_lost; /* "WORDS: why" */
};
/* A launcher, a program that runs one, or X=1: a line begins with it. */
bool launch_line_begins(const char *word);
void launch_line_init(struct launch_line *l); /* nothing is said */
void launch_line_done(struct launch_line *l);
/* Where a shell would read it. All may be NULL: nobody knows. */
struct launch_world {
	void *arg;
	char *(*read)(void *arg, const char *path); /* a script; NULL = none. Caller frees */
	const char *dir;                            /* absolute: where it is started */
	const char *script;                         /* its own path, $0 */
	const struct kv *known;                     /* variables of the user that it would have */
	size_t n_known;
};
/* Words that begin with a launcher: nothing of a shell is in them. */
int launch_line_plain(char *const *words, size_t n, struct launch_line *ret, struct mo_error *err);
bool launch_is_pretrain_sh(const char *path); /* a launcher of Primus that EXP tells its work */
