/* What the journal gets of an event: its text, its fields, and level and class of the registry. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/effects.h"
#include "lib/base/fd.h"

static char dir[64];
static int journal = -1;

/* The journal's socket is ours, and stderr is taken for its stream. */
static int setup(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;
	char stream[64];

	snprintf(dir, sizeof(dir), "/tmp/effects-test-XXXXXX");
	if (!mkdtemp(dir) || fstat(STDERR_FILENO, &st) < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/journal", dir);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("MOE_JOURNAL_SOCKET", address.sun_path, 1);
	setenv("JOURNAL_STREAM", stream, 1);
	journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(journal, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	mo_log_open("moed", MO_INFO);
	return 0;
}

static int teardown(void **state)
{
	unsetenv("JOURNAL_STREAM");
	mo_log_open("moed", MO_INFO);
	journal = mo_close(journal);
	return mo_rm_rf(dir);
}

/* The value of one field of an entry, NULL = it has none. Caller frees. */
static char *field(const char *entry, size_t n, const char *name)
{
	for (size_t at = 0; at < n;) {
		const char *key = entry + at, *end = memchr(key, '\n', n - at);
		uint64_t size = 0;

		assert_non_null(end);
		for (size_t i = 0; i < 8; i++)
			size |= (uint64_t)(unsigned char)end[1 + i] << (8 * i);
		if (strlen(name) == (size_t)(end - key) && memcmp(name, key, strlen(name)) == 0)
			return mo_strndup(end + 9, size);
		at = (size_t)(end - entry) + 9 + size + 1;
	}
	return NULL;
}

static void check(const char *entry, size_t n, const char *name, const char *want)
{
	_cleanup_(mo_freep) char *have = field(entry, n, name);

	if (!mo_streq(have, want))
		fail_msg("%s: %s, wanted %s", name, have ? have : "none", want ? want : "none");
}

/* A datagram to a bound socket is there when the sender returns. */
static size_t written(enum event_type type, const struct event *event, char *ret, size_t size)
{
	struct manager m = { 0 };
	struct input in = { 0 };

	effect_do(&m, &in,
		  &(struct effect){ .type = FX_EVENT,
				    .event = &(struct effect_event){
					    .type = type, .event = (struct event *)event } });
	ssize_t n = recv(journal, ret, size, 0);

	assert_true(n > 0);
	return (size_t)n;
}

static void test_rank(void **state)
{
	const struct event e = { .seq = 7,
				 .type = (char *)"rank.exited",
				 .job = 3,
				 .node = (char *)"n1",
				 .rank = 0,
				 .attempt = 2,
				 .message = (char *)"rank 0 on n1 ended" };
	char entry[4096];
	size_t n = written(EVENT_RANK_EXITED, &e, entry, sizeof(entry));

	check(entry, n, "MESSAGE", "rank 0 on n1 ended");
	check(entry, n, "PRIORITY", "6");
	check(entry, n, "MESSAGE_ID", "6d6f650000000000000000000000020a");
	check(entry, n, "MOE_JOB", "j-3");
	check(entry, n, "MOE_ATTEMPT", "2");
	check(entry, n, "MOE_RANK", "0");
	check(entry, n, "MOE_NODE", "n1");
}

/* Two events with one text: each has its own class. */
static void test_same_text(void **state)
{
	const struct event e = { .seq = 8,
				 .type = (char *)"node.down",
				 .job = MO_NONE,
				 .node = (char *)"n2",
				 .rank = MO_NONE,
				 .attempt = MO_NONE,
				 .message = (char *)"it is so" };
	char entry[4096];
	size_t n = written(EVENT_NODE_DOWN, &e, entry, sizeof(entry));

	check(entry, n, "PRIORITY", "4");
	check(entry, n, "MESSAGE_ID", "6d6f6500000000000000000000000204");
	check(entry, n, "MOE_JOB", NULL);
	check(entry, n, "MOE_RANK", NULL);
	n = written(EVENT_NODE_DRAINED, &e, entry, sizeof(entry));
	check(entry, n, "PRIORITY", "5");
	check(entry, n, "MESSAGE_ID", NULL);
	check(entry, n, "MOE_NODE", "n2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rank, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_text, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
