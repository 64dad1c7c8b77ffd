/* See process_metrics.h. From /proc/self alone. */
#include "lib/http/process_metrics.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"
#include "lib/wire/metric.h"

static double resident_bytes(void)
{
	_cleanup_(mo_freep) char *text = mo_proc_status(mo_proc_self(), "VmRSS");
	int64_t kib;

	if (text)
		text[strcspn(text, " ")] = '\0'; /* "1234 kB" */
	return text && mo_parse_i64(text, 0, INT64_MAX / 1024, &kib) == 0 ? (double)kib * 1024
									  : MO_NONE_F;
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
