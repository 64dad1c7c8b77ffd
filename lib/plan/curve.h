/* What rccl-tests and nccl-tests print of one collective: its bandwidth by size. The text is a
 * program's of the site, so nothing in it is trusted. */
#pragma once
#include "lib/base/util.h"

struct curve_point {
	double bytes; /* of a rank */
	double gbs;   /* "busbw", 10^9 bytes/s */
};
struct curve {
	struct curve_point points[32]; /* sizes ascending */
	size_t n;
	int64_t wrong;      /* values that came out wrong, of the worst row; 0: none was seen */
	double wrong_bytes; /* that row's size */
};
/* Rows of rccl-tests / nccl-tests output ("size count type ... busbw"); what is no row is
 * ignored. False: no row. */
bool curve_parse(const char *text, struct curve *ret);
/* 10^9 bytes/s, interpolated in log size */
double curve_at(const struct curve *c, double bytes);
