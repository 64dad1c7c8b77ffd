/* See fatal.h. */
#include "daemon/fatal.h"

#include <stdlib.h>

#include "lib/loop/loop.h"

void fatal_stop(struct manager *m, const char *why)
{
	m->fatal = true;
	mo_log(MO_ERR, "6d6f6500000000000000000000000002", NULL,
	       "the state cannot be stored: %s: stopping without another answer; ranks run on, a "
	       "restart continues from what is stored",
	       why);
	mo_loop_end(m->loop, EXIT_FAILURE);
}
