/* The words of a rank's command: the engine's template, then flags made from the recipe, then
 * the recipe's args. An engine flag is a row `path: words`:
 *   parallelism.tp: --tensor-model-parallel-size      the value follows as its own word
 *   precision=bf16: --bf16                            words added when the value is this one
 *   parallelism.vpp>1: --stages {parallelism.vpp}     words added when the number is greater
 *   recompute=full unless features.recompute_layers: --recompute-method uniform
 *                                                     not when that value asks for something
 *   features.a2a=alltoall if stage>1: --stage 0       only where the engine's own experiment
 *                                                     says so, or was not read
 * {path} inside words is replaced by the recipe's value; rows whose value is unknown add
 * nothing, nor does a feature that asks for nothing. Flags that an earlier row has added with
 * the same value are not added again. */
#include "lib/recipe/argv.h"

#include <errno.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/features.h"
#include "lib/recipe/keys.h"

#define UNLESS " unless features."
#define IF " if "

/* The feature behind `unless` (caller frees). */
static char *unless_feature(const char *key)
{
	const char *at = strstr(key, UNLESS);

	at = at ? at + strlen(UNLESS) : NULL;
	return at ? mo_strndup(at, strcspn(at, " ")) : NULL;
}

char *flag_row_if(const char *key, const char **ret_want)
{
	const char *at = strstr(key, IF);
	size_t n = at ? strcspn(at + strlen(IF), "=<>") : 0;

	if (!at)
		return NULL;
	at += strlen(IF);
	*ret_want = at[n] == '=' ? at + n + 1 : at + n;
	return mo_strndup(at, n);
}

/* Nothing is known of an experiment that was not read: what may have to be off is switched off. */
static bool experiment_says(const struct recipe *r, const char *flag_key)
{
	const char *want = "";
	_cleanup_(mo_freep) char *key = flag_row_if(flag_key, &want);

	return !key || !r->experiment_hash || condition_holds(want, recipe_experiment_arg(r, key));
}

/* How experts are split says nothing of a model that has none. Megatron takes it all the same:
 * with 1 beside a larger tp it would save only a part of the tensor ranks in its format torch. */
static bool of_experts_alone(const struct recipe *r, const char *path)
{
	return mo_streq(path, "parallelism.etp") && r->model && !r->model->moe;
}

struct flag_row flag_row(const struct recipe *r, const struct kv *flag)
{
	_cleanup_(mo_freep) char *unless = unless_feature(flag->key);
	size_t whole = strcspn(flag->key, " "), n = strcspn(flag->key, FLAG_ROW_OPS);
	struct flag_row row = { .path = mo_strndup(flag->key, n),
				.op = n < whole ? flag->key[n] : 0 };
	_cleanup_(mo_freep) char *unless_path = unless ? mo_printf("features.%s", unless) : NULL;
	const char *other =
		unless && !recipe_leaves(r, unless_path) ? feature_value(r, unless) : NULL;
	double a, b;

	if (row.op)
		row.operand = mo_strndup(flag->key + n + 1, whole - n - 1);
	row.value = of_experts_alone(r, row.path) ? NULL : recipe_value(r, row.path);
	if (row.op == '=' || row.op == '~')
		row.applies = mo_streq(row.value, row.operand);
	else if (row.op == '>')
		row.applies = row.value && mo_parse_double(row.value, &a) == 0 &&
			      mo_parse_double(row.operand, &b) == 0 && a > b;
	else
		row.applies =
			mo_starts_with(row.path, "features.")
				? feature_asks(feature_value(r, row.path + strlen("features.")))
				: row.value != NULL;
	row.carried = row.applies || row.op == '>';
	row.applies = row.applies && !feature_asks(other) && experiment_says(r, flag->key);
	if (recipe_leaves(r, row.path)) {
		row.carried = true;
		row.applies = false;
	}
	return row;
}

void flag_row_done(struct flag_row *row)
{
	free(row->path);
	free(row->operand);
	free(row->value);
}

/* Are the words [from, n) of the list already somewhere before from? */
static bool added(char **words, size_t from, size_t n)
{
	for (size_t i = 0; i + (n - from) <= from; i++) {
		size_t same = 0;

		while (same < n - from && mo_streq(words[i + same], words[from + same]))
			same++;
		if (same == n - from && (i + same == from || words[i + same][0] == '-'))
			return true;
	}
	return false;
}

