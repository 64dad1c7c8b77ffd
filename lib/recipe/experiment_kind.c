/* Which engine kind runs an experiment (experiment_kind.h). Its framework is in the engine's file,
 * and its kind of training is the suite in the engine's own command. */
#include "lib/recipe/experiment_kind.h"

#include <errno.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/engine_load.h"

enum suite { SUITE_NONE, SUITE_PRE, SUITE_POST };

static enum suite suite_of(const struct engine *e)
{
	for (size_t i = 0; i < e->n_argv; i++)
		if (mo_streq(e->argv[i], "pretrain") || mo_streq(e->argv[i], "posttrain"))
			return mo_streq(e->argv[i], "posttrain") ? SUITE_POST : SUITE_PRE;
	return SUITE_NONE;
}

/* Primus takes the one trainer for the other where a file has only that one, and its trainer by
 * `stage`. ret: what of the file says so, for its place. */
static enum suite suite_asked(const struct experiment *x, const char **ret_word,
			      struct config_place *ret)
{
	const struct config_value *stage = config_get(x->merged, "stage");

	*ret_word = x->module;
	*ret = x->module_place;
	if (mo_streq(x->module, "post_trainer"))
		return SUITE_POST;
	if (stage && stage->kind == CONFIG_TEXT && mo_streq(stage->text, "sft")) {
		*ret_word = "stage: sft";
		*ret = stage->place;
		return SUITE_POST;
	}
	return mo_streq(x->module, "pre_trainer") ? SUITE_PRE : SUITE_NONE;
}

static bool runs(const struct engine *e, const struct experiment *x, enum suite suite)
{
	return e->experiment && e->experiment_framework &&
	       mo_streq(e->experiment_framework, x->framework) &&
	       (suite == SUITE_NONE || suite_of(e) == suite);
}

char *experiment_kind(const struct experiment *x, bool post)
{
	struct config_place place;
	const char *word;
	enum suite suite = post ? SUITE_POST : suite_asked(x, &word, &place);
	char **kinds = NULL, *ret = NULL;
	size_t n = 0;

	mo_data_names("engines", &kinds, &n);
	for (size_t i = 0; i < n; i++) {
		struct engine e;

		mo_desc_init(&engine_desc, &e);
		/* names come in no order */
		if (engine_load(kinds[i], &e, NULL) == 0 && runs(&e, x, suite) &&
		    (!ret || strcmp(kinds[i], ret) < 0))
			mo_str_set(&ret, kinds[i]);
		mo_desc_done(&engine_desc, &e);
		free(kinds[i]);
	}
	free(kinds);
	return ret;
}

/* Pretraining's command runs post-training too: Primus takes the post_trainer where there is no
 * pre_trainer, and its `stage` chooses the trainer. A kind for post-training does not promise that
 * of a file for pretraining. */
int experiment_kind_check(const struct engine *e, const struct experiment *x, struct mo_error *err)
{
	struct config_place at;
	const char *word;
	enum suite asked = suite_asked(x, &word, &at);
	bool framework =
		e->experiment_framework && !mo_streq(e->experiment_framework, x->framework);

	if (!framework && (asked != SUITE_PRE || suite_of(e) != SUITE_POST))
		return 0;
	_cleanup_(mo_freep) char *use = experiment_kind(x, false);
	_cleanup_(mo_freep) char *place = experiment_place(x, framework ? x->framework_place : at);

	if (framework)
		mo_error_set(err, -EINVAL, "%s: framework: %s: engine.kind %s is for %s", place,
			     x->framework, e->kind, e->experiment_framework);
	else
		mo_error_set(err, -EINVAL,
			     "%s: %s: this is pretraining, and engine.kind %s is for post-training",
			     place, word, e->kind);
	if (use)
		mo_error_hint(err, "use engine.kind: %s", use);
	else
		mo_error_hint(err, "this version has no engine kind for it; those that it has are "
				   "in docs/engines.md");
	return -EINVAL;
}
