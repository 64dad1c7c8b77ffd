/* Devices of a recorded machine, an hwloc XML. */
#pragma once
#include "lib/topo/finds.h"

struct hwloc_topology;
void find_in_xml(struct hwloc_topology *t, struct finds *f);
