/* checkpoint.keep: which checkpoint goes, and what becomes of it. */
#pragma once
#include "daemon/core/state/state.h"

const struct checkpoint *checkpoint_surplus(const struct job *j);
/* what lies outside checkpoint.dir stays as it is, with the reason */
void checkpoint_remove(const struct job *j, struct checkpoint *c);
bool checkpoint_any_removing(const struct job *j);
/* r: the scan at the end, NULL = there is none */
void checkpoint_removal_over(struct job *j, const struct scan_result *r);
/* id of the order to remove what is to go; MO_NONE = nothing is */
int64_t checkpoint_prune_id(const struct job *j);
void checkpoint_pruned(struct job *j, const struct scan_result *r);
/* a scan did not see it: if it was to go, it is gone */
void checkpoint_removed(struct checkpoint *c);
