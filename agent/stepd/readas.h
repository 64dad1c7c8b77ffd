/* Small files that a recipe names, read as the job's user by a child (readas.c). */
#pragma once
#include <sys/types.h>
#include "lib/base/buf.h"
#include "lib/base/identity.h"

struct file_text {
	const char *path;
	struct mo_buf text;
	/* 0, or why it could not be read. -EMEDIUMTYPE: it is no plain file; -EFBIG */
	int error;
};
/* Forks a child that reads them in order, as that user (never with more rights than he has), and
 * ends. What it says comes through *ret_fd, which never waits, for read_files_take(). Its pid, or
 * a negative errno. */
pid_t read_files_as(const struct mo_identity *who, const struct file_text *files, size_t n,
		    size_t max, int *ret_fd);
/* Into texts and errors; of what it did not come to, the error is `missing`. */
void read_files_take(const struct mo_buf *said, int missing, struct file_text *files, size_t n);
