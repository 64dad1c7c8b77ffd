/* See process_metrics.h. From /proc/self alone. */
#include "lib/http/process_metrics.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/proc.h"
#include "lib/wire/metric.h"

#define TEXT_MAX 4096

static double resident_bytes(void)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	char *end;

	if (mo_read_file("/proc/self/statm", TEXT_MAX, &text) < 0 || !text.data)
		return MO_NONE_F;
	strtoll(text.data, &end, 10); /* its size; the next is what is in memory */
	return (double)strtoll(end, NULL, 10) * (double)sysconf(_SC_PAGESIZE);
}

static double open_files(void)
{
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, "/proc/self/fd", 0);
	double n = 0;

	while (d && mo_dir_next(d))
		n++;
	return d ? n - 1 : MO_NONE_F; /* one is that of the directory */
}

void process_metrics(struct mo_buf *b)
{
	struct mo_proc self;

	if (mo_proc_read(mo_proc_self(), &self) == 0)
		metric_one(b,
			   &(struct metric){ "process_cpu_seconds_total", METRIC_COUNTER,
					     "Processor time, children that ended included." },
			   (double)self.cpu_us / 1e6);
	metric_one(b,
		   &(struct metric){ "process_resident_memory_bytes", METRIC_GAUGE,
				     "Memory in use." },
		   resident_bytes());
	metric_one(b,
		   &(struct metric){ "process_open_fds", METRIC_GAUGE, "Open file descriptors." },
		   open_files());
}
