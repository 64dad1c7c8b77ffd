/* See launch_blocks.h. A block whose condition is not known is a MAYBE: what it sets is named,
 * and counts only where nothing else was set. A loop runs over the values that it names. */
#include "lib/recipe/launch_blocks.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "lib/recipe/shell_test.h"
#include "lib/recipe/shell_vars.h"

#define LOOPS_MAX 200 /* rounds of one loop */

static struct block *top(struct blocks *b)
{
	return b->n > b->first ? &b->items[b->n - 1] : NULL;
}

static struct block *top_of(struct blocks *b, enum block_kind kind)
{
	struct block *t = top(b);

	return t && t->kind == kind ? t : NULL;
}

static struct block *push(struct blocks *b, enum block_kind kind, enum shell_follow follow)
{
	if (b->n == BLOCKS_MAX)
		return NULL;
	struct block *t = &b->items[b->n++];

	*t = (struct block){ .kind = kind, .follow = follow };
	return t;
}

void blocks_drop(struct blocks *b)
{
	struct block *t = &b->items[--b->n];

	free(t->word);
	mo_strs_clear(&t->values.items, &t->values.n);
}

void blocks_done(struct blocks *b)
{
	while (b->n)
		blocks_drop(b);
	for (size_t i = 0; i < b->n_functions; i++)
		free(b->functions[i].name);
}

enum shell_follow blocks_follow(const struct blocks *b)
{
	enum shell_follow r = SHELL_RUN;

	for (size_t i = 0; i < b->n; i++)
		r = MO_MAX(r, b->items[i].follow);
	if (b->op == SHELL_AND || b->op == SHELL_OR) {
		enum shell_truth want = b->op == SHELL_AND ? b->last : shell_not(b->last);

		if (want != SHELL_TRUE)
			r = MO_MAX(r, want == SHELL_FALSE ? SHELL_SKIP : SHELL_MAYBE);
	}
	return r;
}

bool blocks_asks(const struct blocks *b)
{
	const struct block *t = b->n ? &b->items[b->n - 1] : NULL;

	return t && t->head && t->kind != BLOCK_CASE;
}

/* ---- if ---- */

static void branch(struct blocks *b, struct block *t, enum shell_truth condition)
{
	t->head = false;
	if (t->taken || condition == SHELL_FALSE)
		t->follow = SHELL_SKIP;
	else
		t->follow = t->maybe || condition == SHELL_EITHER ? SHELL_MAYBE : SHELL_RUN;
	t->taken |= condition == SHELL_TRUE;
	t->maybe |= condition == SHELL_EITHER;
	b->op = 0;
	b->last = SHELL_TRUE;
}

/* ---- for ---- */

static void next_value(struct blocks *b, struct block *t)
{
	const char *value = t->values.items[t->at++];

	shell_set_text(b->shell, t->word, strlen(t->word), value, false);
}

/* for NAME in WORD..; without words it is "$@", and `for ((..))` nobody follows. */
static size_t begin_for(struct blocks *b, const struct shell_command *c, size_t at)
{
	const struct shell_words *w = &c->words;
	bool known =
		w->n > at + 3 && mo_streq(w->items[at + 2], "in") && w->n - at - 3 <= LOOPS_MAX;
	struct block *t = push(b, BLOCK_LOOP, known ? SHELL_RUN : SHELL_MAYBE);

	if (!t)
		return w->n;
	t->word = mo_strdup(at + 1 < w->n ? w->items[at + 1] : "");
	for (size_t i = at + 3; known && i < w->n; i++) {
		mo_strs_add(&t->values.items, &t->values.n, w->items[i]);
		if (shell_unknown(w->items[i]))
			t->follow = SHELL_MAYBE;
	}
	if (w->n == at + 3 && mo_streq(w->items[at + 2], "in"))
		t->follow = SHELL_SKIP; /* over nothing */
	t->head = true;
	return w->n;
}

