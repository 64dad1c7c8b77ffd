/* One option table per daemon: name, type, bounds, default, doc. From it come the configuration
 * file (a flat subset of YAML: `key: value` lines, so that agents need no YAML library), `--set
 * key=value`, `--check-config`, and the documented example in config/. Every error names file,
 * line and column, what was expected, and the near-miss key. Used by main() of the daemons. Not
 * for pure rooms (reads files and prints for --version). */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"

enum mo_option_type {
	MO_OPTION_STR,      /* char *; NULL while not given */
	MO_OPTION_PATH,     /* char *; absolute path, or empty */
	MO_OPTION_NAME,     /* char *; mo_name_valid() */
	MO_OPTION_WORD,     /* char *; one of words */
	MO_OPTION_INT,      /* int64_t within [min, max] */
	MO_OPTION_BOOL,     /* bool */
	MO_OPTION_DURATION, /* int64_t microseconds within [min, max]; "30s" */
	/* int64_t bytes within [min, max]; "64M"; -1 = "unlimited" where min is -1 */
	MO_OPTION_SIZE,
	/* two int64_t, "20000-29999", both within [min, max] and ascending; offset is the first,
	 * the second follows it */
	MO_OPTION_RANGE,
};
struct mo_option {
	const char *name;
	enum mo_option_type type;
	size_t offset;
	/* default, as text; NULL = none (string NULL, number 0, false) */
	const char *value;
	const char *doc;          /* one or more lines for the example file */
	int64_t min, max;         /* INT DURATION SIZE RANGE; both 0 = unbounded */
	const char *const *words; /* WORD: NULL-terminated */
};
/* Something to do instead of serving: --NAME, or --NAME VALUE; never in a file. */
struct mo_action {
	const char *name, *value_name; /* value_name: NULL = it takes none */
	/* char *: the value, "" when it takes none; NULL = not asked for */
	size_t offset;
	const char *doc;
};
struct mo_options {
	const struct mo_option *items;
	size_t n;
	const struct mo_action *actions;
	size_t n_actions;
};

/* Fills obj with the defaults; obj need not be initialised. mo_options_done frees its strings. */
void mo_options_init(const struct mo_options *o, void *obj);
void mo_options_done(const struct mo_options *o, void *obj);
/* One option from text; "" and "null" mean the default. -EINVAL with err (which names a near
 * miss). */
int mo_options_set(const struct mo_options *o, void *obj, const char *name, const char *value,
		   struct mo_error *err);
/* A whole file's text. Nothing of a bad file is kept out of obj: callers stop on error. file is
 * used in messages: "FILE:LINE:COL: ...". */
int mo_options_text(const struct mo_options *o, void *obj, const char *file, const char *text,
		    size_t n, struct mo_error *err);
int mo_options_file(const struct mo_options *o, void *obj, const char *file, struct mo_error *err);
/* The documented example: every option with its doc and default, commented out. */
void mo_options_example(const struct mo_options *o, const char *head, struct mo_buf *b);

#define MO_ARGS_RUN 0 /* go on */
/* --check-config: check further, say "configuration is valid", exit 0 */
#define MO_ARGS_CHECK 1
#define MO_ARGS_DONE 2 /* --version or --help was answered: exit 0 */
char **mo_options_action_at(void *obj, const struct mo_action *a);
