/* See entry.h. */
#include "agent/stepd/entry.h"

#include <errno.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/wire/decode.h"

#define LAUNCH_BYTES_MAX (64 * 1024 * 1024)

static int load(struct stepd *s, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = mo_read_file_at(s->dir_fd, "launch.json", LAUNCH_BYTES_MAX, &b);
	if (r < 0)
		return mo_error_set(err, r, "%s/launch.json: %s", s->dir, strerror(-r));
	_cleanup_(mo_error_done) struct mo_error e = { 0 };
	r = wire_decode(&spool_desc, b.data ? b.data : "", b.len, false, &s->spool, &e);
	if (r < 0)
		return mo_error_set(err, r, "%s/launch.json: %s", s->dir, mo_error_text(&e, r));
	const struct launch *l = &s->spool.launch;
	if (!s->spool.step_id || !s->spool.node || !s->spool.log_dir || l->n_argv == 0 ||
	    l->n_local < 1 || l->n_local > MO_GPUS_PER_NODE_MAX || s->spool.log_bytes <= 0)
		return mo_error_set(err, -EINVAL,
				    "%s/launch.json: a field that every step needs is missing",
				    s->dir);
	return 0;
}

/* Before anything is forked: where the spool entry is lost, an agent finds by it what is of the
 * step; the marker of its namespace is a mount of this file. */
static int write_id(struct stepd *s, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "step_id");
	_cleanup_(mo_freep) char *id = mo_printf("%s\n", s->spool.step_id);
	int r = mo_write_file(path, id, strlen(id), 0444, false);

	return r < 0 ? mo_error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int entry_load(struct stepd *s, struct mo_error *err)
{
	int r = load(s, err);

	return r < 0 ? r : write_id(s, err);
}
