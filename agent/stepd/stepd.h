/* moe-stepd: the supervisor of one job attempt on one node (docs/architecture.md,
 * docs/protocol.md). Single-threaded: one epoll set, one turn per wake-up: sources queue
 * struct stepd_event -> stepd_core_decide() -> effects -> notes of the turn in one write -> agents
 * notified. It owns its ranks: parent, subreaper, pipes, logs, pidfds, cgroup. Nothing in it waits
 * for the agent, and no rank ever waits for it longer than a pipe lasts. From below: wake (what
 * wakes it), sources (what a source may do) <- journal, output, threads, process <- tree, prepare
 * <- ranks, hook, config, exec <- link (agents) <- loop (decides) <- begin. What they share stands
 * here, what each does in its own header. */
#pragma once
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include "agent/core/stepd/hooks.h"
#include "agent/core/stepd/pace.h"
#include "agent/core/stepd/spool.h"
#include "agent/core/stepd/stepd_core.h"
#include "agent/core/text/split.h"
#include "agent/core/text/tail.h"
#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/base/identity.h"
#include "lib/model/limits.h"

#define WAIT_PIDFD ((idtype_t)3) /* P_PIDFD: glibc has the name since 2.36 */
#define STEPD_CONNECTIONS_MAX 8
/* unsent bytes of one connection; above it is dropped: the agent connects again */
#define STEPD_OUT_MAX (64 * 1024)
#define STEPD_IN_MAX 4096 /* longest command line of an agent */
/* notes kept in memory while the journal cannot be written */
#define STEPD_PENDING_MAX (16 * 1024 * 1024)
#define STEPD_SEGMENT_BYTES (1024 * 1024)
#define STEPD_EXECS_KEPT 16 /* commands beside the ranks that are remembered */

struct stepd;
struct source;
struct wake_calls;
struct lines;
typedef void (*source_fn)(struct stepd *s, struct source *source, uint32_t events);
/* One descriptor in the epoll set. Embedded in its owner, which outlives the turn. */
struct source {
	int fd;
	bool watched;
	source_fn fn;
	void *owner;
};

/* One stream (stdout or stderr) of a rank. */
struct stream {
	struct source source;
	struct rank *rank;
	struct split split;
	struct pace pace;
};

struct rank {
	int64_t rank; /* global */
	size_t local;
	pid_t pid; /* 0 = not forked, or reaped */
	int64_t start_time;
	struct source pidfd;
	struct source report; /* the child's CLOEXEC pipe */
	struct stream out, err;
	struct source notify;
	struct tail *tail; /* NULL: it has printed nothing */
	int log_fd;
	int64_t log_size, log_base; /* base: bytes before this file */
	int64_t log_timed_us;       /* wall clock of the newest entry beside the log; 0: none */
	int64_t log_dropped, values_refused;
	int log_error;
	bool started, failed, exited; /* failed: it never reached exec */
	/* as read back after exec; what the last check of its threads added */
	int8_t bind_verified;
	char *bind_note, *threads_note;
	/* when its threads are checked, 0 not; checked since its first iteration */
	int64_t check_at_us;
	bool iterated;
};

struct connection {
	struct source source;
	struct mo_buf in, out;
	bool dead;
};

/* A command beside the ranks. */
struct taken {
	int64_t id; /* 0 = none */
	pid_t pid;  /* of the process that runs it; 0 = it ended */
};

/* last: highest note added; written: highest in the file */
struct journal {
	int fd;
	int64_t last, written, size;
	struct mo_buf pending;
	int64_t pending_first;
	int64_t dropped;
	int error;
	bool torn; /* the file ends with a piece that could not be cut off yet */
};

struct prepared;
struct stepd {
	char *dir;
	int dir_fd;
	int lock_fd;
	struct spool spool;
	struct mo_identity who;
	int64_t gpus; /* of the whole job: rates per GPU */
	struct stepd_core *core;
	struct lines *lines;
	struct rank *ranks;
	size_t n_ranks;
	struct prepared *prepared;       /* from the forks until ranks_settle() */
	struct prepared *prepared_ahead; /* made before files and configuration were read */
	struct maker *maker;             /* moe-namespace, NULL before it is started */
	struct box *box;                 /* what it is asked to make, NULL nothing */
	int mnt_fd;                      /* where ranks enter, -1: the host's namespace */
	int user_fd;                     /* the user namespace of that one, 0: the node's */
	int root_fd;                     /* O_PATH of its root where that is an image, else -1 */
	int image_fd;                    /* a lock on their image, -1: none */
	/* where a container of a runtime holds that image: its process, and what ends it with this
	 * process */
	struct source holder;
	int life_fd;
	struct files *files; /* the reader of their files, NULL before there is one */
	struct asked *asked; /* moe-config, NULL before it is asked */
	/* engine.prepare while it runs: no rank, but with the same pipes */
	struct rank hook;
	struct hooks hooks;
	/* monotonic; how long it took, MO_NONE: it did not run to an end */
	int64_t hook_began_us, hook_ms;
	/* of the engine, read before the forks; until the first rank has reported it */
	char *config;
	/* close with this process: the heartbeat reader, the keeper of copies end */
	int heartbeat_fd, keeper_fd;
	int epoll_fd;
	struct source signals, timer, listener;
	const struct wake_calls *wake;
	bool child_died; /* SIGCHLD in this turn */
	int port_fds[4], port_names[4];
	struct stepd_event *queue;
	size_t n_queue;
	struct journal journal;
	struct mo_buf log_out; /* scratch: whole lines of one read */
	struct connection *connections[STEPD_CONNECTIONS_MAX];
	size_t n_connections;
	bool note_due, urgent_due; /* notes were written this turn */
	struct rank_progress *progress_sent;
	int64_t progress_at_us;
	bool progress_due;
	/* directory of the ranks' cgroup, NULL none */
	char *cgroup;
	int cgroup_fd, cgroup_procs_fd;
	int64_t oom_kills;
	/* commands beside the ranks that were taken, the newest ones */
	struct taken execs[STEPD_EXECS_KEPT];
	size_t n_execs;
	bool killing, empty_reported;
	int64_t kill_since_us, kill_next_us, kill_step_us;
	int64_t tick_at_us; /* when the tick timer is due; INT64_MAX off */
	bool done;
};
