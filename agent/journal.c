/* See journal.h. */
#include "agent/journal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define READ_BYTES (64 * 1024)
#define NOTE_LINE_MAX (1024 * 1024) /* a longer line is no note: skipped */

void journal_init(struct journal *j, int dir_fd)
{
	*j = (struct journal){ .dir_fd = dir_fd, .fd = -1 };
}

void journal_done(struct journal *j)
{
	free(j->segments);
	mo_buf_done(&j->partial);
	j->fd = mo_close(j->fd);
	*j = (struct journal){ .dir_fd = -1, .fd = -1 };
}

static void segment_name(char name[static 48], int64_t first)
{
	snprintf(name, 48, "notes.%lld", (long long)first);
}

/* The smallest first number above `after`, or MO_NONE. */
static int64_t next_segment(struct journal *j, int64_t after)
{
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(j->dir_fd, ".", 0);
	int64_t best = MO_NONE;
	for (const char *name; (name = mo_dir_next(d));) {
		int64_t first;
		if (mo_starts_with(name, "notes.") &&
		    mo_parse_i64(name + 6, 1, INT64_MAX, &first) == 0 && first > after &&
		    (best == MO_NONE || first < best))
			best = first;
	}
	return best;
}

static int open_next(struct journal *j)
{
	int64_t first = next_segment(j, j->n_segments ? j->segments[j->n_segments - 1] : 0);
	char name[48];
	if (first == MO_NONE)
		return 0;
	segment_name(name, first);
	int fd = mo_open_at(j->dir_fd, name, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0)
		return -errno;
	mo_close(j->fd);
	j->fd = fd;
	j->offset = 0;
	mo_buf_reset(&j->partial);
	mo_ints_add(&j->segments, &j->n_segments, first);
	return 1;
}

static int take_lines(struct journal *j, void (*fn)(void *arg, struct note *note), void *arg)
{
	int bad = 0;
	size_t at = 0;
	for (char *nl; at < j->partial.len &&
		       (nl = memchr(j->partial.data + at, '\n', j->partial.len - at));) {
		struct note *n = mo_desc_new(&note_desc);
		size_t len = (size_t)(nl - j->partial.data) - at;
		if (wire_decode(&note_desc, j->partial.data + at, len, false, n, NULL) < 0 ||
		    n->n == MO_NONE || n->n <= j->last) {
			mo_desc_free(&note_desc, n);
			bad++;
		} else {
			j->last = n->n;
			fn(arg, n);
		}
		at += len + 1;
	}
	mo_buf_consume(&j->partial, at);
	if (j->partial.len > NOTE_LINE_MAX)
		mo_buf_reset(&j->partial);
	return bad;
}

int journal_read(struct journal *j, void (*fn)(void *arg, struct note *note), void *arg)
{
	int bad = 0;
	for (;;) {
		if (j->fd < 0) {
			int r = open_next(j);
			if (r <= 0)
				return r < 0 ? r : bad;
		}
		char chunk[READ_BYTES];
		ssize_t n = mo_read_at(j->fd, chunk, sizeof(chunk), j->offset);
		if (n < 0)
			return -errno;
		if (n > 0) {
			j->offset += n;
			mo_buf_add(&j->partial, chunk, (size_t)n);
			bad += take_lines(j, fn, arg);
			continue;
		}
		int r = open_next(j);
		if (r <= 0)
			return r < 0 ? r : bad;
	}
}

int journal_append(struct journal *j, const struct note *n)
{
	_cleanup_(mo_buf_done) struct mo_buf line = { 0 };
	int64_t first = j->n_segments ? j->segments[j->n_segments - 1] : n->n;
	char name[48];
	segment_name(name, first);
	_cleanup_(mo_closep) int fd =
		mo_open_at(j->dir_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
	off_t end = j->n_segments ? j->offset - (int64_t)j->partial.len : 0;
	if (fd < 0 || mo_truncate(fd, end) < 0)
		return -errno;
	wire_encode(&note_desc, n, &line);
	mo_buf_add(&line, "\n", 1);
	ssize_t done = mo_write_at(fd, line.data, line.len, end);
	if (done != (ssize_t)line.len) {
		int r = done < 0 ? -errno : -ENOSPC;
		if (mo_truncate(fd, end) < 0)
			return -errno;
		return r;
	}
	if (j->offset > end) { /* the torn piece that was read is gone */
		j->offset = end;
		mo_buf_reset(&j->partial);
	}
	return 0;
}

void journal_trim(struct journal *j, int64_t through)
{
	size_t n = 1;
	while (n + 1 < j->n_segments && j->segments[n + 1] <= through + 1) {
		char name[48];
		segment_name(name, j->segments[n++]);
		mo_remove_at(j->dir_fd, name, 0);
	}
	if (n == 1)
		return;
	/* A list grown by mo_ints_add must keep its storage rule: rebuilt. */
	int64_t *retained = NULL;
	size_t n_retained = 0;
	mo_ints_add(&retained, &n_retained, j->segments[0]);
	for (size_t i = n; i < j->n_segments; i++)
		mo_ints_add(&retained, &n_retained, j->segments[i]);
	free(j->segments);
	j->segments = retained;
	j->n_segments = n_retained;
}
