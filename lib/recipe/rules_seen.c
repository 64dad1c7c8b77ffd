/* What an engine's own rules refuse (config/engines: rules), judged by the command that the engine
 * gets in the end. */
#include "lib/recipe/rules_seen.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/recipe/args.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/features.h"
#include "lib/recipe/keys.h"

/* A condition that was read: the value of its path (NULL unknown), what to call it, and where the
 * recipe gives it (NULL = nowhere). */
struct seen {
	char *name, *value;
	const struct ynode *at;
};

static void seen_done(struct seen *s)
{
	free(s->name);
	free(s->value);
}

/* What the engine's own experiment says where the command says nothing. */
static struct seen see_file(const struct rules *k, const char *flag)
{
	const struct ynode *node = ynode_get(ynode_find(k->root, "experiment.args"), flag);
	bool there = node && node->kind == YAML_SCALAR;

	return (struct seen){ there ? mo_strdup(flag) : mo_printf("engine.args.%s", flag),
			      there ? mo_strdup(node->text) : NULL, there ? node : NULL };
}

/* args.FLAG is what stands on the command in the end: named by the recipe value that brings it,
 * else as a word of engine.args. */
static struct seen see_arg(const struct rules *k, const struct args *command, const char *path)
{
	const char *flag = path + strlen("args.");
	const struct arg *arg = args_find(command, flag);
	_cleanup_(mo_freep) char *value = NULL;

	if (!arg && !rules_unchecked(k, flag))
		return see_file(k, flag);
	if (!arg || (!arg->origin && rules_unchecked(k, arg->flag)))
		return (struct seen){ .name = mo_printf("engine.%s", path) };
	/* the command's word for nothing */
	if (k->engine->experiment && mo_streq(arg_text(arg), "None"))
		return (struct seen){ .name = mo_printf("engine.%s", path), .at = arg->at_value };
	if (!arg->origin || !*arg->origin)
		return (struct seen){ mo_printf("engine.args.%s", flag), mo_strdup(arg_text(arg)),
				      arg->at_value };
	value = recipe_value(k->recipe, arg->origin);
	return (struct seen){ mo_printf("%s%s%s (%s)", arg->origin, value ? " " : "",
					value ? value : "", flag),
			      mo_strdup(arg_text(arg)), arg->at_value };
}

/* An experiment that was not read may say anything of what neither the recipe nor the command
 * does. */
static bool is_open(const struct rules *k, const struct args *command, const char *path)
{
	if (!engine_has_values(k->engine) || k->recipe->experiment_hash)
		return false;
	if (mo_starts_with(path, "args."))
		return !args_find(command, path + strlen("args."));
	if (mo_streq(path, "derived.stages"))
		return is_open(k, command, "parallelism.pp") ||
		       is_open(k, command, "parallelism.vpp");
	return recipe_leaves(k->recipe, path) && !ynode_find(k->root, path);
}

static struct seen see(const struct rules *k, const struct args *command, const char *path)
{
	const struct ynode *node = ynode_find(k->root, path);
	char *value;

	if (mo_starts_with(path, "args."))
		return see_arg(k, command, path);
	if (mo_streq(path, "derived.stages")) {
		value = recipe_value(k->recipe, path);
		node = ynode_find(k->root, k->recipe->parallelism.vpp > 1 ? "parallelism.vpp"
									  : "parallelism.pp");
		return (struct seen){ mo_printf("pp x vpp %s", value), value, node };
	}
	if (mo_starts_with(path, "env."))
		value = node && node->kind == YAML_SCALAR ? mo_strdup(node->text) : NULL;
	else if (mo_streq(path, "parallelism.schedule") && !k->recipe->parallelism.schedule)
		value = mo_strdup(k->recipe->parallelism.vpp > 1 ? "interleaved" : "1f1b");
	else
		value = mo_starts_with(path, "features.")
				? mo_strdup(feature_value(k->recipe, path + strlen("features.")))
				: recipe_value(k->recipe, path);
	return (struct seen){ mo_strdup(path), value, node };
}

/* A word for a number that nobody can compare is refused instead of passed by. */
static bool unreadable(struct rules *k, const struct kv *c, const struct seen *s,
		       const struct engine_rule *rule)
{
	if (!condition_unreadable(c->value, s->value))
		return false;
	if (s->at && s->value && !rules_said(k, s->at))
		errors_at(k->errors, s->at, NULL, "%s: expected a number, got '%.60s': %s", s->name,
			  s->value, rule->because);
	return true;
}

/* What was found of a rule's `when`: words for it, the last value's place, and whether the
 * recipe has a part in it. */
struct found {
	struct mo_buf words;
	const struct ynode *at;
	bool recipe;
};

static void note_when(struct found *f, const struct seen *s)
{
	bool whole = strchr(s->name, ' '); /* the name has the value in it */

	mo_buf_printf(&f->words, "%s%s%s%s", f->words.len ? " and " : "", s->name, whole ? "" : " ",
		      whole ? "" : s->value);
	if (s->at && s->at->left)
		mo_buf_printf(&f->words, " (%s)", s->at->set);
	f->recipe = f->recipe || !s->at || !s->at->left;
}

