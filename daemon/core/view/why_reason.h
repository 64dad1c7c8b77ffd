/* One reason of an answer to why, and evidence for it; see why_reason.c. */
#pragma once
#include "daemon/core/view/view.h"
#include "daemon/core/view/why_view.h"

struct why_reason *why_reason(struct why_view *w, const char *code, const char *fmt, ...)
	_printf_(3, 4);
void why_evidence(struct why_reason *r, const char *fmt, ...) _printf_(2, 3);
