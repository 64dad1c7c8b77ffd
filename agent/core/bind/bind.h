/* Binding plan: a pure function snapshot -> plan. Each rank gets its share of whole cores of the
 * NUMA node of its GPU slot. Facts: hardware.md section 2. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/nodeinfo.h"
#include "lib/model/recipe.h"

/* PREFERRED with several nodes is the kernel's preferred-many */
enum mem_policy { MEM_NONE, MEM_PREFERRED, MEM_BIND, MEM_INTERLEAVE };
extern const char *const mem_policy_names[];
struct rank_bind {
	char *cpus;        /* cpu list, NULL = not bound (cpu: none) */
	int64_t n_cpus;    /* OMP_NUM_THREADS' share */
	int64_t numa_node; /* MO_NONE unknown */
	int mem_policy;    /* enum mem_policy; MEM_NONE with one NUMA node */
	char *mem_nodes;   /* node list */
	char *nic;
	bool shared; /* fewer cores than ranks: cores are shared */
	/* nothing is really bound: bind_verified null, "simulated topology" */
	bool simulated;
	char *note; /* what a user should know, NULL none */
};
extern const struct mo_desc rank_bind_desc;
/* gpus: slots of the local ranks, in order; taken_cpus: cpu list used by other jobs on this node
 * ("" none). ret gets n entries (caller frees with mo_vec_clear). */
int bind_plan(const struct nodeinfo *info, const struct recipe_bind *how, const int64_t *gpus,
	      size_t n, const char *taken_cpus, struct rank_bind **ret, size_t *n_ret,
	      struct mo_error *err);
/* Judges what the kernel says after exec. allowed_cpus: Cpus_allowed_list of the process;
 * policy/nodes as read back. Sets verified (1, 0, -1 unknown) and note. */
void bind_judge(const struct rank_bind *want, const char *allowed_cpus, const char *numa_policy,
		int8_t *ret_verified, char **ret_note);
/* What was asked of the kernel could not be read back: it verifies nothing, which `verify:
 * strict` does not let pass. */
bool bind_unread(const struct rank_bind *want, const char *allowed_cpus, const char *numa_policy);
bool bind_passes(const char *verify, int8_t verified, bool unread);
/* A thread that may run where its rank may not, or the main thread that may run on less. */
struct stray_thread {
	char name[16];
	char *cpus;
	bool is_main;
};
/* What a check of a running rank's threads says: n strays among n_threads; mems_allowed:
 * Mems_allowed_list, NULL unknown. NULL when all is as planned; caller frees. */
char *bind_judge_threads(const struct rank_bind *want, const struct stray_thread *strays, size_t n,
			 size_t n_threads, const char *mems_allowed);
