/* lib/base/assert.h: what a promise that is broken does, and that it costs nothing where nobody
 * checks. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "lib/base/assert.h"

static int n_looks;

static bool look(bool holds)
{
	n_looks++;
	return holds;
}

static int status_of(bool asserting, bool holds)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		close(STDERR_FILENO);
		mo_asserting = asserting;
		mo_assert(look(holds));
		_exit(n_looks);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_broken_promise_ends_a_test(void **state)
{
	int status = status_of(true, false);

	assert_true(mo_asserting);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	status = status_of(true, true);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

/* Neither ended nor evaluated. */
static void what_is_shipped_does_not_look(void **state)
{
	int status = status_of(false, false);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_broken_promise_ends_a_test),
		cmocka_unit_test(what_is_shipped_does_not_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
