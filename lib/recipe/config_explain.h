/* An engine's configuration shown key by key, with who said each value: the document of `moectl
 * explain config` and of GET /v1/jobs/{id}/config. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/recipe.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/experiment.h"
#include "lib/recipe/set.h"

/* The command of a rank, with the recipe's path that brought each word (NULL: the engine file's
 * own). */
struct rank_command {
	char **words;
	size_t n_words;
	struct word_origins origins;
};
struct rank_command rank_command_of(const struct engine *e, const struct recipe *r);
void rank_command_done(struct rank_command *c);

struct config_given {
	const struct engine *engine;
	const struct recipe *recipe;
	/* of the recipe: shows what it gives itself, apart from what moectl fills in */
	const char *text;
	size_t n;
	const struct recipe_set *sets;
	size_t n_sets;
	const struct rank_command *command;
	/* Why the planner did not choose yet what `parallelism: auto` leaves to it; NULL: it
	 * has. */
	const char *undecided;
};
/* What said a value: FILE:LINE, the recipe's key, or moectl's reason (the caller's). */
struct config_source {
	const char *file;
	int64_t line;
	const char *recipe;
	char *moectl;
};
struct config_teller; /* knows which paths the recipe gives */
struct config_teller *config_teller_new(const struct config_given *g, const struct experiment *x);
struct config_teller *config_teller_free(struct config_teller *t);
MO_DEFINE_CLEANUP(struct config_teller, config_teller_free)
struct config_source config_source(const struct config_teller *t, struct config_place place);
/* The whole document, or of `key` and those below it; appends. Returns how many keys it has; of
 * a key that is not there `like` lists some that may have been meant. mask: what looks like a
 * secret is shown as ***. */
size_t config_explain(const struct config_teller *t, const char *key, bool mask, struct mo_buf *b);
/* The masked document of a job's record: of what its node read (of_node, NULL: nothing), else of
 * what the recipe's text carries, with the words of the command. The text is read once. -ENOENT:
 * neither is there; -EINVAL with err. */
int config_explain_record(const struct config_given *g, const char *of_node, const char *key,
			  struct mo_buf *b, struct mo_error *err);
