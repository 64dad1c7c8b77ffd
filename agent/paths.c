/* See paths.h. */
#include "agent/paths.h"

#include "lib/base/fd.h"

char *path_step(const struct agent_config *c, int64_t job, int64_t attempt)
{
	return mo_path(c->runtime_dir, "steps/j%lld.a%lld", (long long)job, (long long)attempt);
}

char *path_step_gone(const struct agent_config *c, int64_t job, int64_t attempt)
{
	return mo_path(c->runtime_dir, "steps/" STEP_GONE "j%lld.a%lld", (long long)job,
		       (long long)attempt);
}

char *path_logs(const struct agent_config *c, int64_t job, int64_t attempt)
{
	return mo_path(c->state_dir, "logs/j%lld/a%lld", (long long)job, (long long)attempt);
}

char *path_layers(const struct agent_config *c)
{
	return mo_path(c->state_dir, "layers");
}

char *path_layer(const struct agent_config *c, int64_t job, int64_t attempt)
{
	return mo_path(c->state_dir, "layers/j%lld.a%lld", (long long)job, (long long)attempt);
}
