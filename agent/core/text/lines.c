/* Output lines -> facts. Called by stepd for every line of every rank, so a line without a match
 * costs one pass to clean it and one (JIT) search per rule. Untrusted input: lengths are capped,
 * the match limit bounds backtracking, nothing is kept. */
#include "agent/core/text/lines.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "agent/core/text/line_matcher.h"
#include "lib/base/buf.h"
#include "lib/base/line.h"
#include "lib/model/limits.h"

/* a pattern that backtracks more on 8 KiB is not worth waiting for */
#define MATCH_LIMIT 100000
/* the same for nested ways back, which cost memory (without JIT, which has a stack of its own) */
#define DEPTH_LIMIT 10000
#define GIVE_UPS_MAX 100 /* a rule that gave up so often costs more than it tells */
#define MATCHES_PER_LINE 64

struct lines {
	struct line_matcher *rules;
	size_t n_rules;
	/* compiled with the first line: ranks start without waiting for it */
	bool jit;
	pcre2_match_data *data;
	pcre2_match_context *context;
	int64_t gave_up; /* of all rules */
	int64_t steps;
	struct sample none;
	struct text found[LINE_PAIRS_MAX];
	char clean[MO_LINE_MAX];
};

struct lines *lines_free(struct lines *l)
{
	if (!l)
		return NULL;
	for (size_t i = 0; i < l->n_rules; i++)
		line_matcher_done(&l->rules[i]);
	pcre2_match_data_free(l->data);
	pcre2_match_context_free(l->context);
	free(l->rules);
	free(l);
	return NULL;
}

int lines_new(const struct line_rule *rules, size_t n, struct lines **ret, struct mo_error *err)
{
	_cleanup_(lines_freep) struct lines *l = mo_alloc(sizeof(*l));

	l->rules = mo_alloc_array(n + 1, sizeof(*l->rules));
	for (size_t i = 0; i < n; i++) {
		l->n_rules = i + 1;
		int r = line_matcher_read(&l->rules[i], &rules[i], err);
		if (r < 0)
			return r;
	}
	mo_desc_init(&sample_desc, &l->none);
	l->data = pcre2_match_data_create(64, NULL);
	l->context = pcre2_match_context_create(NULL);
	if (!l->data || !l->context)
		return mo_error_set(err, -ENOMEM, "line rules: no memory for the pattern matcher");
	pcre2_set_match_limit(l->context, MATCH_LIMIT);
	pcre2_set_depth_limit(l->context, DEPTH_LIMIT);
	l->steps = MO_NONE;
	*ret = TAKE_PTR(l);
	return 0;
}

static void take_groups(const struct lines *l, const struct line_matcher *r, struct line_fact *f,
			struct line_rates *x)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(l->data);
	uint32_t pairs = pcre2_get_ovector_count(l->data);

	line_fact_init(f, x, &l->none);
	f->kind = r->kind;
	f->phase = r->phase;
	for (size_t i = 0; i < r->n_groups; i++) {
		uint32_t g = (uint32_t)r->groups[i].number;
		if (g < pairs && at[2 * g] != PCRE2_UNSET)
			line_fact_set(r->groups[i].field,
				      (struct text){ l->clean + at[2 * g],
						     at[2 * g + 1] - at[2 * g] },
				      true, f, x);
	}
}

static void take_pairs(struct lines *l, const struct line_matcher *r, struct text record,
		       struct line_fact *f, struct line_rates *x)
{
	pairs_find(record, r->separator, r->keys, r->n_keys, l->found);
	for (size_t i = 0; i < r->n_keys; i++)
		if (l->found[i].s)
			line_fact_set(r->targets[i], l->found[i], false, f, x);
}

static bool has_needs(const struct line_matcher *r, const struct line_fact *f)
{
	for (size_t i = 0; i < r->n_needs; i++) {
		const void *at = (const char *)&f->sample + r->needs[i]->offset;

		if (r->needs[i]->target == FIELD_INT ? *(const int64_t *)at == MO_NONE
						     : *(const double *)at == MO_NONE_F)
			return false;
	}
	return true;
}

