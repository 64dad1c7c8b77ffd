/* Sharding against GPUs, experts, layers and batch: sizes that do not divide each other are
 * reported with those next to them that do. */
#include "lib/recipe/rules_world.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/model/limits.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/rules_near.h"

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
	int64_t unit = mo_times(n_a / common_divisor(n_a, n_b), n_b);

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
	int64_t of = pp ? common_divisor(left, gpus / beside) : left;
	_cleanup_(mo_freep) char *near = gpus % beside ? NULL : near_divisors(size->n, of);

	return blame_gpus(k, size->path, near);
}

bool rules_world(struct rules *k)
{
	const struct recipe *r = k->recipe;
	const struct recipe_parallelism *p = &r->parallelism;
	const struct {
		const char *path, *name;
		int64_t n, divides;
	} sizes[] = {
		{ "parallelism.tp", "tp", p->tp, near_widths(r->model) },
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
				near_divisors(sizes[i].n, common_divisor(left, sizes[i].divides));
			_cleanup_(mo_freep) char *gpus =
				ranks <= MO_RANKS_MAX ? near_multiples(r->gpus, ranks) : NULL;
			_cleanup_(mo_freep) char *hint =
				mo_printf("use %s %s%s%s", sizes[i].name, near,
					  gpus ? ", or cluster.gpus " : "", gpus ? gpus : "");

			if (!blame_gpus_for(k, &(struct size){ sizes[i].path, sizes[i].n },
					    common_divisor(left, sizes[i].divides)))
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

void rules_experts(struct rules *k)
{
	const struct recipe_parallelism *p = &k->recipe->parallelism;
	const struct recipe_model *m = k->recipe->model;
	int64_t stage = k->recipe->gpus / p->pp, experts = m && m->moe ? m->moe->experts : 0,
		width = m && m->moe ? m->moe->ffn : 0;
	_cleanup_(mo_freep) char
		*ep = near_divisors(p->ep, common_divisor(stage % p->etp ? stage : stage / p->etp,
							  experts)),
		*etp = near_divisors(p->etp,
				     common_divisor(stage % p->ep ? stage : stage / p->ep, width));
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

void rules_pipeline(struct rules *k)
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

void rules_batch_sizes(struct rules *k, bool world_ok)
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
