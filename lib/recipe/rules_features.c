/* Features against the engine, the model and each other: an engine that lacks one says so and
 * what to do; a pipeline layout must be the stages and layers that there are; what an engine's
 * own rules refuse (config/engines: rules), judged by the command that the engine gets in the
 * end: what the recipe brings and engine.args. Every error stands at the guilty value, or at the
 * key of an engine argument without one. */
#include "lib/recipe/rules_features.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/model/layout.h"
#include "lib/model/limits.h"
#include "lib/recipe/args.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/experiment_record.h"
#include "lib/recipe/features.h"
#include "lib/recipe/keys.h"

#define LL(x) ((long long)(x))

static bool flags_have(const struct rules *k, const char *path, bool with_row)
{
	for (size_t i = 0; i < k->engine->n_flags; i++) {
		_cleanup_(flag_row_done) struct flag_row row =
			flag_row(k->recipe, &k->engine->flags[i]);

		if (mo_streq(row.path, path) && row.applies && with_row)
			return true;
		if (mo_streq(row.path, path) && !with_row)
			return true;
	}
	return false;
}

bool rules_in_words(const struct rules *k, const char *path)
{
	const struct recipe_engine *e = &k->recipe->engine;
	_cleanup_(mo_freep) char *braces = mo_printf("{%s}", path);

	for (size_t i = 0; i < e->n_args; i++)
		if (strstr(e->args[i].key, braces) ||
		    (e->args[i].value && strstr(e->args[i].value, braces)))
			return true;
	for (size_t i = 0; i < e->n_argv; i++)
		if (strstr(e->argv[i], braces))
			return true;
	return false;
}

/* Why the engine has none of it: the file's words for the value, else for the feature. A value
 * that asks for nothing is lacking only where the file names it. */
const char *rules_missing(const struct engine *e, const char *path, const char *value)
{
	_cleanup_(mo_freep) char *exact = mo_printf("%s=%s", path, value);
	const struct engine_checks *c = e->checks;

	for (size_t i = 0; c && i < c->n_missing; i++)
		if (mo_streq(c->missing[i].key, exact) ||
		    ((!mo_starts_with(path, "features.") || feature_asks(value)) &&
		     mo_streq(c->missing[i].key, path)))
			return c->missing[i].value;
	return NULL;
}

static void check_lacking(struct rules *k)
{
	const struct recipe *r = k->recipe;
	size_t none = 0;

	for (size_t i = 0; i < r->n_features; i++) {
		const struct kv *f = &r->features[i];
		_cleanup_(mo_freep) char *path = mo_printf("features.%s", f->key);
		const char *why = rules_missing(k->engine, path, f->value);

		if ((!feature_asks(f->value) && !why) || recipe_leaves(r, path) ||
		    flags_have(k, path, true) || rules_in_words(k, path))
			continue;
		if (why)
			errors_at(k->errors, PLACE(k, path), NULL, "%s: engine %s has no %s: %s",
				  path, r->engine.kind, f->value, why);
		else if (!k->engine->n_flags && none++)
			continue; /* the first one says it of all */
		else if (!k->engine->n_flags)
			errors_at(k->errors, PLACE(k, path), NULL,
				  "%s: engine %s knows no features: give its program a flag of its "
				  "own in engine.args, e.g. with the value {%s}",
				  path, r->engine.kind, path);
		else
			errors_at(k->errors, PLACE(k, path), NULL,
				  "%s: engine %s has no setting for %s: leave it out, or give the "
				  "engine's own flag in engine.args",
				  path, r->engine.kind, f->value);
	}
}

/* The sizes beside wished that, times unit, divide the layers and, alone, what they must divide
 * besides. */
static void tell_near(struct mo_buf *b, const char *what, int64_t wished, int64_t unit,
		      int64_t layers, int64_t besides)
{
	int64_t below = wished - 1, above = wished + 1;

	while (below > 0 && (layers % mo_times(below, unit) || besides % below))
		below--;
	while (mo_times(above, unit) <= layers &&
	       (layers % mo_times(above, unit) || besides % above))
		above++;
	bool more = mo_times(above, unit) <= layers;

	if (below > 0 && more)
		mo_buf_printf(b, "%s%s %lld or %lld", b->len ? ", or " : "use ", what, LL(below),
			      LL(above));
	else if (below > 0 || more)
		mo_buf_printf(b, "%s%s %lld", b->len ? ", or " : "use ", what,
			      LL(below > 0 ? below : above));
}

