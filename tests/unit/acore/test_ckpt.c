/* Completeness of checkpoints, on listings. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/ckpt/ckpt.h"

struct bed {
	struct ckpt_layout layout;
	struct ckpt_rules *rules;
	struct ckpt_entry e;
	int64_t world;
	enum ckpt_tracker tracker;
	int64_t says;
	enum ckpt_level level;
};

static struct ckpt_file *add_file(struct bed *b, const char *name, int64_t bytes, int64_t mtime)
{
	struct ckpt_file *f = MO_GROW(b->e.files, b->e.n_files);

	*f = (struct ckpt_file){ .name = mo_strdup(name), .bytes = bytes, .mtime_ns = mtime };
	return f;
}

static struct ckpt_marker *add_marker(struct bed *b, const char *name, int64_t mtime)
{
	struct ckpt_marker *m = MO_GROW(b->e.markers, b->e.n_markers);

	*m = (struct ckpt_marker){ .name = mo_strdup(name),
				   .present = true,
				   .bytes = 10,
				   .mtime_ns = mtime,
				   .iteration = MO_NONE,
				   .world = MO_NONE };
	add_file(b, name, 10, mtime);
	return m;
}

static void list(struct ckpt_marker *m, const char *name, int64_t bytes)
{
	struct ckpt_file *f = MO_GROW(m->files, m->n_files);

	m->lists_files = true;
	*f = (struct ckpt_file){ .name = mo_strdup(name), .bytes = bytes };
}

static int setup(void **state)
{
	struct bed *b = mo_alloc(sizeof(*b));

	mo_desc_init(&ckpt_layout_desc, &b->layout);
	b->e.iteration = 20;
	b->e.directory = true;
	b->world = 2;
	b->level = LEVEL_SIZES;
	*state = b;
	return 0;
}

/* A complete checkpoint of tiny_moe. */
static int setup_tiny(void **state)
{
	setup(state);
	struct bed *b = *state;
	mo_strs_add(&b->layout.markers, &b->layout.n_markers, "COMPLETE");
	b->layout.announced_is_complete = true;
	struct ckpt_marker *m = add_marker(b, "COMPLETE", 50);
	m->iteration = 20;
	m->world = 2;
	list(m, "rank_1.pt", 200);
	list(m, "rank_0.pt", 100);
	add_file(b, "rank_0.pt", 100, 40);
	add_file(b, "rank_1.pt", 200, 41);
	add_file(b, "notes.txt", 0, 60);
	return ckpt_rules_new(&b->layout, &b->rules, NULL);
}

/* A complete checkpoint of Megatron-LM, torch_dist format. */
static int setup_megatron(void **state)
{
	setup(state);
	struct bed *b = *state;
	mo_str_set(&b->layout.entry, "^iter_(?<iteration>\\d{7})$");
	mo_str_set(&b->layout.tracker, "latest_checkpointed_iteration.txt");
	mo_str_set(&b->layout.shard, "\\.distcp$");
	mo_strs_add(&b->layout.markers, &b->layout.n_markers, ".metadata");
	mo_strs_add(&b->layout.markers, &b->layout.n_markers, "metadata.json");
	b->layout.marker_last = true;
	add_marker(b, ".metadata", 50);
	add_marker(b, "metadata.json", 60);
	add_file(b, "__0_0.distcp", 1000, 40);
	add_file(b, "__1_0.distcp", 1000, 50);
	add_file(b, "common.pt", 500, 99);
	b->tracker = TRACKER_SAYS;
	b->says = 20;
	return ckpt_rules_new(&b->layout, &b->rules, NULL);
}

static int teardown(void **state)
{
	struct bed *b = *state;

	ckpt_rules_free(b->rules);
	ckpt_entry_done(&b->e);
	mo_desc_done(&ckpt_layout_desc, &b->layout);
	free(b);
	return 0;
}

