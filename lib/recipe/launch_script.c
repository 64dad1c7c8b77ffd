/* The part of a shell that scripts of trainings are made of (launch_line.h): assignments,
 * arrays, export, cd, #SBATCH, quotes, continued lines, ${X}, ${X:-Y}, "${A[@]}". No condition
 * is followed and nothing is run: what hangs on such a thing keeps its text behind UNKNOWN, and
 * who takes the word says so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/recipe/launch_line.h"
#include "lib/base/buf.h"

#define UNKNOWN '\1' /* in front of a $ that nothing is known of */
#define WORDS_MAX 20000 /* of one command or array */
#define EXPANDED_MAX (16 << 20) /* bytes that variables become, in all: A=$A$A doubles */

struct var {
	char *name;
	char **words;
	size_t n;
};
struct shell {
	struct var *vars;
	size_t n_vars;
	char **exported;
	size_t n_exported;
	char *dir;
	char **sbatch;
	size_t n_sbatch;
	size_t expanded;
};
struct words {
	char **items;
	size_t n;
};

static void words_done(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->items[i]);
	free(w->items);
	*w = (struct words){ 0 };
}

static void shell_done(struct shell *s)
{
	for (size_t i = 0; i < s->n_vars; i++) {
		struct words w = { s->vars[i].words, s->vars[i].n };

		words_done(&w);
		free(s->vars[i].name);
	}
	words_done(&(struct words){ s->exported, s->n_exported });
	words_done(&(struct words){ s->sbatch, s->n_sbatch });
	free(s->vars);
	free(s->dir);
}

