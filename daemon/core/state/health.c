/* See health.h: what is derived from a node's health alone. The decisions of a turn are in
 * cordon.c. */
#include "daemon/core/state/health.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/parse.h"

int health_rank(int state)
{
	static const int ranks[] = {
		[CHECK_OK] = 0, [CHECK_UNKNOWN] = 1, [CHECK_WARN] = 2, [CHECK_CRIT] = 3
	};

	mo_assert(state < (int)_CHECK_STATE_N);
	return state >= 0 && state < _CHECK_STATE_N ? ranks[state] : 1;
}

int64_t health_wait_us(bool thorough)
{
	return thorough ? HEALTH_DOUBT_US : HEALTH_CHECK_US;
}

bool finding_skipped(const struct check_result *r)
{
	return r->state == CHECK_UNKNOWN && r->action == ACTION_REPORT && r->text &&
	       mo_starts_with(r->text, CHECK_SKIPPED ": ");
}

size_t health_findings(const struct node *n)
{
	size_t found = 0;

	for (size_t i = 0; n->health && i < n->health->n_results; i++)
		found += !finding_skipped(&n->health->results[i]);
	return found;
}

int health_worst(const struct node *n)
{
	int worst = CHECK_OK;

	if (!n->health)
		return -1;
	for (size_t i = 0; i < n->health->n_results; i++)
		if (!finding_skipped(&n->health->results[i]) &&
		    health_rank(n->health->results[i].state) > health_rank(worst))
			worst = n->health->results[i].state;
	return worst;
}

const struct check_result *health_find(const struct node_health *h, const char *check,
				       const char *object)
{
	for (size_t i = 0; h && i < h->n_results; i++)
		if (mo_streq(h->results[i].check, check) && mo_streq(h->results[i].object, object))
			return &h->results[i];
	return NULL;
}

static bool real_gpus(const struct node *n)
{
	for (size_t i = 0; i < n->info.n_gpus; i++)
		if (!mo_streq(n->info.gpus[i].vendor, "fake"))
			return true;
	return false;
}

static bool was_probed(const struct node *n)
{
	return n->health && n->health->preflight_done;
}

bool health_unlooked(const struct node *n)
{
	return n->state == NODE_UP && !n->drain.asked && n->agent.tells_health && !was_probed(n) &&
	       real_gpus(n);
}

static bool keeps_away(const struct node *n, const struct check_result *r)
{
	return r->state == CHECK_CRIT && (r->when == MO_NONE || r->when & WHEN_PREFLIGHT) &&
	       !finding_acked(n, r) && !finding_held(n, r);
}

size_t health_away(const struct node *n)
{
	size_t away = 0;

	for (size_t i = 0; n->health && i < n->health->n_results; i++)
		away += keeps_away(n, &n->health->results[i]);
	return away;
}

/* An agent that tells nothing of health is not waited for; nor are nodes without real GPUs. */
bool health_standard(const struct node *n, const struct check_result **ret, const char **ret_why)
{
	*ret = NULL;
	*ret_why = NULL;
	for (size_t i = 0; n->health && i < n->health->n_results; i++) {
		const struct check_result *r = &n->health->results[i];

		if (keeps_away(n, r)) {
			*ret = r;
			return false;
		}
	}
	if (n->agent.tells_health && !was_probed(n) && real_gpus(n))
		*ret_why = "its preflight checks are not done yet";
	return !*ret_why;
}

enum preflight { PREFLIGHT_STANDARD, PREFLIGHT_NONE, PREFLIGHT_LIST };

static enum preflight preflight_of(const struct recipe *r)
{
	if (r->n_preflight == 0 || (r->n_preflight == 1 && mo_streq(r->preflight[0], "standard")))
		return PREFLIGHT_STANDARD;
	return r->n_preflight == 1 && mo_streq(r->preflight[0], "none") ? PREFLIGHT_NONE
									: PREFLIGHT_LIST;
}

static bool listed(const struct recipe *r, const char *check)
{
	return mo_enum_parse((const char *const *)r->preflight, r->n_preflight, check) >= 0;
}

static bool list_allows(const struct node *n, const struct recipe *r,
			const struct check_result **ret, const char **ret_why)
{
	*ret = NULL;
	*ret_why = NULL;
	for (size_t i = 0; n->health && i < n->health->n_results; i++)
		if (listed(r, n->health->results[i].check) &&
		    !finding_acked(n, &n->health->results[i])) {
			*ret = &n->health->results[i];
			return false;
		}
	if (!n->agent.tells_health && !n->health)
		*ret_why = "its agent makes no checks";
	else if (!was_probed(n))
		*ret_why = "its preflight checks are not done yet";
	else if (health_wants_same_stack(r) && !node_same(n))
		*ret_why = "its software is not known yet";
	return !*ret_why;
}

