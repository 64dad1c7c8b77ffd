/* The agent's options: one table (options.c) for agent.yaml, --set, --check-config and the
 * documented example. */
#pragma once
#include "lib/base/options.h"

struct agent_config {
	char *controller, *token_file, *ca_file;
	char *node, *address;
	char *state_dir, *runtime_dir;
	int64_t gpus;
	bool only_fake_gpus;
	char *use_gpus;
	char *topology, *cpus;
	int64_t reserve_cores;
	bool allow_root;
	int64_t min_uid;
	int64_t log_bytes, logs_kept;
	int64_t nofile, memlock_bytes, core_bytes;
	int64_t memory_bytes, pids;
	char *walls;
	char *images_dir, *image_user;
	int64_t images_max;
	char *registry_mirrors;
	char *runtimes;
	bool squashfs;
	char *tmpdir;
	char *use_systemd, *use_cgroup;
	int64_t discover_deadline_us, scan_deadline_us, verify_deadline_us, verify_bandwidth;
	bool health;
	char *health_disable;
	int64_t expect_gpus, expect_memory;
	char *expect_partition;
	int64_t probe_sensors_us, probe_device_us, probe_host_us, probe_klog_us;
	char *metrics_listen;
	int64_t metrics_port;
	bool debug;
};
extern const struct mo_options agent_options;
/* What one option alone cannot tell. Fills node (host name) when it was not given. -EINVAL with
 * err. */
int agent_config_check(struct agent_config *c, struct mo_error *err);
