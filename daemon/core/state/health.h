/* Health of nodes, the controller's side: agents judge (agent/core/health/health.h), this
 * decides what follows for the cluster.
 *   reported    the newest word of each agent is stored by a record, when it differs; changes
 *               become events (health.warn crit ok unknown), at a limited rate
 *   cordon      a CRIT finding whose check asks for it drains the node (--when idle: what runs
 *               there runs on), at most HEALTH_CORDON_SHARE of the nodes at a time, at least
 *               one.
 *               Only `undrain` ends it; what was found then does not cordon again before its
 *               counter rose, it was OK in between, or the node was booted
 *   learning    while a node is new, findings of checks that never met real hardware of its kind
 *               are only reported: learn.c
 *   placement   health.preflight of the recipe keeps jobs away from nodes
 *   failure     before the next attempt of a failed job its nodes make their on-failure checks,
 *               within HEALTH_CHECK_US; where GPUs may have computed wrong, HEALTH_DOUBT_US
 * UNKNOWN does nothing by itself. No finding ends a job. Pure; used by the files of daemon/core
 * and by the views. */
#pragma once
#include "daemon/core/state/state.h"

#define HEALTH_CORDON_SHARE 10            /* one of so many nodes is cordoned without a person */
#define HEALTH_CHECK_US (60 * 1000000LL)  /* what has not answered then is not waited for */
#define HEALTH_DOUBT_US (120 * 1000000LL) /* the shipped programs of doubt take 90 s at most */
/* in health.preflight: equal software and settings on all nodes */
#define HEALTH_STACK_SAME "stack.same"

/* Order of enum check_state by how bad it is: ok unknown warn crit. */
int health_rank(int state);
/* Worst state of the node's findings: enum check_state, unknown between ok and warn; -1 = its
 * agent reported nothing. */
int health_worst(const struct node *n);
/* The finding about this check and object that is not OK; NULL = OK or never reported. */
const struct check_result *health_find(const struct node_health *h, const char *check,
				       const char *object);
/* What keeps a job with health.preflight: standard away from the node: a finding, or why nothing
 * is known. Neither: it may be used. */
bool health_standard(const struct node *n, const struct check_result **ret, const char **ret_why);
/* The same for any recipe; caller frees; NULL = it may be used. standard_ok: what
 * health_standard() said. */
bool health_allows(const struct node *n, const struct recipe *r, bool standard_ok);
char *health_refusal(const struct node *n, const struct recipe *r);
/* It takes work although its preflight checks are not done: what they find may cordon it. */
bool health_unlooked(const struct node *n);
/* How long a failed job waits for its nodes' checks; thorough: with programs of doubt. */
int64_t health_wait_us(bool thorough);
bool health_wants_same_stack(const struct recipe *r);
/* Of the software on the node, in whatever order it is reported; 0 = not reported. */
uint64_t health_stack_hash(const struct node_health *h);
uint64_t node_stack(const struct node *n);
/* The same without what is the agent's own (its version, options, checks and profiles): what
 * stack.same compares. An agent that is upgraded does not set its node apart. */
uint64_t health_same_hash(const struct node_health *h);
uint64_t node_same(const struct node *n);
bool health_own_key(const char *key); /* such an item of the fingerprint: for drift only */
/* NULL = it has none */
const char *health_stack_value(const struct node_health *h, const char *key);
/* An operator gave the node back in spite of this finding, and its counter (if it is one) stands
 * where it stood then: a rise, or a new beginning, is something that nobody saw. */
bool health_waived(const struct node *n, const struct check_result *r);
/* A person said that he knows of it, and its counter stands where it stood then: it keeps no job
 * away. */
bool finding_acked(const struct node *n, const struct check_result *r);
/* How many findings keep jobs with health.preflight: standard away. */
size_t health_away(const struct node *n);
/* The node is new (health.learn) and the check of this finding never met the real hardware that
 * it reads: it is only reported. It cordons nothing and keeps no job with health.preflight:
 * standard away. */
bool finding_held(const struct node *n, const struct check_result *r);
/* It could not be tried on this node (CHECK_SKIPPED): shown as that, and no finding. */
bool finding_skipped(const struct check_result *r);
size_t health_findings(const struct node *n); /* how many there are */
/* What would cordon the node if it were not new; NULL = nothing. */
const struct check_result *health_held_reason(const struct node *n);
/* "would be cordoned, but ...: gpu.ras_ue 0000:9f:00.0: 2 errors"; NULL = nothing would cordon
 * it; caller frees. */
char *health_held_text(const struct node *n);
/* What a person does about that; caller frees. */
char *health_held_next(const struct node *n);
/* CRIT, its check asks for a cordon, and no operator gave the node back in spite of it, or knows
 * of it; proven hardware first; NULL = none. */
const struct check_result *health_cordon_reason(const struct node *n);
/* "gpu.ras_ue 0000:9f:00.0"; caller frees. */
char *finding_name(const struct check_result *r);
/* The same findings, in the same states, and nothing else that decisions rest on. */
bool health_equal(const struct node_health *a, const struct node_health *b, bool texts_too);
/* It makes checks after a failure, so that a next attempt waits for them. */
bool health_checks_failures(const struct node *n);
bool health_preflight_none(const struct recipe *r);
bool health_checked(const struct node_health *h, int64_t job, int64_t attempt);
/* how the name of a cordon begins that failures of jobs made (rules/elsewhere.c) */
#define FAILURE_CORDON "failure"
/* It is: by what failures of jobs said. */
bool cordon_by_failures(const struct node *n);
#define ONE_JOB "for one job in spite of it: --set health.preflight=none"
/* What ends this finding on this node; caller frees. */
char *finding_next(const struct node *n, const struct check_result *r);
