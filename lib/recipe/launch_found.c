/* The launch of a script (launch_run.h): which command of it is the training, and what of the
 * script a recipe does not carry over. One of several processes counts before one of one process,
 * which mostly prepares something; then one that is certainly reached; then the first. */
#include "lib/recipe/launch_found.h"

#include "lib/recipe/launch_accelerate.h"
#include "lib/recipe/launch_options.h"
#include "lib/recipe/launch_run.h"
#include "lib/recipe/launch_tables.h"
#include "lib/recipe/shell_vars.h"

#include <errno.h>
#include <string.h>

#define MANY 8        /* score of a launch of several processes */
#define NAMED_MAX 200 /* lines of what is not carried over */

char *run_joined(char *const *words, size_t n)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < n; i++)
		mo_buf_printf(&b, "%s%s", i ? " " : "", words[i]);
	char *text = mo_buf_take(&b);
	shell_plain(text);
	return text;
}

void run_name(struct shell_words *w, const char *text)
{
	for (size_t i = 0; i < w->n; i++)
		if (mo_streq(w->items[i], text))
			return;
	if (w->n < NAMED_MAX)
		mo_strs_add(&w->items, &w->n, text);
}

/* ---- what a launch loses ---- */

#define ONLY_THE_SHELL \
	"only the shell that runs the script knows what this is: write it in yourself"

#define CALLED_WITH "words that the script is called with: moectl init -- bash SCRIPT WORDS"

/* $1 and ${2} are its caller's. */
static const char *why_unknown(const char *part)
{
	const char *p = part + (part[0] == '$') + (part[0] == '$' && part[1] == '{');

	return part[0] == '$' && strspn(p, "0123456789") ? CALLED_WITH : ONLY_THE_SHELL;
}

/* Of a value, what of it is not known; NULL = all is. Caller frees. */
static char *unknown_part(const char *text)
{
	const char *from = text ? strchr(text, SHELL_UNKNOWN) : NULL;
	const char *to = from ? strchr(from, SHELL_UNKNOWN_END) : NULL;

	return to ? mo_strndup(from + 1, (size_t)(to - from) - 1) : NULL;
}

static void lose_unknown(struct launch_line *l, char *text)
{
	_cleanup_(mo_freep) char *part = unknown_part(text);

	if (shell_plain(text))
		launch_lose(l, text, NULL, part ? why_unknown(part) : ONLY_THE_SHELL);
}

/* A=x:$A, which is x where nobody set A, as it is for a rank. True: nothing is left that a rank
 * could use, and it is better off without the variable than with `$(..)` in it. */
static bool lose_in_variable(struct launch_line *l, struct kv *v)
{
	_cleanup_(mo_freep) char *part = unknown_part(v->value), *whole = mo_strdup(v->value),
				 *bare = mo_printf("$%s", v->key),
				 *braced = mo_printf("${%s}", v->key);

	if (!part)
		return false;
	if (mo_streq(part, bare) || mo_starts_with(part, braced) ||
	    !strncmp(part, braced, strlen(braced) - 1)) {
		char *from = strchr(v->value, SHELL_UNKNOWN),
		     *to = strchr(from, SHELL_UNKNOWN_END) + 1;
		bool before = from > v->value && from[-1] == ':';

		memmove(from - before, to + (!before && *to == ':'),
			strlen(to + (!before && *to == ':')) + 1);
	}
	_cleanup_(mo_freep) char *rest = unknown_part(v->value);
	bool lost = shell_plain(v->value);

	shell_plain(whole);
	launch_lose(l, v->key, lost ? whole : part, why_unknown(rest ? rest : part));
	return lost;
}

/* `--local_rank $SLURM_LOCALID`: the word would be the same for all ranks. */
static void lose_local_rank(struct launch_line *l)
{
	static const char *const flags[] = { "--local_rank", "--local-rank" };

	for (size_t i = 1; i < l->n_program; i++) {
		const char *word = l->program[i], *value = NULL;
		size_t n = 1;

		for (size_t f = 0; f < ELEMENTSOF(flags) && !value; f++) {
			size_t len = strlen(flags[f]);

			if (!mo_starts_with(word, flags[f]) || (word[len] && word[len] != '='))
				continue;
			n = word[len] ? 1 : 2;
			value = word[len]              ? word + len + 1
				: i + 1 < l->n_program ? l->program[i + 1]
						       : "";
		}
		if (!value || !shell_unknown(value))
			continue;
		_cleanup_(mo_freep) char *text = run_joined(l->program + i, n);

		launch_lose(l, text, NULL,
			    "it is another one for each rank, which has LOCAL_RANK instead: read "
			    "that in the script");
		for (size_t k = i; k < i + n; k++)
			free(l->program[k]);
		memmove(l->program + i, l->program + i + n,
			(l->n_program - i - n) * sizeof(*l->program));
		l->n_program -= n;
		i--;
	}
}

