/* What a reading of a GPU can be at all: a value beyond is what firmware says that is not itself
 * (a register that does not answer, a table that is half written), so it is no value, and the
 * probe's `problem` names it. Far wider than any limit of a check: these are for nonsense, not
 * for judgement. Pure. Called where readings are made. */
#pragma once
#include "lib/model/health.h"

struct reading_range {
	const char *key;
	double least, most;
	const char *unit;
};
/* The range that the value is beyond; NULL: it can be, or nothing is known of this key. */
const struct reading_range *reading_impossible(const char *key, double value);
/* "temp_junction_c is 65000 C, which no GPU has (-40 to 200)"; caller frees. */
char *reading_impossible_text(const struct reading_range *r, double value);
/* Values that are possible alone and not together: a GPU that is busy and has no clock, or draws
 * nothing. They are taken out, named as problems. source: the file. */
void reading_contradictions(struct probe *p, const char *source);
