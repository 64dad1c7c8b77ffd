/* A value of an engine's own configuration: typed as the engine's loader types it, with the
 * place that said it and, beside it, what it replaced. Maps are sorted by key, because a merge
 * looks every key up. */
#pragma once
#include "lib/base/buf.h"

#define CONFIG_DEPTH_MAX 32         /* maps and lists in each other */
#define CONFIG_KEYS_MAX 4096        /* keys of one map after all merges */
#define CONFIG_VALUES_MAX 100000    /* values of all files of one experiment */
#define CONFIG_TEXT_MAX (64 * 1024) /* bytes of one text after placeholders */

enum config_kind {
	CONFIG_NULL,
	CONFIG_BOOL,
	CONFIG_INT,
	CONFIG_REAL,
	CONFIG_TEXT,
	CONFIG_DATE,
	CONFIG_LIST,
	CONFIG_MAP,
};
extern const char *const config_kind_names[];

/* Who said it: a line of a file, or a word of the command. */
struct config_place {
	int64_t file, line, word;
}; /* file, word: indices, -1 = not by one */

struct config_value;
struct config_pair {
	char *key;    /* NULL in lists */
	bool no_text; /* the key is a number, a truth value, ..: no engine takes one */
	struct config_value *value;
};
struct config_value {
	enum config_kind kind;
	/* true, false; the digits; the shortest text of a real; the text. NULL: null, list, map */
	char *text;
	struct config_pair *items;
	size_t n;
	struct config_place place;
	/* the environment variable that a placeholder of it took, NULL = none was set */
	char *variable;
	struct config_value *over; /* what it replaced, which may have replaced something */
	bool is_new;               /* of a map: it was put where no map was (config_merge) */
};

struct config_value *config_value_new(enum config_kind kind, const char *text,
				      struct config_place place);
struct config_value *config_value_free(struct config_value *v);
MO_DEFINE_CLEANUP(struct config_value, config_value_free)

/* The value of a key; NULL when there is none or v is no map. */
struct config_value *config_get(const struct config_value *v, const char *key);
/* "a.b.c" in maps. */
struct config_value *config_find(const struct config_value *v, const char *path);
/* Puts value there (takes it); what stood there goes behind it as replaced. */
struct config_pair *config_put(struct config_value *map, const char *key,
			       struct config_value *value);
/* Takes the pair away and returns its value; NULL when there is none. */
struct config_value *config_take(struct config_value *map, const char *key);
void config_append(struct config_value *list, struct config_value *value);
/* `older` goes behind everything that v replaced (takes it). */
void config_replaced(struct config_value *v, struct config_value *older);
/* Maps are merged key by key, everything else is replaced whole. Empties and frees `over`. */
void config_merge(struct config_value *base, struct config_value *over);
/* Nothing below v is new any more. */
void config_known(struct config_value *v);
/* The texts `null` below a map become null, but not in lists, nor in maps that are new (which
 * then are no more). */
void config_settle(struct config_value *map);
/* The first key below v that is no text; NULL when there is none. */
const struct config_pair *config_bad_key(const struct config_value *v);
bool config_is_text(const struct config_value *v, const char *text);
/* As JSON; texts that JSON has no number for (inf, nan) and dates are strings. Appends. */
void config_json(const struct config_value *v, struct mo_buf *b);

/* Every value that is no map, and every empty map, by its path. Borrowed from the map. */
struct config_item {
	char *key;
	const struct config_value *value;
};
void config_items(const struct config_value *map, struct config_item **ret, size_t *n_ret);
void config_items_free(struct config_item *items, size_t n);

/* The shortest text that reads back as this number, as Python prints it. */
char *config_real_text(double v);
/* The digits of a whole number without sign +, underscores and leading zeros. */
char *config_int_text(const char *digits);
/* A number in decimal digits as the text that JSON has for it; NULL: it is none. */
struct config_value *config_number(const char *text, struct config_place place);
/* How many parts "a.b.c" has in the first n bytes. Who makes maps of them refuses more than
 * CONFIG_DEPTH_MAX: every reader of maps goes down into them. */
size_t config_parts(const char *path, size_t n);
