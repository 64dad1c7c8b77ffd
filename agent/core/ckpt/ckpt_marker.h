/* What the content of a marker says; see ckpt_marker.c. */
#pragma once
#include "agent/core/ckpt/ckpt_inner.h"

/* Whether the layout asks what is in this marker; what its content says (listed, contains,
 * said), or that it is not whole (damage). */
bool ckpt_reads_marker(const struct ckpt_rules *r, const char *name);
void ckpt_marker_content(const struct ckpt_rules *r, const char *text, size_t n,
			 struct ckpt_marker *m);
