/* See tail.h. */
#include "agent/core/text/tail.h"

#include <string.h>

#include "lib/base/desc.h"

void tail_add(struct tail *t, const char *line, size_t n)
{
	t->len[t->next] = (uint16_t)MO_MIN(n, (size_t)TAIL_BYTES);
	memcpy(t->text[t->next], line, t->len[t->next]);
	t->next = (t->next + 1) % MO_TAIL_LINES;
	t->n = MO_MIN(t->n + 1, (size_t)MO_TAIL_LINES);
}

void tail_lines(const struct tail *t, char ***ret, size_t *n_ret)
{
	for (size_t i = 0; i < t->n; i++) {
		size_t at = (t->next + MO_TAIL_LINES - t->n + i) % MO_TAIL_LINES;
		_cleanup_(mo_freep) char *line = mo_strndup(t->text[at], t->len[at]);

		mo_strs_add(ret, n_ret, line);
	}
}
