/* What the bytes of a zip archive, of torch.save's older stream, of an OCDBT manifest and of
 * MessagePack say about whether the file is whole. Pure: callers read the pieces that are asked
 * for. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCHIVE_TAIL 98 /* the records that close an archive, with the 64-bit ones */
#define ARCHIVE_DIRECTORY_MAX (64LL << 20)
#define ARCHIVE_LOCAL 30 /* the fixed part of what stands before a record */

/* The last archive of a file; several may stand behind each other, as in .distcp. Places are
 * from the file's beginning. */
struct archive {
	int64_t begin, directory, directory_bytes, records;
};
/* tail: the file's last n bytes, ARCHIVE_TAIL of them when it has as many. NULL = ret is filled;
 * else why it is not whole (static text). */
const char *archive_end(const unsigned char *tail, size_t n, int64_t file_bytes,
			struct archive *ret);
/* at: of what stands before it, stored: its bytes as they lie there; crc: CRC-32 of its content,
 * 0 also where whoever wrote it made none */
struct archive_record {
	int64_t at, bytes, stored;
	uint32_t crc;
	const char *name;
	size_t n_name;
	bool packed;
};
/* The record whose entry begins at *at of the directory; moves behind it. NULL with *done when
 * there is none left. */
const char *archive_next(const struct archive *a, const unsigned char *directory, size_t *at,
			 struct archive_record *ret, bool *done);
/* local: the ARCHIVE_LOCAL bytes at r->at. *ret: where its content begins. */
const char *archive_local(const struct archive *a, const struct archive_record *r,
			  const unsigned char *local, int64_t *ret);
bool archive_begins(const unsigned char *head, size_t n);
bool torch_stream_begins(const unsigned char *head, size_t n); /* torch.save without archives */
/* The whole manifest: its beginning, the length that it says, its checksum. */
const char *ocdbt_manifest(const unsigned char *data, size_t n);
/* One whole MessagePack value and nothing behind it. */
const char *msgpack_damage(const unsigned char *data, size_t n);
bool only_zeros(const unsigned char *data, size_t n);
