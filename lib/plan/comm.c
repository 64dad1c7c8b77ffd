/* Seconds of one exchange between ranks, before computing hides any of it. Ranks lie as Megatron
 * places them: tensor parallel ranks next to each other, then context, data, pipeline; expert
 * ranks next to each other (parallel folding). A ring over several nodes uses the NIC of every
 * member that a node has; what a node's own GPUs exchange takes the links. Measured curves
 * (rccl-tests) replace the catalogue's bandwidth. Callers: time.c, memory.c. */
#include "lib/plan/comm.h"

#include <math.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/parse.h"
#include "lib/plan/curve.h"
#include "lib/plan/params.h"
#include "lib/plan/shape.h"

static double nic(const struct shape *s)
{
	return s->nic_gbps / 8 * 1e9;
}

/* Are a node's GPUs linked in pairs, without a switch? */
static bool mesh(const struct shape *s)
{
	return s->gpu->link_gbs != MO_NONE_F && s->gpu->link_gbs < s->gpu->scaleup_gbs;
}

/* Bytes/s out of one of n GPUs of a node to the others. On a mesh n of 8 reach only (n - 1) / 7
 * of the links. */
static double links(const struct shape *s, double n)
{
	const struct gpu_type *g = s->gpu;
	double reach = mesh(s) ? MO_MIN((n - 1) / (double)MO_MAX(g->domain_gpus - 1, 1), 1) : 1;

	mo_assert(n >= 1);
	return g->scaleup_gbs * reach * 1e9 * shape_k(s)->scaleup_use;
}

/* How much slower the leaf switches' uplinks make what leaves a leaf; crossing: its share of
 * what the NICs below carry. */
static double uplinks(const struct shape *s, double crossing)
{
	return s->fabric.leaf_gpus > 0 ? MO_MAX(crossing * s->fabric.spine, 1) : 1;
}

/* Seconds to move bytes through every member of a ring of n ranks that lie stride apart. */
static double ring(const struct shape *s, double n, double stride, double bytes, bool reduces)
{
	const struct plan_constants *k = shape_k(s);
	double domain = (double)s->gpu->domain_gpus,
	       members = MO_MAX(MO_MIN(floor(domain / stride), n), 1);

	mo_assert(n >= 1 && bytes >= 0);
	if (n <= 1 || bytes <= 0)
		return 0;
	double rate = n * stride <= domain ? links(s, n)
					   : MO_MIN(members * nic(s) * k->nic_use,
						    members > 1 ? links(s, members) : INFINITY);

	double leaf = (double)s->fabric.leaf_gpus, in_leaf = MO_MAX(floor(leaf / stride), 1);

	/* of the members in a leaf one sends to the next leaf */
	if (n * stride > MO_MAX(leaf, domain))
		rate = MO_MIN(rate, members * nic(s) * k->nic_use / uplinks(s, 1 / in_leaf));
	if (reduces && s->reduce_curve && n * stride > domain)
		rate = curve_at(s->reduce_curve, bytes) * 1e9;
	return bytes * (n - 1) / n / rate + k->collective_s + (n - 1) * k->ring_step_s;
}

/* Two all-gathers and two reduce-scatters of a sequence's activations, or two all-reduces
 * without sequence parallelism: the same bytes. */
double comm_tp(const struct shape *s)
{
	double bytes = 2 * shape_tokens(s) * (double)s->model->hidden;

	return s->tp > 1 ? 4 * ring(s, (double)s->tp, 1, bytes, false) : 0;
}

/* Keys and values of the whole sequence pass by each rank. MLA sends the up-projected ones. */
double comm_cp(const struct shape *s)
{
	const struct recipe_model *m = s->model;
	double kv = m->kv_heads != MO_NONE && !m->mla ? (double)m->kv_heads : (double)m->heads, qk,
	       v;

	model_head_widths(m, &qk, &v);
	double bytes = 2 * shape_tokens(s) * (double)s->cp * kv * (qk + v) / (double)s->tp;

	return s->cp > 1 ? ring(s, (double)s->cp, (double)s->tp, bytes, false) : 0;
}

/* No row falls on `few` of `all` experts when `rows` fall on different ones. */
static double missed(double all, double few, double rows)
{
	double none = 1;

	for (int64_t i = 0; i < (int64_t)rows; i++)
		none *= MO_MAX(all - few - (double)i, 0) / MO_MAX(all - (double)i, 1);
	return none;
}

/* Of n equal places, on nodes or ranks next to each other, those that a token reaches: its k
 * experts are different ones. Node-limited routing: they lie in `limit` of the groups, those
 * with the largest sums of their first k / limit scores (Megatron, DeepSeek-V3), so the best
 * expert of each of them is among the k; the other rows fall anywhere in these groups. */
double comm_reached(const struct recipe_moe *m, double n)
{
	double k = (double)m->topk, experts = (double)m->experts, each = experts / n,
	       groups = (double)m->groups, limit = (double)m->topk_groups;

	mo_assert(n >= 1 && m->experts > 0);
	/* one score per group: its first k experts are the first of all */
	if (m->groups <= 0 || m->topk_groups <= 0 || m->topk_groups >= m->groups ||
	    m->topk <= m->topk_groups)
		return n * (1 - missed(experts, each, k));
	if (n <= groups)
		return n * (1 - missed(groups, groups / n, limit));
	double places = n / groups, others = limit * (experts / groups - 1);

	return limit * places * (1 - (1 - 1 / places) * missed(others, each, k - limit));
}

