/* cli/heat.h: ranks as characters in the order of the mesh, pages put together, the ten that stand
 * out of all. */
#include "tests/unit/unit.h"

#include <string.h>

#include "cli/heat.h"
#include "cli/value.h"

#define SIZES "\"sizes\":{\"tp\":2,\"pp\":2,\"ep\":1,\"cp\":1,\"dp\":8},"
#define WORDS(letters, s, q, next, worst) \
	"{\"metric\":\"doing\",\"attempt\":1,\"ranks\":32," SIZES "\"letters\":\"" letters \
	"\",\"legend\":[{\"letter\":\"s\",\"name\":\"stepping\",\"ranks\":" #s \
	"},{\"letter\":\"H\",\"name\":\"host-stuck\",\"ranks\":" #q "}],\"worst\":[" worst \
	"],\"next\":" #next "}"
#define IS(rank, word) "{\"rank\":" #rank ",\"word\":\"" word "\"}"

static void map_is(const char *json, int width, bool colour, const char *expected)
{
	struct json_object *doc = json_tokener_parse(json);
	struct mo_buf b = { 0 };

	assert_non_null(doc);
	heat_map(doc, width, colour, &b);
	assert_string_equal(b.data, expected);
	mo_buf_done(&b);
	json_object_put(doc);
}

static void rows_are_stages(void **state)
{
	static const char doc[] =
		WORDS("ssssssssssssssssssHsssssssssssss", 31, 1, null, IS(18, "host-stuck"));

	map_is(doc, 80, false,
	       "pp0  0  ssssssssssssssss\n"
	       "pp1 16  ssHsssssssssssss\n");
	/* what does not fit goes on in the next line; both ranks of a layer stay together */
	map_is(doc, 20, false,
	       "pp0  0  ssssssssssss\n"
	       "    12  ssss\n"
	       "pp1 16  ssHsssssssss\n"
	       "    28  ssss\n");
	map_is(doc, 19, false,
	       "pp0  0  ssssssssss\n"
	       "    10  ssssss\n"
	       "pp1 16  ssHsssssss\n"
	       "    26  ssssss\n");
	map_is(doc, 1, false, /* nothing has room: still a few in a line */
	       "pp0  0  ssssssss\n"
	       "     8  ssssssss\n"
	       "pp1 16  ssHsssss\n"
	       "    24  ssssssss\n");
}

static void numbers_are_held_against_their_stage(void **state)
{
	/* a slow stage hides no slow rank, and is no odd one itself */
	map_is("{\"metric\":\"step_ms\",\"attempt\":1,\"ranks\":16,"
	       "\"sizes\":{\"tp\":1,\"pp\":2,\"ep\":1,\"cp\":1,\"dp\":8},"
	       "\"values\":[100,101,99,100,110,100,99,null,200,200,200,240,200,185,200,150]}",
	       80, false,
	       "pp0  0  ....+..?\n"
	       "pp1  8  ...#.-.=\n");
	map_is("{\"metric\":\"iteration\",\"attempt\":1,\"ranks\":3,\"values\":[0,0,7]}", 80, false,
	       "0  ...\n"); /* no mesh, and no spread that a distance could be held against */
	map_is("{\"metric\":\"iteration\",\"attempt\":1,\"ranks\":2,\"values\":[null,\"NaN\"]}", 80,
	       false, "0  ??\n");
}

static void shades_go_with_letters(void **state)
{
	map_is("{\"metric\":\"step_ms\",\"attempt\":1,\"ranks\":5,"
	       "\"values\":[100,100,100,103,150]}",
	       80, true,
	       "0  \033[0;48;5;236;38;5;248m...\033[0;48;5;101;38;5;231m.\033[0;48;5;226;38;5;16m#"
	       "\033[0m\n");
	map_is(WORDS("sH", 1, 1, null, ""), 80, true,
	       "pp0 0  \033[0;48;5;236;38;5;248ms\033[0m\npp1 1  "
	       "\033[0;48;5;226;38;5;16mH\033[0m\n");
}

static void pages_are_one(void **state)
{
	struct json_object *doc = json_tokener_parse(
				   WORDS("ssHssssssssssssss", 16, 1, 16, IS(2, "host-stuck"))),
			   /* another majority than all of them have */
		*page = json_tokener_parse(
			WORDS("HHHHHHHHHHHHHHs", 1, 14, null, IS(31, "stepping"))),
			   *other = json_tokener_parse("{\"metric\":\"doing\",\"attempt\":2,"
						       "\"ranks\":32,\"letters\":\"s\"}");
	struct mo_buf b = { 0 };

	assert_false(heat_join(doc, other));
	assert_int_equal(js_int(doc, "next"), 16);
	assert_true(heat_join(doc, page));
	heat_pick_worst(doc);
	assert_string_equal(js_str(doc, "letters"), "ssHssssssssssssssHHHHHHHHHHHHHHs");
	assert_null(js_get(doc, "next"));
	assert_int_equal(js_len(js_get(doc, "worst")), 1);
	assert_int_equal(js_int(js_at(js_get(doc, "worst"), 0), "rank"), 2);
	heat_legend(doc, 80, &b);
	assert_string_equal(b.data, "s stepping 17  H host-stuck 15\n");
	mo_buf_reset(&b);
	heat_legend(doc, 20, &b);
	assert_string_equal(b.data, "s stepping 17\nH host-stuck 15\n");
	mo_buf_done(&b);
	json_object_put(doc);
	json_object_put(page);
	json_object_put(other);
}

static void the_worst_of_all_pages(void **state)
{
	struct json_object *doc = json_tokener_parse(
		"{\"metric\":\"step_ms\",\"attempt\":1,\"ranks\":24,\"values\":[1],\"worst\":[]}");
	struct json_object *worst = js_get(doc, "worst");

	for (int i = 0; i < 12; i++) {
		struct json_object *w = json_object_new_object();

		json_object_object_add(w, "rank", json_object_new_int(i));
		json_object_object_add(w, "score", json_object_new_double(i % 2 ? -i : i));
		json_object_array_add(worst, w);
	}
	heat_pick_worst(doc);
	worst = js_get(doc, "worst");
	assert_int_equal(js_len(worst), 10);
	assert_int_equal(js_int(js_at(worst, 0), "rank"), 11);
	assert_int_equal(js_int(js_at(worst, 9), "rank"), 2);
	json_object_put(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_stages),
		cmocka_unit_test(numbers_are_held_against_their_stage),
		cmocka_unit_test(shades_go_with_letters),
		cmocka_unit_test(pages_are_one),
		cmocka_unit_test(the_worst_of_all_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
