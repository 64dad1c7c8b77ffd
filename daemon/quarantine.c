/* What a start cannot take goes into a file of STATE/quarantine, as text: the record, the job
 * that it belongs to as it was before, and every later record of that job. Dropping the record
 * alone could start an attempt twice. The rest becomes a new snapshot. Files are written and
 * synced before: a crash in between leaves the store as it was, and the next run does the same
 * again.
 *
 * A file: lines "# text" for the reader; "job TEXT", the job; "N TEXT", stored record N. Lines
 * with one and the same first word belong together: "parts" and then the JSON that refers to
 * them.
 *
 * A record whose job cannot be told, because it is damaged say, could be of any. Then the state
 * goes back to the moment before it, as if it were restored from a backup of then, in an
 * incarnation of its own; that record and those after it go into a file to be read by people.
 *
 * To put a job back, a core of its own replays its records behind the job as it was; only the
 * job that comes of it is put into the state. Of records without a job only tokens and drains
 * are put back: everything else nodes say again by themselves. */
#include "daemon/quarantine.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/begin.h"
#include "daemon/core/aside.h"
#include "daemon/core/core.h"
#include "daemon/core/rules/turn.h"
#include "daemon/journal.h"
#include "daemon/journal_replay.h"
#include "daemon/owner.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"
#include "lib/wire/parse.h"

#define FILE_MAX ((size_t)1 << 30)
#define JOB_WORD "job"
/* so that one of which the end is missing is not taken for all of it */
#define ENDS_SO "# The last line of this file is '# end'.\n"
#define END "# end\n"

struct file {
	int64_t job;
	bool to_read; /* nothing of it can be put back */
	char *name, *what;
	struct mo_buf text;
};
struct aside {
	const struct options *o;
	struct store *store;
	struct journal *journal;
	struct core *core;
	struct file *files;
	size_t n_files;
	int64_t n_epochs; /* controller records that were taken out */
};

static void aside_done(struct aside *m)
{
	for (size_t i = 0; i < m->n_files; i++) {
		free(m->files[i].name);
		free(m->files[i].what);
		mo_buf_done(&m->files[i].text);
	}
	free(m->files);
	core_free(m->core);
	m->journal = journal_free(m->journal);
	store_free(m->store);
}

static int aside_open(struct aside *m, const struct options *o, struct mo_error *err)
{
	_cleanup_(mo_freep) char *db = mo_path(o->state_dir, "moe.db");

	*m = (struct aside){ .o = o,
			     .journal = journal_new(),
			     .core = core_new(&core_config_default) };
	if (mo_access(db, F_OK) < 0)
		return mo_error_set(err, -errno, "%s: %s: there is no state of a controller here",
				    db, strerror(errno));
	int r = owner_become(o->state_dir, err);
	return r < 0 ? r : store_open(o->state_dir, &m->store, err);
}

/* ---- out ---- */

static void add_lines(struct mo_buf *b, const char *word, const char *text)
{
	for (const char *end; *text; text = *end ? end + 1 : end) {
		end = text + strcspn(text, "\n");
		mo_buf_printf(b, "%s %.*s\n", word, (int)(end - text), text);
	}
}

static struct file *file_of(struct aside *m, const struct journal_rest *rest)
{
	struct file *f;

	for (size_t i = 0; i < m->n_files; i++)
		if (rest->job != MO_NONE && m->files[i].job == rest->job)
			return &m->files[i];
	f = MO_GROW(m->files, m->n_files);
	f->job = rest->job;
	if (rest->job != MO_NONE)
		f->name = mo_printf("j-%lld.%lld", (long long)rest->job,
				    (long long)store_seq(m->store));
	else if (rest->seq != MO_NONE)
		f->name = mo_printf("record-%lld", (long long)rest->seq);
	else
		f->name = mo_printf("%s-%zu.%lld", rest->list, m->n_files,
				    (long long)store_seq(m->store));
	return f;
}

static char *what_of(const struct journal_rest *rest)
{
	_cleanup_(mo_freep) char *whose = rest->job == MO_NONE
						  ? mo_strdup("")
						  : mo_printf(" of j-%lld", (long long)rest->job);

	if (rest->seq == MO_NONE)
		return mo_printf("the snapshot%s: %s", whose, rest->why);
	return mo_printf("stored record %lld (%s%s): %s", (long long)rest->seq,
			 rest->type ? rest->type : "of unknown type", whose, rest->why);
}

static void take_job(struct aside *m, struct core *core, struct file *f)
{
	struct mo_buf text = { 0 };
	struct job job;

	mo_desc_init(&job_desc, &job);
	core_take_out(core, f->job, &job);
	if (job.id != MO_NONE) {
		wire_encode(&job_desc, &job, &text);
		add_lines(&f->text, JOB_WORD, text.data);
	}
	mo_buf_done(&text);
	mo_desc_done(&job_desc, &job);
}

