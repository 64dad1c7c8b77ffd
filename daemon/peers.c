/* See peers.h. */
#include "daemon/peers.h"

#include <string.h>
#include <uthash.h>

#include "lib/base/clock.h"
#include "lib/base/identity.h"
#include "lib/base/log.h"
#include "lib/model/limits.h"

#define PEER_CACHE_US (60 * 1000000LL)

struct peer {
	uid_t uid;
	char *user, *shell;
	int64_t until;
	UT_hash_handle hh;
};
struct peers {
	struct peer *all; /* by uid */
	char *owner;
};

/* NULL: no account, or one whose name no record can hold: cut, it would be another user's. */
static char *login_of(uid_t uid, char **ret_shell)
{
	_cleanup_(mo_freep) char *name = NULL;

	if (mo_identity_name(uid, &name, ret_shell) < 0)
		return NULL;
	if (strlen(name) <= MO_LONGEST_NAME)
		return TAKE_PTR(name);
	mo_log(MO_WARNING, NULL, NULL,
	       "user %u has a login name of more than %d bytes: it is refused; give the user a "
	       "token",
	       uid, MO_LONGEST_NAME);
	return NULL;
}

struct peers *peers_new(void)
{
	struct peers *s = mo_alloc(sizeof(*s));

	s->owner = login_of(mo_uid(), NULL);
	if (!s->owner)
		s->owner = mo_printf("uid%u", mo_uid());
	return s;
}

struct peers *peers_free(struct peers *s)
{
	struct peer *p, *tmp;

	if (!s)
		return NULL;
	HASH_ITER(hh, s->all, p, tmp) {
		HASH_DEL(s->all, p);
		free(p->user);
		free(p->shell);
		free(p);
	}
	free(s->owner);
	free(s);
	return NULL;
}

const char *peers_owner(const struct peers *s)
{
	return s->owner;
}

void peers_caller(struct peers *s, uid_t uid, struct http_caller *ret)
{
	int64_t now = mo_clock_boot_us();
	struct peer *p = NULL;

	HASH_FIND(hh, s->all, &uid, sizeof(uid), p);
	if (!p) {
		p = mo_alloc(sizeof(*p));
		p->uid = uid;
		HASH_ADD(hh, s->all, uid, sizeof(p->uid), p);
	}
	if (p->until <= now) {
		free(p->user);
		p->user = login_of(uid, &p->shell);
		p->until = now + PEER_CACHE_US;
	}
	bool admin = uid == 0 || uid == mo_uid();
	*ret = (struct http_caller){ .role = admin     ? ROLE_ADMIN
					     : p->user ? ROLE_USER
						       : ROLE_NONE,
				     .user = p->user ? p->user
					     : admin ? s->owner
						     : NULL };
}

/* The least of what all nodes said; MO_NONE: some did not, or any account will do there. */
static int64_t least_uid(const struct state *s)
{
	int64_t least = s->n_nodes ? INT64_MAX : MO_NONE;

	for (size_t i = 0; i < s->n_nodes; i++) {
		if (s->nodes[i]->agent.min_uid == MO_NONE || s->nodes[i]->agent.min_uid <= 0)
			return MO_NONE;
		least = MO_MIN(least, s->nodes[i]->agent.min_uid);
	}
	return least;
}

int peers_account(const struct peers *peers, const struct state *s, const struct http_caller *c,
		  struct mo_error *err)
{
	const struct mo_identity_rule rule = { .min_uid = least_uid(s) };
	struct peer *p, *tmp;

	if (!c->local || c->token_id || rule.min_uid == MO_NONE)
		return 0;
	HASH_ITER(hh, peers->all, p, tmp) {
		const struct mo_identity who = { .uid = p->uid,
						 .user = p->user,
						 .shell = p->shell };

		if (mo_streq(p->user, c->user) && p->shell)
			return mo_identity_system(&who, &rule, err);
	}
	return 0;
}
