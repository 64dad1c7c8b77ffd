/* A recipe file on the command line: reading, --set, what is printed of it; checked by
 * recipe_check.h; shared by submit, validate and plan. */
#pragma once
#include <json-c/json.h>
#include "cli/client.h"
#include "lib/model/engine.h"
#include "lib/model/recipe.h"
#include "lib/recipe/errors.h"
#include "lib/recipe/set.h"

struct recipe_input {
	/* as given; "-" is standard input, shown as "stdin" */
	const char *file;
	struct mo_buf text;
	struct recipe_set *sets;
	size_t n_sets;
	struct recipe recipe;
	struct engine engine;
	char **warnings;
	size_t n_warnings;
	/* what is wrong with the engine's files is printed once, by who asked for them; a recipe
	 * that fails rules is shown all the same: */
	bool explaining;
	struct recipe_errors failed; /* the rules that failed */
	/* what its experiment is refused for, beside them */
	struct mo_error refusal;
	/* why plans have no model from the engine's own experiment; NULL = they have one, or
	 * none is wanted */
	char *no_model;
	/* what the engine's own experiment says, as the recipe's key; NULL = none, or not read */
	char *experiment;
	/* made by a program: nobody has its lines, so that messages name keys alone, and
	 * warnings are the caller's */
	bool draft;
	/* of a draft: key -> the words that it was made from */
	const struct kv *said;
	size_t n_said;
	/* the file of the engine's own configuration that could not be read here, so that
	 * nothing was judged by it; NULL = none */
	char *unread;
	bool checked; /* recipe_input_check() was called */
};
void recipe_input_init(struct recipe_input *in);
void recipe_input_done(struct recipe_input *in);
/* Adds a --set word "key=value". 0 or an exit status (printed). */
int recipe_input_set(const struct cli *cli, struct recipe_input *in, const char *word);
/* An option that says a value of the recipe: errors name the option. */
void recipe_input_option(struct recipe_input *in, const char *option, const char *key,
			 const char *value);
/* Reads the file. 0 or CLI_USAGE (printed). */
/* Is what is checked and sent another text than the file's, by --set and options? */
bool recipe_input_changed(const struct recipe_input *in);
int recipe_input_read(struct recipe_input *in, const char *file);
/* Prints the errors at their places; with --json the 422 document. CLI_USAGE. */
int recipe_input_refuse(const struct cli *cli, const struct recipe_input *in,
			const struct recipe_errors *errors);
/* Did it fail a rule, and is only shown (explaining)? */
bool recipe_input_refused(const struct recipe_input *in);
/* The list `errors` of such a document (the caller's). */
struct json_object *recipe_errors_json(const struct recipe_errors *errors);
/* The job as the controller would hold it, from what lies on this machine. */
struct submit;
int recipe_input_spec(const struct recipe_input *in, struct submit *spec, struct mo_error *err);
/* FILE:LINE:COLUMN: warning: text, as compilers write it; a warning without a place has FILE
 * alone. On stderr. */
void recipe_print_warning(const char *file, const char *warning);
/* The YAML text to send (sets applied). NULL after printing why. */
char *recipe_input_document(struct cli *cli, const struct recipe_input *in);
