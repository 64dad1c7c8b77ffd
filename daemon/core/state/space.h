/* Whether the saves that a job still makes fit where its checkpoints lie, by what its nodes last
 * measured there. A forecast: others write there too, and a quota may be less than what is free.
 * Pure readers, called by updates, rules and views. */
#pragma once
#include "daemon/core/state/state.h"

enum space_level {
	SPACE_UNKNOWN, /* nothing was measured, or nothing was saved yet nor planned */
	SPACE_ENOUGH,
	SPACE_LOW, /* not all of them fit */
	SPACE_FULL /* the next one does not */
};
struct space {
	enum space_level level;
	int64_t free, size; /* bytes: as measured; of the newest checkpoint, or as planned */
	bool planned;
	int64_t fits, due; /* saves; due MO_NONE: nobody knows where the run ends */
	int64_t wanted;    /* saves that must fit: those due, or some */
};

struct mo_buf;

struct space space_of(const struct job *j);
int64_t space_newest_size(const struct job *j);        /* of its checkpoints; 0: none is known */
void space_add_bytes(struct mo_buf *b, int64_t bytes); /* "2.9 TB" */
/* "2 more checkpoints of 1.2 TB fit in /ckpt (2.9 TB are free), and 40 are due: it is full at
 * iteration 3400, in about 6 h". Caller frees; NULL: it is enough, or unknown. */
char *space_text(const struct job *j, const struct space *s);
