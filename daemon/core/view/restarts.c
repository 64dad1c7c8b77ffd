/* See restarts.h. */
#include "daemon/core/view/restarts.h"

#include <stddef.h>

#include "lib/base/assert.h"

static const struct mo_field restart_part_fields[] = {
	MO_D(restart_part, part, MO_STR, "part of a restart's waterfall; total: all of one"),
	MO_D(restart_part, n, MO_INT, "restarts in which it is over and known"),
	MO_D(restart_part, p50_ms, MO_INT, "median, milliseconds"),
	MO_D(restart_part, p95_ms, MO_INT, "of 95 in 100 it took no longer, milliseconds"),
	MO_D(restart_part, sum_ms, MO_INT, "of all of them, milliseconds"),
};
const struct mo_desc restart_part_desc = MO_DESC(restart_part, restart_part_fields);

#define PART(name) \
	{ \
#name, offsetof(struct waterfall, name) \
	}
/* In order; the stages of waterfall.c are those from place on, the first of them in two parts. */
static const struct {
	const char *name;
	size_t at;
} parts[] = {
	PART(unfinished), PART(detect), PART(stop), PART(place),     PART(image),
	PART(launch),     PART(init),   PART(load), PART(recompute),
};
#define PLACE 3

static int64_t *slot(const struct waterfall *w, size_t part)
{
	return (int64_t *)(void *)((char *)(uintptr_t)w + parts[part].at);
}

void restart_open(const struct job *j, int64_t now, struct incident *newest)
{
	size_t part = PLACE + (size_t)MO_MAX(j->waterfall.stage, 1);
	int64_t *ms;

	if (j->waterfall.stage < 1 || part >= ELEMENTSOF(parts))
		return;
	if (j->waterfall.stage == 1)
		part = j->image.waits ? PLACE + 1 : PLACE;
	mo_str_set(&newest->open, parts[part].name);
	ms = slot(&newest->waterfall, part);
	*ms = MO_MAX(*ms, 0) + MO_MAX(now - j->waterfall.at, 0) / 1000;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Takes the values. Of few the highest is the 95th. */
static void add(struct restart_part **all, size_t *n_all, const char *name, int64_t *values,
		size_t n)
{
	struct restart_part *p = mo_vec_add(&restart_part_desc, (void **)all, n_all);

	p->part = mo_strdup(name);
	p->n = (int64_t)n;
	if (n > 0) {
		qsort(values, n, sizeof(*values), ascending);
		p->p50_ms = values[(n - 1) / 2];
		p->p95_ms = values[MO_MIN(n - 1, n * 95 / 100)];
		p->sum_ms = 0;
		for (size_t i = 0; i < n; i++)
			p->sum_ms += values[i];
	}
	free(values);
}

struct restart_part *restart_parts(const struct incident *incidents, size_t n_incidents,
				   size_t *ret_n)
{
	struct restart_part *all = NULL;
	size_t n_all = 0, n_total = 0;
	int64_t *total = mo_alloc_array(n_incidents + 1, sizeof(*total));

	for (size_t p = 0; p < ELEMENTSOF(parts) && n_incidents > 0; p++) {
		int64_t *values = mo_alloc_array(n_incidents, sizeof(*values));
		size_t n = 0;

		for (size_t i = 0; i < n_incidents; i++) {
			int64_t v = *slot(&incidents[i].waterfall, p);

			if (v != MO_NONE && !mo_streq(incidents[i].open, parts[p].name))
				values[n++] = v;
		}
		add(&all, &n_all, parts[p].name, values, n);
	}
	for (size_t i = 0; i < n_incidents; i++) {
		const struct waterfall *w = &incidents[i].waterfall;

		if (incidents[i].open || w->init == MO_NONE)
			continue;
		total[n_total] = 0;
		for (size_t p = 0; p < ELEMENTSOF(parts); p++)
			total[n_total] += *slot(w, p) == MO_NONE ? 0 : *slot(w, p);
		n_total++;
	}
	if (n_incidents > 0)
		add(&all, &n_all, "total", total, n_total);
	else
		free(total);
	mo_assert(n_incidents > 0 || n_all == 0);
	*ret_n = n_all;
	return all;
}
