/* See shell.h. */
#include "lib/recipe/shell.h"

#include <stdlib.h>
#include <string.h>

#include "lib/recipe/shell_expand.h"
#include "lib/recipe/shell_vars.h"

void shell_init(struct shell *s, const struct launch_world *world)
{
	*s = (struct shell){ 0 };
	if (!world)
		return;
	s->dir = mo_strdup(world->dir);
	s->script = mo_strdup(world->script);
	for (size_t i = 0; i < world->n_known; i++)
		shell_set_text(s, world->known[i].key, strlen(world->known[i].key),
			       world->known[i].value, false);
}

void shell_done(struct shell *s)
{
	for (size_t i = 0; i < s->n_vars; i++) {
		mo_strs_clear(&s->vars[i].words, &s->vars[i].n);
		free(s->vars[i].name);
	}
	mo_strs_clear(&s->args.items, &s->args.n);
	mo_strs_clear(&s->maybe.items, &s->maybe.n);
	free(s->vars);
	free(s->dir);
	free(s->script);
	free(s->here_end);
	free(s->here_name);
}

void shell_command_done(struct shell_command *c)
{
	mo_strs_clear(&c->words.items, &c->words.n);
	free(c->output);
	free(c->input);
	free(c->here);
	*c = (struct shell_command){ 0 };
}

/* ---- variables ---- */

/* ---- words ---- */

void shell_word_end(struct shell_word *u)
{
	struct shell_command *c = u->command;
	char **where = u->redirects == '<' ? &c->input : &c->output;

	bool none = !u->any || (u->nothing && !u->b.len);

	u->nothing = false;
	if (none) {
		mo_buf_done(&u->b);
		u->any = false;
		return;
	}
	mo_buf_add(&u->b, "", 1);
	if (u->redirects == 'h') {
		mo_str_set(&u->shell->here_end, u->b.data);
	} else if (u->redirects) {
		char *text = mo_printf("%s%s%c %s", *where ? *where : "", *where ? " " : "",
				       u->redirects, u->b.data);
		free(*where);
		*where = text;
	} else if (c->words.n < SHELL_WORDS_MAX) {
		mo_strs_add(&c->words.items, &c->words.n, u->b.data);
	}
	mo_buf_done(&u->b);
	u->any = false;
	u->redirects = 0;
}

/* A redirection at p, the word before it being the number of what is redirected. Returns what is
 * behind it; its target is the word that follows. */
static const char *read_redirection(struct shell_word *u, const char *p)
{
	bool number = u->any && u->b.len && strspn(u->b.data, "0123456789") == u->b.len;
	char kind = *p == '<' ? '<' : '>';

	if (number) {
		mo_buf_done(&u->b);
		u->any = false;
	}
	shell_word_end(u);
	if (mo_starts_with(p, "<<<")) {
		u->redirects = '<';
		return p + 3;
	}
	if (mo_starts_with(p, "<<")) {
		u->redirects = 'h';
		return p + 2 + (p[2] == '-');
	}
	p += *p == '&';
	p += strspn(p, "<>|");
	if (*p == '&') { /* 2>&1 */
		p++;
		return p + strspn(p, "0123456789-");
	}
	u->redirects = kind;
	return p;
}

/* NAME=( .. ): its words follow as if they were the command's. */
static const char *read_array(struct shell_word *u, const char *p)
{
	_cleanup_(mo_freep) char *head = mo_strndup(u->b.data, u->b.len);
	_cleanup_(shell_command_done) struct shell_command inner = { 0 };
	size_t n = shell_assigned(head);
	bool more = head[n] == '+';

	p = shell_read_list(u->shell, p + 1, &inner);
	shell_set(u->shell, head, n, &inner.words, more);
	mo_buf_done(&u->b);
	u->any = false;
	u->command->arrays = true;
	return p + (*p == ')');
}

/* One step of a word: quotes, backslashes, expansions. NULL: p is none of them. */
static const char *read_quoted(struct shell_word *u, const char *p)
{
	if (*p == '\\' && u->quote != '\'' && (p[1] == '\n' || (p[1] == '\r' && p[2] == '\n')))
		return p + 2 + (p[1] == '\r');
	if (u->quote ? *p == u->quote : *p == '\'' || *p == '"') {
		u->quote = u->quote ? 0 : *p;
		u->any = true;
		return p + 1;
	}
	if (*p == '\\' && p[1] && u->quote != '\'' && (!u->quote || strchr("\"\\$`", p[1]))) {
		mo_buf_add(&u->b, p + 1, 1);
		u->any = true;
		return p + 2;
	}
	if ((*p == '$' || *p == '`') && u->quote != '\'')
		return shell_expand(u, p);
	if (!u->quote)
		return NULL;
	mo_buf_add(&u->b, p, 1);
	return p + 1;
}

/* [[ a && b ]]: operators are words in it. */
static bool in_test(const struct shell_word *u)
{
	const struct shell_words *w = &u->command->words;
	bool open = false;

	for (size_t i = 0; i < w->n; i++)
		open = open ? !mo_streq(w->items[i], "]]") : mo_streq(w->items[i], "[[");
	return open;
}