/* Takes the words from `from` on away again when an earlier flag says the same. */
static void drop_repeated(char ***ret, size_t *n_ret, size_t from)
{
	if (*n_ret == from || !added(*ret, from, *n_ret))
		return;
	while (*n_ret > from)
		free((*ret)[--*n_ret]);
}

static void add_split(char ***ret, size_t *n_ret, const char *words, size_t *flag)
{
	while (*words) {
		size_t n = strcspn(words, " ");
		_cleanup_(mo_freep) char *word = mo_strndup(words, n);

		if (n && *word == '-') {
			drop_repeated(ret, n_ret, *flag);
			*flag = *n_ret;
		}
		if (n)
			mo_strs_add(ret, n_ret, word);
		words += n + (words[n] == ' ');
	}
}

void flag_row_words(const struct recipe *r, const struct kv *flag, const struct flag_row *row,
		    char ***ret, size_t *n_ret)
{
	size_t at = *n_ret;

	if (!row->applies)
		return;
	_cleanup_(mo_freep) char *words = recipe_expand(r, flag->value, NULL);

	add_split(ret, n_ret, words, &at);
	if (!row->op && !strchr(flag->value, '{') && !mo_starts_with(row->path, "features."))
		mo_strs_add(ret, n_ret, row->value);
	drop_repeated(ret, n_ret, at);
}

/* The words up to now that have no origin yet are by this path of the recipe; path NULL: by the
 * engine file. */
static void came_from(struct word_origins *o, size_t n_words, const char *path, const char *key)
{
	while (o && o->n < n_words)
		*MO_GROW(o->items, o->n) = key ? mo_printf("%s%s", path, key) : mo_strdup(path);
}

static void add_flags(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret,
		      struct word_origins *o)
{
	for (size_t i = 0; i < e->n_flags; i++) {
		_cleanup_(flag_row_done) struct flag_row row = flag_row(r, &e->flags[i]);

		flag_row_words(r, &e->flags[i], &row, ret, n_ret);
		came_from(o, *n_ret, row.path, NULL);
	}
}

bool engine_takes_itself(const struct engine *e, const char *flag)
{
	return main_word_is(e->main_words, e->n_main_words, flag);
}

/* One key of the mapping: --key value, or key=value for engines that take it so. value NULL =
 * the bare flag. */
static void add_arg(const struct engine *e, const struct recipe *r, const char *key,
		    const char *value, char ***ret, size_t *n_ret)
{
	_cleanup_(mo_freep) char *name = recipe_expand(r, key, NULL),
				 *text = value ? recipe_expand(r, value, NULL) : NULL;
	bool itself = engine_takes_itself(e, key), equals = (e->args_equals || itself) && text;
	_cleanup_(mo_freep) char *word =
		equals ? mo_printf("%s=%s", name + (itself ? strspn(name, "-") : 0), text)
		       : mo_printf("%s%s", key[0] == '-' ? "" : "--", name);

	mo_strs_add(ret, n_ret, word);
	if (text && !equals)
		mo_strs_add(ret, n_ret, text);
}

static void add_args(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret,
		     struct word_origins *o)
{
	for (size_t i = 0; i < r->engine.n_args; i++) {
		const struct kv *arg = &r->engine.args[i];

		if (!r->engine.args_list) {
			add_arg(e, r, arg->key,
				arg->value      ? arg->value
				: e->bool_words ? "true"
						: NULL,
				ret, n_ret);
			came_from(o, *n_ret, "engine.args.", arg->key);
			continue;
		}
		_cleanup_(mo_freep) char *word = recipe_expand(r, arg->key, NULL);

		mo_strs_add(ret, n_ret, word);
		came_from(o, *n_ret, "engine.args", NULL);
	}
	for (size_t i = 0; e->bool_words && i < r->engine.n_args_off; i++) {
		add_arg(e, r, r->engine.args_off[i], "false", ret, n_ret);
		came_from(o, *n_ret, "engine.args.", r->engine.args_off[i]);
	}
}

/* The word with every `what` replaced (caller frees). */
static char *replace(const char *word, const char *what, const char *with)
{
	struct mo_buf b = { 0 };
	size_t n = strlen(what);

	while (*word)
		if (strncmp(word, what, n) == 0) {
			mo_buf_str(&b, with);
			word += n;
		} else
			mo_buf_add(&b, word++, 1);
	return mo_buf_take(&b);
}

