/* A record's text: [parts N JSON] newline, record JSON by record_desc. A snapshot's:
 * "moe-snapshot 2" newline, any number of lines parts N JSON, state JSON by state_desc. In a
 * snapshot the parts leave the environment to each job, or a variable with another value in
 * every recipe would make every job's set another one ("moe-snapshot 1", which is still read,
 * had it in the parts, as records have). Unknown keys are ignored (a newer moed of the same
 * version wrote them); an unknown version, unknown parts or anything that cannot be read stops
 * the start, because forgetting a record could start an attempt twice. */
#include "daemon/journal.h"
#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include "daemon/core/state/record_v1.h"
#include "daemon/core/state/shared.h"
#include "lib/base/parse.h"
#include "lib/model/orders.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"
#include "lib/wire/parse.h"

#define SNAPSHOT_HEAD "moe-snapshot 2\n"
#define SNAPSHOT_HEAD_1 "moe-snapshot 1\n"
/* distinct sets that a new text refers to; a submit with yet another one is stored whole */
#define PARTS_MAX 256

struct parts {
	struct engine engine;
	struct env_item *env;
	size_t n_env;
	struct env_profile *profiles;
	size_t n_profiles;
};
static const struct mo_field parts_fields[] = {
	MO_D_SUB(parts, engine, MO_STRUCT, &engine_desc,
		 "the engine file without what a recipe adds"),
	MO_D_VEC(parts, env, &env_item_desc, "variables of the ranks"),
	MO_D_VEC(parts, profiles, &env_profile_desc, "profiles of the environment"),
};
static const struct mo_desc parts_desc = MO_DESC(parts, parts_fields);

/* shared: made when the first job refers to it; those that do share it. */
struct known {
	int64_t id;
	struct parts parts;
	struct shared *shared;
};
struct table {
	struct known **items;
	size_t n;
}; /* last used first */
struct journal {
	struct table now;
	int64_t last_id;
};

/* Forgets all but the n last used: they are not referred to again. */
static void table_keep(struct table *t, size_t n)
{
	for (size_t i = n; i < t->n; i++) {
		mo_desc_done(&parts_desc, &t->items[i]->parts);
		shared_unref(t->items[i]->shared);
		free(t->items[i]);
	}
	t->n = MO_MIN(t->n, n);
	if (t->n == 0) {
		free(t->items);
		t->items = NULL;
	}
}

static void table_done(struct table *t)
{
	table_keep(t, 0);
}

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

static struct known *table_find(const struct table *t, int64_t id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->items[i]->id == id)
			return t->items[i];
	return NULL;
}

/* Borrows. */
static struct parts parts_of(const struct submit *s, bool with_env)
{
	return (struct parts){ submit_is_own(s) ? engine_base_of(&s->engine) : s->engine,
			       with_env ? s->env : NULL, with_env ? s->n_env : 0, s->profiles,
			       s->n_profiles };
}

/* Number of the submit's parts in t; a new one is added and its line appended to b. MO_NONE: the
 * table is full. */
