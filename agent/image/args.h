/* The command line of moe-image. */
#pragma once
#include "lib/base/desc.h"

enum verb {
	VERB_FETCH,
	VERB_UNPACK,
	VERB_LIST,
	VERB_PRUNE,
	VERB_PULL,
	VERB_MAKE,
	VERB_STOCK,
};
struct args {
	int verb;              /* enum verb */
	const char *source;    /* FETCH, UNPACK, PULL */
	const char *dir;       /* where it goes, or the directory of images */
	const char *user;      /* NULL: who runs it, or PRUNE by root: who owns dir */
	const char *auth_file; /* FETCH, PULL, and likewise the next ones */
	int64_t silence_s;
	char **mirrors;
	size_t n_mirrors;
	int64_t bytes_max;   /* UNPACK; PRUNE: MO_NONE until it is said */
	bool by_digest;      /* UNPACK */
	const char *digest;  /* PULL: the one that is meant; NULL: any */
	bool never;          /* PULL: only looks whether it is there */
	const char *removes; /* STOCK: a digest or a name, which goes; NULL: nothing does */
	char **keeps;        /* STOCK, PRUNE: digests that stay */
	size_t n_keeps;
	bool own;          /* PULL, MAKE: in a part of dir that is the user's alone */
	int64_t min_uid;   /* PULL, MAKE: user is no system account, as of steps; 0: it may be */
	int64_t unused_us; /* PRUNE: newer ones stay */
	bool allow_root;
};
extern const char args_usage[];
/* false: it is no usage. args_done() in any case. */
bool args_read(int argc, char **argv, struct args *ret);
void args_done(struct args *a);
