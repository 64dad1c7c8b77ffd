/* From the text of a recipe to what the core takes: parsed, checked, data files resolved. */
#pragma once
#include "daemon/manager.h"
#include "lib/recipe/recipe_file.h"

void specs_new(struct manager *m);
struct specs *specs_free(struct specs *s);
/* A new submit (caller frees by submit_desc) without user and key; NULL when refused: 422 with errors[] was sent. */
struct submit *spec_make(struct manager *m, struct http_request *r, const char *text, size_t n);
/* The same with values of the query string in it, whose names errors tell. Not kept. */
struct submit *spec_make_set(struct http_request *r, const char *text, size_t n, const struct recipe_set *sets, size_t n_sets);
/* The submit is this user's: what the recipe leaves to his name is put in. -EINVAL with err. */
int spec_for_user(struct submit *s, const char *user, struct mo_error *err);
/* Something is left to the planner: the recipe says parallelism: auto or checkpoint.every: auto. */
bool spec_needs_plan(const struct submit *s);
/* Takes what was left to the planner from a Plan document. -EINVAL with err when nothing fits. */
int spec_apply_plan(struct submit *s, const char *plan, struct mo_error *err);
/* Command and environment layers from recipe and data files. */
int spec_resolve(struct submit *s, struct mo_error *err);
/* 422 with errors[]. */
void spec_refuse(struct http_request *r, const struct recipe_errors *errors);
