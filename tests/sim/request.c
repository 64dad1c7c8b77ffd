/* What people ask for, as the REST shell hands it in. */
#include "tests/sim/sim.h"

#include <stdlib.h>

static void recipe_of(struct sim *s, const struct op *op, struct submit *spec)
{
	/* the same body at every retry */
	uint64_t h = ((uint64_t)op->key + 1) * 0x9e3779b97f4a7c15u ^ s->seed;
	static const int64_t sizes[] = { 1, 2, 3, 4, 4, 8, 8, 12, 16, 24, 32, 48 };

	h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9u;
	spec->user = mo_strdup(op->key % 3 ? "ann" : "bob");
	spec->idempotency_key = mo_printf("k%lld", (long long)op->key);
	spec->digest = mo_printf("d%lld", (long long)op->key);
	spec->recipe.name = mo_printf("job-%lld", (long long)op->key);
	spec->recipe.gpus = op->key % 40 == 39 ? NODES * GPUS + 1 : sizes[h % ELEMENTSOF(sizes)];
	spec->recipe.spares = (h >> 52 & 7) == 3 ? 1 + (int64_t)(h >> 55 & 1) : 0;
	spec->recipe.priority = (int64_t)(h >> 8) % 100;
	spec->recipe.stop_signal = 15;
	spec->recipe.stop_grace_us = (int64_t)(1 + (h >> 16) % 10) * S;
	spec->recipe.max_cycles = 3;
	spec->recipe.hang = mo_strdup("auto");
	spec->recipe.loss_action = mo_strdup(op->key % 7 == 0   ? "none"
					     : op->key % 7 <= 3 ? "rollback"
								: "report");
	spec->recipe.straggler = mo_strdup(op->key % 5 == 2 ? "report" : "drain");
	spec->recipe.grace_us = h >> 24 & 7 ? 0 : 3 * S;
	/* 5: there is none */
	spec->recipe.checkpoint.resume = (h >> 28 & 15) == 1 ? -2 : (h >> 28 & 15) == 2 ? 5 : -1;
	mo_str_set(&spec->recipe.checkpoint.verify, (h >> 56 & 3) == 1 ? "crc" : NULL);
	spec->recipe.checkpoint.keep = (h >> 58 & 3) == 1 ? KEEP : 0;
	spec->recipe.time_limit_us = (h >> 44 & 15) == 3 ? 60 * S : MO_NONE;
	if ((h >> 60 & 7) < 2)
		mo_strs_add(&spec->recipe.preflight, &spec->recipe.n_preflight,
			    (h >> 60 & 7) == 0 ? "none" : "gpu.ras_ue");
	spec->recipe.parallelism.tp = (h >> 48 & 3) == 1 ? 2 : 1;
	if (h >> 32 & 3)
		/* some name another job's */
		spec->recipe.checkpoint.dir =
			mo_printf(op->key % 9 == 8 ? "/ckpt//%lld/" : "/ckpt/%lld",
				  (long long)(op->key % 9 == 8 ? op->key / 18 : op->key));
	if (op->key % 4 == 2) {
		spec->recipe.engine.container = mo_desc_new(&recipe_container_desc);
		spec->recipe.engine.container->image = mo_strdup("dir:/images/train");
	}
	if (h >> 36 & 7)
		spec->recipe.steps = (int64_t)(20 + (h >> 40) % (op->key % 5 == 1 ? 200 : 60));
	spec->engine.kind = mo_strdup("torch");
	mo_strs_add(&spec->engine.layout.markers, &spec->engine.layout.n_markers, "COMPLETE");
	spec->engine.layout.announced_is_complete = op->key % 3 == 2;
	spec->engine.metrics_rank = (int)((h >> 52) % 2);
	mo_strs_add(&spec->argv, &spec->n_argv, "/bin/train");
	if (op->key % 3 == 1) {
		struct env_item *item = MO_ADD(spec, env, &env_item_desc);

		item->name = mo_strdup("API_KEY");
		item->file = mo_strdup("/home/ann/key");
		item->layer = ENV_RECIPE;
	}
}

void request_input(struct sim *s, const struct op *op, struct core_input *in)
{
	const char *node = op->node >= 0 ? s->nodes[op->node].name : NULL;

	in->type = op->type;
	in->by.user = mo_strdup("op");
	in->by.may_all = true;
	switch (op->type) {
	case IN_SUBMIT:
		in->submit = mo_desc_new(&submit_desc);
		recipe_of(s, op, in->submit);
		break;
	case IN_CANCEL:
		in->cancel = mo_desc_new(&in_cancel_desc);
		*in->cancel = (struct in_cancel){ .job = op->job, .now = op->flag };
		break;
	case IN_PAUSE:
		in->pause = mo_desc_new(&in_pause_desc);
		in->pause->job = op->job;
		break;
	case IN_RESUME:
		in->resume = mo_desc_new(&in_resume_desc);
		in->resume->job = op->job;
		break;
	case IN_RESTART:
		in->restart = mo_desc_new(&in_restart_desc);
		*in->restart = (struct in_restart){ .job = op->job, .from_iteration = op->value };
		break;
	case IN_DRAIN:
		in->drain = mo_desc_new(&in_drain_desc);
		*in->drain = (struct in_drain){ .node = mo_strdup(node),
						.reason = mo_strdup("maintenance"),
						.when = mo_strdup(op->when) };
		break;
	case IN_UNDRAIN:
		in->undrain = mo_desc_new(&in_undrain_desc);
		in->undrain->node = mo_strdup(node);
		break;
	case IN_TOKEN: break; /* moed.c */
	case IN_TOKEN_REVOKE:
		in->token_id = mo_desc_new(&in_token_id_desc);
		in->token_id->id = mo_strdup(op->token);
		break;
	case IN_FENCE:
		in->fence = mo_desc_new(&in_fence_desc);
		*in->fence = (struct in_fence){ .node = mo_strdup(node),
						.boot_seen = mo_strdup(op->boot) };
		break;
	default:
		in->resolve = mo_desc_new(&in_resolve_desc);
		*in->resolve = (struct in_resolve){ .job = op->job,
						    .attempt = op->value,
						    .how = mo_strdup(op->when),
						    .node = mo_strdup(node) };
	}
}
