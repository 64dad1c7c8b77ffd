/* The directory of a local cluster and its shape, without its processes (local_cluster.h). */
#include "cli/local_cluster.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/base/options.h"
#include "lib/model/limits.h"

static const struct mo_option shape_options[] = {
	{ "nodes", MO_OPTION_INT, offsetof(struct local, nodes), "2", "Agents.", 1,
	  LOCAL_NODES_MAX },
	{ "gpus_per_node", MO_OPTION_INT, offsetof(struct local, gpus_per_node), "2",
	  "GPU slots of each.", 1, MO_GPUS_PER_NODE_MAX },
	{ "port", MO_OPTION_INT, offsetof(struct local, port), "0",
	  "TCP port of the controller; 0 until it was bound.", 0, 65535 },
	{ "topology", MO_OPTION_STR, offsetof(struct local, topology), NULL,
	  "hwloc XML or a fake root instead of this machine." },
	{ "found_gpus", MO_OPTION_INT, offsetof(struct local, found_gpus), "0",
	  "GPUs found here (or in the topology) when the cluster was made and used; 0 = fake "
	  "slots.",
	  0, 1024 },
};
static const struct mo_options shape = { shape_options, ELEMENTSOF(shape_options) };

void local_defaults(struct local *l)
{
	mo_options_init(&shape, l);
}

void local_done(struct local *l)
{
	mo_options_done(&shape, l);
	free(l->dir);
	l->dir = NULL;
}

char *local_path(const struct local *l, const char *fmt, ...)
{
	char *name = NULL;
	va_list ap;
	va_start(ap, fmt);
	name = mo_vprintf(fmt, ap);
	va_end(ap);
	char *path = mo_printf("%s/%s", l->dir, name);
	free(name);
	return path;
}

int local_load(struct local *l, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = local_path(l, "local.yaml");
	if (access(path, F_OK) < 0)
		return -errno == -ENOTDIR ? -ENOENT : -errno;
	return mo_options_file(&shape, l, path, err);
}

int local_write(const char *path, const char *text, size_t n, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf now = { 0 };
	if (mo_read_file(path, n, &now) == 0 && now.len == n &&
	    !memcmp(now.data ? now.data : "", text, n))
		return 0;
	int r = mo_write_file(path, text, n, 0600, true);
	return r < 0 ? mo_error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int local_save(const struct local *l, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = local_path(l, "local.yaml");
	_cleanup_(mo_freep) char *text =
		mo_printf("# Written by `moectl local up`; the shape of this cluster.\nnodes: "
			  "%lld\ngpus_per_node: %lld\nport: %lld\nfound_gpus: %lld\n%s%s%s",
			  (long long)l->nodes, (long long)l->gpus_per_node, (long long)l->port,
			  (long long)l->found_gpus, l->topology ? "topology: " : "",
			  l->topology ? l->topology : "", l->topology ? "\n" : "");
	return local_write(path, text, strlen(text), err);
}

char *local_node(const struct local *l, int64_t i)
{
	(void)l;
	return mo_printf("node-%lld", (long long)i);
}

char *local_url(const struct local *l)
{
	return mo_printf("unix:%s/moed.sock", l->dir);
}

char *local_tcp_url(const struct local *l)
{
	_cleanup_(mo_freep) char *path = local_path(l, "moed/address");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	if (mo_read_file(path, 4096, &b) < 0 || !b.data)
		return NULL;
	b.data[strcspn(b.data, " \r\n")] = 0;
	return mo_starts_with(b.data, "http") ? mo_strdup(b.data) : mo_printf("http://%s", b.data);
}

char *local_default_dir(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (state && *state)
		return mo_printf("%s/moe/local", state);
	return home && *home ? mo_printf("%s/.local/state/moe/local", home) : NULL;
}
