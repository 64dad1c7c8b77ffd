/* `moectl local`: moed and agents on this machine, everything below one directory.
 *   DIR/local.yaml                    shape of the cluster, written once (the port too, so that it stays)
 *   DIR/moed.yaml, nodes/NAME.yaml    configuration of the daemons, brought up to date by every `up`
 *   DIR/moed.sock, moed/              controller: socket, state
 *   DIR/state/NAME, run/NAME          agent: state (logs of ranks), runtime (step directories)
 *   DIR/pid/NAME, log/NAME.log        per daemon: "pid start-time boot-id"; its output
 *   DIR/tokens                        admin.token, agent.token (0600), made by moed
 *   DIR/lock                          held while `up` or `down` works
 * A daemon is the process whose pid, start time and boot id its pid file names, or else the holder of its state lock; never a name. Daemons carry MOE_LOCAL=DIR in their environment,
 * and so do the step supervisors they start; ranks carry MOE_STEP. */
#pragma once
#include <sys/types.h>
#include "cli/client.h"
#include "lib/base/fd.h"
#include "lib/base/proc.h"
#include "lib/model/nodeinfo.h"

#define LOCAL_NODES_MAX 64

struct local {
	char *dir;                       /* absolute, resolved */
	/* kept in local.yaml */
	int64_t nodes, gpus_per_node, port;   /* port 0 = not known yet */
	char *topology;                  /* XML file or fake root, NULL = this machine */
	int64_t found_gpus;               /* of this machine or the topology, when the cluster was made; 0 = fake slots */
};
void local_done(struct local *l);
/* Reads DIR/local.yaml. 0, -ENOENT: no cluster there; other errors with err. l->dir must be set. */
int local_load(struct local *l, struct mo_error *err);
int local_save(const struct local *l, struct mo_error *err);
/* Writes a file of the cluster that only its owner reads, when its content differs: a full disk does not keep a cluster that is there from coming up. */
int local_write(const char *path, const char *text, size_t n, struct mo_error *err);
char *local_node(const struct local *l, int64_t i);               /* "node-0"; caller frees */
char *local_path(const struct local *l, const char *fmt, ...) _printf_(2, 3);
char *local_url(const struct local *l);                           /* unix:DIR/moed.sock */
char *local_tcp_url(const struct local *l);                       /* from the file moed/address; NULL = not known */
struct json_object *local_status(const struct local *l);          /* the document of `local status --json`; caller puts */

/* Processes (local_proc.c). name: "moed" or a node's name. */
pid_t local_pid(const struct local *l, const char *name);         /* living daemon, 0 = none */
/* Makes the controller's state, once; blocks. */
int local_init(const struct local *l, const char *config, struct mo_error *err);
int local_start(const struct local *l, const char *name, const char *program, const char *config, pid_t *ret, struct mo_error *err);
bool local_ended(pid_t pid);                                      /* also reaps our own child */
/* SIGTERM, wait_ms later SIGKILL; true when the process is gone. *ret_signal: which other signal ended it, 0 none; may be NULL. */
bool local_stop(const struct local *l, const char *name, int64_t wait_ms, int *ret_signal);
char *local_log_tail(const struct local *l, const char *name);    /* last line that says why, "" none; caller frees */

struct local_step { int64_t job, attempt; char *node, *dir, *step_id; pid_t pid; int64_t pid_start; /* of the supervisor */ int fd; /* connection to it, -1 */ };
struct local_steps { struct local_step *items; size_t n; };
void local_steps_done(struct local_steps *s);
/* All step directories; pid of the living supervisor, 0 = dead. */
void local_steps(const struct local *l, struct local_steps *ret);
/* Kills every step's supervisor and ranks; returns how many processes of this cluster (daemons aside) are left after wait_ms. */
size_t local_kill_steps(const struct local *l, int64_t wait_ms);

/* local_look.c: what this machine, or the cluster's topology, has; ret initialised. is_root: the topology is a directory. */
int local_look(const struct local *l, bool is_root, bool count_gpus, struct nodeinfo *ret, struct mo_error *err);
/* local_logout.c: why a logout would end a cluster that is started now; NULL = it goes on. cgroup: text of /proc/self/cgroup; kills: logind ends the user's sessions. */
const char *local_logout_note(void);
const char *logout_note(const char *cgroup, bool lingers, bool kills);
int local_up(struct cli *cli, struct local *l, bool port_given);  /* local_up.c: exit status */
int local_down(struct cli *cli, struct local *l);                 /* local_proc.c: exit status */
