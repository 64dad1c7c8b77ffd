/* Measured runs of the cluster as what calibrates plans: for plans made here, for those of helpers, and as the file that `moectl plan --anchor` reads. */
#pragma once
#include "daemon/visible.h"
#include "lib/plan/plan.h"

/* The runs on this GPU in this precision, or all with gpu NULL; of those the viewer's, or all with v NULL; NULL when there are none. Caller frees. */
char *anchors_document(const struct state *s, const struct viewer *v, const char *gpu, const char *precision);
/* Calibrates doc, a plan of r, by the runs that fit. */
void anchors_apply(const struct state *s, const struct recipe *r, const struct gpu_type *gpu, struct plan_doc *doc);
/* What doc's first plan promises; NULL without plans. */
struct promise *promise_of(const struct plan_doc *doc);
/* The run of a job as one of the document's; NULL when its recipe cannot be read any more. */
char *anchor_run_text(const struct recipe *chosen, const char *recipe_text, const struct measured *m);
