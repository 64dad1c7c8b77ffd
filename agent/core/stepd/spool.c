/* See spool.h. */
#include "agent/core/stepd/spool.h"

static const struct mo_field spool_fields[] = {
	MO_F(spool, step_id, MO_STR),
	MO_F(spool, boot_id, MO_STR),
	MO_F(spool, node, MO_STR),
	MO_F(spool, epoch, MO_INT),
	MO_F_SUB(spool, launch, MO_STRUCT, &launch_desc),
	MO_F_VEC(spool, binds, &rank_bind_desc),
	MO_F_SUB(spool, info, MO_STRUCT, &nodeinfo_desc),
	MO_F(spool, bind_error, MO_STR),
	MO_F(spool, log_dir, MO_STR),
	MO_F(spool, cgroup, MO_STR),
	MO_F(spool, tmpdir, MO_STR),
	MO_F(spool, allow_root, MO_BOOL),
	MO_F(spool, min_uid, MO_INT, .omit = true),
	MO_F(spool, log_bytes, MO_INT),
	MO_F(spool, nofile, MO_INT),
	MO_F(spool, memlock_bytes, MO_INT),
	MO_F(spool, core_bytes, MO_INT),
};
const struct mo_desc spool_desc = MO_DESC(spool, spool_fields);

static const struct mo_field stepd_order_fields[] = {
	MO_F(stepd_order, cmd, MO_STR, .max = 16),
	MO_F(stepd_order, signal, MO_INT, .omit = true),
	MO_F(stepd_order, grace_us, MO_INT, .omit = true),
};
const struct mo_desc stepd_order_desc = MO_DESC(stepd_order, stepd_order_fields);

static const struct mo_field stepd_word_fields[] = {
	MO_F(stepd_word, up, MO_INT, .omit = true),
	MO_F(stepd_word, written, MO_INT, .omit = true),
	MO_F(stepd_word, urgent, MO_BOOL, .omit = true),
	MO_F_VEC(stepd_word, progress, &rank_progress_desc, .omit = true),
};
const struct mo_desc stepd_word_desc = MO_DESC(stepd_word, stepd_word_fields);
