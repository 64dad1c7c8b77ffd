/* The process that writes a snapshot: what it keeps of the controller's, and what follows when it
 * does not end, is killed, or leaves half a file. It is held where it opens its file: that is a
 * pipe that nobody reads. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/input.h"
#include "daemon/journal.h"
#include "daemon/snapshot.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/loop/loop.h"

#define RECORDS 10000
#define LARGE_BYTES (128 << 20)
#define MINUTE_US 60000000LL
#define DEADLINE_US 30000000LL
#define LIMIT_US (30 * MINUTE_US)

static char dir[64];
static struct options options = { .state_dir = dir };
static struct manager m;

static void no_turn(void *arg) {}

static int setup(void **state)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	snprintf(dir, sizeof(dir), "/tmp/snapshot-test-XXXXXX");
	m = (struct manager){ .options = &options };
	if (!mkdtemp(dir) || store_open(dir, &m.store, NULL) < 0 || sd_event_new(&m.loop) < 0 ||
	    mo_turn_new(m.loop, no_turn, NULL, &m.turn) < 0)
		return -1;
	m.core = core_new(&core_config_default);
	m.journal = journal_new();
	snapshots_new(&m);
	return 0;
}

static int teardown(void **state)
{
	m.snapshots = snapshots_free(m.snapshots);
	inputs_done(&m);
	mo_turn_free(m.turn);
	m.journal = journal_free(m.journal);
	core_free(m.core);
	m.store = store_free(m.store);
	sd_event_unref(m.loop);
	return mo_rm_rf(dir);
}

static void fill(void)
{
	char **texts = mo_alloc_array(RECORDS, sizeof(*texts));

	for (size_t i = 0; i < RECORDS; i++)
		texts[i] = (char *)"{}";
	assert_int_equal(store_append(m.store, texts, RECORDS, NULL), 0);
	snapshots_count(&m, RECORDS * 2);
	free(texts);
}

static void wait_for(const int64_t *count, int64_t value)
{
	int64_t end = mo_clock_boot_us() + DEADLINE_US;

	while (*count < value && mo_clock_boot_us() < end)
		assert_true(sd_event_run(m.loop, 1000000) >= 0);
	assert_int_equal(*count, value);
}

/* 0: there is none. */
static pid_t writer(void)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *path = mo_printf("/proc/self/task/%d/children", (int)getpid());
	int64_t pid = 0;

	assert_int_equal(mo_read_file(path, 4096, &b), 0);
	if (!b.len)
		return 0;
	_cleanup_(mo_freep) char *first = mo_strndup(b.data, strcspn(b.data, " "));
	assert_int_equal(mo_parse_i64(first, 1, INT32_MAX, &pid), 0);
	return (pid_t)pid;
}

/* The next snapshot's file, when it is held. */
static char *hold(void)
{
	char *path = mo_path(dir, "snapshot-%lld.new", (long long)store_seq(m.store));

	assert_int_equal(mkfifo(path, 0600), 0);
	return path;
}

/* Descriptors of the process that lead there. */
static int count_fds(pid_t pid, const char *part)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/fd", (int)pid);
	DIR *d = opendir(path);
	int n = 0;

	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d));) {
		_cleanup_(mo_freep) char *link = mo_path(path, "%s", e->d_name);
		char target[256] = { 0 };
		n += readlink(link, target, sizeof(target) - 1) > 0 && strstr(target, part);
	}
	closedir(d);
	return n;
}

static void test_written(void **state)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "snapshot-%d", RECORDS);

	snapshots_check(&m, mo_clock_boot_us());
	assert_int_equal(writer(), 0);
	fill();
	snapshots_check(&m, mo_clock_boot_us());
	wait_for(&m.n_snapshots, 1);
	assert_int_equal(store_records_since_snapshot(m.store), 0);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(m.n_inputs, 0);
}

