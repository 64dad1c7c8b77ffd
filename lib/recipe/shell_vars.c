/* A shell's variables, and words with marks for what only a running shell knows. */
#include "lib/recipe/shell_vars.h"

#include <string.h>

#include "lib/recipe/shell.h"

#define VARIABLES_MAX 4000

bool shell_unknown(const char *text)
{
	return text && strchr(text, SHELL_UNKNOWN);
}

bool shell_plain(char *text)
{
	bool any = false;
	char *to = text;

	for (const char *p = text; text && *p; p++)
		if (*p == SHELL_UNKNOWN || *p == SHELL_UNKNOWN_END)
			any = true;
		else
			*to++ = *p;
	if (text)
		*to = '\0';
	return any;
}

static size_t name_length(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");

	return n ? n + strspn(s + n, SHELL_NAME) : 0;
}

size_t shell_assigned(const char *word)
{
	size_t n = name_length(word);

	return n && (word[n] == '=' || (word[n] == '+' && word[n + 1] == '=')) ? n : 0;
}

struct shell_var *shell_var(struct shell *s, const char *name, size_t n)
{
	for (size_t i = 0; i < s->n_vars; i++)
		if (strlen(s->vars[i].name) == n && !strncmp(s->vars[i].name, name, n))
			return &s->vars[i];
	return NULL;
}

static void note_maybe(struct shell *s, const char *name)
{
	for (size_t i = 0; i < s->maybe.n; i++)
		if (mo_streq(s->maybe.items[i], name))
			return;
	mo_strs_add(&s->maybe.items, &s->maybe.n, name);
}

void shell_set(struct shell *s, const char *name, size_t n, struct shell_words *w, bool more)
{
	struct shell_var *v = shell_var(s, name, n);
	bool skip = s->follow == SHELL_SKIP || (!v && s->n_vars >= VARIABLES_MAX) || n == 0;

	if (!skip && s->follow == SHELL_MAYBE) {
		_cleanup_(mo_freep) char *text = mo_strndup(name, n);

		note_maybe(s, text);
		skip = v;
	}
	if (!skip && !v) {
		v = MO_GROW(s->vars, s->n_vars);
		*v = (struct shell_var){ .name = mo_strndup(name, n) };
	}
	if (!skip && !more)
		mo_strs_clear(&v->words, &v->n);
	if (!skip)
		v->exported |= s->exports;
	for (size_t i = 0; !skip && i < w->n && v->n < SHELL_WORDS_MAX; i++)
		mo_strs_add(&v->words, &v->n, w->items[i]);
	mo_strs_clear(&w->items, &w->n);
}

void shell_set_text(struct shell *s, const char *name, size_t n, const char *text, bool more)
{
	const struct shell_var *v = more ? shell_var(s, name, n) : NULL;
	_cleanup_(mo_freep) char *whole =
		mo_printf("%s%s", v && v->n ? v->words[0] : "", text ? text : "");
	struct shell_words w = { 0 };

	mo_strs_add(&w.items, &w.n, whole);
	shell_set(s, name, n, &w, false);
}

char *shell_path(const struct shell *s, const char *path)
{
	if (shell_unknown(path) || (path[0] != '/' && (!s->dir || shell_unknown(s->dir))))
		return NULL;
	_cleanup_(mo_freep) char *whole =
		path[0] == '/' ? mo_strdup(path) : mo_printf("%s/%s", s->dir, path);

	return mo_path_clean(whole);
}
