/* Pipelines that Primus dumped: what is measured of them, where the dumps lie beside the
 * repository, and of a dump made here; damaged ones are refused by name. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"

#include "cli/plan_svg.h"
#include "cli/value.h"
#include "lib/base/fd.h"
#include "lib/plan/schedule_run.h"

#define DUMPS "../shared/data/primus/pp_vis"

static void run_row(const char *name, struct json_object *expected)
{
	_cleanup_(mo_freep) char *dir = mo_printf(DUMPS "/%s", name);
	struct json_object *rows = js_get(expected, "rows_f_b_bubble_mem");
	struct timeline t = { 0 };
	struct mo_error err = { 0 };

	if (timeline_read(dir, 7, &t, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(fabs(t.s.step * 1000 - js_real(expected, "iter_time_ms")) < 0.01);
	struct json_object *mine = timeline_json(&t), *ranks = js_get(mine, "ranks");

	assert_int_equal(js_len(ranks), js_len(rows));
	for (size_t i = 0; i < js_len(rows); i++) {
		static const struct {
			const char *key;
			double unit, off;
		} columns[] = { { "forward_s", 1000, 0.06 },
				{ "backward_s", 1000, 0.06 },
				{ "bubble", 100, 0.006 },
				{ "memory_gb", 1, 0.006 } };

		for (size_t c = 0; c < ELEMENTSOF(columns); c++) {
			double is = js_real(js_at(ranks, i), columns[c].key) * columns[c].unit,
			       should = json_object_get_double(js_at(js_at(rows, i), c));

			if (fabs(is - should) > columns[c].off)
				fail_msg("%s rank %zu %s: %g, expected %g", name, i, columns[c].key,
					 is, should);
		}
	}
	json_object_put(mine);
	timeline_done(&t);
}

static void test_published_dumps(void **state)
{
	struct json_object *all = json_object_from_file(DUMPS "/expected_bubble_iter7.json");

	if (all) {
		json_object_object_foreach(all, name, expected) {
			run_row(name, expected);
		}
	}
	json_object_put(all);
}

static void put(const char *dir, const char *name, const char *text)
{
	_cleanup_(mo_freep) char *path = mo_printf("%s/%s", dir, name);

	assert_int_equal(mo_write_file(path, text, strlen(text), 0600, false), 0);
}

static void test_made_dump(void **state)
{
	char dir[] = "/tmp/test_pipe.XXXXXX";
	struct timeline t = { 0 };
	struct mo_error err = { 0 };

	assert_non_null(mkdtemp(dir));
	put(dir, "config.json", "{\"pp_size\":2,\"vp_size\":1,\"num_mbs\":1}");
	put(dir, "pp_rank_0.json",
	    "{\"3\":{\"total\":40,\"memory\":1.5,\"fwd_start\":[0],\"fwd_end\":[10],\"bwd_start\":["
	    "30],\"bwd_end\":[40]}}");
	put(dir, "pp_rank_1.json",
	    "{\"3\":{\"total\":30,\"memory\":1,\"fwd_start\":[10],\"fwd_end\":[20],\"bwd_start\":["
	    "20],\"bwd_end\":[25],\"wgrad_start\":[25],\"wgrad_end\":[30]}}");
	if (timeline_read(dir, 0, &t, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(t.iteration, 3);
	assert_true(fabs(t.s.step - 0.04) < 1e-9 && fabs(t.s.bubble - 0.5) < 1e-9);
	struct mo_buf svg = { 0 };

	plan_svg(NULL, &t, 1, &svg);
	assert_non_null(strstr(svg.data, "iteration 3: 0.04 s, bubble 50.0 %"));
	assert_non_null(strstr(svg.data, "weight gradient 0, chunk 0: 25.0 to 30.0 ms"));
	mo_buf_done(&svg);
	timeline_done(&t);
	assert_true(timeline_read(dir, 4, &t, &err) < 0);
	assert_non_null(strstr(err.text, "pp_rank_0.json: no iteration 4"));
	mo_error_done(&err);
	put(dir, "pp_rank_1.json", "{\"3\":{\"total\":30,\"fwd_start\":[10,11],\"fwd_end\":[20]}}");
	assert_true(timeline_read(dir, 3, &t, &err) < 0);
	assert_non_null(strstr(err.text, "pp_rank_1.json: 2 times in fwd_start and 1 in fwd_end"));
	mo_error_done(&err);
	static const char *const names[] = { "config.json", "pp_rank_0.json", "pp_rank_1.json" };

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("%s/%s", dir, names[i]);

		unlink(path);
	}
	rmdir(dir);
	assert_true(timeline_read(dir, 3, &t, &err) < 0);
	mo_error_done(&err);
}

static void remove_all(const char *dir)
{
	static const char *const names[] = { "config.json", "pp_rank_0.json" };

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("%s/%s", dir, names[i]);

		unlink(path);
	}
	rmdir(dir);
}

static void test_damaged_dumps(void **state)
{
	static const struct {
		const char *config, *rank, *says;
	} rows[] = {
		{ "{\"pp_size\":1,\"vp_size\":1,\"num_mbs\":2", NULL, "config.json: JSON: " },
		{ "{\"pp_size\":1000000000000,\"num_mbs\":2}", NULL, "pp_size must be 1 to 1024" },
		{ "{\"pp_size\":1,\"vp_size\":9223372036854775807,\"num_mbs\":2}", NULL,
		  "vp_size must be 1 to 1024" },
		{ "{\"pp_size\":1,\"vp_size\":1,\"num_mbs\":-5}", NULL,
		  "num_mbs must be 1 to 1000000" },
		{ "{\"pp_size\":1,\"vp_size\":1,\"num_mbs\":1}",
		  "{\"1\":{\"total\":10,\"fwd_start\":[1],", "pp_rank_0.json: JSON: " },
		{ "{\"pp_size\":1,\"vp_size\":1,\"num_mbs\":1}", "{\"1\":{\"total\":0}}",
		  "no iteration 1 with a total" },
		{ "{\"pp_size\":1,\"vp_size\":1,\"num_mbs\":1}",
		  "{\"1\":{\"total\":10,\"fwd_start\":[1],\"fwd_end\":[5],\"fwd_chunk\":[-7]}}",
		  "fwd 0 is of chunk -7" },
		{ "{\"pp_size\":1,\"vp_size\":2,\"num_mbs\":1}",
		  "{\"1\":{\"total\":10,\"fwd_start\":[1],\"fwd_end\":[5],\"fwd_chunk\":[2]}}",
		  "config.json has 2 chunks" },
		{ "{\"pp_size\":1,\"vp_size\":1,\"num_mbs\":1}",
		  "{\"1\":{\"total\":10,\"fwd_start\":[1],\"fwd_end\":[1e308]}}",
		  "in an iteration of 0.01 s" },
		{ "{\"pp_size\":1,\"vp_size\":1,\"num_mbs\":1}",
		  "{\"1\":{\"total\":10,\"fwd_start\":[0,0],\"fwd_end\":[9,9]}}",
		  "0.018 s in all" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		char dir[] = "/tmp/test_pipe.XXXXXX";
		struct timeline t = { 0 };
		struct mo_error err = { 0 };

		assert_non_null(mkdtemp(dir));
		put(dir, "config.json", rows[i].config);
		if (rows[i].rank)
			put(dir, "pp_rank_0.json", rows[i].rank);
		assert_true(timeline_read(dir, 0, &t, &err) < 0);
		if (!strstr(err.text, rows[i].says) || !strstr(err.text, dir))
			fail_msg("row %zu: %s", i, err.text);
		mo_error_done(&err);
		remove_all(dir);
	}
}

/* Whoever opens a pipe for reading waits for a writer: a dump is regular files. */
static void test_pipe_in_place_of_a_file(void **state)
{
	char dir[] = "/tmp/test_pipe.XXXXXX";
	struct timeline t = { 0 };
	struct mo_error err = { 0 };

	assert_non_null(mkdtemp(dir));
	_cleanup_(mo_freep) char *path = mo_printf("%s/config.json", dir);

	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(timeline_read(dir, 0, &t, &err) < 0);
	assert_non_null(strstr(err.text, "not a regular file"));
	mo_error_done(&err);
	remove_all(dir);
}

