/* The files of `env: {NAME: {file: PATH}}` are on file systems of users: one may be dead, and its
 * reader then hangs for ever (readas.c). The supervisor waits for its words and its end as for a
 * rank's, so that an order that comes meanwhile is obeyed, and not longer than FILES_MS for all
 * files of a start together. */
#include "agent/stepd/files.h"

#include <errno.h>
#include <sys/epoll.h>

#include "agent/stepd/process.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/wake.h"
#include "lib/base/file.h"
#include "lib/base/clock.h"

#define READ_BYTES 16384

/* One reader after another: of engine.prepare, of the ranks. The memory stays: events of its
 * source may be on their way. */
struct files {
	struct source source;
	struct mo_buf said;
	struct prepared *p;
	void (*then)(struct stepd *s);
	pid_t pid; /* 0: none is at work */
	int64_t end_us;
	bool ended;
};

/* Both ends of it were seen, or it is given up: then it is killed, and the subreaper takes it. */
static void finish(struct stepd *s, int missing)
{
	struct files *f = s->files;

	if (!f->ended)
		process_kill(f->pid);
	f->pid = 0;
	wake_unwatch(s, &f->source);
	if (!s->killing) {
		read_files_take(&f->said, missing, f->p->files, f->p->n_files);
		f->then(s);
	}
	mo_buf_done(&f->said);
}

static void on_said(struct stepd *s, struct source *source, uint32_t events)
{
	struct files *f = source->owner;
	char chunk[READ_BYTES];

	if (source->fd < 0)
		return;
	ssize_t n = mo_read(source->fd, chunk, sizeof(chunk));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		mo_buf_add(&f->said, chunk, (size_t)n);
		return;
	}
	wake_unwatch(s, source);
	if (f->pid && f->ended)
		finish(s, -EIO);
}

bool files_reaped(struct stepd *s, const siginfo_t *si)
{
	struct files *f = s->files;

	if (!f || !f->pid || f->pid != si->si_pid)
		return false;
	f->ended = true;
	if (f->source.fd < 0)
		finish(s, -EIO);
	return true;
}

void files_tick(struct stepd *s)
{
	int64_t now = mo_clock_boot_us();

	if (!s->files || !s->files->pid)
		return;
	if (now >= s->files->end_us)
		finish(s, -ETIMEDOUT);
	else
		stepd_tick_in(s, s->files->end_us - now);
}

static void failed(struct stepd *s, struct prepared *p, int r, void (*then)(struct stepd *s))
{
	static const struct mo_buf nothing;

	read_files_take(&nothing, r, p->files, p->n_files);
	then(s);
}

void files_read(struct stepd *s, struct prepared *p, void (*then)(struct stepd *s))
{
	int fd = -1;

	if (p->n_files == 0) {
		then(s);
		return;
	}
	if (!s->files)
		s->files = mo_alloc(sizeof(*s->files));
	struct files *f = s->files;
	pid_t pid = read_files_as(&s->who, p->files, p->n_files, ENV_FILE_MAX, &fd);
	if (pid < 0) {
		failed(s, p, (int)pid, then);
		return;
	}
	*f = (struct files){ .pid = pid,
			     .p = p,
			     .then = then,
			     .end_us = mo_clock_boot_us() + FILES_MS * 1000LL,
			     .source = { .fd = fd, .fn = on_said, .owner = f } };
	int r = wake_watch(s, &f->source, EPOLLIN);
	if (r < 0)
		finish(s, r);
	else
		files_tick(s);
}
