/* The core from what the store has: see journal_replay.h. What cannot be read stops the start, or
 * (moed --quarantine) is given to a function, which takes it aside with the job that it is of;
 * forgetting a record silently could start an attempt twice. */
#include "daemon/journal_replay.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "daemon/core/aside.h"
#include "daemon/record_label.h"
#include "lib/base/util.h"
#include "lib/wire/decode.h"
#include "lib/wire/parse.h"

MO_DEFINE_DONE(record)

struct replay {
	struct journal *journal;
	struct core *core;
	journal_rest_fn rest; /* NULL: what cannot be taken ends it */
	void *arg;
	int64_t end; /* the record whose owner cannot be told */
	struct mo_error *err;
};

/* text: behind its parts; stored: with them. What it refers to stands before it, or all of it as
 * it was stored. */
static int rest(struct replay *p, struct journal_rest *r, const struct record_label *l,
		const char *text, const char *stored, size_t n_stored)
{
	_cleanup_(mo_buf_done) struct mo_buf whole = { 0 };

	if (parts_write(&p->journal->parts, record_label_parts(l), &whole))
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
		r = parts_fill(&j->parts, &ret->jobs[i]->spec, err);
	return r;
}

static int try_element(struct replay *p, const struct mo_field *f, struct json_object *json,
		       struct mo_error *err)
{
	void *obj = mo_desc_new(f->sub);
	int r = wire_from_json(f->sub, json, false, obj, err);

	if (r >= 0 && f->sub == &job_desc)
		r = parts_fill(&p->journal->parts, &((struct job *)obj)->spec, err);
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
		_cleanup_(record_label_done) struct record_label l;
		int r = try_element(p, f, json, &why);
		if (r >= 0) {
			i++;
			record_label_init(&l);
			continue;
		}
		const char *text =
			json_object_to_json_string_ext(json,
						       JSON_C_TO_STRING_PLAIN |
							       JSON_C_TO_STRING_NOSLASHESCAPE);
		record_label_of(text, strlen(text), &l);
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
		parts_fill(&p->journal->parts, &ret->jobs[i]->spec, NULL);
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
	text = journal_snapshot_behind(text, &n);
	if (!text)
		return mo_error_set(p->err, -EINVAL,
				    "the stored snapshot was written by a newer moed: start that "
				    "version, or restore an older backup");
	mo_desc_init(&state_desc, &state);
	int r = parts_read(&p->journal->parts, &text, &n, &why);
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
	const char *record = parts_behind(text, &n);
	_cleanup_(record_label_done) struct record_label l;

	record_label_of(record, n, &l);
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
	_cleanup_(record_label_done) struct record_label l;
	size_t n_record = n;
	const char *stored = text, *record = parts_behind(text, &n_record);
	size_t n_stored = n;

	record_label_init(&l);
	if (p->rest)
		record_label_of(record, n_record, &l);
	bool out = p->rest && l.job != MO_NONE && core_is_out(p->core, l.job);
	int r = out ? parts_read(&p->journal->parts, &text, &n, NULL) : take(p, seq, text, n, &why);
	if (r <= 0 && !out)
		return r;
	if (!p->rest)
		record_label_of(record, n_record, &l);
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
	parts_forget(&j->parts, PARTS_MAX);
	*ret_end = p.end ? p.end : store_damaged(store);
	return r;
}

int journal_replay(struct journal *j, struct core *core, struct store *store, struct mo_error *err)
{
	int64_t end;

	return journal_sift(j, core, store, NULL, NULL, &end, err);
}
