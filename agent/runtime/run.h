/* One command of a container runtime, which may hang, be missing, or write anything. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"

/* Runs it, with nothing to read, until end_us (mo_clock_boot_us()); what it writes is added to out,
 * which ends with a NUL. 0 when its exit status is 0. With err: -ENOENT it is not installed,
 * -ETIMEDOUT it has not ended and was killed with what it started, -E2BIG it wrote more than
 * RUNTIME_ANSWER_MAX, -EREMOTEIO it failed: err has the last line of its standard error. */
int run_command(char *const *argv, int64_t end_us, struct mo_buf *out, struct mo_error *err);