/* Of the match just found. */
static bool is_of_steps(const struct lines *l, const struct line_matcher *r)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(l->data);
	struct number number;

	for (size_t i = 0; i < r->n_groups; i++) {
		size_t g = (size_t)r->groups[i].number;
		if (mo_streq(r->groups[i].field->name, "steps") && at[2 * g] != PCRE2_UNSET &&
		    number_read((struct text){ l->clean + at[2 * g], at[2 * g + 1] - at[2 * g] },
				true, &number))
			return l->steps != MO_NONE && number.v == (double)l->steps;
	}
	return false;
}

/* Megatron leaves the loss out when it is NaN, but then its counters are there: a record that
 * was cut off in the middle says nothing. */
static void judge_loss(const struct line_matcher *r, struct line_fact *f)
{
	bool whole = !r->counts || f->sample.skipped != MO_NONE || f->sample.nan != MO_NONE;

	if (r->missing_loss_is_nan && whole && f->sample.loss == MO_NONE_F)
		f->sample.loss = NAN;
}

static void jit(struct lines *l)
{
	for (size_t i = 0; !l->jit && i < l->n_rules; i++)
		/* where there is no JIT the interpreter does the same */
		pcre2_jit_compile(l->rules[i].code, PCRE2_JIT_COMPLETE);
	l->jit = true;
}

/* The next match from there; false when there is none. *ret_at, *ret_end: what it covers. */
static bool search(struct lines *l, struct line_matcher *r, size_t len, size_t from, size_t *ret_at,
		   size_t *ret_end)
{
	int e = from <= len ? pcre2_match(r->code, (PCRE2_SPTR)l->clean, len, from, 0, l->data,
					  l->context)
			    : PCRE2_ERROR_NOMATCH;

	if (e < 0) {
		l->gave_up += e != PCRE2_ERROR_NOMATCH;
		r->gave_up += e != PCRE2_ERROR_NOMATCH;
		return false;
	}
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(l->data);
	*ret_at = at[0];
	*ret_end = MO_MAX(at[1], at[0]);
	return true;
}

void lines_feed(struct lines *l, const char *line, size_t n, int64_t world,
		void (*fn)(void *arg, const struct line_fact *f), void *arg)
{
	size_t len = mo_line_plain(line, MO_MIN(n, (size_t)MO_LINE_MAX), l->clean),
	       budget = MATCHES_PER_LINE, at = 0, end = 0, next = 0, next_end = 0;
	struct line_fact f;
	struct line_rates x;

	jit(l);
	for (size_t i = 0; i < l->n_rules; i++) {
		struct line_matcher *r = &l->rules[i];
		bool more = r->gave_up < GIVE_UPS_MAX && search(l, r, len, 0, &at, &end);

		for (; more && budget; budget--, at = next, end = next_end) {
			bool counts = !r->of_steps || is_of_steps(l, r);
			take_groups(l, r, &f, &x);
			f.rule = i;
			more = search(l, r, len, MO_MAX(end, at + 1), &next, &next_end);
			if (r->record)
				take_pairs(l, r,
					   (struct text){ l->clean + end,
							  (more ? next : len) - end },
					   &f, &x);
			judge_loss(r, &f);
			if (f.sample.iteration != MO_NONE)
				f.sample.iteration += r->offset;
			line_fact_finish(&f, &x, world);
			if (counts && has_needs(r, &f))
				fn(arg, &f);
		}
	}
}

char *lines_gave_up_rules(const struct lines *l)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < l->n_rules; i++)
		if (l->rules[i].gave_up)
			mo_buf_printf(&b, "%srule %zu of lines (%.100s) %lld times%s",
				      b.len ? ", " : "", i + 1, l->rules[i].pattern,
				      (long long)l->rules[i].gave_up,
				      l->rules[i].gave_up >= GIVE_UPS_MAX ? " and is left out now"
									  : "");
	return b.data ? mo_buf_take(&b) : mo_strdup("");
}

void lines_steps(struct lines *l, int64_t steps)
{
	l->steps = steps;
}

int64_t lines_gave_up_of(const struct lines *l, size_t i)
{
	return i < l->n_rules ? l->rules[i].gave_up : 0;
}

int64_t lines_gave_up(const struct lines *l)
{
	return l->gave_up;
}
