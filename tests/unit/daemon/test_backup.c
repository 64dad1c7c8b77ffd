/* What a backup says of itself can be read again; one that nobody could read is refused with what
 * to do instead. */
#include "tests/unit/unit.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/backup.h"
#include "daemon/core/core.h"
#include "lib/base/crc32c.h"
#include "lib/base/fd.h"
#include "lib/wire/backup.h"

/* What stands behind the status, which is *ret_status. */
static char *written(const char *text, int64_t max, int *ret_status)
{
	struct core *core = core_new(&core_config_default);
	struct mo_buf b = { 0 }, got = { 0 };
	int fd = memfd_create("backup", MFD_CLOEXEC);

	mo_buf_str(&b, text);
	assert_int_equal(backup_write(&(struct backup){ core_state(core), "/var/lib/moe", 7, &b },
				      max, fd),
			 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(mo_read_fd(fd, 8 << 20, &got), 0);
	assert_true(got.len > 4 && got.data[3] == '\n');
	*ret_status = (got.data[0] - '0') * 100 + (got.data[1] - '0') * 10 + got.data[2] - '0';
	char *rest = mo_strdup(got.data + 4);

	mo_buf_done(&got);
	mo_buf_done(&b);
	close(fd);
	core_free(core);
	return rest;
}

static void what_fits_is_written_whole(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct backup_head head;
	int status;

	mo_desc_init(&backup_head_desc, &head);
	_cleanup_(mo_freep) char *all = written("{\"a\":1}\n", 8, &status);
	char *end = strchr(all, '\n');

	assert_int_equal(status, 200);
	assert_non_null(end);
	assert_int_equal(backup_head_read(all, (size_t)(end - all), &head, &err), 0);
	assert_int_equal(head.bytes, 8);
	assert_int_equal(head.seq, 7);
	assert_int_equal(head.crc32c, mo_crc32c(0, "{\"a\":1}\n", 8));
	assert_string_equal(end + 1, "{\"a\":1}\n");
	mo_desc_done(&backup_head_desc, &head);
}

static void what_nobody_could_read_is_refused(void **state)
{
	static char text[(3 << 20) + 2];
	int status;

	memset(text, 'x', sizeof(text) - 1);
	_cleanup_(mo_freep) char *refusal = written(text, 3 << 20, &status);

	assert_int_equal(status, 507);
	assert_non_null(strstr(refusal, "\"status\":507"));
	assert_non_null(strstr(refusal, "backup: the state has more than 3 MiB, and moed --restore "
					"reads no more: stop moed, copy /var/lib/moe"));
	assert_null(strstr(refusal, "xx"));
	text[3 << 20] = '\0';
	_cleanup_(mo_freep) char *fits = written(text, 3 << 20, &status);

	assert_int_equal(status, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_written_whole),
		cmocka_unit_test(what_nobody_could_read_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