bool health_allows(const struct node *n, const struct recipe *r, bool standard_ok)
{
	const struct check_result *finding;
	const char *why;

	switch (preflight_of(r)) {
	case PREFLIGHT_STANDARD: return standard_ok;
	case PREFLIGHT_LIST: return list_allows(n, r, &finding, &why);
	default: return true;
	}
}

/* What is so since the boot goes by a person's word or a boot; what is so now goes when it is
 * repaired. */
char *finding_next(const struct node *n, const struct check_result *r)
{
	if (r->since_boot)
		return mo_printf("when it is known and the node is to work: 'moectl ack %s %s'; "
				 "%s; a reboot forgets it",
				 n->name, r->check, ONE_JOB);
	return mo_printf("%s%s%s", r->next ? r->next : "repair it", "; ", ONE_JOB);
}

char *health_refusal(const struct node *n, const struct recipe *r)
{
	const struct check_result *finding = NULL;
	const char *why = NULL;
	enum preflight mode = preflight_of(r);
	bool ok = mode == PREFLIGHT_NONE ||
		  (mode == PREFLIGHT_LIST ? list_allows(n, r, &finding, &why)
					  : health_standard(n, &finding, &why));

	if (ok)
		return NULL;
	if (!finding)
		return mo_strdup(why);
	size_t more = mode == PREFLIGHT_LIST ? 0 : health_away(n);
	for (size_t i = 0; mode == PREFLIGHT_LIST && i < n->health->n_results; i++)
		more += listed(r, n->health->results[i].check) &&
			!finding_acked(n, &n->health->results[i]);
	_cleanup_(mo_freep) char *next = finding_next(n, finding);
	_cleanup_(mo_freep) char *rest =
		more > 1 ? mo_printf("; and %zu more: moectl node %s", more - 1, n->name)
			 : mo_strdup("");
	return mo_printf("%s %s: %s%s; %s", finding->check, finding->object ? finding->object : "",
			 finding->text
				 ? finding->text
				 : mo_enum_name(check_state_names, _CHECK_STATE_N, finding->state),
			 rest, next);
}

bool health_wants_same_stack(const struct recipe *r)
{
	return listed(r, HEALTH_STACK_SAME);
}

