/* Descriptions of the plan document; names are those of the interface. */
#include "lib/plan/plan.h"

static const struct mo_field model_fields[] = {
	MO_F(plan_model, total_params, MO_INT),
	MO_F(plan_model, active_params, MO_INT),
	MO_F(plan_model, flops_per_token, MO_REAL),
};
static const struct mo_desc model_desc = MO_DESC(plan_model, model_fields);

static const struct mo_field hardware_fields[] = {
	MO_F(plan_hardware, gpu, MO_STR),
	MO_F(plan_hardware, gpus, MO_INT),
};
static const struct mo_desc hardware_desc = MO_DESC(plan_hardware, hardware_fields);

static const struct mo_field parallelism_fields[] = {
	MO_F(plan_parallelism, tp, MO_INT),  MO_F(plan_parallelism, pp, MO_INT),
	MO_F(plan_parallelism, vpp, MO_INT), MO_F(plan_parallelism, ep, MO_INT),
	MO_F(plan_parallelism, etp, MO_INT), MO_F(plan_parallelism, cp, MO_INT),
	MO_F(plan_parallelism, dp, MO_INT),  MO_F(plan_parallelism, sharding, MO_STR),
};
static const struct mo_desc parallelism_desc = MO_DESC(plan_parallelism, parallelism_fields);

static const struct mo_field batch_fields[] = {
	MO_F(plan_batch, micro, MO_INT),
	MO_F(plan_batch, global, MO_INT),
	MO_F(plan_batch, seq, MO_INT),
};
static const struct mo_desc batch_desc = MO_DESC(plan_batch, batch_fields);

static const struct mo_field memory_fields[] = {
	MO_F(plan_memory, total, MO_REAL),       MO_F(plan_memory, params, MO_REAL),
	MO_F(plan_memory, grads, MO_REAL),       MO_F(plan_memory, optimizer, MO_REAL),
	MO_F(plan_memory, activations, MO_REAL), MO_F(plan_memory, comm, MO_REAL),
	MO_F(plan_memory, reserve, MO_REAL),     MO_F(plan_memory, capacity, MO_REAL),
};
static const struct mo_desc memory_desc = MO_DESC(plan_memory, memory_fields);

static const struct mo_field stage_fields[] = {
	MO_F(plan_stage, stage, MO_INT),      MO_F(plan_stage, layers, MO_INT),
	MO_F(plan_stage, parameters, MO_INT), MO_F(plan_stage, total, MO_REAL),
	MO_F(plan_stage, params, MO_REAL),    MO_F(plan_stage, grads, MO_REAL),
	MO_F(plan_stage, optimizer, MO_REAL), MO_F(plan_stage, activations, MO_REAL),
	MO_F(plan_stage, comm, MO_REAL),      MO_F(plan_stage, reserve, MO_REAL),
};
const struct mo_desc plan_stage_desc = MO_DESC(plan_stage, stage_fields);

static const struct mo_field time_fields[] = {
	MO_F(plan_time, total, MO_REAL),  MO_F(plan_time, compute, MO_REAL),
	MO_F(plan_time, a2a, MO_REAL),    MO_F(plan_time, pp, MO_REAL),
	MO_F(plan_time, dp, MO_REAL),     MO_F(plan_time, cp, MO_REAL),
	MO_F(plan_time, tp, MO_REAL),     MO_F(plan_time, optimizer, MO_REAL),
	MO_F(plan_time, launch, MO_REAL),
};
static const struct mo_desc time_desc = MO_DESC(plan_time, time_fields);

static const struct mo_field plan_fields[] = {
	MO_F_SUB(plan, parallelism, MO_STRUCT, &parallelism_desc),
	MO_F_SUB(plan, batch, MO_STRUCT, &batch_desc),
	MO_F(plan, recompute, MO_STR),
	MO_F(plan, schedule, MO_STR),
	MO_F_SUB(plan, memory_gb, MO_STRUCT, &memory_desc),
	MO_F_VEC(plan, memory_stages, &plan_stage_desc),
	MO_F(plan, fits, MO_BOOL),
	MO_F(plan, bubble, MO_REAL),
	MO_F_SUB(plan, step_time_s, MO_STRUCT, &time_desc),
	MO_F(plan, tokens_per_s_per_gpu, MO_REAL),
	MO_F(plan, tflops_per_gpu, MO_REAL),
	MO_F(plan, mfu, MO_REAL),
	MO_F(plan, error_pct, MO_REAL),
	MO_F_LIST(plan, notes, MO_STRS),
};
const struct mo_desc plan_desc = MO_DESC(plan, plan_fields);

static const struct mo_field scale_fields[] = {
	MO_F(plan_scale, gpus, MO_INT),
	MO_F(plan_scale, efficiency, MO_REAL),
	MO_F(plan_scale, step_time_s, MO_REAL),
	MO_F(plan_scale, mfu, MO_REAL),
	MO_F(plan_scale, days, MO_REAL, .omit = true),
	MO_F(plan_scale, note, MO_STR, .omit = true),
};
static const struct mo_desc scale_desc = MO_DESC(plan_scale, scale_fields);

static const struct mo_field restart_fields[] = {
	MO_F(plan_restart, restart_s, MO_REAL),
	MO_F(plan_restart, ettr, MO_REAL),
	MO_F(plan_restart, gpu_hours_per_day, MO_REAL),
};
static const struct mo_desc restart_desc = MO_DESC(plan_restart, restart_fields);

static const struct mo_field reliability_fields[] = {
	MO_F(plan_reliability, failures_per_day, MO_REAL),
	MO_F(plan_reliability, checkpoint_every_s, MO_REAL),
	MO_F(plan_reliability, ettr, MO_REAL),
	MO_F(plan_reliability, young_s, MO_REAL),
	MO_F(plan_reliability, spare_nodes, MO_INT),
	MO_F(plan_reliability, spare_target, MO_REAL),
	MO_F(plan_reliability, ettr_fast_restart, MO_REAL),
	MO_F_VEC(plan_reliability, restarts, &restart_desc),
	MO_F_LIST(plan_reliability, notes, MO_STRS),
};
const struct mo_desc plan_reliability_desc = MO_DESC(plan_reliability, reliability_fields);

static const struct mo_field doc_fields[] = {
	MO_F_SUB(plan_doc, model, MO_STRUCT, &model_desc),
	MO_F_SUB(plan_doc, hardware, MO_STRUCT, &hardware_desc),
	MO_F_VEC(plan_doc, plans, &plan_desc),
	MO_F_VEC(plan_doc, scaling, &scale_desc),
	MO_F_SUB(plan_doc, reliability, MO_STRUCT, &plan_reliability_desc),
};
const struct mo_desc plan_doc_desc = MO_DESC(plan_doc, doc_fields);
