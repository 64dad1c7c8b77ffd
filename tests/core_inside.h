/* All that the files of daemon/core have for each other: for beds that look inside it, which no
 * file of the product does. */
#pragma once
#include "daemon/core/core.h"
#include "daemon/core/rules/plan_drift.h"
#include "daemon/core/rules/commands.h"
#include "daemon/core/rules/config.h"
#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/fleet.h"
#include "daemon/core/rules/fleet_verbs.h"
#include "daemon/core/rules/incarnation.h"
#include "daemon/core/rules/jobs.h"
#include "daemon/core/rules/launch.h"
#include "daemon/core/rules/learn.h"
#include "daemon/core/rules/note_events.h"
#include "daemon/core/rules/place.h"
#include "daemon/core/rules/proof.h"
#include "daemon/core/rules/readings.h"
#include "daemon/core/rules/reports.h"
#include "daemon/core/rules/resume.h"
#include "daemon/core/rules/scans.h"
#include "daemon/core/rules/schedule.h"
#include "daemon/core/rules/silence.h"
#include "daemon/core/rules/strays.h"
#include "daemon/core/rules/tokens.h"
#include "daemon/core/rules/transitions.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/unread.h"
#include "daemon/core/rules/verbs.h"
#include "daemon/core/rules/words.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/live.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/update/attempt.h"
#include "daemon/core/update/checkpoint_keep.h"
#include "daemon/core/update/checkpoints.h"
#include "daemon/core/update/doubt.h"
#include "daemon/core/update/idems.h"
#include "daemon/core/update/index.h"
#include "daemon/core/update/retained.h"
#include "daemon/core/update/ledger.h"
#include "daemon/core/update/samples.h"
#include "daemon/core/update/slots.h"
#include "daemon/core/update/update.h"
#include "daemon/core/update/update_node.h"
#include "daemon/core/update/update_notes.h"
#include "daemon/core/update/verify.h"
#include "daemon/core/update/wake.h"

/* A turn of one input. */
static inline void core_turn(struct core *core, const struct core_input *in, int64_t now,
			     struct core_out *out)
{
	core_decide(core, in, now, out);
	core_settle(core, now, out);
}
