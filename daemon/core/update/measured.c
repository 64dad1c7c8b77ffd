/* update.c's part for REC_MEASURED: what a job does, against its promise (rules/actual.c decides
 * when it is measured), and the runs that calibrate later plans. Called by core_update() only. */
#include "daemon/core/update/measured.h"

#include <errno.h>

#include "daemon/core/state/anchor.h"
#include "daemon/core/update/edit.h"

#define ANCHORS_STACK 4
#define ANCHORS_MAX 64

static const char *rocm_of(const struct state *s, const struct job *j)
{
	const struct node *n = j->run.n_places ? node_find(s, j->run.places[0].node) : NULL;

	for (size_t i = 0; n && n->health && i < n->health->n_stack; i++)
		if (mo_streq(n->health->stack[i].key, "rocm"))
			return n->health->stack[i].value;
	return NULL;
}

static void anchor_remove(struct state *s, size_t at)
{
	mo_vec_remove(&anchor_desc, s->anchors, &s->n_anchors, at);
}

/* The job's former one goes, then the oldest of its stack, then the oldest of all. */
static void make_room(struct state *s, const struct anchor *fresh)
{
	size_t n = 0;

	for (size_t i = s->n_anchors; i > 0; i--) {
		const struct anchor *a = &s->anchors[i - 1];
		bool same = anchor_same_stack(a, fresh);

		if (a->job == fresh->job || (same && n >= ANCHORS_STACK - 1))
			anchor_remove(s, i - 1);
		else
			n += same;
	}
	if (s->n_anchors >= ANCHORS_MAX)
		anchor_remove(s, 0);
}

static void anchor_add(struct state *s, const struct job *j)
{
	const struct recipe *r = &j->spec.recipe;
	struct anchor fresh;

	mo_desc_init(&anchor_desc, &fresh);
	fresh.software = mo_strdup(r->engine.kind);
	fresh.version = mo_strdup(rocm_of(s, j));
	fresh.gpu = mo_strdup(r->gpu);
	fresh.precision = mo_strdup(r->precision);
	fresh.model = recipe_model_key(r->model);
	fresh.job = j->id;
	fresh.measured = *j->progress.measured;
	fresh.recipe_text = mo_strdup(j->spec.recipe_text);
	mo_desc_copy(&recipe_desc, &fresh.recipe, r);
	make_room(s, &fresh);
	*MO_ADD(s, anchors, &anchor_desc) = fresh;
}

int update_measured(struct core *c, const struct record *r)
{
	struct job *j = job_edit(&c->owned, r->job);

	if (!j)
		return -EINVAL;
	mo_desc_free(&measured_desc, j->progress.measured);
	j->progress.measured = mo_desc_dup(&measured_desc, &r->measured->run);
	if (r->measured->calibrates)
		anchor_add(&c->owned, j);
	return 0;
}
