/* See shared_words.h. What is lent is known by its address: it is the one of the set. */
#include "daemon/core/state/shared_words.h"

#include <stdlib.h>

#include "lib/base/assert.h"

enum what { LEND, OWN, RETURN };

static void word(char **mine, char *theirs, enum what what)
{
	bool lent = *mine && *mine == theirs;

	if (what == LEND && !lent && *mine && mo_streq(*mine, theirs)) {
		free(*mine);
		*mine = theirs;
	} else if (what != LEND && lent) {
		*mine = what == OWN ? mo_strdup(theirs) : NULL;
	}
}

static void item(struct env_item *mine, const struct env_item *theirs, enum what what)
{
	bool lent = mine->name && mine->name == theirs->name;

	if (what == LEND && !lent && mine->name && mo_desc_equal(&env_item_desc, mine, theirs)) {
		mo_desc_done(&env_item_desc, mine);
		*mine = *theirs;
	} else if (what != LEND && lent) {
		mo_desc_init(&env_item_desc, mine);
		if (what == OWN)
			mo_desc_copy(&env_item_desc, mine, theirs);
	}
}

static void each(struct submit *s, enum what what)
{
	const struct shared *with = s->shared;

	if (!with)
		return;
	for (size_t i = 0; i < MO_MIN(s->n_argv, with->n_argv); i++)
		word(&s->argv[i], with->argv[i], what);
	for (size_t i = 0; i < MO_MIN(s->n_prepare, with->n_prepare); i++)
		word(&s->prepare[i], with->prepare[i], what);
	for (size_t i = 0; i < MO_MIN(s->n_env, with->n_env); i++)
		item(&s->env[i], &with->env[i], what);
}

void words_lend(struct submit *s)
{
	assert(s->shared);
	each(s, LEND);
}

void words_own(struct submit *s)
{
	each(s, OWN);
}

void words_return(struct submit *s)
{
	each(s, RETURN);
}
