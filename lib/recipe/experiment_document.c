/* What a recipe leaves to its experiment, written down as the recipe's key `experiment`. */
#include "lib/recipe/experiment_document.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/recipe/experiment_record.h"
#include "lib/recipe/experiment_values.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/rules_say.h"

#define NODE_GPUS 8 /* as many as AMD's machines have */

static void quoted(const char *s, struct mo_buf *b)
{
	const struct config_value v = { .kind = CONFIG_TEXT, .text = (char *)s };

	config_json(&v, b);
}

/* What the files say, whatever the command says above it. */
static const struct config_value *of_files(const struct config_value *v)
{
	while (v && v->place.file < 0)
		v = v->over;
	return v;
}

/* The engine's own keys that its file reads; a list as JSON. */
static void own_keys(const struct engine *e, const struct experiment *x, struct mo_buf *b,
		     struct mo_buf *said)
{
	for (size_t i = 0, n = 0; i < e->n_experiment_keys; i++) {
		const char *key = e->experiment_keys[i];
		const struct config_value *v = of_files(config_find(x->merged, key));

		if (!v || v->kind == CONFIG_NULL || v->kind == CONFIG_MAP)
			continue;
		_cleanup_(mo_buf_done) struct mo_buf list = { 0 };

		if (v->kind == CONFIG_LIST)
			config_json(v, &list);
		_cleanup_(mo_freep) char *where = experiment_place(x, v->place);
		_cleanup_(mo_freep) char *path = mo_printf("args.%s", key);

		mo_buf_str(b, n++ ? "," : "");
		quoted(key, b);
		mo_buf_str(b, ":");
		quoted(v->text ? v->text : list.data, b);
		mo_buf_str(said, said->len ? "," : "");
		quoted(path, said);
		mo_buf_str(said, ":");
		quoted(where, said);
	}
}

/* The values that the recipe leaves to the experiment, and where they were said, each as the
 * inside of a map. */
struct found {
	const struct engine *engine;
	const struct recipe *recipe;
	const struct experiment *experiment;
	struct mo_buf values, said;
};

static void found_done(struct found *f)
{
	mo_buf_done(&f->values);
	mo_buf_done(&f->said);
}

/* The recipe's, else what the configuration says; 1 without. */
static int64_t size_of(const struct found *f, const char *path)
{
	_cleanup_(mo_freep) char *given =
		recipe_leaves(f->recipe, path) ? NULL : recipe_value(f->recipe, path);
	_cleanup_(experiment_said_done) struct experiment_said v = { 0 };
	int64_t n = 1;

	if (!given)
		experiment_value(f->engine, f->experiment, path, &v);
	const char *text = given ? given : v.text;

	return text && mo_parse_i64(text, 1, MO_RANKS_MAX, &n) == 0 ? n : 1;
}

/* Without a pipeline the recipe's micro-batch is what a rank takes at once, whatever the files say;
 * a word of engine.args stands above both. */
static void take_micro(const struct found *f, struct experiment_said *v)
{
	bool by_files = !v->from || v->from->place.file >= 0;

	if (!by_files || f->recipe->micro == MO_NONE || recipe_leaves(f->recipe, "batch.micro") ||
	    !rules_tells(f->engine, "derived.pass_batch") || size_of(f, "parallelism.pp") != 1)
		return;
	free(v->text);
	v->text = mo_printf("%lld", (long long)f->recipe->micro);
	v->from = NULL;
	v->by_recipe = true;
}

/* "per_dp(KEYS)": so many for each data-parallel rank, of which there are as many as the GPUs
 * and the other sizes leave. */
static bool per_dp(const struct found *f, struct experiment_said *v)
{
	int64_t each, ranks = size_of(f, "parallelism.tp");

	take_micro(f, v);
	ranks = mo_times(ranks,
			 mo_times(size_of(f, "parallelism.pp"), size_of(f, "parallelism.cp")));
	if (mo_parse_i64(v->text, 1, MO_RANKS_MAX, &each) < 0 || ranks < 1 ||
	    f->recipe->gpus < ranks)
		return false;
	free(v->text);
	v->text = mo_printf("%lld", (long long)mo_times(each, f->recipe->gpus / ranks));
	return true;
}

/* "rest(...)": of the GPUs of one node. */
static bool rest(const struct found *f, struct experiment_said *v)
{
	int64_t gpus = f->recipe->gpus, node = MO_MIN(gpus, NODE_GPUS);

	if (node < 1 || gpus % node || node % v->rest_of)
		return false;
	free(v->text);
	v->text = mo_printf("%lld", (long long)(node / v->rest_of));
	return true;
}

static void add(struct found *f, const char *path)
{
	const struct experiment *x = f->experiment;
	_cleanup_(experiment_said_done) struct experiment_said v;

	if (!experiment_value(f->engine, x, path, &v) || (v.per_dp && !per_dp(f, &v)) ||
	    (v.rest_of && !rest(f, &v)))
		return;
	struct config_place nowhere = { -1, 0, -1 };
	_cleanup_(mo_freep) char *place = experiment_place(x, v.from ? v.from->place : nowhere);
	_cleanup_(mo_freep) char *where = NULL;

	if (v.by_recipe)
		where = mo_strdup("batch.micro x dp");
	else if (v.from)
		where = mo_printf("%s: %s", place, v.key);
	else
		where = mo_printf("%s, which the %s does not give",
				  mo_streq(v.key, "it") ? path : v.key,
				  engine_files_word(f->engine));

	mo_buf_printf(&f->values, "%s\"%s\":%s", f->values.len ? "," : "", path, v.text);
	mo_buf_printf(&f->said, "%s\"%s\":", f->said.len ? "," : "", path);
	quoted(where, &f->said);
}

char *experiment_document(const struct engine *e, const struct recipe *r,
			  const struct experiment *x)
{
	_cleanup_(found_done) struct found f = { .engine = e, .recipe = r, .experiment = x };
	_cleanup_(mo_freep) char *no_model = experiment_no_model(e, x);
	_cleanup_(mo_buf_done) struct mo_buf own = { 0 };
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < r->n_left; i++)
		if (!no_model ||
		    (!mo_streq(r->left[i], "model") && !mo_starts_with(r->left[i], "model.")))
			add(&f, r->left[i]);
	own_keys(e, x, &own, &f.said);
	mo_buf_printf(&b, "{\"files\":\"crc32c:%08x\",\"values\":{%s},\"args\":{%s},\"said\":{%s}",
		      x->crc, f.values.data ? f.values.data : "", own.data ? own.data : "",
		      f.said.data ? f.said.data : "");
	_cleanup_(mo_freep) char *result = experiment_pack(x);

	if (strlen(result) <= EXPERIMENT_RESULT_MAX)
		mo_buf_printf(&b, ",\"result\":%s", result);
	mo_buf_str(&b, "}");
	return mo_buf_take(&b);
}
