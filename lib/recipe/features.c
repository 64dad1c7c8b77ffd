/* Values of the recipe's `features:` section: what may be written for each feature, what asks
 * for nothing, and pipeline layouts as Megatron writes them. Which engine has which feature is
 * said in its file (docs/features.md) and checked in rules_features.c. */
#include "lib/recipe/features.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/schema_scalar.h"

enum feature_type { FEATURE_WORD, FEATURE_BOOL, FEATURE_COUNT, FEATURE_LAYOUT, FEATURE_LAYERS };

static const struct {
	const char *path;
	enum feature_type type;
	const char *words[6];
	int64_t max;
	const char *off;
} known[] = {
	{ "features.grouped_gemm",
	  FEATURE_WORD,
	  { "turbo", "native", "legacy", "none" },
	  .off = "none" },
	{ "features.a2a", FEATURE_WORD, { "deepep", "uccl", "alltoall" }, .off = "alltoall" },
	{ "features.sync_free", FEATURE_COUNT, { NULL }, 3 },
	{ "features.overlap_a2a", FEATURE_BOOL, { NULL }, 0 },
	{ "features.pipeline_layout", FEATURE_LAYOUT, { NULL }, 0 },
	{ "features.recompute_layers", FEATURE_LAYERS, { NULL }, 10000 },
	{ "features.loss_fusion", FEATURE_BOOL, { NULL }, 0 },
	{ "features.manual_gc", FEATURE_COUNT, { NULL }, 1000000 },
};

/* `auto` leaves a feature to the engine and its own files, whatever they say. */
static bool is_auto(const struct ynode *v)
{
	return v->kind == YAML_SCALAR && mo_streq(v->text, "auto");
}

bool feature_asks(const char *value)
{
	static const char *const nothing[] = { "",      "0",   "none", "false",   "False",
					       "FALSE", "off", "auto", "alltoall" };

	return value && mo_enum_parse(nothing, ELEMENTSOF(nothing), value) < 0;
}

const char *feature_value(const struct recipe *r, const char *name)
{
	for (size_t i = 0; i < r->n_features; i++)
		if (mo_streq(r->features[i].key, name))
			return r->features[i].value;
	return NULL;
}

static void wrong(struct reader *r, const struct key *k, const struct ynode *v, const char *hint,
		  const char *expected)
{
	_cleanup_(mo_freep) char *shown = value_shown(v);

	errors_at(r->errors, v, hint, "%s: expected %s, got %s", k->path, expected, shown);
}

static char *read_word(struct reader *r, const struct key *k, const struct ynode *v,
		       const char *const *words, const char *off)
{
	_cleanup_(mo_buf_done) struct mo_buf expected = { 0 };
	size_t n = 0;

	for (; words[n]; n++)
		mo_buf_printf(&expected, "%s%s", n ? ", " : "one of ", words[n]);
	if (v->kind == YAML_SCALAR && mo_enum_parse(words, n, v->text) >= 0)
		return mo_strdup(v->text);
	if (v->kind == YAML_SCALAR && !feature_asks(v->text))
		return mo_strdup(off);
	const char *near = v->kind == YAML_SCALAR ? mo_near_miss(v->text, words, n) : NULL;
	_cleanup_(mo_freep) char *hint = near ? mo_printf("did you mean '%s'?", near) : NULL;

	wrong(r, k, v, hint, expected.data);
	return NULL;
}

/* 0..max; true and false are 1 and 0. */
static char *read_count(struct reader *r, const struct key *k, const struct ynode *v, int64_t max)
{
	_cleanup_(mo_freep) char *expected =
		mo_printf("a whole number from 0 to %lld", (long long)max);
	int64_t n;
	bool yes;

	if (value_whole(v, &n) && n >= 0 && n <= max)
		return mo_printf("%lld", (long long)n);
	if (v->kind == YAML_SCALAR && !feature_asks(v->text))
		return mo_strdup("0");
	if (v->kind == YAML_SCALAR && v->plain && mo_streq(v->text, "true") &&
	    mo_parse_bool(v->text, &yes) == 0)
		return mo_strdup("1");
	wrong(r, k, v, NULL, expected);
	return NULL;
}

