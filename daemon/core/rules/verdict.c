/* See verdict.h. */
#include "daemon/core/rules/verdict.h"

#include <string.h>

#include "daemon/core/rules/classify.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/live.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"

#define RANKS_MAX 32 /* of which the words are read; the first of each node go first */
/* of a rank that iterated by other means than lines: what it printed may be long past */
#define FAR_LINES 5

/* The smaller, the more it counts. */
enum weight {
	W_HARDWARE,   /* hardware that is broken by its own word, or its kernel's */
	W_FIRST,      /* words of the first rank about its own end */
	W_SIGNAL,     /* the first rank ended by a signal, without a word */
	W_OTHER,      /* words of another rank about its own end */
	W_EXIT,       /* the first rank ended by itself, without a word */
	W_WAITED,     /* waited for a rank that did not come */
	W_COLLATERAL, /* ended because another did */
	W_NOTHING
};
struct opinion {
	enum weight weight;
	struct failure_verdict said;
	bool proved;
};

/* From the last line about an iteration on: what stands before it did not end the rank. */
static size_t near_end(const struct classifier *c, const struct rank *k)
{
	size_t at = k->n_tail;

	while (at > 0 && !classify_progress(c, k->tail[at - 1]))
		at--;
	if (at > 0)
		return at - 1;
	return k->iteration != MO_NONE && k->n_tail > FAR_LINES ? k->n_tail - FAR_LINES : 0;
}

static void words_of(const struct classifier *c, const struct rank *k, struct mo_buf *to)
{
	for (size_t i = near_end(c, k); i < k->n_tail; i++)
		mo_buf_printf(to, "%s\n", k->tail[i]);
}

static bool near(const struct job *j, const struct check_result *r, int64_t now)
{
	int64_t at = j->failure.decided ? j->failure.at : now;

	return r->since != MO_NONE && r->since >= at - VERDICT_NEAR_US;
}

static void add_finding(const struct check_result *r, struct mo_buf *to)
{
	for (size_t k = 0; k < r->n_evidence; k++)
		mo_buf_printf(to, "%s\n", r->evidence[k]);
	mo_buf_printf(to, "%s %s: %s\n", r->check, r->object ? r->object : "",
		      r->text ? r->text : "");
}

/* What checks found on the node when the rank died: lines of its kernel among them. True when one
 * of them proves broken hardware. */
static bool kernel_of(const struct core *c, const struct job *j, const char *node,
		      struct mo_buf *to)
{
	const struct node *n = node_find(&c->state, node);
	bool proved = false;

	for (size_t i = 0; n && n->health && i < n->health->n_results; i++) {
		const struct check_result *r = &n->health->results[i];

		if (finding_skipped(r) || !near(j, r, c->state.time))
			continue;
		proved |= r->state == CHECK_CRIT && r->hardware;
		add_finding(r, to);
	}
	return proved;
}

static bool by_exit(const struct failure_verdict *v)
{
	return v->n_evidence > 0 &&
	       mo_streq(v->evidence[0].source, failure_source_names[FROM_EXIT]);
}

static bool by_kernel(const struct failure_verdict *v)
{
	return v->n_evidence > 0 &&
	       mo_streq(v->evidence[0].source, failure_source_names[FROM_KERNEL]);
}

static enum weight weight_of(const struct failure_verdict *v, bool first, bool signalled)
{
	if (v->class == FAIL_OK || (by_exit(v) && !first))
		return W_NOTHING;
	if (by_exit(v))
		return signalled ? W_SIGNAL : W_EXIT;
	switch (v->class) {
	case FAIL_NODE_FAULT: return W_HARDWARE;
	case FAIL_HANG: return W_WAITED;
	case FAIL_COLLATERAL:
	case FAIL_PREEMPTED: return W_COLLATERAL;
	default: return first ? W_FIRST : W_OTHER;
	}
}

