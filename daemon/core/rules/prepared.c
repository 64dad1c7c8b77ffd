/* engine.prepare: how long it took on each node of the newest attempt, as its supervisor measured it
 * (note.prepare_ms), and what it cost in all: a part of the ledger's `launch`. While it runs the
 * controller knows only that the node has the launch and no rank of it. */
#include "daemon/core/inner.h"

#include "lib/base/buf.h"

#define NODES_TOLD 20
#define US_MAX (1LL << 60)
#define NODES_KEPT 256 /* the slowest ones: of thousands that work alike nobody reads all */

static const struct mo_field prepared_fields[] = {
	MO_F(prepared, node, MO_STR), MO_F(prepared, ms, MO_INT),
};
const struct mo_desc prepared_desc = MO_DESC(prepared, prepared_fields);
static const struct mo_field prepare_view_fields[] = {
	MO_F(prepare_view, text, MO_STR), MO_F(prepare_view, gpu_s, MO_REAL),
	MO_F_VEC(prepare_view, nodes, &prepared_desc),
};
const struct mo_desc prepare_view_desc = MO_DESC(prepare_view, prepare_view_fields);

static int64_t gpus_of(const struct job *j, const char *node)
{
	for (size_t i = 0; i < j->n_places; i++)
		if (mo_streq(j->places[i].node, node))
			return (int64_t)j->places[i].n_gpus;
	return 0;
}

/* Where it goes: behind those that took longer. */
static size_t rank_by_time(const struct job *j, int64_t ms)
{
	size_t at = j->n_prepared;

	while (at > 0 && j->prepared[at - 1].ms < ms)
		at--;
	return at;
}

void prepared_add(struct job *j, struct step *st, const struct note *n)
{
	size_t at;

	if (n->prepare_ms == MO_NONE || n->prepare_ms < 0 || st->prepared)
		return; /* told once: of many nodes not all are in the list */
	st->prepared = true;
	for (size_t i = 0; i < j->n_prepared; i++)
		if (mo_streq(j->prepared[i].node, st->node))
			return; /* a record of before says so alone */
	if (j->prepare_us < US_MAX)
		j->prepare_us = MO_MAX(j->prepare_us, 0) + n->prepare_ms * 1000 * gpus_of(j, st->node);
	at = rank_by_time(j, n->prepare_ms);
	if (at >= NODES_KEPT)
		return;
	MO_ADD(j, prepared, &prepared_desc);
	for (size_t i = j->n_prepared - 1; i > at; i--)
		j->prepared[i] = j->prepared[i - 1];
	j->prepared[at] = (struct prepared){ mo_strdup(st->node), n->prepare_ms };
	if (j->n_prepared > NODES_KEPT)
		mo_vec_remove(&prepared_desc, j->prepared, &j->n_prepared, NODES_KEPT);
}

struct prepare_view *prepare_view_of(const struct job *j)
{
	struct prepare_view *v = j->prepare_us == MO_NONE ? NULL : mo_desc_new(&prepare_view_desc);
	const struct prepared *longest = j->prepared;

	if (!v)
		return NULL;
	v->gpu_s = (double)j->prepare_us / 1e6;
	for (size_t i = 0; i < j->n_prepared; i++)
		mo_desc_copy(&prepared_desc, MO_ADD(v, nodes, &prepared_desc), &j->prepared[i]);
	if (j->n_prepared == 1)
		v->text = mo_printf("%.1f s on %s", (double)longest->ms / 1000, longest->node);
	else if (j->n_prepared)
		v->text = mo_printf("%.1f s on %s, the longest of %zu nodes; %.1f s on %s",
				    (double)longest->ms / 1000, longest->node, j->n_prepared,
				    (double)j->prepared[j->n_prepared - 1].ms / 1000,
				    j->prepared[j->n_prepared - 1].node);
	else
		v->text = mo_printf("not done in attempt %lld", (long long)j->attempt);
	return v;
}

/* The node has the launch, and nothing of it started yet. */
static bool prepares(const struct job *j, const struct step *st)
{
	return st->attempt == j->attempt && st->accepted && !st->started && !st->refused && !step_dead(st);
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
	r->text = mo_printf("engine.prepare runs on %zu of %zu nodes, for %lld s at most", n, j->n_places,
			    (long long)((now - j->progress_at) / 1000000));
	for (size_t i = 0; i < j->n_steps && r->n_evidence < NODES_TOLD; i++)
		if (prepares(j, &j->steps[i]))
			mo_strs_printf(&r->evidence, &r->n_evidence, "%s: not done yet", j->steps[i].node);
	for (size_t i = 0; i < j->n_prepared && r->n_evidence < NODES_TOLD; i++)
		mo_strs_printf(&r->evidence, &r->n_evidence, "%s: done in %.1f s", j->prepared[i].node,
			       (double)j->prepared[i].ms / 1000);
}
