/* What the files of a checkpoint tell of themselves: how many parts there are, which iteration,
 * the grid of ranks. */
#include "agent/core/ckpt/ckpt_stated.h"

#include <string.h>

#include "agent/core/ckpt/ckpt.h"
#include "agent/core/ckpt/ckpt_inner.h"
#include "agent/core/text/pickle.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"

#define PARTS_MAX (1 << 20)

char *ckpt_iteration_damage(const char *words, const void *pickle, size_t n, int64_t iteration)
{
	int64_t stated = words ? pickle_number_behind(pickle, n, words) : -1;

	return stated < 0 || stated == iteration
		       ? NULL
		       : mo_printf("it is of iteration %lld: the content of another save is here",
				   (long long)stated);
}

int64_t ckpt_state_iteration(const struct ckpt_layout *layout, const void *pickle, size_t n)
{
	int64_t stated = -1;

	for (size_t i = 0; stated < 0 && i < layout->n_state_words; i++)
		stated = pickle_number_behind(pickle, n, layout->state_words[i]);
	return stated;
}

bool ckpt_tells_parts(const struct ckpt_rules *r, const char *name, size_t *ret_grid)
{
	for (size_t i = 0; i < r->layout.n_grids; i++)
		if (r->layout.grids[i].n_says > 0 &&
		    ckpt_found(r, r->grids[i], name, strlen(name))) {
			*ret_grid = i;
			return true;
		}
	return false;
}

/* "tp 1, pp 2, ep 1", and "etp 1" behind it where there are experts that are not split as the
 * rest is, or could be. */
static void fix_sizes(const struct ckpt_grid *g, const int64_t *numbers, struct ckpt_entry *e)
{
	bool apart = g->tied && (numbers[g->n_says] != numbers[0] ||
				 (numbers[0] > 1 && numbers[g->n_says - 1] > 1));
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < g->n_fixes && i < g->n_says + apart; i++)
		mo_buf_printf(&b, "%s%s %lld", i ? ", " : "", g->fixes[i], (long long)numbers[i]);
	if (b.len) {
		free(e->fixed);
		e->fixed = mo_buf_take(&b);
	}
}

/* How many files there are of these sizes; 0 = they make no sense. */
static int64_t parts_of(const struct ckpt_grid *g, const int64_t *numbers)
{
	int64_t product = 1;

	for (size_t i = 0; i < g->n_says + !!g->tied; i++)
		if (numbers[i] <= 0 || numbers[i] > PARTS_MAX)
			return 0;
	for (size_t i = 0; i < g->n_says; i++)
		if (__builtin_mul_overflow(product,
					   i == 0 && g->tied ? numbers[g->n_says] : numbers[i],
					   &product))
			return 0;
	return product;
}

void ckpt_parts_stated(const struct ckpt_rules *r, size_t grid, const void *pickle, size_t n,
		       struct ckpt_entry *e)
{
	const struct ckpt_grid *g = &r->layout.grids[grid];
	size_t n_sizes = g->n_says + !!g->tied, n_names = n_sizes + g->n_variants;
	_cleanup_(mo_freep) char **names = mo_alloc_array(n_names + 1, sizeof(*names));
	_cleanup_(mo_freep) int64_t *numbers = mo_alloc_array(n_names + 1, sizeof(*numbers));

	for (size_t i = 0; i < n_names; i++)
		names[i] = i < g->n_says ? g->says[i]
			   : i < n_sizes ? g->tied
					 : g->variants[i - n_sizes].value;
	if (!pickle_numbers(pickle, n, names, n_names, numbers))
		return;
	if (g->tied && numbers[g->n_says] <= 0)
		/* not said: versions and engines that know one number only */
		numbers[g->n_says] = numbers[0];
	e->parts[grid] = parts_of(g, numbers);
	if (e->parts[grid] == 0)
		return;
	if (g->tied && numbers[g->n_says] != numbers[0]) {
		memcpy(e->stated[grid], numbers, g->n_says * sizeof(*numbers));
		e->tied[grid] = numbers[g->n_says];
	}
	fix_sizes(g, numbers, e);
	for (size_t i = 0; i < g->n_variants; i++)
		e->due[grid] |= numbers[n_sizes + i] > 0 ? 1u << i : 0;
}

bool ckpt_tells_of_grid(const struct ckpt_rules *r, size_t grid, const char *name)
{
	return ckpt_found(r, r->told_by[grid], name, strlen(name));
}

static bool holds(const struct kv *condition, const void *pickle, size_t n)
{
	bool negated = condition->value[0] == '!';
	int64_t want = 0, stated = pickle_number_behind(pickle, n, condition->key);

	return mo_parse_i64(condition->value + negated, 0, INT64_MAX, &want) == 0 &&
	       (stated == want) != negated;
}

void ckpt_grid_stated(const struct ckpt_rules *r, size_t grid, const void *pickle, size_t n,
		      struct ckpt_entry *e)
{
	const struct ckpt_grid *g = &r->layout.grids[grid];

	e->excused[grid] = g->n_excused > 0;
	for (size_t i = 0; i < g->n_excused; i++)
		e->excused[grid] &= holds(&g->excused[i], pickle, n);
	e->share[grid] = g->share ? MO_MAX(pickle_number_behind(pickle, n, g->share), 0) : 0;
	e->sum[grid] = g->sum ? MO_MAX(pickle_sum_behind(pickle, n, g->sum), 0) : 0;
}
