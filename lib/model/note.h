/* The notes of a step: everything a step tells, in one numbered journal (file `notes` in the
 * step directory, one JSON object per line, n from 1 without gaps). stepd writes it (after a
 * stepd's proven death the agent, holding the step's lock, continues it); the agent forwards
 * notes above what moed acknowledged; moed keeps `through` per step and drops n <= through,
 * ignores gaps. So nothing is lost and nothing counts twice, whoever dies. */
#pragma once
#include "lib/base/desc.h"
#include "lib/model/sample.h"

enum note_kind {
	/* rank, pid, start_time, cpus, numa_node, bind_verified, bind_note: exec proved (CLOEXEC
	 * pipe) and read back */
	NOTE_STARTED,
	/* the step could not start: cause = port-busy | bind | exec | user | workdir | spool |
	 * namespace | stale | gpu-held; text says why; errno in code. No rank runs. */
	NOTE_REFUSED,
	NOTE_RUNNING,    /* all ranks of the step were started */
	NOTE_PHASE,      /* rank, phase */
	NOTE_SAMPLE,     /* rank, sample */
	NOTE_CHECKPOINT, /* iteration, path: announced complete (notify or a `saved` line) */
	NOTE_SAVING,     /* iteration: a save began */
	NOTE_RESUMED,    /* iteration the engine says it resumed from */
	/* rank, pid, code or signal, cause, mono_ns, tail[], iteration (its last, if known):
	 * exit status taken by the parent */
	NOTE_EXIT,
	NOTE_LOST, /* the supervisor died (lock taken by the agent): cause supervisor-lost */
	/* proof: no process of the step is left. text = how it is known. Always the last note. */
	NOTE_GONE,
	NOTE_UNKILLABLE, /* pid in D state with SIGKILL pending */
	/* rank, bind_verified, bind_note: what a later check of the threads of a running rank
	 * found */
	NOTE_BINDING,
	/* somebody who is not the controller began to stop the step (SIGTERM to its supervisor:
	 * systemctl stop, a shutdown): its ranks have their planned stop. text says who */
	NOTE_STOPPING,
	_NOTE_KIND_N
};
extern const char *const note_kind_names[_NOTE_KIND_N];

struct note {
	int64_t n;
	int kind;                /* enum note_kind */
	int64_t time;            /* us */
	int64_t mono_ns;         /* order of deaths */
	int64_t rank;            /* global rank, MO_NONE = whole step */
	int64_t pid, start_time; /* start_time: field 22 of /proc/PID/stat */
	char *cpus;
	int64_t numa_node;
	int8_t bind_verified;
	char *bind_note;
	int64_t code, signal; /* exit */
	/* exited signalled oom supervisor-lost stopped killed port-busy bind exec ... */
	char *cause;
	int phase;
	int64_t iteration;
	char *path, *text;
	char **tail;
	size_t n_tail; /* MO_TAIL_LINES at most */
	struct sample *sample;
	char *config; /* started (launch.config) */
	/* running, refused; only where the launch asks (times_prepare) */
	int64_t prepare_ms;
	int64_t left_out; /* sample: since the last one reported */
};
extern const struct mo_desc note_desc;
