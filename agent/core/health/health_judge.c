/* Findings become results: how many in a row it takes, what UNKNOWN may do, when the words are
 * renewed. Called by health_answers.c. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "agent/core/health/health_finding.h"
#include "agent/core/health/health_state.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"

#define RENEW_US 600000000LL     /* text and evidence of a lasting finding */
#define RENEW_KLOG_US 60000000LL /* new lines are reported so often */
#define TEXT_BYTES_MAX 2000
#define OUTPUT_SHOWN 400

/* The state that the streaks amount to; the present one when they do not amount to a change. What
 * cannot be tried here any more would stay bad for ever. */
static int settled(const struct verdict *v, const struct finding *f)
{
	int64_t need = v->check->consecutive;
	int found = f->state;

	if (found == CHECK_OK || f->skipped)
		return found;
	if (found == CHECK_UNKNOWN) {
		if (v->state == CHECK_WARN || v->state == CHECK_CRIT)
			return v->state;
		return v->unknown >= HEALTH_UNKNOWN_MAX ? CHECK_WARN : CHECK_UNKNOWN;
	}
	if (v->crit >= need)
		return CHECK_CRIT;
	if (v->bad >= need)
		return CHECK_WARN;
	return v->state == CHECK_UNKNOWN ? CHECK_OK : v->state;
}

static void say(struct verdict *v, const struct finding *f)
{
	_cleanup_(mo_freep) char *text = f->text ? mo_strndup(f->text, TEXT_BYTES_MAX) : NULL;

	mo_str_set(&v->text, text);
	v->count = f->count;
	mo_strs_clear(&v->evidence, &v->n_evidence);
	for (size_t i = 0; i < f->n_evidence; i++)
		mo_strs_add(&v->evidence, &v->n_evidence, f->evidence[i]);
}

static bool to_renew(const struct verdict *v, const struct finding *f, int64_t wall)
{
	int64_t every = v->check->area == PROBE_KLOG ? RENEW_KLOG_US : RENEW_US;
	/* happened again */
	if (f->state == CHECK_CRIT && v->state == CHECK_CRIT && f->count != v->count)
		return true;
	return f->state == v->state && wall >= v->at + every && !mo_streq(v->text, f->text);
}

void verdict_judge(struct health *h, struct verdict *v, const struct finding *f, int64_t now)
{
	int64_t wall = now + h->wall_offset;

	if (f->state < 0)
		return;
	v->probed = true;
	if (f->clears_nothing && f->state == CHECK_OK && v->state != CHECK_OK)
		return;
	v->unknown = f->state == CHECK_UNKNOWN && !f->skipped ? v->unknown + 1 : 0;
	if (f->state != CHECK_UNKNOWN || f->skipped) {
		v->bad = f->state == CHECK_OK || f->skipped ? 0 : v->bad + 1;
		v->crit = f->state == CHECK_CRIT ? v->crit + 1 : 0;
		if (f->early) {
			v->bad = MO_MIN(v->bad, v->check->consecutive - 1);
			v->crit = MO_MIN(v->crit, v->check->consecutive - 1);
		}
	}
	int state = settled(v, f);
	bool changed = state != v->state || f->skipped != v->skipped;
	if (!changed && !to_renew(v, f, wall))
		return;
	if (changed)
		v->since = wall;
	v->at = wall;
	v->state = state;
	v->skipped = f->skipped;
	if (state == CHECK_OK) {
		say(v, &(struct finding){ .count = MO_NONE });
		return;
	}
	_cleanup_(mo_freep) char *often =
		f->state == CHECK_UNKNOWN && state == CHECK_WARN
			? mo_printf("%d times in a row: %s", HEALTH_UNKNOWN_MAX, f->text)
			: NULL;
	say(v, &(struct finding){ .count = f->count,
				  .text = often ? often : f->text,
				  .evidence = f->evidence,
				  .n_evidence = f->n_evidence });
}

/* ---- programs */

/* The last number that the pattern finds; MO_NONE_F: none. */
static double number_in(const char *pattern, const char *out, size_t n)
{
	int code;
	PCRE2_SIZE offset, from = 0;
	double value = MO_NONE_F;
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE,
				       &code, &offset, NULL);
	pcre2_match_data *data = re ? pcre2_match_data_create_from_pattern(re, NULL) : NULL;

	while (data && from <= n &&
	       pcre2_match(re, (PCRE2_SPTR)out, n, from, PCRE2_NO_UTF_CHECK, data, NULL) > 1) {
		const PCRE2_SIZE *o = pcre2_get_ovector_pointer(data);
		_cleanup_(mo_freep) char *word =
			o[2] == PCRE2_UNSET ? NULL : mo_strndup(out + o[2], o[3] - o[2]);
		double x;
		if (word && mo_parse_double(word, &x) == 0)
			value = x;
		from = o[1] > o[0] ? o[1] : o[1] + 1;
	}
	pcre2_match_data_free(data);
	pcre2_code_free(re);
	return value;
}

static char *first_line(const char *out, size_t n)
{
	size_t from = 0;

	while (from < n && (out[from] == '\n' || out[from] == ' '))
		from++;
	const char *end = memchr(out + from, '\n', n - from);
	size_t len = MO_MIN(end ? (size_t)(end - out) - from : n - from, (size_t)OUTPUT_SHOWN);
	while (len && !mo_utf8_valid(out + from, len))
		len--;
	return mo_strndup(out + from, len);
}

void health_judge_program(struct health *h, struct verdict *v, int code, const char *out, size_t n,
			  const char *problem, int64_t now)
{
	const struct health_check *c = v->check;
	struct finding f = { .state = CHECK_UNKNOWN, .count = MO_NONE };
	_cleanup_(mo_freep) char *line = first_line(out, n);

	if (problem) {
		f.text = mo_printf("%s: %s: %s", c->what, c->argv[0], problem);
	} else if (c->match) {
		double x = code == 0 ? number_in(c->match, out, n) : MO_NONE_F;
		f.state = x == MO_NONE_F ? CHECK_UNKNOWN : rule_limits(c, x);
		double limit = f.state == CHECK_CRIT ? (c->crit_below == MO_NONE_F ? c->crit_above
										   : c->crit_below)
			       : c->warn_below == MO_NONE_F ? c->warn_above
							    : c->warn_below;
		if (x == MO_NONE_F)
			f.text = code ? mo_printf("%s: %s ended with status %d: %s", c->what,
						  c->argv[0], code, line)
				      : mo_printf("%s: the output of %s has no such number",
						  c->what, c->argv[0]);
		else if (f.state != CHECK_OK)
			f.text = mo_printf("%s: %s measured %.6g, limit %.6g", c->what, c->argv[0],
					   x, limit);
	} else {
		/* as Nagios: ok, warning, critical, unknown */
		f.state = code >= 0 && code <= 2 ? code : CHECK_UNKNOWN;
		f.text = f.state == CHECK_OK
				 ? NULL
				 : mo_printf("%s: %s", c->what, *line ? line : "it said nothing");
	}
	verdict_judge(h, v, &f, now);
	finding_done(&f);
}
