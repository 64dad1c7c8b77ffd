/* A recipe judged by what its engine's own configuration says, wherever that was read: by the rules
 * that judge both at a submit. For a node, before its ranks start (agent/config), and for the
 * controller when it hears of it (daemon/node_config.c). */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/recipe.h"
#include "lib/recipe/experiment.h"

struct experiment_verdict {
	/* What the two break together, with the file and line that said it; NULL: nothing. */
	char *refused;
	/* Why nothing can be said; NULL: it was judged. */
	char *unjudged;
	/* Where the engine saves by its names, when the recipe has no checkpoint.dir; NULL:
	 * unknown. */
	char *directory;
	char **warnings;
	size_t n_warnings;    /* that the recipe alone has not */
	char *document;       /* the recipe's key `experiment`; NULL when it was not judged */
	struct recipe recipe; /* both together, when nothing is refused */
};
/* e, r: of the text as it was submitted. x may be of anybody's making. ret is the caller's. */
void experiment_judge(const struct engine *e, const struct recipe *r, const char *text, size_t n,
		      const struct experiment *x, struct experiment_verdict *ret);
void experiment_verdict_done(struct experiment_verdict *v);
