/* Why a job is not started although its nodes have the launch: a GPU of one of them is not given
 * back by the job before. */
#include "daemon/core/view/why_release.h"

#include "daemon/core/state/heard.h"
#include "daemon/core/state/live.h"
#include "daemon/core/view/why_reason.h"

void why_release(const struct state *s, const struct job *j, int64_t now, struct why_view *w)
{
	for (size_t i = 0; i < j->run.n_places; i++) {
		const char *node = j->run.places[i].node;
		const struct step_wait *wait = step_wait_of(s, node, j->id, j->attempt);
		struct why_reason *r;

		if (!wait)
			continue;
		r = why_reason(w, "gpu-held",
			       "%s does not start its ranks before a GPU is given back, for %lld s",
			       node, (long long)((now - wait->since) / 1000000));
		why_evidence(r, "%s", wait->text);
		why_evidence(r, "nothing is ended for it; after 30 s the launch is refused there, "
				"the node cordoned, and the next attempt takes another one");
	}
}
