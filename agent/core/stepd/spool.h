/* The spool entry of a step: file launch.json of its directory, written by the agent before
 * anything acts, read by stepd and by later agents. Everything stepd needs to start the ranks is
 * in it, so a stepd never asks anybody. Docs: docs/protocol.md. */
#pragma once
#include "agent/core/bind/bind.h"
#include "lib/model/launch.h"
#include "lib/model/message.h"

struct spool {
	/* j<job>.a<attempt>.<node>.<16 hex>: MOE_STEP of every process of the step */
	char *step_id;
	char *boot_id; /* boot it was made in; another one proves the step dead */
	char *node;
	int64_t epoch;
	struct launch launch;
	struct rank_bind *binds;
	size_t n_binds; /* one per local rank */
	struct nodeinfo info;
	/* directory below which the device files lie that `info` names; NULL = / */
	char *devices_root;
	char *log_dir; /* STATE/logs/j<job>/a<attempt> */
	/* own cgroup2 directory; "unit" = the one stepd's unit runs in; NULL = none */
	char *cgroup;
	char *tmpdir; /* TMPDIR of the ranks */
	/* directory for what they write in their image, outside of every mount; NULL = none */
	char *layer;
	/* where the image lies by its digest that the launch names; NULL = it names none */
	char *images_dir;
	/* container runtimes of whose stores images may be used (agent.yaml, runtimes) */
	char **runtimes;
	size_t n_runtimes;
	bool squashfs;      /* users' files with a squashfs may be mounted */
	bool allow_root;    /* ranks may run as root */
	bool own_namespace; /* ranks get a mount namespace of the step, where one can be made */
	/* least uid of other accounts; MO_NONE (an agent of an earlier version) and 0 = any */
	int64_t min_uid;
	int64_t log_bytes; /* a rank's log is rotated at this size, one old file is kept */
	/* why no binding could be planned: stepd then refuses the step with it; NULL = fine */
	char *bind_error;
	/* limits of the ranks: -1 = unlimited, MO_NONE = left as they are */
	int64_t nofile, memlock_bytes, core_bytes;
	/* limits of all of them together, in the step's control group: likewise */
	int64_t memory_bytes, pids;
};
extern const struct mo_desc spool_desc;
/* The id is of this step. */
bool spool_id_fits(const char *id, int64_t job, int64_t attempt, const char *node);

/* What goes over stepd's socket, one JSON object per line. */
/* agent -> stepd; cmd: stop (with signal and grace) | kill | ping | exec */
struct stepd_order {
	char *cmd;
	int64_t signal, grace_us;
	int64_t exec; /* id: exec.ID.ask lies in the step's directory */
};
struct stepd_word {      /* stepd -> agent */
	int64_t up;      /* stepd's pid: on connect and as the answer to ping */
	int64_t written; /* highest note in the journal */
	bool urgent;     /* one of the new notes is */
	struct rank_progress *progress;
	size_t n_progress;
};
extern const struct mo_desc stepd_order_desc, stepd_word_desc;
