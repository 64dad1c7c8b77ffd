/* Rows of an engine file's experiment.values against a resolved experiment
 * (experiment_values.h). */
#include "lib/recipe/experiment_values.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/model/layout.h"
#include "lib/model/limits.h"
#include "lib/recipe/layer_pattern.h"

/* As a word of the recipe: what it says of itself is judged there, so a wrong type is carried
 * on. */
static char *as_word(const struct config_value *v)
{
	struct mo_buf b = { 0 };

	config_json(v, &b);
	if (v->kind != CONFIG_LIST && v->kind != CONFIG_MAP)
		return mo_buf_take(&b);
	const struct config_value text = { .kind = CONFIG_TEXT, .text = b.data };
	struct mo_buf quoted = { 0 };

	config_json(&text, &quoted);
	mo_buf_done(&b);
	return mo_buf_take(&quoted);
}

/* "stages(LAYOUT/PP)": the stages of each rank of a pipeline with a layout of its own. */
static bool stages_of(const struct experiment *x, const char *call, struct experiment_said *ret)
{
	size_t slash = strcspn(call, "/");
	_cleanup_(mo_freep) char *key = mo_strndup(call, slash), *why = NULL;
	_cleanup_(mo_freep) char *pp_key =
		mo_strndup(call + slash + 1, strcspn(call + slash + 1, ")"));
	const struct config_value *v = config_find(x->merged, key);
	const struct config_value *ranks = config_find(x->merged, pp_key);
	_cleanup_(layout_done) struct layout layout = { 0 };
	int64_t pp;

	if (!v || v->kind != CONFIG_TEXT || !ranks || ranks->kind != CONFIG_INT ||
	    mo_parse_i64(ranks->text, 1, INT32_MAX, &pp) < 0 ||
	    !layout_parse(v->text, &layout, &why) || (int64_t)layout.n_stages % pp)
		return false;
	ret->text = mo_printf("%lld", (long long)((int64_t)layout.n_stages / pp));
	ret->key = TAKE_PTR(key);
	ret->from = v;
	return true;
}

/* "A|B|=1": the first that is not null, or the engine's own default. */
static bool first_of(const struct experiment *x, const char *keys, struct experiment_said *ret)
{
	for (const char *s = keys; *s;) {
		size_t n = strcspn(s, "|");
		_cleanup_(mo_freep) char *key = mo_strndup(s, n);
		const struct config_value *v = *key == '=' ? NULL : config_find(x->merged, key);

		s += n + (s[n] == '|');
		if (mo_starts_with(key, "stages(")) {
			if (stages_of(x, key + strlen("stages("), ret))
				return true;
			continue;
		}
		if (*key == '=') {
			ret->text = mo_strdup(key + 1);
			ret->key = mo_strndup(keys, strcspn(keys, "|"));
			if (strchr(ret->key, '('))
				mo_str_set(&ret->key, "it");
			return true;
		}
		if (!v || v->kind == CONFIG_NULL)
			continue;
		ret->text = as_word(v);
		ret->key = TAKE_PTR(key);
		ret->from = v;
		return true;
	}
	return false;
}

/* Megatron's moe_layer_freq: every how many layers have experts, or a list of zeros and ones in
 * Python's words, or as YAML. */
enum layers { LAYERS_NONE, LAYERS_EVERY, LAYERS_AFTER, LAYERS_MIXED };
static enum layers layers_of(const struct config_value *v, int64_t *ret)
{
	if (!v || v->kind == CONFIG_NULL)
		return LAYERS_NONE;
	if (v->kind == CONFIG_INT ||
	    (v->kind == CONFIG_TEXT && v->text[strspn(v->text, "0123456789")] == 0))
		return mo_parse_i64(v->text, INT64_MIN, INT64_MAX, ret) == 0 ? LAYERS_EVERY
									     : LAYERS_MIXED;
	_cleanup_(mo_buf_done) struct mo_buf list = { 0 };

	config_json(v, &list);
	return layer_pattern(v->kind == CONFIG_TEXT ? v->text : list.data, ret) ? LAYERS_AFTER
										: LAYERS_MIXED;
}

/* "every(KEY)", "zeros(KEY)": layers without experts at the beginning. */
static bool layers_say(const struct experiment *x, const char *call, enum layers wanted,
		       struct experiment_said *ret)
{
	const char *name = strchr(call, '(') + 1;
	_cleanup_(mo_freep) char *key = mo_strndup(name, strcspn(name, ")"));
	const struct config_value *v = config_find(x->merged, key);
	int64_t n = 0;

	if (layers_of(v, &n) != wanted)
		return false;
	if (!ret)
		return true;
	ret->text = mo_printf("%lld", (long long)n);
	ret->key = TAKE_PTR(key);
	ret->from = v;
	return true;
}

