/* The planner's constants and where each comes from (see constants.h). */
#include "lib/plan/constants.h"

/* name, value, fitted?, source */
#define CONSTANTS(X) \
	X(gemm_use, 0.8571, true, "truth.json, all families") \
	X(fp8_use, 0.8415, true, "truth.json, FP8 and MXFP8 rows") \
	X(sustained, 1.1, true, \
	  "truth.json: A100 against later GPUs, whose power limits them below short GEMM " \
	  "measurements") \
	X(tail, 0.5, false, "half a wave: the mean of tiles that do not fill the last one") \
	X(kernel_s, 5.088e-06, true, "truth.json: small models of vTrain") \
	X(attention_use, 0.8571, true, \
	  "truth.json: NeMo and Megatron; alone cuDNN's kernel does 1.18 on H200, own " \
	  "measurement") \
	X(backward_attention, 0.85, false, "FlashAttention-2 on A100: 190 of 230 TFLOP/s") \
	X(portable_attention, 0.74, false, \
	  "FlashAttention-2 paper: 190 to 200 TFLOP/s forward on A100, head width 128, causal") \
	X(later_attention, 0.64, false, \
	  "own measurement: 343 TFLOP/s forward on H200 with PyTorch 2.11, where cuDNN's kernel " \
	  "does 620") \
	X(triton_attention, 0.5942, true, "truth.json: long sequences of MPT") \
	X(ring_attention, 0.6984, true, "truth.json: context parallel runs of torchtitan") \
	X(eager_passes, 3.049, true, "truth.json: MPT and torchtitan") \
	X(memory_use, 0.85, false, \
	  "large copies on H100 and MI300X; Primus' projection measured 0.566 of small kernels") \
	X(permute_passes, 26.16, true, \
	  "truth.json, expert rows; fused kernels need 8 around both exchanges, others sort, pad " \
	  "and weigh in FP32") \
	X(quantize_passes, 4.006, true, \
	  "truth.json, FP8 rows; casts that no other kernel does by the way") \
	X(host_dense_s, 0.002574, true, "truth.json: vTrain's small models") \
	X(host_moe_s, 0.008571, true, "truth.json; DeepSeek-V2-Lite at one sequence on MI355X") \
	X(host_narrow, 1.392, true, \
	  "truth.json: Qwen3 on B200 with FP8 against DeepSeek-V2-Lite on MI355X with BF16") \
	X(host_expert_s, 0.001035, true, \
	  "truth.json: DeepSeek-V2 and V2-Lite on MI355X, 20 and 8 experts per GPU") \
	X(host_bound, 0.93, false, \
	  "AMD MoE package: +1.8 % (V2-Lite) and +4.3 % (V2) tokens/s from NUMA binding and " \
	  "HSA_KERNARG_POOL_SIZE") \
	X(host_sync_free, 0.75, false, \
	  "AMD MoE package: sync-free stage 1, +11.7 % (V2-Lite) and +7.7 % (V2)") \
	X(scaleup_use, 0.656, true, \
	  "truth.json: tensor parallelism; Primus' projection takes 0.7") \
	X(nic_use, 0.9314, true, "truth.json; RCCL acceptance 330 of 400 GB/s per node") \
	X(a2a_nic_use, 0.816, true, \
	  "truth.json: experts across nodes; DeepEP 43 to 61 of 50 GB/s") \
	X(a2a_congestion, 1.3, false, \
	  "AMD MoE package, 2T on 1,024 MI300X: DeepEP 7.7 times as fast with EP64; DeepSeek-V3 " \
	  "on MI325X 2.7 times with EP32") \
	X(a2a_peer_s, 2.5e-6, false, "Primus' projection, a2a_intra_per_peer_us") \
	X(cp_exposed, 0.2, false, \
	  "ring attention hides at least 0.8 of its exchange (Megatron context parallelism)") \
	X(async_tp_hidden, 0.4, false, \
	  "torchtitan, Llama 3 70B on 256 H100: 27.4 -> 25.1 s in BF16, 19.8 -> 18.7 s in FP8") \
	X(p2p_exposed, 0.1982, true, "truth.json: interleaved pipelines") \
	X(dp_contention, 0.4118, true, \
	  "truth.json: distributed optimizer behind interleaved pipelines") \
	X(fsdp_contention, 0.6235, true, "truth.json: MPT with FSDP") \
	X(collective_s, 20e-6, false, \
	  "Primus' projection: launch, synchronisation and RDMA set-up of a small collective") \
	X(ring_step_s, 2e-06, true, "truth.json: weak scaling of MPT on 8 to 512 GPUs") \
	X(deepep_hidden, 0.65, false, \
	  "Primus' projection: DeepEP hides 65 %; sync-free stages 75, 80, 85 %") \
	X(overlap_hidden, 0.8, false, \
	  "Qwen3-235B on H100, 19.7 -> 17.6 s with overlapped exchanges") \
	X(error_dense_pct, 13, false, "planner.py: left out, 80 %") \
	X(error_moe_pct, 20, false, "planner.py: left out, 80 %") \
	X(spread_dense, 0.06, false, "planner.py: left out and anchored") \
	X(spread_moe, 0.15, false, "planner.py: left out and anchored") \
	X(spread_config, 0.16, false, "planner.py: anchored") \
	X(spread_reach, 0.8, false, "planner.py: anchored") \
	X(spread_row, 0.06, false, "planner.py: anchored") \
	X(shared_model, 0.7, false, "planner.py: releases of NeMo") \
	X(shared_software, 0.3, false, "planner.py: models of one release of NeMo") \
	X(reserve, 0.05, false, \
	  "allocator and fragmentation: 4 to 8 % of capacity; V2-Lite on MI355X shows 20 to 24 " \
	  "GB beside what is counted") \
	X(reserve_bytes, 2.4e9, false, \
	  "runtime context, kernels' code, hipBLASLt workspaces; at most what AMD's 2T on MI300X " \
	  "(PP24 EP16 CP2) leaves") \
	X(communicator_bytes, 96e6, false, "Primus' projection: min(96 MB + 2 MB per rank, 1 GB)") \
	X(communicator_rank_bytes, 2e6, false, "Primus' projection") \
	X(communicator_max_bytes, 1e9, false, "Primus' projection")

#define VALUE(name, value, fitted, source) .name = (value),
#define ROW(name, value, fitted, source) \
	{ #name, source, offsetof(struct plan_constants, name), fitted },
const struct plan_constants plan_constants = { CONSTANTS(VALUE) };
const struct plan_constant plan_constant_table[] = { CONSTANTS(ROW) };
const size_t plan_constant_count = sizeof(plan_constant_table) / sizeof(*plan_constant_table);
