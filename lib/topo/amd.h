/* GPUs of AMD, by KFD and amdgpu. */
#pragma once
#include "lib/topo/finds.h"

void find_amd(struct finds *f);
/* Whether a device node can be opened (below a root directory: is there); if not, a finding. One
 * that is left out counts as one that opens: slots keep their numbers. */
bool device_opens(struct finds *f, const char *object, const char *path);
