/* Every constant of the planner that was fitted to measured runs or taken from a measurement, in
 * one place. Values and sources: constants.c. The fitted ones are found by
 * tests/bench/planner_fit.py, all rows of ../shared/data/planner/truth.json together; at most 24
 * (tests/unit/plan/test_truth.c counts them). Catalogue numbers are in config/gpus. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct plan_constants {
	/* kernels */
	/* share of the GPU's best measured GEMM that a large GEMM of a layer reaches; 16 and
	 * fewer bits */
	double gemm_use, fp8_use;
	/* more of that on GPUs without 8 bit units, which hold their clock under load */
	double sustained;
	/* of a wave of tiles, what is idle at the end of a GEMM */
	double tail;
	double kernel_s; /* start of one kernel on the GPU */
	/* share of the best GEMM that flash attention reaches, forward */
	double attention_use;
	double backward_attention; /* of that, backward */
	/* instead, with PyTorch's kernel, FlashAttention-2, on the GPUs it was written for */
	double portable_attention;
	double later_attention;  /* of that, on GPUs with 8 bit units */
	double triton_attention; /* of that, with a kernel in Triton */
	/* and of that, in the steps of PyTorch's ring over context parallel ranks */
	double ring_attention;
	/* share of memory bandwidth that element-wise kernels reach */
	double memory_use;
	/* times the routed tokens are read or written around the experts, one direction */
	double permute_passes;
	/* element-wise traffic of kernels that nobody fused, against fused ones */
	double eager_passes;
	/* bytes moved per element of an operand that is cast to 8 or 4 bits */
	double quantize_passes;
	/* host */
	/* time to launch one layer's kernels, forward and backward */
	double host_dense_s, host_moe_s;
	/* of both, where operands are cast to 8 or 4 bits */
	double host_narrow;
	/* more per local expert, where a grouped GEMM is one launch per expert */
	double host_expert_s;
	/* of that, with NUMA binding and kernel arguments in device memory */
	double host_bound;
	double host_sync_free; /* of the MoE part, per sync-free stage 1 */
	/* communication */
	/* share of the rated bandwidth that collectives reach */
	double scaleup_use, nic_use;
	double a2a_nic_use; /* of the NIC, in an all-to-all of many peers */
	/* exponent of nodes / 2: plain, from a mesh, where no GPU can gather its node's messages
	 * for another node */
	double a2a_congestion;
	double a2a_peer_s; /* per peer and exchange */
	/* share that computing does not hide; tensor parallel exchanges are not hidden */
	double cp_exposed;
	double async_tp_hidden; /* of these where products are cut into pieces */
	double p2p_exposed;     /* interleaved pipelines; all of it without */
	/* of an exchange behind computing, what computing loses by it: it takes cores and memory
	 * bandwidth */
	double fsdp_contention, dp_contention;
	/* of one collective, however small; of each of its steps from rank to rank */
	double collective_s, ring_step_s;
	double deepep_hidden; /* share of DeepEP's exchange behind computing */
	/* share of an exchange that the overlapped 1F1B schedule hides */
	double overlap_hidden;
	/* how far plans are from measurements: tests/bench/planner.py prints these */
	/* four of five rows of a family that the fit has not seen are within */
	double error_dense_pct, error_moe_pct;
	double spread_dense, spread_moe; /* of stacks around the plan, ln */
	/* of configurations of a stack; how far, in doublings of one size, they are alike */
	double spread_config, spread_reach;
	/* of runs of one configuration around each other, ln */
	double spread_row;
	/* of what the runs of a stack have in common, what those of the model with other
	 * software and those of the software with another model have */
	double shared_model, shared_software;
	/* memory */
	/* of capacity and fixed: runtime, allocator, fragmentation */
	double reserve, reserve_bytes;
	double communicator_bytes, communicator_rank_bytes, communicator_max_bytes;
};
extern const struct plan_constants plan_constants;

struct plan_constant {
	const char *name, *source;
	size_t offset;
	bool fitted;
};
extern const struct plan_constant plan_constant_table[];
extern const size_t plan_constant_count;
