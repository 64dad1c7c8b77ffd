/* Whether a resumed attempt goes on with its data, as samples come:
 * daemon/core/state/data_order.h. */
#pragma once
#include "daemon/core/state/data_order.h"

/* at: index of a sample that is new, or knows more than before. */
void data_order_sample(struct job *j, size_t at);
