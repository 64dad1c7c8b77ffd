/* See runaway.h. A net, not a proof: lines are matched within a limit anyway
 * (agent/core/text/lines.c). Called for every pattern of an engine file. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "lib/recipe/runaway.h"

#include <pcre2.h>
#include <string.h>
#include <uthash.h>

#define RUN 64
#define KNOWN_MAX 4096
/* what agent/core/text/lines.c grants a line; patterns that end need some hundreds here */
#define STEPS 100000

/* Of a user's patterns: each is tried with few steps, and again with more where those are not
 * enough, as long as there is room for it. A step takes 30 ns, and more the more groups there
 * are. */
static const struct {
	uint32_t steps;
	int tries;
} levels[] = { { 1000, 200 }, { 20000, 12 }, { STEPS, 3 } };
#define GROUPS_FREE 16

static struct {
	bool on;
	int left[ELEMENTSOF(levels)];
} budget;

void pattern_budget_begin(void)
{
	budget.on = true;
	for (size_t i = 0; i < ELEMENTSOF(levels); i++)
		budget.left[i] = levels[i].tries;
}

void pattern_budget_end(void)
{
	budget.on = false;
}

static bool over_limit(const pcre2_code *re, const char *text, size_t n, uint32_t steps,
		       pcre2_match_data *data, pcre2_match_context *context)
{
	uint32_t groups = 0;

	pcre2_pattern_info(re, PCRE2_INFO_CAPTURECOUNT, &groups);
	pcre2_set_match_limit(context, budget.on ? steps / (1 + groups / GROUPS_FREE) : steps);
	return pcre2_match(re, (PCRE2_SPTR)text, n, 0, 0, data, context) == PCRE2_ERROR_MATCHLIMIT;
}

static bool probe(const pcre2_code *re, const char *prefix, size_t n, char c,
		  pcre2_match_data *data, pcre2_match_context *context)
{
	char text[2 * RUN + 1];

	memcpy(text, prefix, n);
	memset(text + n, c, RUN);
	text[n + RUN] = 1; /* which no pattern waits for */
	for (size_t i = 0; budget.on && i < ELEMENTSOF(levels); i++)
		if (budget.left[i]-- <= 0 ||
		    !over_limit(re, text, n + RUN + 1, levels[i].steps, data, context))
			return false;
	return budget.on || over_limit(re, text, n + RUN + 1, STEPS, data, context);
}

static bool tries_away(const char *pattern)
{
	int code;
	PCRE2_SIZE offset;
	/* without the shortcut that looks for a character which must be there: some line will
	 * have it */
	pcre2_code *re =
		pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
			      PCRE2_DUPNAMES | PCRE2_NO_START_OPTIMIZE, &code, &offset, NULL);

	if (!re)
		return false;
	pcre2_match_data *data = pcre2_match_data_create(1, NULL);
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	size_t n = MO_MIN(strcspn(pattern, "\\^$.[|()?*+{"), (size_t)RUN);
	bool seen[256] = { false }, away = false;

	for (const char *other = " 0a"; *other && !away; other++) {
		seen[(unsigned char)*other] = true;
		away = probe(re, pattern, n, *other, data, context);
	}
	for (const char *c = pattern; *c && !away; c++) {
		bool known = seen[(unsigned char)*c];

		seen[(unsigned char)*c] = true;
		away = !known && probe(re, pattern, n, *c, data, context);
	}
	pcre2_match_context_free(context);
	pcre2_match_data_free(data);
	pcre2_code_free(re);
	return away;
}

/* Patterns of data files, which are read again and again: those that are known to end. */
struct known {
	UT_hash_handle hh;
	char pattern[];
};
static struct known *known;

static void forget_known(void)
{
	struct known *k, *next;

	HASH_ITER(hh, known, k, next) {
		HASH_DEL(known, k);
		free(k);
	}
}

bool pattern_runs_away(const char *pattern)
{
	struct known *k = NULL;
	size_t n = strlen(pattern);

	HASH_FIND(hh, known, pattern, n, k);
	if (k)
		return false;
	bool away = tries_away(pattern);
	if (away || budget.on) /* a user's are not kept: there are as many as he likes */
		return away;
	if (HASH_COUNT(known) >= KNOWN_MAX)
		forget_known();
	k = mo_alloc(sizeof(*k) + n + 1);
	memcpy(k->pattern, pattern, n + 1);
	HASH_ADD_KEYPTR(hh, known, k->pattern, n, k);
	return false;
}
