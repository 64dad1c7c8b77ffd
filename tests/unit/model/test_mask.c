/* What is hidden as a credential, and what is not. */
#include "tests/unit/unit.h"

#include <string.h>

#include "lib/model/mask.h"

static void names(void **state)
{
	/* clang-format off */
	static const char *const variables[] = {
		"WANDB_API_KEY", "HF_TOKEN", "my_secret", "DB_PASSWORD", "PASSWD", "AWS_CREDENTIAL",
		"GOOGLE_CREDENTIALS_FILE", "SLACK_WEBHOOK", "TEAMS_WEBHOOK_URL", "TOKENIZER_TOKEN",
	};
	/* clang-format on */
	static const char *const plain[] = { "PATH", "NCCL_DEBUG", "HSA_KERNARG_POOL_SIZE",
					     "PRIMUS_TOKENIZED_DATA_PATH",
					     "TOKENIZERS_PARALLELISM" };
	static const char *const arguments[] = {
		"--wandb-api-key", "hub_token",     "password",
		"db.password",     "--credentials", "alert-webhook"
	};
	static const char *const harmless[] = { "--moe-token-dispatcher-type",
						"num_tokens",
						"tokenizer-model",
						"--kv-channels",
						"keys",
						"monkey",
						"" };

	for (size_t i = 0; i < ELEMENTSOF(variables); i++)
		assert_true(mo_mask_variable(variables[i]));
	for (size_t i = 0; i < ELEMENTSOF(plain); i++)
		assert_false(mo_mask_variable(plain[i]));
	for (size_t i = 0; i < ELEMENTSOF(arguments); i++)
		assert_true(mo_mask_argument(arguments[i]));
	for (size_t i = 0; i < ELEMENTSOF(harmless); i++)
		assert_false(mo_mask_argument(harmless[i]));
}

static void texts(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "", "" },
		{ "http://ada:s3cret@proxy:3128/", "http://ada:***@proxy:3128/" },
		{ "see https://u:p@h/x and s3://k:v@b/y.",
		  "see https://u:***@h/x and s3://k:***@b/y." },
		{ "https://u:p@ss@h/", "https://u:***@h/" },
		{ "postgresql+psycopg2://u:p%40@h:5432/db?sslmode=off",
		  "postgresql+psycopg2://u:***@h:5432/db?sslmode=off" },
		{ "http://host:3128/a:b@c", "http://host:3128/a:b@c" },
		{ "tcp://10.0.0.1:20000", "tcp://10.0.0.1:20000" },
		{ "ssh://git@host/x", "ssh://git@host/x" },
		{ "export WANDB_API_KEY=abcdef; run", "export WANDB_API_KEY=***; run" },
		{ "--wandb-api-key=abcdef --lr=0.1", "--wandb-api-key=*** --lr=0.1" },
		{ "password='a b' x", "password=***' x" },
		{ "num_tokens=4096 token=17 step=3", "num_tokens=4096 token=17 step=3" },
		{ "Bearer "
		  "moe_1f2e3d4c_00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff.",
		  "Bearer moe_1f2e3d4c_***." },
		{ "moe_layer_freq=2 moe_router", "moe_layer_freq=2 moe_router" },
		{ "iteration 12 | loss 2.3", "iteration 12 | loss 2.3" },
		{ "h\xc3\xa4 :// @ = ===", "h\xc3\xa4 :// @ = ===" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *got = mo_mask_text(cases[i].in);
		assert_string_equal(got, cases[i].out);
	}
	_cleanup_(mo_freep) char *by_name = mo_mask_value("SLACK_WEBHOOK",
							  "https://hooks.example/T0/B0"),
				 *by_form = mo_mask_value("http_proxy", "http://u:p@h:1");
	assert_string_equal(by_name, "***");
	assert_string_equal(by_form, "http://u:***@h:1");
	assert_null(mo_mask_value("X", NULL));
}

static void words(void **state)
{
	char *argv[] = {
		mo_strdup("train.py"),    mo_strdup("--hub-token"), mo_strdup("hf_x"),
		mo_strdup("--pad-token"), mo_strdup("0"),           mo_strdup("--use-key"),
		mo_strdup("--lr"),        mo_strdup("0.1"),         mo_strdup("--data=s3://a:b@c/d")
	};
	static const char *const want[] = { "train.py",    "--hub-token", "***",
					    "--pad-token", "0",           "--use-key",
					    "--lr",        "0.1",         "--data=s3://a:***@c/d" };

	mo_mask_words(argv, ELEMENTSOF(argv));
	for (size_t i = 0; i < ELEMENTSOF(argv); i++) {
		assert_string_equal(argv[i], want[i]);
		free(argv[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(names), cmocka_unit_test(texts),
					    cmocka_unit_test(words) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
