/* How an engine trains as one recipe tells it to, as far as that changes the time or the memory
 * of a plan: what the rows of `plan:` in its engine file (docs/engines.md) make of engine.args
 * and of the engine's own configuration. Made when the recipe is parsed
 * (lib/recipe/engine_plan.c), kept with it, read by the planner, which knows no engine by its
 * name. */
#pragma once
#include "lib/base/desc.h"

/* NULL, false, MO_NONE, MO_NONE_F and empty lists: no row says anything. */
struct engine_traits {
	char *recompute;        /* that its flags ask for: none, selective, full */
	char *recompute_untold; /* what it does when nobody says; NULL = none */
	char *schedule;         /* of its own pipeline, by the planner's name */
	bool eager;             /* PyTorch's own kernels: element-wise ones not fused */
	bool compiled;          /* of these, element-wise ones fused by torch.compile */
	bool xla;               /* a compiler plans the memory */
	bool expandable;        /* PyTorch's allocator with expandable segments */
	bool deepep;            /* dispatch with node-limited copies */
	bool overlap_a2a;       /* exchanges of one micro-batch behind computing of another */
	bool async_tp;          /* tensor parallel exchanges between the products */
	bool fused_loss;        /* no FP32 copy of the logits */
	bool fused_experts;     /* routed rows move quantized, the activation is part of the GEMM */
	bool expert_launches;   /* grouped GEMM as one launch per local expert */
	bool narrow_attention;  /* attention's products in 8 bits */
	bool narrow_gather;     /* weights travel in 8 bits */
	bool narrow_activation; /* what activation functions read is kept in 8 bits */
	bool cached_weights;    /* copies of the weights in the narrow type are kept */
	bool small_master;      /* of the FP32 master weights only what BF16 weights lack */
	bool no_sequence_parallel; /* tensor parallel ranks each keep norms and residuals */
	bool adapters;             /* LoRA: most parameters are frozen */
	bool fp4;                  /* asked for by its own key, which no precision of a recipe is */
	bool graphs;        /* launches are replayed from graphs: of graph_modules, else of all */
	bool sharding_told; /* it shards as the recipe says, and no other way */
	int64_t grad_bytes; /* of a parameter's gradient */
	int64_t moment_bytes, moment2_bytes; /* of the optimizer's first and second moment */
	int64_t shard_bytes;     /* FSDP: of the parameters that it shards; 0 = it shards none */
	int64_t sync_free;       /* stage 0..3 */
	int64_t recompute_first; /* layers of each virtual stage that recompute full has */
	int64_t recompute_chunk; /* layers that are recomputed at a time */
	int64_t offload_layers;  /* whose activations wait in the host's memory */
	int64_t pass_batch;      /* sequences that a rank puts through its pipeline at once */
	double attention_dropout;
	double optimizer_offload; /* share of the optimizer's states in the host's memory */
	char *recompute_ids;      /* numbers of the layers that are recomputed */
	char **recompute_modules;
	size_t n_recompute_modules;
	char **offload_modules;
	size_t n_offload_modules;
	char **graph_modules;
	size_t n_graph_modules;
	char **remat_saved;
	size_t n_remat_saved; /* tensors that selective recomputation saves */
};
extern const struct mo_desc engine_traits_desc;

/* What a row of `plan:` may say of a trait. */
enum trait_kind {
	TRAIT_FLAG,   /* true or false */
	TRAIT_NUMBER, /* whole, least..most */
	TRAIT_SHARE,  /* a number from 0 to 1 */
	TRAIT_WORD,   /* one of words, in any case */
	TRAIT_SET,    /* words, those of every row that holds */
	TRAIT_IDS,    /* a text with a number in it */
};
struct trait {
	const char *name;
	enum trait_kind kind;
	size_t offset, count_offset;
	int64_t least, most;
	const char *const *words; /* NULL-terminated */
	/* Where the recipe gives this value itself, the engine's files say nothing of the trait. */
	const char *above;
};
extern const struct trait traits[];
extern const size_t n_traits;
const struct trait *trait_find(const char *name); /* NULL: there is none */
size_t trait_words(const struct trait *t);        /* how many words it has */
/* The bit of each word of the trait that is in the list. */
int64_t trait_bits(const struct trait *t, char *const *words, size_t n);
