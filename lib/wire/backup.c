/* See backup.h. */
#include "lib/wire/backup.h"
#include <errno.h>
#include "lib/wire/decode.h"

static const struct mo_field backup_head_fields[] = {
	MO_D(backup_head, moe_backup, MO_INT, "version of this format"),
	MO_D(backup_head, version, MO_STR, "version of the moed that wrote it"),
	MO_D(backup_head, time, MO_TIME, "when the last record in it was made"),
	MO_D(backup_head, epoch, MO_INT, "epoch of the controller"),
	MO_D(backup_head, seq, MO_INT, "number of the last record in it"),
	MO_D(backup_head, jobs, MO_INT, "how many there are"),
	MO_D(backup_head, nodes, MO_INT, "how many there are"),
	MO_D(backup_head, bytes, MO_INT, "size of the text behind this line, bytes"),
	MO_D(backup_head, crc32c, MO_INT, "CRC32C of that text"),
};
const struct mo_desc backup_head_desc = MO_DESC(backup_head, backup_head_fields);

int backup_head_read(const char *line, size_t n, struct backup_head *ret, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error why = { 0 };

	if (wire_decode(&backup_head_desc, line, n, false, ret, &why) < 0 || ret->moe_backup < 1 ||
	    ret->bytes < 1 || ret->bytes > BACKUP_BYTES_MAX)
		return mo_error_set(err, -EINVAL, "it is no backup made by 'moectl backup'");
	if (ret->moe_backup > BACKUP_VERSION)
		return mo_error_set(err, -EINVAL,
				    "it was written by a newer moed (%s): use that one",
				    ret->version ? ret->version : "?");
	return 0;
}
