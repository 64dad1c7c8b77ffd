/* See exec.h. */
#include "lib/model/exec.h"
#include "lib/model/limits.h"

#include <string.h>

static const struct mo_field exec_ask_fields[] = {
	MO_D(exec_ask, rank, MO_INT, "number of the rank"),
	MO_D_LIST(exec_ask, argv, MO_STRS, "the command and its arguments", .max = EXEC_WORDS_MAX),
	MO_D(exec_ask, deadline_ms, MO_INT, "milliseconds until it is killed"),
};
const struct mo_desc exec_ask_desc = MO_DESC(exec_ask, exec_ask_fields);

/* A byte of output may become six of JSON. */
static const struct mo_field exec_result_fields[] = {
	MO_D(exec_result, error, MO_STR, "why it did not run; null: it did", .most = MO_TEXT_MAX),
	MO_D(exec_result, code, MO_INT, "its exit status; null: a signal ended it"),
	MO_D(exec_result, signal, MO_INT, "number of the signal that ended it", .omit = true),
	MO_D(exec_result, late, MO_BOOL, "it was killed at its deadline", .omit = true),
	MO_D(exec_result, out, MO_STR, "its standard output, made UTF-8", .max = 4 * EXEC_OUT_MAX,
	     .most = 4 * EXEC_OUT_MAX),
	MO_D(exec_result, err, MO_STR, "its standard error, made UTF-8", .max = 4 * EXEC_OUT_MAX,
	     .most = 4 * EXEC_OUT_MAX),
	MO_D(exec_result, out_cut, MO_BOOL, "it wrote more to its standard output than is kept",
	     .omit = true),
	MO_D(exec_result, err_cut, MO_BOOL, "it wrote more to its standard error than is kept",
	     .omit = true),
};
const struct mo_desc exec_result_desc = MO_DESC(exec_result, exec_result_fields);

char *exec_words_problem(char *const *words, size_t n)
{
	size_t bytes = 0;

	if (n == 0 || !words[0][0])
		return mo_strdup("command: name a program, such as [\"ps\", \"-ef\"]");
	for (size_t i = 0; i < n; i++)
		bytes += strlen(words[i]) + 1;
	if (n > EXEC_WORDS_MAX || bytes > EXEC_BYTES_MAX)
		return mo_printf("command: %zu words of %zu bytes are too many (%d, %d): put them "
				 "into a script that the node sees",
				 n, bytes, EXEC_WORDS_MAX, EXEC_BYTES_MAX);
	return NULL;
}
