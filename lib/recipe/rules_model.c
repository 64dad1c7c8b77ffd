/* A model's sizes against each other and against the sharding. */
#include "lib/recipe/rules_model.h"

#include <stdio.h>

#include "lib/base/desc.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/rules_near.h"

void rules_width(struct rules *k)
{
	const struct recipe *r = k->recipe;
	const struct recipe_model *m = r->model;
	const struct recipe_parallelism *p = &r->parallelism;
	int64_t tp = p->tp;
	_cleanup_(
		mo_freep) char *cp = near_divisors(p->cp,
						   common_divisor(r->gpus / (p->tp * p->pp),
								  r->seq != MO_NONE ? r->seq : 0)),
			       *use_cp = mo_printf("use %s", cp);
	_cleanup_(mo_freep) char *near = near_divisors(tp, common_divisor(r->gpus / (p->pp * p->cp),
									  near_widths(m))),
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

void rules_model(struct rules *k)
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
