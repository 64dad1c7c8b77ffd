/* See before.h. */
#include "tests/sim/before.h"

#include <errno.h>
#include <json-c/json.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/agent/fence_book.h"
#include "agent/core/stepd/spool.h"
#include "daemon/journal.h"
#include "daemon/journal_replay.h"
#include "lib/base/fd.h"
#include "lib/store/store.h"
#include "lib/wire/parse.h"
#include "tests/before_keys.h"
#include "tests/sim/moed.h"
#include "tests/sim/notes.h"
#include "tests/unit/seams/world.h"

static bool came_later(const struct mo_desc *d, const struct mo_field *f)
{
	for (size_t i = 0; i < ELEMENTSOF(later_keys); i++)
		if (mo_streq(later_keys[i].of, d->name) && mo_streq(later_keys[i].key, f->name))
			return true;
	return false;
}

static void strip(const struct mo_desc *d, struct json_object *json)
{
	for (size_t i = 0; i < d->n_fields; i++) {
		const struct mo_field *f = &d->fields[i];
		struct json_object *value = NULL;

		if (!json_object_object_get_ex(json, f->name, &value) || !value)
			continue;
		if (came_later(d, f))
			json_object_object_del(json, f->name);
		else if (f->kind == MO_STRUCT || f->kind == MO_OPT)
			strip(f->sub, value);
		else if (f->kind == MO_VEC)
			for (size_t k = 0; k < json_object_array_length(value); k++)
				strip(f->sub, json_object_array_get_idx(value, k));
	}
}

char *before_text(const struct mo_desc *d, const char *text, size_t n)
{
	struct json_object *json = NULL;

	if (wire_parse(text, n, &json, NULL) < 0)
		abort(); /* production wrote it */
	strip(d, json);
	char *ret = mo_strdup(
		json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN |
							     JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(json);
	return ret;
}

struct texts {
	struct mo_buf snapshot; /* empty: there is none */
	char **records;
	size_t n;
};

/* What stands before the object that is of d (a head, lines of parts) stays. */
static void add(struct mo_buf *b, const struct mo_desc *d, const char *text, const char *json,
		size_t n_json)
{
	_cleanup_(mo_freep) char *was = before_text(d, json, n_json);

	mo_buf_add(b, text, (size_t)(json - text));
	mo_buf_str(b, was);
}

static int on_snapshot(void *arg, const char *text, size_t n)
{
	struct texts *t = arg;
	const char *state = text ? journal_snapshot_behind(text, &n) : NULL;

	if (state)
		state = parts_behind(state, &n);
	if (state)
		add(&t->snapshot, &state_desc, text, state, n);
	return 0;
}

static int on_record(void *arg, int64_t seq, const char *text, size_t n)
{
	struct texts *t = arg;
	struct mo_buf b = { 0 };
	const char *record = parts_behind(text, &n);

	add(&b, &record_desc, text, record, n);
	*MO_GROW(t->records, t->n) = mo_buf_take(&b);
	return 0;
}

static void must(struct sim *s, int r, const struct mo_error *err)
{
	if (r < 0)
		sim_violation(s, "a store of before: %s", mo_error_text(err, r));
}

/* A store of its own: that of now is another's, which knows its records by their checksums. Files
 * beside it (of iterations) came later. */
static struct store *rewrite(struct sim *s, struct texts *t, struct mo_error *err)
{
	struct store *store = NULL;
	int64_t bytes;

	must(s, store_open(MOED_DIR, &store, err), err);
	must(s, store_read(store, on_snapshot, on_record, t, err), err);
	store = store_free(store);
	seam_remove(MOED_DIR);
	must(s, store_open(MOED_DIR, &store, err), err);
	if (t->snapshot.len) {
		char *none = (char *)"{}"; /* which the snapshot takes the place of */

		must(s, store_append(store, &none, 1, err), err);
		must(s, store_write_snapshot(store, 1, t->snapshot.data, t->snapshot.len), err);
		must(s, store_adopt_snapshot(store, 1, &bytes, err), err);
	}
	must(s, store_append(store, t->records, t->n, err), err);
	return store;
}

void before_store(struct sim *s)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct texts t = { 0 };

	seams_begin(s);
	seam_vfs();
	sqlite3_randomness(0, NULL);
	struct store *store = rewrite(s, &t, &err);
	core_free(s->ctl.shadow);
	journal_free(s->ctl.journal);
	s->ctl.shadow = sim_core(s);
	s->ctl.journal = journal_new();
	must(s, journal_replay(s->ctl.journal, s->ctl.shadow, store, &err), &err);
	s->ctl.seq = store_seq(store);
	store_free(store);
	mo_buf_done(&t.snapshot);
	for (size_t i = 0; i < t.n; i++)
		free(t.records[i]);
	free(t.records);
}

/* Which is there for so long that it is on disk, whatever becomes of the power. */
static void put_again(const struct mo_desc *d, const char *path)
{
	const char *text = seam_text(path);

	if (text && *text) {
		_cleanup_(mo_freep) char *was = before_text(d, text, strlen(text));

		seam_put(path, was);
	}
}

/* The fence knew no boot. */
void before_node(struct sim *s, int node)
{
	const struct simnode *n = &s->nodes[node];
	_cleanup_(mo_freep) char *fence = mo_printf("/%s/state/fence.json", n->name);
	_cleanup_(mo_freep) char *boot = mo_printf("/%s/state/fence-boot.json", n->name);

	put_again(&fence_file_desc, fence);
	seam_remove(boot);
	for (size_t i = 0; i < s->n_steps; i++) {
		const struct simstep *st = s->steps[i];
		_cleanup_(mo_freep) char *dir =
			st->node == node && st->spooled ? notes_dir(s, st) : NULL;
		_cleanup_(mo_freep) char *entry = dir ? mo_path(dir, "launch.json") : NULL;

		if (entry)
			put_again(&spool_desc, entry);
	}
}
