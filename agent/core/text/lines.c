/* Output lines and notify datagrams -> facts. Called by stepd for every line of every rank, so a
 * line without a match costs one pass to clean it and one (JIT) search per rule. Untrusted
 * input: lengths are capped, the match limit bounds backtracking, nothing is kept. Patterns
 * match bytes, not UTF-8: ranks print anything. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/core/text/lines.h"

#include <errno.h>
#include <math.h>
#include <pcre2.h>
#include <string.h>

#include "agent/core/text/pairs.h"
#include "lib/base/buf.h"
#include "lib/base/line.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

/* a pattern that backtracks more on 8 KiB is not worth waiting for */
#define MATCH_LIMIT 100000
/* the same for nested ways back, which cost memory (without JIT, which has a stack of its own) */
#define DEPTH_LIMIT 10000
#define GIVE_UPS_MAX 100 /* a rule that gave up so often costs more than it tells */
#define MATCHES_PER_LINE 64
#define NOTIFY_MAX 8192
#define PAIRS_MAX 64 /* pairs that one rule reads */

/* More than any machine does for a long time; a value beyond is a slip of the engine and would
 * spoil every sum. */
#define STEP_S_MAX 1e7
#define COUNT_MAX 1e15
#define RATE_MAX 1e12
#define TFLOPS_MAX 1e6
#define MFU_MAX 100
#define GB_MAX 1e6
/* loss, gradient norm and learning rate may be anything, NaN too: that is what they are watched
 * for */
#define ANY_MAX INFINITY

enum target { T_INT, T_REAL, T_ITERATION, T_PATH, T_STEP_S, T_TOKENS_PER_S, T_GB, T_GIB, T_MIB };
/* From 0 to max, else the value is refused; max INFINITY: nothing is, negative numbers and NaN
 * neither. */
struct field {
	const char *name;
	enum target target;
	size_t offset;
	double max;
};
#define S(f, t, max) \
	{ \
#f, (t), offsetof(struct sample, f), (max) \
	}
static const struct field fields[] = {
	{ "iteration", T_ITERATION, 0, COUNT_MAX },
	S(loss, T_REAL, ANY_MAX),
	S(grad_norm, T_REAL, ANY_MAX),
	S(lr, T_REAL, ANY_MAX),
	S(step_ms, T_REAL, STEP_S_MAX * 1000),
	{ "step_s", T_STEP_S, 0, STEP_S_MAX },
	S(tokens, T_INT, COUNT_MAX),
	{ "tokens_per_s", T_TOKENS_PER_S, 0, RATE_MAX },
	S(tokens_per_s_per_gpu, T_REAL, RATE_MAX),
	S(tflops_per_gpu, T_REAL, TFLOPS_MAX),
	S(mfu, T_REAL, MFU_MAX),
	S(mem_gb, T_GB, GB_MAX),
	{ "mem_gib", T_GIB, offsetof(struct sample, mem_gb), GB_MAX },
	{ "mem_mib", T_MIB, offsetof(struct sample, mem_gb), GB_MAX },
	S(skipped, T_INT, COUNT_MAX),
	S(nan, T_INT, COUNT_MAX),
	/* read by nobody yet, allowed in rules */
	{ "path", T_PATH, 0, 0 },
	{ "steps", T_INT, SIZE_MAX, 0 },
	{ "seconds", T_REAL, SIZE_MAX, 0 },
};
/* Other names of the notify protocol; the rest are the fields above in capitals. */
static const struct {
	const char *key, *field;
} notify_names[] = { { "TFLOPS", "tflops_per_gpu" } };

struct group {
	const struct field *field;
	int number;
};
struct rule {
	pcre2_code *code;
	char *pattern; /* for telling which rule gave up */
	int kind, phase;
	bool missing_loss_is_nan, of_steps;
	struct group groups[ELEMENTSOF(fields)];
	size_t n_groups;
	bool record; /* code finds the beginning of a record of pairs */
	struct text separator;
	struct text *keys;
	const struct field **targets;
	size_t n_keys;
	/* fields of the sample without which a record says nothing */
	const struct field **needs;
	size_t n_needs;
	/* matches that were broken off; too many, and the rule is left out */
	int64_t gave_up;
	int64_t offset;
	/* its records tell how many iterations were skipped or NaN */
	bool counts;
};
struct lines {
	struct rule *rules;
	size_t n_rules;
	/* compiled with the first line: ranks start without waiting for it */
	bool jit;
	pcre2_match_data *data;
	pcre2_match_context *context;
	int64_t gave_up; /* of all rules */
	int64_t steps;
	struct sample none;
	struct text found[PAIRS_MAX];
	char clean[MO_LINE_MAX];
};

