/* Events: what users see in the stream and `moectl events`. One event = one record, one stream
 * entry, one journal entry. Called by the deciding files. */
#include "daemon/core/rules/events.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/rules/turn.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/base/utf8.h"
#include "lib/model/limits.h"

#define MESSAGE_MAX 1023 /* bytes of what an event says */

static void key(struct mo_buf *b, const char *name)
{
	mo_buf_printf(b, "%s\"%s\":", b->len ? "," : "{", name);
}

/* The text is valid UTF-8 as far as it matters: lib/wire replaces bad bytes of what it was
 * given; here only JSON's own characters are escaped. */
void data_str(struct mo_buf *b, const char *name, const char *value)
{
	mo_assert(name && *name);
	/* as lib/wire writes them: a replayed event has the same text */
	static const char plain[] = "\"\\\n\t\r\b\f", letters[] = "\"\\ntrbf";

	key(b, name);
	if (!value) {
		mo_buf_str(b, "null");
		return;
	}
	mo_buf_str(b, "\"");
	for (const unsigned char *p = (const unsigned char *)value; *p; p++) {
		const char *at = strchr(plain, *p);

		if (at)
			mo_buf_printf(b, "\\%c", letters[at - plain]);
		else if (*p < 0x20)
			mo_buf_printf(b, "\\u%04x", *p);
		else
			mo_buf_add(b, p, 1);
	}
	mo_buf_str(b, "\"");
}

void data_int(struct mo_buf *b, const char *name, int64_t value)
{
	mo_assert(name && *name);
	key(b, name);
	if (value == MO_NONE)
		mo_buf_str(b, "null");
	else
		mo_buf_printf(b, "%lld", (long long)value);
}

void data_real(struct mo_buf *b, const char *name, double value)
{
	key(b, name);
	if (value == MO_NONE_F)
		mo_buf_str(b, "null");
	else if (!isfinite(value))
		mo_buf_str(b, isnan(value) ? "\"NaN\""
			      : value > 0  ? "\"Infinity\""
					   : "\"-Infinity\"");
	else
		mo_buf_printf(b, "%.17g", value);
}

char *data_end(struct mo_buf *b)
{
	mo_assert(b->len > 0);
	mo_buf_str(b, b->len ? "}" : "{}");
	return mo_buf_take(b);
}

void talkers_clear(struct core *c)
{
	for (size_t i = 0; i < c->n_talkers; i++)
		free(c->talkers[i].user);
	free(c->talkers);
	c->talkers = NULL;
	c->n_talkers = 0;
}

static bool is_of(enum event_type type, const char *kinds)
{
	return mo_starts_with(event_registry[type].type, kinds);
}

/* Thousands of announcements of one user's ranks would push everybody's events out of the ring.
 * How many of this minute were reported, this one included; 0 when it is of no such kind. */
static int64_t announced(struct turn *t, enum event_type type, int64_t job)
{
	struct core *c = t->core;
	const struct job *j = is_of(type, "checkpoint.") ? job_find(&c->state, job) : NULL;
	const char *user = j && j->spec.user ? j->spec.user : "";
	struct talker *k = NULL;

	if (!j)
		return 0;
	if (t->now >= c->talkers_until) {
		talkers_clear(c);
		c->talkers_until = t->now + 60 * 1000000LL;
	}
	for (size_t i = 0; i < c->n_talkers && !k; i++)
		k = strcmp(c->talkers[i].user, user) == 0 ? &c->talkers[i] : NULL;
	if (!k) {
		k = MO_GROW(c->talkers, c->n_talkers);
		k->user = mo_strdup(user);
	}
	return ++k->n;
}

/* What a node can cause as often as it likes: its events do not push everybody else's out of the
 * ring. Each kind has a rate of its own; all that are not named share the widest, as a node with
 * 256 ranks has much to tell at once. */
struct teller {
	int64_t until, left_out;
	bool cut;
};
static const struct {
	enum event_type type;
	int64_t burst, every_us;
} rates[] = {
	{ EVENT_NODE_UP, 30, 60000000 },
	{ EVENT_NODE_SUSPECT, 30, 60000000 },
	{ EVENT_NODE_DOWN, 30, 60000000 },
	{ EVENT_NODE_LEAVING, 30, 60000000 },
	{ EVENT_NODE_TOKEN_RENEWED, 30, 60000000 },
	{ EVENT_NODE_TOKEN_EXPIRED, 30, 60000000 },
	{ EVENT_NODE_TOKEN_GOOD, 30, 60000000 },
	{ EVENT_CONTROLLER_STALE, 30, 60000000 },
	{ EVENT_STEP_HUNG, 30, 60000000 },
	{ EVENT_STEP_MISSING, 30, 60000000 },
	{ EVENT_STEP_UNKNOWN, 30, 60000000 },
	{ _EVENT_TYPE_N, 1000, 10000000 },
};

