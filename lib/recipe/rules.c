/* Rules between keys: sharding against GPUs, experts, layers, heads and batch; what checkpoints
 * need; what an engine needs. Every error stands at the guilty value. */
#include "lib/recipe/rules.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/model/env_names.h"
#include "lib/model/limits.h"
#include "lib/recipe/args.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/directory.h"
#include "lib/recipe/env_limits.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/rules_batch.h"
#include "lib/recipe/rules_engine.h"
#include "lib/recipe/rules_layout.h"
#include "lib/recipe/rules_shell.h"

#define LL(x) ((long long)(x))

#define FAR 64 /* a divisor that many times the wished number is no advice */

/* "6 or 8": the divisors of a number next to the one that was wished. Looked for up to the root,
 * because both numbers come from the recipe and a controller that counts to 2^30 serves nobody
 * meanwhile. */
static char *near_divisors(int64_t wished, int64_t of)
{
	int64_t below = 1, above = 0;

	for (int64_t small = 1; of > 0 && small <= of / small; small++) {
		const int64_t pair[] = { small, of / small };

		for (size_t i = 0; of % small == 0 && i < ELEMENTSOF(pair); i++) {
			if (pair[i] <= wished)
				below = MO_MAX(below, pair[i]);
			if (pair[i] >= wished && pair[i] / FAR <= wished)
				above = above ? MO_MIN(above, pair[i]) : pair[i];
		}
	}
	return above > below ? mo_printf("%lld or %lld", LL(below), LL(above))
			     : mo_printf("%lld", LL(below));
}

static char *near_multiples(int64_t wished, int64_t unit)
{
	int64_t below = unit > 0 ? wished / unit * unit : 0, above;

	if (below > 0 && !__builtin_add_overflow(below, unit, &above))
		return mo_printf("%lld or %lld", LL(below), LL(above));
	return mo_printf("%lld", LL(MO_MAX(unit, 1)));
}

static int64_t gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* What tensor parallelism must divide of the model; 0 = anything will do. */
static int64_t widths(const struct recipe_model *m)
{
	int64_t of = m ? m->heads : 0;

	if (m && !m->mla && m->kv_heads != MO_NONE)
		of = gcd(of, m->kv_heads);
	return m && m->ffn != MO_NONE ? gcd(of, m->ffn) : of;
}

struct size {
	const char *path;
	int64_t n;
};

/* "pp 4 x ep 8" and how many GPUs that is. False: a size above 1 is not of the experiment's
 * files, so it may itself be what is wrong. */
static bool left_sizes(const struct rules *k, const struct size *sizes, size_t n, struct mo_buf *b,
		       int64_t *ret)
{
	*ret = 1;
	for (size_t i = 0; i < n; i++) {
		const struct ynode *said = ynode_find(k->root, sizes[i].path);

		if (sizes[i].n == 1)
			continue;
		if (!said || !said->left || !said->set || mo_starts_with(said->set, "the command"))
			return false;
		mo_buf_printf(b, "%s%s %lld", b->len ? " x " : "",
			      sizes[i].path + strlen("parallelism."), LL(sizes[i].n));
		*ret = mo_times(*ret, sizes[i].n);
	}
	return true;
}

/* All sizes are the experiment's, the number of GPUs is the recipe's, and they do not go
 * together: then the recipe is what its writer wrote, and the number what is wrong there. path,
 * near: the size that could give way, and how (NULL: it alone could not). False: nothing was
 * said. */
static bool blame_gpus(struct rules *k, const char *path, const char *near)
{
	const struct recipe_parallelism *p = &k->recipe->parallelism;
	const struct size dense[] = { { "parallelism.tp", p->tp },
				      { "parallelism.pp", p->pp },
				      { "parallelism.cp", p->cp } };
	const struct size experts[] = { { "parallelism.pp", p->pp },
					{ "parallelism.ep", p->ep },
					{ "parallelism.etp", p->etp } };
	_cleanup_(mo_buf_done) struct mo_buf a = { 0 }, b = { 0 };
	const struct ynode *gpus = ynode_find(k->root, "cluster.gpus");
	int64_t n_a, n_b;

	if (!gpus || !left_sizes(k, dense, ELEMENTSOF(dense), &a, &n_a) ||
	    !left_sizes(k, experts, ELEMENTSOF(experts), &b, &n_b))
		return false;
	int64_t unit = mo_times(n_a / gcd(n_a, n_b), n_b);

	if (unit > MO_RANKS_MAX || k->recipe->gpus % unit == 0)
		return false;
	_cleanup_(mo_freep) char *multiples = near_multiples(k->recipe->gpus, unit);
	_cleanup_(mo_freep) char *use =
		mo_printf("use cluster.gpus %s%s%s%s%s", multiples, near ? ", or " : "",
			  near ? path : "", near ? " " : "", near ? near : "");
	_cleanup_(mo_freep) char *who = unit == n_b   ? mo_printf("%s needs", b.data)
					: unit == n_a ? mo_printf("%s needs", a.data)
						      : mo_printf("%s and %s need", a.data, b.data);

	errors_at(k->errors, gpus, use, "cluster.gpus: %lld: the %s's %s a multiple of %lld",
		  LL(k->recipe->gpus), engine_files_word(k->engine), who, LL(unit));
	return true;
}

