/* Grids of files: one per rank or per group of ranks, TP x PP x EP directories for example. Full
 * means: every combination of numbers from 0 on, in each variant, each once, and as many as the
 * ranks want and the files themselves say; of tied numbers (experts split otherwise than the
 * rest) every pair that meets in a rank. */
#include "agent/core/ckpt/ckpt_inner.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/parse.h"

#define GROUPS CKPT_NUMBERS_MAX
#define GRID_MAX 1000000
#define DIGITS_MAX 6

struct cell {
	const char *name, *variant;
	size_t n_variant;
	int64_t at[GROUPS];
};
struct cells {
	struct cell *items;
	size_t n;
	bool senseless;
};

static int number_of(const char *name, PCRE2_SIZE begin, PCRE2_SIZE end, int64_t *ret)
{
	char text[DIGITS_MAX + 1];

	if (end - begin > DIGITS_MAX)
		return -1;
	memcpy(text, name + begin, end - begin);
	text[end - begin] = 0;
	return mo_parse_i64(text, 0, GRID_MAX - 1, ret);
}

/* The numbers of the groups in this name, groups that are not there counting as 0. *senseless:
 * one is no number that could be. */
static bool cell_of(const struct ckpt_rules *r, size_t grid, const char *name, struct cell *c,
		    bool *senseless)
{
	const pcre2_code *code = r->grids[grid];
	int n = pcre2_match(code, (PCRE2_SPTR)name, strlen(name), 0, 0, r->data, NULL),
	    variant = pcre2_substring_number_from_name(code, (PCRE2_SPTR) "variant"), number = 0;
	const PCRE2_SIZE *v = pcre2_get_ovector_pointer(r->data);

	*c = (struct cell){ .name = name, .variant = "" };
	for (int g = 1; g < n; g++) {
		if (v[2 * g] == PCRE2_UNSET) {
			number += g != variant;
		} else if (g == variant) {
			c->variant = name + v[2 * g];
			c->n_variant = v[2 * g + 1] - v[2 * g];
		} else if (number < GROUPS &&
			   number_of(name, v[2 * g], v[2 * g + 1], &c->at[number++]) < 0) {
			*senseless = true;
		}
	}
	return n > 0;
}

bool ckpt_has_cells(const struct ckpt_rules *r, const struct ckpt_entry *e)
{
	for (size_t i = 0; i < e->n_files; i++)
		for (size_t g = 0; g < r->layout.n_grids; g++)
			if (ckpt_found(r, r->grids[g], e->files[i].name, strlen(e->files[i].name)))
				return true;
	return false;
}

static int variant_order(const struct cell *x, const struct cell *y)
{
	int order = memcmp(x->variant, y->variant, MO_MIN(x->n_variant, y->n_variant));

	return order ? order : (x->n_variant > y->n_variant) - (x->n_variant < y->n_variant);
}

static int cell_order(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;
	int order = variant_order(x, y);

	for (int g = 0; g < GROUPS && order == 0; g++)
		order = (x->at[g] > y->at[g]) - (x->at[g] < y->at[g]);
	return order;
}

static void find_cells(const struct judging *j, size_t grid, struct cells *ret)
{
	struct cell c;

	for (size_t i = 0; i < j->e->n_files; i++)
		if (cell_of(j->r, grid, j->sorted[i]->name, &c, &ret->senseless))
			*MO_GROW(ret->items, ret->n) = c;
	if (ret->n > 1)
		qsort(ret->items, ret->n, sizeof(*ret->items), cell_order);
}

/* The name of `like` with these numbers in its groups, as wide as they are there. */
static char *name_of(const struct ckpt_rules *r, size_t grid, const struct cell *like,
		     const int64_t at[GROUPS])
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int n = pcre2_match(r->grids[grid], (PCRE2_SPTR)like->name, strlen(like->name), 0, 0,
			    r->data, NULL),
	    variant = pcre2_substring_number_from_name(r->grids[grid], (PCRE2_SPTR) "variant");
	const PCRE2_SIZE *v = pcre2_get_ovector_pointer(r->data);
	size_t from = 0;
	int number = 0;

	for (int g = 1; g < n; g++) {
		if (g == variant)
			continue;
		if (v[2 * g] != PCRE2_UNSET && number < GROUPS) {
			mo_buf_add(&b, like->name + from, v[2 * g] - from);
			mo_buf_printf(&b, "%0*lld",
				      like->name[v[2 * g]] == '0' || v[2 * g + 1] - v[2 * g] > 1
					      ? (int)(v[2 * g + 1] - v[2 * g])
					      : 1,
				      (long long)at[number]);
			from = v[2 * g + 1];
		}
		number++;
	}
	mo_buf_str(&b, like->name + from);
	return mo_strdup(b.data ? b.data : like->name);
}

