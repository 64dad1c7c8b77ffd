/* See stands.h. */
#include "daemon/core/rules/stands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/state/job.h"
#include "lib/base/buf.h"
#include "lib/base/desc.h"

#define PLACES_MAX 8 /* told of, and that of the most ranks */
#define RANKS_SHOWN 8

/* One line of a thread's calls: '  File "PATH", line N in FUNCTION'. */
struct call {
	const char *path, *name;
	int n_path, n_base, n_name;
	const char *base;
	long line;
};

static bool call_read(const char *text, struct call *ret)
{
	static const char head[] = "  File \"", middle[] = "\", line ", last[] = " in ";
	const char *end, *in;
	char *digits_end;

	if (!mo_starts_with(text, head))
		return false;
	ret->path = text + strlen(head);
	end = strstr(ret->path, middle);
	if (!end)
		return false;
	ret->n_path = (int)(end - ret->path);
	ret->line = strtol(end + strlen(middle), &digits_end, 10);
	in = digits_end;
	if (in == end + strlen(middle) || !mo_starts_with(in, last))
		return false;
	ret->name = in + strlen(last);
	ret->n_name = (int)strlen(ret->name);
	ret->base = ret->path;
	for (const char *s = ret->path; s < end; s++)
		if (*s == '/')
			ret->base = s + 1;
	ret->n_base = (int)(end - ret->base);
	return true;
}

/* Installed packages and Python's own files say how it waits, not what for. */
static bool of_others(const struct call *c)
{
	static const char *const parts[] = { "/site-packages/", "/dist-packages/", "/lib/python3" };

	if (mo_starts_with(c->path, "<frozen "))
		return true;
	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		if (memmem(c->path, (size_t)c->n_path, parts[i], strlen(parts[i])))
			return true;
	return false;
}

static char *call_text(const struct call *c)
{
	return mo_printf("%.*s (%.*s:%ld)", c->n_name, c->name, c->n_base, c->base, c->line);
}

char *stands_in(const struct rank *k)
{
	static const char thread[] = "(most recent call first):";
	_cleanup_(mo_freep) char *inner = NULL;
	size_t at = k->n_tail;
	struct call c;

	while (at > 0 && !strstr(k->tail[at - 1], thread))
		at--;
	for (size_t i = at; at > 0 && i < k->n_tail && call_read(k->tail[i], &c); i++) {
		if (i == at)
			inner = call_text(&c);
		if (of_others(&c))
			continue;
		if (i == at)
			break;
		_cleanup_(mo_freep) char *own = call_text(&c);

		return mo_printf("%s, called by %s", inner, own);
	}
	return TAKE_PTR(inner);
}

struct standing {
	char *place; /* NULL: nothing is known */
	int64_t rank;
};
struct place_group {
	const struct standing *first;
	size_t n;
};

static int by_place(const void *a, const void *b)
{
	const struct standing *x = a, *y = b;
	int order = !x->place || !y->place ? !x->place - !y->place : strcmp(x->place, y->place);

	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static int fewest_first(const void *a, const void *b)
{
	const struct place_group *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return (x->first->rank > y->first->rank) - (x->first->rank < y->first->rank);
}

/* "rank 3", "ranks 0-2, 4-7", "ranks 0, 8, 16, ... (64 of them)" */
static void ranks_text(struct mo_buf *b, const struct place_group *g)
{
	size_t shown = 0;

	mo_buf_str(b, g->n == 1 ? "rank" : "ranks");
	for (size_t i = 0; i < g->n; i++) {
		size_t from = i;

		while (i + 1 < g->n && g->first[i + 1].rank == g->first[i].rank + 1)
			i++;
		if (shown++ == RANKS_SHOWN) {
			mo_buf_printf(b, ", ... (%zu of them)", g->n);
			return;
		}
		mo_buf_printf(b, "%s %lld", from ? "," : "", (long long)g->first[from].rank);
		if (i > from)
			mo_buf_printf(b, "-%lld", (long long)g->first[i].rank);
	}
}

static size_t group(const struct standing *all, size_t n, struct place_group *ret)
{
	size_t n_groups = 0;

	for (size_t i = 0; i < n; i++) {
		if (i > 0 &&
		    (all[i].place ? all[i - 1].place && mo_streq(all[i].place, all[i - 1].place)
				  : !all[i - 1].place))
			ret[n_groups - 1].n++;
		else
			ret[n_groups++] = (struct place_group){ &all[i], 1 };
	}
	qsort(ret, n_groups, sizeof(*ret), fewest_first);
	return n_groups;
}

void stands_evidence(const struct job *j, char ***texts, size_t *n)
{
	size_t n_ranks = j->run.n_ranks, n_groups, known = 0;
	struct standing *all = mo_alloc(n_ranks * sizeof(*all) + 1);
	struct place_group *groups = mo_alloc(n_ranks * sizeof(*groups) + 1);

	for (size_t i = 0; i < n_ranks; i++) {
		all[i] = (struct standing){ stands_in(&j->run.ranks[i]), j->run.ranks[i].rank };
		known += all[i].place != NULL;
	}
	qsort(all, n_ranks, sizeof(*all), by_place);
	n_groups = group(all, n_ranks, groups);
	for (size_t i = 0; known && i < n_groups; i++) {
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

		if (i + 1 < n_groups && i >= PLACES_MAX)
			continue;
		ranks_text(&b, &groups[i]);
		if (groups[i].first->place)
			mo_buf_printf(&b, " stood in %s", groups[i].first->place);
		else
			mo_buf_str(&b, " did not say where");
		mo_strs_add(texts, n, b.data);
	}
	for (size_t i = 0; i < n_ranks; i++)
		free(all[i].place);
	free(all);
	free(groups);
}
