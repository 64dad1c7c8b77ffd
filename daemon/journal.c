/* A record's text: [parts N JSON] newline, record JSON by record_desc. A snapshot's: "moe-snapshot 1" newline, any number of lines parts N JSON, state JSON by state_desc.
 * Unknown keys are ignored (a newer moed of the same version wrote them); an unknown version, unknown parts or anything that cannot be read stops the start, because
 * forgetting a record could start an attempt twice. */
#include "daemon/journal.h"
#include <errno.h>
#include <string.h>
#include "lib/base/parse.h"
#include "lib/wire/json.h"

#define SNAPSHOT_HEAD "moe-snapshot 1\n"
#define PARTS_MAX 64                  /* distinct sets that a new text refers to; a submit with yet another one is stored whole */

struct parts {
	struct engine engine;
	struct env_item *env; size_t n_env;
	struct env_profile *profiles; size_t n_profiles;
};
static const struct mo_field parts_fields[] = {
	MO_F_SUB(parts, engine, MO_STRUCT, &engine_desc), MO_F_VEC(parts, env, &env_item_desc), MO_F_VEC(parts, profiles, &env_profile_desc),
};
static const struct mo_desc parts_desc = MO_DESC(parts, parts_fields);

struct known { int64_t id; struct parts parts; };
struct table { struct known **items; size_t n; };             /* last used first */
struct journal { struct table now; int64_t last_id; };

/* Forgets all but the n last used: they are not referred to again. */
static void table_keep(struct table *t, size_t n)
{
	for (size_t i = n; i < t->n; i++) {
		mo_desc_done(&parts_desc, &t->items[i]->parts);
		free(t->items[i]);
	}
	t->n = MO_MIN(t->n, n);
	if (t->n == 0) {
		free(t->items);
		t->items = NULL;
	}
}

static void table_done(struct table *t) { table_keep(t, 0); }

static void table_to_front(struct table *t, size_t at)
{
	struct known *k = t->items[at];

	memmove(t->items + 1, t->items, at * sizeof(*t->items));
	t->items[0] = k;
}

static struct known *table_add(struct table *t, int64_t id)
{
	struct known *k = mo_alloc(sizeof(*k));

	k->id = id;
	mo_desc_init(&parts_desc, &k->parts);
	*MO_GROW(t->items, t->n) = k;
	table_to_front(t, t->n - 1);
	return k;
}

static const struct known *table_find(const struct table *t, int64_t id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->items[i]->id == id)
			return t->items[i];
	return NULL;
}

/* Borrows. */
static struct parts parts_of(const struct submit *s)
{
	return (struct parts){ s->engine, s->env, s->n_env, s->profiles, s->n_profiles };
}

/* Number of the submit's parts in t; a new one is added and its line appended to b. MO_NONE: the table is full. */
static int64_t refer(struct table *t, int64_t *last_id, const struct submit *s, struct mo_buf *b)
{
	struct parts want = parts_of(s);

	for (size_t i = 0; i < t->n; i++)
		if (mo_desc_equal(&parts_desc, &t->items[i]->parts, &want)) {
			table_to_front(t, i);
			return t->items[0]->id;
		}
	if (t->n >= PARTS_MAX)
		return MO_NONE;
	struct known *k = table_add(t, ++*last_id);
	mo_desc_copy(&parts_desc, &k->parts, &want);
	mo_buf_printf(b, "parts %lld ", (long long)k->id);
	wire_encode(&parts_desc, &k->parts, b);
	mo_buf_str(b, "\n");
	return k->id;
}

/* A shallow copy without the parts; owns nothing. */
static struct submit stripped(const struct submit *s, int64_t parts)
{
	struct submit bare = *s;

	if (parts == MO_NONE)
		return bare;
	mo_desc_init(&engine_desc, &bare.engine);
	bare.env = NULL;
	bare.profiles = NULL;
	bare.n_env = bare.n_profiles = 0;
	bare.parts = parts;
	return bare;
}

struct journal *journal_new(void)
{
	return mo_alloc(sizeof(struct journal));
}

struct journal *journal_free(struct journal *j)
{
	if (!j)
		return NULL;
	table_done(&j->now);
	free(j);
	return NULL;
}

