/* See http_answer.h. RFC 9112: interim answers (1xx) are passed over, a chunked body beats a
 * length. */
#include "lib/loop/http_answer.h"
#include <errno.h>
#include <string.h>
#include <strings.h>
#include "lib/base/assert.h"
#include "lib/base/parse.h"

#define CHUNK_LINE_MAX 1024

static bool header_is(const char *line, size_t n, const char *name, const char **ret_value)
{
	size_t length = strlen(name);

	if (n <= length || strncasecmp(line, name, length) != 0 || line[length] != ':')
		return false;
	*ret_value = line + length + 1 + strspn(line + length + 1, " \t");
	return true;
}

static int take_header(struct http_answer *a, const char *line, size_t n, bool *chunked)
{
	const char *value = NULL;
	int64_t length = 0;

	if (header_is(line, n, "Content-Length", &value)) {
		if (mo_parse_i64(value, 0, INT64_MAX, &length) < 0)
			return -EPROTO;
		a->left = (uint64_t)length;
		a->part = ANSWER_LENGTH;
	} else if (header_is(line, n, "Transfer-Encoding", &value)) {
		if (strcasecmp(value, "chunked") != 0)
			return -EPROTO;
		*chunked = true;
	}
	return 0;
}

/* The head without its empty line; cut at each end of line while it is read. */
static int take_head(struct http_answer *a, char *head)
{
	int64_t status = 0;
	bool chunked = false;
	char *rest = head, *line = strsep(&rest, "\n");

	if (!mo_starts_with(line, "HTTP/1.") || strlen(line) < 12 || line[8] != ' ')
		return -EPROTO;
	_cleanup_(mo_freep) char *digits = mo_strndup(line + 9, 3);
	if (mo_parse_i64(digits, 100, 999, &status) < 0)
		return -EPROTO;
	a->part = ANSWER_UNTIL_CLOSE;
	while (rest && (line = strsep(&rest, "\n"))) {
		line[strcspn(line, "\r")] = 0;
		int r = take_header(a, line, strlen(line), &chunked);
		if (r < 0)
			return r;
	}
	if (status < 200) {
		a->part = ANSWER_HEAD;
		return 0;
	}
	a->status = (int)status;
	if (chunked)
		a->part = ANSWER_CHUNK_SIZE;
	if (a->head_only || status == 204 || status == 304 ||
	    (a->part == ANSWER_LENGTH && a->left == 0))
		a->part = ANSWER_OVER;
	return 0;
}

static int take_chunk_size(struct http_answer *a, const char *line)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t size = 0;
	size_t n = 0;

	for (const char *d; line[n] && (d = strchr(digits, line[n] | 0x20)); n++) {
		if (size >> 56)
			return -EPROTO;
		size = size * 16 + (uint64_t)(d - digits);
	}
	if (n == 0 || !strchr(" \t;\r", line[n]))
		return -EPROTO;
	a->left = size;
	a->part = size ? ANSWER_CHUNK : ANSWER_TRAILER;
	return 0;
}

/* One whole line without its newline. */
static int take_line(struct http_answer *a, char *line)
{
	bool empty = line[strspn(line, "\r")] == 0;

	switch (a->part) {
	case ANSWER_CHUNK_SIZE: return take_chunk_size(a, line);
	case ANSWER_CHUNK_END: a->part = ANSWER_CHUNK_SIZE; return empty ? 0 : -EPROTO;
	default: a->part = empty ? ANSWER_OVER : ANSWER_TRAILER; return 0;
	}
}

/* Up to the end of the head, or of a line; *n is what was used. */
static int feed_text(struct http_answer *a, const char *data, size_t *n)
{
	bool head = a->part == ANSWER_HEAD;

	for (size_t i = 0; i < *n; i++) {
		if (data[i] == 0 || a->line.len >= (head ? HTTP_HEAD_MAX : CHUNK_LINE_MAX))
			return -EPROTO;
		mo_buf_add(&a->line, data + i, 1);
		if (data[i] != '\n')
			continue;
		size_t end = a->line.len - 1;
		if (end && a->line.data[end - 1] == '\r')
			end--;
		if (head && (end == 0 || a->line.data[end - 1] != '\n'))
			continue;
		a->line.data[end] = 0;
		int r = head ? take_head(a, a->line.data) : take_line(a, a->line.data);
		mo_buf_reset(&a->line);
		*n = i + 1;
		return r;
	}
	return 0;
}

static int feed_body(struct http_answer *a, const char *data, size_t *n,
		     int (*fn)(void *arg, const char *data, size_t n), void *arg)
{
	mo_assert(a->part == ANSWER_LENGTH || a->part == ANSWER_CHUNK ||
		  a->part == ANSWER_UNTIL_CLOSE);
	if (a->part != ANSWER_UNTIL_CLOSE)
		*n = (size_t)MO_MIN((uint64_t)*n, a->left);
	int r = fn(arg, data, *n);
	if (a->part == ANSWER_UNTIL_CLOSE)
		return r;
	a->left -= *n;
	if (a->left == 0)
		a->part = a->part == ANSWER_CHUNK ? ANSWER_CHUNK_END : ANSWER_OVER;
	return r;
}

int http_answer_feed(struct http_answer *a, const char *data, size_t n,
		     int (*fn)(void *arg, const char *data, size_t n), void *arg)
{
	mo_assert(fn && (data || n == 0));
	while (n > 0 && a->part != ANSWER_OVER) {
		size_t used = n;
		bool body = a->part == ANSWER_LENGTH || a->part == ANSWER_CHUNK ||
			    a->part == ANSWER_UNTIL_CLOSE;
		int r = body ? feed_body(a, data, &used, fn, arg) : feed_text(a, data, &used);
		if (r)
			return r;
		data += used;
		n -= used;
	}
	return 0;
}

bool http_answer_whole(const struct http_answer *a)
{
	return a->part == ANSWER_OVER || a->part == ANSWER_UNTIL_CLOSE;
}

void http_answer_done(struct http_answer *a)
{
	mo_buf_done(&a->line);
}
