/* update.c's part for REC_CONFIG: from then on the job is what its node's files say. Called by
 * core_update() only. */
#include "daemon/core/update/update_config.h"

#include <errno.h>

#include "daemon/core/state/shared_words.h"
#include "daemon/core/update/attempt.h"
#include "daemon/core/update/claims.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/retained.h"

int update_config(struct core *c, const struct record *r)
{
	struct job *j = job_edit(&c->owned, r->job);
	const struct config_read *read = r->config;

	if (!j)
		return -EINVAL;
	j->config.due = false;
	mo_str_set(&j->config.hash, read->hash);
	mo_str_set(&j->config.refused, read->refused);
	claims_remove_job(c, j);
	mo_str_set(&j->saves.by_config, read->refused ? NULL : read->directory);
	if (read->recipe && !read->refused) {
		words_own(&j->spec); /* it is changed */
		recipe_take_read(&j->spec.recipe, read->recipe);
	}
	if (!job_state_final(j->state))
		claims_add_job(c, j);
	if (!read->recipe || read->refused)
		return 0;
	/* What was measured was held against the plan of another configuration. */
	if (read->promise || j->spec.promise) {
		mo_desc_free(&promise_desc, j->spec.promise);
		j->spec.promise = mo_desc_dup(&promise_desc, read->promise);
	}
	words_lend_all(&j->spec); /* before it is counted, which may let it go */
	retained_count(c, j);
	ranks_place(j);
	return 0;
}