char *journal_record_text(struct journal *j, const struct record *r)
{
	struct mo_buf b = {0};

	if (r->submit) {
		struct submit bare = stripped(r->submit, refer(&j->now, &j->last_id, r->submit, &b));
		struct record copy = *r;
		copy.submit = &bare;
		wire_encode(&record_desc, &copy, &b);
	} else {
		wire_encode(&record_desc, r, &b);
	}
	return mo_buf_take(&b);
}

void journal_snapshot_text(const struct journal *j, const struct state *s, struct mo_buf *ret)
{
	_cleanup_(mo_freep) struct job *jobs = mo_alloc_array(s->n_jobs, sizeof(*jobs));
	_cleanup_(table_done) struct table table = {0};
	int64_t last_id = j->last_id;
	struct state copy = *s;

	mo_buf_str(ret, SNAPSHOT_HEAD);
	for (size_t i = 0; i < s->n_jobs; i++) {
		jobs[i] = s->jobs[i];
		jobs[i].spec = stripped(&s->jobs[i].spec, refer(&table, &last_id, &s->jobs[i].spec, ret));
	}
	copy.jobs = jobs;
	wire_encode(&state_desc, &copy, ret);
}

void journal_snapshot_taken(struct journal *j)
{
	table_done(&j->now);
	j->last_id += PARTS_MAX;
}

/* Reads the lines "parts N JSON" at the beginning; *text and *n then are the rest. */
static int read_parts(struct journal *j, const char **text, size_t *n, struct mo_error *err)
{
	while (*n > 6 && memcmp(*text, "parts ", 6) == 0) {
		const char *number = *text + 6, *end = memchr(*text, '\n', *n), *json = end ? memchr(number, ' ', (size_t)(end - number)) : NULL;
		_cleanup_(mo_freep) char *id_text = json ? mo_strndup(number, (size_t)(json - number)) : NULL;
		int64_t id = 0;
		if (!id_text || mo_parse_i64(id_text, 1, INT64_MAX - 1, &id) < 0)
			return mo_error_set(err, -EINVAL, "a line of parts is malformed");
		struct known *k = table_add(&j->now, id);
		json++;
		int r = wire_decode(&parts_desc, json, (size_t)(end - json), false, &k->parts, err);
		if (r < 0)
			return r;
		j->last_id = MO_MAX(j->last_id, id);
		*n -= (size_t)(end + 1 - *text);
		*text = end + 1;
	}
	return 0;
}

static int fill(const struct journal *j, struct submit *s, struct mo_error *err)
{
	if (s->parts == MO_NONE)
		return 0;
	const struct known *k = table_find(&j->now, s->parts);
	if (!k)
		return mo_error_set(err, -EINVAL, "it refers to parts %lld, which are not there", (long long)s->parts);
	struct parts *parts = mo_desc_dup(&parts_desc, &k->parts);
	mo_desc_done(&engine_desc, &s->engine);
	s->engine = parts->engine;
	s->env = parts->env;
	s->n_env = parts->n_env;
	s->profiles = parts->profiles;
	s->n_profiles = parts->n_profiles;
	s->parts = MO_NONE;
	free(parts);
	return 0;
}

struct replay { struct journal *journal; struct core *core; struct mo_error *err; };

static int read_state(struct journal *j, const char *text, size_t n, struct state *ret, struct mo_error *err)
{
	int r = read_parts(j, &text, &n, err);

	if (r >= 0)
		r = wire_decode(&state_desc, text, n, false, ret, err);
	for (size_t i = 0; r >= 0 && i < ret->n_jobs; i++)
		r = fill(j, &ret->jobs[i].spec, err);
	return r;
}

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
	int r = read_state(p->journal, text + strlen(SNAPSHOT_HEAD), n - strlen(SNAPSHOT_HEAD), &state, &why);
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
	int r = read_parts(p->journal, &text, &n, &why);
	if (r >= 0)
		r = wire_decode(&record_desc, text, n, false, &record, &why);
	if (r >= 0 && record.submit)
		r = fill(p->journal, record.submit, &why);
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

int journal_replay(struct journal *j, struct core *core, struct store *store, struct mo_error *err)
{
	struct replay p = { .journal = j, .core = core, .err = err };

	int r = store_read(store, on_snapshot, on_record, &p, err);
	table_keep(&j->now, PARTS_MAX);
	return r;
}
