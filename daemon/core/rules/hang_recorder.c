/* See hang_recorder.h. Ranks of a group number its collectives alike, so who has enqueued fewer
 * than the number that others wait in is missing there. One that is missing and waits elsewhere
 * waits for somebody itself: who waits in nothing is where the chain ends. */
#include "daemon/core/rules/hang_recorder.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/rank_words.h"
#include "daemon/core/state/heard.h"
#include "lib/base/buf.h"
#include "lib/base/idset.h"
#include "lib/base/parse.h"
#include "lib/model/recorder.h"

#define LINES_MAX 4
#define RANKS_SHOWN 60 /* bytes of a list */

/* What a line says, the strongest first. */
enum weight { MISSING, DIFFERENT, ELSEWHERE, SILENT, ALL_THERE };
struct line {
	enum weight weight;
	char *text, *more;
};
struct waiter {
	int64_t rank, age_ms;
	const struct recorder_wait *w;
};
struct court {
	const struct state *s;
	const struct job *j;
	int64_t since, now;
	struct waiter *waiters;
	size_t n_waiters;
	struct line *lines;
	size_t n_lines;
	size_t n_told, n_silent, n_ranks;
	/* the only one that is missing, or, if none is, that is silent; */
	int64_t missing, silent;
	bool more_missing, more_silent; /* and that there are others */
};

/* What the rank's recorder said; NULL: it was not asked, or has none. */
static const struct rank_recorder *said(const struct court *c, int64_t rank, int64_t *ret_at)
{
	int64_t at = MO_NONE;
	const struct rank_recorder *k = rank_recorder_of(c->s, c->j, (size_t)rank, &at);

	if (!k || at <= c->since || c->j->run.ranks[rank].exit)
		return NULL;
	if (ret_at)
		*ret_at = at;
	return k;
}

static int by_group(const void *a, const void *b)
{
	const struct waiter *x = a, *y = b;
	int order = strcmp(x->w->group, y->w->group);

	if (order == 0)
		order = strcmp(x->w->members ? x->w->members : "",
			       y->w->members ? y->w->members : "");
	if (order == 0)
		order = x->w->p2p - y->w->p2p;
	if (order == 0 && x->w->seq != y->w->seq)
		order = x->w->seq < y->w->seq ? -1 : 1;
	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static bool same_group(const struct recorder_wait *a, const struct recorder_wait *b)
{
	return mo_streq(a->group, b->group) && mo_streq(a->members, b->members);
}

static void add_line(struct court *c, enum weight weight, char *text, char *more)
{
	*MO_GROW(c->lines, c->n_lines) = (struct line){ weight, text, more };
}

static void suspect(int64_t rank, int64_t *only, bool *more)
{
	*more |= *only != MO_NONE && *only != rank;
	*only = rank;
}

/* ---- words ---- */

static char *ranks_words(const struct job *j, const struct mo_idset *set)
{
	size_t n = mo_idset_count(set);
	_cleanup_(mo_freep) char *list = n > 1 ? mo_idset_format(set) : NULL;

	return n == 1                                ? rank_words(j, mo_idset_next(set, 0))
	       : list && strlen(list) <= RANKS_SHOWN ? mo_printf("ranks %s", list)
						     : mo_printf("%zu ranks", n);
}

/* "all_reduce #781 of default_pg" */
static char *wait_words(const struct recorder_wait *w)
{
	bool named = w->desc && *w->desc && !mo_streq(w->desc, "undefined");

	return mo_printf("%s #%lld of %s%s", w->op ? w->op : "collective", (long long)w->seq,
			 named ? "" : "group ",
			 named      ? w->desc
			 : w->group ? w->group
				    : "?");
}

/* ", in which 7 ranks wait for 62 s, at train_step (train.py:120)" */
static char *waits_words(const struct waiter *k, size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t age_ms = MO_NONE;

	for (size_t i = 0; i < n; i++)
		age_ms = MO_MAX(age_ms, k[i].age_ms);
	if (n == 1)
		mo_buf_printf(&b, ", in which rank %lld waits", (long long)k->rank);
	else
		mo_buf_printf(&b, ", in which %zu ranks wait", n);
	if (age_ms != MO_NONE)
		mo_buf_printf(&b, " for %lld s", (long long)(age_ms / 1000));
	if (k->w->at)
		mo_buf_printf(&b, ", at %s", k->w->at);
	return mo_buf_take(&b);
}

/* What the first of them waits in itself is said too. */
static char *elsewhere_words(const struct court *c, int64_t rank, const char *waits)
{
	const struct rank_recorder *k = said(c, rank, NULL);
	_cleanup_(mo_freep) char *instead = wait_words(&k->waits[0]);

	return mo_printf("%s; rank %lld waits in %s%s%s", waits, (long long)rank, instead,
			 k->waits[0].at ? ", at " : "", k->waits[0].at ? k->waits[0].at : "");
}

/* ---- one collective ---- */

static bool joined(const struct waiter *k, size_t n, int64_t rank)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k[mid].rank < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && k[low].rank == rank;
}

