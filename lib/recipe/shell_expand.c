/* See shell_expand.h. */
#include "lib/recipe/shell_expand.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/recipe/shell.h"
#include "lib/recipe/shell_test.h"
#include "lib/recipe/shell_vars.h"

#define EXPANDED_MAX (16 << 20) /* bytes that variables become, in all: A=$A$A doubles */
#define DEPTH_MAX 32            /* of ${A:-${B:-..}} and $( $( .. */

static void put_unknown(struct shell_word *u, const char *from, const char *to)
{
	const char marks[] = { SHELL_UNKNOWN, SHELL_UNKNOWN_END };

	mo_buf_add(&u->b, &marks[0], 1);
	for (; from < to; from++) /* the marks of what it is made of are its own */
		if (*from != SHELL_UNKNOWN && *from != SHELL_UNKNOWN_END)
			mo_buf_add(&u->b, from, 1);
	mo_buf_add(&u->b, &marks[1], 1);
	u->any = true;
}

/* X=$Y is one word, whatever Y holds. */
static bool in_assignment(const struct shell_word *u)
{
	const struct shell_words *w = &u->command->words;
	bool exports =
		w->n && (mo_streq(w->items[0], "export") || mo_streq(w->items[0], "local") ||
			 mo_streq(w->items[0], "declare") || mo_streq(w->items[0], "readonly"));

	for (size_t i = exports; i < w->n; i++)
		if (!shell_assigned(w->items[i]))
			return false;
	return u->b.len && shell_assigned(u->b.data);
}

static void put_value(struct shell_word *u, const char *text)
{
	bool whole = u->quote || u->redirects || in_assignment(u), unknown = false;

	for (; *text; text++) {
		unknown = *text == SHELL_UNKNOWN || (unknown && *text != SHELL_UNKNOWN_END);
		if (!whole && !unknown && strchr(" \t\n", *text)) {
			shell_word_end(u);
			continue;
		}
		mo_buf_add(&u->b, text, 1);
		u->any = true;
	}
	u->any |= u->quote != 0;
}

static bool may_grow(struct shell *s, const char *text)
{
	s->expanded += strlen(text) + 1;
	return s->expanded <= EXPANDED_MAX;
}

static void put_words(struct shell_word *u, char *const *words, size_t n, bool joined)
{
	joined |= in_assignment(u);
	for (size_t i = 0; i < n && may_grow(u->shell, words[i]); i++) {
		if (i && joined)
			mo_buf_str(&u->b, " ");
		else if (i)
			shell_word_end(u);
		put_value(u, words[i]);
	}
}

/* Text with quotes and variables of its own, as the word of ${X:-word} is. */
static void put_text(struct shell_word *u, const char *text)
{
	_cleanup_(shell_command_done) struct shell_command c = { 0 };

	if (++u->shell->depth < DEPTH_MAX)
		shell_read_list(u->shell, text, &c);
	u->shell->depth--;
	put_words(u, c.words.items, c.words.n, u->quote);
	u->any |= u->quote != 0;
}

/* Behind the brace or parenthesis that closes the one at p. */
static const char *skip_nested(const char *p, char open, char close)
{
	int depth = 0;
	char quote = 0;

	for (; *p; p++) {
		if (*p == '\\' && p[1]) {
			p++;
			continue;
		}
		if (quote ? *p == quote : *p == '\'' || (*p == '"' && open == '('))
			quote = quote ? 0 : *p;
		if (quote == '\'')
			continue;
		depth += *p == open;
		if (*p == close && --depth == 0)
			return p + 1;
	}
	return p;
}

/* ---- $( .. ) ---- */

static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !slash          ? mo_strdup(".")
	       : slash == path ? mo_strdup("/")
			       : mo_strndup(path, (size_t)(slash - path));
}

static void drop_second(struct shell_words *w)
{
	free(w->items[1]);
	memmove(w->items + 1, w->items + 2, (w->n - 2) * sizeof(*w->items));
	w->n--;
}

#define NUMBERS_MAX 200

