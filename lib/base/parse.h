/* Checked parsing of one value: numbers, durations, sizes, times, names. Pure.
 *
 * Called wherever a text from outside becomes a value: options, recipes, routes, lines of ranks.
 * The families of strtol() and atoi() are banned elsewhere (tests/lint/house), because they take
 * "12abc" for 12 and an overflow for the largest number.
 *
 * The whole string must be used. 0, -EINVAL (it is none) or -ERANGE (it is one beyond the limits).
 *
 * What never happens: *ret is touched on failure; the locale or the time zone of the process
 * counts; a text is changed. */
#pragma once
#include "lib/base/util.h"

int mo_parse_i64(const char *s, int64_t min, int64_t max, int64_t *ret);
/* also nan, inf, -inf; independent of the locale */
int mo_parse_double(const char *s, double *ret);
int mo_parse_bool(const char *s, bool *ret); /* true false yes no on off 1 0 */
/* "30s" "1.5h" "7d" "250ms" "10us" "2m"; a bare number is seconds; >= 0, at most 10 years */
int mo_parse_duration_us(const char *s, int64_t *ret);
/* bytes: "12582912" "256k" "16M" "2G" (powers of 1024) */
int mo_parse_size(const char *s, int64_t *ret);
bool mo_name_valid(const char *s); /* [A-Za-z0-9][A-Za-z0-9._-]{0,62} */
/* Nearest of names within edit distance 2 (and less than half its length), NULL if none: for
 * "did you mean". */
const char *mo_near_miss(const char *s, const char *const *names, size_t n);
#define MO_TIME_MOST (INT64_C(253402300799) * 1000000 + 999999) /* 9999-12-31T23:59:59.999999Z */
/* RFC 3339 UTC with ms, e.g. 2026-11-21T08:30:50.123Z; buf holds 32 bytes. And back (accepts any
 * fraction, only Z). */
const char *mo_time_format(int64_t time_us, char buf[static 32]);
int mo_time_parse(const char *s, int64_t *ret_us);
