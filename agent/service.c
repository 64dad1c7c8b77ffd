/* See service.h. */
#include "agent/service.h"

#include "agent/manager.h"
#include "agent/starter.h"
#include "lib/base/desc.h"
#include "lib/base/fd.h"

#define USERS_MAX "/proc/sys/user/max_user_namespaces"
#define NUMBER_MAX 32
#define SYSTEMD_RUN "/usr/bin/systemd-run"

const char *service_path(const struct manager *m, const char *program)
{
	return m->starter->in_units ? SYSTEMD_RUN : program;
}

bool service_makes_users(const struct manager *m)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	return m->starter->in_units && mo_read_file(USERS_MAX, NUMBER_MAX, &b) == 0 && b.len > 0 &&
	       b.data[0] != '0';
}

void service_words(const struct manager *m, const char *program, char ***argv, size_t *n)
{
	static const char *const words[] = { "systemd-run", "--quiet", "--collect", "--wait",
					     "--pipe" };

	for (size_t i = 0; m->starter->in_units && i < ELEMENTSOF(words); i++)
		mo_strs_add(argv, n, words[i]);
	mo_strs_add(argv, n, program);
}
