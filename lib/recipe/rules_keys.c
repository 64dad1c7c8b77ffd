/* Flags of engine.args against the list that the engine's file gives for the version it was read
 * from: renamed ones, near misses, and others that are not in the list. */
#include "lib/recipe/rules_keys.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/args.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/rules_types.h"

/* As the lists are compared: no dashes in front, '_' as '-'; what stands behind '=' falls. */
static char *plain_flag(const char *flag)
{
	char *s = mo_strndup(flag + strspn(flag, "-"), strcspn(flag + strspn(flag, "-"), "="));

	for (char *c = s; *c; c++)
		if (*c == '_')
			*c = '-';
	return s;
}

struct flags {
	char **names;
	size_t n, n_passed;
}; /* n_passed: unknown ones that were reported */

static void add_flag_words(struct flags *f, const char *words)
{
	for (const char *s = words; *s;) {
		size_t n = strcspn(s, " ");
		_cleanup_(mo_freep) char *word = mo_strndup(s, n), *plain = plain_flag(word);

		if (*word == '-' || strchr(word, '='))
			mo_strs_add(&f->names, &f->n, plain);
		s += n + (s[n] == ' ');
	}
}

/* The list, and every flag that the file itself uses. */
static struct flags known_flags(const struct engine *e)
{
	struct flags f = { 0 };

	for (size_t i = 0; i < e->checks->n_keys; i++) {
		_cleanup_(mo_freep) char *plain = plain_flag(e->checks->keys[i]);

		mo_strs_add(&f.names, &f.n, plain);
	}
	for (size_t i = 0; i < e->n_argv; i++)
		add_flag_words(&f, e->argv[i]);
	for (size_t i = 0; i < e->n_resume; i++)
		add_flag_words(&f, e->resume[i]);
	for (size_t i = 0; i < e->n_flags; i++)
		add_flag_words(&f, e->flags[i].value);
	return f;
}

static const char *renamed_to(const struct engine_checks *c, const char *flag)
{
	for (size_t i = 0; i < c->n_renamed; i++)
		if (flag_same(flag, c->renamed[i].key, strlen(c->renamed[i].key)))
			return c->renamed[i].value;
	return NULL;
}

/* The flag as the file writes it: its lists keep the engine's own spelling. */
static const char *spelling(const struct engine_checks *c, const char *plain)
{
	for (size_t i = 0; i < c->n_keys; i++)
		if (flag_same(plain, c->keys[i], strlen(c->keys[i])))
			return c->keys[i];
	return plain;
}

const char *rules_dropped(const struct engine *e, const char *flag)
{
	const char *name = flag + strspn(flag, "-");

	if (!e->experiment || !e->checks || !memchr(name, '-', strcspn(name, "=")))
		return NULL;
	for (size_t i = 0; i < e->checks->n_keys; i++)
		if (!strchr(e->checks->keys[i], '-') &&
		    flag_same(name, e->checks->keys[i], strlen(e->checks->keys[i])))
			return e->checks->keys[i];
	return NULL;
}

/* --compile.no-enable: the flag by which a bool, --compile.enable, is false where no word says
 * it. */
static bool says_no(const struct engine *e, const char *plain)
{
	const char *dot = strrchr(plain, '.'), *name = dot ? dot + 1 : plain;

	if (e->bool_words || !mo_starts_with(name, "no-"))
		return false;
	_cleanup_(mo_freep) char *flag =
		mo_printf("%.*s%s", (int)(name - plain), plain, name + strlen("no-"));

	return mo_streq(rules_type(e->checks, flag), "bool");
}

static void check_key(struct rules *k, struct flags *known, const struct arg *arg)
{
	const struct engine_checks *c = k->engine->checks;
	const char *to = renamed_to(c, arg->flag),
		   *source = c->keys_source ? c->keys_source : k->engine->source;
	_cleanup_(mo_freep) char *plain = plain_flag(arg->flag);

	if (to) {
		errors_at(k->errors, arg->at_flag, "engine.args_unchecked: [FLAG] lets it pass",
			  "engine.args: %s does not exist in %s any more: %s", arg->flag, source,
			  to);
		return;
	}
	const char *meant = rules_dropped(k->engine, arg->flag);

	if (meant) {
		errors_at(k->errors, arg->at_flag, "engine.args_unchecked: [FLAG] lets it pass",
			  "engine.args: Primus does not know '%s' and drops it: write %s",
			  arg->flag + strspn(arg->flag, "-"), meant);
		return;
	}
	for (size_t i = 0; i < known->n; i++)
		if (known->names[i][0] == *plain && strcmp(known->names[i], plain) == 0)
			return;
	if (says_no(k->engine, plain))
		return;
	const char *near = mo_near_miss(plain, (const char *const *)known->names, known->n);

	if (near) {
		_cleanup_(mo_freep) char *hint =
			mo_printf("did you mean '%s'? engine.args_unchecked: [FLAG] lets it pass",
				  spelling(c, near));

		errors_at(k->errors, arg->at_flag, hint, "engine.args: unknown flag '%.60s' of %s",
			  arg->flag, source);
	} else if (k->recipe->engine.strict_args)
		errors_at(k->errors, arg->at_flag, "engine.args_unchecked: [FLAG] lets it pass",
			  "engine.args: unknown flag '%.60s' of %s", arg->flag, source);
	else if (known->n_passed++)
		rules_warn(k, arg->at_flag,
			   "engine.args: unknown flag '%.60s' too: it is passed on", arg->flag);
	else
		rules_warn(k, arg->at_flag,
			   "engine.args: unknown flag '%.60s' of %s%s: it is passed on; "
			   "engine.args_unchecked: [FLAG] says that you know it",
			   arg->flag, source,
			   c->keys_complete ? "" : " (whose list is not complete)");
}

void rules_keys(struct rules *k)
{
	const struct engine_checks *c = k->engine->checks;
	struct flags known;
	struct args args;

	if (!c || !c->n_keys) {
		if (k->recipe->engine.strict_args)
			errors_at(k->errors, PLACE(k, "engine.strict_args"), NULL,
				  "engine.strict_args: engine %s has no list of its flags to check "
				  "engine.args by: leave it out",
				  k->recipe->engine.kind);
		return;
	}
	known = known_flags(k->engine);
	args_read(k, &args);
	for (size_t i = 0; i < args.n; i++)
		if (!rules_unchecked(k, args.items[i].flag))
			check_key(k, &known, &args.items[i]);
	args_done(&args);
	for (size_t i = 0; i < known.n; i++)
		free(known.names[i]);
	free(known.names);
}
