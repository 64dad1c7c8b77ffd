/* A shell's text as words: quotes, continued lines, variables, arrays, ${X:-Y}, $((..)), what
 * dirname and pwd say. Nothing is run. What only a running shell knows stays as it is written,
 * between SHELL_UNKNOWN and SHELL_UNKNOWN_END, so that who takes the word can say so. Private to
 * lib/recipe; launch_script.c follows the commands. */
#pragma once
#include "lib/base/buf.h"
#include "lib/recipe/launch_line.h"

#define SHELL_NAME "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"
#define SHELL_UNKNOWN '\1'
#define SHELL_UNKNOWN_END '\2'
#define SHELL_WORDS_MAX 20000 /* of one command or array */

struct shell_words {
	char **items;
	size_t n;
};
static inline struct shell_words shell_take(struct shell_words *w)
{
	struct shell_words r = *w;

	*w = (struct shell_words){ 0 };
	return r;
}

struct shell_var {
	char *name;
	char **words;
	size_t n;
	bool exported;
};
/* Whether what is read happens: MAYBE hangs on a condition that nobody knows here. */
enum shell_follow { SHELL_RUN, SHELL_MAYBE, SHELL_SKIP };
struct shell {
	struct shell_var *vars;
	size_t n_vars;
	struct shell_words args; /* $1 .. */
	bool args_known;         /* false: a script that nobody called */
	size_t letter;           /* getopts is behind this one of a word */
	bool exports;            /* set -a: what is assigned goes to its programs */
	bool args_used;          /* "$@" of it stands in a word */
	char *dir, *script;      /* where it stands, $0; NULL = not known */
	enum shell_follow follow;
	struct shell_words maybe; /* variables that a MAYBE would have changed */
	char *here_name;          /* what read gives its body to; NULL = nobody */
	char *here_end;           /* a here-document that begins at the next line */
	size_t expanded;
	int depth; /* of ${A:-${B:-..}} */
};
/* What ended it: a character, or one of these. */
enum { SHELL_AND = 'A', SHELL_OR = 'O', SHELL_CASE_END = 'D' };
struct shell_command {
	struct shell_words words;
	char *output, *input; /* redirections as text; NULL = none */
	char *here;           /* the body of a here-document */
	bool arrays;          /* X=(..) was in it, which leaves no word */
	int op;
};
void shell_init(struct shell *s, const struct launch_world *world);
void shell_done(struct shell *s);
void shell_command_done(struct shell_command *c);
/* The command that begins at p; returns what stands behind its end. Arrays and ${X:=Y} of it are
 * set. */
const char *shell_read(struct shell *s, const char *p, struct shell_command *ret);
/* The body of a here-document goes to the variable that read names. */
void shell_give_here(struct shell *s, const char *body);
/* One word under way: text, and whether there is a word at all ("" is one). */
struct shell_word {
	struct shell *shell;
	struct shell_command *command;
	struct mo_buf b;
	bool any;
	bool nothing;   /* "$@" of no words: none comes of it */
	char quote;     /* that is open, 0 = none */
	char redirects; /* the word is the target of >, < or << (h) */
};
void shell_word_end(struct shell_word *u);
/* Words up to a ')' or the end, no operators among them. */
const char *shell_read_list(struct shell *s, const char *p, struct shell_command *ret);
