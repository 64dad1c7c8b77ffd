/* Failure classification (see classify.h): line by line, the strongest rule wins. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "daemon/core/rules/classify.h"

#include <errno.h>
#include <pcre2.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/line.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

#define EVIDENCE_MAX 5     /* lines of the deciding rule that are shown */
#define EVIDENCE_BYTES 400 /* of one of them */
#define MATCH_LIMIT 100000 /* steps at one line: a program's output can hold up nobody */

struct compiled {
	pcre2_code *match, *unless;
};
struct classifier {
	struct failure_rules rules;
	struct compiled *compiled;
	pcre2_code *progress, *rank, *collective;
	pcre2_match_data *data;
	pcre2_match_context *context;
};

static pcre2_code *compile(const char *pattern, struct mo_error *err, int *r)
{
	int code;
	PCRE2_SIZE offset;
	PCRE2_UCHAR text[256] = "";
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
				       PCRE2_CASELESS | PCRE2_DUPNAMES, &code, &offset, NULL);
	if (!re) {
		pcre2_get_error_message(code, text, sizeof(text));
		*r = mo_error_set(err, -EINVAL, "failure signatures: pattern '%s': %s", pattern,
				  (const char *)text);
		return NULL;
	}
	/* only faster; without it the interpreter answers the same */
	pcre2_jit_compile(re, PCRE2_JIT_COMPLETE);
	return re;
}

/* All alternatives in one pattern; NULL for none. */
static pcre2_code *compile_any(char *const *patterns, size_t n, struct mo_error *err, int *r)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	for (size_t i = 0; i < n; i++)
		mo_buf_printf(&b, "%s(?:%s)", i ? "|" : "", patterns[i]);
	return n ? compile(b.data, err, r) : NULL;
}

int classifier_new(const struct failure_rules *rules, struct classifier **ret, struct mo_error *err)
{
	_cleanup_(classifier_freep) struct classifier *c = mo_alloc(sizeof(*c));
	int r = 0;
	mo_desc_init(&failure_rules_desc, &c->rules);
	mo_desc_copy(&failure_rules_desc, &c->rules, rules);
	c->compiled = mo_alloc_array(rules->n_rules, sizeof(*c->compiled));
	c->progress = compile(rules->progress, err, &r);
	c->rank = compile(rules->rank, err, &r);
	c->collective = compile(rules->collective, err, &r);
	for (size_t i = 0; i < rules->n_rules; i++) {
		c->compiled[i].match =
			compile_any(rules->rules[i].match, rules->rules[i].n_match, err, &r);
		c->compiled[i].unless =
			compile_any(rules->rules[i].unless, rules->rules[i].n_unless, err, &r);
	}
	c->data = pcre2_match_data_create(64, NULL);
	c->context = pcre2_match_context_create(NULL);
	if (!c->data || !c->context)
		abort();
	pcre2_set_match_limit(c->context, MATCH_LIMIT);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

struct classifier *classifier_free(struct classifier *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; c->compiled && i < c->rules.n_rules; i++) {
		pcre2_code_free(c->compiled[i].match);
		pcre2_code_free(c->compiled[i].unless);
	}
	free(c->compiled);
	pcre2_code_free(c->progress);
	pcre2_code_free(c->rank);
	pcre2_code_free(c->collective);
	pcre2_match_data_free(c->data);
	pcre2_match_context_free(c->context);
	mo_desc_done(&failure_rules_desc, &c->rules);
	free(c);
	return NULL;
}

static bool matches(const struct classifier *c, const pcre2_code *re, const char *line, size_t n)
{
	return re && pcre2_match(re, (PCRE2_SPTR)line, n, 0, 0, c->data, c->context) > 0;
}

/* Number in the named group (of several with this name the one that took part); MO_NONE. */
static int64_t group(const struct classifier *c, const pcre2_code *re, const char *line, size_t n,
		     const char *name)
{
	PCRE2_UCHAR *text = NULL;
	PCRE2_SIZE length;
	int64_t v = MO_NONE;
	if (!matches(c, re, line, n) ||
	    pcre2_substring_get_byname(c->data, (PCRE2_SPTR)name, &text, &length) < 0)
		return MO_NONE;
	(void)mo_parse_i64((const char *)text, 0, INT64_MAX, &v);
	pcre2_substring_free(text);
	return v;
}

/* Line without ANSI sequences and trailing blanks, into out (MO_LINE_MAX bytes); returns its
 * length. */
static size_t clean(const char *line, size_t n, char *out)
{
	size_t k = mo_line_plain(line, MO_MIN(n, (size_t)MO_LINE_MAX), out);

	while (k && (out[k - 1] == ' ' || out[k - 1] == '\t'))
		k--;
	return k;
}

struct lag {
	int64_t rank, last;
};
struct scan {
	const struct classifier *c;
	int source;
	int64_t progress;   /* highest iteration seen so far */
	int64_t best_order; /* INT64_MAX = nothing yet */
	const struct failure_rule *best;
	bool best_late;
	bool exited_ok;
	struct failure_verdict *ret;
	struct lag *lags;
	size_t n_lags;
};

static void add_evidence(struct failure_verdict *ret, int source, int64_t number, const char *text,
			 size_t n)
{
	if (ret->n_evidence == EVIDENCE_MAX)
		return;
	struct failure_evidence *e = MO_ADD(ret, evidence, &failure_evidence_desc);
	while (n && (*text == ' ' || *text == '\t')) {
		text++;
		n--;
	}
	e->source = mo_strdup(failure_source_names[source]);
	e->line = number;
	e->text = mo_strndup(text, MO_MIN(n, (size_t)EVIDENCE_BYTES));
}