/* The last collective of the group that the rank has enqueued; INT64_MAX: it does not say. */
static int64_t enqueued(const struct rank_recorder *k, const char *group)
{
	const char *at = k->enqueued ? k->enqueued : "";
	size_t n = strlen(group);
	int64_t seq;

	while (*at) {
		_cleanup_(mo_freep) char *word = mo_part(&at, " ");

		if (strncmp(word, group, n) == 0 && word[n] == '=' &&
		    mo_parse_i64(word + n + 1, 0, INT64_MAX, &seq) == 0)
			return seq;
	}
	return INT64_MAX;
}

struct missing {
	struct mo_idset free, busy, silent;
	size_t n_unknown;
};

static void look_for(const struct court *c, const struct waiter *k, size_t n, int64_t rank,
		     struct missing *ret)
{
	const struct rank_recorder *other = said(c, rank, NULL);

	if (joined(k, n, rank))
		return;
	if (!other)
		ret->n_unknown++;
	else if (other->silent)
		mo_idset_add(&ret->silent, (size_t)rank);
	else if (enqueued(other, k->w->group) == INT64_MAX)
		ret->n_unknown++;
	else if (enqueued(other, k->w->group) < k->w->seq)
		mo_idset_add(other->n_waits ? &ret->busy : &ret->free, (size_t)rank);
}

static void who_is_missing(const struct court *c, const struct waiter *k, size_t n,
			   struct missing *ret)
{
	_cleanup_(mo_idset_done) struct mo_idset members = { 0 };

	if (!k->w->members || mo_idset_parse(k->w->members, &members) < 0) {
		ret->n_unknown++;
		return;
	}
	for (int64_t r = mo_idset_next(&members, 0); r >= 0 && (uint64_t)r < c->j->run.n_ranks;
	     r = mo_idset_next(&members, r + 1))
		look_for(c, k, n, r, ret);
}

/* Of these the ranks may have other shapes by right: what is split as each rank likes. */
static bool alike_in_size(const char *op)
{
	static const char *const ops[] = { "all_reduce", "broadcast", "_all_gather_base",
					   "_reduce_scatter_base" };

	for (size_t i = 0; i < ELEMENTSOF(ops); i++)
		if (mo_streq(op, ops[i]))
			return true;
	return false;
}

static bool same_call(const struct recorder_wait *a, const struct recorder_wait *b)
{
	return !a->op || !b->op ||
	       (mo_streq(a->op, b->op) && (!alike_in_size(a->op) || mo_streq(a->sizes, b->sizes)));
}

static char *call_words(const struct waiter *k)
{
	return mo_printf("rank %lld calls %s%s%s%s%s", (long long)k->rank, k->w->op,
			 k->w->sizes ? " " : "", k->w->sizes ? k->w->sizes : "",
			 k->w->at ? " at " : "", k->w->at ? k->w->at : "");
}

/* True: the ranks that meet there do not call the same. */
static bool judge_calls(struct court *c, const struct waiter *k, size_t n)
{
	size_t n_other = 0, other = 0;

	for (size_t i = n; i-- > 1;)
		if (!same_call(k->w, k[i].w)) {
			n_other++;
			other = i;
		}
	if (n_other == 0)
		return false;
	_cleanup_(mo_freep) char *first = call_words(k), *second = call_words(&k[other]);
	bool named = k->w->desc && *k->w->desc;

	add_line(c, DIFFERENT,
		 mo_printf("ranks differ in #%lld of %s: %s, %s", (long long)k->w->seq,
			   named ? k->w->desc : k->w->group, first, second),
		 NULL);
	if (n > 2 && n_other == 1)
		suspect(k[other].rank, &c->missing, &c->more_missing);
	else if (n > 2 && n_other == n - 1)
		suspect(k->rank, &c->missing, &c->more_missing);
	return true;
}