/* What to write instead: stages that divide the layers and the GPUs, or the layout as even as
 * can be. Caller frees. */
static char *even_hint(const struct rules *k, int64_t stages)
{
	const struct recipe *r = k->recipe;
	const struct recipe_parallelism *p = &r->parallelism;
	int64_t layers = r->model->layers,
		ranks = MO_MAX(r->gpus / MO_MAX(mo_times(p->tp, p->cp), 1), 1);
	_cleanup_(mo_freep) char *layout =
		flags_have(k, "features.pipeline_layout", false)
			? layout_spread(layers, MO_MAX(r->model->mtp, 0), stages)
			: NULL;
	struct mo_buf b = { 0 };

	if (p->vpp > 1 && layers % p->pp == 0)
		tell_near(&b, "vpp", p->vpp, p->pp, layers, layers);
	else
		tell_near(&b, p->vpp > 1 ? "vpp 1 with pp" : "pp", p->pp, 1, layers, ranks);
	if (layout)
		mo_buf_printf(&b, ", or features.pipeline_layout: \"%s\"", layout);
	return mo_buf_take(&b);
}

/* Layers that the engine cannot divide by itself: known of an engine's file, unknown of a
 * script. */
/* Does the engine's own experiment lay the layers out by this key? */
static bool own_layout(const struct rules *k, const char *key)
{
	const struct ynode *v = experiment_key(k->root, key);

	return v && !ynode_is_null(v) && !mo_streq(v->text, "false");
}

static void check_uneven(struct rules *k, const struct args *command)
{
	const struct recipe *r = k->recipe;
	const struct engine_checks *c = k->engine->checks;
	int64_t stages = mo_times(r->parallelism.pp, r->parallelism.vpp);
	const struct ynode *place =
		PLACE(k, r->parallelism.vpp > 1 ? "parallelism.vpp" : "parallelism.pp",
		      "parallelism");

	if (!r->model || r->parallelism.automatic || r->model->layers % stages == 0 ||
	    stages > r->model->layers + 2 || feature_asks(feature_value(r, "pipeline_layout")))
		return;
	for (size_t i = 0; c && i < c->n_layout_flags; i++)
		if (args_find(command, c->layout_flags[i]) ||
		    own_layout(k, c->layout_flags[i] + strspn(c->layout_flags[i], "-")))
			return;
	_cleanup_(mo_freep) char *hint = even_hint(k, stages);

	if (k->engine->even_layers)
		errors_at(k->errors, place, hint,
			  "parallelism.%s: pp %lld x vpp %lld = %lld stages do not divide the "
			  "model's %lld layers, and the recipe has no layout",
			  r->parallelism.vpp > 1 ? "vpp" : "pp", LL(r->parallelism.pp),
			  LL(r->parallelism.vpp), LL(stages), LL(r->model->layers));
	else if (!c || !c->n_layout_flags)
		rules_warn(k, place,
			   "parallelism.%s: pp %lld x vpp %lld = %lld stages do not divide the "
			   "model's %lld layers: the program must have a layout of its own, or %s",
			   r->parallelism.vpp > 1 ? "vpp" : "pp", LL(r->parallelism.pp),
			   LL(r->parallelism.vpp), LL(stages), LL(r->model->layers), hint);
}

/* A layout of the engine's own flags beside sizes that are yet to be chosen. */
static void check_layout_flags(struct rules *k, const struct args *command)
{
	const struct engine_checks *c = k->engine->checks;

	for (size_t i = 0; k->recipe->parallelism.automatic && c && i < c->n_layout_flags; i++) {
		const struct arg *arg = args_find(command, c->layout_flags[i]);

		if (arg && !arg->origin && !arg->off && !rules_unchecked(k, arg->flag))
			errors_at(k->errors, arg->at_flag,
				  "engine.args_unchecked: [FLAG] lets it pass",
				  "engine.args: %s: parallelism: auto may choose other stages: "
				  "give pp and vpp",
				  arg->flag);
	}
}

