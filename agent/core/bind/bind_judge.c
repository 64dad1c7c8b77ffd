/* Judges what the kernel made of a rank's binding. Called by stepd after exec and when the
 * rank's threads exist. */
#include "agent/core/bind/bind.h"

#include <string.h>

#include "lib/base/idset.h"

/* Kernel text such as "prefer:1", "prefer (many):0-1", "bind=static:0", "interleave:0-3",
 * "default" (mm/mempolicy.c, mpol_to_str). */
static bool policy_matches(const struct rank_bind *want, const char *text)
{
	static const char *const kernel_names[] = { "default", "prefer", "bind", "interleave" };
	const char *nodes = strrchr(text, ':');
	_cleanup_(mo_idset_done) struct mo_idset have = { 0 }, wanted = { 0 };

	if (want->mem_policy < MEM_NONE || want->mem_policy > MEM_INTERLEAVE ||
	    !mo_starts_with(text, kernel_names[want->mem_policy]) || !nodes)
		return false;
	if (mo_idset_parse(nodes + 1, &have) < 0 ||
	    mo_idset_parse(want->mem_nodes ? want->mem_nodes : "", &wanted) < 0)
		return false;
	/* a kernel without preferred-many prefers the first of them */
	if (want->mem_policy == MEM_PREFERRED && mo_idset_count(&wanted) > 1 && !strchr(text, '('))
		return mo_idset_count(&have) == 1 &&
		       mo_idset_next(&have, 0) == mo_idset_next(&wanted, 0);
	return mo_idset_equal(&have, &wanted);
}

static int8_t judge(const struct rank_bind *want, const char *allowed_cpus, const char *numa_policy,
		    char **ret_note)
{
	_cleanup_(mo_idset_done) struct mo_idset have = { 0 }, wanted = { 0 };

	if (want->simulated) {
		*ret_note = mo_strdup("simulated topology");
		return -1;
	}
	if (!want->cpus) {
		*ret_note = mo_strdup(want->note ? want->note : "not bound");
		return -1;
	}
	if (!allowed_cpus || mo_idset_parse(allowed_cpus, &have) < 0 ||
	    mo_idset_parse(want->cpus, &wanted) < 0) {
		*ret_note = mo_strdup("the kernel's list of allowed cpus could not be read");
		return -1;
	}
	if (!mo_idset_equal(&have, &wanted)) {
		*ret_note = mo_printf("asked for cpus %s, the kernel allows %s", want->cpus,
				      allowed_cpus);
		return 0;
	}
	if (want->mem_policy > MEM_NONE && !numa_policy) {
		*ret_note = mo_strdup("the kernel's memory policy could not be read");
		return -1;
	}
	if (want->mem_policy > MEM_NONE && !policy_matches(want, numa_policy)) {
		*ret_note = mo_printf("asked for memory policy %s on node %s, the kernel says %s",
				      mem_policy_names[want->mem_policy],
				      want->mem_nodes ? want->mem_nodes : "?", numa_policy);
		return 0;
	}
	*ret_note = mo_strdup(want->note);
	return 1;
}

void bind_judge(const struct rank_bind *want, const char *allowed_cpus, const char *numa_policy,
		int8_t *ret_verified, char **ret_note)
{
	char *text = NULL;

	*ret_verified = judge(want, allowed_cpus, numa_policy, &text);
	*ret_note = text;
}

bool bind_unread(const struct rank_bind *want, const char *allowed_cpus, const char *numa_policy)
{
	return want->cpus && !want->simulated &&
	       (!allowed_cpus || !*allowed_cpus || (want->mem_policy > MEM_NONE && !numa_policy));
}

bool bind_passes(const char *verify, int8_t verified, bool unread)
{
	return !mo_streq(verify, "strict") || (verified != 0 && !unread);
}

#define STRAYS_NAMED 4

static void append(char **text, char *more)
{
	_cleanup_(mo_freep) char *old = *text, *added = more;

	*text = mo_printf("%s%s%s", old ? old : "", old ? "; " : "", added);
}

char *bind_judge_threads(const struct rank_bind *want, const struct stray_thread *strays, size_t n,
			 size_t n_threads, const char *mems_allowed)
{
	_cleanup_(mo_idset_done) struct mo_idset mems = { 0 }, wanted = { 0 };
	char *text = NULL;
	size_t escaped = 0;

	for (size_t i = 0; i < n; i++)
		if (strays[i].is_main)
			append(&text,
			       mo_printf("the main thread was moved to cpus %s", strays[i].cpus));
		else if (++escaped <= STRAYS_NAMED)
			append(&text, mo_printf("thread %s may run on cpus %s", strays[i].name,
						strays[i].cpus));
	if (escaped > STRAYS_NAMED)
		append(&text, mo_printf("%zu of %zu threads are not where the rank was bound",
					escaped, n_threads));
	if (want->mem_nodes && mems_allowed && mo_idset_parse(mems_allowed, &mems) == 0 &&
	    mo_idset_parse(want->mem_nodes, &wanted) == 0) {
		mo_idset_andnot(&wanted, &mems);
		if (mo_idset_count(&wanted)) {
			_cleanup_(mo_freep) char *lost = mo_idset_format(&wanted);
			append(&text,
			       mo_printf("its control group allows no memory of node %s any more",
					 lost));
		}
	}
	return text;
}
