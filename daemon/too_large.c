/* See too_large.h. */
#include "daemon/too_large.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/rules/place.h"
#include "lib/recipe/recipe_file.h"

#define READ_MAX (64 << 10) /* bytes of a recipe that is read in the loop */

static void errors_done(struct recipe_errors *e)
{
	recipe_errors_done(e);
}
MO_DEFINE_DONE(recipe)

#define OWN_SET "--set cluster.gpus"

/* What the recipe is with so many GPUs, in words (caller frees). False: it is refused, and that
 * is why. */
static bool with_gpus(const struct submit *spec, int64_t gpus, char **ret)
{
	_cleanup_(mo_freep) char *number = mo_printf("%lld", (long long)gpus);
	const struct recipe_set set = { .key = (char *)"cluster.gpus",
					.value = number,
					.name = (char *)OWN_SET };
	const struct recipe *was = &spec->recipe;
	_cleanup_(errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(recipe_done) struct recipe r;

	mo_desc_init(&recipe_desc, &r);
	if (recipe_parse(spec->recipe_text, strlen(spec->recipe_text), &set, 1, &r, NULL, NULL,
			 NULL, &errors) < 0) {
		static const char own[] = OWN_SET ": ";
		const char *why =
			errors.n ? mo_error_text(&errors.items[0], -EINVAL) : "it is refused";

		*ret = mo_strdup(why + (mo_starts_with(why, own) ? strlen(own) : 0));
		return false;
	}
	if (r.unread || r.parallelism.automatic)
		*ret = mo_strdup("");
	else if (r.global_batch != MO_NONE)
		*ret = mo_printf(" with dp %lld instead of %lld and the same global batch, each "
				 "step about %.3g times as long",
				 (long long)r.parallelism.dp, (long long)was->parallelism.dp,
				 (double)was->gpus / (double)gpus);
	else
		*ret = mo_printf(" with dp %lld instead of %lld, and that much less in each step",
				 (long long)r.parallelism.dp, (long long)was->parallelism.dp);
	return true;
}

/* All that there are, or the next half of what was asked for; each step reads the recipe once.
 * 0: neither runs; *ret: how it runs, or why not with all of them (caller frees). */
static int64_t runs_with(const struct submit *spec, int64_t all, char **ret)
{
	int64_t half = spec->recipe.gpus / 2;

	if (with_gpus(spec, all, ret))
		return all;
	while (half >= all)
		half /= 2;
	char *how = NULL;

	if (half < 1 || !with_gpus(spec, half, &how)) {
		free(how);
		return 0;
	}
	free(*ret);
	*ret = how;
	return half;
}

bool too_large(const struct state *s, const struct submit *spec, struct too_large *ret)
{
	const struct recipe *r = &spec->recipe;
	_cleanup_(mo_freep) char *how = NULL;
	struct recipe any = *r; /* borrows */
	int64_t largest, all, n, fits = 0;

	*ret = (struct too_large){ 0 };
	if (place_suits(s, r)) /* nearly always, and soon said */
		return false;
	all = place_suited(s, r, &largest);
	any.gpu = NULL;
	int64_t others = place_suited(s, &any, &n) - all;
	_cleanup_(mo_freep) char *of_others =
		others > 0 ? mo_printf(" and %lld of other types", (long long)others) : NULL;

	if (all > 0 && spec->recipe_text && strlen(spec->recipe_text) <= READ_MAX)
		fits = runs_with(spec, all, &how);
	ret->text =
		mo_printf("needs %lld GPUs%s%s; the cluster has %lld%s%s (the largest node %lld)",
			  (long long)r->gpus, r->gpu ? " of type " : "", r->gpu ? r->gpu : "",
			  (long long)all,
			  r->n_nodes     ? " in cluster.nodes"
			  : r->n_exclude ? " outside cluster.exclude"
					 : "",
			  of_others ? of_others : "", (long long)largest);
	if (fits)
		ret->next = mo_printf("on what is there it runs by --set cluster.gpus=%lld%s",
				      (long long)fits, how);
	else if (how)
		ret->next = mo_printf("--set cluster.gpus=%lld alone will not do: %s",
				      (long long)all, how);
	else if (!all && others > 0)
		ret->next = mo_strdup("--set cluster.gpu=null takes any type");
	return true;
}

void too_large_done(struct too_large *t)
{
	free(t->text);
	free(t->next);
	*t = (struct too_large){ 0 };
}
