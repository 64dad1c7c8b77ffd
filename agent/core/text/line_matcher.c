/* See line_matcher.h. */
#include "agent/core/text/line_matcher.h"

#include <errno.h>
#include <string.h>

static int read_groups(struct line_matcher *r, const char *pattern, struct mo_error *err)
{
	uint32_t n = 0, size = 0;
	PCRE2_SPTR table = NULL;

	pcre2_pattern_info(r->code, PCRE2_INFO_NAMECOUNT, &n);
	pcre2_pattern_info(r->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
	pcre2_pattern_info(r->code, PCRE2_INFO_NAMETABLE, &table);
	for (uint32_t i = 0; i < n; i++, table += size) {
		const struct line_field *f = line_field_find((const char *)table + 2);
		if (!f)
			return mo_error_set(err, -EINVAL,
					    "line rule '%s': group '%s' is not a field of a "
					    "sample: name it iteration, loss, step_ms, ...",
					    pattern, (const char *)table + 2);
		if (r->n_groups < ELEMENTSOF(r->groups))
			r->groups[r->n_groups++] =
				(struct line_group){ .field = f,
						     .number = table[0] << 8 | table[1] };
	}
	return 0;
}

static struct text text_of(const char *s)
{
	return (struct text){ mo_strdup(s), strlen(s) };
}

static int read_field(struct line_matcher *r, const struct line_rule *from, const struct kv *pair,
		      struct mo_error *err)
{
	const struct line_field *f = pair->value ? line_field_find(pair->value) : NULL;

	if (!f || !pair->key || !*pair->key)
		return mo_error_set(err, -EINVAL,
				    "line rule '%s': field '%s: %s' is not a field of a "
				    "sample: name it loss, step_ms, ...",
				    from->begin, pair->key, pair->value);
	r->targets[r->n_keys] = f;
	r->keys[r->n_keys++] = text_of(pair->key);
	r->counts |= mo_streq(f->name, "skipped") || mo_streq(f->name, "nan");
	return 0;
}

static int read_fields(struct line_matcher *r, const struct line_rule *from, struct mo_error *err)
{
	size_t n = from->n_fields + from->n_data_fields;
	int error = 0;

	if (n > LINE_PAIRS_MAX)
		return mo_error_set(err, -EINVAL, "line rule '%s': more than %d fields: split it",
				    from->begin, LINE_PAIRS_MAX);
	r->record = true;
	if (from->separator)
		r->separator = text_of(from->separator);
	r->keys = mo_alloc_array(n + 1, sizeof(*r->keys));
	r->targets = mo_alloc_array(n + 1, sizeof(*r->targets));
	for (size_t i = 0; i < from->n_fields && !error; i++)
		error = read_field(r, from, &from->fields[i], err);
	for (size_t i = 0; i < from->n_data_fields && !error; i++)
		error = read_field(r, from, &from->data_fields[i], err);
	return error;
}

static int read_needs(struct line_matcher *r, const struct line_rule *from, struct mo_error *err)
{
	r->needs = mo_alloc_array(from->n_needs + 1, sizeof(*r->needs));
	for (size_t i = 0; i < from->n_needs; i++) {
		const struct line_field *f = line_field_find(from->needs[i]);

		if (!f || f->offset == SIZE_MAX ||
		    (f->target != FIELD_INT && f->target != FIELD_REAL))
			return mo_error_set(err, -EINVAL,
					    "line rule '%s': it needs '%s', which is no value of a "
					    "sample: name it loss, step_ms, ...",
					    from->begin, from->needs[i]);
		r->needs[r->n_needs++] = f;
	}
	return 0;
}

int line_matcher_read(struct line_matcher *r, const struct line_rule *from, struct mo_error *err)
{
	const char *pattern = from->begin ? from->begin : from->pattern;
	int code;
	PCRE2_SIZE at;

	r->pattern = mo_strdup(pattern);
	r->kind = from->kind;
	r->offset = from->iteration_offset == MO_NONE ? 0 : from->iteration_offset;
	r->missing_loss_is_nan = from->missing_loss_is_nan;
	r->of_steps = from->of_steps;
	r->phase = from->phase ? mo_enum_parse(phase_names, _PHASE_N, from->phase) : PHASE_NONE;
	if (!pattern)
		return mo_error_set(err, -EINVAL, "line rule: there is no pattern: write one");
	if (from->kind == LINE_PHASE && r->phase < 0)
		return mo_error_set(err, -EINVAL,
				    "line rule '%s': phase '%s' is unknown: use init, load, train, "
				    "save or eval",
				    pattern, from->phase ? from->phase : "");
	/* DUPNAMES: the same field may stand in two alternatives. */
	r->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_DUPNAMES, &code,
				&at, NULL);
	if (!r->code) {
		PCRE2_UCHAR text[128];
		pcre2_get_error_message(code, text, sizeof(text));
		return mo_error_set(err, -EINVAL,
				    "line rule '%s': %s at character %zu: correct the pattern",
				    pattern, (const char *)text, (size_t)at + 1);
	}
	int e = from->begin ? read_fields(r, from, err) : 0;
	if (e == 0)
		e = read_needs(r, from, err);
	return e < 0 ? e : read_groups(r, pattern, err);
}

void line_matcher_done(struct line_matcher *r)
{
	pcre2_code_free(r->code);
	free(r->pattern);
	free((char *)r->separator.s);
	for (size_t k = 0; k < r->n_keys; k++)
		free((char *)r->keys[k].s);
	free(r->keys);
	free(r->targets);
	free(r->needs);
}
