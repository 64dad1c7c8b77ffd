/* See webhook_body.h. Lines for chat systems are bounded as the least of them takes, and nothing in
 * them is a link, a mark-up or a call of people: job names and ranks' words are somebody else's. */
#include "daemon/webhook_body.h"

#include <string.h>

#include "daemon/visible.h"
#include "lib/wire/encode.h"

#define TEXT_MAX 1900 /* Discord takes 2000 characters */
#define LINE_MAX_SHOWN 400

/* As Slack wants what is no mark-up; others show it so too. */
static void plain(const char *text, size_t most, struct mo_buf *b)
{
	for (size_t end = b->len + most; *text && b->len < end; text++)
		switch (*text) {
		case '&': mo_buf_str(b, "&amp;"); break;
		case '<': mo_buf_str(b, "&lt;"); break;
		case '>': mo_buf_str(b, "&gt;"); break;
		default: mo_buf_add(b, (unsigned char)*text < ' ' ? " " : text, 1);
		}
}

static void line(const struct state *s, const struct event *e, struct mo_buf *b)
{
	const struct job *j = e->job == MO_NONE ? NULL : job_find(s, e->job);

	mo_buf_str(b, b->len ? "\n" : "");
	mo_buf_printf(b, "%s: ", e->type);
	if (j)
		mo_buf_printf(b, "j-%lld %s: ", (long long)e->job, j->spec.recipe.name);
	plain(e->message ? e->message : "", LINE_MAX_SHOWN, b);
}

static void add(const struct state *s, const struct webhook *w, const struct event *e,
		struct mo_buf *b)
{
	if (w->format != WEBHOOK_EVENTS) {
		line(s, e, b);
		return;
	}
	mo_buf_str(b, b->len ? "," : "");
	wire_encode(&event_desc, e, b);
}

/* n events, all but the first of a longer text by their number. */
static void events(const struct manager *m, const struct webhook *w,
		   const struct webhook_batch *batch, struct mo_buf *b)
{
	const struct viewer v = { .sees_all = mo_streq(m->options->visibility, "all") };
	const struct state *s = manager_state(m);

	for (size_t i = 0; i < batch->n; i++) {
		const struct event *e = batch->events[i];

		if (w->format != WEBHOOK_EVENTS && b->len > TEXT_MAX - 2 * LINE_MAX_SHOWN) {
			mo_buf_printf(b, "\nand %zu more", batch->n - i);
			return;
		}
		if (visible_event(&v, s, e)) {
			add(s, w, e, b);
			continue;
		}
		struct event *cut = visible_event_cut(e);

		add(s, w, cut, b);
		mo_desc_free(&event_desc, cut);
	}
}

void webhook_body(const struct manager *m, const struct webhook *w,
		  const struct webhook_batch *batch, struct mo_buf *b)
{
	_cleanup_(mo_buf_done) struct mo_buf all = { 0 };

	events(m, w, batch, &all);
	if (w->format == WEBHOOK_EVENTS) {
		mo_buf_str(b, "{\"webhook\":");
		wire_string(w->name, b);
		mo_buf_printf(b, ",\"missed\":%lld,\"events\":[%s]}", (long long)batch->missed,
			      all.len ? all.data : "");
		return;
	}
	if (batch->missed)
		mo_buf_printf(&all, "\n%lld events before these are not kept any more",
			      (long long)batch->missed);
	mo_buf_printf(b, "{\"%s\":", webhook_format_names[w->format]);
	wire_string(all.len ? all.data : "", b);
	/* Discord's: nobody is called */
	mo_buf_str(b, w->format == WEBHOOK_CONTENT ? ",\"allowed_mentions\":{\"parse\":[]}}" : "}");
}
