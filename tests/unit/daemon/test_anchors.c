/* The run of a job as an anchor for others: nothing of it that is a secret, at any depth. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/anchors.h"

static void secrets_are_masked(void **state)
{
	static const char text[] = "{\"recipe\":1,\"name\":\"own\",\"engine\":{\"kind\":"
				   "\"command\",\"argv\":[\"/bin/x\",\"--api-key\",\"hush1\"]},"
				   "\"cluster\":{\"gpus\":1},\"env\":{\"A\":\"hush2\"},"
				   "\"experiment\":{\"files\":\"crc32c:00000000\",\"values\":{},"
				   "\"result\":{\"read\":[\"x.yaml\"],\"keys\":[[\"wandb_api_key\","
				   "[\"hush3\",0,1]]]}}}";
	const struct measured m = { .steps = 5, .step_time_s = 1, .memory_gb = MO_NONE_F };
	struct recipe chosen;

	mo_desc_init(&recipe_desc, &chosen);
	_cleanup_(mo_freep) char *run = anchor_run_text(&chosen, text, &m);

	mo_desc_done(&recipe_desc, &chosen);
	if (run && strstr(run, "hush"))
		fail_msg("%s", run);
	assert_non_null(run);
	assert_null(strstr(run, "wandb_api_key\",["));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(secrets_are_masked) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
