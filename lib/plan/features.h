/* What features:, bind: and the engine's traits of a recipe change of time and memory. Private to
 * lib/plan and to the tests and benchmarks that look inside; plan_recompute_given() is for all. */
#pragma once
#include "lib/model/recipe.h"

/* What the recipe's features: and bind: switch on, as far as it changes time or memory. */
struct shape_features {
	/* dispatch with node-limited copies instead of a plain all-to-all */
	bool deepep;
	/* exchanges of one micro-batch behind computing of another (1F1B overlap, DualPipe) */
	bool overlap_a2a;
	bool fused_loss; /* no FP32 copy of the logits */
	bool bound;      /* NUMA binding and kernel arguments in device memory */
	/* PyTorch's own kernels: element-wise ones not fused, portable flash attention */
	bool eager;
	bool triton_attention; /* flash attention in Triton */
	bool compiled;         /* of these, element-wise ones fused by torch.compile */
	bool async_tp;         /* tensor parallel exchanges in pieces between the products */
	bool expert_launches;  /* grouped GEMM as one launch per local expert */
	/* precision-aware optimizer: of the FP32 master weights only what BF16 weights lack, or
	 * FP16 */
	bool small_master;
	/* per parameter: of a gradient, of both moments; 0 = FP32: 4 and 8 */
	int64_t grad_bytes, moment_bytes;
	bool no_sequence_parallel; /* tensor parallel ranks each keep norms and residuals */
	/* gradients reduced after the last micro-batch, nothing hidden */
	bool late_reduce;
	/* routed rows move in their padded, quantized form; the activation is part of the
	 * grouped GEMM */
	bool fused_experts;
	/* weights travel to the ranks that compute with them in 8 bits */
	bool narrow_gather;
	bool narrow_attention; /* attention's products in 8 bits */
	int64_t graphs;        /* of enum graph */
	int64_t sync_free;     /* 0..3 */
	/* the first ones of each virtual stage, with recompute full; 0 = all */
	int64_t recompute_layers;
	/* so many are recomputed at a time from one input; 0 = each from its own */
	int64_t recompute_chunk;
	/* instead: numbers of the layers, separated by anything; NULL = not given */
	const char *recompute_ids;
	/* enum recompute_module: what recompute selective drops and makes again */
	int64_t recompute_modules;
	/* enum offload_module: what is read again from the host's memory */
	int64_t offload_modules;
	int64_t offload_layers; /* whose activations wait in the host's memory */
	/* unfused attention keeps the softmax alone, neither a mask nor a product with it */
	bool no_dropout;
	/* the engine's own key asks for FP4, which no precision of a recipe is */
	bool fp4;
	bool adapters;          /* LoRA: most parameters are frozen, which nothing counts */
	bool narrow_activation; /* what activation functions read is kept in 8 bits */
	/* beside weights in 16 bits copies in the narrow type, as they lie and transposed */
	bool cached_weights;
	/* share of the optimizer's states that lies in the host's memory */
	double optimizer_offload;
	bool xla;            /* a compiler plans the memory */
	int64_t remat_saved; /* enum remat: what its recompute selective saves */
	bool expandable;     /* PyTorch's allocator with expandable segments */
	/* a pipeline's last stage keeps the logits of all micro-batches until the step ends */
	bool keeps_outputs;
	/* FSDP: of the parameters that it shards, which are the master weights; 0 = master
	 * weights beside those in 16 bits */
	int64_t shard_bytes;
};
/* Parts of a layer whose kernels a graph (CUDA, HIP) replays with one launch; experts: all
 * behind attention. */
enum graph {
	GRAPH_ATTENTION = 1,
	GRAPH_MLP = 2,
	GRAPH_ROUTER = 4,
	GRAPH_PREPROCESS = 8,
	GRAPH_EXPERTS = 16,
	GRAPH_ALL = 31
};
/* Words of the trait recompute_modules (lib/model/traits.c), in their order; as are those below. */
enum recompute_module {
	MODULE_CORE_ATTENTION = 1,
	MODULE_EXPERT_ACTIVATION = 2,
	MODULE_NORMS = 4,
	MODULE_MLA_UP = 8,
	MODULE_MLP = 16,
	MODULE_MOE = 32,
	MODULE_SHARED = 64
};
enum offload_module {
	OFFLOAD_ATTN_NORM = 1,
	OFFLOAD_QKV = 2,
	OFFLOAD_CORE_ATTENTION = 4,
	OFFLOAD_PROJECTION = 8,
	OFFLOAD_MLP_NORM = 16,
	OFFLOAD_EXPERT_UP = 32,
	OFFLOAD_EXPERT_ACTIVATION = 64
};
/* Tensors of a layer that MaxText's remat_policy may save: queries, keys and values; attention's
 * product; attention's result; gate and up; down. */
enum remat {
	REMAT_QKV = 1,
	REMAT_OUT = 2,
	REMAT_CONTEXT = 4,
	REMAT_UP = 8,
	REMAT_DOWN = 16,
	REMAT_MINIMAL = REMAT_QKV | REMAT_OUT | REMAT_UP | REMAT_DOWN
};
struct shape_features shape_features_of(const struct recipe *r);
const char *shape_recompute_of(const struct recipe *r);
/* by the engine's own flags; NULL: nothing of it */
const char *shape_schedule_stated(const struct recipe *r);
/* Sequences that a rank puts through the pipeline at once where its own configuration says so;
 * it goes through so often that a step is full. A micro-batch of the recipe makes it one pass.
 * 0: one pass. */
int64_t shape_pass_batch(const struct recipe *r);
/* The recomputation that the recipe fixes, itself or by the engine's own flags in engine.args;
 * NULL: a search chooses. */
const char *plan_recompute_given(const struct recipe *r);
