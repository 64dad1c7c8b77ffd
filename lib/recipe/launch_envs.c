/* Environments that a script enters: conda, virtual environments, modules. */
#include "lib/recipe/launch_envs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/recipe/launch_found.h"
#include "lib/recipe/launch_options.h"
#include "lib/recipe/launch_run.h"
#include "lib/recipe/shell_vars.h"

/* The environment that `conda activate WORD..` names; NULL = its words are not known here. *prefix:
 * it is a directory. */
static const char *conda_named(const struct shell_words *w, bool *prefix)
{
	const char *name = NULL;

	*prefix = false;
	for (size_t i = 2; i < w->n; i++) {
		const char *word = w->items[i];
		bool dir = mo_streq(word, "-p") || mo_streq(word, "--prefix");

		if (launch_among("--stack --no-stack --dev", word, strlen(word)))
			continue;
		if (dir || mo_streq(word, "-n") || mo_streq(word, "--name"))
			word = ++i < w->n ? w->items[i] : "-";
		if (name || word[0] == '-' || !*word)
			return NULL;
		name = word;
		*prefix = dir || strchr(word, '/');
	}
	return name ? name : "base";
}

/* The directory of an environment; NULL = nobody knows. Caller frees. */
static char *conda_env(const struct run *r, const struct shell_words *w)
{
	bool prefix;
	const char *name = conda_named(w, &prefix);

	if (!name || r->shell.follow != SHELL_RUN || shell_unknown(name))
		return NULL;
	if (prefix)
		return shell_path(&r->shell, name);
	if (!r->conda)
		return NULL;
	return mo_streq(name, "base") ? mo_strdup(r->conda)
				      : mo_printf("%s/envs/%s", r->conda, name);
}

bool launch_take_conda(struct run *r, const struct shell_command *c)
{
	const struct shell_words *w = &c->words;
	bool own = launch_among("conda mamba micromamba", w->items[0], strlen(w->items[0])) ||
		   (mo_streq(w->items[0], "source") && w->n > 2);

	if (w->n < 2 || !own || !mo_streq(w->items[1], "activate"))
		return false;
	_cleanup_(mo_freep) char *env = conda_env(r, w);

	if (env) {
		free(r->python);
		r->python = mo_printf("%s/bin/python3", env);
	} else {
		_cleanup_(mo_freep) char *text = run_joined(w->items, w->n);
		run_name(&r->activated, text);
		if (r->shell.follow == SHELL_RUN)
			mo_str_set(&r->python, NULL); /* not an earlier one's */
	}
	return true;
}

bool launch_take_modules(struct run *r, const struct shell_command *c)
{
	const struct shell_words *w = &c->words;

	if (!launch_among("module ml spack", w->items[0], strlen(w->items[0])))
		return false;
	_cleanup_(mo_freep) char *text = run_joined(w->items, w->n);
	if (r->shell.follow != SHELL_SKIP)
		run_name(&r->modules, text);
	return true;
}
