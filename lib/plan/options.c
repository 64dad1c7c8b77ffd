/* The options of a plan as people write them: the same text and the same errors for moectl plan
 * and POST /v1/plan. Callers: cli/plan.c, daemon/api_plan.c. */
#include "lib/plan/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/plan/plan.h"

#define TOKENS_MAX 1e18
/* per 1000 node-days: a failure of each node every quarter of an hour */
#define RATE_MAX 1e5
#define TARGET_MAX 0.999999
#define SPINE_MAX 1000

int plan_scale_parse(const char *text, int64_t ret[static PLAN_SCALE_MAX], size_t *ret_n,
		     struct mo_error *err)
{
	_cleanup_(mo_freep) char *copy = mo_strdup(text);

	*ret_n = 0;
	for (char *rest = copy, *word; rest && (word = strsep(&rest, ","));) {
		if (*ret_n == PLAN_SCALE_MAX)
			return mo_error_set(err, -EINVAL,
					    "more than %d numbers of GPUs; give fewer",
					    PLAN_SCALE_MAX);
		if (mo_parse_i64(word, 1, PLAN_GPUS_MAX, &ret[*ret_n]) < 0)
			return mo_error_set(err, -EINVAL,
					    "%.40s is no number of GPUs from 1 to %d; give a list "
					    "such as 64,128,256",
					    *word ? word : "nothing between commas", PLAN_GPUS_MAX);
		(*ret_n)++;
	}
	return 0;
}

int plan_tokens_parse(const char *text, double *ret, struct mo_error *err)
{
	size_t n = strlen(text);
	double unit = n && text[n - 1] == 'T'   ? 1e12
		      : n && text[n - 1] == 'B' ? 1e9
		      : n && text[n - 1] == 'M' ? 1e6
						: 1;
	_cleanup_(mo_freep) char *number = mo_strndup(text, unit > 1 ? n - 1 : n);

	if (mo_parse_double(number, ret) < 0 || !(*ret * unit >= 1) || !(*ret * unit <= TOKENS_MAX))
		return mo_error_set(err, -EINVAL,
				    "%.40s is no number of tokens from 1 to 1e18; give one such as "
				    "15T, 500B or 2.5e12",
				    *text ? text : "nothing");
	*ret *= unit;
	return 0;
}

/* A share: "95%" or 0.95. */
static int read_share(const char *text, double *ret)
{
	size_t n = strlen(text);
	bool percent = n && text[n - 1] == '%';
	_cleanup_(mo_freep) char *number = mo_strndup(text, percent ? n - 1 : n);

	if (mo_parse_double(number, ret) < 0)
		return -EINVAL;
	*ret /= percent ? 100 : 1;
	return *ret > 0 && *ret <= TARGET_MAX ? 0 : -EINVAL;
}

static int read_seconds(const char *text, double *ret)
{
	int64_t us;

	if (mo_parse_duration_us(text, &us) < 0 || us <= 0)
		return -EINVAL;
	*ret = (double)us / 1e6;
	return 0;
}

static int read_rate(const char *text, double *ret)
{
	return mo_parse_double(text, ret) == 0 && *ret >= 1e-6 && *ret <= RATE_MAX ? 0 : -EINVAL;
}

int plan_failures_parse(const char *text, struct plan_failures *ret, struct mo_error *err)
{
	static const struct {
		const char *key;
		size_t at;
		int (*read)(const char *, double *);
		const char *what;
	} rows[] = {
		{ "rate", offsetof(struct plan_failures, rate), read_rate,
		  "failures per 1000 node-days such as 6.5" },
		{ "restart", offsetof(struct plan_failures, restart_s), read_seconds,
		  "a time such as 90s or 5m" },
		{ "repair", offsetof(struct plan_failures, repair_s), read_seconds,
		  "a time such as 3d" },
		{ "spares", offsetof(struct plan_failures, spare_target), read_share,
		  "a share of failures such as 95% or 99.9%" },
		{ "save", offsetof(struct plan_failures, save_s), read_seconds,
		  "a time such as 30s" },
	};
	_cleanup_(mo_freep) char *copy = mo_strdup(text);
	struct plan_failures f = { 0 };

	for (char *rest = copy, *word; rest && (word = strsep(&rest, ","));) {
		char *value = strchr(word, '=');
		size_t i = 0;

		if (value)
			*value++ = 0;
		for (; i < ELEMENTSOF(rows) && !mo_streq(rows[i].key, word); i++)
			;
		if (!value || i == ELEMENTSOF(rows))
			return mo_error_set(err, -EINVAL,
					    "%.40s is none of rate=, restart=, repair=, spares=, "
					    "save=; give for example "
					    "rate=6.5,restart=5m,repair=3d,spares=95%%,save=30s",
					    *word ? word : "nothing");
		if (rows[i].read(value, (double *)((char *)&f + rows[i].at)) < 0)
			return mo_error_set(err, -EINVAL, "%s=%.40s: must be %s", word, value,
					    rows[i].what);
	}
	*ret = f;
	return 0;
}

int plan_fabric_parse(const char *text, struct plan_fabric *ret, struct mo_error *err)
{
	static const char hint[] = "give for example leaf=256,spine=2: 256 GPUs below a leaf "
				   "switch, which has twice as much bandwidth below as above";
	_cleanup_(mo_freep) char *copy = mo_strdup(text);
	struct plan_fabric f = { 0, 1 };

	for (char *rest = copy, *word; rest && (word = strsep(&rest, ","));) {
		bool leaf = mo_starts_with(word, "leaf="), spine = mo_starts_with(word, "spine=");
		const char *value = leaf || spine ? strchr(word, '=') + 1 : "";

		if (!leaf && !spine)
			return mo_error_set(err, -EINVAL, "%.40s is none of leaf=, spine=; %s",
					    *word ? word : "nothing", hint);
		if (leaf && mo_parse_i64(value, 1, PLAN_GPUS_MAX, &f.leaf_gpus) < 0)
			return mo_error_set(err, -EINVAL,
					    "leaf=%.40s: must be a number of GPUs from 1 to %d; %s",
					    value, PLAN_GPUS_MAX, hint);
		if (spine && (mo_parse_double(value, &f.spine) < 0 ||
			      !(f.spine >= 1 && f.spine <= SPINE_MAX)))
			return mo_error_set(err, -EINVAL,
					    "spine=%.40s: must be a ratio from 1 to %d; %s", value,
					    SPINE_MAX, hint);
	}
	if (f.leaf_gpus == 0)
		return mo_error_set(err, -EINVAL, "leaf= is missing; %s", hint);
	*ret = f;
	return 0;
}
