/* moectl exec: a command beside a running rank. What is asked travels from the controller through
 * the agent to moe-stepd, which starts it; what came of it travels back. Plain values. */
#pragma once
#include "lib/base/desc.h"

#define EXEC_WHAT "exec"          /* command.what of such a question */
#define EXEC_OUT_MAX (256 * 1024) /* of each stream; the rest is read and left out */
#define EXEC_DEADLINE_MS 60000
#define EXEC_DEADLINE_MAX_MS 600000
#define EXEC_AT_ONCE 4 /* of one job */
#define EXEC_WORDS_MAX 256
#define EXEC_BYTES_MAX 8192 /* of all words */

struct exec_ask {
	int64_t rank;
	char **argv;
	size_t n_argv;
	int64_t deadline_ms;
};
struct exec_result {
	char *error; /* why it did not run; NULL: it did */
	/* how it ended: one of them, the other MO_NONE */
	int64_t code, signal;
	bool late; /* killed at its deadline */
	char *out, *err;
	bool out_cut, err_cut; /* it wrote more than EXEC_OUT_MAX */
};
extern const struct mo_desc exec_ask_desc, exec_result_desc;
MO_DEFINE_DONE(exec_ask)
MO_DEFINE_DONE(exec_result)
/* Why the words are no command: a sentence that begins with the key; NULL: they are one. */
char *exec_words_problem(char *const *words, size_t n);
