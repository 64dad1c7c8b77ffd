/* Parameters and FLOPs of a model, whatever it is sharded over. Private to lib/plan and to the
 * tests and benchmarks that look inside. */
#pragma once
#include "lib/model/recipe.h"

/* mean number of earlier tokens that a token attends to */
double model_context(const struct recipe_model *m, double seq);
void model_head_widths(const struct recipe_model *m, double *ret_qk, double *ret_v);
struct params {
	double attention; /* weights of one layer's attention, norms included */
	double dense_ffn, expert, shared, router; /* of one layer; expert = one expert */
	double embedding;                         /* V h, once */
	double total, active;                     /* whole model without MTP */
	double mtp;                               /* weights of all MTP layers */
};
struct params plan_params(const struct recipe_model *m);
/* Layers of [first, last) that have experts; 0 for a dense model. */
int64_t plan_moe_layers(const struct recipe_model *m, int64_t first, int64_t last);
/* Forward + backward FLOPs of one token at sequence length seq: 6 per active weight (embedding
 * look-up excluded) and causal attention counted half. */
double plan_flops_per_token(const struct recipe_model *m, int64_t seq);
