/* Values as people read them; see text.c. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct cli;

/* Short texts in rotating static buffers (good for 16 uses in one expression); "-" for unknown. */
const char *text_int(int64_t v);
const char *text_real(double v, int digits); /* digits after the point */
const char *text_si(double v);               /* 12.3k 4.56M */
const char *text_bytes(int64_t v);           /* 10^9 = GB */
const char *text_seconds(double v);          /* 850 ms, 42 s, 3 m 10 s, 2 h 05 m, 9 d 4 h */
const char *text_percent(double fraction);
const char *text_or(const char *s);          /* s or "-" */
const char *text_clock(const char *rfc3339); /* "2026-11-21T08:30:50.123Z" -> "08:30:50" */
const char *text_span(int64_t a, int64_t b); /* "12/60", "12", "-" */
/* code: "1" bold, "2" dim, "31" red ... */
const char *paint(const struct cli *cli, const char *code, const char *text);
