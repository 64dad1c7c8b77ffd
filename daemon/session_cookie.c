/* See session_cookie.h. */
#include "daemon/session_cookie.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/base/secret.h"

#define MAC_BYTES 32

int session_key_load(const char *state_dir, unsigned char key[static SESSION_KEY_BYTES],
		     struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(state_dir, "session.key");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	int r = mo_access(path, F_OK) < 0 ? -errno
					  : mo_secret_read(path, SESSION_KEY_BYTES, &b, err);
	if (r >= 0 && b.len == SESSION_KEY_BYTES) {
		memcpy(key, b.data, SESSION_KEY_BYTES);
		return 0;
	}
	if (r < 0 && r != -ENOENT)
		return mo_error_set(err, r, "%s: %s", path, strerror(-r));
	if (r >= 0)
		mo_log(MO_WARNING, NULL, NULL,
		       "%s was not whole: a new key is made; who was signed in to the page must "
		       "sign in again",
		       path);
	r = mo_random(key, SESSION_KEY_BYTES);
	if (r >= 0)
		r = mo_write_file(path, key, SESSION_KEY_BYTES, 0600, true);
	return r < 0 ? mo_error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

static bool mac_of(const unsigned char key[static SESSION_KEY_BYTES], const char *id, int64_t until,
		   unsigned char mac[static MAC_BYTES])
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%s %lld", id, (long long)until);

	return gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, SESSION_KEY_BYTES, text, (size_t)n, mac) ==
	       0;
}

char *session_make(const unsigned char key[static SESSION_KEY_BYTES], const char *token_id,
		   int64_t now)
{
	int64_t until = now / 1000000 + SESSION_S;
	unsigned char mac[MAC_BYTES];
	char hex[2 * MAC_BYTES + 1];

	if (!mac_of(key, token_id, until, mac))
		return NULL;
	mo_hex(mac, sizeof(mac), hex);
	return mo_printf(SESSION_PREFIX "%s_%lld_%s", token_id, (long long)until, hex);
}

/* "<id>_<expiry>_<mac>" */
bool session_read(const unsigned char key[static SESSION_KEY_BYTES], const char *text, int64_t now,
		  char ret_token_id[static TOKEN_ID_CHARS + 1])
{
	char id[TOKEN_ID_CHARS + 1] = "", until_text[24] = "";
	unsigned char want[MAC_BYTES], have[MAC_BYTES];
	int64_t until = 0;

	if (strcspn(text, "_") != TOKEN_ID_CHARS)
		return false;
	memcpy(id, text, TOKEN_ID_CHARS);
	text += TOKEN_ID_CHARS + 1;
	size_t n = strcspn(text, "_");
	if (n == 0 || n >= sizeof(until_text) || text[n] != '_')
		return false;
	memcpy(until_text, text, n);
	if (mo_parse_i64(until_text, 0, INT64_MAX / 2000000, &until) < 0 || until * 1000000 <= now)
		return false;
	if (until > now / 1000000 + SESSION_S + 1) /* made while the clock was ahead */
		return false;
	if (!mo_unhex(text + n + 1, have, sizeof(have)) || !mac_of(key, id, until, want) ||
	    gnutls_memcmp(want, have, sizeof(want)) != 0)
		return false;
	memcpy(ret_token_id, id, sizeof(id));
	return true;
}
