/* A snapshot of 8,000 jobs takes 0.4 s to write down. The loop does not wait for it: a forked
 * child has the state as it was at that moment (copied page by page as the parent changes it),
 * writes it to a file and ends; then the store takes the file as its snapshot. The child touches
 * neither sockets nor the database and dies with its parent; what was stored meanwhile stays as
 * records. Nothing is lost when it fails: the records before it are kept, what it left is
 * removed, and it is tried again later. One that does not end (stopped, or a disk that hangs) is
 * killed. */
#include "daemon/snapshot.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/fatal.h"
#include "daemon/journal.h"
#include "daemon/room.h"
#include "lib/base/assert.h"
#include "lib/base/fd.h"
#include "lib/wire/json.h"

#define RECORDS_MIN 10000
#define AGAIN_US (60 * 1000000LL)   /* after a failure */
#define LIMIT_US (1800 * 1000000LL) /* a slow disk rests a second after each MiB */
#define LATE "it is not written within 30 minutes"
#define NICE 10
/* when memory is short, this process is to go and not the controller */
#define OOM_FIRST "1000"

struct snapshots {
	struct manager *owner;
	pid_t pid; /* 0 = none under way */
	sd_event_source *child;
	int64_t seq; /* of the one under way */
	/* records: between the last two snapshots' beginnings, since the last one's */
	int64_t bytes, bytes_since;
	int64_t began, not_before; /* boot us */
	bool late;                 /* the one under way was killed for it */
	bool reported;             /* that they fail; until one succeeds */
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

static void tell(struct manager *m, const char *why)
{
	if (!m->snapshots->reported)
		room_tell(m, EVENT_STORE_SNAPSHOT,
			  "the state cannot be written down whole (%s): nothing is lost, but the "
			  "records in %s grow; it is tried again each minute",
			  why, m->options->state_dir);
	m->snapshots->reported = true;
}

/* The bytes since the last snapshot still count, or the next try would wait for as many again. */
static void put_off(struct manager *m, const char *why)
{
	struct snapshots *s = m->snapshots;

	store_remove_strays(m->store);
	m->n_snapshot_failures++;
	s->not_before = mo_clock_boot_us() + AGAIN_US;
	s->bytes_since = MO_MAX(s->bytes_since, s->bytes);
	mo_log(MO_WARNING, NULL, NULL,
	       "snapshot: %s: the records are kept instead, the next try is in a minute", why);
	tell(m, why);
}

static int on_child(sd_event_source *source, const siginfo_t *si, void *userdata)
{
	struct snapshots *s = userdata;
	struct manager *m = s->owner;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	mo_assert(s->pid > 0 && s->child == source);
	s->pid = 0;
	s->child = sd_event_source_disable_unref(s->child);
	if (m->fatal)
		return 0;
	if (si->si_code != CLD_EXITED || si->si_status != 0) {
		put_off(m, s->late                     ? LATE
			   : si->si_code != CLD_EXITED ? "its process was killed"
			   : si->si_status == ENOSPC   ? "not enough space on the disk of state_dir"
						       : strerror(si->si_status));
		return 0;
	}
	int r = store_adopt_snapshot(m->store, s->seq, &s->bytes, &err);
	if (r == -ENOSPC || r == STORE_NO_SNAPSHOT) {
		put_off(m, mo_error_text(&err, r));
	} else if (r < 0) {
		fatal_stop(m, mo_error_text(&err, r));
	} else {
		m->n_snapshots++;
		s->reported = false;
	}
	return 0;
}

static void go_first(void)
{
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY, 0);

	if (fd >= 0)
		(void)mo_write_all(fd, OOM_FIRST, strlen(OOM_FIRST));
}

/* Never returns; the status is an errno. */
static void write_down(const struct manager *m, pid_t parent, int64_t seq)
{
	struct mo_buf text = { 0 };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(ESRCH);
	/* the lock and all connections end with the parent, not with this */
	syscall(SYS_close_range, 3U, ~0U, 0U);
	const struct sched_param none = { 0 };
	/* a controller with real-time priority would wait for it */
	(void)sched_setscheduler(0, SCHED_BATCH, &none);
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	go_first();
	journal_snapshot_text(m->journal, manager_state(m), &text);
	if (text.len > WIRE_BYTES_MAX)
		_exit(EFBIG); /* nobody could read it */
	_exit(-store_write_snapshot(m->store, seq, text.data, text.len));
}

/* As many bytes of records as the last snapshot had must have come: what a record costs then
 * does not grow with the state. */
void snapshots_look(struct manager *m, int64_t now)
{
	struct snapshots *s = m->snapshots;
	pid_t parent = getpid();

	mo_assert(s->owner == m && s->bytes_since >= 0);
	if (s->pid && !s->late && now - s->began > LIMIT_US) {
		s->late = true;
		kill(s->pid, SIGKILL);
		tell(m, LATE);
	}
	if (s->pid || store_records_since_snapshot(m->store) < RECORDS_MIN ||
	    s->bytes_since < s->bytes || now < s->not_before)
		return;
	s->seq = store_seq(m->store);
	s->began = now;
	s->late = false;
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
