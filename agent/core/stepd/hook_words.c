/* See hook_words.h. */
#include "agent/core/stepd/hook_words.h"

#include <string.h>

#include "lib/base/buf.h"

#define SHOWN_LINES 5
#define SHOWN_BYTES 300

char *hook_problem(const struct hook_end *e)
{
	if (e->step && e->found)
		return mo_printf("engine.prepare on %s %s", e->node, e->found);
	if (e->step)
		return mo_printf("engine.prepare on %s could not %s (%s): %s", e->node, e->step,
				 e->program, strerror(e->error));
	if (e->signal > 0)
		return mo_printf("engine.prepare on %s was ended by signal %d", e->node, e->signal);
	if (e->code != 0)
		return mo_printf("engine.prepare on %s ended with exit code %d", e->node, e->code);
	return NULL;
}

int hook_code(const struct hook_end *e)
{
	return e->step ? e->error : e->signal > 0 ? 0 : e->code;
}

void hook_says_last(struct note *n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	size_t first = n->n_tail > SHOWN_LINES ? n->n_tail - SHOWN_LINES : 0;

	mo_buf_str(&b, n->text ? n->text : "");
	for (size_t i = first; i < n->n_tail; i++)
		mo_buf_printf(&b, "%s%.*s", i == first ? "; its last lines: " : " | ", SHOWN_BYTES,
			      n->tail[i]);
	mo_str_set(&n->text, b.data);
}
