/* See owned.h. A job that loads from elsewhere, or saves where nobody scans, would resume from
 * the wrong weights after its first failure: such flags are refused in engine.args
 * (rules_engine.c) and from engine.prepare (agent/core/stepd/hooks.c), unless
 * engine.args_unchecked names them. */
#include "lib/recipe/owned.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/schema_scalar.h"

static bool listed(const struct engine *e, const char *flag)
{
	for (size_t i = 0; i < e->n_owned; i++)
		if (flag_same(flag, e->owned[i].key, strlen(e->owned[i].key)))
			return true;
	return false;
}

static void add(struct engine *e, const char *flag, const char *instead)
{
	if (listed(e, flag))
		return;
	struct kv *pair = MO_ADD(e, owned, &kv_desc);

	mo_str_set(&pair->key, flag);
	mo_str_set(&pair->value, instead);
}

/* The flags among words: --flag, key=value. */
static void add_words(struct engine *e, char *const *words, size_t n, const char *instead)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = words[i] + strspn(words[i], "-");
		_cleanup_(mo_freep) char *flag = mo_strndup(name, strcspn(name, "="));

		if (*flag && *flag != '{' && (name > words[i] || strchr(name, '=')))
			add(e, flag, instead);
	}
}

void engine_owned_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	if (v->kind != YAML_MAP) {
		errors_at(r->errors, v, NULL,
			  "owned: expected a mapping such as {load: use checkpoint.dir}");
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *key = v->items[i].key;
		_cleanup_(mo_freep) char *instead = NULL;

		if (strchr(key->text, '=') || strchr(key->text, ' '))
			errors_at(r->errors, key, NULL,
				  "owned: '%.60s' is no flag: write its name alone", key->text);
		else if (value_text(r, "owned", v->items[i].value, &instead))
			add(r->bases[0], key->text, instead);
	}
}

void engine_owned_finish(struct engine *e)
{
	add_words(e, e->resume, e->n_resume,
		  "what a job resumes from is checkpoint.dir and checkpoint.resume");
	add_words(e, e->fresh, e->n_fresh,
		  "what a job resumes from is checkpoint.dir and checkpoint.resume");
}

const char *owned_instead(const struct engine *e, const char *flag)
{
	for (size_t i = 0; i < e->n_owned; i++)
		if (flag_same(flag, e->owned[i].key, strlen(e->owned[i].key)))
			return e->owned[i].value;
	return NULL;
}

static bool unchecked(const struct recipe *r, const char *flag)
{
	for (size_t i = 0; i < r->engine.n_args_unchecked; i++)
		if (flag_same(flag, r->engine.args_unchecked[i],
			      strlen(r->engine.args_unchecked[i])))
			return true;
	return false;
}

void engine_owned(struct engine *e, const struct recipe *r)
{
	size_t retained = 0;

	for (size_t i = 0; i < e->n_flags; i++) {
		_cleanup_(flag_row_done) struct flag_row row = flag_row(r, &e->flags[i]);
		_cleanup_(mo_freep) char *instead = mo_printf("the recipe's %s says it", row.path);
		char **words = NULL;
		size_t n = 0;

		flag_row_words(r, &e->flags[i], &row, &words, &n);
		add_words(e, words, n, instead);
		for (size_t w = 0; w < n; w++)
			free(words[w]);
		free(words);
	}
	for (size_t i = 0; i < e->n_owned; i++)
		if (unchecked(r, e->owned[i].key))
			mo_desc_done(&kv_desc, &e->owned[i]);
		else
			e->owned[retained++] = e->owned[i];
	e->n_owned = retained;
}
