/* `moectl local`: moed and agents on this machine, everything below one directory.
 *   DIR/local.yaml                    shape of the cluster, written once (the port too, so that
 *                                     it stays)
 *   DIR/moed.yaml, nodes/NAME.yaml    configuration of the daemons, brought up to date by every
 *                                     `up`
 *   DIR/moed.sock, moed/              controller: socket, state
 *   DIR/state/NAME, run/NAME          agent: state (logs of ranks), runtime (step directories)
 *   DIR/pid/NAME, log/NAME.log        per daemon: "pid start-time boot-id"; its output
 *   DIR/tokens                        admin.token, agent.token (0600), made by moed
 *   DIR/lock                          held while `up` or `down` works
 * A daemon is the process whose pid, start time and boot id its pid file names, or else the
 * holder of its state lock; never a name. Daemons carry MOE_LOCAL=DIR in their environment, and
 * so do the step supervisors they start; ranks carry MOE_STEP. */
#pragma once
#include <stdint.h>
#include "lib/base/error.h"
#include "lib/base/util.h"

#define LOCAL_NODES_MAX 64

struct local {
	char *dir; /* absolute, resolved */
	/* kept in local.yaml */
	int64_t nodes, gpus_per_node, port; /* port 0 = not known yet */
	char *topology;                     /* XML file or fake root, NULL = this machine */
	/* of this machine or the topology, when the cluster was made; 0 = fake slots */
	int64_t found_gpus;
};
void local_defaults(struct local *l);
void local_done(struct local *l);
/* Reads DIR/local.yaml. 0, -ENOENT: no cluster there; other errors with err. l->dir must be set. */
int local_load(struct local *l, struct mo_error *err);
int local_save(const struct local *l, struct mo_error *err);
/* Writes a file of the cluster that only its owner reads, when its content differs: a full disk
 * does not keep a cluster that is there from coming up. */
int local_write(const char *path, const char *text, size_t n, struct mo_error *err);
char *local_node(const struct local *l, int64_t i); /* "node-0"; caller frees */
char *local_path(const struct local *l, const char *fmt, ...) _printf_(2, 3);
char *local_url(const struct local *l); /* unix:DIR/moed.sock */
/* from the file moed/address; NULL = not known */
char *local_tcp_url(const struct local *l);
/* without --dir; NULL = no home is known. Caller frees. */
char *local_default_dir(void);
