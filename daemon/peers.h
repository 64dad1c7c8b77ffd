/* Who calls by the UNIX socket. Names of users are cached for a minute, because the name service
 * may be slow. Called by auth.c. */
#pragma once
#include <sys/types.h>

#include "daemon/core/state/state.h"
#include "lib/base/error.h"
#include "lib/http/server.h"

struct peers;
struct peers *peers_new(void);
struct peers *peers_free(struct peers *s);
/* The caller of this uid, borrowed until its next call: root and moed's own user are admins, other
 * accounts users. */
void peers_caller(struct peers *s, uid_t uid, struct http_caller *ret);
/* The user that moed runs as. */
const char *peers_owner(const struct peers *s);
/* What auth_account() says. */
int peers_account(const struct peers *peers, const struct state *s, const struct http_caller *c,
		  struct mo_error *err);