static int on_rest(void *arg, struct core *core, const struct journal_rest *rest,
		   struct mo_error *err)
{
	struct aside *m = arg;
	struct file *f = file_of(m, rest);
	_cleanup_(mo_freep) char *word =
		rest->seq != MO_NONE ? mo_printf("%lld", (long long)rest->seq)
				     : mo_strdup(rest->job != MO_NONE ? JOB_WORD : rest->list);

	if (!f->what)
		f->what = what_of(rest);
	if (rest->seq != MO_NONE && rest->job != MO_NONE && rest->why)
		take_job(m, core, f);
	add_lines(&f->text, word, rest->text);
	m->n_epochs += mo_streq(rest->type, record_type_names[REC_CONTROLLER]);
	return 0;
}

static int write_file(struct aside *m, const struct file *f, char **ret_path, struct mo_error *err)
{
	_cleanup_(mo_freep) char *dir = mo_path(m->o->state_dir, "quarantine");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	char when[32];

	*ret_path = mo_path(dir, "%s", f->name);
	mo_buf_printf(&b, "# Taken out of the state of %s on %s.\n# %s\n", m->o->state_dir,
		      mo_time_format(mo_clock_wall_us(), when), f->what);
	if (!f->to_read)
		mo_buf_printf(&b,
			      "# To put it back, when a newer moed can take it or it was corrected "
			      "here:\n"
			      "#   systemctl stop moed; moed --put-back %s; systemctl start moed\n",
			      *ret_path);
	mo_buf_str(&b, ENDS_SO);
	mo_buf_add(&b, f->text.data, f->text.len);
	mo_buf_str(&b, END);
	int r = mo_mkdir_p(dir, 0700);
	if (r >= 0)
		r = mo_write_file(*ret_path, b.data, b.len, 0600, true);
	return r < 0 ? mo_error_set(err, r, "%s: %s", *ret_path, strerror(-r)) : 0;
}

/* ---- what follows of both ---- */

static void tell_event(struct core *core, enum event_type type, int64_t job, const char *message)
{
	const struct state *s = core_state(core);
	struct record r;

	record_init(&r, REC_EVENT);
	r.time = s->time;
	r.event = mo_desc_new(&event_desc);
	r.event->seq = s->next_event_seq;
	r.event->time = s->time;
	r.event->type = mo_strdup(event_registry[type].type);
	r.event->job = job;
	r.event->message = mo_strdup(message);
	(void)core_update(core, &r);
	mo_desc_done(&record_desc, &r);
}

/* The state as it is now is what the next start reads. */
static int put_snapshot(struct aside *m, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int64_t bytes, seq = store_seq(m->store);

	journal_snapshot_text(m->journal, core_state(m->core), &text);
	int r = text.len > WIRE_BYTES_MAX
			? -EFBIG
			: store_write_snapshot(m->store, seq, text.data, text.len);
	if (r < 0)
		return mo_error_set(err, r, "%s: the state cannot be written: %s", m->o->state_dir,
				    strerror(-r));
	r = store_adopt_snapshot(m->store, seq, &bytes, err);
	return r > 0 ? -EIO : r;
}

static int on_raw(void *arg, int64_t seq, const char *text, size_t n)
{
	struct file *f = arg;
	_cleanup_(mo_freep) char *whole = mo_strndup(text ? text : "", n);
	_cleanup_(mo_freep) char *word = mo_printf("# %lld", (long long)seq);

	add_lines(&f->text, word, whole);
	return 0;
}

/* What cannot be told whose it is ends what can be taken. */
static int go_back(struct aside *m, int64_t end, struct mo_error *err)
{
	struct file *f = MO_GROW(m->files, m->n_files);
	char when[32];

	mo_time_format(core_state(m->core)->time, when);
	f->job = MO_NONE;
	f->to_read = true;
	f->name = mo_printf("from-%lld", (long long)end);
	f->what = mo_printf("stored record %lld, which is damaged and could be of any job, and all "
			    "after it",
			    (long long)end);
	int r = store_read_raw(m->store, end, on_raw, f, err);
	struct record i = begin_incarnation(core_state(m->core), core_state(m->core)->time);
	if (r >= 0 && (r = core_update(m->core, &i)) < 0)
		mo_error_set(err, r,
			     "the beginning of the incarnation is refused by its own state");
	mo_desc_done(&record_desc, &i);
	if (r >= 0)
		printf("The state is as it was at %s, and what happened after that is not known: "
		       "as if it were restored from a backup of then.\n",
		       when);
	return r;
}

