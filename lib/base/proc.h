/* Other processes as /proc shows them. Not for pure rooms. Every answer may be out of date when
 * it is used: kill through a pidfd, or compare the start time. */
#pragma once
#include <sched.h>
#include <sys/types.h>
#include <sys/wait.h>
#include "lib/base/util.h"

struct mo_proc {
	pid_t pid, ppid;
	char state;
	bool ending;        /* it runs no code of its own any more */
	int64_t start_time; /* field 22 of /proc/PID/stat */
	int64_t cpu_us;     /* that it used, with its children that ended */
};
pid_t mo_proc_self(void);
int mo_proc_read(pid_t pid, struct mo_proc *ret); /* -ESRCH when gone */
/* What all threads that it has now used of processors since they began, and how long they could
 * have run and had none. -ESRCH: none of them is left, or the kernel does not count that. */
int mo_proc_sched(pid_t pid, int64_t *ret_cpu_us, int64_t *ret_delay_us);
/* Whether the process was started with this "NAME=value" in its environment; false when it may
 * not be read. */
bool mo_proc_has_env(pid_t pid, const char *assignment);
bool mo_proc_sigkill_pending(pid_t pid);
/* Value of a line "Key:\tvalue" of /proc/PID/status, NULL if none; caller frees. */
char *mo_proc_status(pid_t pid, const char *key);
/* A pidfd: it stays this process when the number is given to another. -ESRCH. */
int mo_proc_open(pid_t pid);
/* waitid(2) for children of this process: 0, or a negative errno, which errno has too. */
int mo_proc_wait(idtype_t type, int64_t id, siginfo_t *ret, int options);
/* When memory is short, this process is the first to go: it inherits the protection of the daemon
 * that started it. */
void mo_proc_go_first(void);
/* A limit of this process (RLIMIT_*), which it hands on, raised to `wanted`, -1: to no limit, or as
 * far as it may. 0: so it is; 1: it is *ret_now only (NULL allowed); or a negative errno. */
int mo_proc_raise_limit(int which, int64_t wanted, uint64_t *ret_now);
/* The cpus that a thread may run on. -ESRCH when it ended. */
int mo_proc_cpus(pid_t tid, cpu_set_t *ret, size_t size);
/* fn for every process, in no order; a non-zero return ends it and is returned. */
int mo_proc_each(int (*fn)(void *arg, pid_t pid), void *arg);
/* SIGKILL to pid if it still is the process that started at start_time. 1 = sent, 0 = already
 * gone. */
int mo_proc_kill(pid_t pid, int64_t start_time);
/* Whom passes look for: every process (but the caller) whose environment holds `assignment`, or
 * that is in the mount namespace `mnt` (0: none) if the file `marker` in it reads `text`: numbers
 * are given away again. What they point to is the caller's; `seen` is freed by mo_hunt_done(). */
struct mo_hunt {
	const char *assignment, *marker, *text;
	uint64_t mnt;
	struct mo_proc *seen; /* found and not dead yet */
	size_t n_seen;
	bool begun;
};
/* One pass: SIGKILL to those that are found. Returns how many are not dead (zombies) yet, of all
 * that were found since the first pass. A process that is ending loses its environment first, then
 * its namespace, and closes its devices last: those that were ending when the hunt began, or while
 * it found any, may be what is hunted, and are waited for. */
size_t mo_hunt_pass(struct mo_hunt *h);
void mo_hunt_done(struct mo_hunt *h);
/* How the process of pidfd, which is dead, ended: a status as of waitpid(), whosever child it was.
 * -ENODATA: nobody can say any more (reaped by another, and the kernel older than 6.15). */
int mo_proc_exit_status(int pidfd, pid_t pid, int *ret_status);