static char *numbers(const char *first, const char *last)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t from, to;

	if (mo_parse_i64(first, -100000, 100000, &from) < 0 ||
	    mo_parse_i64(last, from, from + NUMBERS_MAX, &to) < 0)
		return NULL;
	for (; from <= to; from++)
		mo_buf_printf(&b, "%s%lld", b.len ? "\n" : "", (long long)from);
	mo_buf_add(&b, "", 1);
	return mo_buf_take(&b);
}

/* What it would print; NULL = nobody knows. Caller frees. */
static char *printed(struct shell *s, const char *text)
{
	_cleanup_(shell_command_done) struct shell_command c = { 0 }, then = { 0 };
	const char *rest = shell_read(s, text, &c);
	if (c.words.n > 2 && mo_streq(c.words.items[1], "--")) /* dirname -- X */
		drop_second(&c.words);
	char *const *w = c.words.items;
	size_t n = c.words.n;

	if (n == 2 && mo_streq(w[0], "cd") && c.op == SHELL_AND) {
		shell_read(s, rest, &then);
		bool pwd = then.op == 0 && then.words.n && mo_streq(then.words.items[0], "pwd");
		return pwd ? shell_path(s, w[1]) : NULL;
	}
	if (!n && !c.op && text[strspn(text, " \t")] == '#')
		return mo_strdup(""); /* `# a comment` */
	if (n == 1 && c.here && mo_streq(w[0], "cat") && !strpbrk(c.here, "$`\\") &&
	    !rest[strspn(rest, " \t\r\n")]) {
		size_t len = strlen(c.here);

		while (len && c.here[len - 1] == '\n')
			len--;
		return mo_strndup(c.here, len);
	}
	if (c.op || c.input || !n)
		return NULL;
	if (mo_streq(w[0], "pwd"))
		return shell_path(s, "");
	if (n == 2 && mo_streq(w[0], "dirname") && !shell_unknown(w[1]))
		return directory_of(w[1]);
	if (n == 2 && mo_streq(w[0], "basename") && !shell_unknown(w[1]))
		return mo_strdup(strrchr(w[1], '/') ? strrchr(w[1], '/') + 1 : w[1]);
	if (n > 1 && n < 4 && mo_streq(w[0], "seq"))
		return numbers(n == 3 ? w[1] : "1", w[n - 1]);
	bool links = (n == 2 && mo_streq(w[0], "realpath")) ||
		     (n == 3 && mo_streq(w[0], "readlink") && mo_streq(w[1], "-f"));
	return links ? shell_path(s, w[n - 1]) : NULL;
}

static const char *substitution(struct shell_word *u, const char *p, const char *end)
{
	size_t closed = end > p + 1 && (end[-1] == ')' || end[-1] == '`');
	const char *from = *p == '`' ? p + 1 : p + 2;
	_cleanup_(mo_freep) char *inner =
		mo_strndup(from,
			   end > from ? (size_t)(end - from) - MO_MIN(closed, (size_t)(end - from))
				      : 0);
	struct shell *s = u->shell;
	enum shell_follow follow = s->follow;
	char *text = NULL;

	s->follow = SHELL_SKIP; /* what it sets is its own */
	if (++s->depth < DEPTH_MAX)
		text = printed(s, inner);
	s->depth--;
	s->follow = follow;
	if (text)
		put_value(u, text);
	else
		put_unknown(u, p, end);
	free(text);
	return end;
}

static const char *arithmetic(struct shell_word *u, const char *p, const char *end)
{
	size_t n = (size_t)(end - p);
	_cleanup_(mo_freep) char *inner = n > 5 ? mo_strndup(p + 3, n - 5) : mo_strdup("?");
	int64_t v;

	if (shell_number(u->shell, inner, &v)) {
		mo_buf_printf(&u->b, "%lld", (long long)v);
		u->any = true;
	} else {
		put_unknown(u, p, end);
	}
	return end;
}

/* ---- ${ .. } ---- */

