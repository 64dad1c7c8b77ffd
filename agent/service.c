/* See service.h. */
#include "agent/service.h"

#include "agent/manager.h"
#include "agent/starter.h"
#include "lib/base/desc.h"

#define SYSTEMD_RUN "/usr/bin/systemd-run"

const char *service_path(const struct manager *m, const char *program)
{
	return m->starter->in_units ? SYSTEMD_RUN : program;
}

void service_words(const struct manager *m, const char *program, char ***argv, size_t *n)
{
	static const char *const words[] = { "systemd-run", "--quiet", "--collect", "--wait",
					     "--pipe" };

	for (size_t i = 0; m->starter->in_units && i < ELEMENTSOF(words); i++)
		mo_strs_add(argv, n, words[i]);
	mo_strs_add(argv, n, program);
}
