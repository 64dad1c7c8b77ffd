/* engine.prepare in documents: what prepared.c measured, for `show`, `report` and `why`. While
 * it runs the controller knows only that the node has the launch and no rank of it. Reads only. */
#include "daemon/core/view/view.h"

#include "daemon/core/view/prepare.h"
#include "daemon/core/view/why_view.h"
#include "lib/base/buf.h"

#define NODES_REPORTED 20

static const struct mo_field prepare_view_fields[] = {
	MO_D(prepare_view, text, MO_STR, "how long it took, in words"),
	MO_D(prepare_view, gpu_s, MO_REAL, "GPU-seconds that it cost in all attempts"),
	MO_D_VEC(prepare_view, nodes, &prepared_desc,
		 "the slowest 256 nodes of the newest attempt, longest first"),
};
const struct mo_desc prepare_view_desc = MO_DESC(prepare_view, prepare_view_fields);

struct prepare_view *prepare_view_of(const struct job *j)
{
	struct prepare_view *v = j->prepare_us == MO_NONE ? NULL : mo_desc_new(&prepare_view_desc);
	const struct prepared *longest = j->run.prepared;

	if (!v)
		return NULL;
	v->gpu_s = (double)j->prepare_us / 1e6;
	for (size_t i = 0; i < j->run.n_prepared; i++)
		mo_desc_copy(&prepared_desc, MO_ADD(v, nodes, &prepared_desc), &j->run.prepared[i]);
	if (j->run.n_prepared == 1)
		v->text = mo_printf("%.1f s on %s", (double)longest->ms / 1000, longest->node);
	else if (j->run.n_prepared)
		v->text = mo_printf("%.1f s on %s, the longest of %zu nodes; %.1f s on %s",
				    (double)longest->ms / 1000, longest->node, j->run.n_prepared,
				    (double)j->run.prepared[j->run.n_prepared - 1].ms / 1000,
				    j->run.prepared[j->run.n_prepared - 1].node);
	else
		v->text = mo_printf("not done in attempt %lld", (long long)j->attempt);
	return v;
}

/* The node has the launch, and nothing of it started yet. */
static bool prepares(const struct job *j, const struct step *st)
{
	return st->attempt == j->attempt && st->accepted && !st->started && !st->refused &&
	       !step_dead(st);
}

void why_prepare(const struct job *j, int64_t now, struct why_view *w)
{
	struct why_reason *r;
	size_t n = 0;

	for (size_t i = 0; i < j->n_steps; i++)
		n += prepares(j, &j->steps[i]);
	if (!j->spec.n_prepare || !n)
		return;
	r = MO_ADD(w, reasons, &why_reason_desc);
	r->code = mo_strdup("prepare");
	r->text = mo_printf("engine.prepare runs on %zu of %zu nodes, for %lld s at most", n,
			    j->run.n_places, (long long)((now - j->progress.at) / 1000000));
	for (size_t i = 0; i < j->n_steps && r->n_evidence < NODES_REPORTED; i++)
		if (prepares(j, &j->steps[i]))
			mo_strs_printf(&r->evidence, &r->n_evidence, "%s: not done yet",
				       j->steps[i].node);
	for (size_t i = 0; i < j->run.n_prepared && r->n_evidence < NODES_REPORTED; i++)
		mo_strs_printf(&r->evidence, &r->n_evidence, "%s: done in %.1f s",
			       j->run.prepared[i].node, (double)j->run.prepared[i].ms / 1000);
}
