/* A node of two GPUs whose health is judged in virtual time, with checks made for the test. For all
 * test_health*.c. */
#pragma once
#include "tests/unit/unit.h"
#include <string.h>
#include "agent/core/health/health.h"
#include "agent/core/health/reading.h"
#include "lib/model/limits.h"

#define SECOND 1000000LL
#define MINUTE (60 * SECOND)
#define START (1000 * MINUTE)
#define GPU0 "0000:01:00.0"
#define GPU1 "0000:02:00.0"

extern const struct health_intervals bed_every;

/* A check with a limit; i: its number in the test, reading: lives on. */
struct health_check bed_check(int i, const char *id, int area, int64_t when, char *reading,
			      double crit_above);
struct health *bed_make(const struct health_check *checks, size_t n, int64_t version);
/* One answer with one reading (key NULL: none). */
void bed_probe(struct health *h, int area, const char *object, const char *identity,
	       const char *key, double value, const char *trouble, int64_t now);
const struct check_result *bed_result(struct health *h, const char *id, const char *object);
int bed_state(struct health *h, const char *id, const char *object);