static const struct field *field_of(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(fields); i++)
		if (mo_streq(fields[i].name, name))
			return &fields[i];
	return NULL;
}

struct lines *lines_free(struct lines *l)
{
	if (!l)
		return NULL;
	for (size_t i = 0; i < l->n_rules; i++) {
		pcre2_code_free(l->rules[i].code);
		free(l->rules[i].pattern);
		free((char *)l->rules[i].separator.s);
		for (size_t k = 0; k < l->rules[i].n_keys; k++)
			free((char *)l->rules[i].keys[k].s);
		free(l->rules[i].keys);
		free(l->rules[i].targets);
		free(l->rules[i].needs);
	}
	pcre2_match_data_free(l->data);
	pcre2_match_context_free(l->context);
	free(l->rules);
	free(l);
	return NULL;
}

static int read_groups(struct rule *r, const char *pattern, struct mo_error *err)
{
	uint32_t n = 0, size = 0;
	PCRE2_SPTR table = NULL;

	pcre2_pattern_info(r->code, PCRE2_INFO_NAMECOUNT, &n);
	pcre2_pattern_info(r->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
	pcre2_pattern_info(r->code, PCRE2_INFO_NAMETABLE, &table);
	for (uint32_t i = 0; i < n; i++, table += size) {
		const struct field *f = field_of((const char *)table + 2);
		if (!f)
			return mo_error_set(err, -EINVAL,
					    "line rule '%s': group '%s' is not a field of a "
					    "sample: name it iteration, loss, step_ms, ...",
					    pattern, (const char *)table + 2);
		if (r->n_groups < ELEMENTSOF(r->groups))
			r->groups[r->n_groups++] =
				(struct group){ .field = f, .number = table[0] << 8 | table[1] };
	}
	return 0;
}

static struct text text_of(const char *s)
{
	return (struct text){ mo_strdup(s), strlen(s) };
}

static int read_fields(struct rule *r, const struct line_rule *from, struct mo_error *err)
{
	if (from->n_fields > PAIRS_MAX)
		return mo_error_set(err, -EINVAL, "line rule '%s': more than %d fields: split it",
				    from->begin, PAIRS_MAX);
	r->record = true;
	if (from->separator)
		r->separator = text_of(from->separator);
	r->keys = mo_alloc_array(from->n_fields + 1, sizeof(*r->keys));
	r->targets = mo_alloc_array(from->n_fields + 1, sizeof(*r->targets));
	for (size_t i = 0; i < from->n_fields; i++) {
		const struct field *f =
			from->fields[i].value ? field_of(from->fields[i].value) : NULL;

		if (!f || !from->fields[i].key || !*from->fields[i].key)
			return mo_error_set(err, -EINVAL,
					    "line rule '%s': field '%s: %s' is not a field of a "
					    "sample: name it loss, step_ms, ...",
					    from->begin, from->fields[i].key,
					    from->fields[i].value);
		r->targets[r->n_keys] = f;
		r->keys[r->n_keys++] = text_of(from->fields[i].key);
		r->counts |= mo_streq(f->name, "skipped") || mo_streq(f->name, "nan");
	}
	return 0;
}

static int read_needs(struct rule *r, const struct line_rule *from, struct mo_error *err)
{
	r->needs = mo_alloc_array(from->n_needs + 1, sizeof(*r->needs));
	for (size_t i = 0; i < from->n_needs; i++) {
		const struct field *f = field_of(from->needs[i]);

		if (!f || f->offset == SIZE_MAX || (f->target != T_INT && f->target != T_REAL))
			return mo_error_set(err, -EINVAL,
					    "line rule '%s': it needs '%s', which is no value of a "
					    "sample: name it loss, step_ms, ...",
					    from->begin, from->needs[i]);
		r->needs[r->n_needs++] = f;
	}
	return 0;
}

static int compile(struct rule *r, const struct line_rule *from, struct mo_error *err)
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

int lines_new(const struct line_rule *rules, size_t n, struct lines **ret, struct mo_error *err)
{
	_cleanup_(lines_freep) struct lines *l = mo_alloc(sizeof(*l));

	l->rules = mo_alloc_array(n + 1, sizeof(*l->rules));
	for (size_t i = 0; i < n; i++) {
		l->n_rules = i + 1;
		int r = compile(&l->rules[i], &rules[i], err);
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

static int64_t to_int(double v)
{
	return isfinite(v) && fabs(v) < 9e15 ? (int64_t)v : MO_NONE;
}

/* Decimal gigabytes of a memory figure. GiB and MiB are what they say; GB and MB are printed by
 * programs that mean either: the field knows. */
static double gigabytes(double v, enum target target, const char *unit)
{
	static const struct {
		const char *unit;
		double decimal, binary;
	} units[] = {
		{ "GB", 1, 1.073741824 },
		{ "MB", 1e-3, 1.048576e-3 },
		{ "GiB", 1.073741824, 1.073741824 },
		{ "MiB", 1.048576e-3, 1.048576e-3 },
		{ "KiB", 1.024e-6, 1.024e-6 },
		{ "TiB", 1099.511627776, 1099.511627776 },
	};

	for (size_t i = 0; i < ELEMENTSOF(units); i++)
		if (mo_streq(units[i].unit, unit))
			return v * (target == T_GB ? units[i].decimal : units[i].binary);
	return v * (target == T_GIB ? 1.073741824 : target == T_MIB ? 1.048576e-3 : 1);
}

/* Rates that need the world size or other fields of the same line. */
struct extra {
	double step_s, tokens_per_s;
};

/* whole: the text is the number, as a group of a pattern or a datagram has it; else it begins
 * with it. */
static void set_field(const struct field *field, struct text t, bool whole, struct line_fact *f,
		      struct extra *x)
{
	struct number number;

	if (field->target == T_PATH) {
		size_t len = MO_MIN(t.n, sizeof(f->path) - 1);
		memcpy(f->path, t.s, len);
		f->path[len] = 0;
		return;
	}
	if (field->offset == SIZE_MAX || !number_read(t, whole, &number))
		return;
	double v = number.unit[0] == '%' ? number.v / 100 : number.v;
	if (isnan(v) && isfinite(field->max))
		return; /* "mfu: nan" of a first iteration: not known */
	if (isfinite(field->max) && !(v >= 0 && v <= field->max)) {
		f->refused++;
		return;
	}
	switch (field->target) {
	case T_INT: *(int64_t *)((char *)&f->sample + field->offset) = to_int(v); break;
	case T_REAL: *(double *)((char *)&f->sample + field->offset) = v; break;
	case T_ITERATION: f->sample.iteration = to_int(v); break;
	case T_STEP_S: x->step_s = v; break;
	case T_TOKENS_PER_S: x->tokens_per_s = v; break;
	case T_GB:
	case T_GIB:
	case T_MIB: f->sample.mem_gb = gigabytes(v, field->target, number.unit); break;
	case T_PATH: break;
	}
}

int64_t lines_path_number(const char *path)
{
	size_t end = strlen(path), begin;
	int64_t v;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] >= '0' && path[begin - 1] <= '9'; begin--)
		;
	if (begin == end || end - begin > 18)
		return MO_NONE;
	_cleanup_(mo_freep) char *digits = mo_strndup(path + begin, end - begin);
	return mo_parse_i64(digits, 0, INT64_MAX, &v) == 0 ? v : MO_NONE;
}

static void finish(struct line_fact *f, const struct extra *x, int64_t world)
{
	struct sample *s = &f->sample;

	if (s->step_ms == MO_NONE_F && x->step_s != MO_NONE_F)
		s->step_ms = x->step_s * 1000;
	if (s->tokens_per_s_per_gpu == MO_NONE_F && x->tokens_per_s != MO_NONE_F && world > 0)
		s->tokens_per_s_per_gpu = x->tokens_per_s / (double)world;
	if (s->tokens_per_s_per_gpu == MO_NONE_F && s->tokens != MO_NONE &&
	    s->step_ms != MO_NONE_F && s->step_ms > 0 && world > 0) {
		s->tokens_per_s_per_gpu = (double)s->tokens * 1000 / s->step_ms / (double)world;
		if (s->tokens_per_s_per_gpu > RATE_MAX)
			s->tokens_per_s_per_gpu = MO_NONE_F;
	}
	f->iteration = s->iteration;
	if (f->iteration == MO_NONE && f->path[0] && f->kind != LINE_SAVING)
		f->iteration = lines_path_number(f->path);
}

/* none: a sample of which nothing is known. */
static void fact_init(struct line_fact *f, struct extra *x, const struct sample *none)
{
	f->kind = -1;
	f->sample = *none;
	f->phase = PHASE_NONE;
	f->iteration = MO_NONE;
	f->path[0] = f->status[0] = 0;
	f->ready = f->checkpoint = false;
	f->refused = 0;
	*x = (struct extra){ .step_s = MO_NONE_F, .tokens_per_s = MO_NONE_F };
}

static void take_groups(const struct lines *l, const struct rule *r, struct line_fact *f,
			struct extra *x)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(l->data);
	uint32_t pairs = pcre2_get_ovector_count(l->data);

	fact_init(f, x, &l->none);
	f->kind = r->kind;
	f->phase = r->phase;
	for (size_t i = 0; i < r->n_groups; i++) {
		uint32_t g = (uint32_t)r->groups[i].number;
		if (g < pairs && at[2 * g] != PCRE2_UNSET)
			set_field(r->groups[i].field,
				  (struct text){ l->clean + at[2 * g], at[2 * g + 1] - at[2 * g] },
				  true, f, x);
	}
}

