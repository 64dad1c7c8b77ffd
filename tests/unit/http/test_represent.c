/* What of an answer need not travel: 304 for who has it, gzip for who takes it. */
#include "tests/unit/http/bed.h"

#include <dlfcn.h>
#include <string.h>
#include <zlib.h>

#include "lib/base/fd.h"

#define GET_LARGE "GET /v1/large HTTP/1.1" AS("viewer")
#define GET_PAGE "GET /page HTTP/1.1" TCP "\r\nAccept-Encoding: gzip"

static int n_packings;

/* zlib's own, counted. */
int deflateInit2_(z_streamp z, int level, int method, int window, int memory, int strategy,
		  const char *version, int size)
{
	__typeof__(&deflateInit2_) real;

	*(void **)&real = dlsym(RTLD_NEXT, "deflateInit2_");
	n_packings++;
	return real(z, level, method, window, memory, strategy, version, size);
}

/* The whole answer of one request; its connection is closed behind it. */
static void answer(const char *head, struct mo_buf *ret)
{
	_cleanup_(mo_closep) int fd = dial(false);
	_cleanup_(mo_freep) char *text = mo_printf("%s\r\nConnection: close\r\n\r\n", head);

	mo_buf_reset(ret);
	put(fd, text);
	wait_closed(fd, ret);
}

/* The line of a header, without its name; "" when there is none. Caller frees. */
static char *header(const struct mo_buf *got, const char *name)
{
	_cleanup_(mo_freep) char *want = mo_printf("\r\n%s: ", name);
	const char *at = strstr(got->data, want);

	return at ? mo_strndup(at + strlen(want), strcspn(at + strlen(want), "\r")) : mo_strdup("");
}

static void expect_header(const struct mo_buf *got, const char *name, const char *value)
{
	_cleanup_(mo_freep) char *found = header(got, name);

	assert_string_equal(found, value);
}

static void who_has_it_gets_nothing(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };

	bed.large = 'a';
	answer(GET_LARGE, &got);
	_cleanup_(mo_freep) char *tag = header(&got, "ETag");
	assert_true(strlen(tag) > 8);
	_cleanup_(mo_freep) char *again = mo_printf(GET_LARGE "\r\nIf-None-Match: %s", tag);
	_cleanup_(mo_freep) char *several =
		mo_printf(GET_LARGE "\r\nIf-None-Match: \"other\", %s", tag);
	answer(again, &got);
	assert_true(mo_starts_with(got.data, "HTTP/1.1 304 "));
	assert_string_equal(strstr(got.data, "\r\n\r\n"), "\r\n\r\n");
	expect_header(&got, "ETag", tag);
	answer(several, &got);
	assert_true(mo_starts_with(got.data, "HTTP/1.1 304 "));
	bed.large = 'b';
	answer(again, &got);
	assert_true(mo_starts_with(got.data, "HTTP/1.1 200 "));
	_cleanup_(mo_freep) char *other = header(&got, "ETag");
	assert_string_not_equal(other, tag);
}

static void expect_packed(const char *accepted, bool packed)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_freep) char *head = mo_printf(GET_LARGE "\r\nAccept-Encoding: %s", accepted);

	answer(head, &got);
	expect_header(&got, "Content-Encoding", packed ? "gzip" : "");
	expect_header(&got, "Vary", "Accept-Encoding");
	assert_true((got.len < LARGE) == packed);
}

static void who_takes_gzip_gets_it(void **state)
{
	expect_packed("gzip", true);
	expect_packed("gzip, deflate, br", true);
	expect_packed("br;q=1.0, gzip;q=0.8", true);
	expect_packed("br, gzip; q=0.05", true);
	expect_packed("identity", false);
	expect_packed("gzip;q=0", false);
	expect_packed("gzip;q=0.000, br", false);
	expect_packed("x-gzip2", false);
	expect_packed("gzippo", false);
}

/* It is LARGE of that letter. */
static void expect_content(const struct mo_buf *got, char letter)
{
	unsigned char text[LARGE + 1];
	z_stream z = { 0 };
	const char *body = strstr(got->data, "\r\n\r\n") + 4;

	z.next_in = (unsigned char *)body;
	z.avail_in = (unsigned)(got->len - (size_t)(body - got->data));
	z.next_out = text;
	z.avail_out = sizeof(text);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, LARGE);
	for (size_t i = 0; i < LARGE; i++)
		assert_int_equal(text[i], letter);
	inflateEnd(&z);
}

static void what_was_packed_is_what_it_was(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };

	bed.large = 'q';
	answer(GET_LARGE "\r\nAccept-Encoding: gzip", &got);
	expect_content(&got, 'q');
}

/* Strangers may ask for it as often as they like; of the others each pays with his own time. */
static void what_anybody_sees_is_packed_once(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };

	n_packings = 0;
	for (const char *letter = "qqqqrrq"; *letter; letter++) {
		bed.large = *letter;
		answer(GET_PAGE, &got);
		expect_header(&got, "Content-Encoding", "gzip");
		expect_content(&got, *letter);
		answer(GET_LARGE "\r\nAccept-Encoding: gzip", &got);
		expect_content(&got, *letter);
		answer("GET /page HTTP/1.1" TCP, &got);
		expect_header(&got, "Content-Encoding", "");
	}
	assert_int_equal(n_packings, 3 + 7);
}

/* What changes something may answer with a secret beside what the client wrote. */
static void what_changes_something_is_as_it_is(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };

	answer("POST /v1/large HTTP/1.1" AS("user") "\r\nAccept-Encoding: gzip\r\nIf-None-Match: *"
						    "\r\nContent-Length: 0",
	       &got);
	assert_true(mo_starts_with(got.data, "HTTP/1.1 200 "));
	expect_header(&got, "Content-Encoding", "");
	expect_header(&got, "ETag", "");
	answer("GET /v1/things HTTP/1.1" AS("viewer") "\r\nAccept-Encoding: gzip", &got);
	expect_header(&got, "Content-Encoding", ""); /* too short */
}

int main(void)
{
#define T(x) cmocka_unit_test_setup_teardown(x, bed_setup, bed_teardown)
	const struct CMUnitTest tests[] = {
		T(who_has_it_gets_nothing),
		T(who_takes_gzip_gets_it),
		T(what_anybody_sees_is_packed_once),
		T(what_was_packed_is_what_it_was),
		T(what_changes_something_is_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
