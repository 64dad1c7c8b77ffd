/* Which engine a launch starts, by the templates of the engine files. */
#include "lib/recipe/draft_kind.h"

#include <stdarg.h>
#include <string.h>

#include "lib/recipe/engine_load.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file itself, or one below some directory. */
static bool is_file(const char *word, const char *path)
{
	size_t n = strlen(word), m = strlen(path);

	return n >= m && mo_streq(word + n - m, path) && (n == m || word[n - m - 1] == '/');
}

/* A module of the template by the name that newer trees have; what starts it finds either. */
static bool is_module(const struct engine *e, const char *word, const char *want)
{
	const struct engine_checks *c = e->checks;

	for (size_t i = 0; c && i < c->n_module_names; i++)
		if (mo_streq(want, c->module_names[i].key) &&
		    mo_streq(word, c->module_names[i].value))
			return true;
	return is_file(word, want);
}

static bool says_otherwise(const struct launch_line *l, const char *word)
{
	size_t n = strcspn(word, "=") + 1;

	for (size_t i = 0; i < l->n_program; i++)
		if (!strncmp(l->program[i], word, n) && strcmp(l->program[i], word) != 0)
			return true;
	return false;
}

/* How many words of the program the engine's template has, 0 = it is another program. */
static size_t fits(const struct launch_line *l, const struct engine *e, int *ret_entry)
{
	size_t at = 0;

	*ret_entry = -1;
	for (size_t i = 1; i < e->n_argv; i++) {
		const char *want = e->argv[i], *word = at < l->n_program ? l->program[at] : NULL;
		bool entry = mo_streq(want, "{entry}");

		if (mo_streq(want, "{args}") || mo_streq(want, "{argv}") ||
		    mo_starts_with(want, "--"))
			break;
		/* a program of ours, which starts the module behind it */
		if (*want == '/' && i + 1 < e->n_argv && mo_streq(e->argv[i + 1], "-m"))
			continue;
		/* hardware=gpu: said anywhere, or left out, but not otherwise */
		if (strchr(want, '=') && !(word && mo_streq(word, want))) {
			if (says_otherwise(l, want))
				return 0;
			continue;
		}
		if (!word)
			return 0;
		if (entry && mo_streq(word, "-m"))
			return 0; /* a module is no script */
		if (entry && at == 0 &&
		    (!e->entry || !mo_streq(base_name(word), base_name(e->entry))) &&
		    !mo_streq(l->launcher, e->kind))
			return 0;
		if (entry)
			*ret_entry = (int)at;
		else if (!strchr(want, '=') && !is_module(e, word, want))
			return 0;
		at++;
	}
	return at;
}

const char *draft_kind(const struct launch_line *l, char *const *kinds, size_t n_kinds,
		       size_t *ret_used, int *ret_entry)
{
	const char *best = NULL;

	*ret_used = 0;
	*ret_entry = -1;
	for (size_t i = 0; i < n_kinds; i++) {
		struct engine e;
		int entry = -1;

		mo_desc_init(&engine_desc, &e);
		size_t n = engine_load(kinds[i], &e, NULL) == 0 ? fits(l, &e, &entry) : 0;
		mo_desc_done(&engine_desc, &e);
		/* names come in no order */
		if (n > *ret_used || (n && n == *ret_used && strcmp(kinds[i], best) < 0)) {
			*ret_used = n;
			*ret_entry = entry;
			best = kinds[i];
		}
	}
	return best;
}
