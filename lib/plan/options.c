/* The options of a plan as people write them: the same text and the same errors for moectl plan and POST /v1/plan. Callers: cli/plan.c, daemon/api_plan.c. */
#include <errno.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/plan/plan.h"

#define TOKENS_MAX 1e18

int plan_scale_parse(const char *text, int64_t ret[static PLAN_SCALE_MAX], size_t *ret_n, struct mo_error *err)
{
	_cleanup_(mo_freep) char *copy = mo_strdup(text);

	*ret_n = 0;
	for (char *rest = copy, *word; rest && (word = strsep(&rest, ","));) {
		if (*ret_n == PLAN_SCALE_MAX)
			return mo_error_set(err, -EINVAL, "more than %d numbers of GPUs; give fewer", PLAN_SCALE_MAX);
		if (mo_parse_i64(word, 1, PLAN_GPUS_MAX, &ret[*ret_n]) < 0)
			return mo_error_set(err, -EINVAL, "%.40s is no number of GPUs from 1 to %d; give a list such as 64,128,256", *word ? word : "nothing between commas", PLAN_GPUS_MAX);
		(*ret_n)++;
	}
	return 0;
}

int plan_tokens_parse(const char *text, double *ret, struct mo_error *err)
{
	size_t n = strlen(text);
	double unit = n && text[n - 1] == 'T' ? 1e12 : n && text[n - 1] == 'B' ? 1e9 : n && text[n - 1] == 'M' ? 1e6 : 1;
	_cleanup_(mo_freep) char *number = mo_strndup(text, unit > 1 ? n - 1 : n);

	if (mo_parse_double(number, ret) < 0 || !(*ret * unit >= 1) || !(*ret * unit <= TOKENS_MAX))
		return mo_error_set(err, -EINVAL, "%.40s is no number of tokens from 1 to 1e18; give one such as 15T, 500B or 2.5e12", *text ? text : "nothing");
	*ret *= unit;
	return 0;
}
