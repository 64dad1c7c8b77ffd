/* if, for, case and functions of a shell's text (launch_script.c). Private to lib/recipe. */
#pragma once
#include "lib/recipe/shell_test.h"

#define BLOCKS_MAX 64
#define FUNCTIONS_MAX 200

enum block_kind { BLOCK_IF, BLOCK_LOOP, BLOCK_CASE, BLOCK_GROUP, BLOCK_CALL };
struct block {
	enum block_kind kind;
	enum shell_follow follow;
	bool head;                 /* its condition, or a case before its next pattern */
	bool taken, maybe;         /* a branch before this one was, or may have been */
	char *word;                /* of case, or the variable of a loop; NULL = while */
	struct shell_words values; /* of a loop, or the words that a call hid */
	bool known;                /* a call hid words that were known */
	size_t at;
	const char *body; /* of a loop; where a call goes on */
};
struct function {
	char *name;
	const char *body;
};
struct blocks {
	struct shell *shell;
	struct block items[BLOCKS_MAX];
	size_t n, first; /* first: of the text that is read */
	struct function functions[FUNCTIONS_MAX];
	size_t n_functions;
	enum shell_truth last; /* of the command before */
	int op;                /* that stood behind it */
	size_t rounds;         /* of while loops, in all */
};
void blocks_done(struct blocks *b);
void blocks_drop(struct blocks *b); /* the last one */
/* Whether a command that stands here happens. */
enum shell_follow blocks_follow(const struct blocks *b);
/* Takes the words of a shell at the beginning of a command: if, then, do, fi .. `begin` is where
 * the command stands, *p what is behind it and what is read next. Returns how many words are
 * taken; all of them where nothing is left to do. */
size_t blocks_take(struct blocks *b, const struct shell_command *c, const char *begin,
		   const char **p);
bool blocks_asks(const struct blocks *b); /* a command here is a condition */
/* Reads the next pattern of a case, where one is due. True: it did. */
bool blocks_pattern(struct blocks *b, const char **p);
/* A function of that name is gone into. */
bool blocks_call(struct blocks *b, const struct shell_command *c, size_t at, const char **p);
