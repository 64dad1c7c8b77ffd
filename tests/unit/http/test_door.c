/* Crowds that come with work: who may come in, who is told when to come again, and for whom nothing
 * is done any more. */
#include "tests/unit/http/bed.h"

#include <string.h>
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define HELLO "POST /v1/agent/hello HTTP/1.1" AS("agent") JSON "\r\nContent-Length: 2\r\n\r\n{}"

static void run_until_held(int n)
{
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	while (bed.holds < n) {
		assert_true(mo_clock_boot_us() < end);
		sd_event_run(bed.loop, 1000);
	}
}

/* Two may wait; whoever comes then is asked to come later, and comes in once one was answered.
 * Other routes have nothing to do with it. */
static void test_full(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 }, refused = { 0 };
	_cleanup_(mo_closep) int first = dial(false), second = dial(false), third = dial(false);

	put(first, HELLO);
	run_until_held(1);
	uint64_t id = bed.held_id;
	put(second, HELLO);
	run_until_held(2);
	put(third, HELLO);
	wait_for(third, &refused, "\r\n\r\n");
	assert_non_null(strstr(refused.data, "HTTP/1.1 503 "));
	assert_non_null(strstr(refused.data, "\r\nRetry-After: 1\r\n"));
	assert_int_equal(bed.holds, 2);
	expect(200, "GET /v1/things HTTP/1.1" AS("viewer"), NULL);
	http_reply(http_find(bed.server, id), 200, "text/plain", "welcome", 7, NULL);
	wait_for(first, &got, "welcome");
	put(third, HELLO); /* on the same connection */
	run_until_held(3);
}

/* Each of many is given a time of its own. */
static void test_spread(void **state)
{
	_cleanup_(mo_closep) int first = dial(false), second = dial(false), third = dial(false);
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };

	put(first, HELLO);
	put(second, HELLO);
	run_until_held(2);
	for (int i = 0; i < 4000; i++) {
		mo_buf_reset(&got);
		put(third, HELLO);
		wait_for(third, &got, "\r\n\r\n");
		while (!strchr(got.data, '}'))
			receive(third, &got);
		assert_non_null(strstr(got.data, " 503 "));
		if (strstr(got.data, "\r\nRetry-After: 2\r\n"))
			return;
	}
	fail_msg("all are asked to come at once");
}

/* For an agent that has left before its hello was read, nothing is done. */
static void test_left(void **state)
{
	int gone = dial(false);

	for (int i = 0; i < 3; i++)
		sd_event_run(bed.loop, 1000);
	put(gone, HELLO);
	mo_close(gone);
	_cleanup_(mo_closep) int stays = dial(false);
	put(stays, HELLO);
	run_until_held(1);
	for (int i = 0; i < 20; i++)
		sd_event_run(bed.loop, 1000);
	assert_int_equal(bed.holds, 1);
}

/* What is prompt is served in the same pump, though the same user has others that wait. */
static void test_prompt(void **state)
{
	int eves[5];

	for (size_t i = 0; i < ELEMENTSOF(eves); i++)
		eves[i] = dial(false);
	for (int i = 0; i < 10; i++)
		sd_event_run(bed.loop, 1000);
	for (size_t i = 0; i < ELEMENTSOF(eves); i++)
		put(eves[i], i + 1 < ELEMENTSOF(eves)
				     ? "GET /v1/slow HTTP/1.1" AS("viewer.eve") "\r\n\r\n"
				     : "GET /v1/prompt HTTP/1.1" AS("viewer.eve") "\r\n\r\n");
	while (strlen(bed.served) < ELEMENTSOF(eves))
		sd_event_run(bed.loop, 1000);
	assert_non_null(strchr(bed.served, '!'));
	assert_true(strchr(bed.served, '!') <= bed.served + 1);
	for (size_t i = 0; i < ELEMENTSOF(eves); i++)
		mo_close(eves[i]);
}

#define t(f) cmocka_unit_test_setup_teardown(f, bed_setup, bed_teardown)
int main(void)
{
	const struct CMUnitTest tests[] = { t(test_full), t(test_spread), t(test_left),
					    t(test_prompt) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
