/* What a registry wants before it answers: WWW-Authenticate (RFC 9110, 11.6.1). Pure. */
#pragma once
#include "lib/base/util.h"

struct challenge {
	bool bearer; /* a token from `realm`; else user and password */
	char *realm, *service, *scope;
};
void challenge_done(struct challenge *c);
/* Of several a token is preferred. false: it wants neither; challenge_done() in any case. */
bool challenge_read(const char *header, struct challenge *ret);
