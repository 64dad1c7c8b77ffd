/* See rank_words.h. */
#include "daemon/core/rules/rank_words.h"

#include "lib/base/buf.h"

static void add_size(struct mo_buf *b, const char *name, int64_t at, int64_t size)
{
	if (size > 1)
		mo_buf_printf(b, "%s%s %lld", b->len ? ", " : "", name, (long long)at);
}

char *rank_words(const struct job *j, int64_t rank)
{
	const struct recipe_parallelism *p = &j->spec.recipe.parallelism;
	const struct rank *k = &j->run.ranks[rank];
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (k->coords) {
		add_size(&b, "tp", k->coords->tp, p->tp);
		add_size(&b, "pp", k->coords->pp, p->pp);
		add_size(&b, "ep", k->coords->ep, p->ep);
		add_size(&b, "cp", k->coords->cp, p->cp);
		add_size(&b, "dp", k->coords->dp, p->dp);
	}
	return mo_printf("rank %lld on %s%s%s%s", (long long)rank, k->node, b.len ? " (" : "",
			 b.len ? b.data : "", b.len ? ")" : "");
}
