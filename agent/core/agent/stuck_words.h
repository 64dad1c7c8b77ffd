/* What /proc says of a helper that hangs: which file it waits for, and what it was started for.
 * Pure: the texts are read by agent/stuck.c. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A system call that names a file by its first argument, a descriptor (fd < 0: the working
 * directory), or by a text in the process' memory beside it. */
struct stuck_call {
	bool has_path;
	int fd;
	uint64_t path_address; /* has_path */
};
/* The number of such a call on this machine, and of which kind it is. */
struct stuck_number {
	long number;
	bool has_path;
};
/* /proc/PID/syscall ("257 0xffffff9c 0x7ffd... ..."). False: it waits for no file. */
bool stuck_call_read(const char *line, const struct stuck_number *calls, size_t n_calls,
		     struct stuck_call *ret);

/* moe-discover --at FILE [--root DIR], moe-probe [--root DIR] AREA [OBJECT]. All of them point into
 * the line that was read; NULL: not said. */
struct helper_words {
	const char *at, *root, *area, *object;
};
/* /proc/PID/cmdline: n bytes, the last of them 0. */
void helper_words_read(const char *line, size_t n, struct helper_words *ret);
/* Whether a process that SIGKILL did not end is a helper that an agent before this one left: by its
 * name, its parent's, and what it was started for. One that a person started by hand is none.
 * root: of the machine that is probed here, NULL this one. */
bool helper_is_orphan(const char *name, const char *parent, const struct helper_words *w,
		      const char *root);
