/* Descriptions of promise.h. */
#include "daemon/core/state/promise.h"

static const struct mo_field promise_fields[] = {
	MO_D(promise, step_time_s, MO_REAL, "of an iteration, seconds"),
	MO_D(promise, memory_gb, MO_REAL, "of the fullest rank, 10^9 bytes"),
	MO_D(promise, bubble, MO_REAL, "idle share of the pipelined part of an iteration, 0 to 1"),
	MO_D(promise, error_pct, MO_REAL, "how far the step time may be off, percent"),
	MO_D(promise, anchors, MO_INT, "how many measured runs it rests on"),
	MO_D(promise, checkpoint_gb, MO_REAL,
	     "weights and optimizer states, 10^9 bytes; null: unknown", .omit = true),
};
const struct mo_desc promise_desc = MO_DESC(promise, promise_fields);
static const struct mo_field measured_fields[] = {
	MO_D(measured, step_time_s, MO_REAL,
	     "median of the steady iterations of the attempt, seconds"),
	MO_D(measured, memory_gb, MO_REAL, "most that its samples tell of a rank, 10^9 bytes"),
	MO_D(measured, steps, MO_INT, "iterations behind it"),
	MO_D(measured, attempt, MO_INT, "number of the attempt that was measured"),
	MO_D(measured, iteration, MO_INT, "newest one when it was measured"),
	MO_D(measured, time, MO_TIME, "when it was measured"),
};
const struct mo_desc measured_desc = MO_DESC(measured, measured_fields);
