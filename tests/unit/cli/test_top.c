/* cli/top_state.h, cli/terminal.h, text_fold(): what keys do to an open `moectl top`. */
#include "tests/unit/unit.h"

#include <string.h>

#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/top_state.h"

#define JOBS "cluster\nnodes\n\fID   NAME\nj-7  moe  \033[32mrunning\033[0m\nj-3  tiny  queued\n"

static enum top_want type(struct top *t, const char *keys)
{
	enum top_want want = WANT_NOTHING;

	for (; *keys; keys++)
		want = top_key(t, (unsigned char)*keys);
	return want;
}

static void keys(void **state)
{
	static const char bytes[] = "a\033[B\033OA\033[5~\033[99;9~\r\b\033";
	static const int expected[] = { 'a',      KEY_DOWN,  KEY_UP,        KEY_PAGE_UP,
					KEY_NONE, KEY_ENTER, KEY_BACKSPACE, KEY_ESCAPE };
	const char *at = bytes;
	size_t n = sizeof(bytes) - 1;

	for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
		assert_true(n > 0);
		assert_int_equal(terminal_key(&at, &n), expected[i]);
	}
	assert_int_equal(n, 0);
	assert_int_equal(terminal_key(&at, &n), KEY_NONE);
	at = "\033[5"; /* its end never comes */
	n = 3;
	assert_int_equal(terminal_key(&at, &n), KEY_NONE);
	assert_int_equal(n, 0);
}

static void what_is_chosen_stays(void **state)
{
	struct top t;

	top_init(&t);
	top_shown(&t, "no form feed");
	assert_false(t.loaded);
	top_shown(&t, JOBS);
	assert_int_equal(t.n_head, 2);
	assert_string_equal(t.job, "j-7");
	type(&t, "jjj"); /* no further than there is */
	assert_string_equal(t.job, "j-3");
	top_shown(&t, "\fID   NAME\nj-30 x\nj-9  x\nj-3  tiny\nj-7  moe\n");
	assert_int_equal(t.at, 2);
	assert_string_equal(t.job, "j-3");
	top_shown(&t, "\fID\nj-30\nj-3\n"); /* no other column has room */
	assert_int_equal(t.at, 1);
	top_shown(&t, "\fID   NAME\nj-9  x\n"); /* it is gone */
	assert_string_equal(t.job, "j-9");
	top_shown(&t, "\fID   NAME\n");
	assert_null(t.job);
	assert_int_equal(type(&t, "c"), WANT_NOTHING);
	assert_string_equal(t.message, "cancel is for a job: choose one (1)");
	top_done(&t);
}

static void lines_that_pass(void **state)
{
	struct top t;

	top_init(&t);
	top_shown(&t, JOBS);
	type(&t, "/QUEU");
	assert_int_equal(top_count(&t), 1);
	assert_string_equal(t.job, "j-3");
	top_said(&t, "done"); /* an answer does not end the typing */
	type(&t, "q\177\177\177");
	assert_int_equal(top_count(&t), 1);
	top_key(&t, KEY_ENTER);
	assert_int_equal(t.mode, MODE_LOOK);
	top_key(&t, KEY_ESCAPE);
	assert_int_equal(top_count(&t), 2);
	type(&t, "/[32m"); /* a colour is no text */
	assert_int_equal(top_count(&t), 0);
	assert_null(t.job);
	for (int i = 0; i < 1000; i++)
		type(&t, "x");
	assert_true(t.filter.len <= 200);
	top_done(&t);
}