/* No signature knows the text of a check that proves it. */
static void believe_check(struct failure_verdict *v, const char *text)
{
	struct failure_evidence *e;

	mo_vec_clear(&failure_evidence_desc, (void **)&v->evidence, &v->n_evidence);
	v->class = FAIL_NODE_FAULT;
	mo_str_set(&v->rule, "check");
	mo_str_set(&v->why, "a check of the node proves that a part of it is broken");
	e = MO_ADD(v, evidence, &failure_evidence_desc);
	e->source = mo_strdup(failure_source_names[FROM_KERNEL]);
	e->text = mo_strndup(text, strcspn(text, "\n"));
}

static void read_rank(const struct core *c, const struct job *j, const struct blame *b,
		      const struct rank *k, bool ask_kernel, struct opinion *ret)
{
	_cleanup_(mo_buf_done) struct mo_buf words = { 0 }, kernel = { 0 };
	bool first = k == b->rank, broken = ask_kernel && kernel_of(c, j, k->node, &kernel);
	struct classify_input in = { .code = MO_NONE, .signal = MO_NONE };

	words_of(c->signatures, k, &words);
	in.log = words.data;
	in.n_log = words.len;
	in.iteration = j->progress.watermark;
	if (!blame_by_us(k)) {
		in.code = k->exit->signal > 0 ? MO_NONE : k->exit->code;
		in.signal = k->exit->signal > 0 ? k->exit->signal : MO_NONE;
	}
	classify(c->signatures, &in, &ret->said);
	if (kernel.len && (ret->said.class != FAIL_USER_ERROR || by_exit(&ret->said))) {
		mo_desc_done(&failure_verdict_desc, &ret->said);
		mo_desc_init(&failure_verdict_desc, &ret->said);
		in.kernel = kernel.data;
		in.n_kernel = kernel.len;
		classify(c->signatures, &in, &ret->said);
		ret->proved =
			broken || (ret->said.class == FAIL_NODE_FAULT && by_kernel(&ret->said));
		if (broken && ret->said.class != FAIL_NODE_FAULT)
			believe_check(&ret->said, kernel.data);
	}
	ret->weight = weight_of(&ret->said, first, b->kind == B_SIGNAL);
}

/* The ranks whose words are read, the more telling ones first. */
static size_t choose_ranks(const struct job *j, const struct blame *b, const struct rank **ret)
{
	size_t n = 0;

	if (b->rank)
		ret[n++] = b->rank;
	for (int pass = 0; pass < 3; pass++)
		for (size_t i = 0; i < j->n_steps && n < RANKS_MAX; i++) {
			const struct step *st = &j->steps[i];
			size_t end = (size_t)(st->first_rank + st->n_ranks);

			if (st->attempt != j->attempt)
				continue;
			for (size_t r = (size_t)st->first_rank;
			     r < MO_MIN(end, j->run.n_ranks) && n < RANKS_MAX; r++) {
				const struct rank *k = &j->run.ranks[r];
				int due = !blame_bad(k) || k == b->rank ? -1
					  : blame_by_us(k)              ? 2
					  : k == blame_first(j, st)     ? 0
									: 1;

				if (due == pass)
					ret[n++] = k;
			}
		}
	return n;
}

/* Nothing that an exit or words say can change what these are. */
static bool settled(const struct blame *b)
{
	return b->kind == B_REFUSED || b->kind == B_CONFIG || b->kind == B_ELSEWHERE ||
	       b->kind == B_NODE || b->kind == B_LOST || b->kind == B_NUMBERS ||
	       b->kind == B_HANG ||
	       (b->rank && b->rank->exit && mo_streq(b->rank->exit->cause, "oom"));
}

static void take(const struct job *j, const struct rank *k, struct opinion *o, struct verdict *v)
{
	const struct step *st = step_find(j, j->attempt, k->node);

	if (k != v->blame.rank)
		v->blame = (struct blame){ .kind = k->exit->signal > 0 ? B_SIGNAL : B_EXIT,
					   .step = st,
					   .rank = k };
	v->class = o->said.class;
	v->rule = TAKE_PTR(o->said.rule);
	v->why = TAKE_PTR(o->said.why);
	v->proved = o->proved;
	for (size_t i = 0; !by_exit(&o->said) && i < o->said.n_evidence; i++) {
		const struct failure_evidence *e = &o->said.evidence[i];

		if (mo_streq(e->source, failure_source_names[FROM_KERNEL]))
			mo_strs_printf(&v->lines, &v->n_lines, "%s: %s", k->node, e->text);
		else
			mo_strs_add(&v->lines, &v->n_lines, e->text);
	}
}