/* The same for a size that does not divide the `left` GPUs: what it could be beside the experts'
 * sizes. */
static bool blame_gpus_for(struct rules *k, const struct size *size, int64_t left)
{
	const struct recipe_parallelism *p = &k->recipe->parallelism;
	bool pp = mo_streq(size->path, "parallelism.pp");
	int64_t beside = mo_times(mo_times(p->ep, p->etp), pp ? 1 : p->pp), gpus = k->recipe->gpus;
	int64_t of = pp ? gcd(left, gpus / beside) : left;
	_cleanup_(mo_freep) char *near = gpus % beside ? NULL : near_divisors(size->n, of);

	return blame_gpus(k, size->path, near);
}

/* tp, pp and cp one after the other must divide the GPUs; what is left is dp. False = no
 * sharding to go on with. */
static bool check_world(struct rules *k)
{
	const struct recipe *r = k->recipe;
	const struct recipe_parallelism *p = &r->parallelism;
	const struct {
		const char *path, *name;
		int64_t n, divides;
	} sizes[] = {
		{ "parallelism.tp", "tp", p->tp, widths(r->model) },
		{ "parallelism.pp", "pp", p->pp, 0 },
		{ "parallelism.cp", "cp", p->cp, r->seq != MO_NONE ? r->seq : 0 },
	};
	_cleanup_(mo_buf_done) struct mo_buf product = { 0 };
	int64_t left = r->gpus;

	for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
		if (sizes[i].n == 1)
			continue;
		mo_buf_printf(&product, "%s%s %lld", product.len ? " x " : "", sizes[i].name,
			      LL(sizes[i].n));
		if (left % sizes[i].n) {
			int64_t ranks = mo_times(mo_times(p->tp, p->pp), p->cp);
			_cleanup_(mo_freep) char *near =
				near_divisors(sizes[i].n, gcd(left, sizes[i].divides));
			_cleanup_(mo_freep) char *gpus =
				ranks <= MO_RANKS_MAX ? near_multiples(r->gpus, ranks) : NULL;
			_cleanup_(mo_freep) char *hint =
				mo_printf("use %s %s%s%s", sizes[i].name, near,
					  gpus ? ", or cluster.gpus " : "", gpus ? gpus : "");

			if (!blame_gpus_for(k, &(struct size){ sizes[i].path, sizes[i].n },
					    gcd(left, sizes[i].divides)))
				errors_at(k->errors, PLACE(k, sizes[i].path, "cluster.gpus"), hint,
					  "%s: %s does not divide cluster.gpus %lld: tp x pp x cp "
					  "x dp must be the number of GPUs",
					  sizes[i].path, product.data, LL(r->gpus));
			return false;
		}
		left /= sizes[i].n;
	}
	if (p->dp != left) {
		errors_at(k->errors, PLACE(k, "parallelism.dp", "cluster.gpus"), NULL,
			  "parallelism.dp: tp %lld x pp %lld x cp %lld x dp %lld = %lld is not "
			  "cluster.gpus %lld: dp must be %lld, or auto",
			  LL(p->tp), LL(p->pp), LL(p->cp), LL(p->dp),
			  LL(mo_times(r->gpus / left, p->dp)), LL(r->gpus), LL(left));
		return false;
	}
	return true;
}

