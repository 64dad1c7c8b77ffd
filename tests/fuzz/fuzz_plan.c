/* Recipes as bytes choose them, planned: nothing crashes, hangs or leaks; every number of the
 * document is finite and not negative, parts add up to their totals, fits means what it says, plans
 * of a search come in order; so too after anchors, admission, apply and the picture's schedule.
 * With the low bit of the first byte set (a comment: all shipped recipes) it is a recipe as text;
 * otherwise bytes pick each value from what is legal or nearly so.
 * ROOMS: plan recipe wire model base */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/plan/admit.h"
#include "lib/plan/anchor.h"
#include "lib/plan/plan_desc.h"
#include "lib/plan/schedule.h"
#include "lib/plan/schedule_plan.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/recipe_file.h"
#include "lib/wire/encode.h"

/* searches of more, or of larger batches, take seconds under the sanitizers */
#define SEARCH_GPUS_MAX 64
#define SEARCH_BATCH_MAX 65536
#define PICTURE_MAX 60000

/* ---- bytes that choose; 0 when they are used up */
struct bytes {
	const uint8_t *data;
	size_t n;
};

static unsigned take(struct bytes *b, unsigned of)
{
	if (!b->n)
		return 0;
	b->n--;
	return *b->data++ % of;
}

static int64_t pick(struct bytes *b, const int64_t *values, size_t n)
{
	return values[take(b, (unsigned)n)];
}
#define PICK(b, ...) \
	pick((b), (const int64_t[]){ __VA_ARGS__ }, \
	     sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))
#define WORD(b, ...) \
	((const char *const[]){ \
		__VA_ARGS__ })[take((b), sizeof((const char *const[]){ __VA_ARGS__ }) / \
						 sizeof(char *))]

static int64_t size(struct bytes *b)
{
	return PICK(b, 1, 1, 1, 2, 2, 4, 8, 16, 3, 6, 24, 128, 7);
}

static void put_model(struct bytes *b, struct mo_buf *t)
{
	if (take(b, 2)) {
		mo_buf_printf(t, "model: %s\n",
			      WORD(b, "deepseek-v2-lite", "deepseek-v3", "moe-2t", "llama3-8b",
				   "qwen3-30b-a3b", "gpt-oss-20b", "llama4-maverick", "zaya1",
				   "minimax-m2.5"));
		return;
	}
	int64_t heads = PICK(b, 8, 1, 16, 32, 96, 128, 65536);
	mo_buf_printf(t,
		      "model: {layers: %lld, hidden: %lld, heads: %lld, kv_heads: %lld, head_dim: "
		      "%lld, ffn: %lld, vocab: %lld, gated: %s, attention: %s, mtp: %lld, window: "
		      "%lld, tied: %s",
		      (long long)PICK(b, 4, 1, 61, 96, 10000),
		      (long long)PICK(b, 512, 1, 7168, 1048576), (long long)heads,
		      (long long)PICK(b, heads, 1, 8), (long long)PICK(b, 128, 1, 64, 65536),
		      (long long)PICK(b, 2048, 1, 28672, 4194304),
		      (long long)PICK(b, 1000, 1, 129280, 16777216), WORD(b, "true", "false"),
		      WORD(b, "flash", "unfused"), (long long)PICK(b, 0, 1, 3, 16),
		      (long long)PICK(b, 0, 1, 4096, 1073741824), WORD(b, "false", "true"));
	if (take(b, 2))
		mo_buf_printf(t,
			      ", moe: {experts: %lld, topk: %lld, ffn: %lld, shared_ffn: %lld, "
			      "dense_layers: %lld}",
			      (long long)PICK(b, 8, 1, 64, 256, 65536),
			      (long long)PICK(b, 2, 1, 8, 256, 65536),
			      (long long)PICK(b, 1408, 1, 4194304),
			      (long long)PICK(b, 0, 1408, 4194304),
			      (long long)PICK(b, 0, 1, 3, 10000));
	if (take(b, 4) == 1)
		mo_buf_printf(t,
			      ", mla: {q_lora: %lld, kv_lora: 512, qk_nope: 128, qk_rope: 64, v: "
			      "128}",
			      (long long)PICK(b, 0, 1536));
	mo_buf_str(t, "}\n");
}

