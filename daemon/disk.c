/* Submits are refused (507) before the last megabytes of the disk are used, so that what jobs
 * already running have to tell still fits; and from the moment the ballast had to be given up
 * until it can be made again. */
#include "daemon/disk.h"
#include "daemon/input.h"
#include "lib/base/file.h"
#include <stdarg.h>
#include <stdio.h>
#include <sys/statvfs.h>

#define SUBMIT_FREE_MIN (8LL << 20)

void disk_tell(struct manager *m, enum event_type type, const char *fmt, ...)
{
	struct input *in = input_new(IN_STORE, NULL);
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	in->core.store = mo_desc_new(&in_store_desc);
	in->core.store->event = mo_strdup(event_registry[type].type);
	in->core.store->message = mo_strdup(text);
	input_push(m, in);
}

static bool space_left(const struct manager *m)
{
	struct statvfs v;

	return mo_space(m->options->state_dir, &v) < 0 ||
	       (int64_t)v.f_bavail * (int64_t)v.f_frsize >= SUBMIT_FREE_MIN;
}

static void set_full(struct manager *m, const char *why)
{
	if (m->store_full)
		return;
	m->store_full = true;
	mo_log(MO_ERR, "6d6f6500000000000000000000000001", NULL,
	       "state disk full: %s: new jobs are refused, running ones go on; free space below %s",
	       why, m->options->state_dir);
	disk_tell(m, EVENT_STORE_FULL,
		  "the disk of %s is full (%s): new jobs are refused, running ones go on; free "
		  "some space",
		  m->options->state_dir, why);
}

void disk_lost(struct manager *m)
{
	set_full(m, "the 16 MiB of ballast were given up");
}

void disk_start(struct manager *m)
{
	if (!store_has_ballast(m->store))
		set_full(m, "there is no room for the 16 MiB of ballast: 64 MiB must be free");
}

bool disk_for_submit(struct manager *m)
{
	if (!m->store_full && !space_left(m))
		set_full(m, "less than 8 MiB are left");
	return !m->store_full;
}

void disk_check(struct manager *m)
{
	if (!m->store_full || !space_left(m) || store_make_ballast(m->store) < 0)
		return;
	m->store_full = false;
	mo_log(MO_NOTICE, NULL, NULL, "state disk has room again: new jobs are taken");
	disk_tell(m, EVENT_STORE_OK, "the disk of %s has room again: new jobs are taken",
		  m->options->state_dir);
}
