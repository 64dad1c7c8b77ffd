/* moe-probe: reads one device, or one area of this node, and prints it as one line of JSON
 * (struct probe). A program of its own, one process per device, because a read of a wedged GPU
 * can hang for as long as its driver does: the agent kills it at a deadline and then knows which
 * device it was. Exit 0 with a probe (its `problem` says what could not be read), 1 with one
 * line on stderr, 2 for bad usage. `image` says instead whether an image fits (struct
 * image_checks). It changes nothing. Keys of the readings: docs/health.md. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/core/health/reading.h"
#include "agent/core/health/sysfs_text.h"
#include "agent/probe/probe_image.h"
#include "agent/probe/probe_pass.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/wire/encode.h"

static const char usage[] =
	"usage: moe-probe [--root DIR] gpu [--sensors] BDF | nic [--sensors] NAME | host [--disk "
	"DIR]... "
	"[--limits-of PID] [--leave-out BDF]... | klog [--since SEQ] | stack\n"
	"       moe-probe checks: the health checks of config/health instead, as JSON\n"
	"       moe-probe image [--user NAME] [--min-uid UID] [--allow-root] [--layers DIR] "
	"[--images DIR] [--cgroup] dir:PATH: whether the image fits this node, as JSON\n"
	"  --root DIR       read below DIR instead of this machine's sys, proc and dev\n"
	"  --sensors        only what changes from second to second: temperatures, power, clocks, "
	"activity, memory in use; bytes moved\n"
	"  --disk DIR       also the free space of the file system that holds DIR\n"
	"  --limits-of PID  resource limits of that process instead of this one\n"
	"  --leave-out BDF  a GPU that does not answer: the driver is not asked for it\n"
	"  --since SEQ      only records of the kernel's log behind number SEQ\n"
	"  --user NAME      as whom the image is looked at; --min-uid and --allow-root as in "
	"agent.yaml\n"
	"  --layers DIR     where what ranks write in an image goes; --images DIR: those that were "
	"brought; --cgroup: steps have control groups\n"
	"  --version\n";

enum {
	OPT_ROOT = 256,
	OPT_SENSORS,
	OPT_DISK,
	OPT_LIMITS,
	OPT_LEAVE_OUT,
	OPT_SINCE,
	OPT_USER,
	OPT_MIN_UID,
	OPT_ALLOW_ROOT,
	OPT_LAYERS,
	OPT_IMAGES,
	OPT_CGROUP,
	OPT_VERSION,
	OPT_HELP
};

struct request {
	const char *root, *area, *object;
	struct host_options host;
	struct image_options image;
	int64_t since;
	bool sensors;
	char bdf[16];
};

static int bad_number(const char *option, const char *value)
{
	fprintf(stderr, "moe-probe: %s %s: not a number: give 0 or more\n", option, value);
	return 2;
}

static bool name_is_safe(const char *s)
{
	return *s && *s != '.' && !strchr(s, '/') && strlen(s) <= 255;
}

static int check_image(struct request *q, int n, char **words)
{
	_cleanup_(mo_freep) char *problem = n == 2 ? image_check_problem(words[1]) : NULL;

	if (n != 2)
		fputs(usage, stderr);
	else if (problem)
		fprintf(stderr, "moe-probe: %s\n", problem);
	q->area = words[0];
	q->image.image = words[1];
	return n == 2 && !problem ? 0 : 2;
}

static int check_area(struct request *q, int n, char **words)
{
	bool one = n > 0 && (mo_streq(words[0], "gpu") || mo_streq(words[0], "nic"));

	if (n > 0 && mo_streq(words[0], "image"))
		return check_image(q, n, words);
	if (n == 1 && mo_streq(words[0], "checks")) {
		q->area = words[0];
		return 0;
	}
	if (n == 0 || mo_enum_parse(probe_area_names, _PROBE_AREA_N, words[0]) < 0 ||
	    n != (one ? 2 : 1)) {
		fputs(usage, stderr);
		return 2;
	}
	q->area = words[0];
	q->object = one ? words[1] : "host";
	if (mo_streq(q->area, "gpu")) {
		if (!text_bdf(q->object, q->bdf)) {
			fprintf(stderr,
				"moe-probe: gpu %s: not a PCI address: give one such as "
				"0000:05:00.0\n",
				q->object);
			return 2;
		}
		q->object = q->bdf;
	}
	if (!name_is_safe(q->object)) {
		fprintf(stderr, "moe-probe: %s %s: not the name of a device\n", q->area, q->object);
		return 2;
	}
	return 0;
}

/* 0, -1 = answered already, 2 = bad usage */
static int parse(int argc, char **argv, struct request *q)
{
	static const struct option options[] = {
		{ "root", required_argument, NULL, OPT_ROOT },
		{ "sensors", no_argument, NULL, OPT_SENSORS },
		{ "disk", required_argument, NULL, OPT_DISK },
		{ "limits-of", required_argument, NULL, OPT_LIMITS },
		{ "leave-out", required_argument, NULL, OPT_LEAVE_OUT },
		{ "since", required_argument, NULL, OPT_SINCE },
		{ "user", required_argument, NULL, OPT_USER },
		{ "min-uid", required_argument, NULL, OPT_MIN_UID },
		{ "allow-root", no_argument, NULL, OPT_ALLOW_ROOT },
		{ "layers", required_argument, NULL, OPT_LAYERS },
		{ "images", required_argument, NULL, OPT_IMAGES },
		{ "cgroup", no_argument, NULL, OPT_CGROUP },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ "help", no_argument, NULL, OPT_HELP },
		{ 0 },
	};
	for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		switch (c) {
		case OPT_ROOT: q->root = mo_streq(optarg, "/") ? "" : optarg; break;
		case OPT_SENSORS: q->sensors = true; break;
		case OPT_DISK: mo_strs_add(&q->host.disks, &q->host.n_disks, optarg); break;
		case OPT_LEAVE_OUT:
			mo_strs_add(&q->host.left_out, &q->host.n_left_out, optarg);
			break;
		case OPT_LIMITS:
			if (mo_parse_i64(optarg, 0, INT32_MAX, &q->host.limits_of) < 0)
				return bad_number("--limits-of", optarg);
			break;
		case OPT_SINCE:
			if (mo_parse_i64(optarg, 0, INT64_MAX / 2, &q->since) < 0)
				return bad_number("--since", optarg);
			break;
		case OPT_USER: q->image.user = optarg; break;
		case OPT_ALLOW_ROOT: q->image.rule.allow_root = true; break;
		case OPT_LAYERS: q->image.layers = optarg; break;
		case OPT_IMAGES: q->image.images = optarg; break;
		case OPT_CGROUP: q->image.cgroup = true; break;
		case OPT_MIN_UID:
			if (mo_parse_i64(optarg, 0, UINT32_MAX, &q->image.rule.min_uid) < 0)
				return bad_number("--min-uid", optarg);
			break;
		case OPT_VERSION: printf("moe-probe %s\n", MO_VERSION); return -1;
		case OPT_HELP:
		case 'h': fputs(usage, stdout); return -1;
		default: fputs(usage, stderr); return 2;
		}
	}
	return check_area(q, argc - optind, argv + optind);
}

