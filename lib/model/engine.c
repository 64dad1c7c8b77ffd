/* Descriptions and names of an engine file as a value. */
#include "lib/model/engine.h"

const char *const line_kind_names[_LINE_KIND_N] = { "sample", "phase", "saved", "saving", "resumed", "ended" };
const char *const metrics_rank_names[3] = { "first", "last", "any" };

static const struct mo_field line_rule_fields[] = {
	MO_F_ENUM(line_rule, kind, line_kind_names),
	MO_F(line_rule, pattern, MO_STR),
	MO_F(line_rule, phase, MO_STR),
	MO_F(line_rule, missing_loss_is_nan, MO_BOOL),
};
const struct mo_desc line_rule_desc = MO_DESC(line_rule, line_rule_fields);

static const struct mo_field ckpt_layout_fields[] = {
	MO_F(ckpt_layout, entry, MO_STR),
	MO_F(ckpt_layout, subdir, MO_STR),
	MO_F(ckpt_layout, tracker, MO_STR),
	MO_F_LIST(ckpt_layout, markers, MO_STRS),
	MO_F(ckpt_layout, shard, MO_STR),
	MO_F(ckpt_layout, marker_last, MO_BOOL),
	MO_F(ckpt_layout, announced_is_complete, MO_BOOL),
};
const struct mo_desc ckpt_layout_desc = MO_DESC(ckpt_layout, ckpt_layout_fields);

static const struct mo_field engine_fields[] = {
	MO_F(engine, kind, MO_STR),
	MO_F(engine, title, MO_STR),
	MO_F(engine, source, MO_STR),
	MO_F(engine, python, MO_STR),
	MO_F(engine, entry, MO_STR),
	MO_F_LIST(engine, argv, MO_STRS),
	MO_F_VEC(engine, flags, &kv_desc),
	MO_F_LIST(engine, resume, MO_STRS),
	MO_F_LIST(engine, fresh, MO_STRS),
	MO_F_VEC(engine, env, &kv_desc),
	MO_F_VEC(engine, env_reason, &kv_desc),
	MO_F_ENUM(engine, metrics_rank, metrics_rank_names),
	MO_F_VEC(engine, rules, &line_rule_desc),
	MO_F_SUB(engine, layout, MO_STRUCT, &ckpt_layout_desc),
	MO_F(engine, has_layout, MO_BOOL),
	MO_F(engine, needs_steps, MO_BOOL),
	MO_F_VEC(engine, exit_codes, &kv_desc),
	MO_F(engine, stop_signal, MO_INT),
};
const struct mo_desc engine_desc = MO_DESC(engine, engine_fields);