static const char *read_operator(struct shell_word *u, const char *p)
{
	size_t n = p[1] == *p && strchr("&|", *p) ? 2 : 1;

	shell_word_end(u);
	mo_buf_add(&u->b, p, n);
	u->any = true;
	shell_word_end(u);
	return p + n;
}

/* The body of a here-document whose first line p is at. */
static const char *read_here(struct shell *s, const char *p, char **ret)
{
	_cleanup_(mo_freep) char *end = TAKE_PTR(s->here_end);
	const char *from = p;

	for (; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t tabs = strspn(p, "\t"), n = strcspn(p + tabs, "\r\n");

		if (n == strlen(end) && !strncmp(p + tabs, end, n))
			break;
	}
	free(*ret);
	*ret = mo_strndup(from, (size_t)(p - from));
	p += strcspn(p, "\n");
	return p + (*p == '\n');
}

void shell_give_here(struct shell *s, const char *body)
{
	_cleanup_(mo_freep) char *name = TAKE_PTR(s->here_name), *text = NULL;
	size_t from = body ? strspn(body, " \t\n") : 0, n = body ? strlen(body) : 0;

	while (n > from && strchr(" \t\n", body[n - 1]))
		n--;
	if (!name || strpbrk(body, "$`\\")) /* what a shell replaces in it */
		return;
	enum shell_follow follow = s->follow;

	s->follow = SHELL_RUN; /* of read, whatever stands behind it: `read .. || true` */
	text = mo_strndup(body + from, n - from);
	shell_set_text(s, name, strlen(name), text, false);
	s->follow = follow;
}

static const char *end_of_command(struct shell_word *u, const char *p)
{
	struct shell_command *c = u->command;

	if (mo_starts_with(p, ";;")) {
		c->op = SHELL_CASE_END;
		return p + 2 + (p[2] == '&');
	}
	if (mo_starts_with(p, "&&") || mo_starts_with(p, "||")) {
		c->op = *p == '&' ? SHELL_AND : SHELL_OR;
		return p + 2;
	}
	c->op = *p;
	p += *p != '\0';
	if (c->op != '\n' || !u->shell->here_end)
		return p;
	p = read_here(u->shell, p, &c->here);
	shell_give_here(u->shell, c->here);
	return p;
}

/* (( .. )) as two words. */
static const char *read_sum(struct shell_word *u, const char *p, const char *end)
{
	mo_buf_str(&u->b, "((");
	u->any = true;
	shell_word_end(u);
	mo_buf_add(&u->b, p + 2, (size_t)(end - p) - 2);
	u->any = true;
	shell_word_end(u);
	return end + 2;
}

/* then, do: a command begins behind it, which is read when it is known whether it happens. */
static bool opens(const struct shell_command *c)
{
	static const char *const words[] = { "if", "then", "elif",  "else",
					     "do", "{",    "while", "until" };

	for (size_t i = 0; i < ELEMENTSOF(words) && c->words.n == 1 && !c->arrays; i++)
		if (mo_streq(c->words.items[0], words[i]))
			return true;
	return false;
}

static const char *read_words(struct shell_word *u, const char *p, bool list)
{
	const char *next;

	while (*p) {
		if (!list && !u->any && !u->command->words.n && mo_starts_with(p, "((") &&
		    (next = strstr(p, "))"))) {
			p = read_sum(u, p, next);
		} else if ((next = read_quoted(u, p))) {
			p = next;
		} else if (*p == '#' && !u->any) {
			p += strcspn(p, "\n");
		} else if (*p == '~' && !u->any && (!p[1] || strchr("/ \t\n;", p[1]))) {
			shell_expand_home(u);
			p++;
		} else if (*p == '(' && !list && u->b.len && u->b.data[u->b.len - 1] == '=' &&
			   shell_assigned(u->b.data)) {
			p = read_array(u, p);
		} else if (list && *p == ')') {
			break;
		} else if (strchr(list ? " \t\r\n" : " \t\r", *p)) {
			shell_word_end(u);
			p++;
			if (!list && opens(u->command))
				return p;
		} else if (!list && strchr("&|()<>", *p) && in_test(u)) {
			p = read_operator(u, p);
		} else if (!list && (*p == '<' || *p == '>' || mo_starts_with(p, "&>")) &&
			   p[1] != '(') {
			p = read_redirection(u, p);
		} else if (!list && strchr("\n;&|()<>", *p)) {
			break;
		} else {
			mo_buf_add(&u->b, p++, 1);
			u->any = true;
		}
	}
	shell_word_end(u);
	if (u->quote) /* never closed: whatever it is, it is no command */
		mo_strs_clear(&u->command->words.items, &u->command->words.n);
	return p;
}

const char *shell_read_list(struct shell *s, const char *p, struct shell_command *ret)
{
	struct shell_word u = { .shell = s, .command = ret };

	return read_words(&u, p, true);
}

const char *shell_read(struct shell *s, const char *p, struct shell_command *ret)
{
	struct shell_word u = { .shell = s, .command = ret };

	*ret = (struct shell_command){ 0 };
	p = read_words(&u, p, false);
	if (opens(ret) && *p != '\n') {
		ret->op = ';';
		return p;
	}
	return end_of_command(&u, p);
}