/* All are in it. With TORCH_NCCL_ENABLE_TIMING it is known whose GPU has come to it. */
static void all_there(struct court *c, const struct waiter *k, size_t n, const char *what)
{
	_cleanup_(mo_idset_done) struct mo_idset idle = { 0 };
	_cleanup_(mo_freep) char *waits = waits_words(k, n);

	for (size_t i = 0; i < n; i++)
		if (!k[i].w->started)
			mo_idset_add(&idle, (size_t)k[i].rank);
	size_t n_idle = mo_idset_count(&idle);

	if (n_idle > 0 && n_idle < n) {
		_cleanup_(mo_freep) char *who = ranks_words(c->j, &idle);

		if (n_idle == 1)
			suspect(mo_idset_next(&idle, 0), &c->missing, &c->more_missing);
		add_line(c, MISSING, mo_printf("the GPU of %s has not come to %s", who, what),
			 TAKE_PTR(waits));
		return;
	}
	add_line(c, ALL_THERE, mo_printf("all ranks have called %s, which does not end", what),
		 TAKE_PTR(waits));
}

static void judge_collective(struct court *c, const struct waiter *k, size_t n)
{
	struct missing m = { 0 };
	_cleanup_(mo_freep) char *what = wait_words(k->w), *waits = waits_words(k, n);

	if (judge_calls(c, k, n))
		return;
	who_is_missing(c, k, n, &m);
	const struct mo_idset *them = mo_idset_count(&m.free)   ? &m.free
				      : mo_idset_count(&m.busy) ? &m.busy
								: &m.silent;
	size_t n_them = mo_idset_count(them);
	_cleanup_(mo_freep) char *who = ranks_words(c->j, them);

	if (them == &m.free)
		for (int64_t r = mo_idset_next(them, 0); r >= 0; r = mo_idset_next(them, r + 1))
			suspect(r, &c->missing, &c->more_missing);
	else if (them == &m.silent)
		for (int64_t r = mo_idset_next(them, 0); r >= 0; r = mo_idset_next(them, r + 1))
			suspect(r, &c->silent, &c->more_silent);
	if (n_them == 0 && m.n_unknown == 0)
		all_there(c, k, n, what);
	else if (n_them == 0)
		add_line(c, ALL_THERE, mo_printf("nothing is known of who is missing in %s", what),
			 TAKE_PTR(waits));
	else if (them == &m.silent)
		add_line(c, SILENT,
			 mo_printf("%s, whose flight recorder%s not answer, may not have joined %s",
				   who, n_them > 1 ? "s do" : " does", what),
			 TAKE_PTR(waits));
	else
		add_line(c, them == &m.free ? MISSING : ELSEWHERE,
			 mo_printf("%s %s not joined %s", who, n_them > 1 ? "have" : "has", what),
			 them == &m.free ? TAKE_PTR(waits)
					 : elsewhere_words(c, mo_idset_next(them, 0), waits));
	mo_idset_done(&m.free);
	mo_idset_done(&m.busy);
	mo_idset_done(&m.silent);
}

/* ---- from rank to rank ---- */

/* Of "send 0->1" and "recv 0<-1": what the other must call, "recv 1<-0", and who that is in the
 * job; MO_NONE: that is not known. Caller frees. */
static char *counterpart(const struct recorder_wait *w, int64_t *ret_rank)
{
	_cleanup_(mo_idset_done) struct mo_idset members = { 0 };
	bool sends = w->op && mo_starts_with(w->op, "send ");
	const char *at = w->op && (sends || mo_starts_with(w->op, "recv ")) ? w->op + 5 : "";
	_cleanup_(mo_freep) char *own = mo_part(&at, "-<");
	int64_t me, peer, rank = -1;

	if (!*at || mo_parse_i64(own, 0, INT64_MAX, &me) < 0 ||
	    mo_parse_i64(at + 1, 0, 1 << 20, &peer) < 0 || !w->members ||
	    mo_idset_parse(w->members, &members) < 0)
		return NULL;
	for (int64_t i = 0; i <= peer; i++) {
		rank = mo_idset_next(&members, rank + 1);
		if (rank < 0)
			return NULL;
	}
	*ret_rank = rank;
	return mo_printf("%s %lld%s%lld", sends ? "recv" : "send", (long long)peer,
			 sends ? "<-" : "->", (long long)me);
}

