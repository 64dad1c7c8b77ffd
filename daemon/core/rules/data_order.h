/* How the data of a resumed attempt go on (daemon/core/state/data_order.h) is told by an event, and
 * nothing follows. */
#pragma once
#include "daemon/core/state/data_order.h"

struct turn;

/* Of which attempt it is known, and by the line of which iteration. */
struct data_order_told {
	int64_t attempt, iteration;
};
struct data_order_told data_order_told(const struct job *j);
/* What a record of notes changed. before: as it was. */
void data_order_tell(struct turn *t, int64_t id, const struct data_order_told *before);
