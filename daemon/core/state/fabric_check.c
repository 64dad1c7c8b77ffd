/* See fabric_check.h. */
#include "daemon/core/state/fabric_check.h"

#include <math.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"

#define GBS_MAX 1e6
#define NAMED 3 /* of what is odd, in the sentence */

static const struct mo_field fabric_odd_fields[] = {
	MO_D(fabric_odd, node, MO_STR, "name of the node that stands out", .max = 256),
	MO_D(fabric_odd, peer, MO_STR,
	     "name of another one: the link between the two does; null: the node itself",
	     .max = 256),
	MO_D(fabric_odd, evidence, MO_STR, "its measurements, in words, 512 bytes at most",
	     .max = FABRIC_EVIDENCE_MAX),
};
const struct mo_desc fabric_odd_desc = MO_DESC(fabric_odd, fabric_odd_fields);
static const struct mo_field fabric_point_fields[] = {
	MO_D(fabric_point, bytes, MO_INT, "bytes of a rank"),
	MO_D(fabric_point, gbs, MO_REAL, "bus bandwidth, 10^9 bytes a second"),
};
const struct mo_desc fabric_point_desc = MO_DESC(fabric_point, fabric_point_fields);
static const struct mo_field fabric_result_fields[] = {
	MO_D(fabric_result, verdict, MO_ENUM,
	     "fine, odd (nodes or links are), together (each pair is well, all nodes are not), "
	     "untold, or nothing was measured",
	     .names = fabric_verdict_names, .n_names = _FABRIC_VERDICT_N),
	MO_D(fabric_result, nodes, MO_INT, "how many nodes were measured"),
	MO_D(fabric_result, all_gbs, MO_REAL,
	     "what all of them together reach, 10^9 bytes a second; null: it failed"),
	MO_D(fabric_result, pair_gbs, MO_REAL,
	     "what two of them reach, 10^9 bytes a second; null: no pair was measured"),
	MO_D_VEC(fabric_result, odd, &fabric_odd_desc, "nodes and links that stand out, 64 at most",
		 .max = FABRIC_ODD_MAX),
	MO_D_VEC(fabric_result, curve, &fabric_point_desc,
		 "what all together measured, sizes ascending, 32 at most",
		 .max = FABRIC_CURVE_MAX),
};
const struct mo_desc fabric_result_desc = MO_DESC(fabric_result, fabric_result_fields);
static const struct mo_field fabric_check_fields[] = {
	MO_D(fabric_check, time, MO_TIME, "when it was told"),
	MO_D(fabric_check, by, MO_STR, "who told it"),
	MO_D_SUB(fabric_check, found, MO_STRUCT, &fabric_result_desc, "what it found"),
};
const struct mo_desc fabric_check_desc = MO_DESC(fabric_check, fabric_check_fields);

static bool bandwidth(double gbs)
{
	return gbs >= 0 && gbs <= GBS_MAX;
}

static char *odd_problem(const struct fabric_result *f)
{
	if ((f->verdict == FABRIC_ODD) != (f->n_odd > 0))
		return mo_strdup("odd: nodes and links stand here when the verdict is odd, and "
				 "only then");
	for (size_t i = 0; i < f->n_odd; i++) {
		const struct fabric_odd *o = &f->odd[i];

		if (!mo_name_valid(o->node) ||
		    (o->peer && (!mo_name_valid(o->peer) || mo_streq(o->peer, o->node))))
			return mo_printf("odd[%zu]: name its node, and for a link another one as "
					 "peer",
					 i);
		if (!o->evidence || !*o->evidence)
			return mo_printf("odd[%zu]: evidence: say what was measured of %s", i,
					 o->node);
	}
	return NULL;
}

static char *curve_problem(const struct fabric_result *f)
{
	for (size_t i = 0; i < f->n_curve; i++) {
		const struct fabric_point *p = &f->curve[i];

		if (p->bytes < 1 || (i > 0 && p->bytes <= p[-1].bytes))
			return mo_printf("curve[%zu]: bytes: sizes must ascend, from 1 on", i);
		if (!bandwidth(p->gbs))
			return mo_printf("curve[%zu]: gbs: must be from 0 to %g", i, GBS_MAX);
	}
	return NULL;
}

char *fabric_result_problem(const struct fabric_result *f)
{
	char *problem;

	if (f->verdict < 0)
		return mo_strdup("verdict: say fine, odd, together, untold or nothing");
	if (f->nodes < 1 || f->nodes > FABRIC_NODES_MAX)
		return mo_printf("nodes: must be from 1 to %d", FABRIC_NODES_MAX);
	if ((f->all_gbs != MO_NONE_F && !bandwidth(f->all_gbs)) ||
	    (f->pair_gbs != MO_NONE_F && !bandwidth(f->pair_gbs)))
		return mo_printf("all_gbs, pair_gbs: must be from 0 to %g, or null", GBS_MAX);
	problem = odd_problem(f);
	return problem ? problem : curve_problem(f);
}

static void name_odd(const struct fabric_result *f, struct mo_buf *b)
{
	for (size_t i = 0; i < f->n_odd && i < NAMED; i++)
		mo_buf_printf(b, "%s%s%s%s%s", i ? ", " : "",
			      f->odd[i].peer ? "the link between " : "", f->odd[i].node,
			      f->odd[i].peer ? " and " : "", f->odd[i].peer ? f->odd[i].peer : "");
	if (f->n_odd > NAMED)
		mo_buf_printf(b, " and %zu more", f->n_odd - NAMED);
	mo_buf_str(b, f->n_odd == 1 ? " stands out" : " stand out");
}

char *fabric_result_text(const struct fabric_result *f)
{
	static const char *const words[_FABRIC_VERDICT_N] = {
		[FABRIC_FINE] = "no node and no link stands out",
		[FABRIC_TOGETHER] = "each pair is well, all nodes together are not",
		[FABRIC_UNTOLD] = "something is slow or fails, and no node is fast that could tell "
				  "which",
		[FABRIC_NOTHING] = "nothing could be measured",
	};
	struct mo_buf b = { 0 };

	mo_assert(f->verdict >= 0 && f->verdict < _FABRIC_VERDICT_N);
	mo_buf_printf(&b, "over %lld node%s: ", (long long)f->nodes, f->nodes == 1 ? "" : "s");
	if (words[f->verdict])
		mo_buf_str(&b, words[f->verdict]);
	else
		name_odd(f, &b);
	if (f->pair_gbs != MO_NONE_F)
		mo_buf_printf(&b, "; pairs reach %.1f GB/s", f->pair_gbs);
	if (f->all_gbs != MO_NONE_F)
		mo_buf_printf(&b, "%s all together %.1f GB/s", f->pair_gbs == MO_NONE_F ? ";" : ",",
			      f->all_gbs);
	return mo_buf_take(&b);
}
