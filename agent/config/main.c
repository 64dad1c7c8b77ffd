/* moe-config: reads the configuration of an engine's own that a rank's command names, where the rank will run: as the job's user, in its
 * directory, with its environment, before any rank starts (agent/stepd/config.c). The rules are those of moectl (lib/recipe). It
 * prints what came out as one line of JSON (lib/recipe/experiment_record.h), or one line on stderr and status 2: the engine could not
 * load it; 3: the file that the command names is not there, which a program in the engine's place may not mind. Files are read as they
 * come; the caller has the deadline. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/model/mask.h"
#include "lib/recipe/experiment_record.h"

enum { LOADED = 0, FAILED = 1, REFUSED = 2, ABSENT = 3, MISUSED = 64 };

/* O_NONBLOCK: a FIFO in the file's place must not hang the launch. */
static int read_plain(void *arg, const char *path, size_t most, struct mo_buf *ret)
{
	_cleanup_(mo_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char chunk[16384];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
		if (ret->len + (size_t)n > most)
			return -EFBIG;
		mo_buf_add(ret, chunk, (size_t)n);
	}
	return n < 0 ? -errno : 0;
}

/* What is a secret by its name stays on the node. */
static const char *variable(void *arg, const char *name)
{
	const char *value = getenv(name);

	return value && *value && mo_mask_variable(name) ? MO_MASKED : value;
}

int main(int argc, char **argv)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const struct experiment_world world = { NULL, read_plain, variable };
	struct experiment x;

	if (argc < 3 || strcmp(argv[1], "primus") != 0) {
		fprintf(stderr, "moe-config: expected FORMAT COMMAND..., started by moe-stepd\n");
		return MISUSED;
	}
	int r = experiment_resolve(&world, argv + 2, (size_t)argc - 2, &x, &err);

	if (r < 0) {
		fprintf(stderr, "%s%s%s\n", mo_error_text(&err, r), err.hint ? "; " : "",
			err.hint ? err.hint : "");
		return r == -ENOENT ? ABSENT : REFUSED;
	}
	_cleanup_(mo_freep) char *packed = experiment_pack(&x);
	_cleanup_(mo_freep) char *line =
		mo_printf("{\"files\":\"crc32c:%08x\",\"result\":%s}\n", x.crc, packed);

	experiment_done(&x);
	r = mo_write_all(STDOUT_FILENO, line, strlen(line));
	return r < 0 ? FAILED : LOADED;
}