void tellers_shift(struct live *l, int64_t shift)
{
	for (size_t i = 0; l->tellers && i < ELEMENTSOF(rates); i++)
		l->tellers[i].until += shift;
}

/* A person's, the controller's, or limited elsewhere: health in cordon.c. */
static bool unlimited(enum event_type type)
{
	return is_of(type, "audit.") || is_of(type, "health.") || type == EVENT_JOB_STARTED ||
	       type == EVENT_NODE_NOISY;
}

static void tell_noisy(struct turn *t, const char *node, enum event_type type)
{
	const char *kind = type == _EVENT_TYPE_N ? NULL : event_registry[type].type;

	event_emit(t, EVENT_NODE_NOISY, MO_NONE, node, MO_NONE, MO_NONE, NULL,
		   "node %s makes too many events%s%s: further ones are left out for a while; "
		   "'moectl why %s' says how it is",
		   node, kind ? " of kind " : "", kind ? kind : "", node);
}

/* Once there were too many, none is reported before half of the burst came back in. *ret_left_out:
 * how many were not reported before this one. */
static bool may_tell(struct turn *t, enum event_type type, const char *node, int64_t *ret_left_out)
{
	struct live *l = node && !unlimited(type) ? core_live(t->core, node) : NULL;
	size_t i = 0;

	mo_assert(type >= 0 && type < _EVENT_TYPE_N);
	if (!l)
		return true;
	if (!l->tellers)
		l->tellers = mo_alloc_array(ELEMENTSOF(rates), sizeof(*l->tellers));
	while (rates[i].type != _EVENT_TYPE_N && rates[i].type != type)
		i++;
	struct teller *k = &l->tellers[i];
	int64_t spent = MO_MAX(k->until, t->now) - t->now,
		room = rates[i].burst * rates[i].every_us;

	if (spent > (k->cut ? room / 2 : room - rates[i].every_us)) {
		bool first = !k->cut;

		k->cut = true;
		k->left_out++;
		if (first)
			tell_noisy(t, node, rates[i].type);
		return false;
	}
	*ret_left_out = k->left_out;
	*k = (struct teller){ .until = t->now + spent + rates[i].every_us };
	return true;
}

void event_emit(struct turn *t, enum event_type type, int64_t job, const char *node, int64_t rank,
		int64_t attempt, char *data, const char *fmt, ...)
{
	char text[MESSAGE_MAX + 5]; /* one character more, to be cut before it */
	struct event *e;
	struct effect *fx;
	struct record r;
	va_list ap;

	mo_assert(type >= 0 && type < _EVENT_TYPE_N && fmt);
	int64_t n = announced(t, type, job), left_out = 0;

	if (n > MO_EVENTS_OF_USER_MAX || !may_tell(t, type, node, &left_out)) {
		free(data);
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n == MO_EVENTS_OF_USER_MAX)
		snprintf(text + MO_MIN(strlen(text), (size_t)MESSAGE_MAX - 120), 120,
			 " (further events about checkpoints of this user are left out for a "
			 "minute; `moectl checkpoints` has all)");
	if (left_out)
		snprintf(text + MO_MIN(strlen(text), (size_t)MESSAGE_MAX - 120), 120,
			 " (%lld events of this kind of the node were left out before)",
			 (long long)left_out);
	if (strlen(text) > MESSAGE_MAX)
		text[mo_utf8_cut(text, MESSAGE_MAX)] = 0;
	record_init(&r, REC_EVENT);
	e = r.event = mo_desc_new(&event_desc);
	e->seq = t->core->state.next_event_seq;
	e->time = t->now;
	e->type = mo_strdup(event_registry[type].type);
	e->job = job;
	e->node = mo_strdup(node);
	e->rank = rank;
	e->attempt = attempt;
	e->message = mo_strdup(text);
	e->data = data;
	e = mo_desc_dup(&event_desc, e);
	turn_emit(t, &r);

	fx = turn_effect(t, FX_EVENT, NULL);
	fx->event = mo_desc_new(&effect_event_desc);
	fx->event->type = type;
	fx->event->event = e;
}

void audit_emit(struct turn *t, enum event_type type, const char *node, const char *fmt, ...)
{
	const struct in_caller *by = &t->input->by;
	const char *user = by->user ? by->user : "the controller", *via = by->user ? by->via : NULL;
	struct mo_buf data = { 0 };
	char text[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	data_str(&data, "user", by->user);
	data_str(&data, "via", via);
	event_emit(t, type, MO_NONE, node, MO_NONE, MO_NONE, data_end(&data), "%s%s%s%s %s", user,
		   via ? " (" : "", via ? via : "", via ? ")" : "", text);
}
