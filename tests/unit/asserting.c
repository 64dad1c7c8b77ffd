/* Linked into each unit test and into the simulator: a promise between functions that is broken
 * ends it (lib/base/assert.h). */
#include "lib/base/assert.h"

__attribute__((constructor)) static void asserting(void)
{
	mo_asserting = true;
}
