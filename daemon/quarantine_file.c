/* See quarantine_file.h. */
#include "daemon/quarantine_file.h"

#include <string.h>

void quarantine_lines(struct mo_buf *b, const char *word, const char *text)
{
	for (const char *end; *text; text = *end ? end + 1 : end) {
		end = text + strcspn(text, "\n");
		mo_buf_printf(b, "%s %.*s\n", word, (int)(end - text), text);
	}
}

int quarantine_each(const char *text,
		    int (*fn)(void *arg, const char *word, const char *text, struct mo_error *err),
		    void *arg, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf word = { 0 }, all = { 0 };
	int r = 0;

	for (const char *line = text, *end; r >= 0 && *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		size_t n = strcspn(line, " \n");
		if (*line == '#' || n == 0)
			continue;
		bool same = word.len == n && memcmp(word.data, line, n) == 0;
		if (!same && word.len)
			r = fn(arg, word.data, all.data, err);
		if (!same) {
			mo_buf_reset(&word);
			mo_buf_add(&word, line, n);
			mo_buf_reset(&all);
			mo_buf_str(&all, "");
		}
		if (all.len)
			mo_buf_str(&all, "\n");
		if (line[n] == ' ')
			mo_buf_add(&all, line + n + 1, (size_t)(end - line) - n - 1);
	}
	return r >= 0 && word.len ? fn(arg, word.data, all.data, err) : r;
}

bool quarantine_is_cut(const struct mo_buf *text)
{
	size_t n = text->len, end = strlen(QUARANTINE_END);

	if (n == 0 || !strstr(text->data, QUARANTINE_ENDS_SO))
		return false;
	if (text->data[n - 1] != '\n')
		end--;
	return n < end || memcmp(text->data + n - end, QUARANTINE_END, end) != 0;
}