static size_t name_length(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");

	return n ? n + strspn(s + n,
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789")
		 : 0;
}

static struct var *var_of(struct shell *s, const char *name, size_t n)
{
	for (size_t i = 0; i < s->n_vars; i++)
		if (strlen(s->vars[i].name) == n && !strncmp(s->vars[i].name, name, n))
			return &s->vars[i];
	return NULL;
}

/* Takes the words. */
static void set_var(struct shell *s, const char *name, size_t n, struct words *w, bool more)
{
	struct var *v = var_of(s, name, n);

	if (!v) {
		v = MO_GROW(s->vars, s->n_vars);
		*v = (struct var){ .name = mo_strndup(name, n) };
	}
	if (!more) {
		words_done(&(struct words){ v->words, v->n });
		v->words = NULL;
		v->n = 0;
	}
	for (size_t i = 0; i < w->n && v->n < WORDS_MAX; i++)
		mo_strs_add(&v->words, &v->n, w->items[i]);
	words_done(w);
}

/* One word under way: text, and whether there is a word at all ("" is one). */
struct under_way {
	struct words *to;
	struct mo_buf b;
	bool any;
};

static void end_word(struct under_way *u)
{
	if (u->any && u->to->n < WORDS_MAX) {
		mo_buf_add(&u->b, "", 1);
		mo_strs_add(&u->to->items, &u->to->n, u->b.data);
	}
	mo_buf_done(&u->b);
	u->any = false;
}

static void put_value(struct under_way *u, const char *text, bool quoted)
{
	for (; *text; text++) {
		if (!quoted && strchr(" \t\n", *text)) {
			end_word(u);
			continue;
		}
		mo_buf_add(&u->b, text, 1);
		u->any = true;
	}
}

static void put_unknown(struct under_way *u, const char *from, const char *to)
{
	char mark = UNKNOWN;

	mo_buf_add(&u->b, &mark, 1);
	mo_buf_add(&u->b, from, (size_t)(to - from));
	u->any = true;
}

/* What stands behind a $ that begins `( .. )`; the end of it. */
static const char *skip_command(const char *p)
{
	int depth = 0;

	for (; *p; p++) {
		depth += *p == '(';
		if (*p == ')' && --depth == 0)
			return p + 1;
	}
	return p;
}

/* p: at the $. Returns what is behind it. */
static const char *expand(struct shell *s, struct under_way *u, const char *p, bool quoted)
{
	const char *name = p + 1, *end, *word = NULL;
	struct var *v;
	size_t n, word_n = 0;

	if (*name == '(' || *name == '`') {
		end = skip_command(name);
		put_unknown(u, p, end);
		return end;
	}
	if (*name == '@' || *name == '*' || (*name == '{' && name[1] == '@'))
		return *name == '{' ? name + 2 + (name[2] == '}')
				    : name + 1; /* of a script that got no words */
	if (*name && strchr("0123456789#?$!-", *name)) {
		put_unknown(u, p, name + 1);
		return name + 1;
	}
	if (*name != '{') {
		n = name_length(name);
		end = name + n;
	} else {
		name++;
		n = name_length(name);
		end = name + strcspn(name, "}");
		if (mo_starts_with(name + n, ":-") || mo_starts_with(name + n, ":=")) {
			word = name + n + 2;
			word_n = (size_t)(end - word);
		} else if (name[n] && name + n != end && !mo_starts_with(name + n, "[@]") &&
			   !mo_starts_with(name + n, "[*]")) {
			n = 0;
		}
		end += *end == '}';
	}
	v = n ? var_of(s, name, n) : NULL;
	if (n == 0 && *(p + 1) != '{') {
		mo_buf_str(&u->b, "$");
		u->any = true;
	} else if (!v && word) {
		bool in_quotes =
			word_n > 1 && (*word == '"' || *word == '\'') && word[word_n - 1] == *word;
		_cleanup_(mo_freep) char *text =
			mo_strndup(word + in_quotes, word_n - 2 * in_quotes);

		put_value(u, text, quoted);
		u->any |= quoted;
	} else if (!v) {
		put_unknown(u, p, end);
	}
	for (size_t i = 0; v && i < v->n; i++) {
		s->expanded += strlen(v->words[i]) + 1;
		if (s->expanded > EXPANDED_MAX)
			break;
		if (i)
			end_word(u);
		put_value(u, v->words[i], quoted);
		u->any |= quoted;
	}
	return end;
}

/* Words of one command from p on; returns where it ends: behind its ; | & newline, at a ) or at
 * the end. */
static const char *read_words(struct shell *s, const char *p, struct words *ret, bool list)
{
	struct under_way u = { .to = ret };
	char quote = 0;

	for (; *p; p++) {
		if (*p == '\\' && p[1] == '\n' && quote != '\'') {
			p++;
		} else if (*p == '\\' && p[1] == '\r' && p[2] == '\n' && quote != '\'') {
			p += 2;
		} else if (quote ? *p == quote : *p == '\'' || *p == '"') {
			quote = quote ? 0 : *p;
			u.any = true;
		} else if (*p == '\\' && p[1] && quote != '\'' &&
			   (!quote || strchr("\"\\$`", p[1]))) {
			mo_buf_add(&u.b, ++p, 1);
			u.any = true;
		} else if (*p == '$' && quote != '\'') {
			p = expand(s, &u, p, quote == '"') - 1;
		} else if (*p == '`' && quote != '\'') {
			const char *end = strchr(p + 1, '`');

			end = end ? end + 1 : p + strlen(p);
			put_unknown(&u, p, end);
			p = end - 1;
		} else if (quote) {
			mo_buf_add(&u.b, p, 1);
		} else if (*p == '#' && !u.any) {
			p += strcspn(p, "\n") - 1;
			if (!p[1])
				break;
		} else if (*p == '(' && !list && u.b.len && u.b.data[u.b.len - 1] == '=') {
			/* NAME=( .. ): its words follow as if they were the command's */
			struct words inner = { 0 };
			size_t n = u.b.len;
			_cleanup_(mo_freep) char *head = mo_strndup(u.b.data, n);
			bool more = n > 1 && head[n - 2] == '+';

			p = read_words(s, p + 1, &inner, true);
			set_var(s, head, name_length(head), &inner, more);
			mo_buf_done(&u.b);
			u.any = false;
			if (*p != ')')
				break;
		} else if (*p == ')' && list) {
			break;
		} else if (strchr(list ? " \t\r\n" : " \t\r", *p)) {
			end_word(&u);
		} else if (strchr(list ? "" : "\n;&|()<>", *p)) {
			break;
		} else {
			mo_buf_add(&u.b, p, 1);
			u.any = true;
		}
	}
	end_word(&u);
	if (quote) /* never closed: whatever it is, it is no command */
		words_done(ret);
	return p;
}

static void assign(struct shell *s, const char *word)
{
	size_t n = name_length(word);
	struct words w = { 0 };

	mo_strs_add(&w.items, &w.n, word + n + 1);
	set_var(s, word, n, &w, false);
}

static bool is_assignment(const char *word)
{
	size_t n = name_length(word);

	return n && word[n] == '=';
}

/* Commands that change what later ones mean. True: it is one. */
static bool take_builtin(struct shell *s, struct words *w)
{
	size_t at = 0;
	bool exports = mo_streq(w->items[0], "export") || mo_streq(w->items[0], "declare") ||
		       mo_streq(w->items[0], "local") || mo_streq(w->items[0], "readonly");

	if (mo_streq(w->items[0], "cd") && w->n > 1) {
		mo_str_set(&s->dir, w->items[1]);
		return true;
	}
	for (at = exports; at < w->n && is_assignment(w->items[at]); at++) {
		if (!exports && w->items[w->n - 1] && !is_assignment(w->items[w->n - 1]))
			return false; /* X=1 program */
		assign(s, w->items[at]);
		if (mo_streq(w->items[0], "export")) {
			_cleanup_(mo_freep) char *name =
				mo_strndup(w->items[at], name_length(w->items[at]));

			mo_strs_add(&s->exported, &s->n_exported, name);
		}
	}
	for (; exports && at < w->n; at++)
		if (mo_streq(w->items[0], "export") && w->items[at][0] != '-')
			mo_strs_add(&s->exported, &s->n_exported, w->items[at]);
	return exports || at == w->n;
}

/* Words of a shell before the command of a line. */
static bool skips(const char *word)
{
	static const char *const openers[] = { "then",  "do", "else", "if", "while",
					       "until", "!",  "{",    "set" };

	for (size_t i = 0; i < ELEMENTSOF(openers); i++)
		if (mo_streq(word, openers[i]))
			return true;
	return false;
}

static bool take_unknown(char *text)
{
	bool any = false;
	char *to = text;

	for (const char *p = text; *p; p++)
		if (*p == UNKNOWN)
			any = true;
		else
			*to++ = *p;
	*to = '\0';
	return any;
}

static void lose_unknown(struct launch_line *l, char *text)
{
	if (!text || !take_unknown(text))
		return;
	_cleanup_(mo_freep) char *why = mo_printf(
		"%s: only the shell that runs the script knows what this is: write it in yourself",
		text);

	mo_strs_add(&l->lost, &l->n_lost, why);
}

static void add_setting(const struct shell *s, struct launch_line *l)
{
	if (!l->dir && s->dir)
		l->dir = mo_strdup(s->dir);
	for (size_t i = 0; i < l->n_program; i++)
		lose_unknown(l, l->program[i]);
	for (size_t i = 0; i < l->n_env; i++)
		lose_unknown(l, l->env[i].value);
	lose_unknown(l, l->dir);
	for (size_t i = 0; i < l->n_lost; i++)
		take_unknown(l->lost[i]);
}

/* What was exported and the words of #SBATCH lines stand before those of the line, which win. */
static int try(struct shell *s, const struct words *w, struct launch_line *ret,
	       struct mo_error *err)
{
	struct words all = { 0 };
	int r;

	for (size_t i = 0; i < s->n_exported; i++) {
		const struct var *v = var_of(s, s->exported[i], strlen(s->exported[i]));
		_cleanup_(mo_freep) char *word =
			v && v->n == 1 ? mo_printf("%s=%s", v->name, v->words[0]) : NULL;

		if (word)
			mo_strs_add(&all.items, &all.n, word);
	}
	if (s->n_sbatch)
		mo_strs_add(&all.items, &all.n, "sbatch");
	for (size_t i = 0; i < s->n_sbatch; i++)
		mo_strs_add(&all.items, &all.n, s->sbatch[i]);
	for (size_t i = 0; i < w->n; i++)
		mo_strs_add(&all.items, &all.n, w->items[i]);
	r = launch_line_words(all.items, all.n, ret, err);
	words_done(&all);
	return r;
}

static void read_sbatch(struct shell *s, const char *text)
{
	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		if (!mo_starts_with(p, "#SBATCH"))
			continue;
		size_t n = strcspn(p, "\n");
		_cleanup_(mo_freep) char *line =
			mo_strndup(p + strlen("#SBATCH"), n - strlen("#SBATCH"));
		struct words w = { 0 };

		read_words(s, line, &w, false);
		for (size_t i = 0; i < w.n; i++)
			mo_strs_add(&s->sbatch, &s->n_sbatch, w.items[i]);
		words_done(&w);
	}
	for (size_t i = 0; i < s->n_sbatch; i++) {
		static const char *const names[] = { "SLURM_NNODES", "SLURM_JOB_NUM_NODES" };
		const char *word = s->sbatch[i], *eq = strchr(word, '=');
		const char *value = eq ? eq + 1 : i + 1 < s->n_sbatch ? s->sbatch[i + 1] : NULL;
		bool nodes = mo_streq(word, "-N") || mo_streq(word, "--nodes") ||
			     mo_starts_with(word, "--nodes=");

		for (size_t k = 0; nodes && value && k < ELEMENTSOF(names); k++) {
			struct words one = { 0 };

			mo_strs_add(&one.items, &one.n, value);
			set_var(s, names[k], strlen(names[k]), &one, false);
		}
	}
}

int launch_line_script(const char *text, struct launch_line *ret, struct mo_error *err)
{
	_cleanup_(shell_done) struct shell s = { 0 };
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	int r = -EINVAL;

	read_sbatch(&s, text);
	for (const char *p = text; *p && r < 0;) {
		struct words w = { 0 };
		const char *end = read_words(&s, p, &w, false);
		size_t at = 0;

		while (at < w.n && skips(w.items[at]))
			at++;
		struct words rest = { w.items ? w.items + at : NULL, w.n - at };
		if (rest.n && !take_builtin(&s, &rest)) {
			mo_error_done(&why);
			why = (struct mo_error){ 0 };
			r = try(&s, &rest, ret, &why);
		}
		words_done(&w);
		p = end + (*end != '\0');
	}
	if (r < 0)
		return mo_error_set(err, -EINVAL,
				    "no line of it starts a training: expected torchrun, "
				    "primus-cli, deepspeed, python, or srun before one of them");
	add_setting(&s, ret);
	return 0;
}
