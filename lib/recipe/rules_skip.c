/* See rules_skip.h. */
#include "lib/recipe/rules_skip.h"

#include <string.h>

#include "lib/recipe/argv.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/word_flags.h"

/* The flag by which the engine leaves data out, as the command of the recipe has it already: of two
 * the last one counts, and the recipe's own iterations would be trained. */
static bool given(const struct rules *k, const char *flag)
{
	struct word_flags flags = { 0 };
	char **words = NULL;
	size_t n = 0;
	bool found = false;

	engine_argv(k->engine, k->recipe, &words, &n);
	word_flags_read(words, n, &flags);
	flag += strspn(flag, "-");
	for (size_t i = 0; i < flags.n; i++)
		found |= flags.items[i].name && flag_same(flags.items[i].name, flag, strlen(flag));
	word_flags_done(&flags);
	mo_strs_clear(&words, &n);
	return found;
}

void rules_skip(struct rules *k)
{
	static const char key[] = "recovery.loss_spike.skip";
	const struct engine *e = k->engine;

	if (k->recipe->skips == MO_NONE || k->recipe->skips == 0)
		return;
	if (!e->n_skip)
		errors_at(k->errors, PLACE(k, key), NULL,
			  "%s: engine %s has no option by which it leaves data out: leave the key "
			  "out, and the job goes back without it",
			  key, k->recipe->engine.kind);
	else if (given(k, e->skip[0]))
		errors_at(k->errors, PLACE(k, key), NULL,
			  "%s: the command has %s of its own, and the engine takes one of them "
			  "only: leave one of both out",
			  key, e->skip[0]);
}
