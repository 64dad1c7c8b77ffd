/* Roads: the same requests by frames, on a connection that was asked for by HTTP. */
#include "tests/unit/http/bed.h"

#include <sys/socket.h>
#include <unistd.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/frame.h"

#define ROAD "GET " FRAME_PATH " HTTP/1.1"
#define UPGRADE "\r\nConnection: keep-alive, Upgrade\r\nUpgrade: moe/1"

static int road(void)
{
	int fd = dial(false);

	assert_int_equal(say(fd, ROAD AS("agent") UPGRADE), 101);
	return fd;
}

static size_t frame(char *to, uint32_t id, uint16_t word, const char *body)
{
	struct frame f = { .length = (uint32_t)strlen(body), .id = id, .code = word };

	frame_write(&f, to);
	memcpy(to + FRAME_HEAD, body, f.length);
	return FRAME_HEAD + f.length;
}

static void send_frame(int fd, uint32_t id, uint16_t word, const char *body)
{
	char text[256];
	size_t n = frame(text, id, word, body);

	assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* The next frame is whole at the front of b; its body behind the head. */
static struct frame await(int fd, struct mo_buf *b)
{
	int64_t end = mo_clock_boot_us() + PATIENCE_US;
	struct frame f = { 0 };

	for (;;) {
		if (b->len >= FRAME_HEAD) {
			frame_read(b->data, &f);
			if (b->len >= FRAME_HEAD + f.length)
				return f;
		}
		assert_true(mo_clock_boot_us() < end);
		assert_false(receive(fd, b) && b->len < FRAME_HEAD);
	}
}

static void drop(struct mo_buf *b, struct frame f)
{
	mo_buf_consume(b, FRAME_HEAD + f.length);
}

static void run_until_held(int n)
{
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	while (bed.holds < n) {
		assert_true(mo_clock_boot_us() < end);
		sd_event_run(bed.loop, 20000);
	}
}

static int64_t roads(void)
{
	struct http_stats s;

	http_server_stats(bed.server, &s);
	return s.roads;
}

/* The client learns it first. */
static void expect_roads(int64_t n)
{
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	while (roads() != n) {
		assert_true(mo_clock_boot_us() < end);
		sd_event_run(bed.loop, 20000);
	}
}

static void answer(uint64_t id, const char *text)
{
	struct http_request *r = http_find(bed.server, id);

	assert_non_null(r);
	http_reply(r, 200, "application/json", text, strlen(text), NULL);
	assert_null(http_find(bed.server, id));
}

static void test_who_may(void **state)
{
	expect(401, ROAD TCP UPGRADE, NULL);
	expect(403, ROAD AS("viewer") UPGRADE, NULL);
	expect(426, ROAD AS("agent"), NULL);
	expect(426, ROAD AS("agent") "\r\nConnection: Upgrade\r\nUpgrade: websocket", NULL);
	expect(426, ROAD AS("agent") "\r\nUpgrade: moe/1", NULL);
	expect(405, "POST " FRAME_PATH " HTTP/1.1" AS("agent"), NULL);
	assert_int_equal(roads(), 0);
}

/* Two under way, answered the other way round; the connection serves on. */
static void test_frames(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = road();
	uint64_t first, second;
	struct frame f;

	assert_int_equal(roads(), 1);
	send_frame(fd, 7, FRAME_SYNC, "{\"a\":1}");
	run_until_held(1);
	first = bed.held_id;
	send_frame(fd, 8, FRAME_HELLO, "{}");
	run_until_held(2);
	second = bed.held_id;
	answer(second, "late");
	f = await(fd, &got);
	assert_int_equal(f.id, 8);
	assert_int_equal(f.code, 200);
	assert_int_equal(f.after_s, 0);
	assert_memory_equal(got.data + FRAME_HEAD, "late", 4);
	drop(&got, f);
	answer(first, "");
	f = await(fd, &got);
	assert_int_equal(f.id, 7);
	assert_int_equal(f.length, 0);
	drop(&got, f);
	send_frame(fd, 9, FRAME_ANSWER, "{\"b\":2}");
	f = await(fd, &got);
	assert_int_equal(f.id, 9);
	assert_string_equal(bed.seen_body, "{\"b\":2}");
	assert_string_equal(bed.seen_user, "bearer");
	assert_int_equal(bed.seen_role, ROLE_AGENT);
}

/* Several in one packet, and one in as many as it has bytes. */
static void test_pieces(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = road();
	struct frame f;
	char text[256];
	size_t n = frame(text, 1, FRAME_ANSWER, "{\"one\":1}");

	n += frame(text + n, 2, FRAME_ANSWER, "{\"two\":2}");
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	for (uint32_t id = 1; id <= 2; id++) {
		f = await(fd, &got);
		assert_int_equal(f.id, id);
		drop(&got, f);
	}
	assert_string_equal(bed.seen_body, "{\"two\":2}");
	n = frame(text, 3, FRAME_ANSWER, "{\"three\":3}");
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(write(fd, text + i, 1), 1);
		sd_event_run(bed.loop, 1000);
	}
	f = await(fd, &got);
	assert_int_equal(f.id, 3);
	assert_string_equal(bed.seen_body, "{\"three\":3}");
}

static void expect_cut(int fd, int status)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	struct frame f = await(fd, &got);

	assert_int_equal(f.code, status);
	assert_true(f.length > 0);
	wait_closed(fd, &got);
	expect_roads(0);
	mo_close(fd);
}

