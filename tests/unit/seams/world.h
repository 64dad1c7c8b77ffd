/* A world of its own for a shell: linked in place of the seams of docs/decisions/010-seams.md. Time
 * is virtual, the disk, sockets and processes are memory. One world per program; it outlives the
 * process that is under test, which may end, crash, and start again in it.
 *
 * A crash: from some change of the world on, nothing that the process does reaches it any more
 * (seam_crash_after()). The process itself finds out by errors, and is ended by the test. */
#pragma once
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"

#define S 1000000LL
/* time.c */
int64_t seam_now(void);             /* CLOCK_BOOTTIME, us */
void seam_run(int64_t us);          /* time passes: turns and timers as they are due */
bool seam_ended(void);              /* the loop was told to end */
void seam_new_process(void);        /* timers and turns of the one before are gone */
void seam_time_at(int64_t boot_us); /* not back */
void seam_wall_ahead(int64_t us);   /* the wall clock is set: so far from the right time */
extern bool (*seam_ready)(void);    /* deals with one descriptor that is ready; false: none is */

/* disk.c: files, directories, streams. What is put there was there before. */
void seam_put(const char *path, const char *text);
void seam_append(const char *path, const char *text);
const char *seam_text(const char *path); /* NULL: there is no such file */
bool seam_exists(const char *path);
void seam_remove(const char *path); /* and all below */
size_t seam_syncs(void);            /* how often something was synced */
extern void (*seam_on_stat)(void);  /* an open file was measured: what others do then */
size_t seam_open_files(void);       /* of the process and of the test */
/* From the n-th change from now on, everything that changes the disk fails; of a first write half
 * is there. 0: it works again. */
void seam_fail_after(size_t n, int error);
void seam_crash_after(size_t n); /* with the n-th change the process is dead */
bool seam_dead(void);
void seam_alive(void); /* another process */
/* What may end a process, where there are several: seam_fail_after() and its like are of the one
 * that was named last, which does what follows; NULL: the first. */
struct seam_life {
	bool armed, crash, dead;
	size_t left;
	int error;
};
void seam_be(struct seam_life *process);
/* Whether what the process does to the world beside the disk happens: it counts as a change. */
bool seam_acts(void);
size_t seam_changes(void); /* so far */
/* What was not synced is gone, or, with a seed other than 0, some of it (files.h); so is /run. */
void seam_power_loss(uint64_t seed);
/* The same of the files below a directory, which are those of one machine of several. */
void seam_power_loss_of(const char *host, uint64_t seed);
/* From now on syncs of files and directories of such names do nothing; NULL: all do something. */
void seam_syncs_lie(const char *pattern);
/* One bit of a file below a directory is not as it was; where, caller frees; NULL: none is. */
char *seam_rot(const char *dir, uint64_t seed);
void seam_disk_done(void);
/* Somebody else holds this file's lock, or no more. */
void seam_lock(const char *path, bool held);

/* Streams. Descriptors are those of the process, unless it says otherwise. */
void seam_pair(int *ret_one, int *ret_other); /* both ways */
void seam_packets(int fd);                    /* what comes in stays in pieces as it was sent */
void seam_hold(int fd);                       /* one more holder, who closes it too */
bool seam_readable(int fd);                   /* something came, or its other end is closed */
int seam_peer(int fd);
/* of the test: */
bool seam_send(int fd, const char *text); /* false: nobody has the other end */
void seam_close(int fd);
char *seam_received(int fd); /* all that came to this end; caller frees */
int seam_listen(const char *path);
int seam_accept(int listener); /* -1: nobody is there */
int seam_connect(const char *path);
void seam_datagram(const char *path, const char *text);

/* vfs.c: from now on databases are files of this disk. */
void seam_vfs(void);

/* people.c: processes by number. status: as of waitpid(2), while it is dead and not yet taken */
struct seam_process {
	int pid, ppid, status;
	bool dead, taken;
	char *env;             /* one assignment of its environment */
	int signalled;         /* the last signal but SIGKILL */
	int fds[4];            /* streams that it holds, -1 none: closed with its end */
	int pidfd, pidfd_kept; /* and the other end, which closes with its end; -1 none */
};
struct seam_process *seam_process_new(int ppid, const char *env);
struct seam_process *seam_process(int pid); /* NULL: none */
void seam_process_ends(int pid, int status);
size_t seam_processes(void); /* living */
struct mo_hunt;
/* Others are hunted: those of a test; how many it found. */
extern size_t (*seam_on_hunt)(const struct mo_hunt *h);
int seam_killed(void); /* how many got SIGKILL */
void seam_people_done(void);
