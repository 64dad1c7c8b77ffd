/* See start.h. */
#include "agent/start.h"

#include <errno.h>
#include <string.h>

#include "agent/cgroup.h"
#include "agent/reserve.h"
#include "agent/unit.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

int starter_new(struct manager *m, struct starter **ret, struct mo_error *err)
{
	int r = unit_starter_new(m, ret, err);

	if (r <= 0)
		return r;
	if (reserve_starter_new(m, ret) < 0)
		return mo_error_set(err, -EIO, "timers: %s", strerror(errno));
	return 0;
}

struct starter *starter_free(struct starter *s)
{
	if (s)
		s->free(s);
	return NULL;
}

void step_start(struct step_dir *d)
{
	struct manager *m = d->manager;

	d->lock_fd = mo_close(d->lock_fd); /* held since an earlier stepd was proved dead */
	d->quiet_since_us = 0;
	int r = cgroup_make(d);

	if (r < 0)
		mo_log(MO_WARNING, NULL, NULL, "%s: %s; the step runs without a cgroup",
		       d->spool.cgroup, strerror(-r));
	m->starter->start(m->starter, d);
}
