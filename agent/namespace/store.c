/* See store.h. */
#include "agent/namespace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/namespace/report.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/wire/decode.h"

/* In the child; the descriptors of the maker are closed: what a runtime leaves behind must not hold
 * the supervisor's pipes open. */
static _Noreturn void become(const char *path, const struct box *b, const char *dir, int out)
{
	char *argv[] = { (char *)"moe-runtime",
			 (char *)(b->holder ? "start" : "hold"),
			 b->runtime,
			 b->stored,
			 b->step,
			 (char *)(b->holder ? dir : NULL),
			 NULL };
	int null = mo_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    syscall(SYS_close_range, STDERR_FILENO + 1U, ~0U, 0U) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(1);
	execv(path, argv);
	_exit(1);
}

/* All that it says: this process has nothing else to do, and its supervisor a deadline. */
static void listen_to(int fd, struct mo_buf *ret)
{
	char chunk[65536];
	ssize_t n;

	while ((n = mo_read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno != EINTR)
			report_failure(errno, "read what moe-runtime says");
		mo_buf_add(ret, chunk, n > 0 ? (size_t)n : 0);
		if (ret->len > RUNTIME_ANSWER_MAX)
			report_failure(E2BIG, "read what moe-runtime says");
	}
	mo_buf_str(ret, "");
}

/* "ERRNO WHAT" */
static _Noreturn void refuse(const struct box *b, const struct mo_buf *said)
{
	size_t n = strcspn(said->data, "\n"), space = strcspn(said->data, " ");
	_cleanup_(mo_freep) char *number = mo_strndup(said->data, MO_MIN(n, space));
	int64_t error = EIO;

	if (space >= n || mo_parse_i64(number, 1, 4095, &error) < 0)
		report_failure(EIO, "use %s: moe-runtime ended without a word", b->root);
	report_failure((int)error, "use %s: %.*s", b->root, (int)(n - space - 1),
		       said->data + space + 1);
}

void store_ask(const struct box *b, const char *dir, struct runtime_image *ret)
{
	_cleanup_(mo_freep) char *path = mo_libexec("moe-runtime");
	_cleanup_(mo_buf_done) struct mo_buf said = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int ends[2], status = 1;

	if (!path || !b->stored || !b->step)
		report_failure(path ? EINVAL : ENOPKG, "use %s: %s", b->root,
			       path ? "the box does not say which image"
				    : "moe-runtime is missing");
	if (pipe2(ends, O_CLOEXEC) < 0)
		report_failure(errno, "make a pipe");
	pid_t pid = fork();

	if (pid == 0)
		become(path, b, dir, ends[1]);
	if (pid < 0)
		report_failure(errno, "start moe-runtime");
	mo_close(ends[1]);
	listen_to(ends[0], &said);
	mo_close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (status != 0)
		refuse(b, &said);
	int r = wire_decode(&runtime_image_desc, said.data, strlen(said.data), false, ret, &err);

	if (r == 0 && !b->holder && ret->n_layers == 0)
		r = -EBADMSG;
	if (r == 0 && b->digest && !mo_streq(ret->digest, b->digest))
		r = mo_error_set(&err, -ENOENT, "this node has %s, the job has %s", ret->digest,
				 b->digest);
	if (r < 0)
		report_failure(-r, "use %s: %s", b->root, mo_error_text(&err, r));
}

void store_config(const struct runtime_image *stored, struct image_config *ret)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct image_process process = { .env = stored->env,
					 .n_env = stored->n_env,
					 .cwd = stored->workdir };
	const struct image_bundle bundle = { .process = &process };
	int r = image_config_bundle(&bundle, ret, &err);

	if (r < 0)
		report_failure(-r, "use what the image says: %s", mo_error_text(&err, r));
	mo_str_set(&ret->digest, stored->digest);
}
