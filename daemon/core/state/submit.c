/* Descriptions of submit.h. */
#include "daemon/core/state/submit.h"

#include "daemon/core/state/shared.h"
#include "lib/base/util.h"

static const struct mo_field engine_own_fields[] = {
	MO_D_VEC(engine_own, rules, &line_rule_desc, "metrics.lines of the recipe"),
	MO_D_LIST(engine_own, resume, MO_STRS, "checkpoint.resume_args of the recipe"),
	MO_D_SUB(engine_own, layout, MO_STRUCT, &ckpt_layout_desc,
		 "checkpoint.layout of the recipe"),
	MO_D_VEC(engine_own, owned, &kv_desc,
		 "engine.args_unchecked of a recipe whose hooks prepare it"),
};
const struct mo_desc engine_own_desc = MO_DESC(engine_own, engine_own_fields);
static const struct mo_field submit_fields[] = {
	MO_D(submit, user, MO_STR, "authenticated submitter, never from the request"),
	MO_D(submit, allow_root, MO_BOOL,
	     "ranks may run as the agent's root, if the agent allows it"),
	MO_D(submit, idempotency_key, MO_STR,
	     "chosen by the caller: the same one again is the same job"),
	MO_D(submit, digest, MO_STR, "SHA-256 of the request's body, hex"),
	MO_D(submit, recipe_text, MO_STR, "as it was sent"),
	MO_D_SUB(submit, recipe, MO_STRUCT, &recipe_desc,
		 "parsed and checked, with its data files resolved"),
	MO_D_SUB(submit, engine, MO_STRUCT, &engine_desc,
		 "what the engine file says, with the recipe's own words"),
	MO_D_LIST(submit, argv, MO_STRS,
		  "expanded command without words for resuming or starting afresh"),
	MO_D_LIST(submit, prepare, MO_STRS, "words of engine.prepare; empty: nothing to prepare",
		  .omit = true),
	MO_D(submit, heartbeat_dir, MO_STR,
	     "where ranks write engine.heartbeat.file; null: nowhere", .omit = true),
	MO_D_VEC(submit, env, &env_item_desc,
		 "variables that engine file and recipe say themselves"),
	MO_D_VEC(submit, profiles, &env_profile_desc,
		 "those that fit the recipe, in ascending precedence"),
	MO_D_LIST(submit, warnings, MO_STRS, "what the submitter was answered, a line each"),
	MO_D(submit, peak_tflops, MO_REAL,
	     "of a GPU at the recipe's precision, TFLOPS; null: cluster.gpu is not said"),
	MO_D_SUB(submit, promise, MO_OPT, &promise_desc,
		 "what the planner said; null: it could not say anything", .omit = true),
	MO_D(submit, parts, MO_INT,
	     "only in stored texts: engine and variables are those of this number", .omit = true),
	MO_D_SUB(submit, own, MO_OPT, &engine_own_desc,
		 "only in stored texts: what of the engine is not that of the parts", .omit = true),
};
const struct mo_desc submit_desc = {
	.name = "submit",
	.size = sizeof(struct submit),
	.fields = submit_fields,
	.n_fields = ELEMENTSOF(submit_fields),
	.before_done = submit_unshare,
};
