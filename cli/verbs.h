/* All verbs, each defined in the file of its name or of its group: the table of main.c. */
#pragma once
#include "cli/cli.h"

extern const struct verb verb_submit, verb_validate, verb_plan, verb_list, verb_status, verb_watch,
	verb_top, verb_logs, verb_events, verb_metrics, verb_ranks, verb_checkpoints, verb_report,
	verb_cancel, verb_pause, verb_resume, verb_restart, verb_nodes, verb_node, verb_drain,
	verb_undrain, verb_ack, verb_fence, verb_resolve, verb_why, verb_explain, verb_init,
	verb_classify, verb_token, verb_backup, verb_doctor, verb_debug, verb_local;
