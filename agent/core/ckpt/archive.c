/* See archive.h. Zip as torch.save writes it: records are stored, not packed, and the closing
 * records of 64 bits stand in front of the closing record. */
#include "agent/core/ckpt/archive.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/crc32c.h"
#include "lib/base/util.h"

#define END_BYTES 22
#define LOCATOR_BYTES 20
#define END64_BYTES 56
#define ENTRY_BYTES 46
#define OCDBT_LEAST 18 /* magic, length, version, compression, checksum */

static const char no_end[] = "it is cut short: an archive without its end",
		  nonsense[] = "its archive's directory makes no sense";

static uint64_t little(const unsigned char *p, size_t n)
{
	uint64_t v = 0;

	mo_assert(n > 0 && n <= 8);
	for (size_t i = n; i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

bool archive_begins(const unsigned char *head, size_t n)
{
	return n >= 4 && memcmp(head, "PK\3\4", 4) == 0;
}

bool torch_stream_begins(const unsigned char *head, size_t n)
{
	return n >= 14 && head[0] == 0x80 &&
	       memcmp(head + 2, "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12) == 0;
}

bool only_zeros(const unsigned char *data, size_t n)
{
	return n > 0 && data[0] == 0 && memcmp(data, data + 1, n - 1) == 0;
}

/* Fields of the closing record that are too small for their value have all bits set; then the
 * 64-bit record counts. Where both have a value they must agree. */
static bool agree(uint64_t small, uint64_t full, uint64_t large)
{
	return small == full || small == large;
}

const char *archive_end(const unsigned char *tail, size_t n, int64_t file_bytes,
			struct archive *ret)
{
	mo_assert(file_bytes >= 0 && (int64_t)n <= file_bytes);
	if (n < END_BYTES || (int64_t)n > file_bytes ||
	    memcmp(tail + n - END_BYTES, "PK\5\6", 4) != 0)
		return no_end;
	const unsigned char *end = tail + n - END_BYTES,
			    *locator = n >= END_BYTES + LOCATOR_BYTES + END64_BYTES
					       ? end - LOCATOR_BYTES
					       : NULL;
	uint64_t records = little(end + 10, 2), bytes = little(end + 12, 4),
		 offset = little(end + 16, 4), behind = END_BYTES;

	if (little(end + 4, 4) != 0 || little(end + 8, 2) != little(end + 10, 2) ||
	    little(end + 20, 2) != 0)
		return nonsense;
	if (locator && memcmp(locator, "PK\6\7", 4) == 0) {
		const unsigned char *end64 = locator - END64_BYTES;
		if (memcmp(end64, "PK\6\6", 4) != 0 ||
		    !agree(records, 0xffff, little(end64 + 32, 8)) ||
		    !agree(bytes, 0xffffffff, little(end64 + 40, 8)) ||
		    !agree(offset, 0xffffffff, little(end64 + 48, 8)))
			return nonsense;
		records = little(end64 + 32, 8);
		bytes = little(end64 + 40, 8);
		offset = little(end64 + 48, 8);
		behind += LOCATOR_BYTES + END64_BYTES;
	}
	uint64_t room = (uint64_t)file_bytes - behind;
	if (records == 0 || bytes > room || offset > room - bytes || bytes / ENTRY_BYTES < records)
		return nonsense;
	*ret = (struct archive){ .directory = (int64_t)(room - bytes),
				 .directory_bytes = (int64_t)bytes,
				 .records = (int64_t)records };
	ret->begin = ret->directory - (int64_t)offset;
	return NULL;
}

/* Sizes and place that do not fit into 32 bits stand in the entry's extra field 1, in this
 * order. */
static bool wide(const unsigned char *extra, size_t n, uint64_t *unpacked, uint64_t *stored,
		 uint64_t *at)
{
	uint64_t *const values[] = { unpacked, stored, at };

	if (*unpacked != 0xffffffff && *stored != 0xffffffff && *at != 0xffffffff)
		return true;
	while (n >= 4) {
		size_t size = (size_t)little(extra + 2, 2), used = 4;
		if (size > n - 4)
			return false;
		if (little(extra, 2) != 1) {
			extra += 4 + size;
			n -= 4 + size;
			continue;
		}
		for (size_t i = 0; i < 3; i++)
			if (*values[i] == 0xffffffff) {
				if (used + 8 > 4 + size)
					return false;
				*values[i] = little(extra + used, 8);
				used += 8;
			}
		return true;
	}
	return false;
}

const char *archive_next(const struct archive *a, const unsigned char *directory, size_t *at,
			 struct archive_record *ret, bool *done)
{
	size_t left = (size_t)a->directory_bytes - *at;
	const unsigned char *p = directory + *at;

	*done = left == 0;
	if (*done)
		return NULL;
	if (left < ENTRY_BYTES || memcmp(p, "PK\1\2", 4) != 0)
		return nonsense;
	size_t n_name = (size_t)little(p + 28, 2), n_extra = (size_t)little(p + 30, 2),
	       n_comment = (size_t)little(p + 32, 2),
	       size = ENTRY_BYTES + n_name + n_extra + n_comment;
	uint64_t stored = little(p + 20, 4), unpacked = little(p + 24, 4),
		 place = little(p + 42, 4), room = (uint64_t)(a->directory - a->begin);
	if (size > left || !wide(p + ENTRY_BYTES + n_name, n_extra, &unpacked, &stored, &place))
		return nonsense;
	if (place > room || room - place < ARCHIVE_LOCAL || stored > room - place - ARCHIVE_LOCAL)
		return "a record of its archive lies outside the file";
	*ret = (struct archive_record){ .at = a->begin + (int64_t)place,
					.bytes = (int64_t)MO_MIN(unpacked, (uint64_t)INT64_MAX),
					.stored = (int64_t)stored,
					.crc = (uint32_t)little(p + 16, 4),
					.name = (const char *)p + ENTRY_BYTES,
					.n_name = n_name,
					.packed = little(p + 10, 2) != 0 };
	*at += size;
	return NULL;
}

const char *archive_local(const struct archive *a, const struct archive_record *r,
			  const unsigned char *local, int64_t *ret)
{
	if (!archive_begins(local, ARCHIVE_LOCAL))
		return "a record of its archive does not begin where the directory says";
	*ret = r->at + ARCHIVE_LOCAL + (int64_t)(little(local + 26, 2) + little(local + 28, 2));
	return little(local + 26, 2) == r->n_name && *ret <= a->directory - r->stored
		       ? NULL
		       : "a record of its archive is not what the directory says";
}

const char *ocdbt_manifest(const unsigned char *data, size_t n)
{
	if (n < OCDBT_LEAST || memcmp(data, "\x0c\xdb\x3a\x2a", 4) != 0)
		return "it is no OCDBT manifest";
	if (little(data + 4, 8) != n)
		return "it is cut short, or longer than it says";
	return little(data + n - 4, 4) == mo_crc32c(0, data, n - 4)
		       ? NULL
		       : "its checksum is not that of its content";
}
