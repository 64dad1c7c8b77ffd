/* What may differ between the run that saved a checkpoint and the one that resumes from it: the
 * engine file says it (may_change). Called by the controller when a job is submitted whose
 * checkpoint.dir an earlier job has saved to. */
#include "lib/recipe/resume.h"

#include <string.h>

#include "lib/recipe/keys.h"

/* Values that are part of what lies in a checkpoint, or of how it is divided. dp follows from
 * the number of GPUs. */
static const char *const saved_with[] = {
	"cluster.gpus",
	"parallelism.tp",
	"parallelism.pp",
	"parallelism.vpp",
	"parallelism.ep",
	"parallelism.etp",
	"parallelism.cp",
	"parallelism.dp",
	"parallelism.sharding",
	"model.layers",
	"model.hidden",
	"model.heads",
	"model.kv_heads",
	"model.head_dim",
	"model.ffn",
	"model.vocab",
	"model.tied",
	"model.mtp",
	"model.moe.experts",
	"model.moe.ffn",
	"model.moe.shared_ffn",
	"model.moe.dense_layers",
	"model.moe.every",
	"model.mla.q_lora",
	"model.mla.kv_lora",
	"model.mla.qk_nope",
	"model.mla.qk_rope",
	"model.mla.v",
};

char *recipe_changed(const struct recipe *before, const struct recipe *now, const struct engine *e)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; e->n_may_change && i < ELEMENTSOF(saved_with); i++) {
		_cleanup_(mo_freep) char *old = recipe_value(before, saved_with[i]),
					 *new = recipe_value(now, saved_with[i]);
		bool may = false;

		for (size_t k = 0; k < e->n_may_change; k++)
			may |= mo_streq(e->may_change[k], saved_with[i]) ||
			       (mo_streq(saved_with[i], "parallelism.dp") &&
				mo_streq(e->may_change[k], "cluster.gpus"));
		if (old && new && !may && !mo_streq(old, new))
			mo_buf_printf(&b, "%s%s %s instead of %s", b.len ? ", " : "", saved_with[i],
				      new, old);
	}
	return b.len ? mo_buf_take(&b) : NULL;
}
