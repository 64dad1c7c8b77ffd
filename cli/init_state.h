/* What `moectl init` works on. init_source.c reads, init.c makes the draft, init_engine.c knows the
 * engines' own configurations, init_compare.c holds the recipe against the original,
 * init_tell.c writes. */
#pragma once
#include "cli/recipe.h"
#include "lib/recipe/config_value.h"
#include "lib/recipe/draft.h"

/* What of the rank's command the original does not say, and where it comes from then. */
#define INIT_ADDED " here, which the original does not say"
#define INIT_ENGINES_WORD "a word that the engine's file adds"

struct init {
	char *label; /* what it is made from, as it may be shown */
	const char *out, *workdir, *name;
	bool force;
	int64_t gpus, steps; /* said on the command line; MO_NONE */
	int64_t least_gpus;  /* that the engine's configuration needs */
	/* the engine starts one process for all GPUs of a node, or one of so many as what starts
	 * them says (a Slurm step): the line of one says nothing of the whole */
	bool one_of_many;
	struct launch_line line;
	size_t used; /* words of its program that are the engine's own, not flags of it */
	struct config_value *toml; /* what the original's --job.config_file says; NULL = none */
	struct draft draft;
	char **differ, **notes;
	size_t n_differ, n_notes, n_compared, n_same;
	bool is_line;       /* what it is made from is a line or words, no file */
	bool saves_unknown; /* it saves, where only its shell knows */
	bool of_keys;       /* keys of a configuration were compared, not words */
};
void init_done(struct init *i);
int init_refuse(const struct init *i, const char *what, const char *next); /* prints; CLI_USAGE */
#define init_note(i, ...) mo_strs_printf(&(i)->notes, &(i)->n_notes, __VA_ARGS__)
void init_name(struct init *i,
	       const char *text); /* the job's, made of this text, unless it has one */
/* Says why no recipe can be written there (a negative errno); CLI_USAGE. */
int init_no_out(const char *out, int why);
