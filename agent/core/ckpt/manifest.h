/* What the files of a verified checkpoint were: name, size, time, inode, and CRC32C at level
 * crc. Its digest lies in the controller's ledger; the text, in .moe-manifests of the checkpoint
 * directory, says which file it was that changed. Pure: moe-ckpt reads and writes. */
#pragma once
#include "agent/core/ckpt/ckpt.h"
#include "lib/base/buf.h"

#define MANIFEST_DIR ".moe-manifests"
#define MANIFEST_BYTES_MAX (256LL << 20)

/* Of files sorted by name: 16 hexadecimal digits over names, sizes, times and inodes (not the
 * checksums); caller frees. */
char *manifest_digest(const struct ckpt_file *files, size_t n);
/* One line per file, and a last one by which a cut text is known. */
void manifest_write(const struct ckpt_file *files, size_t n, struct mo_buf *ret);
/* Files sorted by name. -EINVAL: not a whole manifest. */
int manifest_read(const char *text, size_t n, struct ckpt_file **ret, size_t *n_ret);
/* The first file that is not as it was, and how; NULL = all are. Both sorted by name. copied:
 * only names and sizes count. Caller frees. */
char *manifest_difference(const struct ckpt_file *was, size_t n_was, const struct ckpt_file *now,
			  size_t n_now, bool copied);
/* Which of `parts` parts reads this file: the same for whoever asks, and about even in bytes,
 * because equal names of shards differ in their numbers. */
int64_t manifest_part(const char *name, int64_t parts);
