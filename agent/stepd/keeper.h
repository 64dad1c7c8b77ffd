/* Copies of checkpoints that the next save writes over (keeper.c), kept by a child. */
#pragma once
#include "agent/stepd/stepd.h"

/* After the ranks: moe-ckpt --keep, where each save writes over the last one. */
void keeper_start(struct stepd *s);
