/* GPUs and NICs, which belong together. */
#pragma once
#include "lib/topo/finds.h"

/* Gives each GPU a NIC. */
void pair_nics(struct finds *f);
