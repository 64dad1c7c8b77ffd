/* The answer to why (see view.h): a verdict, its reasons with what proves them, and what to do. */
#pragma once
#include "lib/base/desc.h"

struct why_reason {
	char *code, *text;
	char **evidence;
	size_t n_evidence;
};
struct why_view {
	char *verdict;
	int64_t since;
	struct why_reason *reasons;
	size_t n_reasons;
	char *next;
};
extern const struct mo_desc why_reason_desc, why_view_desc;
