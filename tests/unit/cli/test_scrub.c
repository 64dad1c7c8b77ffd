/* Nothing that looks like a credential is left in a document, at any depth, and nothing else is
 * taken. */
#include "tests/unit/unit.h"

#include <string.h>

#include "cli/scrub.h"
#include "lib/base/util.h"

static void check(const char *before, const char *after)
{
	struct json_object *doc = json_tokener_parse(before), *shown = scrubbed(doc);
	const char *text =
		json_object_to_json_string_ext(shown, JSON_C_TO_STRING_PLAIN |
							      JSON_C_TO_STRING_NOSLASHESCAPE);

	assert_string_equal(text, after);
	assert_null(strstr(text, "hush"));
	json_object_put(shown);
	json_object_put(doc);
}

static void secrets_go(void **state)
{
	check("{\"a\":[{\"b\":\"got WANDB_API_KEY=hush1 and\"}]}",
	      "{\"a\":[{\"b\":\"got WANDB_API_KEY=*** and\"}]}");
	check("\"https://ada:hush2@host/x\"", "\"https://ada:***@host/x\"");
	check("{\"name\":\"HF_TOKEN\",\"value\":\"hush3\",\"source\":\"recipe\"}",
	      "{\"name\":\"HF_TOKEN\",\"value\":\"***\",\"source\":\"recipe\"}");
	check("{\"key\":\"wandb.api_key\",\"value\":[\"hush4\"]}",
	      "{\"key\":\"wandb.api_key\",\"value\":\"***\"}");
	check("[\"train.py\",\"--api-key\",\"hush5\",\"--lr\",\"0.1\"]",
	      "[\"train.py\",\"--api-key\",\"***\",\"--lr\",\"0.1\"]");
	check("[\"--api-key=hush6\"]", "[\"--api-key=***\"]");
}

static void what_is_none_stays(void **state)
{
	static const char *const same[] = {
		"null",
		"[1,2.5,null,true,\"\",{}]",
		"{\"name\":\"NCCL_DEBUG\",\"value\":\"INFO\"}",
		"{\"name\":\"HF_TOKEN\",\"value\":null}",
		"{\"tokens\":1024,\"tokens_per_s_per_gpu\":99.5}",
		"[\"--num-tokens\",\"5\",\"--api-key\",\"--lr\",\"1\"]",
	};

	for (size_t i = 0; i < ELEMENTSOF(same); i++)
		check(same[i], same[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_go),
		cmocka_unit_test(what_is_none_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
