/* Those who say little or nothing, and those who guess: nobody else waits for them. */
#include "tests/unit/http/bed.h"

#include <string.h>
#include <sys/socket.h>
#include "lib/base/clock.h"
#include "lib/base/fd.h"

/* One byte now and then is not life: the head must be there in time. */
static void test_slow_client(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = dial(false);
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	put(fd, "GET /open HT");
	while (!receive(fd, &got)) {
		assert_true(mo_clock_boot_us() < end);
		(void)!send(fd, "x", 1, MSG_NOSIGNAL);
	}
	assert_true(got.len == 0 || !strstr(got.data, "200"));
}

static int64_t connections(void)
{
	struct http_stats stats;

	http_server_stats(bed.server, &stats);
	return stats.connections;
}

#define CROWD 300

/* Hundreds who say nothing, from one address and from many, keep nobody out, and send nobody away
 * who has shown who he is. */
static void test_idle_crowd(void **state)
{
	int crowd[CROWD], agents[40];
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	for (size_t i = 0; i < ELEMENTSOF(agents); i++) {
		agents[i] = dial(false);
		assert_int_equal(say(agents[i], "GET /v1/things HTTP/1.1" AS("viewer")), 200);
	}
	for (size_t i = 0; i < CROWD; i++) {
		crowd[i] = dial_from(i < CROWD / 2 ? 1 : 2 + (int)i % 100);
		sd_event_run(bed.loop, 1000);
		if (i % 50 == 49) {
			expect(200, "GET /v1/things HTTP/1.1" AS("viewer"), NULL);
			expect(200, "GET /open HTTP/1.1" TCP, NULL);
			assert_int_equal(ask(true, "GET /v1/things HTTP/1.1\r\nHost: x", NULL),
					 200);
		}
	}
	for (size_t i = 0; i < ELEMENTSOF(agents); i++)
		assert_int_equal(say(agents[i], "GET /v1/things HTTP/1.1" AS("viewer")), 200);
	while (connections() > 64) {
		assert_true(mo_clock_boot_us() < end);
		sd_event_run(bed.loop, 10000);
	}
	for (size_t i = 0; i < CROWD; i++)
		mo_close(crowd[i]);
	for (size_t i = 0; i < ELEMENTSOF(agents); i++)
		mo_close(agents[i]);
}

/* Of one address few strangers stay, though there is room; as many as there is room for who have
 * shown who they are. */
static void test_strangers_of_one_address(void **state)
{
	int all[32], retained[8];
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	for (size_t i = 0; i < ELEMENTSOF(retained); i++) {
		retained[i] = dial_from(1);
		assert_int_equal(say(retained[i], "GET /v1/things HTTP/1.1" AS("viewer")), 200);
	}
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		all[i] = dial_from(1);
	_cleanup_(mo_closep) int other = dial_from(2);
	while (connections() < (int64_t)(ELEMENTSOF(retained) + ELEMENTSOF(all) + 1)) {
		assert_true(mo_clock_boot_us() < end);
		sd_event_run(bed.loop, 10000);
	}
	while (connections() > (int64_t)(ELEMENTSOF(retained) + 8 + 1)) {
		assert_true(mo_clock_boot_us() < end);
		sd_event_run(bed.loop, 10000);
	}
	for (int i = 0; i < 20; i++)
		sd_event_run(bed.loop, 10000);
	assert_int_equal(connections(), ELEMENTSOF(retained) + 8 + 1);
	for (size_t i = 0; i < ELEMENTSOF(retained); i++)
		assert_int_equal(say(retained[i], "GET /v1/things HTTP/1.1" AS("viewer")), 200);
	assert_int_equal(say(other, "GET /open HTTP/1.1" TCP), 200);
	/* the newest are those that stayed */
	assert_int_equal(say(all[ELEMENTSOF(all) - 1], "GET /open HTTP/1.1" TCP), 200);
	assert_int_equal(say(all[0], "GET /open HTTP/1.1" TCP), 0);
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		mo_close(all[i]);
	for (size_t i = 0; i < ELEMENTSOF(retained); i++)
		mo_close(retained[i]);
}

/* Of wrong credentials an address has few tries; right ones pass beside them, other addresses have
 * their own, and on_wrong() is called once. */
static void test_wrong_credentials(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	int seen_401 = 0, seen_429 = 0;

	for (int i = 0; i < 200 && seen_429 < 3; i++) {
		int status =
			ask(false,
			    i % 2 ? "GET /v1/things HTTP/1.1" AS("guess")
				  : "GET /v1/things HTTP/1.1" TCP "\r\nCookie: moe_session=s-guess",
			    NULL);
		seen_401 += status == 401;
		seen_429 += status == 429;
		assert_true(status == 401 || status == 429);
		expect(200, "GET /v1/things HTTP/1.1" AS("viewer"), NULL);
	}
	assert_int_equal(seen_429, 3);
	assert_in_range(seen_401, 10, 150);
	expect(401, "GET /v1/things HTTP/1.1" TCP, NULL);
	_cleanup_(mo_closep) int other = dial_from(2);
	assert_int_equal(say(other, "GET /v1/things HTTP/1.1" AS("guess")), 401);
	assert_int_equal(bed.wrong_calls, 2);
	assert_string_equal(bed.wrong_source, "127.0.0.2");
	assert_int_equal(bed.wrong_n, 1);
	/* it is said when to come again, and the connection is closed */
	while (!got.data || !strstr(got.data, " 429 ")) {
		_cleanup_(mo_closep) int fd = dial(false);
		mo_buf_reset(&got);
		put(fd, "GET /v1/things HTTP/1.1" AS("guess") "\r\n\r\n");
		wait_for(fd, &got, "\r\n\r\n");
		if (strstr(got.data, " 429 "))
			wait_closed(fd, &got);
	}
	assert_non_null(strstr(got.data, "Retry-After: "));
}

#define EVES 24

/* Somebody who has many requests waiting waits for himself: the one of another is not behind
 * them, and neither is one of who is not limited. */
static void test_many_of_one(void **state)
{
	static const char *const heads[] = { "GET /v1/slow HTTP/1.1" AS("user.bob"),
					     "GET /v1/slow HTTP/1.1" AS("operator.op") };
	int all[EVES + ELEMENTSOF(heads)];
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	for (size_t i = 0; i < ELEMENTSOF(all); i++) {
		all[i] = dial(false);
		put(all[i], i < EVES ? "GET /v1/slow HTTP/1.1" AS("user.eve") : heads[i - EVES]);
		put(all[i], "\r\n\r\n");
	}
	while (strlen(bed.served) < ELEMENTSOF(all)) {
		assert_true(mo_clock_boot_us() < end);
		sd_event_run(bed.loop, 10000);
	}
	print_message("served: %s\n", bed.served);
	assert_in_range(strcspn(bed.served, "b"), 0, EVES / 2);
	assert_in_range(strcspn(bed.served, "o"), 0, EVES / 2);
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		mo_close(all[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_slow_client, bed_setup_impatient,
						bed_teardown),
		cmocka_unit_test_setup_teardown(test_idle_crowd, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_strangers_of_one_address, bed_setup,
						bed_teardown),
		cmocka_unit_test_setup_teardown(test_wrong_credentials, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_many_of_one, bed_setup, bed_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
