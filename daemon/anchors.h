/* Measured runs of the cluster as what calibrates plans: for plans made here, for those of
 * helpers, and as the file that `moectl plan --anchor` reads. */
#pragma once
#include "daemon/visible.h"
#include "lib/plan/plan.h"

/* What was made of the recipes of the runs, which are read once: a recipe with a large
 * experiment takes 10 ms, and there may be 64. */
struct anchor_texts;
struct anchor_texts *anchor_texts_free(struct anchor_texts *t);
/* The runs on this GPU in this precision, or all with gpu NULL; of those the viewer's, or all
 * with v NULL; NULL when there are none. Caller frees. texts: kept from call to call. */
char *anchors_document(struct anchor_texts **texts, const struct state *s, const struct viewer *v,
		       const char *gpu, const char *precision);
/* Calibrates doc, a plan of r, by the runs that fit. */
void anchors_apply(const struct state *s, const struct recipe *r, const struct gpu_type *gpu,
		   struct plan_doc *doc);
/* What doc's first plan promises; NULL without plans. */
struct promise *promise_of(const struct plan_doc *doc);
/* The run of a job as one of the document's; NULL when its recipe cannot be read any more. */
char *anchor_run_text(const struct recipe *chosen, const char *recipe_text,
		      const struct measured *m);
