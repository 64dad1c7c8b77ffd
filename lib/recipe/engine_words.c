/* Words that an engine file and a recipe give together, besides the command of the ranks
 * (argv.c): engine.prepare, and where the engine writes its heartbeat. */
#include "lib/recipe/engine_words.h"

#include <string.h>

#include "lib/recipe/argv.h"
#include "lib/recipe/keys.h"

/* {python}, {entry} and values of the recipe; words that only the node knows stay for it. */
static char *expand(const struct engine *e, const struct recipe *r, const char *word)
{
	const struct {
		const char *name, *value;
	} own[] = {
		{ "{python}", recipe_python(e, r) },
		{ "{entry}", r->engine.entry ? r->engine.entry
			     : e->entry      ? e->entry
					     : "" },
	};
	struct mo_buf b = { 0 };

	while (*word) {
		size_t i = 0;

		while (i < ELEMENTSOF(own) && !mo_starts_with(word, own[i].name))
			i++;
		if (i < ELEMENTSOF(own))
			mo_buf_str(&b, own[i].value);
		else
			mo_buf_add(&b, word, 1);
		word += i < ELEMENTSOF(own) ? strlen(own[i].name) : 1;
	}
	_cleanup_(mo_freep) char *half = b.data ? mo_buf_take(&b) : mo_strdup("");

	return recipe_expand(r, half, NULL);
}

void engine_prepare(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret)
{
	char *const *words = r->engine.n_prepare_argv ? r->engine.prepare_argv : e->prepare;
	size_t n = r->engine.n_prepare_argv ? r->engine.n_prepare_argv : e->n_prepare;

	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *word = NULL;

		if (mo_streq(words[i], "{argv}")) {
			engine_argv(e, r, ret, n_ret);
			continue;
		}
		word = expand(e, r, words[i]);
		mo_strs_add(ret, n_ret, word);
	}
}

const char *recipe_engine_arg(const struct recipe *r, const char *name, size_t n)
{
	for (size_t i = 0; i < r->engine.n_args; i++) {
		const char *key = r->engine.args[i].key + strspn(r->engine.args[i].key, "-");

		if (strncmp(key, name, n) != 0)
			continue;
		if (key[n] == '=')
			return key + n + 1;
		if (key[n] == 0)
			return r->engine.args_list
				       ? i + 1 < r->engine.n_args ? r->engine.args[i + 1].key : NULL
				       : r->engine.args[i].value;
	}
	return NULL;
}

char *engine_heartbeat_dir(const struct engine *e, const struct recipe *r)
{
	const char *dir = e->heartbeat.dir, *arg = dir ? strstr(dir, "{arg:") : NULL;

	if (!arg || !strchr(arg, '}'))
		return dir ? recipe_expand(r, dir, NULL) : NULL;
	const char *name = arg + strlen("{arg:"), *end = strchr(arg, '}');
	size_t n = strcspn(name, ":}"), skip = name[n] == ':' ? n + 1 : n;
	const char *value = recipe_engine_arg(r, name, n);
	_cleanup_(mo_freep) char *text =
		value ? mo_printf("%.*s%s%s", (int)(arg - dir), dir, value, end + 1)
		      : mo_printf("%.*s%.*s%s", (int)(arg - dir), dir,
				  (int)(end - name - (ptrdiff_t)skip), name + skip, end + 1);

	return recipe_expand(r, text, NULL);
}
