/* Control characters become visible text, whatever encoding they come in; everything else stays. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "cli/visible.h"

static void shown(const char *text, size_t n, enum visible_kind kind, const char *wanted)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	visible_add(&b, text, n, kind);
	assert_string_equal(b.len ? b.data : "", wanted);
}

static void test_plain_text_stays(void **state)
{
	static const char text[] = "loss 2.5\t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\n";

	shown(text, strlen(text), VISIBLE_TEXT, text);
	shown(text, strlen(text), VISIBLE_OUTPUT, text);
	shown("", 0, VISIBLE_TEXT, "");
}

static void test_control_characters(void **state)
{
	for (int c = 0; c < 0xa0; c++) {
		char byte = (char)c, want[8], utf8[2] = { '\xc2', (char)c };
		bool plain = (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t';

		snprintf(want, sizeof(want), plain ? "%c" : "\\x%02x", c);
		shown(&byte, 1, VISIBLE_TEXT, want);
		snprintf(want, sizeof(want), c == '\r' || plain ? "%c" : "\\x%02x", c);
		shown(&byte, 1, VISIBLE_OUTPUT, want);
		if (c >= 0x80) {
			snprintf(want, sizeof(want), "\\u%04x", c);
			shown(utf8, 2, VISIBLE_OUTPUT, want);
		}
	}
}

/* A lead byte must not hide what follows it. */
static void test_broken_utf8(void **state)
{
	shown("\xc2\x1b[2J", 5, VISIBLE_TEXT, "\xc2\\x1b[2J");
	shown("\xe2\x9b", 2, VISIBLE_TEXT, "\xe2\\x9b");
	shown("\xc2", 1, VISIBLE_TEXT, "\xc2");
	shown("\xf0\x9f\x98", 3, VISIBLE_TEXT, "\xf0\\x9f\\x98");
}

/* Of what ends lines and turns their order nothing would be seen. */
static void test_order_of_letters(void **state)
{
	shown("a\xe2\x80\xae"
	      "b\xe2\x81\xa9\xe2\x80\xa8",
	      11, VISIBLE_TEXT, "a\\u202eb\\u2069\\u2028");
	shown("\xe2\x80\xaa", 3, VISIBLE_OUTPUT, "\\u202a");
	shown("\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5", 9, VISIBLE_TEXT,
	      "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5");
	shown("\xe2\x80", 2, VISIBLE_TEXT, "\xe2\\x80");
}

static void test_json_to_a_terminal(void **state)
{
	static const char text[] = "{\"a\":\"\x7f\xc2\x9b\xe2\x80\xae\xc3\xa9\"}";
	_cleanup_(mo_freep) char *said = NULL;
	size_t n = 0;
	FILE *terminal = stdout;

	stdout = open_memstream(&said, &n);
	print_json(text, strlen(text));
	fclose(stdout);
	stdout = terminal;
	assert_string_equal(said, "{\"a\":\"\\u007f\\u009b\\u202e\xc3\xa9\"}\n");
}

static void test_documents(void **state)
{
	struct json_object *o = json_tokener_parse(
		"{\"a\":[\"x\\u001b[2J\",1,null],\"b\\u009b\":{\"c\":\"\\r\\n\"}}");

	visible_json(o);
	assert_string_equal(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN),
			    "{\"a\":[\"x\\\\x1b[2J\",1,null],\"b\\\\u009b\":{\"c\":\"\\\\x0d\\n\"}"
			    "}");
	json_object_put(o);
	visible_json(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_text_stays),
		cmocka_unit_test(test_control_characters),
		cmocka_unit_test(test_broken_utf8),
		cmocka_unit_test(test_order_of_letters),
		cmocka_unit_test(test_json_to_a_terminal),
		cmocka_unit_test(test_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
