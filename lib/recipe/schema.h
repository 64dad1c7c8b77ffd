/* One table describes all keys of a document: path, type, bounds, default and where the value
 * goes; schema_read() reads any document by its table. Private to lib/recipe.
 *
 * Read so: recipes (keys.c), engine files (engine_file.c), models, GPUs, health checks, failure
 * signatures, environment profiles. What a table cannot say (values that depend on each other) is
 * a rule: rules.h for recipes, engine_checks.h for engine files.
 *
 * Unknown keys, wrong types, values out of bounds and missing keys become errors with their place,
 * all of them and not only the first. What never happens: a value is taken that was refused; a
 * default hides a key that was misspelt. */
#pragma once
#include "lib/recipe/yaml.h"

enum key_type {
	KEY_MAP,      /* only holds further keys */
	KEY_INT,      /* int64_t, min..max, or one of words (stored as values[i]) */
	KEY_REAL,     /* double, min..max */
	KEY_BOOL,     /* bool */
	KEY_TEXT,     /* char *, any text */
	KEY_NAME,     /* char *, mo_name_valid */
	KEY_PATH,     /* char *, absolute path */
	KEY_WORD,     /* char *, one of words */
	KEY_ENUM,     /* int, index into words */
	KEY_DURATION, /* int64_t us, at least min */
	KEY_LIST,     /* char ** + size_t, of texts */
	KEY_CUSTOM,   /* read() */
	/* asks for work not built: only what asks for nothing passes (asks_nothing(), and the
	 * words of `nothing`) */
	KEY_REFUSED,
};
struct reader;
struct key {
	const char *path;
	enum key_type type;
	unsigned base; /* which struct of reader.bases the offset counts from */
	size_t offset, count_offset;
	/* missing from a mapping that is there = error at that mapping */
	bool required;
	int64_t min, max;
	bool has_def;
	int64_t def;              /* KEY_INT, KEY_DURATION, KEY_BOOL, KEY_ENUM */
	const char *text_def;     /* KEY_TEXT, KEY_WORD */
	const char *const *words; /* NULL-terminated */
	const int64_t *values;    /* KEY_INT: value of each word */
	/* "a|b": words not built yet (KEY_INT: that can never work), and what to do instead */
	const char *refused, *instead;
	/* KEY_REFUSED, "a|b": further words that ask for nothing */
	const char *nothing;
	void (*read)(struct reader *r, const struct key *k, const struct ynode *v);
	/* KEY_CUSTOM, "string|object": what JSON may stand there, a type or the word "auto"; NULL:
	 * any */
	const char *shape;
};
#define SCHEMA_BASES 6
struct reader {
	struct recipe_errors *errors;
	const struct key *keys;
	size_t n_keys;
	/* NULL: values of that base are checked but not stored */
	void *bases[SCHEMA_BASES];
	void *arg; /* for read() */
};

/* Defaults of all keys below prefix ("" = all). */
void schema_defaults(struct reader *r, const char *prefix);
/* Reads the mapping `map`, whose keys' paths begin with prefix ("" or "cluster."). */
void schema_read(struct reader *r, const char *prefix, const struct ynode *map);
/* NULL if none */
const struct key *schema_key(const struct key *keys, size_t n_keys, const char *path);
/* Text of a value as an engine gets it (caller frees); NULL when unknown. Not for KEY_MAP,
 * KEY_LIST, KEY_CUSTOM. */
char *schema_value(const struct key *k, const void *base);
