/* Starting a step's supervisor: as a transient systemd service (unit.c), or the one in reserve (reserve.c), or as a child that leaves (plain.c). */
#include "agent/start.h"

#include <string.h>

#include "agent/cgroup.h"
#include "agent/plain.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

void step_start(struct step_dir *d) {
	struct manager *m = d->manager;
	_cleanup_(mo_error_done) struct mo_error err = {0};
	d->lock_fd = mo_close(d->lock_fd); /* held since an earlier stepd was proved dead */
	d->quiet_since_us = 0;
	int r = cgroup_make(d);
	if (r < 0)
		mo_log(MO_WARNING, NULL, NULL, "%s: %s; the step runs without a cgroup", d->spool.cgroup, strerror(-r));
	if (m->units) {
		r = units_start(m->units, d, &err);
		if (r < 0)
			step_dir_start_failed(d, mo_error_text(&err, r));
	} else if (!reserve_take(m->reserve, d))
		plain_start(d);
}
