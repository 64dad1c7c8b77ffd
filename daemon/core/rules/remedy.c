/* See remedy.h. */
#include "daemon/core/rules/remedy.h"

#include "daemon/core/rules/numbers.h"
#include "lib/base/assert.h"

/* Where attempts went from node to node by themselves, so many of the same say as much as one after
 * which the next was placed elsewhere. */
#define EVERYWHERE_BEFORE 2

const char *const remedy_when_names[_WHEN_N] = {
	"always",
	"a launch that is refused for what the recipe gives, configuration that breaks rules, "
	"saves "
	"to another place",
	"before the job's first iteration",
	"the node is in another boot, or fenced",
	"a launch that is refused because its GPUs are not given back",
	"the node's kernel or checks say so too",
	"the failure before began on the same node",
	"a loss that stays bad, and it went back from there recovery.loss_spike.max times; "
	"or recovery.loss_spike.skip windows of data are left out already",
	"the same before on another node, which this attempt did without: told to, or for the "
	"third "
	"time; and it does not count against the checkpoint that was loaded",
};
const char *const remedy_budget_names[_BUDGET_N] = { "count", "count and time", "none" };

#define ROW(c, w, a, b) \
	{ \
		FAIL_##c, WHEN_##w, DO_##a, BUDGET_##b \
	}

const struct remedy remedies[] = {
	ROW(USER_ERROR, GIVEN, STOP, LIMITED),       ROW(USER_ERROR, UNTRAINED, STOP, LIMITED),
	ROW(USER_ERROR, EVERYWHERE, STOP, LIMITED),  ROW(USER_ERROR, AGAIN, ELSEWHERE, LIMITED),
	ROW(USER_ERROR, ALWAYS, RETRY, LIMITED),     ROW(TRANSIENT, AGAIN, ELSEWHERE, PATIENT),
	ROW(TRANSIENT, ALWAYS, RETRY, PATIENT),      ROW(SUSPECT, EVERYWHERE, STOP, LIMITED),
	ROW(SUSPECT, AGAIN, ELSEWHERE, LIMITED),     ROW(SUSPECT, ALWAYS, RETRY, LIMITED),
	ROW(NODE_FAULT, REBOOTED, RETRY, PATIENT),   ROW(NODE_FAULT, HELD, ELSEWHERE, PATIENT),
	ROW(NODE_FAULT, PROVED, CORDON, PATIENT),    ROW(NODE_FAULT, EVERYWHERE, STOP, LIMITED),
	ROW(NODE_FAULT, ALWAYS, ELSEWHERE, PATIENT), ROW(HANG, AGAIN, ELSEWHERE, PATIENT),
	ROW(HANG, ALWAYS, RETRY, PATIENT),           ROW(NUMERICAL, WENT_BACK, STOP, LIMITED),
	ROW(NUMERICAL, EVERYWHERE, STOP, LIMITED),   ROW(NUMERICAL, AGAIN, ELSEWHERE, LIMITED),
	ROW(NUMERICAL, ALWAYS, RETRY, LIMITED),      ROW(STORAGE, ALWAYS, WAIT, UNLIMITED),
	ROW(COLLATERAL, ALWAYS, RETRY, PATIENT),     ROW(PREEMPTED, ALWAYS, RETRY, PATIENT),
};
const size_t n_remedies = ELEMENTSOF(remedies);

const char *remedy_elsewhere_too(const struct job *j, const struct failing *f)
{
	const char *other = NULL;
	size_t same = 0;
	bool moved = false;

	for (size_t i = streak_begin(j, f); f->node && i < j->n_incidents; i++) {
		const struct incident *inc = &j->incidents[i];

		if (!streak_same(inc, f))
			continue;
		same++;
		if (!inc->node || place_of(j, inc->node))
			continue;
		other = other ? other : inc->node;
		moved |= inc->elsewhere;
	}
	return moved || same >= EVERYWHERE_BEFORE ? other : NULL;
}

static bool holds(const struct job *j, const struct verdict *v, const struct failing *f, int when)
{
	switch (when) {
	case WHEN_ALWAYS: return true;
	case WHEN_GIVEN:
		return v->blame.kind == B_REFUSED || v->blame.kind == B_CONFIG ||
		       v->blame.kind == B_ELSEWHERE;
	case WHEN_UNTRAINED: return j->progress.watermark == MO_NONE;
	case WHEN_REBOOTED: return v->blame.kind == B_NODE;
	case WHEN_HELD: return blame_gpu_held(&v->blame);
	case WHEN_PROVED: return v->proved;
	case WHEN_AGAIN:
		return f->node && streak_begin(j, f) < j->n_incidents &&
		       mo_streq(j->incidents[j->n_incidents - 1].node, f->node);
	case WHEN_WENT_BACK:
		return numbers_skipped_all(j) || (v->blame.kind == B_NUMBERS && numbers_spent(j));
	/* a damaged checkpoint is the same on every node, and an older one is tried yet; data are
	 * the same too, and others follow */
	case WHEN_EVERYWHERE:
		return !f->loading && !numbers_may_skip(j, v->class) && remedy_elsewhere_too(j, f);
	default: return false;
	}
}

struct remedy remedy_of(const struct job *j, const struct verdict *v, const struct failing *f)
{
	const struct recipe *r = &j->spec.recipe;
	struct remedy found = { 0 };

	for (size_t i = 0; i < n_remedies; i++)
		if (remedies[i].class == v->class && holds(j, v, f, remedies[i].when)) {
			found = remedies[i];
			break;
		}
	mo_assert(found.class == v->class);
	for (size_t i = 0; i < r->n_policy; i++) {
		int action =
			mo_enum_parse(failure_action_names, _FAILURE_ACTION_N, r->policy[i].value);

		if (action < 0 || found.when == WHEN_GIVEN ||
		    !mo_streq(r->policy[i].key, failure_class_names[v->class]))
			continue;
		found.action = action;
		if (action == DO_WAIT)
			found.budget = BUDGET_UNLIMITED;
		else if (found.budget == BUDGET_UNLIMITED)
			found.budget = BUDGET_PATIENT;
	}
	return found;
}

const char *remedy_next(const char *class)
{
	static const char *const next[_FAILURE_CLASS_N] = {
		[FAIL_USER_ERROR] = "mend what the lines name",
		[FAIL_SUSPECT] = "look at the GPU and the node that are named ('moectl node'); the "
				 "same on other nodes is the program",
		[FAIL_NODE_FAULT] = "have the node looked at before it takes work again "
				    "('moectl node', 'moectl drain')",
		[FAIL_HANG] = "see which rank is behind ('moectl ranks'), and what it printed last "
			      "('moectl logs')",
		[FAIL_NUMERICAL] = "look at loss and gradient norm before it; 'moectl restart JOB "
				   "--from ITER' goes further back",
		[FAIL_STORAGE] = "make room, or mend the file system: it goes on by itself then",
		[FAIL_COLLATERAL] = "look at the other ranks' output ('moectl logs JOB')",
	};
	int at = mo_enum_parse(failure_class_names, _FAILURE_CLASS_N, class);

	return at >= 0 ? next[at] : NULL;
}