static void end_loop(struct blocks *b, const char **p)
{
	struct block *t = top_of(b, BLOCK_LOOP);

	if (!t)
		return;
	bool again = t->follow == SHELL_RUN && blocks_follow(b) != SHELL_SKIP && t->body;

	if (again && !t->word) {
		*p = t->body; /* its condition is asked again */
		blocks_drop(b);
		b->rounds++;
	} else if (again && t->at < t->values.n) {
		*p = t->body;
	} else {
		blocks_drop(b);
	}
}

static void begin_body(struct blocks *b, const char *begin)
{
	struct block *t = top_of(b, BLOCK_LOOP);

	b->op = 0;
	if (!t)
		return;
	t->head = false;
	if (!t->word) {
		enum shell_truth is = t->taken ? shell_not(b->last) : b->last;

		t->taken = false;
		branch(b, t, b->rounds < LOOPS_MAX ? is : SHELL_EITHER);
		return;
	}
	t->body = begin;
	b->shell->follow = blocks_follow(b);
	if (t->at < t->values.n)
		next_value(b, t);
}

/* ---- case ---- */

/* Behind `case WORD in`. */
static const char *behind_in(const char *p)
{
	for (const char *q = strstr(p, "in"); q; q = strstr(q + 2, "in"))
		if (q > p && strchr(" \t", q[-1]) && q[2] && strchr(" \t\r\n", q[2]))
			return q + 2;
	return NULL;
}

static bool matches(const char *pattern, size_t n, const char *word)
{
	_cleanup_(mo_freep) char *text = mo_strndup(pattern, n);
	size_t to = 0;

	for (size_t i = 0; text[i]; i++)
		if (!strchr("\"' \t", text[i]))
			text[to++] = text[i];
	text[to] = '\0';
	return fnmatch(text, word, 0) == 0;
}

bool blocks_pattern(struct blocks *b, const char **p)
{
	struct block *t = top_of(b, BLOCK_CASE);
	bool hit = false;

	if (!t || !t->head)
		return false;
	*p += strspn(*p, " \t\r\n;");
	if (**p == '#') {
		*p += strcspn(*p, "\n");
		return true;
	}
	if (mo_starts_with(*p, "esac") && !strspn(*p + 4, SHELL_NAME)) {
		blocks_drop(b);
		*p += strlen("esac");
		b->op = 0;
		return true;
	}
	*p += **p == '(';
	while (**p && **p != ')') {
		size_t n = strcspn(*p, "|)\n");

		hit |= matches(*p, n, t->word);
		*p += n + ((*p)[n] == '|' || (*p)[n] == '\n');
	}
	*p += **p == ')';
	branch(b, t, shell_unknown(t->word) ? SHELL_EITHER : hit ? SHELL_TRUE : SHELL_FALSE);
	return true;
}

static size_t begin_case(struct blocks *b, const struct shell_command *c, size_t at,
			 const char *begin, const char **p)
{
	const char *in = behind_in(begin);
	struct block *t = in ? push(b, BLOCK_CASE, SHELL_RUN) : NULL;

	if (t) {
		t->word = mo_strdup(at + 1 < c->words.n ? c->words.items[at + 1] : "");
		t->head = true;
		*p = in;
	}
	return c->words.n;
}

/* ---- functions ---- */

static void define(struct blocks *b, const char *name, const char **p)
{
	const char *brace = *p + strspn(*p, " \t\r\n()");

	if (*brace != '{')
		return;
	*p = brace + 1;
	if (b->n_functions < FUNCTIONS_MAX && blocks_follow(b) != SHELL_SKIP)
		b->functions[b->n_functions++] = (struct function){ mo_strdup(name), *p };
	push(b, BLOCK_GROUP, SHELL_SKIP);
}

