/* Two words for what no input can reach. Both say a promise between functions of one program: that
 * an argument is within its range, a list sorted, a state one that may follow. What comes from a
 * file, a message, a command line or the machine is never asserted, it is checked and answered.
 *
 *   assert(x)      always on, in what is shipped too: where going on would write outside of memory,
 *                  store a record nobody can read, or put a wrong order on its way. The daemon ends
 *                  and is started again; the ranks do not notice, what was acknowledged is stored.
 *   mo_assert(x)   on in unit tests, the simulator, sanitized builds and `make CHECK=1`; in what is
 *                  shipped one load and a branch, x is not evaluated. It may walk a list. A
 *                  controller that is wrong about something small goes on leading its cluster.
 *
 * x has no side effects. docs/decisions/011-assertions.md says why there are two. */
#pragma once
#include <assert.h>
#include <stdbool.h>

/* Whether mo_assert() checks. Test programs set it; nobody else. */
extern bool mo_asserting;

#define mo_assert(x) \
	do { \
		if (__builtin_expect(mo_asserting, 0) && !(x)) \
			mo_assert_failed(#x, __FILE__, __LINE__, __func__); \
	} while (0)

/* Says it on standard error, as assert() does, and aborts. */
void mo_assert_failed(const char *text, const char *file, int line, const char *function)
	__attribute__((noreturn));