/* A flag's words are split at spaces. */
static char *without_spaces(const char *text)
{
	struct mo_buf b = { 0 };

	for (; *text; text++)
		if (*text != ' ')
			mo_buf_add(&b, text, 1);
	return mo_buf_take(&b);
}

static char *read_layout(struct reader *r, const struct key *k, const struct ynode *v)
{
	_cleanup_(mo_freep) char *why = NULL;
	struct layout layout;

	if (v->kind != YAML_SCALAR || ynode_is_empty(v)) {
		wrong(r, k, v, "write the stages as one text, such as \"Et*3|t*4|t*3,L\"",
		      "auto or a layout");
		return NULL;
	}
	if (!feature_asks(v->text))
		return mo_strdup("none");
	if (layout_parse(v->text, &layout, &why)) {
		layout_done(&layout);
		return without_spaces(v->text);
	}
	errors_at(r->errors, v,
		  "write the stages in order, separated by '|': E the embedding, t a layer, m an "
		  "MTP layer, L the loss; t*4 is tttt",
		  "%s: %s", k->path, why);
	return NULL;
}

static char *read_layers(struct reader *r, const struct key *k, const struct ynode *v, int64_t max)
{
	struct mo_buf b = { 0 };
	int64_t n, before = -1;

	if (v->kind == YAML_SCALAR && !feature_asks(v->text))
		return mo_strdup("none");
	if (v->kind != YAML_LIST) {
		wrong(r, k, v, "write it as [0, 1, 2]", "a list of layer numbers");
		return NULL;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *item = v->items[i].value;

		if (!value_int(r, k->path, item, 0, max, &n))
			continue;
		if (n <= before)
			errors_at(r->errors, item, NULL,
				  "%s: %lld behind %lld: give each layer once, in rising order",
				  k->path, (long long)n, (long long)before);
		mo_buf_printf(&b, "%s%lld", b.len ? "," : "[", (long long)n);
		before = n;
	}
	mo_buf_str(&b, b.len ? "]" : "none");
	return mo_buf_take(&b);
}

void feature_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe *recipe = r->bases[0];
	char *value = NULL;
	size_t i = 0;
	bool yes;

	while (!mo_streq(known[i].path, k->path))
		i++;
	if (is_auto(v))
		return;
	switch (known[i].type) {
	case FEATURE_WORD: value = read_word(r, k, v, known[i].words, known[i].off); break;
	case FEATURE_BOOL:
		if (v->kind == YAML_SCALAR && !feature_asks(v->text))
			value = mo_strdup("false");
		else if (value_bool(r, k->path, v, &yes))
			value = mo_strdup(yes ? "true" : "false");
		break;
	case FEATURE_COUNT: value = read_count(r, k, v, known[i].max); break;
	case FEATURE_LAYOUT: value = read_layout(r, k, v); break;
	case FEATURE_LAYERS: value = read_layers(r, k, v, known[i].max); break;
	}
	if (!value)
		return;
	struct kv *f = MO_ADD(recipe, features, &kv_desc);

	mo_str_set(&f->key, k->path + strlen("features."));
	f->value = value;
}

char *feature_words(const struct recipe *r, const char *name)
{
	const char *value = feature_value(r, name);

	return value && *value == '[' ? mo_strndup(value + 1, strlen(value) - 2) : mo_strdup(value);
}

bool feature_next_layer(const char **at, int64_t *ret)
{
	*at += *at && **at == '[';
	size_t n = *at ? strcspn(*at, ",]") : 0;
	_cleanup_(mo_freep) char *number = n ? mo_strndup(*at, n) : NULL;

	if (!n || mo_parse_i64(number, 0, INT64_MAX, ret) < 0)
		return false;
	*at += n + ((*at)[n] == ',');
	return true;
}
