/* See shared_words.h. */
#include "daemon/core/state/shared_words.h"

#include "lib/base/desc_lend.h"

static const struct mo_field words_fields[] = {
	MO_D_LIST(submit, argv, MO_STRS, "as submit_desc"),
	MO_D_LIST(submit, prepare, MO_STRS, "as submit_desc"),
	MO_D_VEC(submit, env, &env_item_desc, "as submit_desc"),
};
static const struct mo_field rest_fields[] = {
	MO_D_SUB(submit, recipe, MO_STRUCT, &recipe_desc, "as submit_desc"),
	MO_D_SUB(submit, promise, MO_OPT, &promise_desc, "as submit_desc"),
	MO_D_LIST(submit, warnings, MO_STRS, "as submit_desc"),
};
static const struct mo_desc words_desc = MO_DESC(submit, words_fields),
			    rest_desc = MO_DESC(submit, rest_fields);

static const struct submit *lender(const struct submit *s)
{
	return s->shared ? s->shared->words : NULL;
}

void words_lend(struct submit *s)
{
	if (lender(s))
		mo_desc_lend(&words_desc, s, lender(s));
}

void words_lend_all(struct submit *s)
{
	words_lend(s);
	if (lender(s))
		mo_desc_lend(&rest_desc, s, lender(s));
}

void words_own(struct submit *s)
{
	if (!lender(s))
		return;
	mo_desc_own(&words_desc, s, lender(s));
	mo_desc_own(&rest_desc, s, lender(s));
}

void words_return(struct submit *s)
{
	if (!lender(s))
		return;
	mo_desc_return(&words_desc, s, lender(s));
	mo_desc_return(&rest_desc, s, lender(s));
}

struct submit *words_of(const struct submit *s)
{
	struct submit given;

	mo_desc_init(&submit_desc, &given);
	given.argv = s->argv;
	given.n_argv = s->n_argv;
	given.prepare = s->prepare;
	given.n_prepare = s->n_prepare;
	given.env = s->env;
	given.n_env = s->n_env;
	given.recipe = s->recipe;
	given.promise = s->promise;
	given.warnings = s->warnings;
	given.n_warnings = s->n_warnings;
	return mo_desc_dup(&submit_desc, &given);
}
