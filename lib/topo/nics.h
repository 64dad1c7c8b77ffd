/* NICs that ranks may use. */
#pragma once
#include "lib/topo/finds.h"

void find_nics(struct finds *f);
const char *nic_family(int64_t vendor, const char *driver, const char *name);
