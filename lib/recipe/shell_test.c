/* Conditions and arithmetic of a shell (shell.h). A variable that nobody set, or a word that
 * nobody gave, is empty in a condition, as it is for a shell that was just started; what a
 * command would print, and whether a file exists, is not known. */
#include "lib/recipe/shell_test.h"

#include <fnmatch.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/recipe/shell.h"
#include "lib/recipe/shell_vars.h"

enum shell_truth shell_and(enum shell_truth a, enum shell_truth b)
{
	if (a == SHELL_FALSE || b == SHELL_FALSE)
		return SHELL_FALSE;
	return a == SHELL_TRUE && b == SHELL_TRUE ? SHELL_TRUE : SHELL_EITHER;
}

enum shell_truth shell_or(enum shell_truth a, enum shell_truth b)
{
	return shell_not(shell_and(shell_not(a), shell_not(b)));
}

enum shell_truth shell_not(enum shell_truth a)
{
	return a == SHELL_EITHER ? SHELL_EITHER : a == SHELL_TRUE ? SHELL_FALSE : SHELL_TRUE;
}

#define NAME "0123456789_@*abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static enum shell_truth truth(bool value)
{
	return value ? SHELL_TRUE : SHELL_FALSE;
}

/* Without what is empty in a shell that was just started; false: it is not known. */
static bool operand(const char *word, struct mo_buf *ret)
{
	mo_buf_str(ret, "");
	for (const char *p = word; *p; p++) {
		if (*p != SHELL_UNKNOWN) {
			mo_buf_add(ret, p, 1);
			continue;
		}
		const char *end = strchr(p, SHELL_UNKNOWN_END), *name = p + 2;
		bool brace = end && p[1] == '$' && *name == '{';

		name += brace;
		name += end && p[1] == '$' ? strspn(name, NAME) : 0;
		if (!end || name == p + 2 + brace || name + brace != end)
			return false;
		p = end;
	}
	return true;
}

/* ---- [ .. ] and [[ .. ]] ---- */

struct test {
	char *const *words;
	size_t n, at;
};

static enum shell_truth test_or(struct test *t);

static enum shell_truth compare(const char *a, const char *op, const char *b)
{
	static const char *const numeric[] = { "-eq", "-ne", "-gt", "-ge", "-lt", "-le" };
	int64_t x, y;

	if (mo_streq(op, "=") || mo_streq(op, "=="))
		return truth(fnmatch(b, a, 0) == 0 || mo_streq(a, b));
	if (mo_streq(op, "!="))
		return truth(fnmatch(b, a, 0) != 0 && !mo_streq(a, b));
	if (mo_parse_i64(a, INT64_MIN, INT64_MAX, &x) < 0 ||
	    mo_parse_i64(b, INT64_MIN, INT64_MAX, &y) < 0)
		return SHELL_EITHER;
	const bool is[] = { x == y, x != y, x > y, x >= y, x < y, x <= y };

	for (size_t i = 0; i < ELEMENTSOF(numeric); i++)
		if (mo_streq(op, numeric[i]))
			return truth(is[i]);
	return SHELL_EITHER;
}

static bool is_binary(const char *word)
{
	static const char *const ops[] = { "=",   "==",  "!=",  "-eq", "-ne", "-gt",
					   "-ge", "-lt", "-le", "=~",  "<",   ">" };

	for (size_t i = 0; i < ELEMENTSOF(ops); i++)
		if (mo_streq(word, ops[i]))
			return true;
	return false;
}

static enum shell_truth test_one(struct test *t)
{
	_cleanup_(mo_buf_done) struct mo_buf a = { 0 }, b = { 0 };
	const char *word = t->at < t->n ? t->words[t->at] : "";

	if (mo_streq(word, "!") && t->n - t->at > 1) {
		t->at++;
		return shell_not(test_one(t));
	}
	if (mo_streq(word, "(") && t->n - t->at > 1) {
		t->at++;
		enum shell_truth r = test_or(t);
		t->at += t->at < t->n;
		return r;
	}
	if (t->n - t->at >= 3 && is_binary(t->words[t->at + 1])) {
		const char *op = t->words[t->at + 1], *right = t->words[t->at + 2];

		t->at += 3;
		return operand(word, &a) && operand(right, &b) ? compare(a.data, op, b.data)
							       : SHELL_EITHER;
	}
	if (word[0] == '-' && word[1] && !word[2] && t->n - t->at >= 2) {
		bool known = operand(t->words[t->at + 1], &a);

		t->at += 2;
		if (word[1] != 'z' && word[1] != 'n')
			return SHELL_EITHER;
		return known ? truth((a.len == 0) == (word[1] == 'z')) : SHELL_EITHER;
	}
	t->at += t->at < t->n;
	return operand(word, &a) ? truth(a.len > 0) : SHELL_EITHER;
}

static enum shell_truth test_and(struct test *t)
{
	enum shell_truth r = test_one(t);

	while (t->at < t->n &&
	       (mo_streq(t->words[t->at], "&&") || mo_streq(t->words[t->at], "-a"))) {
		t->at++;
		r = shell_and(r, test_one(t));
	}
	return r;
}

static enum shell_truth test_or(struct test *t)
{
	enum shell_truth r = test_and(t);

	while (t->at < t->n &&
	       (mo_streq(t->words[t->at], "||") || mo_streq(t->words[t->at], "-o"))) {
		t->at++;
		r = shell_or(r, test_and(t));
	}
	return r;
}

