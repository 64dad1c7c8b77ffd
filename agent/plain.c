/* A supervisor by moe-stepd's own double fork: where there is no systemd, and none in reserve. */
#include "agent/plain.h"

#include <string.h>
#include "agent/helper.h"
#include "agent/step_talk.h"

#define START_DEADLINE_US 20000000

static void on_starter(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct step_dir *d = arg;
	d->starter = NULL; /* frees itself */
	step_talk_started(d, problem);
}

void plain_start(struct step_dir *d)
{
	struct manager *m = d->manager;
	char *argv[] = { (char *)"moe-stepd", (char *)"--dir", d->path, NULL };
	int r = helper_start(m->loop, m->stepd_path, argv, START_DEADLINE_US, 4096, on_starter, d,
			     &d->starter);
	_cleanup_(mo_freep) char *text =
		r < 0 ? mo_printf("%s: %s", m->stepd_path, strerror(-r)) : NULL;
	if (text)
		step_talk_start_failed(d, text);
}