static void check_experts(struct rules *k)
{
	const struct recipe_parallelism *p = &k->recipe->parallelism;
	const struct recipe_model *m = k->recipe->model;
	int64_t stage = k->recipe->gpus / p->pp, experts = m && m->moe ? m->moe->experts : 0,
		width = m && m->moe ? m->moe->ffn : 0;
	_cleanup_(mo_freep) char
		*ep = near_divisors(p->ep, gcd(stage % p->etp ? stage : stage / p->etp, experts)),
		*etp = near_divisors(p->etp, gcd(stage % p->ep ? stage : stage / p->ep, width));
	_cleanup_(mo_freep) char *use_ep =
					 mo_printf("use %s%s%s", ep, p->etp > 1 ? ", or etp " : "",
						   p->etp > 1 ? etp : ""),
				 *use_etp = mo_printf("use %s", etp);

	if (m && !m->moe && (p->ep > 1 || p->etp > 1))
		errors_at(k->errors, PLACE(k, p->ep > 1 ? "parallelism.ep" : "parallelism.etp"),
			  NULL, "parallelism.%s: the model has no experts: use 1",
			  p->ep > 1 ? "ep" : "etp");
	else if (m && m->moe && m->moe->experts % p->ep)
		errors_at(k->errors, PLACE(k, "parallelism.ep"), use_ep,
			  "parallelism.ep: %lld does not divide the model's %lld experts",
			  LL(p->ep), LL(m->moe->experts));
	if (stage % p->etp && blame_gpus(k, "parallelism.etp", etp))
		return;
	if (stage % p->etp == 0 && stage / p->etp % p->ep && blame_gpus(k, "parallelism.ep", ep))
		return;
	if (stage % p->etp)
		errors_at(k->errors, PLACE(k, "parallelism.etp"), use_etp,
			  "parallelism.etp: %lld does not divide the %lld GPUs of a pipeline stage",
			  LL(p->etp), LL(stage));
	else if (stage / p->etp % p->ep)
		errors_at(k->errors, PLACE(k, "parallelism.ep"), use_ep,
			  p->etp > 1 ? "parallelism.ep: %lld does not divide the %lld GPUs of a "
				       "pipeline stage (tp x cp x dp) by etp"
				     : "parallelism.ep: %lld does not divide the %lld GPUs of a "
				       "pipeline stage (tp x cp x dp)",
			  LL(p->ep), LL(stage / p->etp));
	if (m && m->moe && m->moe->ffn % p->etp)
		errors_at(k->errors, PLACE(k, "parallelism.etp"), use_etp,
			  "parallelism.etp: %lld does not divide the experts' width %lld",
			  LL(p->etp), LL(m->moe->ffn));
}

static void check_pipeline(struct rules *k)
{
	const struct recipe_parallelism *p = &k->recipe->parallelism;
	const struct recipe_model *m = k->recipe->model;
	int64_t stages = mo_times(p->pp, p->vpp);

	if (p->vpp > 1 && p->pp == 1) {
		errors_at(k->errors, PLACE(k, "parallelism.vpp"), NULL,
			  "parallelism.vpp: %lld virtual stages need a pipeline: use pp above 1, "
			  "or vpp 1",
			  LL(p->vpp));
		return;
	}
	if (p->vpp == 1 && mo_streq(p->schedule, "interleaved"))
		errors_at(k->errors, PLACE(k, "parallelism.schedule"), NULL,
			  "parallelism.schedule: interleaved needs vpp above 1: use 1f1b");
	if (!m)
		return;
	if (stages > m->layers + 2) { /* embedding and loss count as stages */
		int64_t pp = MO_MIN(p->pp, m->layers);

		while (k->recipe->gpus / (p->tp * p->cp) % pp)
			pp--;
		_cleanup_(mo_freep) char *hint =
			p->vpp > 1 && p->pp <= m->layers
				? mo_printf("use vpp %lld or less", LL(m->layers / p->pp))
				: mo_printf("use pp %lld or less", LL(pp));

		errors_at(k->errors, PLACE(k, p->vpp > 1 ? "parallelism.vpp" : "parallelism.pp"),
			  hint,
			  "parallelism.%s: pp %lld x vpp %lld = %lld stages are more than the "
			  "model's %lld layers + 2 (embedding and loss)",
			  p->vpp > 1 ? "vpp" : "pp", LL(p->pp), LL(p->vpp), LL(stages),
			  LL(m->layers));
	}
}

