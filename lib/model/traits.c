/* Descriptions and vocabulary of what plans know of an engine (traits.h). */
#include "lib/model/traits.h"

#include "lib/model/limits.h"

#define FLAG(f, doc) MO_D(engine_traits, f, MO_BOOL, doc, .omit = true)
#define NUMBER(f, doc) MO_D(engine_traits, f, MO_INT, doc, .omit = true)
#define TEXT(f, doc) MO_D(engine_traits, f, MO_STR, doc, .omit = true)
#define SET(f, doc) MO_D_LIST(engine_traits, f, MO_STRS, doc, .omit = true)
static const struct mo_field fields[] = {
	TEXT(recompute, "recomputation that its flags ask for: none, selective or full"),
	TEXT(recompute_untold, "recomputation when nobody says; unset: none"),
	TEXT(schedule, "of its own pipeline, by the planner's name"),
	FLAG(eager, "PyTorch's own kernels: element-wise ones are not fused"),
	FLAG(compiled, "of these, element-wise ones are fused by torch.compile"),
	FLAG(xla, "a compiler plans the memory"),
	FLAG(expandable, "PyTorch's allocator with expandable segments"),
	FLAG(deepep, "dispatch with node-limited copies"),
	FLAG(overlap_a2a, "exchanges of one micro-batch behind computing of another"),
	FLAG(async_tp, "tensor parallel exchanges in pieces between the products"),
	FLAG(fused_loss, "no FP32 copy of the logits"),
	FLAG(fused_experts, "routed rows move quantized, the activation is part of the GEMM"),
	FLAG(expert_launches, "grouped GEMM as one launch per local expert"),
	FLAG(narrow_attention, "attention's products in 8 bits"),
	FLAG(narrow_gather, "weights travel in 8 bits"),
	FLAG(narrow_activation, "what activation functions read is kept in 8 bits"),
	FLAG(cached_weights, "copies of the weights in the narrow type are kept"),
	FLAG(small_master, "of FP32 master weights only what BF16 weights lack"),
	FLAG(no_sequence_parallel, "tensor parallel ranks each keep norms and residuals"),
	FLAG(adapters, "LoRA: most parameters are frozen"),
	FLAG(fp4, "trains in FP4, asked for by a key of its own"),
	FLAG(graphs, "launches are replayed from graphs: of graph_modules, else of all"),
	FLAG(sharding_told, "it shards as the recipe says, and no other way"),
	NUMBER(grad_bytes, "bytes of a parameter's gradient; unset: 4"),
	NUMBER(moment_bytes, "bytes of the optimizer's first moment, a parameter; unset: 4"),
	NUMBER(moment2_bytes, "bytes of the optimizer's second moment, a parameter; unset: 4"),
	NUMBER(shard_bytes, "FSDP: bytes a parameter that it shards; 0: it shards none"),
	NUMBER(sync_free, "stage of sync-free experts, 0 to 3"),
	NUMBER(recompute_first, "layers of each virtual stage that full recomputation has"),
	NUMBER(recompute_chunk, "layers that are recomputed at a time"),
	NUMBER(offload_layers, "layers whose activations wait in the host's memory"),
	NUMBER(pass_batch, "sequences that a rank puts through its pipeline at once"),
	MO_D(engine_traits, attention_dropout, MO_REAL,
	     "share, 0 to 1; 0: unfused attention keeps no mask", .omit = true),
	MO_D(engine_traits, optimizer_offload, MO_REAL,
	     "share of the optimizer's states in the host's memory, 0 to 1", .omit = true),
	TEXT(recompute_ids, "numbers of the layers that are recomputed"),
	SET(recompute_modules, "what selective recomputation drops and makes again"),
	SET(offload_modules, "what waits in the host's memory"),
	SET(graph_modules, "modules whose launches are replayed from graphs"),
	SET(remat_saved, "tensors that selective recomputation saves"),
};
const struct mo_desc engine_traits_desc = MO_DESC(engine_traits, fields);
#undef FLAG
#undef NUMBER
#undef TEXT
#undef SET

