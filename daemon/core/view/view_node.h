/* The document of a node (see view.h); see view_node.c. */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/core/view/node_state.h"

struct node_check {
	char *check, *object, *state, *text, *next;
	bool known, held;
	int64_t since;
	char **evidence;
	size_t n_evidence;
};
struct node_view {
	char *name;
	int state;
	char *reason;
	int64_t gpus, cpus, numa_nodes;
	char **jobs;
	size_t n_jobs;
	int64_t heartbeat_age_ms;
	struct node_check *checks;
	size_t n_checks;
	double lemon_score;
	char *boot_id, *version, *address, *gpu_model;
	int64_t spare_of;
	int64_t gpus_free;
	int health; /* enum check_state */
	int64_t findings, checks_ok;
	char *refuses, *next; /* refusal.h */
	bool cordoned;
	int64_t learn_until; /* health.learn */
	char *would_cordon, *would_next;
	char **unknown_steps;
	size_t n_unknown_steps;
	/* this and all below, and findings in checks: only in GET /v1/nodes/{name} */
	struct nodeinfo *info;
	bool preflight_done;
	struct stack_item *stack;
	size_t n_stack;
	struct gpu_sensors *sensors;
	size_t n_sensors; /* filled by the shell */
	struct nic_sensors *nic_sensors;
	size_t n_nic_sensors;
	/* with lemon_score filled by the shell (lemon.h) */
	struct node_failure *failures;
	size_t n_failures;
};
extern const struct mo_desc node_view_desc;

void node_view(const struct state *s, const struct node *n, int64_t now, bool with_info,
	       struct node_view *ret);