static void judge_pair(struct court *c, const struct waiter *k)
{
	int64_t peer = MO_NONE;
	_cleanup_(mo_freep) char *due = counterpart(k->w, &peer), *what = wait_words(k->w);
	const struct rank_recorder *other =
		due && (uint64_t)peer < c->j->run.n_ranks ? said(c, peer, NULL) : NULL;

	if (!other)
		return;
	for (size_t i = 0; i < other->n_waits; i++)
		if (other->waits[i].p2p && same_group(&other->waits[i], k->w) &&
		    mo_streq(other->waits[i].op, due))
			return;
	_cleanup_(mo_freep) char *who = rank_words(c->j, peer), *waits = waits_words(k, 1);

	if (other->silent) {
		suspect(peer, &c->silent, &c->more_silent);
		add_line(c, SILENT,
			 mo_printf("%s, whose flight recorder does not answer, may not have called "
				   "%s for %s",
				   who, due, what),
			 TAKE_PTR(waits));
		return;
	}
	if (other->n_waits == 0)
		suspect(peer, &c->missing, &c->more_missing);
	add_line(c, other->n_waits ? ELSEWHERE : MISSING,
		 mo_printf("%s has not called %s for %s", who, due, what),
		 other->n_waits ? elsewhere_words(c, peer, waits) : TAKE_PTR(waits));
}

/* ---- all of them ---- */

static void hear(struct court *c)
{
	for (size_t i = 0; i < c->j->run.n_ranks; i++) {
		int64_t at;
		const struct rank_recorder *k = said(c, (int64_t)i, &at);

		c->n_ranks += !c->j->run.ranks[i].exit;
		c->n_told += k && !k->silent;
		c->n_silent += k && k->silent;
		for (size_t w = 0; k && w < k->n_waits; w++)
			if (k->waits[w].group && k->waits[w].seq >= 0)
				*MO_GROW(c->waiters, c->n_waiters) =
					(struct waiter){ (int64_t)i,
							 k->waits[w].age_ms == MO_NONE
								 ? MO_NONE
								 : k->waits[w].age_ms +
									   (c->now - at) / 1000,
							 &k->waits[w] };
	}
	qsort(c->waiters, c->n_waiters, sizeof(*c->waiters), by_group);
}

/* Of each group the lowest number that somebody waits in: who waits in a higher one was in it. */
static void judge_all(struct court *c)
{
	for (size_t i = 0, n; i < c->n_waiters; i += n) {
		const struct waiter *k = &c->waiters[i];
		bool first = i == 0 || k[-1].w->p2p || !same_group(k[-1].w, k->w);

		n = 1;
		while (!k->w->p2p && i + n < c->n_waiters && !k[n].w->p2p &&
		       same_group(k->w, k[n].w) && k[n].w->seq == k->w->seq)
			n++;
		if (k->w->p2p)
			judge_pair(c, k);
		else if (first)
			judge_collective(c, k, n);
	}
}

static void conclude(struct court *c, struct recorder_finding *ret)
{
	enum weight first = ALL_THERE;

	for (int weight = MISSING; weight <= ALL_THERE; weight++)
		for (size_t i = 0; i < c->n_lines && ret->n_lines < LINES_MAX; i++) {
			const struct line *l = &c->lines[i];

			if (l->weight != (enum weight)weight)
				continue;
			mo_strs_printf(&ret->lines, &ret->n_lines, RECORDERS_SAY ": %s%s", l->text,
				       l->more ? l->more : "");
			if (!ret->text)
				first = l->weight;
			if (!ret->text)
				ret->text = mo_strdup(l->text);
		}
	if (c->n_told > 0 && c->n_waiters == 0) {
		ret->text = mo_strdup("no rank waits in a collective");
		mo_strs_printf(&ret->lines, &ret->n_lines, RECORDERS_SAY ": %s", ret->text);
	}
	if (c->n_told + c->n_silent > 0 && c->n_told < c->n_ranks)
		mo_strs_printf(&ret->lines, &ret->n_lines,
			       RECORDERS_SAY " of %zu of %zu ranks answered", c->n_told,
			       c->n_ranks);
	if (c->missing != MO_NONE)
		ret->rank = c->more_missing ? MO_NONE : c->missing;
	else if (!c->more_silent)
		ret->rank = c->silent;
	ret->named = first < SILENT || (first == SILENT && ret->rank != MO_NONE);
}

void recorder_judge(const struct state *s, const struct job *j, int64_t since, int64_t now,
		    struct recorder_finding *ret)
{
	struct court c = {
		.s = s, .j = j, .since = since, .now = now, .missing = MO_NONE, .silent = MO_NONE
	};

	*ret = (struct recorder_finding){ .rank = MO_NONE };
	hear(&c);
	judge_all(&c);
	conclude(&c, ret);
	for (size_t i = 0; i < c.n_lines; i++) {
		free(c.lines[i].text);
		free(c.lines[i].more);
	}
	free(c.lines);
	free(c.waiters);
}

void recorder_finding_done(struct recorder_finding *f)
{
	free(f->text);
	mo_strs_clear(&f->lines, &f->n_lines);
	*f = (struct recorder_finding){ .rank = MO_NONE };
}
