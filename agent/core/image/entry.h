/* One entry of a layer's archive: what is to be done for it, and where. Pure; agent/image does it.
 * Names are somebody's: none leads above the root, and how much there may be is counted. */
#pragma once
#include <stdint.h>

#include "lib/base/error.h"

#define ENTRY_PATH_MAX 4095
#define ENTRY_NAME_MAX 255
#define ENTRY_DEPTH_MAX 128
/* of all layers of an image: ROCm's have three hundred thousand */
#define ENTRIES_MAX (4 * 1000 * 1000)

enum entry_kind {
	ENTRY_NONE, /* nothing: devices, sockets, FIFOs, the root itself */
	ENTRY_DIRECTORY,
	ENTRY_FILE,
	ENTRY_SYMLINK,
	ENTRY_HARDLINK,
	ENTRY_WHITEOUT, /* `name` of lower layers is not there any more */
	ENTRY_OPAQUE,   /* nothing of lower layers is in `dir` any more */
};
/* What the archive says of it. */
struct entry_said {
	enum entry_kind kind; /* whiteouts are files here */
	const char *path, *link;
	int64_t mode, bytes;
};
struct entry {
	enum entry_kind kind;
	char *dir;  /* from the root, "" is the root */
	char *name; /* no slash; NULL: ENTRY_NONE, ENTRY_OPAQUE */
	/* of a symbolic link: its text; of a hard link: the other name, in two parts */
	char *link_dir, *link;
	unsigned mode; /* without setuid and setgid; its owner may read it, and work in it */
};
void entry_done(struct entry *e);
/* 0, or IMAGE_REFUSED with err; *ret, zeroed before, is to be entry_done() in either case. */
int entry_read(const struct entry_said *said, struct entry *ret, struct mo_error *err);

struct entry_sum {
	int64_t bytes_max, bytes, entries;
};
/* 0, or IMAGE_REFUSED: it is more than may be. */
int entry_count(struct entry_sum *sum, int64_t bytes, struct mo_error *err);