static void torn(struct bed *b, const char *words)
{
	_cleanup_(mo_freep) char *reason =
		ckpt_judge(b->rules, &b->e,
			   &(struct ckpt_question){ .level = b->level,
						    .world = b->world,
						    .tracker = b->tracker,
						    .tracker_says = b->says });

	if (!words != !reason || (words && !strstr(reason, words)))
		fail_msg("said '%s', wanted '%s'", reason ? reason : "complete",
			 words ? words : "complete");
}

static void test_tiny(void **state)
{
	struct bed *b = *state;
	struct ckpt_marker *m = b->e.markers;

	torn(b, NULL);
	b->world = MO_NONE;
	torn(b, NULL);
	b->world = 4;
	torn(b, "2 ranks wrote it, the job has 4");
	b->world = 2;
	b->e.files[1].bytes = 99;
	torn(b, "rank_0.pt has 99 bytes of 100");
	b->level = LEVEL_MARKER;
	torn(b, NULL);
	b->level = LEVEL_SIZES;
	mo_str_set(&b->e.files[1].name, "other");
	torn(b, "rank_0.pt, which COMPLETE lists, is missing");
	m->n_files--;
	torn(b, "lists 1 files of 2 ranks");
	m->n_files++;
	m->iteration = 21;
	torn(b, "speaks of iteration 21");
	m->damage = mo_strdup("it is no whole JSON document");
	torn(b, "COMPLETE: it is no whole");
	m->bytes = 0;
	torn(b, "COMPLETE is empty");
	m->present = false;
	torn(b, "COMPLETE is missing");
	b->e.directory = false;
	torn(b, "single file");
}

static void test_plain_marker(void **state)
{
	struct bed *b = *state;

	mo_strs_add(&b->layout.markers, &b->layout.n_markers, "COMPLETE");
	b->layout.announced_is_complete = true;
	assert_int_equal(ckpt_rules_new(&b->layout, &b->rules, NULL), 0);
	add_marker(b, "COMPLETE", 50);
	torn(b, NULL); /* "ok" is enough: the user's own program */
	add_file(b, "lock", 0, 99);
	torn(b, NULL);
}

static void test_any_file_must_be_filled(void **state)
{
	struct bed *b = *state;

	mo_strs_add(&b->layout.markers, &b->layout.n_markers, "DONE");
	assert_int_equal(ckpt_rules_new(&b->layout, &b->rules, NULL), 0);
	add_marker(b, "DONE", 50);
	torn(b, NULL);
	add_file(b, "sub/model.pt", 0, 10);
	torn(b, "sub/model.pt is empty");
}

static void test_megatron(void **state)
{
	struct bed *b = *state;

	torn(b, NULL);
	b->e.files[4].bytes = 0;
	torn(b, "common.pt: it is empty");
	b->e.files[4].bytes = 500;
	b->e.files[3].mtime_ns = 50 + 2000000000; /* clocks of two nodes */
	torn(b, NULL);
	b->e.files[3].mtime_ns++; /* written over after .metadata */
	torn(b, "__1_0.distcp is newer than .metadata");
	b->e.files[3].mtime_ns = 50;
	b->e.files[3].bytes = 0;
	torn(b, "__1_0.distcp is empty");
	b->e.files[3].bytes = 1;
	b->says = 19;
	torn(b, "says 19");
	b->says = INT64_MAX;
	torn(b, "says release");
	b->says = 40;
	torn(b, NULL);
	b->tracker = TRACKER_DAMAGED;
	torn(b, "latest_checkpointed_iteration.txt is damaged");
	b->tracker = TRACKER_LINK;
	torn(b, "latest_checkpointed_iteration.txt is a link, not followed");
	b->tracker = TRACKER_MISSING;
	torn(b, "latest_checkpointed_iteration.txt is missing");
	b->e.markers[1].present = false;
	torn(b, "metadata.json is missing");
}

static void test_megatron_without_shards(void **state)
{
	struct bed *b = *state;

	mo_str_set(&b->e.files[2].name, "a");
	mo_str_set(&b->e.files[3].name, "b");
	torn(b, "holds no shard");
}

