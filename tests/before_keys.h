/* Keys that came after commit 33bc1e30, whose records were the first of version 2, each with the
 * commit that brought it (git log -p of the rows of MO_D and its like): a release of then wrote
 * none of them, and a store of its is read by ours. Left out are keys of
 * what people ask for (a recipe), and those by which a record or a job means something else
 * (check.later, incident.uncounted; job.over_us, of a job that was over and began again): no
 * release wrote such a one without. */
#pragma once
#include <stddef.h>

/* clang-format off */
static const struct {
	const char *of, *key, *since; /* name of a description */
} later_keys[] = {
	{ "checkpoint", "announced", "76b6c5d4" },
	{ "checkpoint", "compared", "81876567" },
	{ "checkpoint", "failed_loads", "81876567" },
	{ "checkpoint", "tainted", "48972ff1" },
	{ "incident", "device", "5a981e0f" },
	{ "incident", "elsewhere", "4d76bbad" },
	{ "incident", "gpu", "4d76bbad" },
	{ "incident", "iteration", "4d76bbad" },
	{ "incident", "later", "dbd0654c" },
	{ "incident", "open", "d173b44f" },
	{ "incident", "rule", "4d76bbad" },
	{ "incident", "why", "4d76bbad" },
	{ "job", "check_doubted", "f1de59d9" },
	{ "job", "check_thorough", "6eed1e52" },
	{ "job", "data_order", "c0f0e48e" },
	{ "job", "ledger_marks", "d173b44f" },
	{ "job", "longest_start_us", "dbbc64f2" },
	{ "job", "numbers", "48972ff1" },
	{ "job", "pace", "06a90546" },
	{ "job", "phase_of", "4b5eed67" },
	{ "job", "phase_said", "4b5eed67" },
	{ "job", "placed_at", "1c8e7734" },
	{ "job", "skips", "7be00994" },
	{ "job", "space_at", "074649e5" },
	{ "job", "space_told", "b1d41202" },
	{ "job", "spare_us", "48611869" },
	{ "job", "start_us", "dbbc64f2" },
	{ "job", "streak_since", "4d76bbad" },
	{ "job", "unfinished_us", "d173b44f" },
	{ "node", "drain_back", "f1de59d9" },
	{ "node", "drain_back_until", "f1de59d9" },
	{ "node", "drain_held", "f1de59d9" },
	{ "node", "forgiven_at", "87554edb" },
	{ "node", "metrics_port", "dfeb648f" },
	{ "node", "spare_asked", "48611869" },
	{ "node", "spare_gpus", "48611869" },
	{ "node", "spare_of", "48611869" },
	{ "node", "spare_passed", "48611869" },
	{ "node", "spare_since", "48611869" },
	{ "rank", "doing", "53ba8982" },
	{ "rank", "own_times", "da036ffc" },
	{ "state", "clock_leapt", "d8f29fc9" },
	{ "step", "pause", "cb7ad317" },
	{ "step", "pause_rank", "cb7ad317" },
	{ "scan_result", "free_bytes", "b1d41202" },
	{ "sample", "batch_samples", "c0f0e48e" },
	{ "sample", "consumed_samples", "c0f0e48e" },
	{ "waterfall", "image", "49497af5" },
	{ "waterfall", "unfinished", "d173b44f" },
	{ "nodeinfo", "holders", "4a6a1593" },
	{ "nodeinfo", "walls", "2c8bda39" },
};
/* clang-format on */