static int run(const struct request *q, struct probe *p, struct mo_error *err)
{
	struct probe_pass l = { 0 };
	int64_t began = mo_clock_mono_ns();
	int r = pass_open(q->root, p, &l);

	if (r < 0)
		return mo_error_set(err, r, "%s: %s", q->root, strerror(-r));
	p->area = mo_enum_parse(probe_area_names, _PROBE_AREA_N, q->area);
	p->mono_us = mo_clock_boot_us();
	mo_str_set(&p->object, q->object);
	switch (p->area) {
	case PROBE_GPU: q->sensors ? probe_sensors(&l, q->object) : probe_gpu(&l, q->object); break;
	case PROBE_NIC:
		q->sensors ? probe_nic_sensors(&l, q->object) : probe_nic(&l, q->object);
		break;
	case PROBE_HOST: probe_host(&l, &q->host); break;
	case PROBE_KLOG: r = probe_klog(&l, q->since, err); break;
	default: probe_stack(&l); break;
	}
	if (p->area != PROBE_STACK) {
		reading_add_int(p, "files", l.files);
		reading_add(p, "read_ms", (double)(mo_clock_mono_ns() - began) / 1e6);
	}
	pass_done(&l);
	return r;
}

/* The answer as text. */
static int answer(const struct request *q, struct mo_buf *text, struct mo_error *err)
{
	struct probe p;

	if (mo_streq(q->area, "checks"))
		return probe_checks(text, err);
	if (mo_streq(q->area, "image"))
		return probe_image(q->root, &q->image, text, err);
	mo_desc_init(&probe_desc, &p);
	int r = run(q, &p, err);
	if (r == 0)
		wire_encode(&probe_desc, &p, text);
	mo_desc_done(&probe_desc, &p);
	return r;
}

int main(int argc, char **argv)
{
	struct request q = { .root = "", .since = -1, .host.limits_of = MO_NONE };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int r = parse(argc, argv, &q);

	if (r == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for what it reads */
		r = answer(&q, &text, &err);
		if (r == 0) {
			mo_buf_str(&text, "\n");
			r = mo_write_all(STDOUT_FILENO, text.data, text.len);
		}
		if (r < 0) {
			fprintf(stderr, "moe-probe: %s\n", mo_error_text(&err, r));
			r = 1;
		}
	}
	for (size_t i = 0; i < q.host.n_disks; i++)
		free(q.host.disks[i]);
	free(q.host.disks);
	for (size_t i = 0; i < q.host.n_left_out; i++)
		free(q.host.left_out[i]);
	free(q.host.left_out);
	return r < 0 ? 0 : r;
}
