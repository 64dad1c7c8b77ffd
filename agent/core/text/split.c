/* See split.h. */
#include "agent/core/text/split.h"

#include <string.h>

#include "lib/model/limits.h"

static void take_line(const char *line, size_t n, split_fn fn, void *arg)
{
	if (n > 0 && line[n - 1] == '\r')
		n--;
	fn(arg, SPLIT_LINE, line, n);
}

static void take_bar(struct split *s, struct mo_buf *whole, split_fn fn, void *arg)
{
	fn(arg, SPLIT_BAR, s->line.data, s->line.len - 1);
	mo_buf_add(whole, s->line.data, s->line.len);
	mo_buf_reset(&s->line);
}

/* Moves what ends in such a carriage return; the bytes taken. One that stands last may be the
 * first half of a line's end: the next bytes tell. */
static size_t take_bars(struct split *s, const char *data, size_t n, struct mo_buf *whole,
			split_fn fn, void *arg)
{
	size_t taken = 0;

	if (s->line.len > 0 && s->line.data[s->line.len - 1] == '\r' && data[0] != '\n')
		take_bar(s, whole, fn, arg);
	for (const char *cr; taken < n && (cr = memchr(data + taken, '\r', n - taken)) &&
			     cr + 1 < data + n && cr[1] != '\n';) {
		size_t len = (size_t)(cr + 1 - (data + taken));

		if (memchr(data + taken, '\n', len) || s->line.len + len > MO_LINE_MAX)
			break;
		mo_buf_add(&s->line, data + taken, len);
		take_bar(s, whole, fn, arg);
		taken += len;
	}
	return taken;
}

/* A piece that is no whole line by itself: len bytes, used with the newline if it has one. */
static void take_piece(struct split *s, const char *data, size_t len, size_t used,
		       struct mo_buf *whole, split_fn fn, void *arg)
{
	size_t room = MO_LINE_MAX - s->line.len, taken = MO_MIN(len, room);
	bool ends = used > len;

	mo_buf_add(&s->line, data, taken);
	if (!ends && len < room)
		return;
	take_line(s->line.data, s->line.len, fn, arg);
	mo_buf_add(whole, s->line.data, s->line.len);
	mo_buf_add(whole, data + taken, used - taken);
	mo_buf_reset(&s->line);
	s->skipping = !ends;
	s->too_long += !ends || len > room;
}

void split_bytes(struct split *s, const char *data, size_t n, struct mo_buf *whole, split_fn fn,
		 void *arg)
{
	while (n > 0) {
		size_t bars = s->skipping ? 0 : take_bars(s, data, n, whole, fn, arg);

		data += bars;
		n -= bars;
		if (n == 0)
			return;
		const char *nl = memchr(data, '\n', n);
		size_t len = nl ? (size_t)(nl - data) : n, used = nl ? len + 1 : len;
		if (s->skipping) {
			s->skipping = nl == NULL;
			mo_buf_add(whole, data, used);
		} else if (nl && s->line.len == 0 && len <= MO_LINE_MAX) {
			take_line(data, len, fn, arg);
			mo_buf_add(whole, data, used);
		} else
			take_piece(s, data, len, used, whole, fn, arg);
		data += used;
		n -= used;
	}
}

void split_end(struct split *s, struct mo_buf *whole, split_fn fn, void *arg)
{
	if (s->line.len > 0) {
		take_line(s->line.data, s->line.len, fn, arg);
		mo_buf_add(whole, s->line.data, s->line.len);
		mo_buf_add(whole, "\n", 1);
	}
	mo_buf_done(&s->line);
}
