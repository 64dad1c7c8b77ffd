/* The dry-run document: `{name, plan, resume_args[],
 * ranks[]{rank,node,local_rank,argv[],env{},cpus, numa_node,gpu,nic}, placed_on}`. Written piece
 * by piece, because thousands of ranks are tens of megabytes. */
#pragma once
#include "lib/base/buf.h"
#include "lib/model/dryrun.h"

/* One line when put together: the head, ranks as often as there are some, the end. plan: a Plan
 * document, NULL = the recipe has no model. resume: the words that a resume adds to the
 * commands. */
void wire_dryrun_head(const char *name, const char *plan, char *const *resume, size_t n_resume,
		      struct mo_buf *b);
/* A value that is read from a file on the node is shown as {"file": PATH}. first: no rank came
 * before. */
void wire_dryrun_ranks(const struct dryrun_rank *ranks, size_t n, bool first, struct mo_buf *b);
/* placed_on: what the ranks were placed on (dryrun_placed_names). */
void wire_dryrun_end(const char *placed_on, struct mo_buf *b);
