/* Is what a described struct (desc.h) holds within its bounds? */
#pragma once
#include "lib/base/desc.h"
#include "lib/base/error.h"

/* Bytes of all texts in it, as JSON writes them: what it costs to copy, store and tell them. */
size_t mo_desc_text_bytes(const struct mo_desc *d, const void *obj);
/* Of a message that is repeated until it was taken, so that it must not be refused: what may not
 * be kept becomes unknown, texts are cut between two characters. */
void mo_desc_fit(const struct mo_desc *d, void *obj);
/* The first place that may not be kept, and why ("info.gpus[3].index: is missing"); NULL: none.
 * Caller frees. */
char *mo_desc_unfit(const struct mo_desc *d, const void *obj);
