/* The name of an image in a registry, as users of Docker write it, and where it is asked for.
 * Pure. */
#pragma once
#include <errno.h>

#include "lib/base/error.h"

#define OCI_DIGEST_LENGTH 71 /* "sha256:" and 64 digits */
/* Of an error, that asking again ends the same: the image, its source, or what was asked for. Any
 * other errno is a failure of this node or of the network. */
#define IMAGE_REFUSED (-EBADMSG)

/* "sha256:" and 64 small hexadecimal digits. */
bool oci_digest_valid(const char *s);

struct reference {
	char *host; /* with :PORT, if any */
	char *name;
	char *tag;    /* NULL: a digest was named */
	char *digest; /* NULL: a tag was */
};
void reference_done(struct reference *r);
/* [HOST[:PORT]/]NAME[:TAG][@sha256:HEX]; without a host Docker's own registry, without both the tag
 * latest. mirrors: texts FROM=TO; what begins with HOST or HOST/NAME of FROM is asked for at TO
 * instead, by the first that fits. 0, or IMAGE_REFUSED with err; reference_done() in any case. */
int reference_read(const char *text, char *const *mirrors, size_t n_mirrors, struct reference *ret,
		   struct mo_error *err);
/* Only this machine: it is spoken to without TLS. */
bool reference_is_loopback(const struct reference *r);
/* What is asked for: the digest, or the tag. */
const char *reference_wanted(const struct reference *r);
