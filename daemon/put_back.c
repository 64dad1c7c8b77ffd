/* The way back from quarantine: a core of its own replays the records of a file behind the job as
 * it was; only the job that comes of it is put into the state. Of records without a job only
 * tokens and drains are put back: everything else nodes say again by themselves. */
#include "daemon/put_back.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/aside.h"
#include "daemon/journal_replay.h"
#include "daemon/quarantine_file.h"
#include "lib/base/fd.h"
#include "lib/wire/decode.h"

#define FILE_MAX ((size_t)1 << 30)

struct back {
	struct offline *offline;
	struct journal *journal; /* of the file's own parts */
	struct core *core;       /* the job alone; NULL before its first line */
	int64_t job, n_tokens;
};

/* A core in which there is no job but, where the file has it, this one: records of it follow. */
static void begin_job(struct back *b, int64_t id, struct job *job)
{
	struct state s;

	mo_desc_init(&state_desc, &s);
	mo_desc_copy(&state_desc, &s, core_state(b->offline->core));
	mo_apart_clear(&job_desc, (void ***)&s.jobs, &s.n_jobs);
	if (job)
		mo_desc_copy(&job_desc, MO_INSERT(&s, jobs, 0, &job_desc), job);
	s.next_job = job ? id + 1 : id;
	b->job = id;
	b->core = core_new(&core_config_default);
	core_load(b->core, &s);
	mo_desc_done(&state_desc, &s);
}

static int back_job(struct back *b, const char *text, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	struct job job;

	mo_desc_init(&job_desc, &job);
	int r = b->core ? mo_error_set(err, -EINVAL, "line 'job': there is another before it") : 0;
	if (r >= 0 && (r = journal_read_job(b->journal, text, strlen(text), &job, &why)) < 0)
		mo_error_set(err, r, "line 'job': %s", mo_error_text(&why, r));
	if (r >= 0 && job.id == MO_NONE)
		r = mo_error_set(err, -EINVAL, "line 'job': it has no id");
	if (r >= 0)
		begin_job(b, job.id, &job);
	mo_desc_done(&job_desc, &job);
	return r;
}

/* Of no job. Everything else than these is said again by whom it is of. */
static bool set_by_people(int type)
{
	return type == REC_TOKEN || type == REC_TOKEN_REVOKED || type == REC_DRAIN;
}

static int back_record(struct back *b, const char *word, struct record *r, struct mo_error *err)
{
	if (r->version > RECORD_VERSION)
		return mo_error_set(err, -EINVAL,
				    "line %s: it has version %lld, this moed knows %d", word,
				    (long long)r->version, RECORD_VERSION);
	if (r->job == MO_NONE && !set_by_people(r->type))
		return mo_error_set(err, -EINVAL,
				    "line %s: a record of type %s is not put back: what it "
				    "reported is reported again by itself",
				    word, mo_enum_name(record_type_names, _REC_N, r->type));
	if (r->job != MO_NONE && !b->core)
		begin_job(b, r->job, NULL);
	if (r->job != MO_NONE && r->job != b->job)
		return mo_error_set(err, -EINVAL,
				    "line %s: it is of j-%lld, the ones before it of j-%lld", word,
				    (long long)r->job, (long long)b->job);
	if (core_update(r->job == MO_NONE ? b->offline->core : b->core, r) < 0)
		return mo_error_set(err, -EINVAL,
				    "line %s: it makes no sense after those before it", word);
	b->n_tokens += r->job == MO_NONE;
	return 0;
}

static int back_token(struct back *b, const char *text, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	struct record r;

	record_init(&r, REC_TOKEN);
	r.time = core_state(b->offline->core)->time;
	r.token = mo_desc_new(&token_desc);
	int e = wire_decode(&token_desc, text, strlen(text), false, r.token, &why);
	if (e < 0)
		mo_error_set(err, e, "line 'tokens': %s", mo_error_text(&why, e));
	else
		e = back_record(b, "tokens", &r, err);
	mo_desc_done(&record_desc, &r);
	return e;
}

static int on_text(void *arg, const char *word, const char *text, struct mo_error *err)
{
	struct back *b = arg;
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	struct record r;

	if (mo_streq(word, QUARANTINE_JOB))
		return back_job(b, text, err);
	if (mo_streq(word, "tokens"))
		return back_token(b, text, err);
	if (word[strspn(word, "0123456789")])
		return mo_error_set(err, -EINVAL,
				    "line '%.40s': of it nothing is put back: what it "
				    "reported is reported again by itself",
				    word);
	mo_desc_init(&record_desc, &r);
	int e = journal_read_record(b->journal, text, strlen(text), &r, &why);
	if (e < 0)
		mo_error_set(err, e, "line %s: %s", word, mo_error_text(&why, e));
	else
		e = back_record(b, word, &r, err);
	mo_desc_done(&record_desc, &r);
	return e;
}

/* The job that came of it into the state. */
static int join(struct back *b, struct mo_error *err)
{
	struct job job;
	int r;

	if (!b->core)
		return b->n_tokens ? 0 : mo_error_set(err, -EINVAL, "there is nothing in it");
	mo_desc_init(&job_desc, &job);
	core_take_out(b->core, b->job, &job);
	if (job.id == MO_NONE)
		r = mo_error_set(err, -EINVAL, "it does not have all of j-%lld", (long long)b->job);
	else
		r = core_put_back(b->offline->core, &job, err);
	mo_desc_done(&job_desc, &job);
	return r;
}

static int put_back_text(struct offline *s, const char *text, int64_t *ret_job,
			 struct mo_error *err)
{
	struct back b = { .offline = s, .journal = journal_new(), .job = MO_NONE };
	int r = quarantine_each(text, on_text, &b, err);

	if (r >= 0)
		r = join(&b, err);
	*ret_job = b.job;
	core_free(b.core);
	journal_free(b.journal);
	return r;
}

int put_back(struct offline *s, const char *path, struct mo_error *err)
{
	_cleanup_(mo_freep) char *done = mo_printf("%s.put-back", path);
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int64_t job = MO_NONE;

	int r = journal_replay(s->journal, s->core, s->store, err);
	if (r < 0)
		return r;
	r = mo_read_file(path, FILE_MAX, &text);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s", path, strerror(-r));
	if (quarantine_is_cut(&text))
		return mo_error_set(err, -EBADMSG,
				    "%s: it was cut: its last line is not '# end': nothing was "
				    "changed",
				    path);
	r = put_back_text(s, text.data ? text.data : "", &job, &why);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s: nothing was changed", path,
				    mo_error_text(&why, r));
	_cleanup_(mo_freep) char *message = mo_printf("put back into the state: %s", path);
	offline_event(s, EVENT_STORE_PUT_BACK, job, message);
	r = offline_store(s, err);
	if (r >= 0 && mo_rename(path, done) < 0)
		printf("%s: it is in the state again, but could not be renamed: %s\n", path,
		       strerror(errno));
	else if (r >= 0)
		printf("%s; the file is %s now. moed can be started.\n", message, done);
	return r;
}
