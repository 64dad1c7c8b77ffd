/* A registry (distribution specification 1.1): what it is asked for, with what it wants to see
 * before. */
#pragma once
#include "lib/model/reference.h"
#include "agent/image/http.h"

struct registry {
	struct http http;
	const struct reference *of;
	const char *auth_file; /* NULL: nobody's */
	char *basic;           /* user and password in base64, of that file */
	char *authorization;   /* the header of before */
};
int registry_init(struct registry *r, const struct reference *of, const char *auth_file,
		  int64_t silence_s, struct mo_error *err);
void registry_done(struct registry *r);
/* 0, or with err IMAGE_REFUSED, -EAGAIN (another try may end better), -ESPIPE (not from the middle
 * on), or what take() returned. */
int registry_manifest(struct registry *r, const char *wanted, struct mo_buf *ret,
		      struct mo_error *err);
int registry_blob(struct registry *r, const char *digest, int64_t from,
		  int (*take)(void *arg, bool from_the_start, const char *data, size_t n),
		  void *arg, struct mo_error *err);
