/* What one line or datagram says, and the fields of a sample by the names that rules of engine
 * files give them: units become per GPU, milliseconds and fractions. Called by lines.c,
 * line_matcher.c and notify.c. */
#pragma once
#include "agent/core/text/pairs.h"
#include "lib/model/sample.h"

struct line_fact {
	int kind;    /* enum line_kind, or -1 none */
	size_t rule; /* which of the rules said it */
	/* LINE_SAMPLE; attempt and time not filled. tokens_per_s, step_s and tokens are turned
	 * into per-GPU and ms values. A percentage becomes a fraction. */
	struct sample sample;
	int phase; /* LINE_PHASE; PHASE_NONE = none given */
	/* LINE_SAVED LINE_SAVING LINE_RESUMED LINE_ENDED. Without an iteration it is the number
	 * that the path ends in; not of LINE_SAVING, which may name where all saves go */
	int64_t iteration;
	char path[4096];
	bool ready;
	bool checkpoint; /* notify only: READY=1, CHECKPOINT= given */
	char status[256];
	double busy_ms; /* notify only: of the step, what was no waiting; MO_NONE_F */
	/* values that cannot be (negative times, 1e308 TFLOP/s): left out */
	int refused;
};

enum line_target {
	FIELD_INT,
	FIELD_REAL,
	FIELD_ITERATION,
	FIELD_PATH,
	FIELD_STEP_S,
	FIELD_TOKENS_PER_S,
	FIELD_GB,
	FIELD_GIB,
	FIELD_MIB
};
/* From 0 to max, else the value is refused; max INFINITY: nothing is, negative numbers and NaN
 * neither. */
struct line_field {
	const char *name;
	enum line_target target;
	size_t offset;
	double max;
};
#define LINE_FIELDS 21
/* NULL: there is no such field. */
const struct line_field *line_field_find(const char *name);
/* Rates that need the world size or other fields of the same line. */
struct line_rates {
	double step_s, tokens_per_s;
};
/* none: a sample of which nothing is known. */
void line_fact_init(struct line_fact *f, struct line_rates *x, const struct sample *none);
/* whole: the text is the number, as a group of a pattern or a datagram has it; else it begins
 * with it. A value that cannot be is counted as refused. */
void line_fact_set(const struct line_field *field, struct text t, bool whole, struct line_fact *f,
		   struct line_rates *x);
/* After all fields: rates per GPU of a job of world ranks, and the iteration. */
void line_fact_finish(struct line_fact *f, const struct line_rates *x, int64_t world);
/* The digits a path ends in ("/c/iter_0000020/" -> 20); MO_NONE without. */
int64_t line_path_number(const char *path);
