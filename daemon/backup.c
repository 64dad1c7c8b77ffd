/* GET /v1/backup: the whole state as it is now, as one stream. As for a snapshot a forked child has the state as it was at that moment, so the loop does not wait and what is stored
 * meanwhile is not in it; the child writes into a pipe, which is read as fast as the client takes it. One at a time; a client that is too slow is given up, because the child's memory grows
 * with what changes meanwhile. A backup that was cut shows by its head. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/api.h"
#include "daemon/journal.h"
#include "lib/base/crc32c.h"
#include "lib/base/fd.h"
#include "lib/wire/backup.h"

#define LIMIT_US (600 * 1000000LL)
#define PIECE (64 << 10)
#define BACKLOG_MAX (256 << 10)

struct backup {
	struct manager *manager;
	uint64_t request;
	pid_t pid;
	int fd;                              /* what the child writes; -1 once it was read to its end */
	sd_event_source *io, *child;
	struct mo_timer *limit;
};

struct backup *backup_free(struct backup *b)
{
	if (!b)
		return NULL;
	sd_event_source_disable_unref(b->io);
	sd_event_source_disable_unref(b->child);
	if (b->pid > 0) {
		kill(b->pid, SIGKILL);
		waitpid(b->pid, NULL, 0);
	}
	mo_close(b->fd);
	mo_timer_free(b->limit);
	free(b);
	return NULL;
}

/* Ends the stream; what is not whole is seen by its length. */
static void backup_end(struct backup *b)
{
	struct manager *m = b->manager;
	struct http_request *r = http_find(m->http, b->request);

	if (r)
		http_stream_end(r);
	m->backup = backup_free(b);
}

/* Never returns. */
static void write_down(const struct manager *m, pid_t parent, int fd)
{
	const struct state *s = manager_state(m);
	struct mo_buf text = { 0 }, head = { 0 };
	const struct sigaction ends = { .sa_handler = SIG_DFL };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(ESRCH);
	sigaction(SIGPIPE, &ends, NULL);
	journal_snapshot_text(m->journal, s, &text);
	const struct backup_head h = {
		.moe_backup = BACKUP_VERSION, .version = (char *)MO_VERSION, .time = s->time, .epoch = s->epoch, .seq = store_seq(m->store), .jobs = (int64_t)s->n_jobs, .nodes = (int64_t)s->n_nodes,
		.bytes = (int64_t)text.len, .crc32c = mo_crc32c(0, text.data, text.len),
	};
	wire_encode(&backup_head_desc, &h, &head);
	mo_buf_str(&head, "\n");
	int r = mo_write_all(fd, head.data, head.len);
	if (r >= 0)
		r = mo_write_all(fd, text.data, text.len);
	_exit(r < 0 ? -r : 0);
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct backup *b = arg;
	struct http_request *r = http_find(b->manager->http, b->request);
	char piece[PIECE];
	ssize_t n = r ? read(fd, piece, sizeof(piece)) : 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		backup_end(b);
		return 0;
	}
	if (http_stream_write(r, piece, (size_t)n) < 0)
		backup_end(b);
	else if (http_stream_backlog(r) > BACKLOG_MAX)
		sd_event_source_set_enabled(b->io, SD_EVENT_OFF);
	return 0;
}

static void on_drained(void *arg, uint64_t id)
{
	struct manager *m = arg;

	if (m->backup && m->backup->request == id)
		sd_event_source_set_enabled(m->backup->io, SD_EVENT_ON);
}

static void on_gone(void *arg, uint64_t id)
{
	struct manager *m = arg;

	if (m->backup && m->backup->request == id)
		m->backup = backup_free(m->backup);
}

static int on_child(sd_event_source *source, const siginfo_t *si, void *arg)
{
	struct backup *b = arg;

	b->pid = 0;
	if (si->si_code != CLD_EXITED || si->si_status != 0)
		mo_log(MO_WARNING, NULL, NULL, "backup: %s: it is not whole", si->si_code != CLD_EXITED ? "its process was killed" : strerror(si->si_status));
	return 0;
}

static void on_limit(void *arg)
{
	mo_log(MO_WARNING, NULL, NULL, "backup: the client did not take it within %lld minutes: given up", LIMIT_US / 60000000);
	backup_end(arg);
}

static int begin(struct manager *m, struct backup *b)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	b->fd = ends[0];
	b->pid = fork();
	if (b->pid == 0)
		write_down(m, parent, ends[1]);
	int r = b->pid < 0 ? -errno : 0;
	mo_close(ends[1]);
	if (r >= 0 && fcntl(b->fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r >= 0)
		r = sd_event_add_child(m->loop, &b->child, b->pid, WEXITED, on_child, b);
	if (r >= 0)
		r = sd_event_add_io(m->loop, &b->io, b->fd, EPOLLIN, on_readable, b);
	if (r >= 0)
		r = mo_timer_new(m->loop, on_limit, b, &b->limit);
	if (r >= 0)
		mo_timer_in(b->limit, LIMIT_US);
	return r;
}

void api_backup(void *arg, struct http_request *r)
{
	struct manager *m = arg;

	if (m->backup) {
		http_problem(r, 429, "backup: another one is under way: try again in a moment");
		return;
	}
	struct backup *b = mo_alloc(sizeof(*b));
	b->manager = m;
	b->fd = -1;
	b->request = http_id(r);
	int e = begin(m, b);
	if (e < 0) {
		backup_free(b);
		http_problem(r, 503, "backup: %s: try again", strerror(-e));
		return;
	}
	m->backup = b;
	http_hold(r);
	http_stream_start(r, "application/octet-stream");
	http_stream_on_drained(r, on_drained, m);
	http_on_gone(r, on_gone, m);
	mo_log(MO_NOTICE, NULL, NULL, "a backup of the state is given to %s", http_caller(r)->user ? http_caller(r)->user : "an admin");
}
