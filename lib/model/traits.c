/* Descriptions and vocabulary of what plans know of an engine (traits.h). */
#include "lib/model/traits.h"

#include "lib/model/limits.h"

#define FLAG(f) MO_F(engine_traits, f, MO_BOOL, .omit = true)
#define NUMBER(f) MO_F(engine_traits, f, MO_INT, .omit = true)
#define TEXT(f) MO_F(engine_traits, f, MO_STR, .omit = true)
#define SET(f) MO_F_LIST(engine_traits, f, MO_STRS, .omit = true)
static const struct mo_field fields[] = {
	TEXT(recompute),
	TEXT(recompute_untold),
	TEXT(schedule),
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
	FLAG(fp4),
	FLAG(graphs),
	FLAG(sharding_told),
	NUMBER(grad_bytes),
	NUMBER(moment_bytes),
	NUMBER(moment2_bytes),
	NUMBER(shard_bytes),
	NUMBER(sync_free),
	NUMBER(recompute_first),
	NUMBER(recompute_chunk),
	NUMBER(offload_layers),
	NUMBER(pass_batch),
	MO_F(engine_traits, attention_dropout, MO_REAL, .omit = true),
	MO_F(engine_traits, optimizer_offload, MO_REAL, .omit = true),
	TEXT(recompute_ids),
	SET(recompute_modules),
	SET(offload_modules),
	SET(graph_modules),
	SET(remat_saved),
};
const struct mo_desc engine_traits_desc = MO_DESC(engine_traits, fields);
#undef FLAG
#undef NUMBER
#undef TEXT
#undef SET

static const char *const levels[] = { "none", "selective", "full", NULL };
static const char *const schedules[] = { "1f1b",   "interleaved", "zb1p",     "zbv",
					 "v-half", "v-min",       "dualpipe", NULL };
/* In the order of the bits in lib/plan/parts.h. */
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
