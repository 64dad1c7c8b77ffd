/* See progress_view.h. */
#include "daemon/core/view/progress_view.h"

#include "daemon/core/view/view.h"

static const struct mo_field progress_view_fields[] = {
	MO_D_ID(progress_view, job, job_prefix, "id of the job"),
	MO_D_ENUM(progress_view, state, job_state_names, "state of the job"),
	MO_D(progress_view, attempt, MO_INT, "number of the newest attempt"),
	MO_D(progress_view, iteration, MO_INT, "newest iteration"),
	MO_D(progress_view, steps, MO_INT, "iterations it is to run"),
	MO_D(progress_view, eta_s, MO_REAL, "seconds to its last iteration"),
	MO_D_SUB(progress_view, sample, MO_OPT, &sample_desc,
		 "newest sample of this attempt; null: there is none yet"),
};
const struct mo_desc progress_view_desc = MO_DESC(progress_view, progress_view_fields);

void progress_view_of(const struct job *j, struct progress_view *ret)
{
	const struct job_progress *p = &j->progress;
	const struct sample *newest = p->n_samples ? &p->samples[p->n_samples - 1] : NULL;

	ret->job = j->id;
	ret->state = j->state;
	ret->attempt = j->attempt;
	ret->iteration = job_shown_iteration(j);
	ret->steps = j->spec.recipe.steps;
	ret->eta_s = job_eta_s(j);
	if (newest && newest->attempt == j->attempt)
		ret->sample = mo_desc_dup(&sample_desc, newest);
}