/* One variant: cells[0..n) are sorted. *ret: how many files it should have. */
static char *judge_variant(const struct ckpt_rules *r, size_t grid, const struct cell *cells,
			   size_t n, int64_t *ret)
{
	int64_t size[GROUPS] = { 0 }, all = 1, at[GROUPS];

	for (size_t i = 0; i < n; i++)
		for (int g = 0; g < GROUPS; g++)
			size[g] = MO_MAX(size[g], cells[i].at[g] + 1);
	for (int g = 0; g < GROUPS; g++)
		all = all > GRID_MAX ? all : all * size[g];
	*ret = all;
	for (size_t i = 1; i < n; i++)
		if (cell_order(&cells[i - 1], &cells[i]) == 0)
			return mo_printf("%s and %s are the same part: two saves are mixed",
					 cells[i - 1].name, cells[i].name);
	for (int64_t i = 0; i < MO_MIN(all, (int64_t)n + 1); i++) {
		int64_t rest = i;
		for (int g = GROUPS - 1; g >= 0; g--) {
			at[g] = rest % size[g];
			rest /= size[g];
		}
		if ((size_t)i < n && memcmp(cells[i].at, at, sizeof(at)) == 0)
			continue;
		_cleanup_(mo_freep) char *name = name_of(r, grid, &cells[0], at);
		return mo_printf("%s is missing: by the numbers in their names there are %lld such "
				 "files",
				 name, (long long)all);
	}
	return NULL;
}

/* The size of the grid in this group of its numbers. */
static int64_t size_of(const struct cells *cells, int group)
{
	int64_t size = 0;

	for (size_t i = 0; i < cells->n; i++)
		size = MO_MAX(size, cells->items[i].at[group] + 1);
	return size;
}

/* Ranks of the first group of `share` wrote for all: the others have the same. */
static char *judge_share(const struct judging *j, size_t grid, const struct cells *cells,
			 int64_t parts)
{
	int64_t share = j->e->share[grid], have = size_of(cells, 0), world = j->q->world;

	if (have != share)
		return mo_printf("%lld ranks wrote it, but they are %lld that share it (%s)",
				 (long long)have, (long long)share, j->r->layout.grids[grid].share);
	return world == MO_NONE || world % parts == 0
		       ? NULL
		       : mo_printf("it has %lld parts, which %lld ranks are no multiple of: others "
				   "wrote it",
				   (long long)parts, (long long)world);
}

static int numbers_of(const struct ckpt_rules *r, size_t grid)
{
	uint32_t groups = 0, names = 0;

	pcre2_pattern_info(r->grids[grid], PCRE2_INFO_CAPTURECOUNT, &groups);
	pcre2_pattern_info(r->grids[grid], PCRE2_INFO_NAMECOUNT, &names);
	return MO_MAX(1, MO_MIN((int)(groups - names), GROUPS));
}

/* Layers with unlike many experts: no grid, but as many files as all together. */
static char *judge_sum(const struct judging *j, size_t grid, const struct cells *cells)
{
	int64_t want = j->e->sum[grid] * size_of(cells, numbers_of(j->r, grid) - 1);

	return (int64_t)cells->n == want ? NULL
					 : mo_printf("there are %zu files like %s of %lld (%s)",
						     cells->n, cells->items[0].name,
						     (long long)want, j->r->layout.grids[grid].sum);
}

static char *judge_count(const struct judging *j, size_t grid, int64_t parts)
{
	const struct ckpt_grid *l = &j->r->layout.grids[grid];
	int64_t world = j->q->world, stated = j->e->parts[grid];

	if (l->n_says > 0 && j->e->asked && stated <= 0)
		return mo_printf("no file of its %lld parts tells how many there must be (%s, ...)",
				 (long long)parts, l->says[0]);
	if (stated > 0 && stated != parts)
		return mo_printf("it has %lld parts of %lld: the others are missing",
				 (long long)parts, (long long)stated);
	if (world == MO_NONE || l->count < 0)
		return NULL;
	if (l->count == COUNT_WORLD)
		return parts == world ? NULL
				      : mo_printf("%lld ranks wrote it, the job has %lld",
						  (long long)parts, (long long)world);
	return world % parts == 0 ? NULL
				  : mo_printf("it has %lld parts, which %lld ranks are no multiple "
					      "of: parts are missing, or others wrote it",
					      (long long)parts, (long long)world);
}

/* What the files themselves say that there is. */
static char *judge_variants(const struct judging *j, size_t grid, const struct cells *cells)
{
	const struct ckpt_grid *l = &j->r->layout.grids[grid];

	for (size_t i = 0; i < l->n_variants; i++) {
		bool there = !(j->e->due[grid] & 1u << i);
		for (size_t k = 0; k < cells->n && !there; k++)
			there = strlen(l->variants[i].key) == cells->items[k].n_variant &&
				memcmp(l->variants[i].key, cells->items[k].variant,
				       cells->items[k].n_variant) == 0;
		if (!there)
			return mo_printf("the files of %s are missing, which %s says there are",
					 l->variants[i].key, l->variants[i].value);
	}
	return NULL;
}

