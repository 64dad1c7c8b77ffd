/* The planner's options as people write them. */
#pragma once
#include "lib/plan/plan.h"

#define PLAN_SCALE_MAX 64
/* What people write for scale and tokens, on a command line and in a query string: "64,128,256";
 * "15T", "500B", "30M", "2.5e12". 0 or -EINVAL with err: what is wrong and what would do. */
int plan_scale_parse(const char *text, int64_t ret[static PLAN_SCALE_MAX], size_t *ret_n,
		     struct mo_error *err);
int plan_tokens_parse(const char *text, double *ret, struct mo_error *err);
/* "rate=6.5,restart=5m,repair=3d,spares=95%,save=30s": any of them. */
int plan_failures_parse(const char *text, struct plan_failures *ret, struct mo_error *err);
/* "leaf=256,spine=2" */
int plan_fabric_parse(const char *text, struct plan_fabric *ret, struct mo_error *err);