struct verdict verdict_of(const struct core *c, const struct job *j, const struct blame *b)
{
	const struct rank *ranks[RANKS_MAX];
	size_t n = c->signatures && !settled(b) ? choose_ranks(j, b, ranks) : 0, best = n;
	struct opinion opinions[RANKS_MAX];
	bool own_error = false; /* the first rank says it: then no node is asked */
	struct verdict v = { .blame = *b };

	for (size_t i = 0; i < n; i++) {
		opinions[i].proved = false;
		mo_desc_init(&failure_verdict_desc, &opinions[i].said);
		read_rank(c, j, b, ranks[i], !own_error, &opinions[i]);
		own_error |= ranks[i] == b->rank && opinions[i].weight == W_FIRST &&
			     opinions[i].said.class == FAIL_USER_ERROR;
		if (opinions[i].weight != W_NOTHING &&
		    (best == n || opinions[i].weight < opinions[best].weight))
			best = i;
	}
	v.class = mo_enum_parse(failure_class_names, _FAILURE_CLASS_N,
				b->kind == B_NONE ? j->failure.class : blame_class(j, b));
	if (best < n && !(j->progress.watermark != MO_NONE && by_exit(&opinions[best].said) &&
			  opinions[best].said.class == FAIL_USER_ERROR))
		take(j, ranks[best], &opinions[best], &v);
	for (size_t i = 0; i < n; i++)
		mo_desc_done(&failure_verdict_desc, &opinions[i].said);
	/* of records that nobody knows the class of */
	v.class = v.class < 0 ? FAIL_TRANSIENT : v.class;
	return v;
}

void verdict_done(struct verdict *v)
{
	free(v->rule);
	free(v->why);
	mo_strs_clear(&v->lines, &v->n_lines);
}

char *verdict_finding(const struct core *c, const struct check_result *r, bool *ret_broken)
{
	_cleanup_(mo_buf_done) struct mo_buf words = { 0 };
	_cleanup_(mo_freep) char *name = finding_name(r), *means = NULL;
	struct classify_input in = { .code = MO_NONE, .signal = MO_NONE, .iteration = MO_NONE };
	struct failure_verdict said;
	bool by_check = r->state == CHECK_CRIT && r->hardware, tells;

	mo_desc_init(&failure_verdict_desc, &said);
	add_finding(r, &words);
	in.kernel = words.data;
	in.n_kernel = words.len;
	if (c->signatures)
		classify(c->signatures, &in, &said);
	tells = by_kernel(&said);
	*ret_broken = by_check || (tells && said.class == FAIL_NODE_FAULT);
	if (tells)
		means = mo_printf(": %s (%s)", said.why, failure_class_names[said.class]);
	mo_desc_done(&failure_verdict_desc, &said);
	return tells || by_check
		       ? mo_printf("%s: %s%s", name, r->text ? r->text : "CRIT", means ? means : "")
		       : NULL;
}

char *verdict_signature(const struct verdict *v, const char *cause)
{
	return mo_printf("%s: %s", failure_class_names[v->class], v->n_lines ? v->rule : cause);
}

void verdict_evidence(const struct core *c, const struct job *j, const struct verdict *v,
		      char ***texts, size_t *n)
{
	const struct rank *k = v->blame.rank;

	blame_evidence(j, &v->blame, texts, n);
	for (size_t i = 0; i < v->n_lines; i++)
		mo_strs_add(texts, n, v->lines[i]);
	for (size_t i = k && c->signatures ? near_end(c->signatures, k) : 0; k && i < k->n_tail;
	     i++)
		if (mo_enum_parse((const char *const *)*texts, *n, k->tail[i]) < 0)
			mo_strs_add(texts, n, k->tail[i]);
}
