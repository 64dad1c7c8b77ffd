/* The launcher's names. TORCHELASTIC_USE_AGENT_STORE is here because rank 0 would wait for a
 * store that nobody hosts; of the visibility variables exactly one may be set, by the agent,
 * because two of them filter twice. */
#include "lib/model/env_names.h"

static const char *const names[] = {
	"RANK",
	"WORLD_SIZE",
	"LOCAL_RANK",
	"LOCAL_WORLD_SIZE",
	"GROUP_RANK",
	"GROUP_WORLD_SIZE",
	"ROLE_RANK",
	"ROLE_WORLD_SIZE",
	"NODE_RANK",
	"NNODES",
	"MASTER_ADDR",
	"MASTER_PORT",
	"TORCHELASTIC_RUN_ID",
	"TORCHELASTIC_RESTART_COUNT",
	"TORCHELASTIC_ERROR_FILE",
	"TORCHELASTIC_USE_AGENT_STORE",
};
static const char *const visibility[] = { "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
					  "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL" };

bool mo_env_visibility(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(visibility); i++)
		if (mo_streq(name, visibility[i]))
			return true;
	return false;
}

bool mo_env_launch_name(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		if (mo_streq(name, names[i]))
			return true;
	return mo_starts_with(name, "MOE_") || mo_env_visibility(name);
}
