/* What engine.prepare tells about the ranks that follow it, as Primus' hooks do: lines
 * "env.NAME=VALUE" and "extra.key=value". Pure. Untrusted: bounded, names are checked. */
#pragma once
#include "lib/model/launch.h"

#define HOOKS_MAX 256 /* of each kind */

/* refused: no name, or beyond the limit */
struct hooks {
	struct kv *env;
	size_t n_env;
	struct kv *extra;
	size_t n_extra;
	int64_t refused;
};
void hooks_done(struct hooks *h);
void hooks_line(struct hooks *h, const char *line, size_t n);
/* NULL, or why the node must not start its ranks: an extra gives a flag that belongs to moectl
 * or to the recipe (launch.owned) another value (caller frees). */
char *hooks_refusal(const struct hooks *h, const struct launch *l);
/* Variables come above those of features and below the recipe's; an extra becomes --key value,
 * or the bare --key, at the end of the command, unless the command says the same already; one of
 * launch.main_words becomes key=value, the only form that reaches training. */
void hooks_apply(const struct hooks *h, struct launch *l);