static void take_pairs(struct lines *l, const struct rule *r, struct text record,
		       struct line_fact *f, struct extra *x)
{
	pairs_find(record, r->separator, r->keys, r->n_keys, l->found);
	for (size_t i = 0; i < r->n_keys; i++)
		if (l->found[i].s)
			set_field(r->targets[i], l->found[i], false, f, x);
}

static bool has_needs(const struct rule *r, const struct line_fact *f)
{
	for (size_t i = 0; i < r->n_needs; i++) {
		const void *at = (const char *)&f->sample + r->needs[i]->offset;

		if (r->needs[i]->target == T_INT ? *(const int64_t *)at == MO_NONE
						 : *(const double *)at == MO_NONE_F)
			return false;
	}
	return true;
}

/* Of the match just found. */
static bool is_of_steps(const struct lines *l, const struct rule *r)
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
static void judge_loss(const struct rule *r, struct line_fact *f)
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
static bool search(struct lines *l, struct rule *r, size_t len, size_t from, size_t *ret_at,
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
	struct extra x;

	jit(l);
	for (size_t i = 0; i < l->n_rules; i++) {
		struct rule *r = &l->rules[i];
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
			finish(&f, &x, world);
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

static const struct field *notify_field(const char *key, size_t n)
{
	char name[32];

	for (size_t i = 0; i < ELEMENTSOF(notify_names); i++)
		if (strlen(notify_names[i].key) == n && memcmp(notify_names[i].key, key, n) == 0)
			return field_of(notify_names[i].field);
	if (n >= sizeof(name))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if ((key[i] < 'A' || key[i] > 'Z') && key[i] != '_')
			return NULL;
		name[i] = key[i] == '_' ? '_' : (char)(key[i] - 'A' + 'a');
	}
	name[n] = 0;
	const struct field *f = field_of(name);
	return f && f->target != T_PATH && f->offset != SIZE_MAX ? f : NULL;
}

static bool is(const char *key, size_t n, const char *name)
{
	return strlen(name) == n && memcmp(key, name, n) == 0;
}

static void copy_text(char *to, size_t size, const char *from, size_t n)
{
	n = MO_MIN(n, size - 1);
	memcpy(to, from, n);
	to[n] = 0;
}

/* One KEY=VALUE; true when it was understood. *metric: it is more than an iteration number. */
static bool notify_pair(const char *key, size_t n, const char *value, size_t len,
			struct line_fact *f, struct extra *x, bool *metric)
{
	char word[16];
	struct number number;

	if (is(key, n, "READY")) {
		f->ready = is(value, len, "1");
		return f->ready;
	}
	if (is(key, n, "PHASE")) {
		copy_text(word, sizeof(word), value, len);
		f->phase = mo_enum_parse(phase_names, _PHASE_N, word);
		return f->phase >= 0;
	}
	if (is(key, n, "CHECKPOINT")) {
		if (!len || len >= sizeof(f->path))
			return false;
		copy_text(f->path, sizeof(f->path), value, len);
		f->checkpoint = true;
		return true;
	}
	if (is(key, n, "STATUS")) {
		copy_text(f->status, sizeof(f->status), value, len);
		return true;
	}
	const struct field *field = notify_field(key, n);
	if (!field || !number_read((struct text){ value, len }, true, &number))
		return false;
	int refused = f->refused;
	set_field(field, (struct text){ value, len }, true, f, x);
	*metric |= field->target != T_ITERATION && f->refused == refused;
	return true;
}

int lines_notify(const char *data, size_t n, int64_t world, struct line_fact *ret)
{
	struct sample none;
	bool understood = false, metric = false;
	struct line_fact f;
	struct extra x;

	if (n > NOTIFY_MAX)
		return -EINVAL;
	mo_desc_init(&sample_desc, &none);
	fact_init(&f, &x, &none);
	for (const char *p = data, *end = data + n; p < end;) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((eol ? eol : end) - p);
		const char *eq = memchr(p, '=', len);
		if (eq && !memchr(p, 0, len)) {
			size_t key = (size_t)(eq - p);
			understood |= notify_pair(p, key, eq + 1, len - key - 1, &f, &x, &metric);
		}
		p += len + 1;
	}
	if (!understood)
		return -EINVAL;
	finish(&f, &x, world);
	bool other = f.ready || f.checkpoint || f.phase >= 0 || f.status[0];
	if (metric || (f.sample.iteration != MO_NONE && !other))
		f.kind = LINE_SAMPLE;
	else if (f.phase >= 0 || f.ready)
		f.kind = LINE_PHASE;
	*ret = f;
	return 0;
}
