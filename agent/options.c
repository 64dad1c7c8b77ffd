/* See options.h. */
#include "agent/options.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/address.h"
#include "lib/base/idset.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/base/file.h"

#define RUNTIME_DIR_MAX 4000

static const char *const auto_yes_no[] = { "auto", "yes", "no", NULL };
static const char *const auto_no[] = { "auto", "no", NULL };

#define AT(field) offsetof(struct agent_config, field)
static const struct mo_option options[] = {
	{ "controller", MO_OPTION_STR, AT(controller), "unix:/run/moe/moed.sock",
	  "Where moed is: https://host:port, unix:/path, or on this machine http://127.0.0.1:port.",
	  0, 0, NULL },
	{ "token_file", MO_OPTION_PATH, AT(token_file), NULL,
	  "File (0600) with a join token (moectl token join), which the agent trades for a token "
	  "of its own, kept in state_dir/agent.token and renewed; or with a token of role agent of "
	  "this node. Read again before each hello, so it can be replaced while the agent runs.",
	  0, 0, NULL },
	{ "ca_file", MO_OPTION_PATH, AT(ca_file), NULL,
	  "CA certificates for https://. Default: the system's.", 0, 0, NULL },
	{ "node", MO_OPTION_NAME, AT(node), NULL,
	  "Name of this node in the cluster. Default: the host name up to the first dot.", 0, 0,
	  NULL },
	{ "address", MO_OPTION_STR, AT(address), NULL,
	  "Address under which other nodes reach ranks here (MASTER_ADDR). Default: the source "
	  "address of the connection to moed.",
	  0, 0, NULL },
	{ "state_dir", MO_OPTION_PATH, AT(state_dir), "/var/lib/moe-agent",
	  "Survives reboots: fence, logs of ranks, this node's token.", 0, 0, NULL },
	{ "runtime_dir", MO_OPTION_PATH, AT(runtime_dir), "/run/moe-agent",
	  "One directory per running step. Should be a tmpfs; must survive restarts of the agent.",
	  0, 0, NULL },
	{ "gpus", MO_OPTION_INT, AT(gpus), "0", "Fake GPU slots where no GPU is found: 0 = none.",
	  0, MO_GPUS_PER_NODE_MAX, NULL },
	{ "only_fake_gpus", MO_OPTION_BOOL, AT(only_fake_gpus), "false",
	  "Do not look for real GPUs.", 0, 0, NULL },
	{ "use_gpus", MO_OPTION_STR, AT(use_gpus), NULL,
	  "Real GPU slots that this agent may use, such as 0-3, where several agents share a "
	  "machine. Default: all.",
	  0, 0, NULL },
	{ "topology", MO_OPTION_PATH, AT(topology), NULL,
	  "hwloc XML file, or the root directory of a fake machine, instead of this one's "
	  "topology. Nothing is really bound then.",
	  0, 0, NULL },
	{ "cpus", MO_OPTION_STR, AT(cpus), NULL,
	  "CPUs that ranks may use, such as 0-7,12. Default: all that the agent may use.", 0, 0,
	  NULL },
	{ "reserve_cores", MO_OPTION_INT, AT(reserve_cores), "0",
	  "Least number of cores kept free of ranks, when a recipe asks for fewer.", 0, 1024,
	  NULL },
	{ "allow_root", MO_OPTION_BOOL, AT(allow_root), "false",
	  "Ranks may run as root, and as system accounts, when the job says so, which only a "
	  "controller that listens on loopback alone lets it. Without it a root agent only runs "
	  "ranks of ordinary users.",
	  0, 0, NULL },
	{ "min_uid", MO_OPTION_INT, AT(min_uid), "1000",
	  "A root agent runs no ranks of accounts with a lower uid, or with a shell that nobody "
	  "logs in with (nologin, false). 0 = any account.",
	  0, UINT32_MAX, NULL },
	{ "log_bytes", MO_OPTION_SIZE, AT(log_bytes), "64M",
	  "A rank's log file is rotated at this size; one old file is kept.", 4096, 1LL << 40,
	  NULL },
	{ "logs_kept", MO_OPTION_INT, AT(logs_kept), "100", "Logs of this many jobs are kept.", 1,
	  1000000, NULL },
	{ "nofile", MO_OPTION_SIZE, AT(nofile), "unlimited",
	  "Limit of open files of a rank. unlimited = as high as the agent may; where steps are "
	  "systemd services 1048576.",
	  -1, 1LL << 30, NULL },
	{ "memlock", MO_OPTION_SIZE, AT(memlock_bytes), "unlimited",
	  "Limit of locked memory of a rank (RDMA needs it unlimited).", -1, INT64_MAX, NULL },
	{ "core", MO_OPTION_SIZE, AT(core_bytes), "0", "Limit of a rank's core file.", -1,
	  INT64_MAX, NULL },
	{ "memory", MO_OPTION_SIZE, AT(memory_bytes), "unlimited",
	  "Memory that the ranks of a step may use together when it has all GPUs of the node; one "
	  "that has some of them gets their share. In force where steps have a control group of "
	  "version 2 (systemd services have).",
	  -1, INT64_MAX, NULL },
	{ "pids", MO_OPTION_SIZE, AT(pids), "unlimited",
	  "The same for the number of their processes and threads.", -1, 1LL << 30, NULL },
	{ "walls", MO_OPTION_WORD, AT(walls), "auto",
	  "A step that has some of the node's GPUs sees the device files of these and of their "
	  "network cards only, and its GPUs count from 0. auto: where the agent is root and has "
	  "AMD GPUs. no: every job can open every GPU.",
	  0, 0, auto_no },
	{ "images_dir", MO_OPTION_PATH, AT(images_dir), NULL,
	  "Directory of this node's own disk for images that jobs name (engine.container.image), "
	  "each once. Default: images in state_dir.",
	  0, 0, NULL },
	{ "images_max", MO_OPTION_SIZE, AT(images_max), "200G",
	  "Bytes that they may take: beyond it those go that no job has used for long, when no "
	  "image is being brought. Images that are one user's (engine.container.auth) count by "
	  "themselves.",
	  0, INT64_MAX, NULL },
	{ "image_user", MO_OPTION_NAME, AT(image_user), "moe-image",
	  "Account that fetches, unpacks and owns them; one without rights. An archive or a "
	  "directory that a job names as its image must be readable to it.",
	  0, 0, NULL },
	{ "registry_mirrors", MO_OPTION_STR, AT(registry_mirrors), NULL,
	  "Where images of a registry are fetched instead, separated by commas, the first that "
	  "fits: docker.io=mirror.example:5000/hub,quay.io/team=mirror.example:5000/team.",
	  0, 0, NULL },
	{ "runtimes", MO_OPTION_STR, AT(runtimes), NULL,
	  "Container runtimes of whose stores jobs may use images (docker:NAME, podman:NAME), such "
	  "as docker,podman. Every job may use every image of a store that is named. Default: "
	  "none.",
	  0, 0, NULL },
	{ "squashfs", MO_OPTION_BOOL, AT(squashfs), "false",
	  "Jobs may use images that are files with a squashfs (squashfs:FILE), which this node's "
	  "kernel mounts. It then reads the structures of a file system that a user has made, and "
	  "may change meanwhile: an error in the kernel's reader would be that user's way to root.",
	  0, 0, NULL },
	{ "tmpdir", MO_OPTION_PATH, AT(tmpdir), "/tmp", "TMPDIR of the ranks.", 0, 0, NULL },
	{ "use_systemd", MO_OPTION_WORD, AT(use_systemd), "auto",
	  "Start steps as transient systemd services. auto: where systemd runs and the agent is "
	  "root.",
	  0, 0, auto_yes_no },
	{ "use_cgroup", MO_OPTION_WORD, AT(use_cgroup), "auto",
	  "Without systemd: a cgroup2 directory per step. auto: where one can be made. cgroup v1 "
	  "is never touched.",
	  0, 0, auto_yes_no },
	{ "discover_deadline", MO_OPTION_DURATION, AT(discover_deadline_us), "10s",
	  "The discovery helper is killed after this: sysfs of a wedged GPU can hang.", 100000,
	  600000000, NULL },
	{ "scan_deadline", MO_OPTION_DURATION, AT(scan_deadline_us), "60s",
	  "The checkpoint helper is killed after this: file systems can hang.", 100000,
	  3600000000LL, NULL },
	{ "verify_deadline", MO_OPTION_DURATION, AT(verify_deadline_us), "6h",
	  "The helper that reads a saved checkpoint for its checksums is killed after this.",
	  100000, 86400000000LL, NULL },
	{ "verify_bandwidth", MO_OPTION_SIZE, AT(verify_bandwidth), "500M",
	  "Bytes per second that one such helper reads at most (checkpoint.verify: crc); it runs "
	  "at the lowest priority of CPU and disk.",
	  0, 1LL << 50, NULL },
	{ "health", MO_OPTION_BOOL, AT(health), "true",
	  "Look at the health of this node: sensors, and the checks of config/health. Without it "
	  "the controller knows nothing of the node's health and uses it.",
	  0, 0, NULL },
	{ "health_disable", MO_OPTION_STR, AT(health_disable), NULL,
	  "Checks that are turned off on this node, such as gpu.hive,host.governor. `moe-probe "
	  "checks` lists them.",
	  0, 0, NULL },
	{ "expect_gpus", MO_OPTION_INT, AT(expect_gpus), "0",
	  "GPUs that this node must have; fewer is a finding. 0 = as many as were seen since it "
	  "booted.",
	  0, MO_GPUS_PER_NODE_MAX, NULL },
	{ "expect_memory", MO_OPTION_SIZE, AT(expect_memory), "0",
	  "Memory that this node must have (MemTotal); more than 7 % less is a finding. 0 = any.",
	  0, 1LL << 60, NULL },
	{ "expect_partition", MO_OPTION_STR, AT(expect_partition), NULL,
	  "Compute and memory partition that this node's GPUs must have, such as SPX/NPS1, or SPX "
	  "for any memory partition; another is a finding.",
	  0, 0, NULL },
	{ "probe_sensors", MO_OPTION_DURATION, AT(probe_sensors_us), "5s",
	  "Temperatures, power, clocks and activity of each GPU are read this often.", 1000000,
	  3600000000LL, NULL },
	{ "probe_device", MO_OPTION_DURATION, AT(probe_device_us), "30s",
	  "Each GPU and RDMA card is looked at in full this often.", 1000000, 3600000000LL, NULL },
	{ "probe_host", MO_OPTION_DURATION, AT(probe_host_us), "60s",
	  "The host is looked at this often; its software stack every tenth time.", 1000000,
	  3600000000LL, NULL },
	{ "probe_klog", MO_OPTION_DURATION, AT(probe_klog_us), "10s",
	  "New lines of the kernel's log are looked at at most this often.", 1000000, 3600000000LL,
	  NULL },
	{ "metrics_listen", MO_OPTION_STR, AT(metrics_listen), "127.0.0.1",
	  "Numeric address at which metrics_port is open.", 0, 0, NULL },
	{ "metrics_port", MO_OPTION_INT, AT(metrics_port), "-1",
	  "TCP port of GET /metrics for Prometheus (7071 is usual): what this node's GPUs, cards, "
	  "checks and ranks do. No credential is asked for. 0 = any free one, -1 = none.",
	  -1, 65535, NULL },
	{ "debug", MO_OPTION_BOOL, AT(debug), "false", "Log more.", 0, 0, NULL },
};
const struct mo_options agent_options = { options, ELEMENTSOF(options) };