static void put_recipe(struct bytes *b, struct mo_buf *t)
{
	mo_buf_printf(t, "recipe: 1\nname: fuzz\nsteps: 10\nengine: {kind: %s\n",
		      WORD(b, "command, argv: [/bin/true]}", "command, argv: [/bin/true]}",
			   "megatron-lm, entry: a.py, workdir: /w}",
			   "primus-megatron, entry: a.yaml, workdir: /w}",
			   "torchtitan, workdir: /w}", "maxtext, workdir: /w}"));
	put_model(b, t);
	/* Sizes that multiply to the GPUs and to the batch, but for one in eight each. */
	int64_t tp = size(b), pp = size(b), cp = size(b), dp = PICK(b, 1, 2, 8, 16, 3),
		micro = PICK(b, 1, 2, 3, 12, 1048576), rounds = PICK(b, 1, 4, 16, 64, 7, 1024);
	int64_t gpus = take(b, 8) == 1 ? PICK(b, 1, 7, 64, 256, 768, 2048, 131072)
				       : MO_MIN(tp * pp * cp * dp, 131072),
		global = take(b, 8) == 1 ? PICK(b, 1, 7, 1536, 1073741824)
					 : MO_MIN(dp * micro * rounds, 1073741824);

	mo_buf_printf(t, "cluster: {gpus: %lld, gpu: %s, nic_gbps: %lld, spares: %lld}\n",
		      (long long)gpus, WORD(b, "mi355x", "mi300x", "h100", "gb200", "a100-40"),
		      (long long)PICK(b, 400, 1, 100000), (long long)PICK(b, 0, 2, 16384));
	if (take(b, 3))
		mo_buf_printf(t,
			      "parallelism: {tp: %lld, pp: %lld, vpp: %lld, ep: %lld, etp: %lld, "
			      "cp: %lld%s, schedule: %s}\n",
			      (long long)tp, (long long)pp, (long long)PICK(b, 1, 1, 2, 3, 8),
			      (long long)PICK(b, 1, dp, tp, 8, 16), (long long)PICK(b, 1, 1, 1, 2),
			      (long long)cp,
			      WORD(b, "", ", sharding: none", ", sharding: zero2",
				   ", sharding: zero3"),
			      WORD(b, "1f1b", "interleaved", "zb1p", "zbv", "v-half", "v-min",
				   "dualpipe"));
	else
		mo_buf_str(t, "parallelism: auto\n");
	mo_buf_printf(t, "batch: {seq: %lld",
		      (long long)PICK(b, 4096, 1, 8192, 131072, 1073741824));
	if (take(b, 8))
		mo_buf_printf(t, ", micro: %lld", (long long)micro);
	mo_buf_printf(t, ", global: %lld}\nprecision: %s\n", (long long)global,
		      WORD(b, "bf16", "bf16", "fp8", "fp16", "mxfp8", "nvfp4"));
	if (take(b, 2))
		mo_buf_printf(t, "recompute: %s\n", WORD(b, "none", "selective", "full"));
	if (take(b, 2))
		mo_buf_printf(t,
			      "features: {a2a: %s, sync_free: %lld, overlap_a2a: %s, loss_fusion: "
			      "%s}\n",
			      WORD(b, "deepep", "alltoall"), (long long)PICK(b, 0, 1, 2, 3),
			      WORD(b, "false", "true"), WORD(b, "true", "false"));
}

/* ---- what holds of every plan */
static void not_negative(double v)
{
	if (!(v >= 0) || !isfinite(v))
		abort();
}

static void adds_up(double total, double sum)
{
	not_negative(total);
	if (fabs(total - sum) > 1e-6 * fabs(total) + 1e-12)
		abort();
}

static void sound(const struct plan *p)
{
	const struct plan_memory *m = &p->memory_gb;
	const struct plan_time *t = &p->step_time_s;
	const double each[] = { m->params,
				m->grads,
				m->optimizer,
				m->activations,
				m->comm,
				m->reserve,
				m->capacity,
				t->compute,
				t->a2a,
				t->pp,
				t->dp,
				t->cp,
				t->tp,
				t->optimizer,
				t->launch,
				p->tokens_per_s_per_gpu,
				p->tflops_per_gpu,
				p->mfu,
				p->error_pct };

	for (size_t i = 0; i < ELEMENTSOF(each); i++)
		not_negative(each[i]);
	adds_up(m->total,
		m->params + m->grads + m->optimizer + m->activations + m->comm + m->reserve);
	adds_up(t->total,
		t->compute + t->a2a + t->pp + t->dp + t->cp + t->tp + t->optimizer + t->launch);
	if (p->fits != (m->total <= m->capacity) || !(p->bubble >= 0 && p->bubble < 1) ||
	    t->total <= 0 || !p->n_notes)
		abort();
	for (size_t i = 0; i < p->n_memory_stages; i++)
		if (p->memory_stages[i].total > m->total * (1 + 1e-9) ||
		    p->memory_stages[i].layers < 0)
			abort();
}

