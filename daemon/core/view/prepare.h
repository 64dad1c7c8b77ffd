/* What engine.prepare took, for the document of a job (view.h), its report and why. */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/core/view/why_view.h"

struct prepare_view {
	char *text;
	double gpu_s;
	struct prepared *nodes;
	size_t n_nodes;
};
extern const struct mo_desc prepare_view_desc;

struct prepare_view *prepare_view_of(const struct job *j); /* NULL: there is none; caller frees */
void why_prepare(const struct job *j, int64_t now, struct why_view *w);
