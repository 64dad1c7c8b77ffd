/* What the agents of a world tell of their health, and what of it can be seen. */
#include "tests/unit/dcore/world.h"
#include "daemon/core/view/why.h"
#include "daemon/core/view/why_view.h"

#include <stdio.h>
#include <string.h>

void world_tells(struct world *w, size_t toy)
{
	struct toy *t = &w->toys[toy];

	t->health = mo_desc_new(&node_health_desc);
	t->health->version = 1;
	t->health->ok = 20;
	t->health->preflight_done = t->health->failure_checks = true;
	snprintf(t->instance, sizeof(t->instance), "h-n%zu", toy);
	t->beat = 0;
	world_hello(w, toy);
	world_beat(w, toy);
}

void world_finding(struct world *w, size_t toy, const char *check, int state, int action)
{
	struct node_health *h = w->toys[toy].health;
	struct check_result *r = NULL;
	size_t at = 0;

	while (at < h->n_results && !mo_streq(h->results[at].check, check))
		at++;
	h->version++;
	if (state == CHECK_OK) {
		if (at < h->n_results)
			mo_vec_remove(&check_result_desc, h->results, &h->n_results, at);
		return;
	}
	r = at < h->n_results ? &h->results[at] : MO_ADD(h, results, &check_result_desc);
	mo_str_set(&r->check, check);
	mo_str_set(&r->object, "0000:9f:00.0");
	mo_str_set(&r->text, "2 uncorrectable errors");
	r->state = state;
	r->action = action;
	r->when = WHEN_PREFLIGHT | WHEN_PERIODIC;
	r->since = r->at = w->now;
}

void world_init_telling(struct world *w, size_t nodes, int64_t gpus)
{
	world_init(w, nodes, gpus);
	for (size_t i = 0; i < nodes; i++)
		world_tells(w, i);
}

size_t world_events(const struct world *w, const char *type)
{
	size_t n = 0;

	for (size_t i = 0; i < core_state(w->core)->n_events; i++)
		n += mo_streq(core_state(w->core)->events[i].type, type);
	return n;
}

size_t world_cordoned(const struct world *w)
{
	size_t n = 0;

	for (size_t i = 0; i < core_state(w->core)->n_nodes; i++)
		n += core_state(w->core)->nodes[i]->drain.asked &&
		     core_state(w->core)->nodes[i]->drain.cordon;
	assert_int_equal(n, core_cordoned(w->core));
	return n;
}

bool world_why_says(const struct world *w, int64_t id, const char *text)
{
	struct why_view v;
	bool found = false;

	mo_desc_init(&why_view_desc, &v);
	job_why(core_state(w->core), world_job(w, id), w->now, &v);
	for (size_t i = 0; i < v.n_reasons; i++) {
		found |= strstr(v.reasons[i].text, text) != NULL;
		for (size_t k = 0; k < v.reasons[i].n_evidence; k++)
			found |= strstr(v.reasons[i].evidence[k], text) != NULL;
	}
	mo_desc_done(&why_view_desc, &v);
	return found;
}

void world_why_has(const struct world *w, int64_t id, const char *text)
{
	if (!world_why_says(w, id, text))
		fail_msg("why does not say: %s", text);
}

void world_next_has(const struct world *w, int64_t id, const char *text)
{
	struct why_view v;

	mo_desc_init(&why_view_desc, &v);
	job_why(core_state(w->core), world_job(w, id), w->now, &v);
	if (!strstr(v.next, text))
		fail_msg("next is: %s", v.next);
	mo_desc_done(&why_view_desc, &v);
}

static bool why_says(const struct why_view *v, const char *code, const char *text)
{
	for (size_t i = 0; i < v->n_reasons; i++)
		if (mo_streq(v->reasons[i].code, code) && mo_streq(v->reasons[i].text, text))
			return true;
	return false;
}

void world_waits(const struct world *w, int64_t id, int code, const char *recorded,
		 const char *sentence)
{
	const struct job *j = world_job(w, id);
	const char *name = waiting_code_names[code];
	struct job_view doc;
	struct why_view why;
	struct waiting found;

	if (!waiting_of(core_state(w->core), j, w->now, &found))
		fail_msg("j-%lld (%s) waits for nothing, not %s", (long long)id,
			 job_state_names[j->state], name);
	_cleanup_(mo_freep) char *text = waiting_text(&found);
	assert_string_equal(text, sentence);
	assert_string_equal(waiting_code_names[found.code], name);
	waiting_done(&found);
	if (recorded)
		assert_string_equal(j->reason, recorded);
	mo_desc_init(&job_view_desc, &doc);
	job_view(core_state(w->core), j, w->now, &doc);
	assert_non_null(doc.waiting);
	assert_string_equal(waiting_code_names[doc.waiting->code], name);
	assert_string_equal(doc.waiting->text, sentence);
	mo_desc_init(&why_view_desc, &why);
	job_why(core_state(w->core), j, w->now, &why);
	if (!why_says(&why, name, sentence))
		fail_msg("why does not say [%s] %s: %s", name, sentence, why.verdict);
	if (recorded || !j->reason)
		assert_string_equal(doc.reason, sentence);
	else
		assert_true(mo_starts_with(doc.reason, j->reason));
	assert_non_null(strstr(why.verdict, doc.reason));
	mo_desc_done(&why_view_desc, &why);
	mo_desc_done(&job_view_desc, &doc);
}
