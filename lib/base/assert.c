/* See assert.h. */
#include "lib/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef MO_CHECK
#define MO_CHECK 0
#endif

bool mo_asserting = MO_CHECK;

void mo_assert_failed(const char *text, const char *file, int line, const char *function)
{
	fprintf(stderr, "%s:%d: %s: Assertion `%s' failed.\n", file, line, function, text);
	abort();
}
