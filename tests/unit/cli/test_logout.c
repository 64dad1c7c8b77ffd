/* When a logout ends a local cluster, by where its processes stand. */
#include "tests/unit/unit.h"

#include <string.h>

#include "cli/local_logout.h"
#include "lib/base/util.h"

static void notes(void **state)
{
	static const struct {
		const char *cgroup;
		bool lingers, kills;
		const char *says;
	} cases[] = {
		{ "0::/user.slice/user-1000.slice/session-3.scope\n", false, false, NULL },
		{ "0::/user.slice/user-1000.slice/session-3.scope\n", false, true,
		  "KillUserProcesses" },
		{ "0::/user.slice/user-1000.slice/session-3.scope\n", true, true,
		  "KillUserProcesses" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n", false,
		  false, "enable-linger" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n", true,
		  true, NULL },
		{ "0::/system.slice/ssh.service\n", false, true, NULL },
		{ "0::/\n", false, true, NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		const char *note = logout_note(cases[i].cgroup, cases[i].lingers, cases[i].kills);

		assert_true((note != NULL) == (cases[i].says != NULL));
		if (note) {
			assert_non_null(strstr(note, "a logout ends this cluster"));
			assert_non_null(strstr(note, cases[i].says));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(notes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
