/* See catalogue_list.h. A file that comes or goes changes the times of its directory; what is in a
 * file is catalogue_tree()'s to see. A directory that changed a moment ago may change again within
 * the same tick of its clock: it is listed anew until it has rested. */
#include "lib/recipe/catalogue_list.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/util.h"
#include "lib/recipe/catalogue.h"

#define LISTS_MAX 8

/* seen: zeros, a directory that is not there. */
struct listed {
	char *dir, *places[MO_DATA_PATHS];
	struct stat seen[MO_DATA_PATHS];
	bool rested;
	struct catalogue_list list;
};
static struct listed lists[LISTS_MAX];
static size_t next_list;

static void forget(struct listed *l)
{
	for (size_t i = 0; i < l->list.n; i++) {
		free(l->list.names[i]);
		free(l->list.paths[i]);
	}
	free(l->list.names);
	free(l->list.paths);
	for (size_t i = 0; i < MO_DATA_PATHS; i++)
		free(l->places[i]);
	free(l->dir);
	*l = (struct listed){ 0 };
}

/* Takes the times before it is read: what changes meanwhile is seen the next time. */
static void look(const char *dir, struct listed *ret)
{
	ret->rested = true;
	mo_data_paths(dir, ret->places);
	for (size_t i = 0; i < MO_DATA_PATHS; i++) {
		if (!ret->places[i] || mo_stat(ret->places[i], &ret->seen[i]) < 0)
			ret->seen[i] = (struct stat){ 0 };
		else
			ret->rested = ret->rested && catalogue_rested(&ret->seen[i]);
	}
}

static bool same(const struct listed *a, const struct listed *b)
{
	for (size_t i = 0; i < MO_DATA_PATHS; i++)
		if (!mo_streq(a->places[i], b->places[i]) ||
		    !catalogue_same_file(&a->seen[i], &b->seen[i]))
			return false;
	return a->rested;
}

static void fill(const char *dir, struct catalogue_list *ret)
{
	mo_data_names(dir, &ret->names, &ret->n);
	ret->paths = mo_alloc_array(ret->n, sizeof(*ret->paths));
	for (size_t i = 0; i < ret->n; i++) {
		_cleanup_(mo_freep) char *name = mo_printf("%s/%s.yaml", dir, ret->names[i]);

		ret->paths[i] = mo_data_file(name);
		if (!ret->paths[i]) /* it has just gone: what reads it says so */
			ret->paths[i] = TAKE_PTR(name);
	}
}

const struct catalogue_list *catalogue_list(const char *dir)
{
	struct listed now = { 0 }, *l = lists;

	look(dir, &now);
	while (l < lists + LISTS_MAX && !mo_streq(l->dir, dir))
		l++;
	if (l < lists + LISTS_MAX && same(l, &now)) {
		forget(&now);
		return &l->list;
	}
	if (l == lists + LISTS_MAX)
		l = &lists[next_list++ % LISTS_MAX];
	forget(l);
	*l = now;
	l->dir = mo_strdup(dir);
	fill(dir, &l->list);
	return &l->list;
}
