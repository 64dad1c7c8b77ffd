/* See spool.h. */
#include "agent/core/stepd/spool.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

static const struct mo_field spool_fields[] = {
	MO_D(spool, step_id, MO_STR, "name of the step, MOE_STEP of all its processes"),
	MO_D(spool, boot_id, MO_STR, "boot in which it was made; another one proves the step dead"),
	MO_D(spool, node, MO_STR, "name of the node"),
	MO_D(spool, epoch, MO_INT, "epoch of the controller that ordered it"),
	MO_D_SUB(spool, launch, MO_STRUCT, &launch_desc, "what is to be started"),
	MO_D_VEC(spool, binds, &rank_bind_desc, "binding of each local rank"),
	MO_D_SUB(spool, info, MO_STRUCT, &nodeinfo_desc, "the node as its agent knew it"),
	MO_D(spool, devices_root, MO_STR, "directory below which its device files lie; null: /",
	     .omit = true),
	MO_D(spool, bind_error, MO_STR, "why no binding could be planned; null: it could"),
	MO_D(spool, log_dir, MO_STR, "directory of the ranks' output"),
	MO_D(spool, cgroup, MO_STR,
	     "its own cgroup2 directory; unit: the one of stepd, null: none"),
	MO_D(spool, tmpdir, MO_STR, "TMPDIR of the ranks"),
	MO_D(spool, layer, MO_STR,
	     "directory for what they write in their image, outside of every mount; null: none",
	     .omit = true),
	MO_D(spool, images_dir, MO_STR, "directory of images by their digests", .omit = true),
	MO_D_LIST(spool, runtimes, MO_STRS, "container runtimes of whose stores images may be used",
		  .omit = true),
	MO_D(spool, squashfs, MO_BOOL, "users' files with a squashfs may be mounted", .omit = true),
	MO_D(spool, allow_root, MO_BOOL, "ranks may run as root"),
	MO_D(spool, own_namespace, MO_BOOL,
	     "ranks get a mount namespace of the step, where one can be made"),
	MO_D(spool, min_uid, MO_INT, "least uid of other accounts; null, 0: any", .omit = true),
	MO_D(spool, log_bytes, MO_INT, "size at which a rank's log is rotated, bytes"),
	MO_D(spool, nofile, MO_INT, "limit of open files; -1: unlimited, null: left as it is"),
	MO_D(spool, memlock_bytes, MO_INT,
	     "limit of locked memory, bytes; -1: unlimited, null: left as it is"),
	MO_D(spool, core_bytes, MO_INT,
	     "limit of core files, bytes; -1: unlimited, null: left as it is"),
	MO_D(spool, memory_bytes, MO_INT,
	     "memory of all ranks together, bytes; -1: unlimited, null: left as it is"),
	MO_D(spool, pids, MO_INT,
	     "processes and threads of all ranks together; -1: unlimited, null: left as it is"),
};
const struct mo_desc spool_desc = MO_DESC(spool, spool_fields);

bool spool_id_fits(const char *id, int64_t job, int64_t attempt, const char *node)
{
	_cleanup_(mo_freep) char *start =
		mo_printf("j%lld.a%lld.%s.", (long long)job, (long long)attempt, node);

	return mo_starts_with(id, start) && id[strlen(start)];
}

static const struct mo_field stepd_order_fields[] = {
	MO_D(stepd_order, cmd, MO_STR, "stop, kill, ping or exec", .max = 16),
	MO_D(stepd_order, signal, MO_INT, "number of the signal of a stop", .omit = true),
	MO_D(stepd_order, grace_us, MO_INT,
	     "time from that signal until ranks are killed, microseconds", .omit = true),
	MO_D(stepd_order, exec, MO_INT,
	     "exec: its id; what is to be run is exec.ID.ask in the step's directory",
	     .omit = true),
};
const struct mo_desc stepd_order_desc = MO_DESC(stepd_order, stepd_order_fields);

static const struct mo_field stepd_word_fields[] = {
	MO_D(stepd_word, up, MO_INT, "pid of stepd: on connect, and as the answer to ping",
	     .omit = true),
	MO_D(stepd_word, written, MO_INT, "number of the newest note in the journal", .omit = true),
	MO_D(stepd_word, urgent, MO_BOOL, "one of the new notes cannot wait", .omit = true),
	MO_D_VEC(stepd_word, progress, &rank_progress_desc, "where each rank is", .omit = true),
};
const struct mo_desc stepd_word_desc = MO_DESC(stepd_word, stepd_word_fields);
