/* Step times, memory and FLOPs of the planner for many rows, with the constants given or others:
 * what tests/bench/planner.py measures accuracy with and planner_fit.py fits by.
 *   planner ROWS < VECTORS: ROWS has one line of key=value words per row; each line of VECTORS is
 *       key=value words of constants (none: those of the library) and is answered by
 *   one line with, per row, step seconds, GB of the fullest rank, causal FLOPs per token,
 *       attention's share of them, whether it fits, the parts of the step and of memory, and its
 *       capacity, separated by commas;
 *   a line "anchor ..." by what runs of other rows say of one (anchored()). */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/plan/anchor.h"
#include "lib/plan/memory.h"
#include "lib/plan/params.h"
#include "lib/plan/shape.h"
#include "lib/plan/time.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/model_file.h"

struct row {
	char *software, *named;
	struct shape s;
	struct recipe_model model;
	struct recipe_moe moe;
	struct recipe_mla mla;
	struct gpu_type gpu;
};
struct key {
	const char *name;
	size_t offset;
};

#define S(f) \
	{ \
#f, offsetof(struct row, s.f) \
	}
#define M(f) \
	{ \
#f, offsetof(struct row, model.f) \
	}
static const struct key integers[] = {
	S(gpus),
	S(tp),
	S(pp),
	S(vpp),
	S(ep),
	S(etp),
	S(cp),
	S(dp),
	S(micro),
	S(global),
	S(seq),
	S(shard),
	S(features.sync_free),
	S(features.recompute_layers),
	S(features.grad_bytes),
	S(features.moment_bytes),
	S(features.graphs),
	S(features.recompute_modules),
	S(features.offload_layers),
	S(features.shard_bytes),
	M(layers),
	M(hidden),
	M(heads),
	M(kv_heads),
	M(head_dim),
	M(ffn),
	M(vocab),
	M(mtp),
	M(window),
	{ "experts", offsetof(struct row, moe.experts) },
	{ "topk", offsetof(struct row, moe.topk) },
	{ "expert_ffn", offsetof(struct row, moe.ffn) },
	{ "shared_ffn", offsetof(struct row, moe.shared_ffn) },
	{ "dense_layers", offsetof(struct row, moe.dense_layers) },
};
static const struct key flags[] = {
	S(features.deepep),
	S(features.overlap_a2a),
	S(features.fused_loss),
	S(features.bound),
	S(features.eager),
	S(features.compiled),
	S(features.triton_attention),
	S(features.async_tp),
	S(features.expert_launches),
	S(features.fused_experts),
	S(features.narrow_attention),
	S(features.narrow_gather),
	S(features.small_master),
	S(features.late_reduce),
	S(features.no_sequence_parallel),
	S(features.narrow_activation),
	S(features.no_dropout),
	S(features.expandable),
	S(features.cached_weights),
	S(features.keeps_outputs),
	M(gated),
	M(tied),
	M(qk_norm),
	M(bias),
};
static const struct key words[] = { { "software", offsetof(struct row, software) },
				    { "named", offsetof(struct row, named) },
				    S(precision),
				    S(schedule),
				    S(recompute),
				    S(sharding),
				    M(attention) };

static void *find(const struct key *keys, size_t n, struct row *r, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(keys[i].name, name))
			return (char *)r + keys[i].offset;
	return NULL;
}

static int set(struct row *r, const char *name, const char *value)
{
	void *at;
	struct mo_error err = { 0 };

	if (mo_streq(name, "gpu"))
		return gpu_type_load(value, &r->gpu, &err) < 0
			       ? (fprintf(stderr, "%s\n", err.text), -1)
			       : 0;
	if (mo_streq(name, "model"))
		return model_load(value, &r->model, &err);
	if (mo_streq(name, "nic_gbps"))
		return mo_parse_double(value, &r->s.nic_gbps);
	if ((at = find(integers, ELEMENTSOF(integers), r, name)))
		return mo_parse_i64(value, 0, INT64_MAX, at);
	if ((at = find(flags, ELEMENTSOF(flags), r, name)))
		*(bool *)at = mo_streq(value, "1");
	else if ((at = find(words, ELEMENTSOF(words), r, name)))
		*(char **)at = mo_strdup(value);
	return at ? 0 : -1;
}

static int parse(char *line, struct row *r)
{
	mo_desc_init(&gpu_type_desc, &r->gpu);
	mo_desc_init(&recipe_model_desc, &r->model);
	r->model.gated = true;
	for (char *word; (word = strsep(&line, " \n"));) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		if (*word && (!value || set(r, word, value) < 0)) {
			fprintf(stderr, "planner: %s: unknown key or bad value\n", word);
			return -1;
		}
	}
	if (r->moe.experts > 0)
		r->model.moe = &r->moe;
	r->moe.every = 1;
	r->s.model = &r->model;
	r->s.gpu = &r->gpu;
	if (r->s.nic_gbps == 0)
		r->s.nic_gbps = r->gpu.nic_gbps;
	return 0;
}