enum shell_truth shell_test(char *const *words, size_t n)
{
	struct test t = { words, n, 0 };
	enum shell_truth r = n && n < 200 ? test_or(&t) : SHELL_EITHER;

	return t.at == n ? r : SHELL_EITHER;
}

/* ---- arithmetic ---- */

struct sum {
	struct shell *s;
	const char *p;
	bool known;
	int depth;
};

static int64_t level(struct sum *m, int rank);

static int64_t atom(struct sum *m)
{
	int64_t v = 0;
	size_t n;

	m->p += strspn(m->p, " \t\n");
	if (*m->p == '-' || *m->p == '+' || *m->p == '!') {
		char sign = *m->p++;

		v = ++m->depth < 64 ? atom(m) : 0;
		m->known &= m->depth-- < 64 && v != INT64_MIN;
		return sign == '-' ? -(m->known ? v : 0) : sign == '!' ? !v : v;
	}
	if (*m->p == '(') {
		m->p++;
		v = ++m->depth < 64 ? level(m, 0) : 0;
		m->known &= m->depth-- < 64 && *m->p == ')';
		m->p += *m->p == ')';
		return v;
	}
	bool brace = m->p[0] == '$' && m->p[1] == '{';
	m->p += (*m->p == '$') + brace;
	n = strspn(m->p, "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	_cleanup_(mo_freep) char *word = mo_strndup(m->p, n);
	const struct shell_var *var = shell_var(m->s, word, n);
	const char *text = var && var->n == 1 ? var->words[0] : word;

	m->known &= n && mo_parse_i64(text, INT64_MIN / 2, INT64_MAX / 2, &v) == 0;
	m->p += n + (brace && m->p[n] == '}');
	m->p += strspn(m->p, " \t\n");
	return m->known ? v : 0;
}

static int64_t apply(struct sum *m, const char *op, int64_t a, int64_t b)
{
	int64_t r = 0;

	switch (*op) {
	case '*': m->known &= !__builtin_mul_overflow(a, b, &r); return r;
	case '+': m->known &= !__builtin_add_overflow(a, b, &r); return r;
	case '-': m->known &= !__builtin_sub_overflow(a, b, &r); return r;
	case '/':
	case '%':
		if (b == 0 || (b == -1 && a == INT64_MIN)) {
			m->known = false;
			return 0;
		}
		return *op == '/' ? a / b : a % b;
	case '<': return op[1] == '=' ? a <= b : a < b;
	case '>': return op[1] == '=' ? a >= b : a > b;
	case '=': return a == b;
	case '!': return a != b;
	case '&': return a && b;
	default: return a || b;
	}
}

static int64_t level(struct sum *m, int rank)
{
	static const char *const ops[][5] = { { "||" },       { "&&" },
					      { "==", "!=" }, { "<=", ">=", "<", ">" },
					      { "+", "-" },   { "*", "/", "%" } };

	if (rank == ELEMENTSOF(ops))
		return atom(m);
	int64_t v = level(m, rank + 1);

	for (;;) {
		const char *op = NULL;

		m->p += strspn(m->p, " \t\n");
		for (size_t i = 0; i < ELEMENTSOF(ops[0]) && ops[rank][i] && !op; i++)
			if (mo_starts_with(m->p, ops[rank][i]))
				op = ops[rank][i];
		if (!op)
			return v;
		m->p += strlen(op);
		v = apply(m, op, v, level(m, rank + 1));
	}
}

bool shell_number(struct shell *s, const char *text, int64_t *ret)
{
	struct sum m = { .s = s, .p = text, .known = true };
	int64_t v = level(&m, 0);

	if (!m.known || *m.p)
		return false;
	*ret = v;
	return true;
}

/* ---- getopts ---- */

static void set_name(struct shell *s, const char *name, const char *text)
{
	shell_set_text(s, name, strlen(name), text, false);
}

enum shell_truth shell_getopts(struct shell *s, const char *spec, const char *name)
{
	const struct shell_var *at = shell_var(s, "OPTIND", strlen("OPTIND"));
	int64_t k = 1;

	if (at && at->n)
		(void)mo_parse_i64(at->words[0], 1, 100000, &k);
	const char *word = (size_t)k <= s->args.n ? s->args.items[k - 1] : "";

	if (!s->letter && (word[0] != '-' || !word[1] || mo_streq(word, "--"))) {
		_cleanup_(mo_freep) char *end = mo_printf("%lld", (long long)k + (word[0] == '-'));

		set_name(s, "OPTIND", end);
		set_name(s, name, "?");
		return SHELL_FALSE;
	}
	s->letter = s->letter < strlen(word) ? s->letter + 1 : 1; /* shift may have moved them */
	const char *at_letter = word + MO_MIN(s->letter, strlen(word)),
		   *rest = at_letter + !!*at_letter;
	const char *known = *at_letter && *at_letter != ':' ? strchr(spec, *at_letter) : NULL;
	bool takes = known && known[1] == ':', over = takes || !*rest;
	const char letter[] = { *at_letter, 0 };
	const char *value = !takes                  ? ""
			    : *rest                 ? rest
			    : (size_t)k < s->args.n ? s->args.items[k]
						    : "";
	_cleanup_(mo_freep) char *next = mo_printf("%lld", (long long)k + over + (takes && !*rest));

	set_name(s, name, known ? letter : "?");
	set_name(s, "OPTARG", value);
	set_name(s, "OPTIND", next);
	s->letter = over ? 0 : s->letter;
	return SHELL_TRUE;
}
