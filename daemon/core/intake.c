/* See intake.h. The bounds of single values stand in the descriptions of lib/model. */
#include "daemon/core/intake.h"

#include <string.h>

static char *bad_step(const struct step_report *steps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (steps[i].job < 1 || steps[i].attempt < 1 || MO_MAX(steps[i].job, steps[i].attempt) > MO_FIT_ITERATION)
			return mo_printf("steps[%zu]: job %lld attempt %lld: both begin with 1", i,
					 (long long)steps[i].job, (long long)steps[i].attempt);
	return NULL;
}

/* It becomes MASTER_ADDR of ranks. */
static char *bad_address(const char *address)
{
	static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:%_-";

	if (!address || !address[strspn(address, good)])
		return NULL;
	return mo_strdup("address: must be an IP address or a host name: correct `address` in agent.yaml");
}

/* A slot that two entries name would be given away twice. */
static char *bad_slots(const struct nodeinfo *info)
{
	for (size_t i = 0; i < info->n_gpus; i++)
		for (size_t k = 0; k < i; k++)
			if (info->gpus[k].index == info->gpus[i].index)
				return mo_printf("info.gpus[%zu].index: %lld, as info.gpus[%zu] has it: each slot has its own", i,
						 (long long)info->gpus[i].index, k);
	return NULL;
}

char *intake_hello(const struct agent_hello *hello)
{
	char *why = bad_step(hello->steps, hello->n_steps);

	if (!why)
		why = bad_address(hello->address);
	if (!why)
		why = mo_desc_unfit(&agent_hello_desc, hello);
	return why ? why : bad_slots(&hello->info);
}

char *intake_sync(struct agent_sync *sync, char **ret_unfit)
{
	char *why = bad_step(sync->steps, sync->n_steps);

	*ret_unfit = why ? NULL : mo_desc_unfit(&agent_sync_desc, sync);
	if (*ret_unfit)
		mo_desc_fit(&agent_sync_desc, sync);
	return why;
}
