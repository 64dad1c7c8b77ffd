/* Everything a rank's child needs, made before its fork: identity, environment, program path,
 * CPU sets, pipes. */
#pragma once
#include "agent/core/bind/env_record.h"
#include "agent/stepd/readas.h"
#include "agent/stepd/stepd.h"

/* What a rank is given. */
struct given {
	struct env_item *items;
	size_t n;
};
#define ENV_FILE_MAX (64 * 1024)
#define FILES_MS 10000 /* for all files of a start together */

struct prepared {
	struct child_plan *plans;
	size_t n; /* one per local rank */
	int null_fd;
	/* a child's ends of its pipes, of the one that is forked next; -1 closed */
	int out_fd, err_fd;
	/* interface of this node's address, NULL unknown or one node */
	char *ifname;
	struct given *given;     /* of each rank; of others than the first only what differs */
	struct file_text *files; /* of `file:` variables, each once */
	size_t n_files;
	void **memory;
	size_t n_memory;
};
struct prepared *prepared_free(struct prepared *p);
MO_DEFINE_CLEANUP(struct prepared, prepared_free)
/* Everything that a recipe can have wrong, of all ranks, before any fork, in two parts: between
 * them p->files are read (files.c). The first also sets s->who. On failure *ret_cause is the
 * note's cause (user, workdir, bind, exec). */
int prepare_begin(struct stepd *s, struct prepared **ret, const char **ret_cause,
		  struct mo_error *err);
int prepare_end(struct stepd *s, struct prepared *p, const char **ret_cause, struct mo_error *err);
/* p frees it. */
void *prepared_keep(struct prepared *p, void *memory);
/* The paths execvp() would try for the program in the PATH of that environment. */
char **prepared_candidates(struct prepared *p, const char *program, char *const *env);
/* Pipes, notify socket and error file of one rank, just before its fork: the ranks before it are
 * executing meanwhile. */
int prepare_files(struct stepd *s, struct prepared *p, size_t i, struct mo_error *err);
/* They are the child's now: later forks need not copy them. */
void prepared_close_ends(struct prepared *p);
/* env.json of the step's directory; once the ranks run, so that none waits for it. */
void prepare_leave_record(struct stepd *s, const struct prepared *p);