/* The numbers in the name of part i: of the first and the last one a pair that meets in a rank,
 * of those between every one. A size of 1 is not in the names, but for the first. */
static void tied_part(const struct judging *j, size_t grid, int64_t i, int64_t at[GROUPS])
{
	const int64_t *stated = j->e->stated[grid], tied = j->e->tied[grid];
	size_t last = j->r->layout.grids[grid].n_says - 1, group = 0;
	int64_t k = i % (tied * stated[last]), rest = i / (tied * stated[last]);

	memset(at, 0, GROUPS * sizeof(*at));
	at[group++] = k % stated[0];
	for (size_t m = 1; m < last; m++) {
		if (stated[m] > 1)
			at[group++] = rest % stated[m];
		rest /= stated[m];
	}
	if (stated[last] > 1)
		at[group] = k / tied;
}

/* One variant: exactly these pairs. */
static char *judge_tied_variant(const struct judging *j, size_t grid, const struct cell *cells,
				size_t n)
{
	int64_t parts = j->e->parts[grid];

	for (int64_t i = 0; i < MO_MIN(parts, (int64_t)n + 1); i++) {
		struct cell want = cells[0];

		tied_part(j, grid, i, want.at);
		if (bsearch(&want, cells, n, sizeof(want), cell_order))
			continue;
		_cleanup_(mo_freep) char *name = name_of(j->r, grid, &cells[0], want.at);
		return mo_printf("%s is missing: by the sizes in them there are %lld such files",
				 name, (long long)parts);
	}
	return (int64_t)n == parts
		       ? NULL
		       : mo_printf("there are %zu files like %s of %lld: two saves are mixed", n,
				   cells[0].name, (long long)parts);
}

/* Experts that are split otherwise than the rest: not every pair of the first and the last
 * number is one of a rank. What the ranks did not write, or wrote twice, the engine itself
 * cannot load. */
static char *judge_tied(const struct judging *j, size_t grid, const struct cells *cells)
{
	const struct ckpt_grid *l = &j->r->layout.grids[grid];
	int64_t first = j->e->stated[grid][0], last = j->e->stated[grid][l->n_says - 1],
		tied = j->e->tied[grid];
	char *reason = NULL;

	if (tied > first)
		return mo_printf("with %s %lld above %s %lld two ranks wrote each file, one over "
				 "the other: it cannot be loaded; take another format",
				 l->tied, (long long)tied, l->says[0], (long long)first);
	if (tied * last % first != 0)
		return mo_printf("with %s %lld, %s %lld and %s %lld some ranks wrote no file, and "
				 "the engine cannot load it without; take another format",
				 l->says[0], (long long)first, l->tied, (long long)tied,
				 l->says[l->n_says - 1], (long long)last);
	for (size_t i = 0, end; i < cells->n && !reason; i = end) {
		for (end = i + 1;
		     end < cells->n && variant_order(&cells->items[i], &cells->items[end]) == 0;)
			end++;
		reason = judge_tied_variant(j, grid, &cells->items[i], end - i);
	}
	reason = reason ? reason : judge_variants(j, grid, cells);
	return reason ? reason : judge_count(j, grid, j->e->parts[grid]);
}

static char *judge_grid(const struct judging *j, size_t grid, const struct cells *cells)
{
	int64_t parts = 0, first = 0;
	char *reason = NULL;

	if (cells->senseless)
		return mo_strdup("the numbers in its files' names make no sense");
	if (cells->n == 0)
		return j->r->layout.grids[grid].required && !j->e->excused[grid]
			       ? mo_strdup("it holds none of the files that the ranks write")
			       : NULL;
	if (j->e->sum[grid] > 0)
		return judge_sum(j, grid, cells);
	if (j->e->tied[grid] > 0)
		return judge_tied(j, grid, cells);
	for (size_t i = 0, end; i < cells->n && !reason; i = end) {
		for (end = i + 1;
		     end < cells->n && variant_order(&cells->items[i], &cells->items[end]) == 0;)
			end++;
		reason = judge_variant(j->r, grid, &cells->items[i], end - i, &parts);
		first = first ? first : parts;
		if (!reason && parts != first)
			reason = mo_printf("there are %lld files like %s, but %lld like %s: some "
					   "are missing, or two saves are mixed",
					   (long long)first, cells->items[0].name, (long long)parts,
					   cells->items[i].name);
	}
	reason = reason ? reason : judge_variants(j, grid, cells);
	if (!reason && j->e->share[grid] > 0)
		return judge_share(j, grid, cells, parts);
	return reason ? reason : judge_count(j, grid, parts);
}

char *ckpt_judge_grids(const struct judging *j)
{
	char *reason = NULL;

	for (size_t i = 0; i < j->r->layout.n_grids && !reason; i++) {
		struct cells cells = { 0 };
		find_cells(j, i, &cells);
		reason = judge_grid(j, i, &cells);
		free(cells.items);
	}
	return reason;
}