static int quarantine(struct aside *m, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	int64_t end = 0;
	int r = journal_sift(m->journal, m->core, m->store, on_rest, m, &end, &why);

	if (r == -EBADMSG && end)
		r = go_back(m, end, err);
	else if (r < 0)
		mo_error_set(err, r, "%s", mo_error_text(&why, r));
	if (r >= 0 && m->n_files == 0)
		printf("%s: every stored record can be read: nothing was changed\n",
		       m->o->state_dir);
	if (r < 0 || m->n_files == 0)
		return r;
	for (size_t i = 0; r >= 0 && i < m->n_files; i++) {
		_cleanup_(mo_freep) char *path = NULL, *message = NULL;
		r = write_file(m, &m->files[i], &path, err);
		if (r < 0)
			break;
		message =
			mo_printf("taken out of the state: %s; %s has it%s", m->files[i].what, path,
				  m->files[i].to_read ? ", to be read"
						      : " and says how to put it back");
		tell_event(m->core, EVENT_STORE_QUARANTINE, m->files[i].job, message);
		printf("%s\n", message);
	}
	if (r >= 0)
		core_epochs_lost(m->core, m->n_epochs);
	if (r >= 0)
		r = put_snapshot(m, err);
	if (r >= 0)
		printf("moed can be started. Of jobs that were taken out, ranks run on where they "
		       "run; their nodes get no other work until they end or the job was put "
		       "back.\n");
	return r;
}

/* ---- back ---- */

/* Calls fn for each run of lines with the same first word. */
static int each_text(const char *text,
		     int (*fn)(void *arg, const char *word, const char *text, struct mo_error *err),
		     void *arg, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf word = { 0 }, all = { 0 };
	int r = 0;

	for (const char *line = text, *end; r >= 0 && *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		size_t n = strcspn(line, " \n");
		if (*line == '#' || n == 0)
			continue;
		bool same = word.len == n && memcmp(word.data, line, n) == 0;
		if (!same && word.len)
			r = fn(arg, word.data, all.data, err);
		if (!same) {
			mo_buf_reset(&word);
			mo_buf_add(&word, line, n);
			mo_buf_reset(&all);
			mo_buf_str(&all, "");
		}
		if (all.len)
			mo_buf_str(&all, "\n");
		if (line[n] == ' ')
			mo_buf_add(&all, line + n + 1, (size_t)(end - line) - n - 1);
	}
	return r >= 0 && word.len ? fn(arg, word.data, all.data, err) : r;
}

struct back {
	struct aside *aside;
	struct journal *journal; /* of the file's own parts */
	struct core *core;       /* the job alone; NULL before its first line */
	int64_t job, n_tokens;
};

/* A core in which there is no job but, where the file has it, this one: records of it follow. */
static void begin_job(struct back *b, int64_t id, struct job *job)
{
	struct state s;

	mo_desc_init(&state_desc, &s);
	mo_desc_copy(&state_desc, &s, core_state(b->aside->core));
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
	if (core_update(r->job == MO_NONE ? b->aside->core : b->core, r) < 0)
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
	r.time = core_state(b->aside->core)->time;
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

	if (mo_streq(word, JOB_WORD))
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
		r = core_put_back(b->aside->core, &job, err);
	mo_desc_done(&job_desc, &job);
	return r;
}

static int put_back_text(struct aside *m, const char *text, int64_t *ret_job, struct mo_error *err)
{
	struct back b = { .aside = m, .journal = journal_new(), .job = MO_NONE };
	int r = each_text(text, on_text, &b, err);

	if (r >= 0)
		r = join(&b, err);
	*ret_job = b.job;
	core_free(b.core);
	journal_free(b.journal);
	return r;
}

/* One of an earlier version does not say how it ends. Editors differ in the last newline. */
static bool is_cut(const struct mo_buf *text)
{
	size_t n = text->len, end = strlen(END);

	if (n == 0 || !strstr(text->data, ENDS_SO))
		return false;
	if (text->data[n - 1] != '\n')
		end--;
	return n < end || memcmp(text->data + n - end, END, end) != 0;
}

static int put_back(struct aside *m, struct mo_error *err)
{
	const char *path = m->o->put_back;
	_cleanup_(mo_freep) char *done = mo_printf("%s.put-back", path);
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int64_t job = MO_NONE;

	int r = journal_replay(m->journal, m->core, m->store, err);
	if (r < 0)
		return r;
	r = mo_read_file(path, FILE_MAX, &text);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s", path, strerror(-r));
	if (is_cut(&text))
		return mo_error_set(err, -EBADMSG,
				    "%s: it was cut: its last line is not '# end': nothing was "
				    "changed",
				    path);
	r = put_back_text(m, text.data ? text.data : "", &job, &why);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s: nothing was changed", path,
				    mo_error_text(&why, r));
	_cleanup_(mo_freep) char *message = mo_printf("put back into the state: %s", path);
	tell_event(m->core, EVENT_STORE_PUT_BACK, job, message);
	r = put_snapshot(m, err);
	if (r >= 0 && mo_rename(path, done) < 0)
		printf("%s: it is in the state again, but could not be renamed: %s\n", path,
		       strerror(errno));
	else if (r >= 0)
		printf("%s; the file is %s now. moed can be started.\n", message, done);
	return r;
}

int quarantine_run(const struct options *o, struct mo_error *err)
{
	_cleanup_(aside_done) struct aside m = { 0 };

	if (o->quarantine && o->put_back)
		return mo_error_set(err, -EINVAL, "--quarantine and --put-back: only one of them");
	int r = aside_open(&m, o, err);
	if (r < 0)
		return r;
	return o->quarantine ? quarantine(&m, err) : put_back(&m, err);
}