static uint64_t text_hash(uint64_t hash, const char *text)
{
	for (const char *p = text ? text : ""; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211u;
	return (hash ^ 0x100) * 1099511628211u;
}

bool health_own_key(const char *key)
{
	return mo_streq(key, "agent") || mo_streq(key, "env.profiles") ||
	       mo_starts_with(key, "config.") || mo_starts_with(key, "health.");
}

static uint64_t stack_hash(const struct node_health *h, bool own_too)
{
	uint64_t sum = 0;

	mo_assert(!h || h->stack || h->n_stack == 0);
	for (size_t i = 0; h && i < h->n_stack; i++)
		if (own_too || !health_own_key(h->stack[i].key))
			sum += text_hash(text_hash(14695981039346656037u, h->stack[i].key),
					 h->stack[i].value);
	return h && h->n_stack && !sum ? 1 : sum;
}

uint64_t health_stack_hash(const struct node_health *h)
{
	return stack_hash(h, true);
}

uint64_t node_stack(const struct node *n)
{
	return n->stack.hash ? n->stack.hash : health_stack_hash(n->health);
}

uint64_t health_same_hash(const struct node_health *h)
{
	return stack_hash(h, false);
}

uint64_t node_same(const struct node *n)
{
	return n->stack.same ? n->stack.same : health_same_hash(n->health);
}

const char *health_stack_value(const struct node_health *h, const char *key)
{
	for (size_t i = 0; h && i < h->n_stack; i++)
		if (mo_streq(h->stack[i].key, key))
			return h->stack[i].value;
	return NULL;
}

char *finding_name(const struct check_result *r)
{
	return mo_printf("%s %s", r->check ? r->check : "?", r->object ? r->object : "");
}

/* In the list, with a counter that stands where it stood then. */
static bool seen_by_person(char *const *names, size_t n, const int64_t *counts, size_t n_counts,
			   const struct check_result *r)
{
	_cleanup_(mo_freep) char *name = n ? finding_name(r) : NULL;
	int at = n ? mo_enum_parse((const char *const *)names, n, name) : -1;
	int64_t count = at >= 0 && (size_t)at < n_counts ? counts[at] : MO_NONE;

	return at >= 0 && (count == MO_NONE || r->count == MO_NONE || r->count == count);
}

bool health_waived(const struct node *n, const struct check_result *r)
{
	return seen_by_person(n->findings.waived, n->findings.n_waived, n->findings.waived_counts,
			      n->findings.n_waived_counts, r);
}

bool finding_acked(const struct node *n, const struct check_result *r)
{
	return seen_by_person(n->findings.acked, n->findings.n_acked, n->findings.acked_counts,
			      n->findings.n_acked_counts, r);
}

bool finding_held(const struct node *n, const struct check_result *r)
{
	return n->findings.learn_until != MO_NONE && r->unproven;
}

static const struct check_result *cordon_reason(const struct node *n, bool held)
{
	const struct check_result *soft = NULL;

	for (size_t i = 0; n->health && i < n->health->n_results; i++) {
		const struct check_result *r = &n->health->results[i];

		if (r->state != CHECK_CRIT || r->action != ACTION_CORDON ||
		    finding_held(n, r) != held || health_waived(n, r) || finding_acked(n, r))
			continue;
		if (r->hardware)
			return r;
		soft = soft ? soft : r;
	}
	return soft;
}

const struct check_result *health_cordon_reason(const struct node *n)
{
	return cordon_reason(n, false);
}

const struct check_result *health_held_reason(const struct node *n)
{
	return cordon_reason(n, true);
}

char *health_held_text(const struct node *n)
{
	const struct check_result *r = health_held_reason(n);
	_cleanup_(mo_freep) char *name = r ? finding_name(r) : NULL;
	char until[32];

	return r ? mo_printf("would be cordoned, but is new until %s, and this check never met "
			     "such hardware: %s: %s",
			     mo_time_format(n->findings.learn_until, until), name,
			     r->text ? r->text : "CRIT")
		 : NULL;
}

char *health_held_next(const struct node *n)
{
	return mo_printf("look at 'moectl node %s': if it is true, 'moectl drain %s --reason TEXT' "
			 "and repair it; if not, correct the check in /etc/moe/health/site.yaml; "
			 "'moectl ack %s' when its checks can be trusted",
			 n->name, n->name, n->name);
}

static bool results_equal(const struct node_health *a, const struct node_health *b, bool texts_too)
{
	if (a->n_results != b->n_results)
		return false;
	for (size_t i = 0; i < a->n_results; i++) {
		const struct check_result *x = &a->results[i], *y = &b->results[i];

		if (!mo_streq(x->check, y->check) || !mo_streq(x->object, y->object) ||
		    x->state != y->state || x->action != y->action || x->when != y->when ||
		    x->since_boot != y->since_boot || x->hardware != y->hardware ||
		    x->unproven != y->unproven)
			return false;
		if (texts_too && (x->count != y->count || !mo_streq(x->text, y->text) ||
				  x->n_evidence != y->n_evidence))
			return false;
		for (size_t k = 0; texts_too && k < x->n_evidence; k++)
			if (!mo_streq(x->evidence[k], y->evidence[k]))
				return false;
	}
	return true;
}

bool health_equal(const struct node_health *a, const struct node_health *b, bool texts_too)
{
	if (!a || !b)
		return a == b;
	if (a->preflight_done != b->preflight_done || a->failure_checks != b->failure_checks ||
	    a->n_checked != b->n_checked || health_stack_hash(a) != health_stack_hash(b))
		return false;
	for (size_t i = 0; i < a->n_checked; i++)
		if (a->checked[i].job != b->checked[i].job ||
		    a->checked[i].attempt != b->checked[i].attempt)
			return false;
	return (!texts_too || a->ok == b->ok) && results_equal(a, b, texts_too);
}

bool health_checked(const struct node_health *h, int64_t job, int64_t attempt)
{
	mo_assert(job >= 0 && attempt >= 0);
	for (size_t i = 0; h && i < h->n_checked; i++)
		if (h->checked[i].job == job && h->checked[i].attempt == attempt)
			return true;
	return false;
}

bool health_checks_failures(const struct node *n)
{
	return n->health && n->health->failure_checks;
}

bool cordon_by_failures(const struct node *n)
{
	return mo_starts_with(n->drain.cordon ? n->drain.cordon : "", FAILURE_CORDON " ");
}

bool health_preflight_none(const struct recipe *r)
{
	return preflight_of(r) == PREFLIGHT_NONE;
}
