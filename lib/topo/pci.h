/* The PCI bus. */
#pragma once
#include "lib/topo/finds.h"

/* GPUs of a vendor on the bus that are not among those found: `why` says what that means. */
void find_lost(struct finds *f, int64_t vendor, const char *why);
/* Catalogue name of a GPU by its PCI ids; caller frees. model: the driver's name for it, NULL
 * none. */
char *gpu_model_name(int64_t vendor, int64_t device, const char *model);
/* class: base and sub class, 0x1200 */
bool gpu_class(int64_t vendor, int64_t class);
