/* backup FILE: the controller's whole state, as it is now, in a file that moed --restore reads.
 * Written beside the file first, so that FILE is whole or as it was before. */
#include "cli/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/value.h"
#include "lib/base/crc32c.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/wire/backup.h"

struct taken {
	int fd;
	int error;          /* of writing */
	struct mo_buf line; /* the head, until its end was seen */
	bool has_head;
	int64_t bytes;
	uint32_t crc32c;
};

static int on_data(void *arg, const char *data, size_t n)
{
	struct taken *t = arg;
	const char *end = t->has_head ? NULL : memchr(data, '\n', n);
	size_t head = t->has_head ? 0 : end ? (size_t)(end - data) + 1 : n;

	if (!t->has_head)
		mo_buf_add(&t->line, data, head);
	t->has_head |= end != NULL;
	if (!t->has_head && t->line.len > BACKUP_HEAD_MAX)
		return 1;
	t->crc32c = mo_crc32c(t->crc32c, data + head, n - head);
	t->bytes += (int64_t)(n - head);
	t->error = mo_write_all(t->fd, data, n);
	return t->error < 0;
}

static int take(struct cli *cli, struct taken *t, struct backup_head *head, const char *file)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const struct request q = {
		.path = "/v1/backup", .timeout_ms = -1, .on_data = on_data, .arg = t
	};
	int r = client_send(cli, &q, &a);

	if (r)
		return r;
	if (t->error < 0)
		return cli_fail(CLI_FAILED, "backup: %s: %s", file, strerror(-t->error));
	if (a.status != 200 || !t->has_head)
		return a.status == 200
			       ? cli_fail(CLI_FAILED,
					  "backup: the controller sent no backup; try again")
			       : client_judge(cli, NULL, &a);
	if ((r = backup_head_read(t->line.data, t->line.len - 1, head, &err)) < 0)
		return cli_fail(CLI_FAILED, "backup: %s", mo_error_text(&err, r));
	if (head->bytes != t->bytes || head->crc32c != (int64_t)t->crc32c)
		return cli_fail(CLI_FAILED,
				"backup: it was cut (%lld of %lld bytes) or damaged on its way; "
				"try again",
				(long long)t->bytes, (long long)head->bytes);
	return CLI_OK;
}

static int sync_dir_of(const char *file)
{
	const char *slash = strrchr(file, '/');
	_cleanup_(mo_freep) char *dir =
		slash ? mo_strndup(file, MO_MAX((size_t)(slash - file), 1)) : mo_strdup(".");
	_cleanup_(mo_closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int run_backup(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	_cleanup_(mo_buf_done) struct mo_buf doc = { 0 };
	struct backup_head head;
	char when[32];
	int r = cli_options(cli, argc, argv, NULL, 0, args, 1, 1);

	if (r)
		return cli_stop(r);
	_cleanup_(mo_freep) char *part = mo_printf("%s.part", args[0]);
	struct taken t = { .fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
				      0600) };
	if (t.fd < 0 || fchmod(t.fd, 0600) < 0)
		return cli_fail(CLI_FAILED,
				"backup: %s: %s; give a FILE in a directory that you may write to",
				part, strerror(errno));
	mo_desc_init(&backup_head_desc, &head);
	r = take(cli, &t, &head, part);
	if (!r && (fsync(t.fd) < 0 || rename(part, args[0]) < 0 || sync_dir_of(args[0]) < 0))
		r = cli_fail(CLI_FAILED, "backup: %s: %s; give another FILE", args[0],
			     strerror(errno));
	mo_close(t.fd);
	if (r)
		unlink(part);
	else if (cli->json)
		printf("%.*s\n", (int)t.line.len - 1, t.line.data);
	else
		printf("%s: state of %s, %lld jobs, %lld nodes, %lld bytes; 'moed --restore %s' "
		       "puts it into an empty state directory\n",
		       args[0], mo_time_format(head.time, when), (long long)head.jobs,
		       (long long)head.nodes, (long long)head.bytes, args[0]);
	mo_buf_done(&t.line);
	mo_desc_done(&backup_head_desc, &head);
	return r;
}

const struct verb verb_backup = {
	"backup",
	"Cluster",
	"backup FILE",
	"the controller's state as it is now, into a file (admin)",
	"The file (mode 0600) holds environments of jobs and hashes of tokens: keep it like the "
	"state directory. Jobs and the controller run on.\n",
	run_backup,
	.examples = "  moectl backup moed-$(date +%F).db\n",
};
