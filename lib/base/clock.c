/* The only place that reads a clock. */
#include "lib/base/clock.h"

#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/assert.h"
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
	return read_ns(CLOCK_MONOTONIC);
}

int64_t mo_clock_thread_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

int64_t mo_clock_wall_us(void)
{
	return read_ns(CLOCK_REALTIME) / 1000;
}

/* Whole milliseconds: documents show milliseconds, and what is shown and what is stored must be
 * the same instant. */
static int64_t whole_ms(int64_t us)
{
	return us - us % 1000;
}

bool mo_clock_synced(void)
{
	struct timex t = { 0 };

	if (adjtimex(&t) >= 0 && !(t.status & STA_UNSYNC))
		return true;
	return access("/run/systemd/timesync/synchronized", F_OK) == 0;
}

void mo_coretime_set(struct mo_coretime *t, int64_t now_us, int64_t boot_us)
{
	t->base_us = now_us;
	t->boot0_us = boot_us;
	t->last_us = whole_ms(now_us);
}

int64_t mo_coretime_now(struct mo_coretime *t)
{
	int64_t now = whole_ms(t->base_us + mo_clock_boot_us() - t->boot0_us);

	t->last_us = MO_MAX(now, t->last_us);
	mo_assert(t->last_us % 1000 == 0); /* the shown time is the stored time */
	return t->last_us;
}