static int default_node(struct agent_config *c, struct mo_error *err)
{
	char host[256] = "";
	if (gethostname(host, sizeof(host) - 1) < 0)
		return mo_error_set(err, -errno, "node: the host name cannot be read: %s",
				    strerror(errno));
	host[strcspn(host, ".")] = '\0';
	if (!mo_name_valid(host))
		return mo_error_set(err, -EINVAL,
				    "node: the host name '%s' is not a node name; set node:", host);
	mo_str_set(&c->node, host);
	return 0;
}

/* "SPX/NPS1", "CPX" */
static bool is_partition(const char *s)
{
	static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t n = strspn(s, capitals), m = s[n] == '/' ? strspn(s + n + 1, capitals) : 1;
	return n && m && !s[n + (s[n] == '/' ? 1 + m : 0)];
}

int agent_config_check(struct agent_config *c, struct mo_error *err)
{
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
	_cleanup_(mo_idset_done) struct mo_idset gpus = { 0 };
	if (!mo_starts_with(c->controller, "unix:/") && !mo_starts_with(c->controller, "http://") &&
	    !mo_starts_with(c->controller, "https://"))
		return mo_error_set(err, -EINVAL,
				    "controller: '%s' is none of http://host:port, "
				    "https://host:port, unix:/path",
				    c->controller);
	if (mo_url_clear_text(c->controller))
		return mo_error_set(err, -EINVAL,
				    "controller: '%s' would send this node's token in clear text: "
				    "use https:// (tls_cert and tls_key in moed.yaml, ca_file "
				    "here); http:// is for loopback",
				    c->controller);
	if (c->cpus && (mo_idset_parse(c->cpus, &set) < 0 || mo_idset_count(&set) == 0))
		return mo_error_set(err, -EINVAL, "cpus: '%s' is not a list such as 0-7,12",
				    c->cpus);
	if (c->use_gpus && (mo_idset_parse(c->use_gpus, &gpus) < 0 || mo_idset_count(&gpus) == 0))
		return mo_error_set(err, -EINVAL, "use_gpus: '%s' is not a list such as 0-3",
				    c->use_gpus);
	if (c->expect_partition && !is_partition(c->expect_partition))
		return mo_error_set(err, -EINVAL,
				    "expect_partition: '%s' is not a partition such as SPX/NPS1",
				    c->expect_partition);
	if (c->topology && mo_access(c->topology, R_OK) < 0)
		return mo_error_set(err, -errno, "topology: %s: %s", c->topology, strerror(errno));
	if (!c->state_dir || !c->runtime_dir || !c->tmpdir ||
	    strlen(c->runtime_dir) > RUNTIME_DIR_MAX)
		return mo_error_set(err, -EINVAL,
				    "state_dir, runtime_dir and tmpdir must name directories");
	if (!c->images_dir)
		c->images_dir = mo_printf("%s/images", c->state_dir);
	return c->node ? 0 : default_node(c, err);
}
