/* A certificate chain with its private key: read and judged whole, then given to each handshake.
 * Used by the server, and by moed --check-config. */
#pragma once
#include <gnutls/abstract.h>
#include <stdint.h>
#include "lib/base/error.h"

struct tls_pair {
	gnutls_pcert_st *chain;
	unsigned n_chain;
	gnutls_privkey_t key;
	int64_t from, until; /* validity of the first certificate, seconds since 1970 */
	/* Replaced ones: a handshake under way may still use them. */
	struct tls_pair *older;
};
/* -errno with err when a file cannot be read or understood, or the key is not that of the first
 * certificate. */
int tls_pair_load(const char *cert_file, const char *key_file, struct tls_pair **ret,
		  struct mo_error *err);
struct tls_pair *tls_pair_free(struct tls_pair *p); /* with all older ones */
