/* A rule of an engine file for lines, compiled: the pattern, and where in a sample each group, or
 * each pair of a record, goes. Patterns match bytes, not UTF-8. Called by lines.c. */
#pragma once
#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

#include "agent/core/text/line_fact.h"
#include "lib/base/error.h"
#include "lib/model/engine.h"

#define LINE_PAIRS_MAX 64 /* pairs that one rule reads */

struct line_group {
	const struct line_field *field;
	int number;
};
/* A rule of an engine file, compiled. */
struct line_matcher {
	pcre2_code *code;
	char *pattern; /* for telling which rule gave up */
	int kind, phase;
	bool missing_loss_is_nan, of_steps;
	struct line_group groups[LINE_FIELDS];
	size_t n_groups;
	bool record; /* code finds the beginning of a record of pairs */
	struct text separator;
	struct text *keys;
	const struct line_field **targets;
	size_t n_keys;
	/* fields of the sample without which a record says nothing */
	const struct line_field **needs;
	size_t n_needs;
	/* matches that were broken off; too many, and the rule is left out */
	int64_t gave_up;
	int64_t offset;
	/* its records tell how many iterations were skipped or NaN */
	bool counts;
};

/* 0, or -EINVAL with err: line_matcher_done() in both cases. */
int line_matcher_read(struct line_matcher *r, const struct line_rule *from, struct mo_error *err);
void line_matcher_done(struct line_matcher *r);
