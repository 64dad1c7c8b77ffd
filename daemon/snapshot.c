/* A snapshot of 8,000 jobs takes 0.4 s to write down. The loop does not wait for it: a forked child has the state as it was at that moment (copied page by page as the parent
 * changes it), writes it to a file and ends; then the store takes the file as its snapshot. The child touches neither sockets nor the database and dies with its parent; what
 * was stored meanwhile stays as records. Nothing is lost when it fails: the records before it are kept, and it is tried again later. */
#include "daemon/snapshot.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/journal.h"

#define RECORDS_MIN 10000
#define AGAIN_US (60 * 1000000LL)      /* after a failure */
#define NICE 10

struct snapshots {
	struct manager *owner;
	pid_t pid;                     /* 0 = none under way */
	sd_event_source *child;
	int64_t seq;                   /* of the one under way */
	int64_t bytes, bytes_since;    /* records: between the last two snapshots' beginnings, since the last one's */
	int64_t not_before;            /* boot us */
};

void snapshots_new(struct manager *m)
{
	m->snapshots = mo_alloc(sizeof(*m->snapshots));
	m->snapshots->owner = m;
}

struct snapshots *snapshots_free(struct snapshots *s)
{
	if (s && s->pid) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	if (s)
		sd_event_source_disable_unref(s->child);
	free(s);
	return NULL;
}

void snapshots_count(struct manager *m, size_t bytes)
{
	m->snapshots->bytes_since += (int64_t)bytes;
}

static void put_off(struct manager *m, const char *why)
{
	m->snapshots->not_before = mo_clock_boot_us() + AGAIN_US;
	mo_log(MO_WARNING, NULL, NULL, "snapshot: %s: the records are kept instead, the next try is in a minute", why);
}

static int on_child(sd_event_source *source, const siginfo_t *si, void *userdata)
{
	struct snapshots *s = userdata;
	struct manager *m = s->owner;
	_cleanup_(mo_error_done) struct mo_error err = {0};

	s->pid = 0;
	s->child = sd_event_source_disable_unref(s->child);
	if (m->fatal)
		return 0;
	if (si->si_code != CLD_EXITED || si->si_status != 0) {
		put_off(m, si->si_code != CLD_EXITED ? "its process was killed" : si->si_status == ENOSPC ? "not enough space on the disk of state_dir" : strerror(si->si_status));
		return 0;
	}
	int r = store_adopt_snapshot(m->store, s->seq, &s->bytes, &err);
	if (r == -ENOSPC)
		put_off(m, mo_error_text(&err, r));
	else if (r < 0)
		manager_fail(m, mo_error_text(&err, r));
	else
		m->n_snapshots++;
	return 0;
}

/* Never returns; the status is an errno. */
static void write_down(const struct manager *m, pid_t parent, int64_t seq)
{
	struct mo_buf text = {0};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(ESRCH);
	syscall(SYS_close_range, 3U, ~0U, 0U);   /* the lock and all connections end with the parent, not with this */
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	journal_snapshot_text(m->journal, manager_state(m), &text);
	_exit(-store_write_snapshot(m->store, seq, text.data, text.len));
}

/* As many bytes of records as the last snapshot had must have come: what a record costs then does not grow with the state. */
void snapshots_look(struct manager *m)
{
	struct snapshots *s = m->snapshots;
	pid_t parent = getpid();

	if (s->pid || store_records_since_snapshot(m->store) < RECORDS_MIN || s->bytes_since < s->bytes || mo_clock_boot_us() < s->not_before)
		return;
	s->seq = store_seq(m->store);
	s->pid = fork();
	if (s->pid == 0)
		write_down(m, parent, s->seq);
	if (s->pid < 0) {
		s->pid = 0;
		put_off(m, strerror(errno));
		return;
	}
	journal_snapshot_taken(m->journal);
	s->bytes_since = 0;
	int r = sd_event_add_child(m->loop, &s->child, s->pid, WEXITED, on_child, s);
	if (r < 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
		s->pid = 0;
		put_off(m, strerror(-r));
	}
}
