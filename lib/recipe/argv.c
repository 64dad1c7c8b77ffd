/* The words of a rank's command: the engine's template, then flags made from the recipe, then the recipe's args. An engine flag is a row `path: words`:
 *   parallelism.tp: --tensor-model-parallel-size      the value follows as its own word
 *   precision=bf16: --bf16                            words added when the value is this one
 *   parallelism.vpp>1: --stages {parallelism.vpp}     words added when the number is greater
 * {path} inside words is replaced by the recipe's value; rows whose value is unknown add nothing. */
#include "lib/recipe/argv.h"

#include <string.h>

#include "lib/base/parse.h"
#include "lib/recipe/keys.h"

struct flag_row flag_row(const struct recipe *r, const struct kv *flag)
{
	size_t n = strcspn(flag->key, "=>");
	struct flag_row row = { .path = mo_strndup(flag->key, n), .op = flag->key[n], .operand = flag->key[n] ? flag->key + n + 1 : NULL };
	double a, b;

	row.value = recipe_value(r, row.path);
	if (row.op == '=')
		row.applies = mo_streq(row.value, row.operand);
	else if (row.op == '>')
		row.applies = row.value && mo_parse_double(row.value, &a) == 0 && mo_parse_double(row.operand, &b) == 0 && a > b;
	else
		row.applies = row.value;
	return row;
}

void flag_row_done(struct flag_row *row)
{
	free(row->path);
	free(row->value);
}

static void add_split(char ***ret, size_t *n_ret, const char *words)
{
	while (*words) {
		size_t n = strcspn(words, " ");
		_cleanup_(mo_freep) char *word = mo_strndup(words, n);

		if (n)
			mo_strs_add(ret, n_ret, word);
		words += n + (words[n] == ' ');
	}
}

static void add_flags(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret)
{
	for (size_t i = 0; i < e->n_flags; i++) {
		_cleanup_(flag_row_done) struct flag_row row = flag_row(r, &e->flags[i]);

		if (!row.applies)
			continue;
		_cleanup_(mo_freep) char *words = recipe_expand(r, e->flags[i].value, NULL);

		add_split(ret, n_ret, words);
		if (!row.op && !strchr(e->flags[i].value, '{'))
			mo_strs_add(ret, n_ret, row.value);
	}
}

static void add_args(const struct recipe *r, char ***ret, size_t *n_ret)
{
	for (size_t i = 0; i < r->engine.n_args; i++) {
		const struct kv *arg = &r->engine.args[i];
		bool bare = r->engine.args_list || arg->key[0] == '-';
		_cleanup_(mo_freep) char *key = recipe_expand(r, arg->key, NULL), *word = bare ? mo_strdup(key) : mo_printf("--%s", key);

		mo_strs_add(ret, n_ret, word);
		if (arg->value) {
			_cleanup_(mo_freep) char *value = recipe_expand(r, arg->value, NULL);

			mo_strs_add(ret, n_ret, value);
		}
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

void engine_argv(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret)
{
	const char *python = r->engine.python ? r->engine.python : e->python ? e->python : "python3";
	const char *entry = r->engine.entry ? r->engine.entry : e->entry ? e->entry : "";

	for (size_t i = 0; i < e->n_argv; i++) {
		if (mo_streq(e->argv[i], "{args}")) {
			add_flags(e, r, ret, n_ret);
			add_args(r, ret, n_ret);
		} else if (mo_streq(e->argv[i], "{argv}")) {
			for (size_t k = 0; k < r->engine.n_argv; k++) {
				_cleanup_(mo_freep) char *word = recipe_expand(r, r->engine.argv[k], NULL);

				mo_strs_add(ret, n_ret, word);
			}
		} else {
			_cleanup_(mo_freep) char *half = replace(e->argv[i], "{python}", python), *word = replace(half, "{entry}", entry);

			mo_strs_add(ret, n_ret, word);
		}
	}
}

void engine_resume_argv(const struct engine *e, const struct recipe *r, int64_t iteration, char ***argv, size_t *n_argv)
{
	char **words = iteration >= 0 ? e->resume : e->fresh;
	size_t n = iteration >= 0 ? e->n_resume : e->n_fresh;
	_cleanup_(mo_freep) char *number = mo_printf("%lld", (long long)iteration);

	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *half = replace(words[i], "{iteration}", number);
		_cleanup_(mo_freep) char *word = replace(half, "{dir}", r->checkpoint.dir ? r->checkpoint.dir : "");

		mo_strs_add(argv, n_argv, word);
	}
}
