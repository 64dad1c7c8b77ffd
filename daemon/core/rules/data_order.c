/* See data_order.h. */
#include "daemon/core/rules/data_order.h"

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "lib/base/buf.h"

struct data_order_told data_order_told(const struct job *j)
{
	const struct data_order *o = j->progress.data_order;

	return o ? (struct data_order_told){ o->attempt, o->iteration }
		 : (struct data_order_told){ MO_NONE, MO_NONE };
}

void data_order_tell(struct turn *t, int64_t id, const struct data_order_told *before)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct data_order *o = j->progress.data_order;
	struct data_order_told now = data_order_told(j);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (!o || (now.attempt == before->attempt && now.iteration == before->iteration))
		return;
	data_str(&b, "kind", data_order_names[o->kind]);
	data_int(&b, "resume", o->resume);
	data_int(&b, "iteration", o->iteration);
	data_int(&b, "consumed", o->consumed);
	data_int(&b, "begins", o->begins);
	data_int(&b, "ended", o->ended);
	data_int(&b, "samples", o->samples);
	event_emit(t, data_order_moved(o) ? EVENT_DATA_MOVED : EVENT_DATA_ORDER, id, NULL, MO_NONE,
		   o->attempt, data_end(&b), "%s", o->text);
}