void word_origins_done(struct word_origins *o)
{
	for (size_t i = 0; i < o->n; i++)
		free(o->items[i]);
	free(o->items);
	*o = (struct word_origins){ 0 };
}

const char *recipe_python(const struct engine *e, const struct recipe *r)
{
	const char *python = r->engine.python ? r->engine.python
			     : e->python      ? e->python
					      : "python3";
	const char *slash = strrchr(python, '/');

	return r->engine.container && !r->engine.python && slash ? slash + 1 : python;
}

void engine_argv_origins(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret,
			 struct word_origins *o)
{
	const char *python = recipe_python(e, r);
	const char *entry = r->engine.entry ? r->engine.entry : e->entry ? e->entry : "";

	for (size_t i = 0; i < e->n_argv; i++) {
		if (mo_streq(e->argv[i], "{args}")) {
			add_flags(e, r, ret, n_ret, o);
			add_args(e, r, ret, n_ret, o);
		} else if (mo_streq(e->argv[i], "{argv}")) {
			for (size_t k = 0; k < r->engine.n_argv; k++) {
				_cleanup_(mo_freep) char *word =
					recipe_expand(r, r->engine.argv[k], NULL);

				mo_strs_add(ret, n_ret, word);
			}
		} else {
			_cleanup_(mo_freep) char *half = replace(e->argv[i], "{python}", python),
						 *word = replace(half, "{entry}", entry);

			mo_strs_add(ret, n_ret, word);
		}
		came_from(o, *n_ret, mo_streq(e->argv[i], "{argv}") ? "engine.argv" : NULL, NULL);
	}
}

void engine_argv(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret)
{
	engine_argv_origins(e, r, ret, n_ret, NULL);
}

/* Is it a flag that engine.args_unchecked names? The recipe's own word for it then stands. */
static bool let_pass(const struct recipe *r, const char *word)
{
	for (size_t i = 0; word[0] == '-' && i < r->engine.n_args_unchecked; i++)
		if (flag_same(r->engine.args_unchecked[i], word, strlen(word)))
			return true;
	return false;
}

void engine_resume_argv(const struct engine *e, const struct recipe *r, int64_t iteration,
			char ***argv, size_t *n_argv)
{
	char **words = iteration >= 0 ? e->resume : e->fresh;
	size_t n = iteration >= 0 ? e->n_resume : e->n_fresh;
	_cleanup_(mo_freep) char *number = mo_printf("%lld", (long long)iteration);

	for (size_t i = 0; i < n; i++) {
		while (i < n && let_pass(r, words[i]))
			i += 1 + (i + 1 < n && words[i + 1][0] != '-');
		if (i >= n)
			return;
		_cleanup_(mo_freep) char *half = replace(words[i], "{iteration}", number);
		_cleanup_(mo_freep) char *word =
			replace(half, "{dir}", r->checkpoint.dir ? r->checkpoint.dir : "");

		mo_strs_add(argv, n_argv, word);
	}
}

/* {user} in the text; as recipe_for_user(). */
static int put_user(const char *key, char **text, const char *user, struct mo_error *err)
{
	static const char word[] = "{user}";

	if (!*text || !strstr(*text, word))
		return 0;
	if (!mo_name_valid(user)) {
		mo_error_hint(err, "name the directory itself: --set %s=%s", key,
			      mo_streq(key, "checkpoint.dir") ? "/path" : "[/path]");
		return mo_error_set(err, -EINVAL,
				    "%s: %s: the user '%s' has no name that a directory may have",
				    key, word, user ? user : "");
	}
	char *own = replace(*text, word, user);
	free(*text);
	*text = own;
	return 1;
}

int recipe_for_user(struct recipe *r, const char *user, struct mo_error *err)
{
	struct recipe_container *c = r->engine.container;
	int found = put_user("checkpoint.dir", &r->checkpoint.dir, user, err);

	for (size_t i = 0; c && i < c->n_mounts && found >= 0; i++) {
		static const char key[] = "engine.container.mounts";
		int source = put_user(key, &c->mounts[i].source, user, err),
		    target = source < 0 ? source : put_user(key, &c->mounts[i].target, user, err);

		found = target < 0 ? target : found | source | target;
	}
	return found;
}
