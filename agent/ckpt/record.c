/* The checksums that a file carries itself: archives of torch.save have the CRC-32 of each record
 * in their directory. A .distcp is many such archives, one behind the other. What is packed, and
 * what was written without a checksum (0), is passed over. */
#include <stdlib.h>
#include <zlib.h>

#include "agent/ckpt/scan.h"
#include "lib/base/assert.h"
#include "lib/base/util.h"

/* of one file: no engine writes as many, and to find one is a read of its own */
#define RECORDS_MAX (1 << 20)

/* The records of one archive; *ret_all becomes false where one cannot be compared. */
static char *take_archive(int fd, const struct archive *a, const unsigned char *directory,
			  struct file_records *ret)
{
	struct archive_record r;
	int64_t content = 0;
	size_t at = 0;

	for (bool done = false;;) {
		const char *why = archive_next(a, directory, &at, &r, &done);

		if ((done && !why) || ret->n > RECORDS_MAX)
			return NULL;
		if (!why)
			why = format_record(fd, a, &r, &content);
		if (why)
			return mo_printf("%s (archive at byte %lld)", why, (long long)a->begin);
		if (r.packed || (r.crc == 0 && r.stored > 0))
			ret->all = false;
		else
			*MO_GROW(ret->items, ret->n) =
				(struct file_record){ content, r.stored, r.crc };
	}
}

static int as_they_lie(const void *a, const void *b)
{
	const struct file_record *x = a, *y = b;

	return x->at == y->at ? (x->bytes > y->bytes) - (x->bytes < y->bytes)
			      : (x->at > y->at) - (x->at < y->at);
}

/* A directory that says so of a record twice, or of one in another, is none to go by. */
static bool overlap(const struct file_records *r)
{
	for (size_t i = 1; i < r->n; i++)
		if (r->items[i].at < r->items[i - 1].at + r->items[i - 1].bytes)
			return true;
	return false;
}

char *file_records_find(int fd, int64_t bytes, struct file_records *ret)
{
	char *damage = NULL;
	int64_t end = bytes;

	*ret = (struct file_records){ .all = true };
	while (end > 0 && !damage && ret->n <= RECORDS_MAX) {
		struct archive a;
		const char *why;
		_cleanup_(mo_freep) unsigned char *directory = format_directory(fd, end, &a, &why);

		if (!directory) /* something else, in front of the archives or alone */
			break;
		damage = take_archive(fd, &a, directory, ret);
		end = a.begin;
	}
	ret->all &= end == 0 && ret->n > 0 && !damage;
	if (ret->n)
		qsort(ret->items, ret->n, sizeof(*ret->items), as_they_lie);
	if (ret->n > RECORDS_MAX || overlap(ret)) {
		ret->n = 0;
		ret->all = false;
	}
	return damage;
}

char *file_records_feed(struct file_records *r, const char *data, size_t n, int64_t at)
{
	int64_t end = at + (int64_t)n;

	mo_assert(r->next <= r->n);
	for (; r->next < r->n && r->items[r->next].at < end; r->next++, r->crc = 0) {
		const struct file_record *k = &r->items[r->next];
		int64_t from = MO_MAX(k->at, at), to = MO_MIN(k->at + k->bytes, end);

		r->crc = (uint32_t)crc32_z(r->crc, (const unsigned char *)data + (from - at),
					   (size_t)(to - from));
		if (k->at + k->bytes > end)
			break;
		if (r->crc != k->crc)
			return mo_printf("the %lld bytes at %lld are not what was saved (CRC-32 "
					 "%08x, its archive says %08x)",
					 (long long)k->bytes, (long long)k->at, r->crc, k->crc);
	}
	return NULL;
}

void file_records_done(struct file_records *r)
{
	free(r->items);
	*r = (struct file_records){ .n = 0 };
}