static void test_entries(void **state)
{
	bool unfinished;
	struct bed *b = *state;
	static const struct {
		const char *name;
		int64_t iteration;
	} cases[] = {
		{ "iter_0000020", 20 },     { "iter_20", -1 }, { "xiter_0000020", -1 },
		{ "iter_0000020.tmp", -1 }, { "", -1 },
	};
	struct ckpt_layout plain;
	struct ckpt_rules *rules = NULL;
	int64_t n;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		n = -1;
		assert_int_equal(ckpt_is_entry(b->rules, cases[i].name, &n, &unfinished),
				 cases[i].iteration >= 0);
		assert_int_equal(n, cases[i].iteration);
	}
	mo_desc_init(&ckpt_layout_desc, &plain);
	/* no layout at all: a name that ends in digits */
	assert_int_equal(ckpt_rules_new(&plain, &rules, NULL), 0);
	assert_true(ckpt_is_entry(rules, "step-500", &n, &unfinished) && n == 500);
	assert_true(ckpt_is_entry(rules, "42", &n, &unfinished) && n == 42);
	assert_false(ckpt_is_entry(rules, "step-500.pt", &n, &unfinished));
	assert_false(ckpt_is_entry(rules, "99999999999999999999999", &n, &unfinished));
	ckpt_rules_free(rules);
}

static void test_bad_layouts(void **state)
{
	static const char *const entries[] = { "iter_(\\d+)", "iter_(?<iteration>\\d+" },
				 *const words[] = { "no group", "missing closing parenthesis" };

	for (size_t i = 0; i < ELEMENTSOF(entries); i++) {
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		struct ckpt_layout layout;
		struct ckpt_rules *rules = NULL;
		mo_desc_init(&ckpt_layout_desc, &layout);
		layout.entry = mo_strdup(entries[i]);
		assert_int_equal(ckpt_rules_new(&layout, &rules, &err), -EINVAL);
		assert_non_null(strstr(err.text, words[i]));
		mo_desc_done(&ckpt_layout_desc, &layout);
	}
}

static void test_tracker(void **state)
{
	struct bed *b = *state;
	static const struct {
		const char *text;
		size_t n;
		int kind;
		int64_t says;
	} cases[] = {
		{ "20", 2, TRACKER_SAYS, 20 },
		{ " 20\n", 4, TRACKER_SAYS, 20 },
		{ "release\n", 8, TRACKER_SAYS, INT64_MAX },
		{ "", 0, TRACKER_DAMAGED, 7 },
		{ "\n", 1, TRACKER_DAMAGED, 7 },
		{ "2\0"
		  "0",
		  3, TRACKER_DAMAGED, 7 },
		{ "20x", 3, TRACKER_DAMAGED, 7 },
		{ "-1", 2, TRACKER_DAMAGED, 7 },
		{ "\0\0\0\0", 4, TRACKER_DAMAGED, 7 },
		{ "00000000000000000000000000000000000000000000020", 47, TRACKER_DAMAGED, 7 },
	};
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		int64_t says = 7;
		assert_int_equal(ckpt_tracker_parse(b->rules, cases[i].text, cases[i].n, &says),
				 cases[i].kind);
		assert_int_equal(says, cases[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tiny, setup_tiny, teardown),
		cmocka_unit_test_setup_teardown(test_plain_marker, setup, teardown),
		cmocka_unit_test_setup_teardown(test_any_file_must_be_filled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_megatron, setup_megatron, teardown),
		cmocka_unit_test_setup_teardown(test_megatron_without_shards, setup_megatron,
						teardown),
		cmocka_unit_test_setup_teardown(test_entries, setup_megatron, teardown),
		cmocka_unit_test(test_bad_layouts),
		cmocka_unit_test_setup_teardown(test_tracker, setup_megatron, teardown),
	};
	return cmocka_run_group_tests_name("acore/ckpt", tests, NULL, NULL);
}