static int constants(char *line, struct plan_constants *k)
{
	*k = plan_constants;
	for (char *word; (word = strsep(&line, " \n"));) {
		char *value = strchr(word, '=');
		size_t i = 0;

		if (!value)
			continue;
		*value++ = '\0';
		while (i < plan_constant_count && !mo_streq(plan_constant_table[i].name, word))
			i++;
		if (i == plan_constant_count ||
		    mo_parse_double(value, (double *)((char *)k + plan_constant_table[i].offset)) <
			    0) {
			fprintf(stderr, "planner: %s: no such constant\n", word);
			return -1;
		}
	}
	return 0;
}

static void answer(struct row *rows, size_t n, const struct plan_constants *k)
{
	for (size_t i = 0; i < n; i++) {
		struct row *r = &rows[i];
		struct plan p = { 0 };
		double flops = plan_flops_per_token(&r->model, r->s.seq),
		       linear = plan_flops_per_token(&r->model, 0);

		r->s.k = k;
		time_of(&r->s, &p);
		memory_of(&r->s, &p.memory_gb);
		const struct plan_time *t = &p.step_time_s;

		const struct plan_memory *m = &p.memory_gb;

		printf("%s%.6g,%.6g,%.6g,%.6g,%d,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g",
		       i ? " " : "", t->total, m->total, flops, (flops - linear) / flops,
		       m->total <= m->capacity, t->compute, t->launch, t->tp, t->cp, t->a2a, t->pp,
		       t->dp, t->optimizer);
		printf(",%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g", m->params, m->grads, m->optimizer,
		       m->activations, m->comm, m->reserve, m->capacity);
	}
	putchar('\n');
	fflush(stdout);
}

static void anchor_add(struct plan_anchor *a, struct row *r, double ratio)
{
	struct recipe recipe = { .engine.kind = r->software,
				 .precision = (char *)r->s.precision,
				 .model = &r->model };
	struct plan_doc doc = { .hardware.gpu = r->gpu.name };
	struct plan p = { .parallelism = { r->s.tp, r->s.pp, r->s.vpp, r->s.ep, r->s.etp, r->s.cp,
					   r->s.dp, NULL },
			  .batch = { r->s.micro, r->s.global, r->s.seq },
			  .recompute = (char *)r->s.recompute,
			  .step_time_s.total = 1,
			  .memory_gb.total = 1 };

	doc.plans = &p;
	doc.n_plans = 1;
	mo_str_set(&r->model.name, r->named);
	plan_anchor_add(a, &recipe, &doc, ratio, ratio);
}

/* "ROW RUN:RATIO RUN:RATIO ...": numbers of rows, measured / planned of those that are known ->
 * factor on the plan of the first, and the share of its error that is left. */
static int anchored(char *line, struct row *rows, size_t n)
{
	_cleanup_(plan_anchor_done) struct plan_anchor a = { 0 };
	double factor, left, ratio = MO_NONE_F;
	int64_t at;

	for (char *word; (word = strsep(&line, " \n"));) {
		char *value = strchr(word, ':');

		if (value)
			*value++ = '\0';
		if (!*word)
			continue;
		if (mo_parse_i64(word, 0, (int64_t)n - 1, &at) < 0 ||
		    (value && mo_parse_double(value, &ratio) < 0))
			return -1;
		anchor_add(&a, &rows[at], value ? ratio : MO_NONE_F);
	}
	if (a.n_runs == 0)
		return -1;
	plan_anchor_expect(&a, &a.runs[0], false, &factor, &left);
	printf("%.6g %.6g\n", factor, left);
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_(mo_freep) char *line = NULL;
	struct row *rows = NULL;
	size_t n = 0, size = 0;
	FILE *f = argc == 2 ? fopen(argv[1], "re") : NULL;

	if (argc == 2 && mo_streq(argv[1], "--constants")) {
		for (size_t i = 0; i < plan_constant_count; i++)
			printf("%s %.17g %s\n", plan_constant_table[i].name,
			       *(const double *)((const char *)&plan_constants +
						 plan_constant_table[i].offset),
			       plan_constant_table[i].fitted ? "fitted" : "given");
		return 0;
	}
	if (!f) {
		fprintf(stderr, "usage: planner ROWS < VECTORS, or planner --constants\n");
		return 2;
	}
	while (getline(&line, &size, f) > 0) {
		rows = mo_realloc_array(rows, n + 1, sizeof(*rows));
		rows[n] = (struct row){ 0 };
		if (parse(line, &rows[n++]) < 0)
			return 1;
	}
	fclose(f);
	for (size_t i = 0; i < n; i++) { /* the array has its place now */
		rows[i].s.model = &rows[i].model;
		rows[i].s.gpu = &rows[i].gpu;
		if (rows[i].moe.experts > 0)
			rows[i].model.moe = &rows[i].moe;
	}
	while (getline(&line, &size, stdin) > 0) {
		struct plan_constants k;

		if (mo_starts_with(line, "anchor ")) {
			if (anchored(line + strlen("anchor "), rows, n) < 0)
				return 1;
			continue;
		}
		if (constants(line, &k) < 0)
			return 1;
		answer(rows, n, &k);
	}
	return 0;
}
