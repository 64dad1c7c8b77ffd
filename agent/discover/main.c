/* moe-discover: prints what this machine has as one line of JSON (struct nodeinfo) and ends. A
 * program of its own because a wedged GPU can hold a read of sysfs for half a minute and because
 * hwloc does not belong into the agent: agent and moectl start it with a deadline. Where it
 * hangs is in the file of --at, and a second one leaves that device out. Exit 0, 1 with one line
 * on stderr, 2 for bad usage. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/discover/users.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/topo/topo.h"
#include "lib/wire/encode.h"

static const char usage[] =
	"usage: moe-discover [--root DIR] [--xml FILE] [--fake-gpus N] [--only-fake] [--cpus LIST] "
	"[--gpus LIST] [--leave-out PATH]... [--at FILE]\n"
	"  --root DIR      read DIR/sys and DIR/proc instead of this machine's\n"
	"  --xml FILE      read an hwloc XML file instead of this machine\n"
	"  --fake-gpus N   N fake GPU slots when no GPU is found\n"
	"  --only-fake     do not look for GPUs\n"
	"  --cpus LIST     CPUs that may be used, such as 0-7,12\n"
	"  --gpus LIST     GPU slots that may be used\n"
	"  --leave-out P   do not read P (/sys/bus/pci/devices/0000:05:00.0) nor what is below it; "
	"may be repeated\n"
	"  --at FILE       make FILE; it always has the name of what is being read\n"
	"  --version\n";

#define AT_BYTES 4096

enum {
	OPT_ROOT = 256,
	OPT_XML,
	OPT_FAKE,
	OPT_ONLY,
	OPT_CPUS,
	OPT_GPUS,
	OPT_LEAVE,
	OPT_AT,
	OPT_VERSION,
	OPT_HELP
};

/* A mapping costs nothing per file that is read. It is a new file, not the one of an earlier
 * process that may still hang. */
static int open_at(const char *path, struct topo_options *o)
{
	_cleanup_(mo_closep) int fd =
		unlink(path) < 0 && errno != ENOENT
			? -1
			: open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, AT_BYTES) < 0)
		return -errno;
	o->at = mmap(NULL, AT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	o->at_bytes = AT_BYTES;
	return o->at == MAP_FAILED ? -errno : 0;
}

static int parse(int argc, char **argv, struct topo_options *o)
{
	static const struct option options[] = {
		{ "root", required_argument, NULL, OPT_ROOT },
		{ "xml", required_argument, NULL, OPT_XML },
		{ "fake-gpus", required_argument, NULL, OPT_FAKE },
		{ "only-fake", no_argument, NULL, OPT_ONLY },
		{ "cpus", required_argument, NULL, OPT_CPUS },
		{ "gpus", required_argument, NULL, OPT_GPUS },
		{ "leave-out", required_argument, NULL, OPT_LEAVE },
		{ "at", required_argument, NULL, OPT_AT },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ "help", no_argument, NULL, OPT_HELP },
		{ 0 },
	};
	int r;

	for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		switch (c) {
		case OPT_ROOT: o->root = optarg; break;
		case OPT_XML: o->xml = optarg; break;
		case OPT_ONLY: o->only_fake = true; break;
		case OPT_CPUS: o->cpus = optarg; break;
		case OPT_GPUS: o->gpus = optarg; break;
		case OPT_LEAVE: mo_strs_add(&o->leave_out, &o->n_leave_out, optarg); break;
		case OPT_AT:
			r = open_at(optarg, o);
			if (r < 0) {
				fprintf(stderr,
					"moe-discover: --at %s: %s: give a file that can be made\n",
					optarg, strerror(-r));
				return 2;
			}
			break;
		case OPT_FAKE:
			if (mo_parse_i64(optarg, 0, INT32_MAX, &o->fake_gpus) < 0) {
				fprintf(stderr,
					"moe-discover: --fake-gpus %s: not a number: give 0 or "
					"more\n",
					optarg);
				return 2;
			}
			break;
		case OPT_VERSION: printf("moe-discover %s\n", MO_VERSION); return -1;
		case OPT_HELP:
		case 'h': fputs(usage, stdout); return -1;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "moe-discover: %s: unexpected argument\n%s", argv[optind], usage);
		return 2;
	}
	return 0;
}

static void options_done(struct topo_options *o)
{
	for (size_t i = 0; i < o->n_leave_out; i++)
		free(o->leave_out[i]);
	free(o->leave_out);
}

int main(int argc, char **argv)
{
	_cleanup_(options_done) struct topo_options o = { .root = "" };
	struct nodeinfo info;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int r = parse(argc, argv, &o);

	if (r)
		return r < 0 ? 0 : r;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for what it reads */
	mo_desc_init(&nodeinfo_desc, &info);
	r = topo_discover(&o, &info, &err);
	if (r < 0) {
		fprintf(stderr, "moe-discover: %s\n", mo_error_text(&err, r));
		return 1;
	}
	info.image_root = users_can_be_made();
	wire_encode(&nodeinfo_desc, &info, &text);
	mo_buf_str(&text, "\n");
	mo_desc_done(&nodeinfo_desc, &info);
	r = mo_write_all(STDOUT_FILENO, text.data, text.len);
	if (r < 0)
		fprintf(stderr, "moe-discover: stdout: %s\n", strerror(-r));
	return r < 0 ? 1 : 0;
}