/* Copies of one token that travel the node's links: plain, each of the k routed rows; DeepEP,
 * one per rank that has any of their experts, those from other nodes forwarded in the last one. */
static double copies_near(const struct shape *s, double inside)
{
	const struct recipe_moe *m = s->model->moe;

	return (s->features.deepep ? comm_reached(m, (double)s->ep) : (double)m->topk) *
	       (inside - 1) / inside;
}

/* Copies of one token that leave the node: plain, each of the k routed rows whose expert is
 * elsewhere; DeepEP, one per node that has any of them. */
static double copies_out(const struct shape *s, double nodes)
{
	const struct recipe_moe *m = s->model->moe;

	return (s->features.deepep ? comm_reached(m, nodes) : (double)m->topk) * (nodes - 1) /
	       nodes;
}

/* Of what goes to other nodes the share that leaves the leaf, for a group of so many GPUs on so
 * many nodes. */
static double beyond_leaf(const struct shape *s, double gpus, double nodes)
{
	/* nodes of the group below a leaf */
	double near = floor((double)s->fabric.leaf_gpus / (gpus / nodes));

	return near < nodes ? (nodes - MO_MAX(near, 1)) / (nodes - 1) : 0;
}

double comm_a2a(const struct shape *s)
{
	const struct plan_constants *k = shape_k(s);
	const struct recipe_model *m = s->model;
	double x = (double)s->ep, y = (double)s->etp,
	       inside = MO_MIN(x, MO_MAX(floor((double)s->gpu->domain_gpus / y), 1));

	if (!m->moe || x * y <= 1)
		return 0;
	double row = shape_tokens(s) / (double)s->tp * (double)m->hidden * 2,
	       topk = (double)m->moe->topk, nodes = ceil(x / inside);
	double near = row * copies_near(s, inside), far = row * copies_out(s, nodes),
	       rate = nic(s) * k->a2a_nic_use;
	double time = inside > 1 ? near / links(s, inside) : 0,
	       peers = s->features.deepep ? inside + nodes - 1 : x;

	/* measured with what stays inside the nodes */
	if (nodes > 1 && s->a2a_curve && !s->features.deepep)
		time = row * topk * (x - 1) / x / (curve_at(s->a2a_curve, row * topk) * 1e9);
	else if (nodes > 1)
		time = MO_MAX(time, far / rate * uplinks(s, beyond_leaf(s, x * y, nodes)) *
					    (mesh(s) && !s->features.deepep
						     ? pow(nodes / 2, k->a2a_congestion)
						     : 1));
	/* the ranks that share an expert gather its rows */
	time += ring(s, y, 1, row * topk * y, false);
	return 2 * (time + k->collective_s + peers * k->a2a_peer_s);
}

double comm_p2p(const struct shape *s)
{
	double bytes = 2 * shape_tokens(s) * (double)s->model->hidden / (double)s->tp;
	bool near = s->gpus <= s->gpu->domain_gpus;

	/* stages lie one behind the other: all GPUs of a stage send to the next one at once,
	 * those of a leaf's last stage out of the leaf */
	double leaf = (double)s->fabric.leaf_gpus,
	       stage = (double)s->gpus / (double)MO_MAX(s->pp, 1),
	       slower = (double)s->gpus > leaf ? uplinks(s, MO_MIN(stage, leaf) / leaf) : 1;

	return s->pp > 1 ? bytes / (near ? links(s, 2) : nic(s) * shape_k(s)->nic_use / slower) +
				   shape_k(s)->collective_s
			 : 0;
}

bool comm_fsdp(const struct shape *s)
{
	return mo_streq(s->sharding, "zero3");
}

double shape_shards(const struct shape *s)
{
	double all = (double)(s->dp * s->cp);

	return s->shard > 0 ? MO_MIN((double)s->shard, all) : all;
}

/* Of a weight that its owner sends to the others. */
double comm_weight_bytes(const struct shape *s)
{
	return s->features.narrow_gather &&
			       (mo_streq(s->precision, "fp8") || mo_streq(s->precision, "mxfp8"))
		       ? 1
		       : 2;
}

double comm_fsdp_gather(const struct shape *s, double weights, bool experts)
{
	if (experts)
		return ring(s, (double)shape_edp(s), (double)(s->ep * s->etp),
			    comm_weight_bytes(s) * weights, false);
	return ring(s, shape_shards(s), (double)s->tp, comm_weight_bytes(s) * weights, false);
}

double comm_grads(const struct shape *s, double dense, double experts)
{
	double grad = shape_grad_bytes(s),
	       bytes = grad + (mo_streq(s->sharding, "none") ? grad : comm_weight_bytes(s));

	return ring(s, (double)(s->dp * s->cp), (double)s->tp, bytes * dense, true) +
	       ring(s, (double)shape_edp(s), (double)(s->ep * s->etp), bytes * experts, true);
}