static void check_width(struct rules *k)
{
	const struct recipe *r = k->recipe;
	const struct recipe_model *m = r->model;
	const struct recipe_parallelism *p = &r->parallelism;
	int64_t tp = p->tp;
	_cleanup_(mo_freep) char *cp = near_divisors(p->cp, gcd(r->gpus / (p->tp * p->pp),
								r->seq != MO_NONE ? r->seq : 0)),
				 *use_cp = mo_printf("use %s", cp);
	_cleanup_(mo_freep) char *near = near_divisors(tp,
						       gcd(r->gpus / (p->pp * p->cp), widths(m))),
				 *use = mo_printf("use %s", near);

	if (r->seq != MO_NONE && r->seq % p->cp)
		errors_at(k->errors, PLACE(k, "parallelism.cp"), use_cp,
			  "parallelism.cp: %lld does not divide batch.seq %lld", LL(p->cp),
			  LL(r->seq));
	if (!m)
		return;
	if (m->heads % tp)
		errors_at(k->errors, PLACE(k, "parallelism.tp"), use,
			  "parallelism.tp: %lld does not divide the model's %lld attention heads",
			  LL(tp), LL(m->heads));
	else if (!m->mla && m->kv_heads != MO_NONE && m->kv_heads % tp)
		errors_at(k->errors, PLACE(k, "parallelism.tp"), use,
			  "parallelism.tp: %lld does not divide the model's %lld key-value heads",
			  LL(tp), LL(m->kv_heads));
	else if (m->ffn != MO_NONE && m->ffn % tp)
		errors_at(k->errors, PLACE(k, "parallelism.tp"), use,
			  "parallelism.tp: %lld does not divide the model's feed-forward width "
			  "%lld",
			  LL(tp), LL(m->ffn));
}

/* global = micro x dp x a whole number of micro-batches. */
static void check_batch(struct rules *k, bool world_ok)
{
	const struct recipe *r = k->recipe;
	int64_t micro = r->micro == MO_NONE ? 1 : r->micro, dp = r->parallelism.dp,
		pp = r->parallelism.pp;
	const struct ynode *place = PLACE(k, "batch.global", "batch.global_tokens", "batch");

	if (r->global_tokens != MO_NONE && r->seq == MO_NONE)
		errors_at(k->errors, PLACE(k, "batch.global_tokens"), NULL,
			  "batch.global_tokens: it needs batch.seq");
	else if (r->global_tokens != MO_NONE && r->global_tokens % r->seq) {
		_cleanup_(mo_freep) char *near = near_multiples(r->global_tokens, r->seq),
					 *use = mo_printf("use %s", near);

		errors_at(k->errors, PLACE(k, "batch.global_tokens"), use,
			  "batch.global_tokens: %lld is no multiple of batch.seq %lld",
			  LL(r->global_tokens), LL(r->seq));
	} else if (r->global_tokens != MO_NONE && r->global_batch != r->global_tokens / r->seq)
		errors_at(k->errors, PLACE(k, "batch.global"), NULL,
			  "batch.global: %lld sequences are not global_tokens %lld / seq %lld: "
			  "give one of the two",
			  LL(r->global_batch), LL(r->global_tokens), LL(r->seq));
	else if (r->global_tokens != MO_NONE && r->global_batch > GLOBAL_BATCH_MAX)
		errors_at(k->errors, PLACE(k, "batch.global_tokens"), NULL,
			  "batch.global_tokens: %lld / seq %lld are %lld sequences: at most %d",
			  LL(r->global_tokens), LL(r->seq), LL(r->global_batch), GLOBAL_BATCH_MAX);
	if (r->global_batch == MO_NONE || !world_ok)
		return;
	bool chosen = r->parallelism.automatic && r->model;
	int64_t each = mo_times(micro, chosen ? 1 : dp);

	if (r->global_batch % each) {
		_cleanup_(mo_freep) char *near = near_multiples(r->global_batch, each);
		_cleanup_(mo_freep) char *near_micro =
			near_divisors(micro, MO_MAX(r->global_batch / (each / micro), 1));
		bool by_micro = micro > 1 && r->global_batch % (each / micro) == 0;
		_cleanup_(mo_freep) char *use =
			mo_printf("use %s%s%s", near, by_micro ? ", or batch.micro " : "",
				  by_micro ? near_micro : "");

		if (chosen)
			errors_at(k->errors, place, use,
				  "batch.global: %lld is no multiple of batch.micro %lld",
				  LL(r->global_batch), LL(micro));
		else
			errors_at(k->errors, place, use,
				  "batch.global: %lld is no multiple of micro %lld x dp %lld = "
				  "%lld",
				  LL(r->global_batch), LL(micro), LL(dp), LL(each));
		return;
	}
	if (!chosen && r->parallelism.vpp > 1 && r->global_batch / each % pp) {
		_cleanup_(mo_freep) char *near =
			near_multiples(r->global_batch, mo_times(each, pp));

		rules_warn(k, place,
			   "batch: %lld micro-batches are no multiple of pp %lld: interleaved "
			   "schedules usually ask for that: batch.global %s would do",
			   LL(r->global_batch / each), LL(pp), near);
	}
}