static void whole(const struct plan_doc *doc)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (!doc->n_plans)
		abort();
	for (size_t i = 0; i < doc->n_plans; i++)
		sound(&doc->plans[i]);
	wire_encode(&plan_doc_desc, doc, &b);
	if (strstr(b.data, "\"NaN\"") || strstr(b.data, "Infinity\""))
		abort();
	if (doc->reliability.ettr > 1 || doc->reliability.ettr < 0 ||
	    doc->reliability.spare_nodes < 0)
		abort();
	for (size_t i = 0; i < doc->n_scaling; i++)
		if (doc->scaling[i].efficiency != MO_NONE_F)
			not_negative(doc->scaling[i].efficiency);
}

static void after(struct bytes *b, struct recipe *r, const struct gpu_type *gpu,
		  struct plan_doc *doc)
{
	static const double measured[] = { 1, 0.5, 0, -1, 1e-300, 1e300, NAN, INFINITY, 7 };
	struct plan_anchor a = { 0 };
	struct sched s = { 0 };
	struct mo_error err = { 0 };
	const struct plan *p = &doc->plans[0];
	_cleanup_(mo_freep) char *text = NULL;
	int64_t pieces = p->parallelism.pp * MO_MAX(p->parallelism.vpp, 2) * 3,
		micro = p->batch.global / (p->parallelism.dp * p->batch.micro);

	plan_admit(r, doc, &text);
	if (pieces * micro <= PICTURE_MAX && plan_schedule(r, gpu, p, NULL, micro, &s, &err) == 0)
		not_negative(s.step);
	sched_done(&s);
	mo_error_done(&err);
	for (unsigned i = take(b, 4); i > 0; i--)
		plan_anchor_add(&a, r, doc,
				p->step_time_s.total * measured[take(b, ELEMENTSOF(measured))],
				p->memory_gb.total * measured[take(b, ELEMENTSOF(measured))]);
	plan_anchor_apply(&a, r, gpu->name, doc);
	plan_anchor_done(&a);
	whole(doc);
	plan_apply(doc, r);
	plan_apply_layout(r);
}

static void planned(struct bytes *b, struct recipe *r)
{
	static const int64_t sizes[] = { 8, 512, 7, 131072 };
	static const char *const curves[] = {
		NULL,
		NULL,
		" 1024 256 float none -1 10 5 5 0\n 1048576 256 float none -1 10 50 50 0\n",
		" 1024 256 float none -1 10 nan -1 0\n",
		" 1e308 1 float none -1 1e-300 1e300 1e-300 0\n",
		""
	};
	struct plan_options o = { .top = take(b, 4),
				  .tokens = take(b, 2) ? 15e12 : 0,
				  .open = take(b, 4) == 1,
				  .even_layers = take(b, 2),
				  .alltoall = curves[take(b, ELEMENTSOF(curves))],
				  .reduce = curves[take(b, ELEMENTSOF(curves))] };
	struct plan_doc doc;
	struct mo_error err = { 0 };
	struct gpu_type gpu;

	o.fabric = (struct plan_fabric){ PICK(b, 0, 0, 1, 8, 32, 131072),
					 (double)PICK(b, 1, 2, 1000) };

	if (!r->parallelism.automatic && take(b, 2)) {
		o.scale = sizes;
		o.n_scale = take(b, ELEMENTSOF(sizes) + 1);
	}
	mo_desc_init(&plan_doc_desc, &doc);
	mo_desc_init(&gpu_type_desc, &gpu);
	if (r->gpu && gpu_type_load(r->gpu, &gpu, &err) == 0 &&
	    (!r->parallelism.automatic ||
	     (r->gpus <= SEARCH_GPUS_MAX && r->global_batch <= SEARCH_BATCH_MAX))) {
		int k = plan_make(r, &gpu, &o, &doc, &err);

		if ((k < 0) != (err.text != NULL))
			abort();
		if (k == 0) {
			whole(&doc);
			after(b, r, &gpu, &doc);
		}
	}
	mo_error_done(&err);
	mo_desc_done(&gpu_type_desc, &gpu);
	mo_desc_done(&plan_doc_desc, &doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	struct bytes b = { data, n };
	struct recipe r;
	char **warnings = NULL;
	size_t n_warnings = 0;

	if (n && data[0] & 1)
		mo_buf_add(&text, data, n);
	else {
		take(&b, 1);
		put_recipe(&b, &text);
	}
	mo_buf_str(&text, "");
	if (getenv("FUZZ_SHOW"))
		fputs(text.data, stderr);
	mo_desc_init(&recipe_desc, &r);
	if (recipe_parse(text.data, text.len, NULL, 0, &r, NULL, &warnings, &n_warnings, &errors) ==
	    0)
		planned(&b, &r);
	for (size_t i = 0; i < n_warnings; i++)
		free(warnings[i]);
	free(warnings);
	mo_desc_done(&recipe_desc, &r);
	return 0;
}
