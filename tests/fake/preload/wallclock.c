/* Loaded into a program (LD_PRELOAD) it shows a wall clock that is wrong: the file $FAKE_CLOCK says
 * "OFFSET SYNCED", seconds and 0 or 1, and may change at any time. All other clocks are right. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static void said(long long *offset, int *synced)
{
	const char *path = getenv("FAKE_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[64] = "";

	*offset = *synced = 0;
	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0)
		(void)sscanf(text, "%lld %d", offset, synced);
	close(fd);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	long r = syscall(SYS_clock_gettime, id, ts);
	long long offset;
	int synced;

	if (r == 0 && id == CLOCK_REALTIME) {
		said(&offset, &synced);
		ts->tv_sec += offset;
	}
	return (int)r;
}

int adjtimex(struct timex *t)
{
	long long offset;
	int synced;

	said(&offset, &synced);
	*t = (struct timex){ .status = synced ? 0 : STA_UNSYNC };
	return synced ? TIME_OK : TIME_ERROR;
}