static void test_broken_rules(void **state)
{
	char head[FRAME_HEAD];
	int fd = road();

	send_frame(fd, 1, 0, "");
	expect_cut(fd, 400);
	fd = road();
	send_frame(fd, 1, 77, "{}");
	expect_cut(fd, 400);
	fd = road(); /* of its head alone: nothing of it is kept */
	frame_write(&(struct frame){ .length = UINT32_MAX, .id = 1, .code = FRAME_SYNC }, head);
	assert_int_equal(write(fd, head, sizeof(head)), sizeof(head));
	expect_cut(fd, 413);
	fd = road();
	for (uint32_t i = 0; i < FRAME_UNDER_WAY_MAX + 1; i++)
		send_frame(fd, i, FRAME_SYNC, "{}");
	expect_cut(fd, 400);
	assert_int_equal(bed.holds, FRAME_UNDER_WAY_MAX);
}

/* Of a crowd the next is told when to come again, and keeps its road. */
static void test_crowd(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = road();
	struct frame f;

	for (uint32_t i = 0; i < 3; i++)
		send_frame(fd, i, FRAME_HELLO, "{}");
	f = await(fd, &got);
	assert_int_equal(f.id, 2);
	assert_int_equal(f.code, 503);
	assert_true(f.after_s > 0);
	run_until_held(2);
	assert_int_equal(roads(), 1);
}

static void test_token_ends(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = road(), idle = road();
	struct frame f;

	send_frame(fd, 1, FRAME_SYNC, "{}");
	run_until_held(1);
	bed.token_alive = false;
	http_server_check_tokens(bed.server);
	f = await(fd, &got);
	assert_int_equal(f.code, 401);
	wait_closed(fd, &got);
	wait_closed(idle, &got);
	expect_roads(0);
}

static void test_client_leaves(void **state)
{
	int fd = road();

	send_frame(fd, 1, FRAME_HELLO, "{}");
	send_frame(fd, 2, FRAME_SYNC, "{}");
	run_until_held(2);
	assert_non_null(http_find(bed.server, bed.held_id));
	mo_close(fd);
	expect_roads(0);
	assert_null(http_find(bed.server, bed.held_id));
	assert_int_equal(bed.gone_calls, 2);
}

/* The server ends with roads of every kind: silent, with a frame held, with half a frame. */
static void test_server_ends(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int silent = road(), held = road(), half = road();
	char text[64];

	send_frame(held, 1, FRAME_SYNC, "{}");
	frame(text, 1, FRAME_SYNC, "{}");
	assert_int_equal(write(half, text, 5), 5);
	run_until_held(1);
	bed.server = http_server_free(bed.server);
	struct frame f = await(held, &got);
	assert_int_equal(f.code, 503);
	assert_int_equal(read(silent, text, sizeof(text)), 0);
}

static void test_impatience(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int silent = road(), half = road(), held = road();
	char text[64];

	send_frame(held, 1, FRAME_SYNC, "{}");
	run_until_held(1);
	frame(text, 1, FRAME_SYNC, "{}");
	assert_int_equal(write(half, text, 5), 5);
	wait_closed(silent, &got);
	wait_closed(half, &got);
	assert_int_equal(got.len, 0);
	answer(bed.held_id, "{}"); /* who waits for an answer is not cut off */
	assert_int_equal(await(held, &got).code, 200);
}

#define MUCH (16u << 20) /* more than the kernel keeps */

static void ask_much(int fd)
{
	_cleanup_(mo_freep) char *much = mo_alloc(MUCH + 1);
	int holds = bed.holds;

	memset(much, 'x', MUCH);
	send_frame(fd, 1, FRAME_SYNC, "{}");
	run_until_held(holds + 1);
	answer(bed.held_id, much);
}

static void test_large_answer(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = road();
	struct frame f;

	ask_much(fd);
	send_frame(fd, 2, FRAME_ANSWER, "{}"); /* answered behind it */
	f = await(fd, &got);
	assert_int_equal(f.length, MUCH);
	for (size_t i = 0; i < MUCH; i++)
		assert_int_equal(got.data[FRAME_HEAD + i], 'x');
	drop(&got, f);
	assert_int_equal(await(fd, &got).id, 2);
}

/* Who never reads is cut off; the others go on. */
static void test_slow_reader(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = road(), deaf = road();
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	ask_much(deaf);
	for (uint32_t i = 2; roads() == 2; i++) {
		assert_true(mo_clock_boot_us() < end);
		mo_buf_reset(&got);
		send_frame(fd, i, FRAME_ANSWER, "{}");
		assert_int_equal(await(fd, &got).id, i);
		sd_event_run(bed.loop, 100000);
	}
	assert_int_equal(roads(), 1);
}

static int64_t requests(void)
{
	struct http_stats stats;

	http_server_stats(bed.server, &stats);
	return stats.requests;
}

/* Who asks on and does not read is not heard before he has read: his answers would fill the memory.
 * Nothing that he said is lost. */
static void test_deaf_asker(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = road();
	int64_t before;
	struct frame f;

	ask_much(fd);
	for (int i = 0; i < 20; i++)
		sd_event_run(bed.loop, 1000);
	before = requests();
	for (uint32_t i = 2; i < 8; i++)
		send_frame(fd, i, FRAME_ANSWER, "{}");
	for (int i = 0; i < 100; i++)
		sd_event_run(bed.loop, 1000);
	assert_int_equal(requests(), before);
	for (uint32_t i = 1; i < 8; i++) {
		f = await(fd, &got);
		assert_int_equal(f.id, i);
		drop(&got, f);
	}
	assert_int_equal(requests(), before + 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_who_may, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_frames, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_pieces, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_broken_rules, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_crowd, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_token_ends, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_client_leaves, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_server_ends, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_impatience, bed_setup_impatient, bed_teardown),
		cmocka_unit_test_setup_teardown(test_large_answer, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_slow_reader, bed_setup_impatient,
						bed_teardown),
		cmocka_unit_test_setup_teardown(test_deaf_asker, bed_setup, bed_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