/* ${X#a} ${X##a} ${X%a} ${X%%a} of a text. Caller frees. */
static char *cut(const char *text, const char *op, const char *pattern)
{
	size_t n = strlen(text);
	bool longest = op[1] == op[0], front = *op == '#';

	for (size_t k = 0; k <= n; k++) {
		size_t len = longest ? n - k : k;
		_cleanup_(mo_freep) char *part =
			front ? mo_strndup(text, len) : mo_strdup(text + n - len);

		if (fnmatch(pattern, part, 0) == 0)
			return front ? mo_strdup(text + len) : mo_strndup(text, n - len);
	}
	return mo_strdup(text);
}

/* ${X/a/b} ${X//a/b} of a text; NULL: a is a pattern, or text of its own. Caller frees. */
static char *replaced(const char *text, const char *op)
{
	bool all = op[1] == '/';
	const char *from = op + 1 + all, *slash = strchr(from, '/');
	size_t n = slash ? (size_t)(slash - from) : strlen(from);
	struct mo_buf b = { 0 };

	if (n == 0 || strpbrk(op, "$`*?[\\\"'#%"))
		return NULL;
	for (const char *p = text; *p;) {
		bool hit = !strncmp(p, from, n);

		if (hit && slash)
			mo_buf_str(&b, slash + 1);
		if (!hit)
			mo_buf_add(&b, p, 1);
		p += hit ? n : 1;
		if (hit && !all) {
			mo_buf_str(&b, p);
			break;
		}
	}
	return mo_buf_take(&b);
}

/* What the name has; NULL = nothing. A word of the call is made one in *call. */
static const struct shell_var *look_up(struct shell *s, const char *name, size_t n,
				       struct shell_var *call)
{
	_cleanup_(mo_freep) char *text = mo_strndup(name, n);
	bool script = mo_streq(text, "0") || mo_streq(text, "BASH_SOURCE");
	int64_t at;

	*call = (struct shell_var){ .n = 1 };
	if (script && s->script) {
		call->words = &s->script;
		return call;
	}
	if (mo_streq(text, "PWD") && s->dir) {
		call->words = &s->dir;
		return call;
	}
	if (strspn(text, "0123456789") != n)
		return shell_var(s, name, n);
	if (mo_parse_i64(text, 1, 1000, &at) < 0 || (size_t)at > s->args.n)
		return NULL;
	call->words = &s->args.items[at - 1];
	return call;
}

/* ${X} with the operator behind its name. False: nobody knows. */
static bool put_operated(struct shell_word *u, const char *name, size_t n,
			 const struct shell_var *v, const char *op)
{
	bool colon = op[0] == ':', empty = !v || (colon && (v->n == 0 || !v->words[0][0]));
	const char *word = op + colon + 1;
	_cleanup_(shell_command_done) struct shell_command c = { 0 };
	_cleanup_(mo_freep) char *rest = NULL;

	switch (op[colon]) {
	case '=':
		if (empty) {
			shell_read_list(u->shell, word, &c);
			shell_set(u->shell, name, n, &c.words, false);
		}
		/* fallthrough */
	case '-':
		if (empty)
			put_text(u, word);
		else
			put_words(u, v->words, v->n, false);
		return true;
	case '+':
		if (!empty)
			put_text(u, word);
		return true;
	case '?':
		if (!empty)
			put_words(u, v->words, v->n, false);
		return !empty;
	case '#':
	case '%':
		if (colon || !v || v->n != 1 || shell_unknown(v->words[0]) || strchr(op, '$'))
			return false;
		rest = cut(v->words[0], op, op + 1 + (op[1] == op[0]));
		put_value(u, rest);
		return true;
	case '/':
		if (!colon && v && v->n == 1 && !shell_unknown(v->words[0]))
			rest = replaced(v->words[0], op);
		if (rest)
			put_value(u, rest);
		return rest;
	default: return false;
	}
}

