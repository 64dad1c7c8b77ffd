/* See node_clock.h. */
#include "daemon/core/state/node_clock.h"

#include <stdlib.h>

#include "lib/base/desc.h"
#include "lib/base/util.h"

#define WINDOW 16     /* messages: a clock that stood is right again after two of these */
#define FEWEST 4      /* one may have been late, or all that waited for one turn */
#define FAST_US 20000 /* the fastest of them was on its way for less */
#define WHOLE_US 1000 /* core time has whole milliseconds, of messages too */
#define DRIFT 1000    /* of so long, a clock that nobody disciplines loses less than one */

void node_clock_hear(struct node_clock *c, int64_t mono_ns, int64_t now)
{
	int64_t began = now - mono_ns / 1000, passed = (now - c->heard_at) / DRIFT;

	if (mono_ns == MO_NONE)
		return;
	if (!c->whole && c->n == 0) {
		*c = (struct node_clock){ .began = began, .next = began };
	} else if (began <= c->began + passed) {
		c->began = began;
		c->slack = 0;
	} else {
		c->began += passed;
		c->slack += passed;
	}
	c->next = c->n == 0 ? began : MO_MIN(began, c->next + passed);
	c->heard_at = now;
	if (++c->n < WINDOW)
		return;
	c->began = c->next;
	c->slack = 0;
	c->n = 0;
	c->whole = true;
}

int64_t node_clock_at(const struct node_clock *c, int64_t mono_ns, int64_t *ret_error)
{
	int64_t at = c->began + mono_ns / 1000;

	if (mono_ns == MO_NONE || (!c->whole && c->n < FEWEST))
		return MO_NONE;
	*ret_error = FAST_US / 2 + WHOLE_US + c->slack + llabs(c->heard_at - at) / DRIFT;
	return at - FAST_US / 2;
}
