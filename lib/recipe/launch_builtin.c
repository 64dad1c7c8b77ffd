/* Commands of a shell that change what later ones mean: cd, export, assignments, read, set. */
#include "lib/recipe/launch_builtin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/recipe/launch_options.h"
#include "lib/recipe/launch_run.h"
#include "lib/recipe/shell_vars.h"

static void change_dir(struct run *r, const char *to)
{
	struct shell *s = &r->shell;
	char *path = shell_path(s, to);

	if (s->follow == SHELL_SKIP || mo_streq(to, "-")) {
		free(path);
		return;
	}
	if (!path && (shell_unknown(to) || to[0] == '/' || !s->dir))
		path = mo_strdup(to);
	else if (!path)
		path = mo_printf("%s/%s", s->dir, to);
	free(s->dir);
	s->dir = path;
}

static void export(struct shell *s, const char *name, size_t n)
{
	struct shell_var *v = s->follow == SHELL_SKIP ? NULL : shell_var(s, name, n);

	if (v)
		v->exported = true;
}

static bool take_assignments(struct shell *s, const struct shell_command *c)
{
	const struct shell_words *w = &c->words;
	static const char *const words[] = { "export", "declare", "local", "readonly", "typeset" };
	bool exports = mo_streq(w->items[0], "export"), declares = false;

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		declares |= mo_streq(w->items[0], words[i]);
	for (size_t i = 0; i < w->n && !declares; i++)
		if (!shell_assigned(w->items[i]))
			return false; /* X=1 program */
	for (size_t i = declares; i < w->n; i++) {
		const char *word = w->items[i];
		size_t n = shell_assigned(word), name = strspn(word, SHELL_NAME);
		bool more = n && word[n] == '+';

		if (n)
			shell_set_text(s, word, n, word + n + 1 + more, more);
		exports |= word[0] == '-' && strchr(word, 'x');
		if (exports && word[0] != '-')
			export(s, word, n ? n : name);
	}
	return true;
}

static void forget(struct shell *s, const char *name)
{
	struct shell_var *v = s->follow == SHELL_RUN ? shell_var(s, name, strlen(name)) : NULL;

	if (!v)
		return;
	mo_strs_clear(&v->words, &v->n);
	free(v->name);
	*v = s->vars[--s->n_vars];
}

/* Words that nobody knows here: read, mapfile, IFS== read. False: it is none. */
static bool read_unknown(struct shell *s, const struct shell_command *c)
{
	const struct shell_words *w = &c->words;
	size_t at = 0;
	bool whole = false;

	while (at < w->n && shell_assigned(w->items[at]))
		at++;
	if (at == w->n ||
	    !launch_among("read mapfile readarray", w->items[at], strlen(w->items[at])))
		return false;
	for (size_t i = at + 1; i < w->n; i++) {
		size_t n = strspn(w->items[i], SHELL_NAME);
		_cleanup_(mo_freep) char *text =
			mo_printf("%c$%s%c", SHELL_UNKNOWN, w->items[i], SHELL_UNKNOWN_END);

		if (n && !w->items[i][n])
			shell_set_text(s, w->items[i], n, text, false);
		whole |= mo_streq(w->items[i], "-d");
	}
	if (whole && s->follow == SHELL_RUN && w->n > at + 1 && (c->here || s->here_end)) {
		mo_str_set(&s->here_name, w->items[w->n - 1]);
		if (c->here)
			shell_give_here(s, c->here);
	}
	return true;
}

/* set -a, set -eao pipefail, set +o allexport */
static void set_options(struct shell *s, const struct shell_words *w)
{
	for (size_t i = 1; i < w->n; i++) {
		const char *word = w->items[i];
		bool named = i > 1 && mo_streq(word, "allexport"),
		     letter = (word[0] == '-' || word[0] == '+') && strchr(word, 'a');

		if ((named || letter) && s->follow == SHELL_RUN)
			s->exports = (named ? w->items[i - 1] : word)[0] == '-';
	}
}

void launch_set_words(struct shell *s, const struct shell_words *w, size_t at)
{
	mo_strs_clear(&s->args.items, &s->args.n);
	for (; at < w->n; at++)
		mo_strs_add(&s->args.items, &s->args.n, w->items[at]);
	s->args_known = true;
}

bool launch_take_builtin(struct run *r, const struct shell_command *c)
{
	const struct shell_words *w = &c->words;
	const char *word = w->items[0];
	struct shell *s = &r->shell;

	if (take_assignments(s, c) || read_unknown(s, c))
		return true;
	if (mo_streq(word, "cd") || mo_streq(word, "pushd")) {
		change_dir(r, w->n > 1 ? w->items[w->n - 1] : "");
	} else if (mo_streq(word, "unset")) {
		for (size_t i = 1; i < w->n; i++)
			forget(s, w->items[i]);
	} else if (mo_streq(word, "set")) {
		if (w->n > 1 && mo_streq(w->items[1], "--"))
			launch_set_words(s, w, 2);
		else
			set_options(s, w);
	} else if (mo_streq(word, "shift")) {
		struct shell_words all = shell_take(&s->args);
		int64_t by = 1;

		(void)mo_parse_i64(w->n > 1 ? w->items[1] : "1", 0, 1000, &by);
		for (size_t i = (size_t)by; i < all.n; i++)
			mo_strs_add(&s->args.items, &s->args.n, all.items[i]);
		mo_strs_clear(&all.items, &all.n);
	} else if (mo_streq(word, "exit") || mo_streq(word, "return")) {
		r->ended |= s->follow == SHELL_RUN && mo_streq(word, "exit") && r->depth == 1;
	} else {
		return false;
	}
	return true;
}
