/* See log_fold.h. The lines of a rank are laid beside those of the ranks before it: an equal line
 * soon behind the rank's newest one becomes one with it, and those of the rank that were passed by
 * come to stand before it. Farther away two lines in a row have to be equal: one alone, such as an
 * empty one, would be passed to and have all between unfolded. Nothing is sorted, so no rank's
 * lines change their order. */
#include "cli/log_fold.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/idset.h"

#define NEAR 16               /* lines in which one that is equal is enough */
#define FAR 512               /* and two: so far apart a rank's own lines may be */
#define BYTES_MAX (64u << 20) /* that are kept; then folding begins anew */
#define RANKS_SHOWN 24        /* letters of a list of ranks */

struct fold_line {
	struct fold_line *next;
	struct mo_idset ranks;
	size_t n;
	char text[];
};

static void free_chain(struct fold_line *l)
{
	while (l) {
		struct fold_line *next = l->next;

		mo_idset_done(&l->ranks);
		free(l);
		l = next;
	}
}

void log_fold_done(struct log_fold *f)
{
	free_chain(f->first);
	free_chain(f->held);
	*f = (struct log_fold){ 0 };
}

/* Puts a chain behind `before`; NULL: before all. */
static void insert(struct log_fold *f, struct fold_line *before, struct fold_line *chain,
		   struct fold_line *chain_last)
{
	struct fold_line **link = before ? &before->next : &f->first;

	chain_last->next = *link;
	*link = chain;
	if (!chain_last->next)
		f->last = chain_last;
}

static void place_held(struct log_fold *f, struct fold_line *before)
{
	if (f->held_last)
		insert(f, before, f->held, f->held_last);
	f->held = f->held_last = NULL;
	f->n_held = 0;
}

/* What was held of the rank has no equal: it comes last. */
static void give_up(struct log_fold *f)
{
	place_held(f, f->last);
	f->at = f->last;
}

static struct fold_line *line_new(struct log_fold *f, const char *text, size_t n)
{
	struct fold_line *l = mo_alloc(sizeof(*l) + n + 1);

	l->n = n;
	memcpy(l->text, text, n + 1);
	mo_idset_add(&l->ranks, (size_t)f->rank);
	f->bytes += sizeof(*l) + n;
	return l;
}

static void hold(struct log_fold *f, struct fold_line *l)
{
	if (f->held)
		f->held_last->next = l;
	else
		f->held = l;
	f->held_last = l;
	/* the last of all lines has none behind it to wait for */
	if (++f->n_held > FAR || f->at == f->last)
		give_up(f);
}

static bool equals(const struct fold_line *l, const char *text, size_t n)
{
	return l->n == n && memcmp(l->text, text, n) == 0;
}

static void join(struct log_fold *f, struct fold_line *l)
{
	mo_idset_add(&l->ranks, (size_t)f->rank);
	f->at = l;
}

/* The newest of the held lines is this one. */
static void join_held(struct log_fold *f, struct fold_line *l)
{
	struct fold_line *last = f->held_last, *before = NULL;

	for (struct fold_line *h = f->held; h != last; h = h->next)
		before = h;
	if (before)
		before->next = NULL;
	else
		f->held = NULL;
	f->held_last = before;
	f->n_held--;
	f->bytes -= sizeof(*last) + last->n;
	free_chain(last);
	join(f, l);
}

/* Makes the line one with its equal, if there is one. */
static bool fold(struct log_fold *f, const char *text, size_t n)
{
	struct fold_line *before = f->at, *two = NULL, /* lines before l, and before that */
						  *l = before ? before->next : f->first;
	const struct fold_line *held = f->held_last;

	for (size_t i = 0; l && i < FAR; i++, two = before, before = l, l = l->next) {
		bool twice = held && i > 0 && equals(before, held->text, held->n);

		if ((i >= NEAR && !twice) || !equals(l, text, n))
			continue;
		if (twice)
			join_held(f, before);
		place_held(f, twice ? two : before);
		join(f, l);
		return true;
	}
	return false;
}

static void show(const struct fold_line *l, struct mo_buf *to)
{
	_cleanup_(mo_freep) char *ranks = mo_idset_format(&l->ranks);
	size_t n = mo_idset_count(&l->ranks);

	/* a piece of the list has at most 13 letters: there is a comma */
	const char *cut = strlen(ranks) > RANKS_SHOWN ? memrchr(ranks, ',', RANKS_SHOWN) : NULL;

	if (cut)
		mo_buf_printf(to, "[%.*s,...] %s", (int)(cut - ranks), ranks, l->text);
	else
		mo_buf_printf(to, "[%s] %s", ranks, l->text);
	if (n > 1)
		mo_buf_printf(to, " (x %zu ranks)", n);
	mo_buf_str(to, "\n");
}

void log_fold_take(struct log_fold *f, struct mo_buf *to)
{
	give_up(f);
	for (const struct fold_line *l = f->first; l; l = l->next)
		show(l, to);
	log_fold_done(f);
}

void log_fold_add(struct log_fold *f, int64_t rank, const char *line, struct mo_buf *to)
{
	size_t n = strlen(line);

	if (f->bytes > BYTES_MAX || (f->first && rank < f->rank))
		log_fold_take(f, to); /* a rank that comes again would lose its order */
	if (rank != f->rank) {
		give_up(f);
		f->at = NULL;
		f->rank = rank;
	}
	if (!fold(f, line, n))
		hold(f, line_new(f, line, n));
}
