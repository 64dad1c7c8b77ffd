/* The cookie of a signed-in page: "moes_<id of the token>_<expiry>_<HMAC-SHA256>" under
 * STATE/session.key. It needs no memory of moed's: it survives a restart, and dies with its token,
 * for which the caller looks. Called by auth.c. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/model/limits.h"

#define SESSION_PREFIX "moes_"
#define SESSION_S (12 * 3600) /* that a cookie is good for */
#define TOKEN_ID_CHARS 8
#define SESSION_KEY_BYTES 32

/* Reads STATE/session.key, or makes it. 0, or a negative errno with err. */
int session_key_load(const char *state_dir, unsigned char key[static SESSION_KEY_BYTES],
		     struct mo_error *err);
/* now: core time. Caller frees; NULL = it could not be signed. */
char *session_make(const unsigned char key[static SESSION_KEY_BYTES], const char *token_id,
		   int64_t now);
/* text: what stands behind SESSION_PREFIX. false: it is none of ours, or over. */
bool session_read(const unsigned char key[static SESSION_KEY_BYTES], const char *text, int64_t now,
		  char ret_token_id[static TOKEN_ID_CHARS + 1]);