/* Few records, but large ones: their bytes make it due. */
static void test_few_large(void **state)
{
	char *const one[] = { (char *)"{}" };

	assert_int_equal(store_append(m.store, one, 1, NULL), 0);
	snapshots_count(&m, LARGE_BYTES - 1);
	snapshots_check(&m, mo_clock_boot_us());
	assert_int_equal(writer(), 0);
	snapshots_count(&m, 1);
	snapshots_check(&m, mo_clock_boot_us());
	wait_for(&m.n_snapshots, 1);
	assert_int_equal(store_records_since_snapshot(m.store), 0);
}

/* It holds no lock and no connection, the controller does; and it is what a machine without memory
 * kills first. */
static void test_what_it_inherits(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	static const char *const parents[] = { "/lock", "/moe.db", "eventpoll" };
	struct store *second = NULL;
	int64_t end = mo_clock_boot_us() + DEADLINE_US;

	fill();
	_cleanup_(mo_freep) char *held = hold();
	snapshots_check(&m, mo_clock_boot_us());
	_cleanup_(mo_freep) char *score = mo_printf("/proc/%d/oom_score_adj", (int)writer());
	for (;;) {
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		assert_int_equal(mo_read_file(score, 64, &b), 0);
		if (mo_streq(b.data, "1000\n"))
			break;
		assert_true(mo_clock_boot_us() < end);
		poll(NULL, 0, 10);
	}
	for (size_t i = 0; i < ELEMENTSOF(parents); i++) {
		assert_int_not_equal(count_fds(getpid(), parents[i]), 0);
		assert_int_equal(count_fds(writer(), parents[i]), 0);
	}
	kill(writer(), SIGKILL);
	wait_for(&m.n_snapshot_failures, 1);
	assert_int_equal(store_open(dir, &second, &err), -EWOULDBLOCK);
}

/* Reported once until one succeeds; what it left is removed; the next try needs no further records,
 * only its minute. */
static void test_killed(void **state)
{
	fill();
	snapshots_check(&m, mo_clock_boot_us());
	wait_for(&m.n_snapshots, 1);
	fill();
	for (int i = 1; i <= 2; i++) {
		_cleanup_(mo_freep) char *held = hold();
		snapshots_check(&m, mo_clock_boot_us() + 2 * i * MINUTE_US);
		assert_int_not_equal(writer(), 0);
		kill(writer(), SIGKILL);
		wait_for(&m.n_snapshot_failures, i);
		assert_int_equal(access(held, F_OK), -1);
	}
	assert_int_equal(m.n_inputs, 1);
	assert_string_equal(m.inputs[0]->core.store->event, "store.snapshot");
	assert_non_null(strstr(m.inputs[0]->core.store->message, "its process was killed"));
	snapshots_check(&m, mo_clock_boot_us());
	assert_int_equal(writer(), 0);
	snapshots_check(&m, mo_clock_boot_us() + 2 * MINUTE_US);
	wait_for(&m.n_snapshots, 2);
	assert_int_equal(store_records_since_snapshot(m.store), 0);
}

static void test_stopped(void **state)
{
	int64_t now = mo_clock_boot_us();

	fill();
	_cleanup_(mo_freep) char *held = hold();
	snapshots_check(&m, now);
	pid_t pid = writer();
	kill(pid, SIGSTOP);
	snapshots_check(&m, now + LIMIT_US);
	assert_int_equal(m.n_inputs, 0);
	snapshots_check(&m, now + LIMIT_US + 1);
	snapshots_check(&m, now + LIMIT_US + 2);
	wait_for(&m.n_snapshot_failures, 1);
	assert_int_equal(m.n_inputs, 1);
	assert_non_null(strstr(m.inputs[0]->core.store->message, "not written within 30 minutes"));
	snapshots_check(&m, mo_clock_boot_us() + 2 * MINUTE_US);
	wait_for(&m.n_snapshots, 1);
}

/* The controller ends while it is written. */
static void test_end(void **state)
{
	fill();
	_cleanup_(mo_freep) char *held = hold();
	snapshots_check(&m, mo_clock_boot_us());
	kill(writer(), SIGSTOP);
	m.snapshots = snapshots_free(m.snapshots);
	assert_int_equal(writer(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_few_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_it_inherits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
