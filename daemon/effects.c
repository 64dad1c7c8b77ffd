/* Carries out what the core decided, after its records are synced. The only place where a reply
 * to a change leaves the controller. */
#include "daemon/effects.h"

#include <string.h>
#include "daemon/agent_answer.h"
#include "daemon/agent_link.h"
#include "daemon/api.h"
#include "daemon/core/rules/prefetch.h"
#include "daemon/exec.h"
#include "daemon/fence.h"
#include "daemon/images.h"
#include "daemon/node_config.h"
#include "lib/wire/encode.h"

/* The answer of a submit; borrows everything. */
struct submitted_view {
	int64_t id;
	char *name;
	int state;
	char **warnings;
	size_t n_warnings;
};
static const struct mo_field submitted_view_fields[] = {
	MO_D_ID(submitted_view, id, job_prefix, "id of the job"),
	MO_D(submitted_view, name, MO_STR, "name of the job"),
	MO_D_ENUM(submitted_view, state, job_state_names, "its state now"),
	MO_D_LIST(submitted_view, warnings, MO_STRS,
		  "what in the recipe is likely not meant, a sentence each", .omit = true),
};
const struct mo_desc submitted_view_desc = MO_DESC(submitted_view, submitted_view_fields);

static void submit_doc(const struct job *j, struct mo_buf *b)
{
	const struct submitted_view v = { .id = j->id,
					  .name = j->spec.recipe.name,
					  .state = j->state,
					  .warnings = j->spec.warnings,
					  .n_warnings = j->spec.n_warnings };

	wire_encode(&submitted_view_desc, &v, b);
}

static void answer(struct manager *m, struct http_request *r, const struct input *in,
		   const struct effect *fx)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	const struct job *j = fx->job > 0 ? job_find(manager_state(m), fx->job) : NULL;
	const struct node *n =
		in->answer_node ? node_find(manager_state(m), in->answer_node) : NULL;

	if (in->answer == ANSWER_SUBMIT && j)
		submit_doc(j, &b);
	else if (in->answer == ANSWER_JOB && j)
		api_job_doc(m, r, j, &b);
	else if (in->answer == ANSWER_NODE && n)
		api_node_doc(m, n, false, &b);
	else if (in->answer == ANSWER_EXEC)
		wire_encode(&exec_desc, execs_find(m, in->answer_text), &b);
	else if (in->answer == ANSWER_PREFETCH)
		wire_encode(&prefetch_desc, prefetch_find(m->core, fx->job), &b);
	else
		mo_buf_str(&b, in->answer_text ? in->answer_text : "{}");
	api_send(r, fx->reply->status, &b);
}

static void reply_to_agent(struct manager *m, const struct input *in, const struct effect *fx)
{
	char *text = in->answer_text ? in->answer_text : (char *)"{}";

	if (fx->reply->status >= 400)
		agent_refuse(m, fx->request, fx->reply->status, fx->reply->after_s, "%s",
			     fx->reply->text ? fx->reply->text : "refused");
	else
		agent_answer(m, fx->request, fx->reply->status,
			     &(struct mo_buf){ .data = text, .len = strlen(text) });
}

static void reply(struct manager *m, const struct input *in, const struct effect *fx)
{
	struct http_request *r;

	if (in->of_agent) {
		reply_to_agent(m, in, fx);
		return;
	}
	/* whether or not somebody still waits: what the event says is done */
	if (in->answer == ANSWER_EXEC)
		execs_decided(m, in->answer_text, fx->reply->status < 400);
	if (in->answer == ANSWER_IMAGES && fx->reply->status < 400) {
		image_questions_ask(m, in->answer_id);
		return;
	}
	if (in->answer == ANSWER_IMAGES)
		image_questions_drop(m, in->answer_id);
	r = http_find(m->http, (uint64_t)fx->request);
	if (!r)
		return;
	if (fx->reply->status >= 400)
		http_problem(r, fx->reply->status, "%s",
			     fx->reply->text ? fx->reply->text : "refused");
	else
		answer(m, r, in, fx);
}

static void log_event(const struct event_about *about, const struct event *e)
{
	const struct mo_log_where where = {
		.job = e->job > 0 ? e->job : 0,
		.attempt = e->attempt > 0 ? e->attempt : 0,
		.rank = e->rank == MO_NONE ? -1 : e->rank,
		.node = e->node,
	};

	mo_log((enum mo_level)about->level, about->message_id, &where, "%s", e->message);
}

void effect_do(struct manager *m, struct input *in, const struct effect *fx)
{
	switch (fx->type) {
	case FX_REPLY: reply(m, in, fx); break;
	case FX_WELCOME: link_welcome(m, fx->request, fx->node, fx->welcome); break;
	case FX_ACK: link_ack(m, fx->request, fx->node); break;
	case FX_HOLD: link_hold(m, fx->request, fx->node, in->core.sync->message->instance); break;
	case FX_WAKE: link_wake(m, fx->node); break;
	case FX_CONFIG: node_config_ask(m, fx->job); break;
	case FX_POWER: fence_run(m, fx->node); break;
	/* to the streams all of a turn at once: streams_flush() */
	case FX_EVENT:
		m->n_events[fx->event->type]++;
		log_event(&event_registry[fx->event->type], fx->event->event);
		break;
	}
}
