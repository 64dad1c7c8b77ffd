/* A backup of the controller's state, as GET /v1/backup gives it: one line of JSON (the head), then
 * the text of a snapshot (daemon/journal.c), as many bytes as the head says, with their CRC32C. */
#pragma once
#include "lib/base/desc.h"
#include "lib/base/error.h"
#include "lib/wire/parse.h"

#define BACKUP_VERSION 1
#define BACKUP_HEAD_MAX 4096                       /* of the line */
#define BACKUP_BYTES_MAX ((int64_t)WIRE_BYTES_MAX) /* nobody could read more */

struct backup_head {
	int64_t moe_backup; /* BACKUP_VERSION */
	char *version;      /* of the moed that wrote it */
	int64_t time;       /* of the last record in it */
	int64_t epoch, seq, jobs, nodes;
	int64_t bytes, crc32c; /* of the text */
};
extern const struct mo_desc backup_head_desc;
/* From the line without its newline. -EINVAL with err: no backup, or of a newer version. */
int backup_head_read(const char *line, size_t n, struct backup_head *ret, struct mo_error *err);
