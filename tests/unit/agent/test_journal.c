/* A step's journal cut at every length, as a full disk, a killed supervisor or a power loss leaves
 * it: the notes whose lines are whole are read, in order, nothing else is, and the next note stands
 * where the cut one stood. Two lines that changed places: none is read with a lower number than the
 * one before. What is acknowledged is deleted, and nothing else. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/journal.h"
#include "lib/base/fd.h"

#define NOTES 5

static char dir[64], path[96];
static int dir_fd;

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/journal-test-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/notes.1", dir);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	close(dir_fd);
	return mo_rm_rf(dir);
}

struct seen {
	int64_t n, last;
};

static void on_note(void *arg, struct note *note)
{
	struct seen *s = arg;

	assert_true(note->n > s->last);
	s->last = note->n;
	s->n++;
	mo_desc_free(&note_desc, note);
}

static void append_text(struct journal *j, int64_t n, const char *text)
{
	struct note note;

	mo_desc_init(&note_desc, &note);
	note.n = n;
	note.kind = n % 2 ? NOTE_STARTED : NOTE_EXIT;
	note.rank = 3;
	note.text = mo_strdup(text);
	assert_int_equal(journal_append(j, &note), 0);
	mo_desc_done(&note_desc, &note);
}

static void append(struct journal *j, int64_t n)
{
	append_text(j, n, "a \"text\" of\nseveral lines");
}

/* Its bytes, for the caller to free. */
static void whole(struct mo_buf *ret)
{
	struct seen none = { 0 };
	struct journal j;

	journal_init(&j, dir_fd);
	for (int64_t n = 1; n <= NOTES; n++) {
		append(&j, n);
		assert_int_equal(journal_read(&j, on_note, &none), 0);
	}
	assert_int_equal(none.n, NOTES);
	journal_done(&j);
	assert_int_equal(mo_read_file(path, 1 << 20, ret), 0);
}

static void test_every_cut(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	whole(&text);
	for (size_t cut = 0, lines = 0; cut <= text.len; cut++) {
		struct seen first = { 0 }, again = { 0 };
		struct journal j;

		lines += cut && text.data[cut - 1] == '\n';
		assert_int_equal(mo_write_file(path, text.data, cut, 0600, false), 0);
		journal_init(&j, dir_fd);
		assert_int_equal(journal_read(&j, on_note, &first), 0);
		assert_int_equal(first.n, (int64_t)lines);
		assert_int_equal(first.last, (int64_t)lines);
		append_text(&j, first.last + 1, "another");
		/* of the cut piece, which it has read, nothing goes before the new line */
		assert_int_equal(journal_read(&j, on_note, &first), 0);
		assert_int_equal(first.n, (int64_t)lines + 1);
		journal_done(&j);
		journal_init(&j, dir_fd);
		assert_int_equal(journal_read(&j, on_note, &again), 0);
		assert_int_equal(again.n, (int64_t)lines + 1);
		journal_done(&j);
	}
}

static void test_two_lines_swapped(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 }, swapped = { 0 };
	struct seen seen = { 0 };
	struct journal j;

	whole(&text);
	const char *second = strchr(text.data, '\n') + 1, *third = strchr(second, '\n') + 1;

	mo_buf_add(&swapped, second, (size_t)(third - second));
	mo_buf_add(&swapped, text.data, (size_t)(second - text.data));
	mo_buf_str(&swapped, third);
	assert_int_equal(mo_write_file(path, swapped.data, swapped.len, 0600, false), 0);
	journal_init(&j, dir_fd);
	assert_int_equal(journal_read(&j, on_note, &seen), 1);
	assert_int_equal(seen.n, NOTES - 1);
	assert_int_equal(seen.last, NOTES);
	journal_done(&j);
}

/* One of three notes each, as a supervisor writes them. */
static void segments(int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *name = mo_printf("%s/notes.%lld", dir, 3LL * i + 1);
		_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

		for (int k = 1; k <= 3; k++)
			mo_buf_printf(&text, "{\"n\":%lld,\"kind\":\"exit\"}\n", 3LL * i + k);
		assert_int_equal(mo_write_file(name, text.data, text.len, 0600, false), 0);
	}
}

static bool has_segment(int64_t first)
{
	_cleanup_(mo_freep) char *name = mo_printf("%s/notes.%lld", dir, (long long)first);

	return access(name, F_OK) == 0;
}

/* All above `through` are there for the next reader; the first segment, which says how the step
 * began, and the last one are never deleted. */
static void test_trim(void **state)
{
	for (int64_t through = 0; through <= 12; through++) {
		struct seen all = { 0 }, left = { 0 };
		struct journal j;

		segments(4);
		journal_init(&j, dir_fd);
		assert_int_equal(journal_read(&j, on_note, &all), 0);
		assert_int_equal(all.n, 12);
		journal_trim(&j, through);
		assert_true(has_segment(1));
		assert_int_equal(has_segment(4), through < 6);
		assert_int_equal(has_segment(7), through < 9);
		assert_true(has_segment(10));
		append(&j, 13);
		assert_int_equal(journal_read(&j, on_note, &all), 0);
		assert_int_equal(all.n, 13);
		journal_done(&j);
		journal_init(&j, dir_fd);
		assert_int_equal(journal_read(&j, on_note, &left), 0);
		assert_int_equal(left.last, 13);
		assert_int_equal(left.n, 13 - (through < 6 ? 0 : through < 9 ? 3 : 6));
		journal_done(&j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_lines_swapped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_trim, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