static void lose_python(struct launch_line *l)
{
	if (!shell_plain(l->python))
		return;
	launch_lose(l, "engine.python", l->python, ONLY_THE_SHELL);
	mo_str_set(&l->python, NULL);
}

static void lose_all(struct launch_line *l, const struct shell_words *w, const char *why)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t i = 0; i < w->n; i++)
		mo_buf_printf(&b, "%s%.60s%s", i ? "; " : "", w->items[i],
			      strlen(w->items[i]) > 60 ? ".." : "");
	if (w->n)
		launch_lose(l, b.data, NULL, why);
}

static bool is_used(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = strchr(text, '$'); p; p = strchr(p + 1, '$')) {
		const char *at = p + 1 + (p[1] == '{');

		if (!strncmp(at, name, n) && !strspn(at + n, SHELL_NAME))
			return true;
	}
	return false;
}

void run_finish(struct run *r, const char *text)
{
	struct launch_line *l = &r->best;
	struct shell_words maybe = { 0 };

	launch_accelerate_config(r);
	lose_local_rank(l);
	for (size_t i = 0; i < l->n_program; i++)
		lose_unknown(l, l->program[i]);
	for (size_t i = 0; i < l->n_env;)
		if (lose_in_variable(l, &l->env[i]))
			mo_vec_remove(&kv_desc, l->env, &l->n_env, i);
		else
			i++;
	if (shell_plain(l->dir))
		l->dir_unknown = TAKE_PTR(l->dir);
	lose_python(l);
	shell_plain(l->all);
	for (size_t i = 0; i < l->n_lost; i++)
		shell_plain(l->lost[i]);
	for (size_t i = 0; i < r->shell.maybe.n; i++) {
		const char *name = r->shell.maybe.items[i];
		const struct shell_var *v = shell_var(&r->shell, name, strlen(name));

		if (is_used(text, name) || (v && v->exported))
			run_name(&maybe, name);
	}
	lose_all(l, &maybe,
		 "set where only a running shell knows whether it gets there: see to them");
	if (r->shell.args_used)
		launch_lose(l, "\"$@\"", NULL, CALLED_WITH);
	for (size_t i = 0; i < r->plain.n; i++)
		run_name(r->score >= MANY ? &r->left : &r->others, r->plain.items[i]);
	lose_all(l, &r->others, "another launch of the same script, a recipe of its own");
	lose_all(l, &r->directives,
		 "a line for another batch system: cluster.gpus, time_limit and name are in "
		 "docs/recipe.md");
	lose_all(l, &r->activated,
		 "engine.python names the interpreter with the packages that it needs");
	lose_all(l, &r->modules,
		 "it sets variables of its shell: write those that the training needs into env");
	lose_all(l, &r->left,
		 "not run before it: engine.prepare in docs/recipe.md runs something on each node");
	lose_all(l, &r->behind, "not run after it");
	mo_strs_clear(&maybe.items, &maybe.n);
}

/* ---- a launch ---- */

static int score_of(const struct launch_line *l, enum shell_follow follow)
{
	const char *name =
		l->n_program ? l->program[mo_streq(l->program[0], "-m") ? l->n_program > 1 : 0]
			     : "";
	bool many = !mo_streq(l->launcher, "python") || l->spread;

	return 1 + (many ? MANY : 0) + 2 * (follow == SHELL_RUN) +
	       (strstr(name, "train") || strstr(name, "tune"));
}

