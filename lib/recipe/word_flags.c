/* The words of a command as flags. */
#include "lib/recipe/word_flags.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/recipe/draft.h"

static bool is_flag(const char *word)
{
	double number;

	return word[0] == '-' && word[1] && mo_parse_double(word, &number) < 0;
}

/* A k=v word, as Primus and MaxText take them. To Primus one with '-' is a key, too. */
static size_t bare_key(const char *word)
{
	size_t n =
		strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return n && word[n] == '=' ? n : 0;
}

void word_flags_read(char *const *words, size_t n, struct word_flags *ret)
{
	struct word_flag *f = NULL;

	*ret = (struct word_flags){ 0 };
	for (size_t i = 0; i < n; i++) {
		size_t dashes = strspn(words[i], "-"), bare = bare_key(words[i]), len;
		bool flag = is_flag(words[i]);

		if (!flag && !bare && f) {
			mo_strs_add(&f->values, &f->n, words[i]);
			f->to = i + 1;
			continue;
		}
		f = MO_GROW(ret->items, ret->n);
		*f = (struct word_flag){ .from = i, .to = i + 1 };
		if (!flag && !bare) {
			mo_strs_add(&f->values, &f->n, words[i]);
			continue;
		}
		dashes = flag ? dashes : 0;
		len = strcspn(words[i] + dashes, "=");
		f->name = mo_strndup(words[i] + dashes, len);
		if (words[i][dashes + len])
			mo_strs_add(&f->values, &f->n, words[i] + dashes + len + 1);
		if (bare && !flag)
			f = NULL; /* what follows it is not its value */
	}
}

void word_flags_done(struct word_flags *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->items[i].name);
		mo_strs_clear(&f->items[i].values, &f->items[i].n);
	}
	free(f->items);
	*f = (struct word_flags){ 0 };
}

const struct word_flag *word_flags_find(const struct word_flags *f, const char *name)
{
	for (size_t i = f->n; name && i > 0; i--)
		if (f->items[i - 1].name && mo_streq(f->items[i - 1].name, name))
			return &f->items[i - 1];
	return NULL;
}

char *word_flag_text(const struct word_flag *f)
{
	struct mo_buf b = { 0 };

	if (f->name)
		mo_buf_printf(&b, "--%s", f->name);
	for (size_t i = 0; i < f->n; i++)
		mo_buf_printf(&b, "%s%s", b.len ? " " : "", f->values[i]);
	mo_buf_add(&b, "", 1);
	return mo_buf_take(&b);
}

bool word_flag_same(const struct word_flag *a, const struct word_flag *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		double x = 0, y = 0;
		bool numbers = mo_parse_double(a->values[i], &x) == 0 &&
			       mo_parse_double(b->values[i], &y) == 0;

		if (numbers ? x != y : strcmp(a->values[i], b->values[i]) != 0)
			return false;
	}
	return true;
}