/* null, one of a list, or a text that may end in `*` for any end. */
static bool is(const struct config_value *v, const char *want)
{
	size_t n = strlen(want);
	bool null = !v || v->kind == CONFIG_NULL;

	if (mo_streq(want, "null") || null)
		return null && mo_streq(want, "null");
	for (size_t i = 0; v->kind == CONFIG_LIST && i < v->n; i++)
		if (mo_streq(v->items[i].value->text, want))
			return true;
	return n && want[n - 1] == '*' ? v->text && strncmp(v->text, want, n - 1) == 0
				       : mo_streq(v->text, want);
}

/* A number, and greater. */
static bool above(const struct config_value *v, const char *want)
{
	double a, b;

	return v && v->text && mo_parse_double(v->text, &a) == 0 &&
	       mo_parse_double(want, &b) == 0 && a > b;
}

/* "A=true B C!=x D>1": A is true, B is there and not null, C is anything but x, D a number above
 * 1. */
static bool holds(const struct experiment *x, const char *conditions, struct experiment_said *ret)
{
	bool first = true;

	for (const char *s = conditions; *s; first = false) {
		size_t n = strcspn(s, " "), end = strcspn(s, "!=> ");
		_cleanup_(mo_freep) char *key = mo_strndup(s, MO_MIN(n, end));
		char sign = end < n ? s[end] : 0;
		size_t op = sign ? 1 + (sign == '!') : 0;
		_cleanup_(mo_freep) char *want = op ? mo_strndup(s + end + op, n - end - op) : NULL;
		const struct config_value *v = config_find(x->merged, key);

		if (sign == '>'   ? !above(v, want)
		    : sign == '!' ? is(v, want)
		    : sign        ? !is(v, want)
				  : is(v, "null"))
			return false;
		if (first && ret) {
			ret->from = v;
			ret->key = TAKE_PTR(key);
		}
		s += n + (s[n] == ' ');
	}
	return true;
}

bool experiment_holds(const struct experiment *x, const char *conditions)
{
	return holds(x, conditions, NULL);
}

#define OR " or "
#define PER_DP "per_dp("
#define REST "rest("

/* "rest(KEY/A=-1 B C)": KEY is -1, what the other sizes leave of a node. B or C without a number
 * is 1, and A without one is -1, of which only one may be. */
static bool rest_says(const struct experiment *x, const char *call, struct experiment_said *ret)
{
	_cleanup_(mo_freep) char *key = mo_strndup(call, strcspn(call, "/"));
	const struct config_value *v = config_find(x->merged, key);
	int64_t others = 1;

	if (!v || !mo_streq(v->text, "-1"))
		return false;
	for (const char *s = call + strlen(key); *s == '/' || *s == ' ';) {
		size_t end = strcspn(++s, " )");
		_cleanup_(mo_freep) char *other = mo_strndup(s, strcspn(s, "= )"));
		const struct config_value *o = config_find(x->merged, other);
		bool said = o && o->kind != CONFIG_NULL;
		int64_t n = 1;

		if (!said && s[strlen(other)] == '=')
			return false;
		if (said && (!o->text || mo_parse_i64(o->text, 1, MO_RANKS_MAX, &n) < 0))
			return false;
		others = mo_times(others, n);
		s += end;
	}
	ret->rest_of = others;
	ret->text = mo_strdup(v->text);
	ret->key = TAKE_PTR(key);
	ret->from = v;
	return true;
}

static bool row_says(const struct experiment *x, const struct kv *row, bool word,
		     struct experiment_said *ret)
{
	const char *on = strstr(row->value, " if ");
	_cleanup_(mo_freep) char *keys =
		mo_strndup(row->value, on ? (size_t)(on - row->value) : strlen(row->value));

	if (on && !holds(x, on + strlen(" if "), NULL))
		return false;
	if (mo_starts_with(keys, "zeros("))
		return layers_say(x, keys, LAYERS_AFTER, ret);
	if (mo_starts_with(keys, "every("))
		return layers_say(x, keys, LAYERS_EVERY, ret);
	if (mo_starts_with(keys, PER_DP)) {
		_cleanup_(mo_freep) char *inner =
			mo_strndup(keys + strlen(PER_DP), strcspn(keys + strlen(PER_DP), ")"));

		ret->per_dp = first_of(x, inner, ret);
		return ret->per_dp;
	}
	if (mo_starts_with(keys, REST))
		return rest_says(x, keys + strlen(REST), ret);
	if (!word)
		return first_of(x, keys, ret);
	for (const char *s = keys, * or ; s; s = or ? or +strlen(OR) : NULL) {
		or = strstr(s, OR);
		_cleanup_(mo_freep) char *conditions =
			mo_strndup(s, or ? (size_t)(or -s) : strlen(s));

		if (!holds(x, conditions, ret))
			continue;
		ret->text = mo_strdup(strchr(row->key, '=') + 1);
		return true;
	}
	return false;
}

void experiment_said_done(struct experiment_said *s)
{
	free(s->text);
	free(s->key);
	*s = (struct experiment_said){ 0 };
}

bool experiment_value(const struct engine *e, const struct experiment *x, const char *path,
		      struct experiment_said *ret)
{
	size_t n = strlen(path);