static void check_experts_of_model(struct rules *k)
{
	const struct recipe_model *m = k->recipe->model;
	const struct recipe_moe *e = m->moe;
	_cleanup_(mo_freep) char *groups = e->groups > 0 ? near_divisors(e->groups, e->experts)
							 : NULL,
				 *use_groups = mo_printf("use %s", groups ? groups : "0");
	_cleanup_(mo_freep) char *use_topk = mo_printf("use 1 to %lld", LL(e->experts)),
				 *use_dense = mo_printf("use 0 to %lld", LL(m->layers));

	if (e->topk > e->experts)
		errors_at(k->errors, PLACE(k, "model.moe.topk", "model"), use_topk,
			  "model.moe.topk: %lld is more than the %lld experts", LL(e->topk),
			  LL(e->experts));
	if (e->dense_layers > m->layers)
		errors_at(k->errors, PLACE(k, "model.moe.dense_layers", "model"), use_dense,
			  "model.moe.dense_layers: %lld is more than the %lld layers",
			  LL(e->dense_layers), LL(m->layers));
	if (e->every > 1 && e->dense_layers > 0)
		errors_at(k->errors, PLACE(k, "model.moe.every", "model"), NULL,
			  "model.moe.every: %lld does not go with dense_layers %lld: experts begin "
			  "with layer 0 then; give one of the two",
			  LL(e->every), LL(e->dense_layers));
	if (e->groups > 0 && e->experts % e->groups)
		errors_at(k->errors, PLACE(k, "model.moe.groups", "model"), use_groups,
			  "model.moe.groups: %lld does not divide the %lld experts", LL(e->groups),
			  LL(e->experts));
	if (e->topk_groups > MO_MAX(e->groups, 0) || (e->groups > 0 && e->topk_groups < 1))
		errors_at(k->errors, PLACE(k, "model.moe.topk_groups", "model.moe.groups", "model"),
			  NULL,
			  "model.moe.topk_groups: %lld of %lld groups: give both, topk_groups from "
			  "1 to groups",
			  LL(MO_MAX(e->topk_groups, 0)), LL(MO_MAX(e->groups, 0)));
}

static void check_model(struct rules *k)
{
	const struct recipe_model *m = k->recipe->model;

	if (!m)
		return;
	_cleanup_(mo_freep) char *heads = near_divisors(m->heads, m->hidden),
				 *use_heads = mo_printf("use %s", heads),
				 *kv = m->kv_heads != MO_NONE ? near_divisors(m->kv_heads, m->heads)
							      : NULL;
	_cleanup_(mo_freep) char *use_kv = mo_printf("use %s", kv ? kv : "1");

	if (m->head_dim == MO_NONE && !m->mla && m->hidden % m->heads)
		errors_at(k->errors, PLACE(k, "model.heads", "model"), use_heads,
			  "model.heads: %lld does not divide hidden %lld: give head_dim, or "
			  "another number",
			  LL(m->heads), LL(m->hidden));
	if (m->kv_heads != MO_NONE && m->heads % m->kv_heads)
		errors_at(k->errors, PLACE(k, "model.kv_heads", "model"), use_kv,
			  "model.kv_heads: %lld does not divide heads %lld", LL(m->kv_heads),
			  LL(m->heads));
	if (m->moe)
		check_experts_of_model(k);
	if (m->ffn == MO_NONE && (!m->moe || m->moe->dense_layers > 0 || m->moe->every > 1))
		errors_at(k->errors, PLACE(k, "model"), NULL,
			  "model: missing key 'ffn': the width of the %s layers",
			  m->moe ? "dense" : "feed-forward");
}

/* The planner chooses from a model, a batch and a kind of GPU; without a model all GPUs are
 * data-parallel. */
static void check_auto(struct rules *k)
{
	const struct recipe *r = k->recipe;
	/* an engine that cannot be told the batch takes a step of one micro-batch of every rank */
	bool stated = !k->engine->n_flags || rules_tells(k->engine, "batch.global");
	const char *batch = r->global_batch != MO_NONE ? NULL
			    : stated                   ? "batch.global"
			    : r->micro == MO_NONE      ? "batch.micro"
						       : NULL,
		   *missing = batch               ? batch
			      : r->seq == MO_NONE ? "batch.seq"
			      : !r->gpu           ? "cluster.gpu"
						  : NULL;

	if (r->parallelism.automatic && r->model && missing)
		errors_at(k->errors, PLACE(k, "parallelism"),
			  stated ? NULL
				 : "a step is then one micro-batch of every rank, because the "
				   "engine "
				   "has no setting for batch.global",
			  "parallelism: auto needs %s to choose the sharding: give it, or the "
			  "sizes (tp, pp, ep, ...)",
			  missing);
	const struct ynode *asked = ynode_find(k->root, "parallelism");

	if (!r->model && asked && asked->kind == YAML_SCALAR && !ynode_is_null(asked))
		rules_warn(k, asked, "parallelism: auto: there is no model to choose by: %s%s%s",
			   recipe_leaves(r, "parallelism.tp") ? "the " : "",
			   recipe_leaves(r, "parallelism.tp") ? engine_files_word(k->engine) : "",
			   recipe_leaves(r, "parallelism.tp") ? "'s own sharding stands"
							      : "all GPUs are data-parallel");
	if (r->checkpoint.automatic)
		rules_warn(k, PLACE(k, "checkpoint.every"),
			   "checkpoint.every: auto begins with %lld iterations, because there is "
			   "no %s to estimate the interval by; it follows measured saves from the "
			   "next attempt on",
			   LL(r->checkpoint.every), r->model ? missing : "model");
}

