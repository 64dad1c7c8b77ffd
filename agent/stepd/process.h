/* Every process that this one starts: the main process of a rank, or that of engine.prepare,
 * forked into the ranks' cgroup, watched, signalled; and those that read what lies on users' file
 * systems in its place. What their ends mean is the caller's to say. */
#pragma once
#include "agent/stepd/stepd.h"

struct child_plan;

/* 0, or a negative errno. on_report: its exec failed or succeeded; on_death: it can be reaped. */
int process_fork(struct stepd *s, struct rank *r, struct child_plan *p, source_fn on_report,
		 source_fn on_death);
/* What loses its parent below this process becomes its child. 0, or a negative errno. */
int process_adopts_orphans(void);
void process_raise_limits(struct stepd *s); /* this process' own, which it hands on */
void process_signal_ranks(struct stepd *s, int signal);

/* ---- others, whose end comes with everything that is reaped */
#define PROCESS_FIRST_FD 3
#define PROCESS_FDS_MAX (MO_GPUS_PER_NODE_MAX + 1)
struct process_work {
	const struct mo_identity *who; /* it is, before it runs */
	/* all that it has besides 0, 1 and 2: from PROCESS_FIRST_FD on, in this order */
	const int *fds;
	size_t n_fds;
	bool apart;  /* a session of its own, and every signal reaches it */
	int mnt_fd;  /* a mount namespace that it enters; 0: it stays */
	int user_fd; /* and the user namespace of that one; 0: this process' own */
	void (*run)(void *arg);
	void *arg;
};
/* Forks one that runs this and ends; it ends with this process. Its pid, or a negative errno. */
pid_t process_as(const struct process_work *w);
/* Forks one that becomes the program of the plan. Its pid, or a negative errno. */
pid_t process_exec(const struct child_plan *p);
/* A program beside this one that outlives no step: it is `who`, in a session of its own, with
 * in_fd as its standard input, third_fd as descriptor 3, no output and nothing else of ours. */
struct process_program {
	const struct mo_identity *who;
	const char *path;
	char *const *argv;
	int in_fd, third_fd;
};
pid_t process_program(const struct process_program *p); /* its pid, or a negative errno */
void process_kill(pid_t pid); /* its end was not taken yet: the number is still its own */
/* What is open as fd in a process of ours, with its locks; a negative errno. */
int process_take_fd(pid_t pid, int fd);
/* A FIFO of that name, made and open for this process alone: who reads it has its end of file when
 * this process ends. The descriptor, or a negative errno. */
int process_fifo(const char *path);
/* The reading end never waits. bytes: it shall hold so many, 0: as the kernel has it; where the
 * user may not have so many, fewer. 0, or a negative errno, and there is none. */
int process_pipe(int bytes, int *ret_read, int *ret_write);
/* The text as a file to read from its beginning. A negative errno. */
int process_input(const char *text);