static bool rule_applies(struct rules *k, const struct args *command,
			 const struct engine_rule *rule, struct found *ret)
{
	for (size_t i = 0; i < rule->n_when; i++) {
		_cleanup_(seen_done) struct seen s = see(k, command, rule->when[i].key);

		if (is_open(k, command, rule->when[i].key) ||
		    unreadable(k, &rule->when[i], &s, rule) ||
		    !condition_holds(rule->when[i].value, s.value))
			return false;
		if (s.value && !strstr(rule->when[i].value, "missing"))
			note_when(ret, &s);
		ret->at = s.at ? s.at : ret->at;
	}
	return true;
}

/* Sizes that the planner has yet to choose cannot be judged. */
static bool waits_for_plan(const struct rules *k, const struct engine_rule *rule)
{
	const struct {
		const struct kv *items;
		size_t n;
	} parts[] = { { rule->when, rule->n_when },
		      { rule->refuse, rule->n_refuse },
		      { rule->need, rule->n_need } };

	for (size_t p = 0; k->recipe->parallelism.automatic && p < ELEMENTSOF(parts); p++)
		for (size_t i = 0; i < parts[p].n; i++)
			if (mo_starts_with(parts[p].items[i].key, "parallelism.") ||
			    mo_streq(parts[p].items[i].key, "derived.stages"))
				return true;
	return false;
}

static void check_condition(struct rules *k, const struct args *command,
			    const struct engine_rule *rule, const struct kv *c, bool must,
			    const struct found *when)
{
	_cleanup_(seen_done) struct seen s = see(k, command, c->key);
	_cleanup_(mo_freep) char *want = recipe_expand(k->recipe, c->value, NULL);
	const struct ynode *at = s.at ? s.at : when->at;
	bool whole = strchr(s.name, ' ');

	if (is_open(k, command, c->key) || unreadable(k, c, &s, rule) ||
	    condition_holds(want, s.value) == must || rules_said(k, at))
		return;
	_cleanup_(mo_freep) char *text =
		mo_printf("%s%s%s does not go with %s: %s: %s", s.name, whole ? "" : ": ",
			  whole     ? ""
			  : s.value ? s.value
				    : "not given",
			  when->words.data ? when->words.data : "the rest", rule->because,
			  rule->instead);

	if (rule->warns || (rule->files_may && !when->recipe && s.at && s.at->left))
		rules_warn(k, at, "%s", text);
	else
		errors_at(k->errors, at, NULL, "%s", text);
}

void rules_check_rule(struct rules *k, const struct args *command, const struct engine_rule *rule)
{
	struct found when = { .at = k->root };

	if (!waits_for_plan(k, rule) && rule_applies(k, command, rule, &when)) {
		for (size_t i = 0; i < rule->n_refuse; i++)
			check_condition(k, command, rule, &rule->refuse[i], false, &when);
		for (size_t i = 0; i < rule->n_need; i++)
			check_condition(k, command, rule, &rule->need[i], true, &when);
	}
	mo_buf_done(&when.words);
}

/* A degree of files or engine.args, else what the engine takes without. False: nobody knows. */
static bool degree(const struct rules *k, const struct args *command, const char *flag,
		   int64_t fallback, struct seen *ret_seen, int64_t *ret)
{
	_cleanup_(mo_freep) char *path = mo_printf("args.%s", flag);

	*ret_seen = see(k, command, path);
	*ret = fallback;
	if (!ret_seen->value)
		return !is_open(k, command, path) && !rules_unchecked(k, flag);
	return mo_parse_i64(ret_seen->value, -1, MO_RANKS_MAX, ret) == 0;
}

void rules_data_parallel(struct rules *k, const struct args *command)
{
	const struct recipe *r = k->recipe;
	const struct recipe_parallelism *p = &r->parallelism;
	char *const *flags = k->engine->checks ? k->engine->checks->data_parallel : NULL;
	_cleanup_(seen_done) struct seen by_replicas = { 0 }, by_shards = { 0 };
	int64_t replicas, shards, rest = mo_times(p->tp, mo_times(p->pp, p->cp));

	if (!flags || !r->experiment_hash || r->unread || p->automatic || rest < 1 ||
	    r->gpus % rest)
		return;
	int64_t dp = r->gpus / rest;

	if (!degree(k, command, flags[0], 1, &by_replicas, &replicas) ||
	    !degree(k, command, flags[1], -1, &by_shards, &shards) || replicas < 1 || !shards)
		return;
	if (shards < 0 ? dp % replicas == 0 : mo_times(replicas, shards) == dp)
		return;
	bool blame = dp % replicas != 0;
	const struct ynode *at = blame ? by_replicas.at : by_shards.at;

	if (!at || rules_said(k, at))
		return;
	_cleanup_(mo_freep) char *use = blame ? mo_printf("use 1, or what divides %lld", LL(dp))
					      : mo_printf("use -1 or %lld", LL(dp / replicas));
	_cleanup_(mo_freep) char *given =
		shards < 0 ? mo_strdup("") : mo_printf(" x shards %lld", LL(shards));

	errors_at(k->errors, at, use,
		  "%s: replicas %lld%s x tp %lld x pp %lld x cp %lld %s cluster.gpus %lld",
		  blame ? flags[0] : flags[1], LL(replicas), given, LL(p->tp), LL(p->pp), LL(p->cp),
		  shards < 0 ? "does not divide" : "is not", LL(r->gpus));
}
