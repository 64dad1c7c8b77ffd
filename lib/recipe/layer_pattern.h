/* Megatron's moe_layer_freq as a text: a list of Python, `([0]*1+[1]*26)`, one number for each
 * layer. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Zeros before ones: how many there are. False: it is no such list, or experts come and go. */
bool layer_pattern(const char *text, int64_t *ret_zeros);
