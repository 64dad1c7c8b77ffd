/* See scenarios.h: what the controller made of it, in one sentence. */
#include "tests/scenarios/scenarios.h"

#include <stdio.h>
#include <string.h>

const char *const at_names[_AT_N] = {
	"queued", "launching",  "importing", "loading",     "first iteration", "stepping",
	"saving", "evaluating", "finishing", "backing off", "resuming",
};

static void blames(const struct play *p, const struct incident *inc, struct mo_buf *b)
{
	mo_buf_printf(b, "%s (%s)", inc->class, inc->cause);
	if (inc->first_rank == p->rank)
		mo_buf_printf(b, " of the rank");
	else if (inc->first_rank != MO_NONE)
		mo_buf_printf(b, " of rank %lld", (long long)inc->first_rank);
	else if (mo_streq(inc->node, p->w.toys[p->node].name))
		mo_buf_printf(b, " of the node");
	else
		mo_buf_printf(b, " of %s", inc->node ? "another node" : "nobody");
}

static void happened(const struct play *p, struct mo_buf *b)
{
	const struct job *j = play_job(p);

	if (j->n_incidents == p->n_before)
		mo_buf_printf(b, "no failure");
	for (size_t i = p->n_before; i < j->n_incidents; i++) {
		mo_buf_printf(b, "%s", i > p->n_before ? ", then " : "");
		blames(p, &j->incidents[i], b);
		mo_buf_printf(b, ": %s",
			      !mo_starts_with(j->incidents[i].action, "restart")
				      ? j->incidents[i].action
			      : j->incidents[i].elsewhere ? "elsewhere"
							  : "retry");
	}
}

/* From where each attempt after that began, as the events tell. */
static void resumed(const struct play *p, struct mo_buf *b)
{
	const struct state *s = core_state(p->w.core);
	bool first = true;

	for (size_t i = 0; i < s->n_events; i++) {
		const struct event *e = &s->events[i];
		const char *at = e->data ? strstr(e->data, "\"resume\":") : NULL;
		long long from;

		if (!mo_streq(e->type, "job.started") || e->attempt <= p->attempt_before || !at ||
		    sscanf(at, "\"resume\":%lld", &from) != 1)
			continue;
		mo_buf_printf(b, "%s%s", first ? "; again from " : ", ",
			      from < 0                   ? "nothing"
			      : from == p->newest_before ? "the newest"
			      : from > p->newest_before  ? "a later one"
							 : "the one before");
		first = false;
	}
	if (first)
		mo_buf_printf(b, "; %s", p->attempt_before ? "the same attempt" : "never");
}

static void told(const struct play *p, struct mo_buf *b)
{
	static const char *const types[] = {
		"node.down",       "node.power_asked",   "node.fenced",        "hang.confirmed",
		"straggler.found", "straggler.left",     "loss.nan",           "loss.spike",
		"checkpoint.torn", "checkpoint.suspect", "checkpoint.tainted", "step.refused",
		"step.lost",       "step.missing",
	};
	size_t n = 0;

	for (size_t i = 0; i < ELEMENTSOF(types); i++)
		if (world_event_seen(&p->w, types[i]))
			mo_buf_printf(b, "%s%s", n++ ? " " : "; ", types[i]);
}

char *verdict_words(const struct play *p)
{
	const struct job *j = play_job(p);
	struct mo_buf b = { 0 };
	struct waiting why;

	happened(p, &b);
	resumed(p, &b);
	if (world_cordoned(&p->w))
		mo_buf_printf(&b, "; its node cordoned");
	if (job_state_final(j->state)) {
		mo_buf_printf(&b, "; %s", job_state_names[j->state]);
	} else if (waiting_of(core_state(p->w.core), j, p->w.now, &why)) {
		mo_buf_printf(&b, "; waits (%s)", waiting_code_names[why.code]);
		waiting_done(&why);
	} else {
		mo_buf_printf(&b, "; stands as %s", job_state_names[j->state]);
	}
	told(p, &b);
	return mo_buf_take(&b);
}
