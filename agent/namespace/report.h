/* What the maker says on descriptor 3, once, and how it ends. */
#pragma once
#include <stdint.h>

#include "lib/base/util.h"

/* "ERRNO WHAT": what could not be done, as "make a mount namespace" or "enter /data: it is a file
 * in the image", the errno behind it, and this process has ended. error: positive. */
_Noreturn void report_failure(int error, const char *fmt, ...) _printf_(2, 3);
/* "ok", and in a second line what the image says about itself (JSON; NULL: there is no image); ends
 * when the supervisor has taken the namespace, or has ended. */
_Noreturn void report_made(const char *image_config);