MO_DEFINE_DONE(gpu_type)

/* A precision that the GPU has no units for may run slowly, or fail on its first step; which of
 * the two is the engine's to know. */
static void check_precision(struct rules *k)
{
	const struct recipe *r = k->recipe;
	_cleanup_(gpu_type_done) struct gpu_type gpu;

	mo_desc_init(&gpu_type_desc, &gpu);
	if (!r->gpu || !r->precision || gpu_type_load(r->gpu, &gpu, NULL) < 0 ||
	    gpu_peak_tflops(&gpu, r->precision) != MO_NONE_F)
		return;
	rules_warn(k, PLACE(k, "precision", "cluster.gpu"),
		   "precision: %s: %s has none by the catalogue: the job may fail on its first "
		   "step, and nothing is planned; use %s",
		   r->precision, r->gpu,
		   gpu.fp8_tflops != MO_NONE_F ? "fp8, bf16 or another cluster.gpu"
					       : "bf16 or another cluster.gpu");
}

/* The interval of a save that the engine's own experiment says, by the word that a recipe would
 * say it with. */
static int64_t every_of_experiment(const struct rules *k, const struct ynode **ret_place)
{
	int64_t every = MO_NONE;

	for (size_t i = 0; i < k->engine->n_flags; i++) {
		const char *flag =
			k->engine->flags[i].value + strspn(k->engine->flags[i].value, "-");
		_cleanup_(mo_freep) char *key = mo_strndup(flag, strcspn(flag, "= "));
		_cleanup_(mo_freep) char *path = mo_printf("experiment.args.%s", key);
		const char *said = recipe_experiment_arg(k->recipe, key);

		if (!mo_streq(k->engine->flags[i].key, "checkpoint.every"))
			continue;
		if (said && mo_parse_i64(said, 1, INT64_MAX, &every) == 0)
			*ret_place = PLACE(k, path, "engine.entry", "checkpoint.dir");
	}
	return every;
}

/* Does the command say that the last state is not saved? */
static bool last_save_is_off(const struct rules *k)
{
	struct args command;
	bool off = false;

	args_command(k, &command);
	for (size_t i = 0; k->engine->checks && i < k->engine->checks->n_last_save_off; i++) {
		const struct kv *row = &k->engine->checks->last_save_off[i];
		const struct arg *arg = args_find(&command, row->key);

		off |= condition_holds(row->value,
				       arg ? arg_text(arg)
					   : recipe_experiment_arg(k->recipe, row->key));
	}
	args_done(&command);
	return off;
}

/* Saves that come after the job's end: only its last state exists, and before that a failure
 * costs all. */
static void check_saves(struct rules *k)
{
	const struct recipe *r = k->recipe;
	const struct ynode *place = PLACE(k, "checkpoint.every", "checkpoint.dir");
	int64_t every = r->checkpoint.every;

	if (!r->checkpoint.dir || r->checkpoint.automatic || r->steps == MO_NONE)
		return;
	if (every == MO_NONE)
		every = every_of_experiment(k, &place);
	if (every == MO_NONE || every <= r->steps)
		return;
	const char *left =
		last_save_is_off(k) ? "nothing would be saved, because the last save is off too"
		: k->engine->needs_steps ? "only the state at the end is saved"
					 : "nothing is saved, unless the program saves at its end";

	rules_warn(k, place,
		   "checkpoint.every: %lld iterations are more than the job's %lld: %s, and a "
		   "failure before begins again at 0; use less, such as %lld",
		   LL(every), LL(r->steps), left, LL(MO_MAX(r->steps / 5, 1)));
}

/* "{name}", the first word in braces of a directory but the one that is replaced there (NULL:
 * none is); NULL: there is none. Caller frees. */
