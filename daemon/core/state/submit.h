/* A job as it was submitted. */
#pragma once
#include "daemon/core/state/promise.h"
#include "lib/base/desc.h"
#include "lib/model/engine.h"
#include "lib/model/env_profile.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

/* What of the engine may be the recipe's own: metrics.lines, checkpoint.layout,
 * checkpoint.resume_args, and where hooks prepare it engine.args_unchecked. */
struct engine_own {
	struct line_rule *rules;
	size_t n_rules;
	char **resume;
	size_t n_resume;
	struct ckpt_layout layout;
	struct kv *owned;
	size_t n_owned;
};
/* A submitted job as the shell hands it in: parsed, checked, data files resolved. */
struct submit {
	char *user; /* authenticated submitter, never from the request */
	/* the submitter is root/admin on the UNIX socket or local cluster: may run ranks as the
	 * agent's root if the agent allows it */
	bool allow_root;
	char *idempotency_key, *digest; /* scope = caller; digest = SHA-256 hex of the body */
	char *recipe_text;
	struct recipe recipe;
	struct engine engine;
	char **argv;
	size_t n_argv; /* expanded command without resume/fresh words */
	char **prepare;
	size_t n_prepare; /* words of engine.prepare, none = nothing to prepare */
	/* where the ranks write engine.heartbeat.file, NULL = nowhere */
	char *heartbeat_dir;
	/* what engine file and recipe say themselves */
	struct env_item *env;
	size_t n_env;
	/* those that fit the recipe, in ascending precedence; each node gets those that fit it */
	struct env_profile *profiles;
	size_t n_profiles;
	char **warnings;
	size_t n_warnings;
	/* of cluster.gpu at the recipe's precision, for MFU; unknown without cluster.gpu */
	double peak_tflops;
	struct promise *promise; /* NULL: the planner could not say anything */
	/* only in stored texts (daemon/journal.c): engine and env are those of this id; MO_NONE
	 * here */
	int64_t parts;
	/* only in stored texts, as above: what of the engine is not that of the parts; NULL here */
	struct engine_own *own;
	/* not described: whose engine and profiles are (shared.h); NULL = its own */
	struct shared *shared;
	/* not described: but for engine_own of them, which is this job's */
	bool owns;
};
extern const struct mo_desc engine_own_desc, submit_desc;
