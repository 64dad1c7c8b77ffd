/* See skip.h. */
#include "lib/model/skip.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/model/engine.h"

static const struct mo_field skip_fields[] = {
	MO_D(skip, time, MO_TIME, "when it was decided"),
	MO_D(skip, attempt, MO_INT, "attempt whose loss went bad"),
	MO_D(skip, first, MO_INT, "first iteration whose data are left out"),
	MO_D(skip, last, MO_INT, "last one"),
};
const struct mo_desc skip_desc = MO_DESC(skip, skip_fields);

static const char hole[] = "{iterations}";

static void list(const struct skip *skips, size_t n, struct mo_buf *to)
{
	for (size_t i = 0; i < n; i++)
		for (int64_t k = skips[i].first; k <= skips[i].last; k++)
			mo_buf_printf(to, "%s%lld", to->len ? "," : "", (long long)k);
}

static void each(const struct skip *skips, size_t n, char ***argv, size_t *n_argv)
{
	for (size_t i = 0; i < n; i++)
		for (int64_t k = skips[i].first; k <= skips[i].last; k++)
			mo_strs_printf(argv, n_argv, "%lld", (long long)k);
}

void skip_words(const struct engine *e, const struct skip *skips, size_t n, char ***argv,
		size_t *n_argv)
{
	_cleanup_(mo_buf_done) struct mo_buf all = { 0 };

	list(skips, n, &all);
	for (size_t i = 0; n && i < e->n_skip; i++) {
		const char *word = e->skip[i], *at = strstr(word, hole);

		if (!strcmp(word, hole))
			each(skips, n, argv, n_argv);
		else if (at)
			mo_strs_printf(argv, n_argv, "%.*s%s%s", (int)(at - word), word, all.data,
				       at + strlen(hole));
		else
			mo_strs_add(argv, n_argv, word);
	}
}
