/* The dry-run document: `{name, plan, ranks[]{rank,node,local_rank,argv[],env{},cpus,numa_node,gpu,nic}}`. */
#pragma once
#include "lib/base/buf.h"
#include "lib/model/dryrun.h"

/* Appends it as one line. A value that is read from a file on the node is shown as {"file": PATH}. */
void wire_dryrun(const struct dryrun *d, struct mo_buf *b);
