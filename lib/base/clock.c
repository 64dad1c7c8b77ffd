/* See clock.h. */
#include "lib/base/clock.h"

#include <poll.h>
#include <sys/timex.h>
#include <time.h>

#include "lib/base/file.h"
#include "lib/base/util.h"

static int64_t read_ns(clockid_t id)
{
	struct timespec ts;

	/* cannot fail: the three ids exist on every supported kernel */
	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t mo_clock_boot_us(void)
{
	return read_ns(CLOCK_BOOTTIME) / 1000;
}

int64_t mo_clock_mono_ns(void)
{
	return read_ns(CLOCK_BOOTTIME);
}

int64_t mo_clock_thread_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

int64_t mo_clock_wall_us(void)
{
	return read_ns(CLOCK_REALTIME) / 1000;
}

bool mo_clock_synced(void)
{
	struct timex t = { 0 };

	if (adjtimex(&t) >= 0 && !(t.status & STA_UNSYNC))
		return true;
	return mo_access("/run/systemd/timesync/synchronized", F_OK) == 0;
}

void mo_clock_rest_ms(int ms)
{
	poll(NULL, 0, ms);
}

bool mo_clock_rest_unless(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 0;
}