static char *brace_word(const char *dir, const char *replaced)
{
	for (const char *s = dir ? strchr(dir, '{') : NULL; s; s = strchr(s + 1, '{')) {
		size_t n = strspn(s + 1, "abcdefghijklmnopqrstuvwxyz_.");

		if (n && s[n + 1] == '}' && (s == dir || s[-1] != '$') &&
		    !(replaced && mo_starts_with(s, replaced)))
			return mo_strndup(s, n + 2);
	}
	return NULL;
}

/* Of checkpoint.dir before the engine's own directory is behind it. */
static void check_directories(struct rules *k)
{
	const struct ynode *dir = ynode_find(k->root, "checkpoint.dir");
	const struct ynode *workdir = ynode_find(k->root, "engine.workdir");
	_cleanup_(mo_freep) char *word = brace_word(dir ? dir->text : NULL, "{user}");
	_cleanup_(mo_freep) char *other = brace_word(workdir ? workdir->text : NULL, NULL);
	_cleanup_(mo_freep) char *clean = dir && dir->text ? mo_path_clean(dir->text) : NULL;

	if (word)
		errors_at(k->errors, dir, "write there what it stands for",
			  "checkpoint.dir: nothing replaces %s: {user} is the only word of a "
			  "directory",
			  word);
	if (other)
		errors_at(k->errors, workdir, "write there what it stands for",
			  "engine.workdir: nothing replaces %s", other);
	if (mo_streq(clean, "/"))
		errors_at(k->errors, dir, "name a directory for this job's checkpoints alone",
			  "checkpoint.dir: / is all of the machine's files");
}

static void check_checkpoint(struct rules *k)
{
	const struct recipe_checkpoint *c = &k->recipe->checkpoint;
	const struct {
		const char *path;
		bool given;
	} needs[] = { { "checkpoint.every", c->every != MO_NONE },
		      { "checkpoint.keep", c->keep > 0 },
		      { "checkpoint.resume", c->resume >= 0 },
		      { "checkpoint.layout", c->layout },
		      { "checkpoint.resume_args", c->n_resume_args > 0 } };

	for (size_t i = 0; !c->dir && i < ELEMENTSOF(needs); i++)
		if (needs[i].given)
			errors_at(k->errors, PLACE(k, needs[i].path), NULL,
				  "%s: it needs checkpoint.dir", needs[i].path);
	check_directories(k);
	check_saves(k);
	layout_rules(k);
	directory_rules(k);
}

/* The libraries cut off what a field cannot hold, or take their default, without a word. */
static void check_env_limit(struct rules *k, const struct env_limits *limits, const char *name,
			    const struct ynode *value)
{
	const struct env_limit *limit = env_limit(limits, name);
	int64_t n;

	if (!limit || !value->text[0] || mo_parse_i64(value->text, limit->min, limit->max, &n) == 0)
		return;
	errors_at(k->errors, value, NULL,
		  "env.%s: expected a whole number from %lld to %lld, got '%.60s': %s", name,
		  LL(limit->min), LL(limit->max), value->text, limit->reason);
}

static void check_env(struct rules *k)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(env_limits_done) struct env_limits limits = { 0 };
	const struct ynode *env = ynode_get(k->root, "env");

	if (env && env->n > 0 && env_limits_read(&limits, &err) < 0)
		errors_at(k->errors, env, err.hint, "env: %s", err.text);
	for (size_t i = 0; env && env->kind == YAML_MAP && i < env->n; i++) {
		const struct ynode *key = env->items[i].key, *value = env->items[i].value;

		if (mo_env_launch_name(key->text))
			errors_at(k->errors, key,
				  mo_env_visibility(key->text)
					  ? "choose the number of GPUs with cluster.gpus, and the "
					    "GPUs that a node lends in its agent.yaml"
					  : NULL,
				  "env: %s is set by the launcher and cannot be overridden: remove "
				  "it%s",
				  key->text,
				  mo_env_visibility(key->text)
					  ? "; of the variables that hide GPUs exactly one may be "
					    "set, because two of them filter twice"
					  : "");
		if (value->kind == YAML_SCALAR)
			check_env_limit(k, &limits, key->text, value);
		if (mo_streq(key->text, "HIP_FORCE_DEV_KERNARG") && value->kind == YAML_SCALAR &&
		    mo_streq(value->text, "1"))
			rules_warn(k, value,
				   "env.HIP_FORCE_DEV_KERNARG: kernel arguments then lie in VRAM, "
				   "HSA_KERNARG_POOL_SIZE bytes (12582912 unless the recipe says "
				   "otherwise) for each stream");
	}
}

