/* Features against the engine, the model and each other: an engine that lacks one says so and
 * what to do; a pipeline layout must be the stages and layers that there are; what an engine's
 * own rules refuse (config/engines: rules), judged by the command that the engine gets in the
 * end: what the recipe brings and engine.args. Every error stands at the guilty value, or at the
 * key of an engine argument without one. */
#include "lib/recipe/rules_features.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/desc.h"
#include "lib/model/layout.h"
#include "lib/recipe/args.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/experiment_record.h"
#include "lib/recipe/features.h"
#include "lib/recipe/rules_seen.h"

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
	rules_data_parallel(k, &command);
	for (size_t i = 0; c && i < c->n_rules; i++)
		rules_check_rule(k, &command, &c->rules[i]);
	args_done(&command);
}