static void check_layout(struct rules *k)
{
	const struct recipe *r = k->recipe;
	const char *text = feature_value(r, "pipeline_layout");
	const struct ynode *place = PLACE(k, "features.pipeline_layout");
	int64_t stages = mo_times(r->parallelism.pp, r->parallelism.vpp);
	_cleanup_(mo_freep) char *why = NULL;
	_cleanup_(layout_done) struct layout l = { 0 };

	if (!feature_asks(text) || !layout_parse(text, &l, &why))
		return;
	if (r->parallelism.automatic)
		errors_at(k->errors, place, NULL,
			  "features.pipeline_layout: parallelism: auto may choose other stages: "
			  "give pp and vpp");
	else if ((int64_t)l.n_stages != stages)
		errors_at(k->errors, place, NULL,
			  "features.pipeline_layout: %zu stages are not pp %lld x vpp %lld = %lld",
			  l.n_stages, LL(r->parallelism.pp), LL(r->parallelism.vpp), LL(stages));
	if (!r->model)
		return;
	if (l.decoders != r->model->layers)
		errors_at(k->errors, place, "write as many t, such as \"Et*3|t*4,L\" for 7",
			  "features.pipeline_layout: %lld layers (t) are not the model's %lld",
			  LL(l.decoders), LL(r->model->layers));
	/* What Megatron does of a layout of the experiment's own is for it to say. */
	if (l.mtp != MO_MAX(r->model->mtp, 0) && recipe_leaves(r, "features.pipeline_layout"))
		rules_warn(k, place,
			   "features.pipeline_layout: it has %lld MTP layers (m, multi-token "
			   "prediction), the model has %lld: the engine may refuse that; give both "
			   "the same number, or another layout in the recipe",
			   LL(l.mtp), LL(MO_MAX(r->model->mtp, 0)));
	else if (l.mtp != MO_MAX(r->model->mtp, 0))
		errors_at(k->errors, place,
			  r->model->mtp > 0
				  ? "write as many m behind the last t, such as \"...|t,m,L\""
				  : "leave m out, or give the model its mtp",
			  "features.pipeline_layout: it has %lld MTP layers (m, multi-token "
			  "prediction), the model has %lld",
			  LL(l.mtp), LL(MO_MAX(r->model->mtp, 0)));
}

static void check_recompute_layers(struct rules *k)
{
	const struct recipe *r = k->recipe;
	const char *at = feature_value(r, "recompute_layers");
	int64_t last = r->model ? r->model->layers + MO_MAX(r->model->mtp, 0) - 1 : INT64_MAX,
		layer;

	if (!feature_asks(at))
		return;
	if (!mo_streq(r->recompute, "full"))
		errors_at(k->errors, PLACE(k, "recompute", "features.recompute_layers"), NULL,
			  "recompute: %s does not go with features.recompute_layers, which chooses "
			  "the layers of a full recomputation: use full",
			  r->recompute ? r->recompute : "not given");
	while (feature_next_layer(&at, &layer))
		if (layer > last)
			errors_at(k->errors, PLACE(k, "features.recompute_layers"),
				  r->model->mtp > 0
					  ? "an MTP layer has the number behind the last one"
					  : NULL,
				  "features.recompute_layers: there is no layer %lld: the model's "
				  "are 0 to %lld",
				  LL(layer), LL(last));
}

/* A condition looked at: the value of its path (NULL unknown), what to call it, and where the
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

static void check_rule(struct rules *k, const struct args *command, const struct engine_rule *rule)
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

/* Replicas x shards x the other sizes are the GPUs; -1 shards: as many as are left. */
static void check_data_parallel(struct rules *k, const struct args *command)
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

void rules_features(struct rules *k)
{
	const struct engine_checks *c = k->engine->checks;
	struct args command;

	check_lacking(k);
	check_layout(k);
	check_recompute_layers(k);
	args_command(k, &command);
	check_uneven(k, &command);
	check_layout_flags(k, &command);
	check_data_parallel(k, &command);
	for (size_t i = 0; c && i < c->n_rules; i++)
		check_rule(k, &command, &c->rules[i]);
	args_done(&command);
}
