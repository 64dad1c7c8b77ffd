/* Where an image is unpacked: PLACE.partial, which becomes PLACE when it is whole and on the disk.
 * A process that is killed leaves only PLACE.partial, which the next one empties. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"

#define PLACE_PARTIAL ".partial"
#define PLACE_DIGEST_MAX 256 /* bytes of the file `digest` */

struct place {
	char *path, *partial;
	int dir; /* PLACE.partial, locked; -1: not begun */
};
/* What the file `digest` in a directory says: a digest and a line's end, if it is one. 0, or a
 * negative errno. */
int place_digest(int at, const char *path, struct mo_buf *ret);
/* The directory is a whole image of that digest, which has been asked for now. */
bool place_has(const char *path, const char *digest);
/* Locks a directory: nobody else prunes it or is at work in it. A descriptor; -EWOULDBLOCK: another
 * has it, or it has not its name any more; or a negative errno. Where the file system has no locks,
 * as if it were locked. */
int place_lock(const char *path);
/* 1: PLACE is there and has this digest, 0: begun, and empty, or an error: also when another
 * process is at work there. place_end() in any case. */
int place_begin(struct place *p, const char *path, const char *digest, struct mo_error *err);
int place_finish(struct place *p, struct mo_error *err);
/* What is not finished is removed. */
void place_end(struct place *p);
/* The directory, by another name first (or the same), so that half of it is never seen. -ENOTDIR,
 * -EWOULDBLOCK: somebody holds a lock on it; or an error with err. */
int place_remove(const char *path, const char *by_name, struct mo_error *err);
