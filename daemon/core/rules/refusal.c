/* See refusal.h. */
#include "daemon/core/rules/refusal.h"

#include <stdlib.h>

#include "daemon/core/state/slots.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/incarnation.h"
#include "daemon/core/state/token.h"

void refusal_done(struct refusal *r)
{
	free(r->text);
	free(r->next);
	*r = (struct refusal){ 0 };
}

static char *unfit_next(const struct state *s, const struct node *n)
{
	if (n->drain.back != MO_NONE)
		return mo_printf("wait: it takes work when they compute right; 'moectl undrain %s "
				 "--force' does not wait",
				 n->name);
	if (n->drain.held)
		return mo_printf("repair it; 'moectl undrain %s' tries its GPUs again, with "
				 "--force it takes work in spite of it",
				 n->name);
	if (n->drain.asked)
		return mo_printf("%s'moectl undrain %s' gives it work again",
				 n->drain.cordon ? "repair it; " : "", n->name);
	if (n->state != NODE_UP && token_shut_out(s, n->name))
		return mo_printf("make a join token ('moectl token join') and put it into its "
				 "token_file; or power it off and say 'moectl fence %s "
				 "--confirmed'",
				 n->name);
	if (n->state != NODE_UP)
		return mo_printf("start its agent, or power it off and say 'moectl fence %s "
				 "--confirmed'",
				 n->name);
	if (!n->agent.reconciled)
		return mo_strdup("its agent says hello by itself; start it if it does not run");
	if (n->agent.token_expired)
		return mo_strdup("make a join token ('moectl token join') and put it into the "
				 "node's token_file");
	if (n->agent.obeys != MO_NONE && n->agent.obeys > s->epoch)
		return mo_strdup("stop moed and bring its newest state back (moed --restore FILE)");
	if (n->boot.leaving)
		return mo_strdup("nothing to do: it takes work when it is back");
	return mo_printf("it ends by itself, or by 'moectl resolve STEP --kill' ('moectl why %s' "
			 "names it)",
			 n->name);
}

static const struct step *uncertain_on(const struct state *s, const struct node *n,
				       int64_t *ret_job)
{
	for (size_t i = 0; i < state_n_holders(s); i++) {
		const struct job *j = state_holder(s, i);

		for (const struct step *st = j ? step_next(j, n->name, -1) : NULL; st;
		     st = step_next(j, n->name, st->attempt))
			if (step_uncertain(s, st)) {
				*ret_job = j->id;
				return st;
			}
	}
	return NULL;
}

static char *uncertain_next(const struct node *n, int64_t job, const struct step *st)
{
	_cleanup_(mo_freep) char *name = step_name(job, st->attempt);

	if (st->missing && !st->gone)
		return mo_printf("see that no process of it is left on the node (a machine or "
				 "container that was started anew holds none), and say 'moectl "
				 "resolve %s --gone'",
				 name);
	if (st->hung && !st->gone)
		return mo_printf("look at its moe-stepd on the node; after a power-off 'moectl "
				 "fence %s --confirmed'",
				 n->name);
	return mo_strdup("reboot the node");
}

static void refuse_finding(const struct node *n, const struct check_result *r, struct refusal *ret)
{
	size_t more = health_away(n) - 1;
	_cleanup_(mo_freep) char *name = finding_name(r);
	_cleanup_(mo_freep) char *rest =
		more ? mo_printf("; and %zu more: moectl node %s", more, n->name) : mo_strdup("");

	ret->text = mo_printf("%s: %s%s%s", name, r->text ? r->text : "CRIT",
			      r->since_boot ? " (since boot)" : "", rest);
	ret->next = finding_next(n, r);
}

bool node_refuses(const struct state *s, const struct node *n, struct refusal *ret)
{
	const struct step *st = NULL;
	int64_t job = MO_NONE;
	const struct check_result *finding = NULL;
	const char *why = node_unfit(s, n);

	*ret = (struct refusal){ 0 };
	if (why) {
		ret->text = mo_printf("%s%s%s%s%s%s", why,
				      n->drain.asked && n->drain.reason ? ": " : "",
				      n->drain.asked && n->drain.reason ? n->drain.reason : "",
				      n->drain.held ? "; it did not come back: " : "",
				      n->drain.held ? n->drain.held : "",
				      n->drain.back != MO_NONE ? "; its GPUs are being tried" : "");
		ret->next = unfit_next(s, n);
	} else if ((st = uncertain_on(s, n, &job))) {
		ret->text = mo_strdup(step_uncertain(s, st));
		ret->next = uncertain_next(n, job, st);
	} else if (!health_standard(n, &finding, &why)) {
		if (finding) {
			refuse_finding(n, finding, ret);
		} else {
			ret->text = mo_printf("%s; what they find may cordon it", why);
			ret->next = mo_printf("wait until 'moectl node %s' shows that they are "
					      "done, and undrain it once more if they drain it; %s",
					      n->name, ONE_JOB);
		}
	}
	return ret->text;
}
