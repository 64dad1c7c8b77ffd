/* See curve.h. */
#include "lib/plan/curve.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/parse.h"

/* What no network is: nothing, not a number, or more than a GPU's memory. */
#define CURVE_BYTES_MAX 1e15
#define CURVE_GBS_MIN 1e-3
#define CURVE_GBS_MAX 1e5

/* size count type [redop root] time algbw busbw #wrong, out of place first. Where #wrong is a
 * fraction it is that of a release which printed rounding errors there. */
static bool read_row(char *line, struct curve_point *ret, int64_t *ret_wrong)
{
	char *words[16], *rest = line;
	size_t n = 0;

	for (char *word; n < ELEMENTSOF(words) && (word = strsep(&rest, " \t\r"));)
		if (*word)
			words[n++] = word;
	if (n < 8 || !isdigit((unsigned char)words[0][0]) || isdigit((unsigned char)words[2][0]))
		return false;
	size_t at = isdigit((unsigned char)words[3][0]) ? 5 : 7;

	if (at >= n || mo_parse_double(words[0], &ret->bytes) < 0 ||
	    mo_parse_double(words[at], &ret->gbs) < 0 ||
	    !(ret->bytes >= 1 && ret->bytes <= CURVE_BYTES_MAX) ||
	    !(ret->gbs >= CURVE_GBS_MIN && ret->gbs <= CURVE_GBS_MAX))
		return false;
	if (at + 1 >= n || mo_parse_i64(words[at + 1], 1, INT64_MAX, ret_wrong) < 0)
		*ret_wrong = 0;
	return true;
}

bool curve_parse(const char *text, struct curve *ret)
{
	*ret = (struct curve){ 0 };
	for (const char *line = text; line && *line && ret->n < ELEMENTSOF(ret->points);
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		_cleanup_(mo_freep) char *copy = mo_strndup(line, strcspn(line, "\n"));
		struct curve_point p;
		int64_t wrong;

		if (!read_row(copy, &p, &wrong))
			continue;
		if (wrong > ret->wrong) {
			ret->wrong = wrong;
			ret->wrong_bytes = p.bytes;
		}
		if (ret->n == 0 || p.bytes > ret->points[ret->n - 1].bytes)
			ret->points[ret->n++] = p;
	}
	return ret->n > 0;
}

/* Below the smallest size an exchange takes as long as that one; above the largest the bandwidth
 * stays. */
double curve_at(const struct curve *c, double bytes)
{
	mo_assert(c->n > 0 && c->n <= ELEMENTSOF(c->points));
	if (bytes <= c->points[0].bytes)
		return c->points[0].gbs * bytes / c->points[0].bytes;
	for (size_t i = 1; i < c->n; i++)
		if (bytes <= c->points[i].bytes) {
			double part = log(bytes / c->points[i - 1].bytes) /
				      log(c->points[i].bytes / c->points[i - 1].bytes);

			return exp((1 - part) * log(c->points[i - 1].gbs) +
				   part * log(c->points[i].gbs));
		}
	return c->points[c->n - 1].gbs;
}