static bool put_array(struct shell_word *u, const struct shell_var *v, const char *index)
{
	if (mo_streq(index, "[@]") || mo_streq(index, "[*]")) {
		u->nothing |= !v || v->n == 0; /* nobody outside can set an array */
		if (v)
			put_words(u, v->words, v->n, index[1] == '*' && u->quote);
		return true;
	}
	if (mo_streq(index, "[0]") && v && v->n) {
		put_value(u, v->words[0]);
		return true;
	}
	return false;
}

static bool put_braced(struct shell_word *u, const char *text)
{
	struct shell *s = u->shell;
	bool count = text[0] == '#' && text[1];
	const char *name = text + count;
	size_t n = strspn(name, SHELL_NAME);
	const char *rest = name + n;
	struct shell_var call;
	const struct shell_var *v = n ? look_up(s, name, n, &call) : NULL;
	bool digits = n && strspn(name, "0123456789") >= n;

	if (mo_streq(text, "#")) {
		s->args_used |= !s->args_known && s->follow != SHELL_SKIP;
		mo_buf_printf(&u->b, "%zu", s->args.n);
		u->any = true;
		return true;
	}
	if (count && v && (*rest == 0 || mo_streq(rest, "[@]") || mo_streq(rest, "[*]"))) {
		mo_buf_printf(&u->b, "%zu", *rest ? v->n : v->n ? strlen(v->words[0]) : 0);
		u->any = true;
		return true;
	}
	if (count || !n)
		return false;
	if (*rest == '[')
		return put_array(u, v, rest);
	if (*rest)
		return put_operated(u, name, n, v, rest);
	if (v)
		put_words(u, v->words, v->n, false);
	u->any |= u->quote != 0;
	return v || (digits && s->args_known);
}

/* A `$` and what follows it without a brace; NULL: it is none. */
static const char *bare_end(const char *p)
{
	if (p[1] && strchr("#?$!-@*0123456789", p[1]))
		return p + 2;
	size_t n = strspn(p + 1, SHELL_NAME);

	return n ? p + 1 + n : NULL;
}

/* "$@" and all behind the first ones, ${@:2}. */
static bool put_arguments(struct shell_word *u, const char *text)
{
	struct shell *s = u->shell;
	int64_t first = 1;

	if (text[1] == ':' && (mo_parse_i64(text + 2, 1, 1000, &first) < 0))
		return false;
	s->args_used |= !s->args_known && s->follow != SHELL_SKIP;
	u->nothing |= (size_t)first > s->args.n;
	if ((size_t)first <= s->args.n)
		put_words(u, s->args.items + first - 1, s->args.n - (size_t)first + 1, false);
	return true;
}

const char *shell_expand(struct shell_word *u, const char *p)
{
	const char *end, *tick = *p == '`' ? strchr(p + 1, '`') : NULL;
	bool brace = p[0] == '$' && p[1] == '{';

	if (*p == '`')
		return substitution(u, p, tick ? tick + 1 : p + strlen(p));
	if (mo_starts_with(p, "$((") && (end = skip_nested(p + 1, '(', ')')) > p + 4 &&
	    end[-2] == ')')
		return arithmetic(u, p, end);
	if (p[1] == '(')
		return substitution(u, p, skip_nested(p + 1, '(', ')'));
	end = brace ? skip_nested(p + 1, '{', '}') : bare_end(p);
	if (!end) {
		mo_buf_add(&u->b, p, 1);
		u->any = true;
		return p + 1;
	}
	const char *from = p + 1 + brace, *to = end - (brace && end[-1] == '}');
	_cleanup_(mo_freep) char *text = mo_strndup(from, to > from ? (size_t)(to - from) : 0);

	if (*text == '@' || *text == '*' ? !put_arguments(u, text) : !put_braced(u, text))
		put_unknown(u, p, end);
	return end;
}

void shell_expand_home(struct shell_word *u)
{
	static const char tilde[] = "~";
	struct shell_var *v = shell_var(u->shell, "HOME", strlen("HOME"));

	if (v && v->n)
		put_value(u, v->words[0]);
	else
		put_unknown(u, tilde, tilde + 1);
}
