/* What moe-stepd decides about a command beside its ranks. */
#include <string.h>

#include "agent/core/stepd/exec_words.h"
#include "tests/unit/unit.h"

static const struct exec_step running = {
	.node = "n0", .first_rank = 8, .n_local = 8, .started = true
};

static void refused(struct exec_step step, int64_t rank, int64_t ms, size_t n, const char *word,
		    const char *wanted)
{
	char *argv[EXEC_WORDS_MAX + 1];
	const struct exec_ask ask = { .rank = rank, .argv = argv, .n_argv = n, .deadline_ms = ms };

	for (size_t i = 0; i < n; i++)
		argv[i] = (char *)word;
	_cleanup_(mo_freep) char *seen = exec_refusal(&ask, &step);
	if (wanted) {
		assert_non_null(seen);
		assert_non_null(strstr(seen, wanted));
	} else
		assert_null(seen);
}

static void test_refusal(void **state)
{
	struct exec_step early = running, late = running, ending = running;

	early.started = false;
	late.exited = true;
	ending.ending = true;
	refused(running, 8, 1, 1, "ps", NULL);
	refused(running, 15, EXEC_DEADLINE_MAX_MS, EXEC_WORDS_MAX, "ps", NULL);
	refused(running, 7, 1, 1, "ps", "rank 7 is not on n0");
	refused(running, 16, 1, 1, "ps", "rank 16 is not on n0");
	refused(running, INT64_MIN, 1, 1, "ps", "is not on n0");
	refused(running, 8, 0, 1, "ps", "deadline");
	refused(running, 8, EXEC_DEADLINE_MAX_MS + 1, 1, "ps", "deadline");
	refused(running, 8, 1, 0, "ps", "name a program");
	refused(running, 8, 1, 1, "", "name a program");
	refused(running, 8, 1, EXEC_WORDS_MAX + 1, "ps", "too many");
	refused(early, 8, 1, 1, "ps", "has not started yet");
	refused(late, 8, 1, 1, "ps", "has ended");
	refused(ending, 8, 1, 1, "ps", "is ending");
}

static void give(struct env_item **items, size_t *n, const char *name, const char *value)
{
	struct env_item *item = mo_vec_add(&env_item_desc, (void **)items, n);

	item->name = mo_strdup(name);
	item->value = mo_strdup(value);
}

static void test_environment(void **state)
{
	struct env_record record = { 0 };
	struct env_item *items = NULL;
	size_t n = 0;

	give(&items, &n, "PATH", "/opt/bin:/bin");
	give(&items, &n, "WANDB_API_KEY", "secret");
	give(&items, &n, "MOE_NOTIFY_SOCKET", "/run/s");
	give(&items, &n, "TORCHELASTIC_ERROR_FILE", "/run/e");
	give(&items, &n, "UNSET", NULL);
	give(&items, &n, "RANK", "3");
	env_record_add(&record, 3, items, n);
	char **env = exec_environment(&record, 3);
	assert_non_null(env);
	assert_string_equal(env[0], "PATH=/opt/bin:/bin");
	assert_string_equal(env[1], "RANK=3");
	assert_null(env[2]);
	assert_null(exec_environment(&record, 4));
	free(env[0]);
	free(env[1]);
	free(env);
	mo_vec_clear(&env_item_desc, (void **)&items, &n);
	mo_desc_done(&env_record_desc, &record);
}

static void test_output(void **state)
{
	struct exec_output o = { 0 };
	char chunk[1000];

	_cleanup_(mo_freep) char *nothing = exec_output_text(&o);
	assert_string_equal(nothing, "");
	exec_output_add(&o, "a\0b\0", 4);
	_cleanup_(mo_freep) char *text = exec_output_text(&o);
	assert_string_equal(text, "a\xef\xbf\xbd"
				  "b\xef\xbf\xbd");
	memset(chunk, 'x', sizeof(chunk));
	while (o.kept.len + sizeof(chunk) <= EXEC_OUT_MAX)
		exec_output_add(&o, chunk, sizeof(chunk));
	exec_output_add(&o, chunk, EXEC_OUT_MAX - o.kept.len);
	assert_false(o.cut);
	exec_output_add(&o, chunk, 1);
	assert_true(o.cut);
	assert_int_equal(o.kept.len, EXEC_OUT_MAX);
	mo_buf_done(&o.kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
