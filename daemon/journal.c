/* Record <-> JSON by record_desc; snapshot = a line "moe-snapshot VERSION" and the state by state_desc. Unknown keys are ignored (a newer moed of the same version wrote
 * them); an unknown version or anything that cannot be read stops the start, because forgetting a record could start an attempt twice. */
#include "daemon/journal.h"
#include <errno.h>
#include <string.h>
#include "lib/wire/json.h"

#define SNAPSHOT_HEAD "moe-snapshot 1\n"

char *journal_record_text(const struct record *r)
{
	struct mo_buf b = {0};

	wire_encode(&record_desc, r, &b);
	return mo_buf_take(&b);
}

void journal_snapshot_text(const struct state *s, struct mo_buf *ret)
{
	mo_buf_str(ret, SNAPSHOT_HEAD);
	wire_encode(&state_desc, s, ret);
}

struct replay { struct core *core; struct mo_error *err; };

static int on_snapshot(void *arg, const char *text, size_t n)
{
	struct replay *p = arg;
	_cleanup_(mo_error_done) struct mo_error why = {0};
	struct state state;

	if (!text)
		return 0;
	if (n < strlen(SNAPSHOT_HEAD) || memcmp(text, SNAPSHOT_HEAD, strlen(SNAPSHOT_HEAD)) != 0)
		return mo_error_set(p->err, -EINVAL, "the stored snapshot was written by a newer moed: start that version, or restore an older backup");
	mo_desc_init(&state_desc, &state);
	int r = wire_decode(&state_desc, text + strlen(SNAPSHOT_HEAD), n - strlen(SNAPSHOT_HEAD), false, &state, &why);
	if (r < 0) {
		mo_desc_done(&state_desc, &state);
		return mo_error_set(p->err, r, "the stored snapshot cannot be read: %s: restore the state directory from a backup", mo_error_text(&why, r));
	}
	core_load(p->core, &state);
	return 0;
}

static void record_done(struct record *r) { mo_desc_done(&record_desc, r); }

static int on_record(void *arg, int64_t seq, const char *text, size_t n)
{
	struct replay *p = arg;
	_cleanup_(mo_error_done) struct mo_error why = {0};
	_cleanup_(record_done) struct record record;

	mo_desc_init(&record_desc, &record);
	int r = wire_decode(&record_desc, text, n, false, &record, &why);
	if (r < 0)
		return mo_error_set(p->err, r, "stored record %lld cannot be read: %s: restore the state directory from a backup", (long long)seq, mo_error_text(&why, r));
	if (record.version > RECORD_VERSION)
		return mo_error_set(p->err, -EINVAL, "stored record %lld has version %lld, this moed knows %d: start the newer moed that wrote it", (long long)seq, (long long)record.version,
				    RECORD_VERSION);
	r = core_update(p->core, &record);
	if (r < 0)
		return mo_error_set(p->err, r, "stored record %lld makes no sense after those before it: restore the state directory from a backup", (long long)seq);
	return 0;
}

int journal_replay(struct core *core, struct store *store, struct mo_error *err)
{
	struct replay p = { .core = core, .err = err };

	return store_read(store, on_snapshot, on_record, &p, err);
}
