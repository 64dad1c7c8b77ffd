/* cli/sse.h: the same messages whatever the pieces in which the bytes come. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "cli/sse.h"

struct got {
	char text[4096];
	int n, stop_at;
};

static int collect(void *arg, const char *data)
{
	struct got *g = arg;
	size_t n = strlen(g->text);
	snprintf(g->text + n, sizeof(g->text) - n, "<%s>", data);
	return ++g->n == g->stop_at;
}

static const char stream[] =
	"retry: 2000\n\n: beat\n\nid: 7\nevent: x\ndata: {\"a\":1}\n\nid:8\r\ndata:one\r\ndata: "
	"two\r\n\r\nid: 9\ndata: not ended";

static void pieces(void **state)
{
	for (size_t step = 1; step < sizeof(stream); step++) {
		struct sse s = { 0 };
		struct got g = { "", 0, 0 };
		for (size_t at = 0; at < sizeof(stream) - 1; at += step)
			assert_int_equal(sse_feed(&s, stream + at,
						  MO_MIN(step, sizeof(stream) - 1 - at), collect,
						  &g),
					 0);
		assert_string_equal(g.text, "<{\"a\":1}><one\ntwo>");
		assert_string_equal(s.last_id, "8");
		sse_done(&s);
	}
}

static void stops(void **state)
{
	struct sse s = { 0 };
	struct got g = { "", 0, 1 };
	assert_int_equal(sse_feed(&s, stream, sizeof(stream) - 1, collect, &g), 1);
	assert_string_equal(g.text, "<{\"a\":1}>");
	assert_string_equal(s.last_id, "7");
	sse_done(&s);
}

static void overlong_lines_are_dropped(void **state)
{
	struct sse s = { 0 };
	struct got g = { "", 0, 0 };
	char *big = mo_alloc(SSE_LINE_MAX);
	memset(big, 'x', SSE_LINE_MAX);
	sse_feed(&s, "data: ", 6, collect, &g);
	for (int i = 0; i < 3; i++)
		sse_feed(&s, big, SSE_LINE_MAX, collect, &g);
	assert_true(s.line.len <= SSE_LINE_MAX);
	sse_feed(&s, "\n\ndata: after\n\n", 15, collect, &g);
	assert_string_equal(g.text, "<after>");
	free(big);
	sse_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(pieces), cmocka_unit_test(stops),
					    cmocka_unit_test(overlong_lines_are_dropped) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
