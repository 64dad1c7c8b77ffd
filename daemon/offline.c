/* See offline.h. */
#include "daemon/offline.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/owner.h"
#include "lib/base/fd.h"
#include "lib/wire/parse.h"

int offline_open(struct offline *s, const char *state_dir, struct mo_error *err)
{
	_cleanup_(mo_freep) char *db = mo_path(state_dir, "moe.db");

	*s = (struct offline){ .state_dir = state_dir,
			       .journal = journal_new(),
			       .core = core_new(&core_config_default) };
	if (mo_access(db, F_OK) < 0)
		return mo_error_set(err, -errno, "%s: %s: there is no state of a controller here",
				    db, strerror(errno));
	int r = owner_become(state_dir, err);
	return r < 0 ? r : store_open(state_dir, &s->store, err);
}

void offline_done(struct offline *s)
{
	core_free(s->core);
	s->journal = journal_free(s->journal);
	store_free(s->store);
}

void offline_event(struct offline *o, enum event_type type, int64_t job, const char *message)
{
	const struct state *s = core_state(o->core);
	struct record r;

	record_init(&r, REC_EVENT);
	r.time = s->time;
	r.event = mo_desc_new(&event_desc);
	r.event->seq = s->next_event_seq;
	r.event->time = s->time;
	r.event->type = mo_strdup(event_registry[type].type);
	r.event->job = job;
	r.event->message = mo_strdup(message);
	(void)core_update(o->core, &r);
	mo_desc_done(&record_desc, &r);
}

int offline_store(struct offline *s, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int64_t bytes, seq = store_seq(s->store);

	journal_snapshot_text(s->journal, core_state(s->core), &text);
	int r = text.len > WIRE_BYTES_MAX
			? -EFBIG
			: store_write_snapshot(s->store, seq, text.data, text.len);
	if (r < 0)
		return mo_error_set(err, r, "%s: the state cannot be written: %s", s->state_dir,
				    strerror(-r));
	r = store_adopt_snapshot(s->store, seq, &bytes, err);
	return r > 0 ? -EIO : r;
}