static int64_t refer(struct table *t, int64_t *last_id, const struct parts *of, struct mo_buf *b)
{
	struct parts want = *of;

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

/* A shallow copy without the parts; owns nothing but `own` itself, which the caller frees. */
static struct submit stripped(const struct submit *s, int64_t parts, bool with_env)
{
	struct submit bare = *s;

	if (parts == MO_NONE)
		return bare;
	if (submit_is_own(s)) {
		bare.own = mo_alloc(sizeof(*bare.own));
		*bare.own = engine_own_of(&s->engine);
	}
	mo_desc_init(&engine_desc, &bare.engine);
	if (with_env) {
		bare.env = NULL;
		bare.n_env = 0;
	}
	bare.profiles = NULL;
	bare.n_profiles = 0;
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
	struct mo_buf b = { 0 };

	if (r->submit) {
		struct parts parts = parts_of(r->submit, true);
		struct submit bare =
			stripped(r->submit, refer(&j->now, &j->last_id, &parts, &b), true);
		struct record copy = *r;
		copy.submit = &bare;
		wire_encode(&record_desc, &copy, &b);
		free(bare.own);
	} else {
		wire_encode(&record_desc, r, &b);
	}
	return mo_buf_take(&b);
}

void journal_snapshot_text(const struct journal *j, const struct state *s, struct mo_buf *ret)
{
	_cleanup_(mo_freep) struct job *jobs = mo_alloc_array(s->n_jobs, sizeof(*jobs));
	_cleanup_(mo_freep) struct job **apart = mo_alloc_array(s->n_jobs, sizeof(*apart));
	_cleanup_(table_done) struct table table = { 0 };
	int64_t last_id = j->last_id;
	struct state copy = *s;

	mo_buf_str(ret, SNAPSHOT_HEAD);
	for (size_t i = 0; i < s->n_jobs; i++) {
		struct parts parts = parts_of(&s->jobs[i]->spec, false);
		apart[i] = &jobs[i];
		jobs[i] = *s->jobs[i];
		jobs[i].spec =
			stripped(&s->jobs[i]->spec, refer(&table, &last_id, &parts, ret), false);
	}
	copy.jobs = apart;
	wire_encode(&state_desc, &copy, ret);
	for (size_t i = 0; i < s->n_jobs; i++)
		free(jobs[i].spec.own);
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
		const char *number = *text + 6, *end = memchr(*text, '\n', *n),
			   *json = end ? memchr(number, ' ', (size_t)(end - number)) : NULL;
		_cleanup_(mo_freep) char *id_text =
			json ? mo_strndup(number, (size_t)(json - number)) : NULL;
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
	struct known *k = table_find(&j->now, s->parts);
	if (!k)
		return mo_error_set(err, -EINVAL, "it refers to parts %lld, which are not there",
				    (long long)s->parts);
	const struct parts *parts = &k->parts;
	if (!k->shared)
		k->shared = shared_new(&parts->engine, parts->profiles, parts->n_profiles);
	submit_share(s, k->shared);
	if (s->own)
		submit_own(s, s->own);
	mo_desc_free(&engine_own_desc, s->own);
	s->own = NULL;
	for (size_t i = 0; i < parts->n_env; i++)
		mo_desc_copy(&env_item_desc, MO_ADD(s, env, &env_item_desc), &parts->env[i]);
	s->parts = MO_NONE;
	return 0;
}

/* ---- replay ---- */

struct replay {
	struct journal *journal;
	struct core *core;
	journal_rest_fn rest; /* NULL: what cannot be taken ends it */
	void *arg;
	int64_t end; /* the record whose owner cannot be told */
	struct mo_error *err;
};

/* What a record, or a job of a snapshot, says of itself, whatever else is wrong with it. */
struct label_parts {
	int64_t parts;
};
struct label {
	char *type;
	int64_t version, job, id;
	struct label_parts *submit, *spec;
};
static const struct mo_field label_parts_fields[] = {
	MO_D(label_parts, parts, MO_INT, "number of the parts that it refers to"),
};
static const struct mo_desc label_parts_desc = MO_DESC(label_parts, label_parts_fields);
static const struct mo_field label_fields[] = {
	MO_DN(label, version, "v", MO_INT, "version of the record's format"),
	MO_D(label, type, MO_STR, "what the record tells"),
	MO_D(label, job, MO_INT, "number of the job; null: it is of none"),
	MO_D(label, id, MO_INT, "number of the job that a snapshot has here"),
	MO_D_SUB(label, submit, MO_OPT, &label_parts_desc, "what a submit refers to"),
	MO_D_SUB(label, spec, MO_OPT, &label_parts_desc, "what a job of a snapshot refers to"),
};
static const struct mo_desc label_desc = MO_DESC(label, label_fields);

MO_DEFINE_DONE(label)

/* The characters of `of` behind mark, NULL = none. Caller frees. */
static char *word_behind(const char *text, const char *mark, const char *of)
{
	const char *at = strstr(text, mark);
	size_t n = at ? strspn(at + strlen(mark), of) : 0;

	return n ? mo_strndup(at + strlen(mark), n) : NULL;
}

static void label_of(const char *text, size_t n, struct label *ret)
{
	mo_desc_init(&label_desc, ret);
	if (wire_decode(&label_desc, text, n, false, ret, NULL) >= 0)
		return;
	/* not even JSON: by the words with which our own records begin */
	_cleanup_(mo_freep) char *copy = mo_strndup(text, n);
	_cleanup_(mo_freep) char *type = word_behind(copy, "\"type\":\"",
						     "abcdefghijklmnopqrstuvwxyz_"),
				 *job = word_behind(copy, "\"job\":", "0123456789");
	ret->type = TAKE_PTR(type);
	if (job && mo_parse_i64(job, 1, INT64_MAX, &ret->job) < 0)
		ret->job = MO_NONE;
}

static int64_t label_parts_id(const struct label *l)
{
	return l->submit ? l->submit->parts : l->spec ? l->spec->parts : MO_NONE;
}

/* text: behind its parts; stored: with them. What it refers to stands before it, or all of it as
 * it was stored. */
static int rest(struct replay *p, struct journal_rest *r, const struct label *l, const char *text,
		const char *stored, size_t n_stored)
{
	const struct known *k = label_parts_id(l) == MO_NONE
					? NULL
					: table_find(&p->journal->now, label_parts_id(l));
	_cleanup_(mo_buf_done) struct mo_buf whole = { 0 };

	if (k) {
		mo_buf_printf(&whole, "parts %lld ", (long long)k->id);
		wire_encode(&parts_desc, &k->parts, &whole);
		mo_buf_str(&whole, "\n");
	}
	if (k)
		mo_buf_add(&whole, text, n_stored - (size_t)(text - stored));
	else
		mo_buf_add(&whole, stored, n_stored);
	r->text = whole.data;
	return p->rest(p->arg, p->core, r, p->err);
}

static int read_state(struct journal *j, const char *text, size_t n, struct state *ret,
		      struct mo_error *err)
{
	int r = wire_decode_large(&state_desc, text, n, ret, err);

	for (size_t i = 0; r >= 0 && i < ret->n_jobs; i++)
		r = fill(j, &ret->jobs[i]->spec, err);
	return r;
}

static int try_element(struct replay *p, const struct mo_field *f, struct json_object *json,
		       struct mo_error *err)
{
	void *obj = mo_desc_new(f->sub);
	int r = wire_from_json(f->sub, json, false, obj, err);

	if (r >= 0 && f->sub == &job_desc)
		r = fill(p->journal, &((struct job *)obj)->spec, err);
	mo_desc_free(f->sub, obj);
	return r;
}

/* Takes out of one list of a snapshot what cannot be read; ids of jobs are added to aside. */
static int sift_list(struct replay *p, const struct mo_field *f, struct json_object *list,
		     struct state *aside)
{
	for (size_t i = 0, at = 0; i < json_object_array_length(list); at++) {
		struct json_object *json = json_object_array_get_idx(list, i);
		_cleanup_(mo_error_done) struct mo_error why = { 0 };
		_cleanup_(label_done) struct label l;
		int r = try_element(p, f, json, &why);
		if (r >= 0) {
			i++;
			mo_desc_init(&label_desc, &l);
			continue;
		}
		const char *text =
			json_object_to_json_string_ext(json,
						       JSON_C_TO_STRING_PLAIN |
							       JSON_C_TO_STRING_NOSLASHESCAPE);
		label_of(text, strlen(text), &l);
		_cleanup_(mo_freep) char *place =
			mo_printf("%s[%zu]: %s", f->name, at, mo_error_text(&why, r));
		bool is_job = f->sub == &job_desc;
		if (is_job && l.id == MO_NONE)
			return mo_error_set(p->err, -EINVAL,
					    "the stored snapshot cannot be read: %s, and which job "
					    "it is cannot be told: restore the state directory "
					    "from a backup",
					    place);
		r = rest(p,
			 &(struct journal_rest){ .seq = MO_NONE,
						 .list = f->name,
						 .job = is_job ? l.id : MO_NONE,
						 .why = place },
			 &l, text, text, strlen(text));
		if (r < 0)
			return r;
		if (is_job)
			mo_ints_add(&aside->aside, &aside->n_aside, l.id);
		json_object_array_del_idx(list, i, 1);
	}
	return 0;
}

/* What of a snapshot can be read. 0, or what sift_list() returns; 1: that is not what is wrong
 * with it. */
static int sift_state(struct replay *p, const char *text, size_t n, struct state *ret)
{
	struct json_object *json = NULL, *list;
	struct state aside;
	int r = wire_parse(text, n, &json, NULL);

	if (r < 0)
		return 1;
	mo_desc_init(&state_desc, &aside);
	for (size_t i = 0; r >= 0 && i < state_desc.n_fields; i++)
		if (state_desc.fields[i].kind == MO_VEC &&
		    json_object_object_get_ex(json, state_desc.fields[i].name, &list) &&
		    json_object_is_type(list, json_type_array))
			r = sift_list(p, &state_desc.fields[i], list, &aside);
	if (r >= 0 && wire_from_json(&state_desc, json, false, ret, NULL) < 0)
		r = 1;
	for (size_t i = 0; r == 0 && i < ret->n_jobs; i++)
		fill(p->journal, &ret->jobs[i]->spec, NULL);
	json_object_put(json);
	if (r == 0) {
		core_load(p->core, ret);
		for (size_t i = 0; i < aside.n_aside; i++)
			core_take_out(p->core, aside.aside[i], NULL); /* it is none of the jobs */
	}
	mo_desc_done(&state_desc, &aside);
	return r;
}

#define WAY_ON \
	"'moed --quarantine' takes it out, with the job that it belongs to, to be put back " \
	"later; or restore the state directory from a backup"

static int on_snapshot(void *arg, const char *text, size_t n)
{
	struct replay *p = arg;
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	struct state state;

	if (!text)
		return 0;
	if (n < strlen(SNAPSHOT_HEAD) ||
	    (memcmp(text, SNAPSHOT_HEAD, strlen(SNAPSHOT_HEAD)) != 0 &&
	     memcmp(text, SNAPSHOT_HEAD_1, strlen(SNAPSHOT_HEAD_1)) != 0))
		return mo_error_set(p->err, -EINVAL,
				    "the stored snapshot was written by a newer moed: start that "
				    "version, or restore an older backup");
	text += strlen(SNAPSHOT_HEAD);
	n -= strlen(SNAPSHOT_HEAD);
	mo_desc_init(&state_desc, &state);
	int r = read_parts(p->journal, &text, &n, &why);
	if (r >= 0)
		r = read_state(p->journal, text, n, &state, &why);
	if (r >= 0) {
		core_load(p->core, &state);
		return 0;
	}
	mo_desc_done(&state_desc, &state);
	int sifted = p->rest ? sift_state(p, text, n, &state) : 1;
	mo_desc_done(&state_desc, &state);
	if (sifted <= 0)
		return sifted;
	return mo_error_set(p->err, r, "the stored snapshot cannot be read: %s: %s",
			    mo_error_text(&why, r),
			    p->rest ? "restore the state directory from a backup" : WAY_ON);
}

int journal_load(struct journal *j, struct core *core, const char *text, size_t n,
		 struct mo_error *err)
{
	struct replay p = { .journal = j, .core = core, .err = err };

	return on_snapshot(&p, text, n);
}

MO_DEFINE_DONE(record)

/* MO_NONE: it does not say. */
static int64_t version_of(const char *text, size_t n)
{
	/* as they are written here; another order of keys is as good */
	if (n > 6 && !memcmp(text, "{\"v\":", 5) && text[6] == ',' && text[5] >= '0' &&
	    text[5] <= '9')
		return text[5] - '0';
	_cleanup_(label_done) struct label l;

	label_of(text, n, &l);
	return l.version;
}

static int read_v1(const char *text, size_t n, struct record *ret, struct mo_error *err)
{
	struct record_v1 old;
	int r;

	mo_desc_init(&record_v1_desc, &old);
	r = wire_decode(&record_v1_desc, text, n, false, &old, err);
	if (r < 0)
		mo_desc_done(&record_v1_desc, &old);
	else
		record_from_v1(&old, ret);
	return r;
}

/* The text behind its parts. */
static const char *behind_parts(const char *text, size_t *n)
{
	const char *end;

	while (*n > 6 && memcmp(text, "parts ", 6) == 0 && (end = memchr(text, '\n', *n)) != NULL) {
		*n -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	return text;
}

int journal_show_record(const char *text, size_t n, struct record *ret, struct mo_error *err)
{
	int r;

	text = behind_parts(text, &n);
	r = version_of(text, n) == 1 ? read_v1(text, n, ret, err)
				     : wire_decode(&record_desc, text, n, false, ret, err);
	if (r >= 0 && ret->scan)
		answer_from_wire(ret->scan);
	return r;
}

int journal_read_record(struct journal *j, const char *text, size_t n, struct record *ret,
			struct mo_error *err)
{
	int r = read_parts(j, &text, &n, err);

	if (r >= 0)
		r = journal_show_record(text, n, ret, err);
	if (r >= 0 && ret->submit)
		r = fill(j, ret->submit, err);
	return r;
}

int journal_read_job(struct journal *j, const char *text, size_t n, struct job *ret,
		     struct mo_error *err)
{
	int r = read_parts(j, &text, &n, err);

	if (r >= 0)
		r = wire_decode(&job_desc, text, n, false, ret, err);
	return r < 0 ? r : fill(j, &ret->spec, err);
}

static int too_new(const struct replay *p, int64_t seq, int64_t version)
{
	return mo_error_set(p->err, -EINVAL,
			    "stored record %lld has version %lld, this moed knows %d: start the "
			    "newer moed that wrote it",
			    (long long)seq, (long long)version, RECORD_VERSION);
}

/* What a newer moed wrote may have words that are none here, and is not damaged by that. */
static int unreadable(const struct replay *p, int64_t seq, const char *text, size_t n)
{
	const char *record = behind_parts(text, &n);
	_cleanup_(label_done) struct label l;

	label_of(record, n, &l);
	return l.version > RECORD_VERSION ? too_new(p, seq, l.version) : 1;
}

/* 0, 1 with why: it cannot be taken, or a negative errno: nobody may start with this store. */
static int take(struct replay *p, int64_t seq, const char *text, size_t n, struct mo_error *why)
{
	_cleanup_(record_done) struct record record;

	mo_desc_init(&record_desc, &record);
	if (journal_read_record(p->journal, text, n, &record, why) < 0)
		return unreadable(p, seq, text, n);
	if (record.version > RECORD_VERSION)
		return too_new(p, seq, record.version);
	if (core_update(p->core, &record) >= 0)
		return 0;
	mo_error_set(why, -EINVAL, "it makes no sense after those before it");
	return 1;
}

/* A record of a job must name it. */
static bool of_no_job(const char *type)
{
	static const int types[] = { REC_SUBMIT,   REC_JOB,        REC_INTENT,    REC_SCAN,
				     REC_PLACE,    REC_ACCEPT,     REC_NOTES,     REC_FAIL,
				     REC_GONE,     REC_FORGOTTEN,  REC_WAIT_NODE, REC_HUNG,
				     REC_INCIDENT, REC_CHECKPOINT, REC_CHECK,     REC_MEASURED,
				     REC_DISCARD,  REC_CONFIG };

	for (size_t i = 0; i < ELEMENTSOF(types); i++)
		if (mo_streq(type, record_type_names[types[i]]))
			return false;
	return mo_enum_parse(record_type_names, _REC_N, type) >= 0;
}

/* What to do about it before all else. A type that came later is none here: who goes back to an
 * older moed must not give up what the newer one stored. */
static const char *first_of_all(const char *type)
{
	return type && mo_enum_parse(record_type_names, _REC_N, type) < 0
		       ? "if a newer moed ran here, start that; else "
		       : "";
}

static int on_record(void *arg, int64_t seq, const char *text, size_t n)
{
	struct replay *p = arg;
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	_cleanup_(label_done) struct label l;
	size_t n_record = n;
	const char *stored = text, *record = behind_parts(text, &n_record);
	size_t n_stored = n;

	mo_desc_init(&label_desc, &l);
	if (p->rest)
		label_of(record, n_record, &l);
	bool out = p->rest && l.job != MO_NONE && core_is_out(p->core, l.job);
	int r = out ? read_parts(p->journal, &text, &n, NULL) : take(p, seq, text, n, &why);
	if (r <= 0 && !out)
		return r;
	if (!p->rest)
		label_of(record, n_record, &l);
	_cleanup_(mo_freep) char *whose =
		l.job == MO_NONE ? mo_strdup("") : mo_printf(" of j-%lld", (long long)l.job);
	if (l.job == MO_NONE && !of_no_job(l.type)) {
		p->end = seq;
		return mo_error_set(p->err, -EBADMSG,
				    "stored record %lld cannot be read (type %s): %s, and whose it "
				    "is cannot be told: %s'moed --quarantine' goes back to the "
				    "moment before it; or restore a backup, when that is newer",
				    (long long)seq, l.type ? l.type : "unknown",
				    mo_error_text(&why, -EINVAL), first_of_all(l.type));
	}
	if (!p->rest)
		return mo_error_set(p->err, -EINVAL,
				    "stored record %lld cannot be read (type %s%s): %s: %s" WAY_ON,
				    (long long)seq, l.type ? l.type : "unknown", whose,
				    mo_error_text(&why, -EINVAL), first_of_all(l.type));
	return rest(p,
		    &(struct journal_rest){ .seq = seq,
					    .type = l.type,
					    .job = l.job,
					    .why = out ? NULL : mo_error_text(&why, -EINVAL) },
		    &l, record, stored, n_stored);
}

int journal_sift(struct journal *j, struct core *core, struct store *store, journal_rest_fn fn,
		 void *arg, int64_t *ret_end, struct mo_error *err)
{
	struct replay p = { .journal = j, .core = core, .rest = fn, .arg = arg, .err = err };

	int r = store_read(store, on_snapshot, on_record, &p, err);
	table_keep(&j->now, PARTS_MAX);
	*ret_end = p.end ? p.end : store_damaged(store);
	return r;
}

int journal_replay(struct journal *j, struct core *core, struct store *store, struct mo_error *err)
{
	int64_t end;

	return journal_sift(j, core, store, NULL, NULL, &end, err);
}