static void hit(struct scan *s, const struct failure_rule *rule, int64_t number, const char *line,
		size_t n)
{
	if (s->best == rule) {
		add_evidence(s->ret, s->source, number, line, n);
		return;
	}
	if (rule->order >= s->best_order)
		return;
	mo_vec_clear(&failure_evidence_desc, (void **)&s->ret->evidence, &s->ret->n_evidence);
	s->best = rule;
	s->best_order = rule->order;
	s->best_late = s->progress >= s->c->rules.late_iteration;
	s->ret->first_rank = group(s->c, s->c->rank, line, n, "rank");
	add_evidence(s->ret, s->source, number, line, n);
}

/* Only as good as the rule at hand: while the deciding rule gathers evidence, weaker ones cannot
 * win any more. */
static void scan_line(struct scan *s, int64_t number, const char *line, size_t n)
{
	const struct classifier *c = s->c;
	int64_t rank, last;
	if (s->source == FROM_LOG) {
		s->progress = MO_MAX(s->progress, group(c, c->progress, line, n, "iteration"));
		last = group(c, c->collective, line, n, "last");
		rank = last != MO_NONE ? group(c, c->collective, line, n, "rank") : MO_NONE;
		if (rank != MO_NONE)
			*MO_GROW(s->lags, s->n_lags) = (struct lag){ rank, last };
	}
	for (size_t i = 0; i < c->rules.n_rules; i++) {
		const struct failure_rule *rule = &c->rules.rules[i];
		bool here = rule->source == s->source ||
			    (rule->source == FROM_ANY && s->source != FROM_EXIT);
		if (!here || rule->order > s->best_order || (rule->weak && s->exited_ok))
			continue;
		if (matches(c, c->compiled[i].match, line, n) &&
		    !matches(c, c->compiled[i].unless, line, n))
			hit(s, rule, number, line, n);
	}
}

/* Progress bars overwrite themselves with \r: pieces between them are lines of their own, with
 * the same number. */
static void scan_text(struct scan *s, int source, const char *text, size_t n)
{
	_cleanup_(mo_freep) char *line = mo_alloc(MO_LINE_MAX + 1);
	int64_t number = 1;
	s->source = source;
	for (size_t at = 0; text && at < n;) {
		size_t end = at;
		while (end < n && text[end] != '\n' && text[end] != '\r')
			end++;
		size_t k = clean(text + at, end - at, line);
		line[k] = 0;
		if (k)
			scan_line(s, number, line, k);
		number += end < n && text[end] == '\n';
		at = end + 1;
	}
}

/* 128 + n is a shell's word for signal n. */
static void scan_exit(struct scan *s, const struct classify_input *in)
{
	char text[64];
	int64_t sig = in->signal;
	if (sig == MO_NONE && in->code > 128 && in->code < 128 + 65)
		sig = in->code - 128;
	if (sig == MO_NONE && in->code == MO_NONE)
		return;
	_cleanup_(mo_freep) char *shown = sig != MO_NONE
						  ? mo_printf("signal:%lld", (long long)sig)
						  : mo_printf("exit:%lld", (long long)in->code);
	size_t n = MO_MIN(strlen(shown), sizeof(text) - 1);
	memcpy(text, shown, n);
	text[n] = 0;
	s->source = FROM_EXIT;
	scan_line(s, MO_NONE, text, n);
}

/* In a hang the ranks that complain waited for another: the one whose collectives are furthest
 * behind, if there is exactly one. */
static int64_t lagging_rank(const struct scan *s)
{
	int64_t rank = MO_NONE, lowest = INT64_MAX;
	bool unique = false, differ = false;
	for (size_t i = 0; i < s->n_lags; i++) {
		const struct lag *l = &s->lags[i];
		differ = differ || (i && l->last != s->lags[0].last);
		if (l->last < lowest) {
			lowest = l->last;
			rank = l->rank;
			unique = true;
		} else if (l->last == lowest && l->rank != rank) {
			unique = false;
		}
	}
	return unique && differ ? rank : MO_NONE;
}

void classify(const struct classifier *c, const struct classify_input *in,
	      struct failure_verdict *ret)
{
	struct scan s = { .c = c,
			  .progress = MO_MAX(in->iteration, -1),
			  .best_order = INT64_MAX,
			  .exited_ok = in->code == 0 && in->signal == MO_NONE,
			  .ret = ret };
	ret->first_rank = MO_NONE;
	scan_text(&s, FROM_KERNEL, in->kernel, in->n_kernel);
	scan_text(&s, FROM_LOG, in->log, in->n_log);
	scan_exit(&s, in);
	ret->class = !s.best                            ? FAIL_OK
		     : s.best_late && s.best->late >= 0 ? s.best->late
							: s.best->class;
	mo_str_set(&ret->rule, s.best ? s.best->id : NULL);
	mo_str_set(&ret->why, s.best ? s.best->why : NULL);
	if (ret->class == FAIL_HANG)
		ret->first_rank = lagging_rank(&s);
	free(s.lags);
}

bool classify_progress(const struct classifier *c, const char *line)
{
	return matches(c, c->progress, line, strlen(line));
}