static void test_odd_piece_is_named(void **state)
{
	char dir[] = "/tmp/test_pipe.XXXXXX";
	struct timeline t = { 0 };
	struct mo_error err = { 0 };

	assert_non_null(mkdtemp(dir));
	put(dir, "config.json", "{\"pp_size\":1,\"vp_size\":1,\"num_mbs\":4}");
	put(dir, "pp_rank_0.json",
	    "{\"1\":{\"total\":100,\"fwd_start\":[0,10,20,80],\"fwd_end\":[5,15,75,85]}}");
	if (timeline_read(dir, 0, &t, &err) < 0)
		fail_msg("%s", err.text);
	assert_non_null(
		strstr(t.more, "forward of micro-batch 2, chunk 0, on rank 0: 55.0 ms, 3.1 times"));
	timeline_done(&t);
	remove_all(dir);
}

/* A long pipeline keeps its scale: start and end are drawn, what is between them is counted. */
static void test_long_pipelines_lose_their_middle(void **state)
{
	struct sched s;
	struct mo_error err = { 0 };
	struct sched_cost cost[8];
	struct mo_buf svg = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(cost); i++)
		cost[i] = (struct sched_cost){ 0.01, 0.01, 0.01 };
	assert_int_equal(sched_make("1f1b", 8, 1, 400, &s, &err), 0);
	assert_int_equal(sched_run(&s, cost, 0, &err), 0);
	struct timeline t = { .s = s, .title = mo_strdup("made") };

	plan_svg(NULL, &t, 1, &svg);
	assert_non_null(strstr(svg.data, "left out"));
	assert_non_null(strstr(svg.data, "forward 0, chunk 0: 0.0 to 10.0 ms"));
	assert_non_null(strstr(svg.data, "backward 399, chunk 0"));
	assert_null(strstr(svg.data, "forward 200, chunk 0"));
	mo_buf_done(&svg);
	timeline_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_dumps),
		cmocka_unit_test(test_made_dump),
		cmocka_unit_test(test_damaged_dumps),
		cmocka_unit_test(test_pipe_in_place_of_a_file),
		cmocka_unit_test(test_odd_piece_is_named),
		cmocka_unit_test(test_long_pipelines_lose_their_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