	*ret = (struct experiment_said){ 0 };
	for (size_t i = 0; i < e->n_experiment_values; i++) {
		const struct kv *row = &e->experiment_values[i];

		if (strncmp(row->key, path, n) != 0 || (row->key[n] && row->key[n] != '='))
			continue;
		if (row_says(x, row, row->key[n], ret))
			return true;
		experiment_said_done(ret);
	}
	return false;
}

bool experiment_pass_batch(const struct engine *e, const struct experiment *x,
			   struct experiment_said *ret)
{
	for (size_t i = 0; i < e->n_experiment_values; i++) {
		const struct kv *row = &e->experiment_values[i];

		if (mo_streq(row->key, "batch.global") && mo_starts_with(row->value, PER_DP))
			return row_says(x, row, false, ret);
	}
	return false;
}

static bool is_said(const struct engine *e, const struct experiment *x, const char *path)
{
	_cleanup_(experiment_said_done) struct experiment_said v;

	return experiment_value(e, x, path, &v);
}

/* The part of the model of which any key is said: then it is wanted whole. */
static bool part_lacks(const struct engine *e, const struct experiment *x, const char *const *keys,
		       const char *begins, char **ret)
{
	bool wanted = !begins || is_said(e, x, begins);

	for (size_t i = 0; wanted && keys[i]; i++)
		if (!is_said(e, x, keys[i])) {
			*ret = mo_printf("it says nothing that gives %s", keys[i]);
			return true;
		}
	return false;
}

/* The values that a row like "model=NAME: KEY=VALUE" reads name a model whose sizes lie in
 * the engine. NULL: nothing names one. */
static char *by_name_alone(const struct engine *e, const struct experiment *x)
{
	const struct kv *row = NULL;
	struct mo_buf b = { 0 }, none = { 0 };
	bool sizes = false;

	for (size_t i = 0; i < e->n_experiment_values && !row; i++)
		row = mo_starts_with(e->experiment_values[i].key, "model=")
			      ? &e->experiment_values[i]
			      : NULL;
	for (size_t i = 0; i < e->n_experiment_values; i++)
		sizes |= mo_streq(e->experiment_values[i].key, "model.layers");
	for (const char *s = row ? row->value : ""; *s;) {
		_cleanup_(mo_freep) char *key = mo_strndup(s, strcspn(s, "!=> "));
		const struct config_value *v = config_find(x->merged, key);

		s += strcspn(s, " ");
		s += *s == ' ';
		mo_buf_printf(&none, "%s%s", none.len ? ", " : "it does not give ", key);
		if (!v || !v->text)
			continue;
		_cleanup_(mo_freep) char *place = b.len ? NULL : experiment_place(x, v->place);

		mo_buf_printf(&b, "%s%s%s: %s", b.len ? ", " : place, b.len ? "" : ": ", key,
			      v->text);
	}
	if (b.len)
		mo_buf_str(&b, ": the sizes behind this name are the engine's own and were not "
			       "read, and the catalogue has none for it");
	if (!b.len && none.len && !sizes)
		return mo_buf_take(&none);
	mo_buf_done(&none);
	return b.len ? mo_buf_take(&b) : NULL;
}

#define BECAUSE " because "

char *experiment_no_model(const struct engine *e, const struct experiment *x)
{
	static const char *const whole[] = { "model.layers", "model.hidden", "model.heads",
					     "model.vocab", NULL };
	static const char *const moe[] = { "model.moe.topk", "model.moe.ffn", NULL };
	static const char *const mla[] = { "model.mla.qk_nope", "model.mla.qk_rope", "model.mla.v",
					   NULL };
	static const char *const dense[] = { "model.ffn", NULL };
	char *why = NULL;

	for (size_t i = 0; i < e->n_experiment_no_model; i++) {
		const char *row = e->experiment_no_model[i], *because = strstr(row, BECAUSE);
		_cleanup_(mo_freep) char *condition =
			mo_strndup(row, because ? (size_t)(because - row) : strlen(row));
		_cleanup_(experiment_said_done) struct experiment_said v = { 0 };
		bool mixed = mo_starts_with(condition, "mixed(");

		if (mixed ? !layers_say(x, condition, LAYERS_MIXED, &v) : !holds(x, condition, &v))
			continue;
		_cleanup_(mo_freep) char *place =
			experiment_place(x, v.from ? v.from->place
						   : (struct config_place){ -1, 0, -1 });
		if (because)
			return mo_printf("%s: %s: %s", place, v.key, because + strlen(BECAUSE));
		return mo_printf("%s: %s: plans know no model of that kind", place, condition);
	}
	if (is_said(e, x, "model"))
		return NULL;
	if (!is_said(e, x, "model.layers") && (why = by_name_alone(e, x)))
		return why;
	if (!part_lacks(e, x, whole, NULL, &why) &&
	    !part_lacks(e, x, moe, "model.moe.experts", &why) &&
	    !part_lacks(e, x, mla, "model.mla.kv_lora", &why) &&
	    (!is_said(e, x, "model.moe.experts") || is_said(e, x, "model.moe.dense_layers")))
		part_lacks(e, x, dense, NULL, &why);
	return why;
}
