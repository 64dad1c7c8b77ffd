/* The agent's shell: one thread on sd-event. Sources queue agent events; the turn gives them to
 * the pure core (agent/core/agent/agent_core.h) and carries out its effects in order. One
 * direction, from below:
 *   queue (events that wait), paths, helper (children with a deadline), journal, cgroup
 *   <- fence, scan (checkpoints), sweep, discovery (this machine), ending (is it going down?)
 *   <- supervisor <- step_dir (one step: lock, journal), step_talk (with its supervisor)
 *   <- step_entry (what was ordered, adoption), health (probes and checks)
 *   <- plain <- reserve, unit (ways to start a supervisor) <- start; controller (messages)
 *   <- metrics <- link <- logs, exec, image_asks
 *   <- step_effect (of the core, on one step) <- manager (turn, other effects, start-up).
 * Nothing calls the manager: a source queues, or sets a mark and arms the turn. */
#pragma once
#include "agent/core/agent/discovery.h"
#include "agent/core/agent/agent_core.h"
#include "agent/ending.h"
#include "agent/options.h"
#include "lib/base/error.h"
#include "lib/model/limits.h"

struct step_dir;
struct starter;
struct layers;
struct images;
struct runtimes;
struct logs;
struct execs;
struct image_asks;
struct releases;
struct watch;
struct scan;
struct fence;
struct discovery;
struct link;
struct metrics;
/* What the sources share. */
struct manager {
	const struct agent_config *config;
	sd_event *loop;
	char *boot_id, *instance;
	struct nodeinfo info;
	char *stepd_path, *discover_path, *ckpt_path, *probe_path, *image_path, *recorder_path;
	char *cgroup_base; /* own cgroup2 directory, NULL none */
	int lock_fd;
	struct agent_core *core;
	struct mo_turn *turn;
	struct mo_timer *deadline;
	struct agent_event *queue;
	size_t n_queue;
	struct step_dir **steps;
	size_t n_steps;
	struct fence *fence;
	struct link *link;
	struct logs *logs;
	struct execs *execs;
	struct image_asks *image_asks;
	struct releases *releases;
	struct layers *layers;
	struct images *images;
	struct runtimes *runtimes;
	struct watch *watch; /* NULL: health is off */
	struct metrics *metrics;
	struct scan **scans;
	size_t n_scans;
	struct starter *starter; /* how supervisors are started here */
	struct discovery *discovery;
	bool started, draining, adopting;
	bool machine_changed; /* discovery knows more than the last turn did */
	/* within a turn: sent at its end, with everything that the turn brought */
	bool sync_due, urgent_due;
	struct ending end;
	bool fence_logged; /* that the fence cannot be saved */
};

int manager_new(const struct agent_config *config, sd_event *loop, struct manager **ret,
		struct mo_error *err);
struct manager *manager_free(struct manager *m);
MO_DEFINE_CLEANUP(struct manager, manager_free)