static void nothing_is_done_without_a_y(void **state)
{
	static const int others[] = { 'n', 'Y', KEY_ENTER, KEY_ESCAPE, ' ' };
	struct top t;

	top_init(&t);
	top_shown(&t, JOBS);
	for (size_t i = 0; i < ELEMENTSOF(others); i++) {
		assert_int_equal(type(&t, "c"), WANT_ASK);
		top_asked(&t, "cancel j-7?\n");
		assert_int_equal(t.mode, MODE_CONFIRM);
		assert_string_equal(t.message, "cancel j-7?");
		assert_int_equal(top_key(&t, others[i]), WANT_NOTHING);
		assert_int_equal(t.mode, MODE_LOOK);
	}
	/* a y that is typed before the question is seen answers nothing */
	assert_int_equal(type(&t, "cy"), WANT_NOTHING);
	top_asked(&t, "cancel j-7?");
	assert_int_equal(t.mode, MODE_LOOK);
	/* the question's job is acted on, whatever is chosen by then */
	assert_int_equal(type(&t, "R"), WANT_ASK);
	top_asked(&t, "restart j-7?");
	top_shown(&t, "\fID   NAME\nj-3  tiny\n");
	assert_int_equal(type(&t, "y"), WANT_ACT);
	assert_string_equal(t.target, "j-7");
	assert_string_equal(t.act->verb, "restart");
	t.acting = true;
	assert_int_equal(type(&t, "c"), WANT_NOTHING);
	assert_string_equal(t.target, "j-7");
	assert_int_equal(type(&t, "q"), WANT_QUIT);
	top_done(&t);
}

static void a_drain_has_a_reason(void **state)
{
	struct top t;

	top_init(&t);
	assert_int_equal(type(&t, "2"), WANT_PANE);
	assert_int_equal(type(&t, "d"), WANT_NOTHING); /* no node is there yet */
	assert_int_equal(t.mode, MODE_LOOK);
	top_shown(&t, "\fNODE STATE\nn-1  up\n");
	assert_int_equal(type(&t, "d\n"), WANT_NOTHING);
	assert_int_equal(t.mode, MODE_REASON);
	assert_int_equal(top_key(&t, KEY_ENTER), WANT_NOTHING); /* without one it is not */
	assert_int_equal(t.mode, MODE_LOOK);
	assert_int_equal(type(&t, "dq\xc3\xbc\177!"), WANT_NOTHING);
	assert_int_equal(top_key(&t, KEY_ENTER), WANT_ASK);
	assert_string_equal(t.reason.data, "q!");
	top_asked(&t, "drain n-1?");
	assert_int_equal(type(&t, "y"), WANT_ACT);
	/* why speaks of the node, and acts there are of it */
	assert_int_equal(type(&t, "w"), WANT_PANE);
	assert_true(t.of_node);
	assert_int_equal(type(&t, "u"), WANT_ASK);
	assert_int_equal(type(&t, "d\003"), WANT_QUIT);
	top_done(&t);
}

static void texts_scroll(void **state)
{
	struct top t;

	top_init(&t);
	t.rows = 2;
	t.width = 12;
	type(&t, "4");
	top_shown(&t, "\f1\n2\n3\n4\n5\n");
	top_key(&t, KEY_END);
	assert_string_equal(top_line(&t, t.at), "4");
	top_key(&t, KEY_PAGE_UP);
	top_key(&t, KEY_UP);
	assert_string_equal(top_line(&t, t.at), "1");
	type(&t, "5");
	top_shown(&t, "\fone two three four\n\nfive\n");
	assert_int_equal(top_count(&t), 4);
	assert_string_equal(top_line(&t, 0), "one two");
	assert_string_equal(top_line(&t, 1), "three four");
	type(&t, "?");
	assert_string_equal(top_line(&t, 0), "1 to 5, Tab     jobs, nodes, ranks of the chosen "
					     "job, events, why");
	top_done(&t);
}

static void folds(void **state)
{
	assert_int_equal(text_fold("", 5), 0);
	assert_int_equal(text_fold("short", 5), 5);
	assert_int_equal(text_fold("two words", 5), 3);
	assert_int_equal(text_fold("two words", 3), 3);
	assert_int_equal(text_fold("unbroken", 5), 5);
	assert_int_equal(text_fold("\033[1mab\033[0m cd", 2), 10);
	assert_int_equal(text_fold("\xc3\xbc\xc3\xbc\xc3\xbc", 2), 4);
	assert_int_equal(text_fold("ab", 0), 1);
	assert_int_equal(text_fold(" ab", 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),
		cmocka_unit_test(what_is_chosen_stays),
		cmocka_unit_test(lines_that_pass),
		cmocka_unit_test(nothing_is_done_without_a_y),
		cmocka_unit_test(a_drain_has_a_reason),
		cmocka_unit_test(texts_scroll),
		cmocka_unit_test(folds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
