/* See tls.h. */
#include "lib/http/tls.h"
#include <errno.h>
#include <gnutls/x509.h>
#include <string.h>
#include "lib/base/fd.h"

#define PEM_BYTES_MAX (256 * 1024)
#define CHAIN_MAX 16

static int read_pem(const char *path, const char *what, struct mo_buf *b, struct mo_error *err)
{
	int r = mo_read_file(path, PEM_BYTES_MAX, b);

	return r < 0 ? mo_error_set(err, r, "%s %s: %s", what, path, strerror(-r)) : 0;
}

static int bad(const char *what, const char *path, int e, struct mo_error *err)
{
	return mo_error_set(err, -EINVAL, "%s %s: it is no PEM file, or a part of one: %s", what,
			    path, gnutls_strerror(e));
}

/* A chain that was cut in the first or the last line of a certificate would be taken for a shorter
 * one: the last line of dashes, or what may have become one, is the whole end of one. */
static bool ends_in_dashes(const struct mo_buf *pem)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	const char *line = NULL;

	for (const char *at = pem->data, *next; at && *at; at = next) {
		size_t n = strcspn(at, "\r\n");

		next = strchr(at, '\n');
		next = next ? next + 1 : NULL;
		if (mo_starts_with(at, "-----") || (!next && n && strncmp(at, begin, n) == 0))
			line = at;
	}
	size_t n = line ? strcspn(line, "\r\n") : 0;

	return !line || !mo_starts_with(line, "-----END ") || n < 14 ||
	       memcmp(line + n - 5, "-----", 5) != 0;
}

static int load_chain(struct tls_pair *p, const char *path, const struct mo_buf *pem,
		      struct mo_error *err)
{
	gnutls_datum_t text = { .data = (unsigned char *)pem->data, .size = (unsigned)pem->len };
	unsigned n = CHAIN_MAX;
	gnutls_x509_crt_t first;

	p->chain = mo_alloc_array(CHAIN_MAX, sizeof(*p->chain));
	int e = gnutls_pcert_list_import_x509_raw(p->chain, &n, &text, GNUTLS_X509_FMT_PEM, 0);
	if (e >= 0 && ends_in_dashes(pem))
		e = GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR;
	if (e < 0)
		return bad("tls_cert", path, e, err);
	p->n_chain = n;
	e = gnutls_pcert_export_x509(&p->chain[0], &first);
	if (e < 0)
		return bad("tls_cert", path, e, err);
	p->from = gnutls_x509_crt_get_activation_time(first);
	p->until = gnutls_x509_crt_get_expiration_time(first);
	gnutls_x509_crt_deinit(first);
	return 0;
}

static int load_key(struct tls_pair *p, const char *path, const struct mo_buf *pem,
		    struct mo_error *err)
{
	gnutls_datum_t text = { .data = (unsigned char *)pem->data, .size = (unsigned)pem->len };
	int e = gnutls_privkey_init(&p->key);

	if (e >= 0)
		e = gnutls_privkey_import_x509_raw(p->key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
	return e < 0 ? bad("tls_key", path, e, err) : 0;
}

/* By the id of the public key of each. */
static bool belong_together(const struct tls_pair *p)
{
	unsigned char of_cert[64], of_key[64];
	size_t n_cert = sizeof(of_cert), n_key = sizeof(of_key);
	gnutls_pubkey_t public_key;
	bool same = false;

	if (gnutls_pubkey_init(&public_key) < 0)
		return false;
	if (gnutls_pubkey_import_privkey(public_key, p->key, 0, 0) >= 0 &&
	    gnutls_pubkey_get_key_id(public_key, GNUTLS_KEYID_USE_SHA256, of_key, &n_key) >= 0 &&
	    gnutls_pubkey_get_key_id(p->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, of_cert,
				     &n_cert) >= 0)
		same = n_cert == n_key && memcmp(of_cert, of_key, n_key) == 0;
	gnutls_pubkey_deinit(public_key);
	return same;
}

int tls_pair_load(const char *cert_file, const char *key_file, struct tls_pair **ret,
		  struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf cert = { 0 }, key = { 0 };
	struct tls_pair *p = mo_alloc(sizeof(*p));

	int r = read_pem(cert_file, "tls_cert", &cert, err);
	if (r >= 0)
		r = read_pem(key_file, "tls_key", &key, err);
	if (r >= 0)
		r = load_chain(p, cert_file, &cert, err);
	if (r >= 0)
		r = load_key(p, key_file, &key, err);
	if (r >= 0 && !belong_together(p))
		r = mo_error_set(err, -EINVAL,
				 "tls_key %s: is not the key of the first certificate in %s",
				 key_file, cert_file);
	if (r < 0) {
		tls_pair_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct tls_pair *tls_pair_free(struct tls_pair *p)
{
	while (p) {
		struct tls_pair *older = p->older;

		for (unsigned i = 0; i < p->n_chain; i++)
			gnutls_pcert_deinit(&p->chain[i]);
		free(p->chain);
		if (p->key)
			gnutls_privkey_deinit(p->key);
		free(p);
		p = older;
	}
	return NULL;
}
