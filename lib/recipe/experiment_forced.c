/* See experiment_forced.h. Conditions are those of rules, on the engine's own keys. */
#include "lib/recipe/experiment_forced.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/config_scalar.h"

struct forcing {
	const struct experiment *experiment;
	struct experiment_forced *items;
	size_t n;
};

static struct experiment_forced *forced_find(const struct forcing *f, const char *key)
{
	for (size_t i = 0; i < f->n; i++)
		if (mo_streq(f->items[i].key, key))
			return &f->items[i];
	return NULL;
}

static const struct config_value *value_now(const struct forcing *f, const char *key)
{
	const struct experiment_forced *made = forced_find(f, key);

	return made ? made->value : config_find(f->experiment->merged, key);
}

/* NULL: null, or not there. What is no single value is one that nothing is compared with. */
static const char *text_now(const struct forcing *f, const char *key)
{
	const struct config_value *v = value_now(f, key);

	return !v || v->kind == CONFIG_NULL ? NULL : v->text ? v->text : "";
}

static bool force_applies(const struct forcing *f, const struct engine_force *row)
{
	for (size_t i = 0; i < row->n_when; i++)
		if (!condition_holds(row->when[i].value, text_now(f, row->when[i].key)))
			return false;
	return true;
}

static void force(struct forcing *f, const char *key, const char *word, const char *because)
{
	const struct config_place nowhere = { .file = -1, .word = -1 };
	struct experiment_forced *made = forced_find(f, key);

	if (!made) {
		made = MO_GROW(f->items, f->n);
		*made = (struct experiment_forced){ .key = mo_strdup(key) };
	}
	config_value_free(made->value);
	made->value = config_word_value(word, nowhere);
	made->because = because;
}

static bool is_as_merged(const struct experiment *x, const struct experiment_forced *made)
{
	const struct config_value *v = config_find(x->merged, made->key);
	_cleanup_(mo_buf_done) struct mo_buf now = { 0 }, was = { 0 };

	config_json(made->value, &now);
	if (v)
		config_json(v, &was);
	return mo_streq(now.data, v ? was.data : "null");
}

void experiment_forced(const struct engine *e, const struct experiment *x,
		       struct experiment_forced **ret, size_t *n_ret)
{
	struct forcing f = { .experiment = x };
	size_t retained = 0;

	for (size_t i = 0; i < e->n_forced; i++) {
		const struct engine_force *row = &e->forced[i];
		size_t n = force_applies(&f, row) ? row->n_set : 0;

		for (size_t k = 0; k < n; k++)
			force(&f, row->set[k].key, row->set[k].value, row->because);
	}
	for (size_t i = 0; i < f.n; i++)
		if (is_as_merged(x, &f.items[i])) {
			free(f.items[i].key);
			config_value_free(f.items[i].value);
		} else {
			f.items[retained++] = f.items[i];
		}
	*ret = f.items;
	*n_ret = retained;
}

void experiment_forced_free(struct experiment_forced *forced, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(forced[i].key);
		config_value_free(forced[i].value);
	}
	free(forced);
}
