/* Helpers of the recipe tests. */
#include "tests/unit/recipe/read.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/recipe/argv.h"

void parsed_done(struct parsed *p)
{
	mo_desc_done(&recipe_desc, &p->recipe);
	mo_desc_done(&engine_desc, &p->engine);
	for (size_t i = 0; i < p->n_warnings; i++)
		free(p->warnings[i]);
	free(p->warnings);
	recipe_errors_done(&p->errors);
}

struct parsed parse_n(const char *text, size_t n, const char *sets)
{
	struct recipe_set items[16] = { 0 };
	struct parsed p = { 0 };
	size_t n_sets = 0;

	for (const char *s = sets; s && *s && n_sets < ELEMENTSOF(items); n_sets++) {
		size_t len = strcspn(s, "\n"), key = strcspn(s, "=");

		assert_true(key < len);
		items[n_sets] = (struct recipe_set){ mo_strndup(s, key),
						     mo_strndup(s + key + 1, len - key - 1) };
		s += len + (s[len] == '\n');
	}
	mo_desc_init(&recipe_desc, &p.recipe);
	mo_desc_init(&engine_desc, &p.engine);
	p.result = recipe_parse(text, n, items, n_sets, &p.recipe, &p.engine, &p.warnings,
				&p.n_warnings, &p.errors);
	assert_int_equal(p.result<0, p.errors.n> 0);
	for (size_t i = 0; i < n_sets; i++) {
		free(items[i].key);
		free(items[i].value);
	}
	return p;
}

struct parsed parse(const char *text, const char *sets)
{
	return parse_n(text, strlen(text), sets);
}

char *errors_text(const struct recipe_errors *e)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < e->n; i++)
		mo_buf_printf(&b, "%lld:%lld %s%s%s%s\n", (long long)e->items[i].line,
			      (long long)e->items[i].column, e->items[i].text,
			      e->items[i].hint ? " [" : "",
			      e->items[i].hint ? e->items[i].hint : "",
			      e->items[i].hint ? "]" : "");
	return mo_buf_take(&b);
}

char *recipe_with(const char *lines)
{
	return mo_printf("recipe: 1\nname: t\nengine: {kind: torch, entry: /x/train.py}\ncluster: "
			 "{gpus: 8}\n%s",
			 lines);
}

void must(const struct parsed *p)
{
	_cleanup_(mo_freep) char *errors = errors_text(&p->errors);

	if (p->result < 0)
		fail_msg("%s", errors);
}

char *joined(char **words, size_t n)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < n; i++) {
		mo_buf_printf(&b, "%s%s", i ? " " : "", words[i]);
		free(words[i]);
	}
	free(words);
	return mo_buf_take(&b);
}

char *argv_of(const struct parsed *p)
{
	char **words = NULL;
	size_t n = 0;

	engine_argv(&p->engine, &p->recipe, &words, &n);
	return joined(words, n);
}
