/* From the text of a recipe to what the core takes: parsed, checked, data files resolved. */
#pragma once
#include "daemon/manager.h"
#include "lib/recipe/set.h"

void specs_new(struct manager *m);
struct specs *specs_free(struct specs *s);
/* Called with the recipe of r's body as a submit (taken) without user and key. Not called when
 * it was refused, or r's client left. */
typedef void (*spec_fn)(struct manager *m, struct http_request *r, struct submit *spec);
/* What else must hold, and what is to be added, before the submit is given to done: false with
 * *ret_why (caller frees): 422. It may run in a child, so it changes nothing but the submit. */
typedef bool (*spec_check)(const struct manager *m, struct submit *spec, char **ret_why);
/* sets: values of the query string that come into the recipe, whose names errors tell. */
struct spec_wish {
	spec_fn done;
	spec_check check;
	struct recipe_set *sets;
	size_t n_sets;
};
/* Reads the body of r: at once, or, above 64 kB, in a child with limits on CPU time and memory.
 * Refusals are answered: 422 with errors[], 429 when there are too many children. */
void spec_read(struct manager *m, struct http_request *r, const struct spec_wish *wish);
/* The submit is this user's: what the recipe leaves to his name is put in. -EINVAL with err. */
int spec_for_user(struct submit *s, const char *user, struct mo_error *err);
/* Something is left to the planner: the recipe says parallelism: auto or checkpoint.every: auto. */
bool spec_needs_plan(const struct submit *s);
/* Takes what was left to the planner from a Plan document. -EINVAL with err when nothing fits. */
int spec_apply_plan(struct submit *s, const char *plan, struct mo_error *err);
/* Command and environment layers from recipe and data files. */
int spec_resolve(struct submit *s, struct mo_error *err);
