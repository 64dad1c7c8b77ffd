/* The checks in force as JSON: the agent, which reads no YAML, asks for them once. */
#include "agent/probe/probe_pass.h"
#include "lib/recipe/health_file.h"
#include "lib/wire/encode.h"

int probe_checks(struct mo_buf *ret, struct mo_error *err)
{
	struct health_checks checks;

	mo_desc_init(&health_checks_desc, &checks);
	int r = health_checks_load(&checks, err);
	if (r == 0)
		wire_encode(&health_checks_desc, &checks, ret);
	mo_desc_done(&health_checks_desc, &checks);
	return r;
}
