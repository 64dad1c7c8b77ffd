/* The bytes of one blob, from a file or from an entry of an archive: hashed and counted while they
 * are read. What was made of them counts only after blob_end(). */
#pragma once
#include <gnutls/crypto.h>

#include "lib/base/buf.h"
#include "lib/base/desc.h"
#include "lib/base/error.h"

struct archive;
struct blob {
	int fd;             /* -1: of `in` */
	struct archive *in; /* where the entry is that is read */
	int of;             /* the archive's file; -1: none */
	gnutls_hash_hd_t hash;
	int64_t bytes; /* that were read */
	/* that it must have; MO_NONE: it is not known */
	int64_t bytes_said;
	char piece[64 * 1024];
	/* why blob_next() failed, kept for who asks through a library */
	struct mo_error err;
	int failed;
};
/* Of a file, in the directory `at`: a regular one. Two errors as everywhere: IMAGE_REFUSED, or a
 * failure of the node. blob_close() in any case; b is zeroed before. */
int blob_open(struct blob *b, int at, const char *name, int64_t bytes_said, struct mo_error *err);
/* Of the entry of that name in an archive. */
int blob_open_entry(struct blob *b, const char *archive, const char *name, struct mo_error *err);
/* Bytes in b->piece; 0 at its end; negative: b->failed and b->err say why. */
ssize_t blob_next(struct blob *b);
/* Reads what is left, and compares. digest NULL: ret_digest tells it. 0, or an error. */
int blob_end(struct blob *b, const char *digest, char **ret_digest, struct mo_error *err);
/* The whole of it as JSON of that description, limited to OCI_DOCUMENT_MAX; before and after the
 * text come these two. ret_digest as above. */
int blob_document(struct blob *b, const char *before, const char *after, const struct mo_desc *desc,
		  void *obj, const char *digest, char **ret_digest, struct mo_error *err);
/* A text as JSON of that description. 0, or IMAGE_REFUSED with err. */
int document_read(const char *text, size_t n, const struct mo_desc *desc, void *obj,
		  struct mo_error *err);
void blob_close(struct blob *b);
