/* Labels of a job: the user's own words for it, {team: vision, study: lr-sweep}, by which jobs are
 * found again. They decide nothing. */
#pragma once
#include "lib/model/recipe.h"

#define LABEL_BYTES_MAX 63 /* of a name, and of a value */
#define LABEL_CHARS "letters, digits and ._/@:+-, a letter or digit first"

/* [A-Za-z0-9][A-Za-z0-9._/@:+-]{0,62}: a name, or a value. Neither ',' nor '=' is in one, so that
 * a query can hold several. */
bool label_valid(const char *s);
/* Whether they are what is wanted: "NAME", with whatever value, or "NAME=VALUE", several with
 * commas: all of them. */
bool labels_match(const struct kv *labels, size_t n, const char *wanted);
/* Whether that is how labels are asked for. */
bool labels_wanted_valid(const char *wanted);
