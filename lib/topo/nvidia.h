/* GPUs of NVIDIA, by the files of their driver. */
#pragma once
#include "lib/topo/finds.h"

void find_nvidia(struct finds *f);