static const char *const levels[] = { "none", "selective", "full", NULL };
static const char *const schedules[] = { "1f1b",   "interleaved", "zb1p",     "zbv",
					 "v-half", "v-min",       "dualpipe", NULL };
/* In the order of the bits in lib/plan/features.h. */
static const char *const recomputed[] = { "core_attention",
					  "expert_activation",
					  "norms",
					  "mla_up",
					  "mlp",
					  "moe",
					  "shared_experts",
					  NULL };
static const char *const offloaded[] = { "attention_norm",    "qkv",      "core_attention",
					 "projection",        "mlp_norm", "expert_up",
					 "expert_activation", NULL };
static const char *const replayed[] = {
	"attention", "mlp", "router", "preprocess", "experts", NULL
};
static const char *const tensors[] = { "qkv", "out", "context", "up", "down", NULL };

#define ROW(f, k, ...) \
	{ \
		.name = #f, .kind = (k), .offset = offsetof(struct engine_traits, f), \
		##__VA_ARGS__ \
	}
#define FLAG(f, ...) ROW(f, TRAIT_FLAG, ##__VA_ARGS__)
#define NUMBER(f, from, to) ROW(f, TRAIT_NUMBER, .least = (from), .most = (to))
#define WORD(f, w) ROW(f, TRAIT_WORD, .words = (w))
#define SET(f, w) \
	ROW(f, TRAIT_SET, .words = (w), .count_offset = offsetof(struct engine_traits, n_##f))
const struct trait traits[] = {
	WORD(recompute, levels),
	WORD(recompute_untold, levels),
	WORD(schedule, schedules),
	FLAG(eager),
	FLAG(compiled),
	FLAG(xla),
	FLAG(expandable),
	FLAG(deepep),
	FLAG(overlap_a2a),
	FLAG(async_tp),
	FLAG(fused_loss),
	FLAG(fused_experts),
	FLAG(expert_launches),
	FLAG(narrow_attention),
	FLAG(narrow_gather),
	FLAG(narrow_activation),
	FLAG(cached_weights),
	FLAG(small_master),
	FLAG(no_sequence_parallel),
	FLAG(adapters),
	FLAG(fp4, .above = "precision"),
	FLAG(graphs),
	FLAG(sharding_told),
	NUMBER(grad_bytes, 1, 4),
	NUMBER(moment_bytes, 1, 4),
	NUMBER(moment2_bytes, 1, 4),
	NUMBER(shard_bytes, 0, 4),
	NUMBER(sync_free, 0, 3),
	NUMBER(recompute_first, 1, MO_RANKS_MAX),
	NUMBER(recompute_chunk, 1, MO_RANKS_MAX),
	NUMBER(offload_layers, 0, MO_RANKS_MAX),
	NUMBER(pass_batch, 1, MO_RANKS_MAX),
	ROW(attention_dropout, TRAIT_SHARE),
	ROW(optimizer_offload, TRAIT_SHARE),
	ROW(recompute_ids, TRAIT_IDS),
	SET(recompute_modules, recomputed),
	SET(offload_modules, offloaded),
	SET(graph_modules, replayed),
	SET(remat_saved, tensors),
};
const size_t n_traits = ELEMENTSOF(traits);

const struct trait *trait_find(const char *name)
{
	for (size_t i = 0; i < n_traits; i++)
		if (mo_streq(traits[i].name, name))
			return &traits[i];
	return NULL;
}

size_t trait_words(const struct trait *t)
{
	size_t n = 0;

	while (t->words && t->words[n])
		n++;
	return n;
}

int64_t trait_bits(const struct trait *t, char *const *words, size_t n)
{
	int64_t bits = 0;

	for (size_t i = 0; i < n; i++) {
		int at = mo_enum_parse(t->words, trait_words(t), words[i]);

		bits |= at < 0 ? 0 : (int64_t)1 << at;
	}
	return bits;
}