bool blocks_call(struct blocks *b, const struct shell_command *c, size_t at, const char **p)
{
	struct shell *s = b->shell;

	for (size_t i = b->n_functions; i > 0; i--) {
		if (!mo_streq(b->functions[i - 1].name, c->words.items[at]))
			continue;
		struct block *t = push(b, BLOCK_CALL, blocks_follow(b));

		if (!t)
			return true;
		t->values = shell_take(&s->args);
		t->known = s->args_known;
		t->body = *p;
		s->args_known = true;
		for (size_t k = at + 1; k < c->words.n; k++)
			mo_strs_add(&s->args.items, &s->args.n, c->words.items[k]);
		*p = b->functions[i - 1].body;
		b->op = 0;
		return true;
	}
	return false;
}

static void end_group(struct blocks *b, const char **p)
{
	struct block *t = top(b);

	if (t && t->kind == BLOCK_CALL) {
		mo_strs_clear(&b->shell->args.items, &b->shell->args.n);
		b->shell->args = shell_take(&t->values);
		b->shell->args_known = t->known;
		*p = t->body;
	}
	if (t && (t->kind == BLOCK_CALL || t->kind == BLOCK_GROUP))
		blocks_drop(b);
	b->op = 0;
}

/* ---- one command ---- */

/* A word that only begins or ends something. */
static bool take_word(struct blocks *b, const char *word, const char *begin, const char **p)
{
	struct block *t = top_of(b, BLOCK_IF);

	if (mo_streq(word, "if")) {
		if ((t = push(b, BLOCK_IF, SHELL_RUN)))
			t->head = true;
		b->last = SHELL_TRUE;
	} else if (mo_streq(word, "elif") && t) {
		t->head = true;
		t->follow = t->taken ? SHELL_SKIP : SHELL_RUN;
		b->last = SHELL_TRUE;
		b->op = 0;
	} else if (mo_streq(word, "then") && t) {
		branch(b, t, b->last);
	} else if (mo_streq(word, "else") && t) {
		branch(b, t, SHELL_TRUE);
	} else if (mo_streq(word, "fi")) {
		if (t)
			blocks_drop(b);
		b->op = 0;
		b->last = SHELL_TRUE;
	} else if (mo_streq(word, "while") || mo_streq(word, "until")) {
		if ((t = push(b, BLOCK_LOOP, SHELL_RUN))) {
			t->head = true;
			t->taken = mo_streq(word, "until");
			t->body = begin;
		}
		b->last = SHELL_EITHER;
	} else if (mo_streq(word, "do")) {
		begin_body(b, begin);
	} else if (mo_streq(word, "done")) {
		end_loop(b, p);
	} else if (mo_streq(word, "{")) {
		push(b, BLOCK_GROUP, blocks_follow(b));
		b->op = 0;
	} else if (mo_streq(word, "}")) {
		end_group(b, p);
	} else {
		return mo_streq(word, "!") || mo_streq(word, "time");
	}
	return true;
}

size_t blocks_take(struct blocks *b, const struct shell_command *c, const char *begin,
		   const char **p)
{
	const struct shell_words *w = &c->words;
	size_t at = 0;

	for (; at < w->n; at++) {
		const char *word = w->items[at], *before = *p;

		if (mo_streq(word, "for") || mo_streq(word, "select"))
			return begin_for(b, c, at);
		if (mo_streq(word, "case"))
			return begin_case(b, c, at, begin, p);
		if (mo_streq(word, "function") && at + 1 < w->n) {
			const char *brace = strchr(begin, '{');

			*p = brace ? brace : *p;
			define(b, w->items[at + 1], p);
			return w->n;
		}
		if (!take_word(b, word, begin, p))
			break;
		if (*p != before)
			return w->n; /* it goes on elsewhere */
	}
	if (c->op == '(' && w->n == at + 1 && **p == ')') {
		define(b, w->items[at], p);
		return w->n;
	}
	if (c->op == SHELL_CASE_END && top_of(b, BLOCK_CASE))
		top(b)->head = true;
	return at;
}
