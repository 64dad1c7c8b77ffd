/* See why_incident.h. */
#include "daemon/core/view/why_incident.h"

#include "daemon/core/rules/remedy.h"
#include "daemon/core/view/why_reason.h"
#include "lib/base/buf.h"

static void add_size(struct mo_buf *b, const char *name, int64_t at, int64_t size)
{
	if (size > 1)
		mo_buf_printf(b, ", %s %lld", name, (long long)at);
}

/* Where the rank stands in the mesh: of its sizes above 1. */
static void add_coords(struct mo_buf *b, const struct job *j, int64_t rank)
{
	const struct recipe_parallelism *p = &j->spec.recipe.parallelism;
	const struct rank_coords *at =
		(size_t)rank < j->run.n_ranks ? j->run.ranks[rank].coords : NULL;

	if (!at)
		return;
	add_size(b, "tp", at->tp, p->tp);
	add_size(b, "pp", at->pp, p->pp);
	add_size(b, "ep", at->ep, p->ep);
	add_size(b, "cp", at->cp, p->cp);
	add_size(b, "dp", at->dp, p->dp);
}

static const char *bdf_of(const struct state *s, const struct incident *inc)
{
	const struct node *n = node_find(s, inc->node);

	for (size_t i = 0; n && i < n->info.n_gpus; i++)
		if (n->info.gpus[i].index == inc->gpu)
			return n->info.gpus[i].bdf;
	return NULL;
}

static void who_was_first(const struct state *s, const struct job *j, const struct incident *inc,
			  struct why_reason *r)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	const char *bdf = bdf_of(s, inc);

	mo_buf_printf(&b,
		      mo_streq(inc->cause, "hang") ? "rank %lld stood out" : "rank %lld died first",
		      (long long)inc->first_rank);
	add_coords(&b, j, inc->first_rank);
	if (inc->gpu != MO_NONE && inc->node)
		mo_buf_printf(&b, ", GPU %lld%s%s of %s", (long long)inc->gpu, bdf ? " " : "",
			      bdf ? bdf : "", inc->node);
	why_evidence(r, "%s", b.data);
}

bool why_hang_without_cause(const struct incident *inc)
{
	return mo_streq(inc->class, failure_class_names[FAIL_HANG]) &&
	       (inc->first_rank == MO_NONE || !mo_streq(inc->cause, "hang"));
}

bool why_follows_failure(const struct job *j)
{
	return j->n_incidents > 0 && j->incidents[j->n_incidents - 1].attempt + 1 == j->attempt;
}

void why_later(const struct job *j, struct why_view *ret)
{
	const struct incident *inc = j->n_incidents ? &j->incidents[j->n_incidents - 1] : NULL;
	struct why_reason *r;

	if (!inc || !inc->n_later)
		return;
	r = why_reason(ret, "failure-later",
		       "what was told of attempt %lld after its failure was taken for %s",
		       (long long)inc->attempt, inc->class);
	for (size_t i = 0; i < inc->n_later; i++)
		why_evidence(r, "%s", inc->later[i]);
}

void why_incident(const struct state *s, const struct job *j, struct why_view *ret)
{
	const struct incident *inc = j->n_incidents ? &j->incidents[j->n_incidents - 1] : NULL;
	struct why_reason *r;
	const char *next;

	if (!inc)
		return;
	next = remedy_next(inc->class);
	r = why_reason(ret, inc->class ? inc->class : "failure", "attempt %lld: %s%s%s",
		       (long long)inc->attempt, inc->cause ? inc->cause : "failed",
		       inc->node ? " on " : "", inc->node ? inc->node : "");
	if (inc->first_rank != MO_NONE)
		who_was_first(s, j, inc, r);
	if (inc->rule)
		why_evidence(r, "%s, by signature %s: %s", inc->class, inc->rule, inc->why);
	if (inc->action)
		why_evidence(r, "what was done: %s%s%s", inc->action,
			     inc->elsewhere ? ", away from " : "",
			     inc->elsewhere && inc->node ? inc->node : "");
	if (next)
		why_evidence(r, "what to do: %s", next);
	if (why_hang_without_cause(inc))
		why_evidence(r,
			     "if it comes again: look at its nodes together, when it does not run "
			     "there ('moectl fabric check RECIPE --job j-%lld')",
			     (long long)j->id);
	/* many, the last words of a rank among them: behind what nobody may miss */
	for (size_t i = 0; i < inc->n_evidence; i++)
		why_evidence(r, "%s", inc->evidence[i]);
}