static void check_exclude(struct rules *k)
{
	const struct ynode *list = ynode_find(k->root, "cluster.exclude");

	for (size_t i = 0; list && list->kind == YAML_LIST && i < list->n; i++) {
		const struct ynode *v = list->items[i].value;

		if (v->kind == YAML_SCALAR && !ynode_is_null(v) && !mo_name_valid(v->text))
			errors_at(k->errors, v, NULL, "cluster.exclude: '%.60s' is no node name",
				  v->text);
	}
}

static bool looks_like_id(const char *name)
{
	return name && mo_starts_with(name, "j-") && name[2] &&
	       strspn(name + 2, "0123456789") == strlen(name + 2);
}

static void check_rest(struct rules *k)
{
	const struct recipe *r = k->recipe;

	if (r->spares > 0)
		errors_at(k->errors, PLACE(k, "cluster.spares"), NULL,
			  "cluster.spares: %lld is not supported by this version: use 0; a job "
			  "waits in the queue for nodes, and a failed job restarts on any free "
			  "ones",
			  LL(r->spares));
	check_exclude(k);
	if (looks_like_id(r->name))
		errors_at(k->errors, PLACE(k, "name"), NULL,
			  "name: '%s' has the form of a job's id, so moectl would look for another "
			  "job: choose another name",
			  r->name);
	if (!ynode_is_null(ynode_find(k->root, "recovery.lease")) &&
	    mo_streq(r->on_node_loss, "wait"))
		rules_warn(k, PLACE(k, "recovery.lease"),
			   "recovery.lease: has no effect with on_node_loss: wait");
}

/* Sizes that only the engine's experiment says: without it nothing can be said of them, and
 * nothing false is. */
static void check_unread(struct rules *k)
{
	_cleanup_(mo_buf_done) struct mo_buf sizes = { 0 };

	for (size_t i = 0; i < k->recipe->n_left; i++)
		if (mo_starts_with(k->recipe->left[i], "parallelism.") &&
		    !ynode_find(k->root, k->recipe->left[i]))
			mo_buf_printf(&sizes, "%s%s", sizes.len ? ", " : "",
				      k->recipe->left[i] + strlen("parallelism."));
	if (k->recipe->experiment_hash) { /* -1, what is left, is no number */
		rules_warn(k, PLACE(k, "engine.entry", "engine"),
			   "parallelism: of %s the %s gives no number: the engine divides the GPUs "
			   "itself, and what depends on it is neither checked nor planned; give it "
			   "in the recipe's parallelism",
			   sizes.data, engine_files_word(k->engine));
		return;
	}
	_cleanup_(mo_freep) char *path = recipe_entry_path(k->recipe);

	rules_warn(k, PLACE(k, "parallelism", "engine.entry", "engine"),
		   "parallelism: %s are left to the %s, which was not read here%s%s%s: the engine "
		   "takes its values, and nothing is checked or planned by them; `moectl validate` "
		   "reads it where the files are",
		   sizes.data, engine_files_word(k->engine), path ? " (" : "", path ? path : "",
		   path ? ")" : "");
}

/* Without etp the experts are split as tp says: where tp itself is wrong, what follows of it for
 * etp is no second error. */
static void drop_consequences(struct rules *k)
{
	const struct ynode *etp = ynode_find(k->root, "parallelism.etp");
	_cleanup_(mo_freep) char *of_etp = NULL;
	struct recipe_errors *e = k->errors;
	bool tp = false;
	size_t kept = 0;

	if (!etp || !etp->left || !etp->set || !mo_starts_with(etp->set, "the command"))
		return;
	of_etp = mo_printf("%s: parallelism.etp: ", etp->set);
	for (size_t i = 0; i < e->n; i++)
		tp |= strstr(e->items[i].text, "parallelism.tp: ") != NULL;
	for (size_t i = 0; tp && i < e->n; i++) {
		if (mo_starts_with(e->items[i].text, of_etp))
			mo_error_done(&e->items[i]);
		else
			e->items[kept++] = e->items[i];
	}
	e->n = tp ? kept : e->n;
}

void rules_check(struct rules *k)
{
	bool world_ok = !k->recipe->unread && check_world(k);

	check_model(k);
	if (world_ok && !k->errors->n) {
		check_experts(k);
		check_pipeline(k);
		check_width(k);
	}
	/* With other sizes dp is another: what does not go with this one may go with that. */
	check_batch(k, world_ok && !k->errors->n);
	rules_batch(k);
	if (k->recipe->unread)
		check_unread(k);
	check_auto(k);
	check_precision(k);
	check_checkpoint(k);
	check_env(k);
	rules_shell(k);
	check_rest(k);
	rules_engine(k);
	drop_consequences(k);
}
