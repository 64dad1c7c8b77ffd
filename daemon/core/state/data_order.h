/* Whether an attempt that went on from a checkpoint goes on with its data too: the samples that its
 * engine says were consumed (consumed_samples of a Sample), against what an attempt before had said
 * of the checkpoint's iteration. Figures are samples, since a batch may be of another size by now.
 * Where the engine says nothing, nothing is assumed.
 *
 * Judged once for each attempt, by update/data_order.c as samples come; a word that comes late
 * still counts where nothing was known. It is told, by rules/data_order.c, and nothing follows. */
#pragma once
#include "daemon/core/state/job.h"

enum data_order_kind {
	DATA_UNKNOWN,
	DATA_CONTINUES,
	DATA_LEFT_OUT, /* it skips what recovery.loss_spike.skip left out, and no more */
	DATA_ANEW,
	DATA_REPEATS,
	DATA_SKIPS,
	_DATA_ORDER_N
};
extern const char *const data_order_names[_DATA_ORDER_N];

struct data_order {
	int64_t attempt, resume; /* which one, and the iteration that it went on from */
	int kind;                /* enum data_order_kind */
	/* what its line said, and of which iteration; MO_NONE: none did */
	int64_t iteration, consumed;
	/* samples before the first iteration behind the checkpoint, by that line; MO_NONE */
	int64_t begins;
	/* samples at the checkpoint, and the attempt that had said so; MO_NONE: none did */
	int64_t ended, ended_by;
	int64_t samples; /* repeated, skipped or left out; MO_NONE: none */
	char *text;      /* all of it in a sentence */
};
extern const struct mo_desc data_order_desc;

/* What the sample at that index says of the attempt's data. ret: initialised. false: nothing
 * yet. */
bool data_order_judge(const struct job *j, size_t at, struct data_order *ret);
/* It repeats or skips data that nobody asked it to. */
bool data_order_moved(const struct data_order *o);