/* What its output is sent to, up to the end of the line. */
void run_output(struct launch_line *l, const struct shell_command *c, const char *behind)
{
	size_t n = c->op == '|' ? strcspn(behind, "\n") : 0;
	_cleanup_(mo_freep) char *pipe = mo_strndup(behind, n),
				 *text = mo_printf("%s%s%s", c->output ? c->output : "",
						   n ? "|" : "", pipe);

	if (*text)
		launch_lose(l, text, NULL, LOGS);
	if (c->input || c->here)
		launch_lose(l, "<", c->input, "a rank reads nothing: its input is /dev/null");
}

static void add_settings(struct run *r, struct shell_words *all)
{
	for (size_t i = 0; i < r->shell.n_vars; i++) {
		const struct shell_var *v = &r->shell.vars[i];
		_cleanup_(mo_freep) char *word =
			v->exported && v->n == 1 ? mo_printf("%s=%s", v->name, v->words[0]) : NULL;

		if (word)
			mo_strs_add(&all->items, &all->n, word);
	}
	if (r->sbatch.n)
		mo_strs_add(&all->items, &all->n, "sbatch");
	for (size_t i = 0; i < r->sbatch.n; i++)
		mo_strs_add(&all->items, &all->n, r->sbatch.items[i]);
	for (size_t i = 0; i < r->before.n; i++)
		mo_strs_add(&all->items, &all->n, r->before.items[i]);
}

/* $PREFIX torchrun ..: a variable that nobody set is no word. */
static size_t unset_before(const struct shell_words *w)
{
	size_t n = 0;

	for (; n < w->n; n++) {
		const char *word = w->items[n], *end = strchr(word, SHELL_UNKNOWN_END);

		if (word[0] != SHELL_UNKNOWN || word[1] != '$' || word[2] == '(' || !end || end[1])
			break;
	}
	return n;
}

/* Of the command that is read: the line on which its first word stands. */
static int64_t line_of(const struct run *r)
{
	int64_t line = 1;

	if (!r->text || !r->at)
		return 0;
	const char *word = r->at + strspn(r->at, " \t\r\n;");

	for (const char *p = r->text; p < word; p++)
		line += *p == '\n';
	return line;
}

/* What was exported and the words of #SBATCH lines stand before those of the line, which win. */
bool run_launch(struct run *r, const struct shell_command *c, const char *behind)
{
	struct shell_words all = { 0 };
	struct launch_line l;
	_cleanup_(mo_freep) char *text = run_joined(c->words.items, c->words.n);

	add_settings(r, &all);
	for (size_t i = unset_before(&c->words); i < c->words.n; i++)
		mo_strs_add(&all.items, &all.n, c->words.items[i]);
	struct mo_error why = { 0 };
	int e = launch_line_plain(all.items, all.n, &l, &why);

	mo_strs_clear(&all.items, &all.n);
	if (e < 0) {
		if (!r->contained) {
			mo_error_done(&r->why);
			r->why = why;
		} else {
			mo_error_done(&why);
		}
		r->contained |= e == -ENOTSUP;
		return false;
	}
	int score = score_of(&l, r->shell.follow);

	if (score <= r->score) {
		if (!mo_streq(text, r->called))
			run_name(score >= MANY      ? &r->others
				 : r->score >= MANY ? &r->behind
						    : &r->plain,
				 text);
		launch_line_done(&l);
		return true;
	}
	if (r->score)
		run_name(r->score >= MANY ? &r->others : &r->plain, r->called);
	for (size_t i = 0; i < r->behind.n; i++)
		run_name(&r->left, r->behind.items[i]);
	mo_strs_clear(&r->behind.items, &r->behind.n);
	if (r->score)
		launch_line_done(&r->best);
	r->best = l;
	r->best.line = line_of(r);
	r->score = score;
	free(r->called);
	r->called = TAKE_PTR(text);
	if (!r->best.dir && r->shell.dir)
		r->best.dir = mo_strdup(r->shell.dir);
	if (!r->best.python && r->python)
		r->best.python = mo_strdup(r->python);
	if (r->shell.follow == SHELL_MAYBE)
		lose_all(&r->best, &(struct shell_words){ &r->called, 1 },
			 "only a running shell knows whether it gets to this line");
	for (size_t i = 0; i < unset_before(&c->words); i++) {
		_cleanup_(mo_freep) char *word = run_joined(&c->words.items[i], 1);
		launch_lose(&r->best, word, NULL, ONLY_THE_SHELL);
	}
	run_output(&r->best, c, behind);
	return true;
}
