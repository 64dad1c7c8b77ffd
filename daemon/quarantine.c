/* What a start cannot take goes into a file of STATE/quarantine, as text: the record, the job
 * that it belongs to as it was before, and every later record of that job. Dropping the record
 * alone could start an attempt twice. The rest becomes a new snapshot. Files are written and
 * synced before: a crash in between leaves the store as it was, and the next run does the same
 * again.
 *
 * A record whose job cannot be told, because it is damaged say, could be of any. Then the state
 * goes back to the moment before it, as if it were restored from a backup of then, in an
 * incarnation of its own; that record and those after it go into a file to be read by people.
 *
 * The file's lines are quarantine_file.h's, the way back is put_back.c. */
#include "daemon/quarantine.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/begin.h"
#include "daemon/core/aside.h"
#include "daemon/journal_replay.h"
#include "daemon/offline.h"
#include "daemon/put_back.h"
#include "daemon/quarantine_file.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/wire/encode.h"

struct file {
	int64_t job;
	bool to_read; /* nothing of it can be put back */
	char *name, *what;
	struct mo_buf text;
};
struct aside {
	struct offline *s;
	struct file *files;
	size_t n_files;
	int64_t n_epochs; /* controller records that were taken out */
};

static void files_done(struct aside *m)
{
	for (size_t i = 0; i < m->n_files; i++) {
		free(m->files[i].name);
		free(m->files[i].what);
		mo_buf_done(&m->files[i].text);
	}
	free(m->files);
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
				    (long long)store_seq(m->s->store));
	else if (rest->seq != MO_NONE)
		f->name = mo_printf("record-%lld", (long long)rest->seq);
	else
		f->name = mo_printf("%s-%zu.%lld", rest->list, m->n_files,
				    (long long)store_seq(m->s->store));
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
		quarantine_lines(&f->text, QUARANTINE_JOB, text.data);
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
		rest->seq != MO_NONE
			? mo_printf("%lld", (long long)rest->seq)
			: mo_strdup(rest->job != MO_NONE ? QUARANTINE_JOB : rest->list);

	if (!f->what)
		f->what = what_of(rest);
	if (rest->seq != MO_NONE && rest->job != MO_NONE && rest->why)
		take_job(m, core, f);
	quarantine_lines(&f->text, word, rest->text);
	m->n_epochs += mo_streq(rest->type, record_type_names[REC_CONTROLLER]);
	return 0;
}

static int write_file(struct aside *m, const struct file *f, char **ret_path, struct mo_error *err)
{
	_cleanup_(mo_freep) char *dir = mo_path(m->s->state_dir, "quarantine");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	char when[32];

	*ret_path = mo_path(dir, "%s", f->name);
	mo_buf_printf(&b, "# Taken out of the state of %s on %s.\n# %s\n", m->s->state_dir,
		      mo_time_format(mo_clock_wall_us(), when), f->what);
	if (!f->to_read)
		mo_buf_printf(&b,
			      "# To put it back, when a newer moed can take it or it was corrected "
			      "here:\n"
			      "#   systemctl stop moed; moed --put-back %s; systemctl start moed\n",
			      *ret_path);
	mo_buf_str(&b, QUARANTINE_ENDS_SO);
	mo_buf_add(&b, f->text.data, f->text.len);
	mo_buf_str(&b, QUARANTINE_END);
	int r = mo_mkdir_p(dir, 0700, true);
	if (r >= 0)
		r = mo_write_file(*ret_path, b.data, b.len, 0600, true);
	return r < 0 ? mo_error_set(err, r, "%s: %s", *ret_path, strerror(-r)) : 0;
}

static int on_raw(void *arg, int64_t seq, const char *text, size_t n)
{
	struct file *f = arg;
	_cleanup_(mo_freep) char *whole = mo_strndup(text ? text : "", n);
	_cleanup_(mo_freep) char *word = mo_printf("# %lld", (long long)seq);

	quarantine_lines(&f->text, word, whole);
	return 0;
}

/* What cannot be told whose it is ends what can be taken. */
static int go_back(struct aside *m, int64_t end, struct mo_error *err)
{
	struct file *f = MO_GROW(m->files, m->n_files);
	char when[32];

	mo_time_format(core_state(m->s->core)->time, when);
	f->job = MO_NONE;
	f->to_read = true;
	f->name = mo_printf("from-%lld", (long long)end);
	f->what = mo_printf("stored record %lld, which is damaged and could be of any job, and all "
			    "after it",
			    (long long)end);
	int r = store_read_raw(m->s->store, end, on_raw, f, err);
	struct record i = begin_incarnation(core_state(m->s->core), core_state(m->s->core)->time);
	if (r >= 0 && (r = core_update(m->s->core, &i)) < 0)
		mo_error_set(err, r,
			     "the beginning of the incarnation is refused by its own state");
	mo_desc_done(&record_desc, &i);
	if (r >= 0)
		printf("The state is as it was at %s, and what happened after that is not known: "
		       "as if it were restored from a backup of then.\n",
		       when);
	return r;
}

static int take_out(struct aside *m, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	int64_t end = 0;
	int r = journal_sift(m->s->journal, m->s->core, m->s->store, on_rest, m, &end, &why);

	if (r == -EBADMSG && end)
		r = go_back(m, end, err);
	else if (r < 0)
		mo_error_set(err, r, "%s", mo_error_text(&why, r));
	if (r >= 0 && m->n_files == 0)
		printf("%s: every stored record can be read: nothing was changed\n",
		       m->s->state_dir);
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
		offline_event(m->s, EVENT_STORE_QUARANTINE, m->files[i].job, message);
		printf("%s\n", message);
	}
	if (r >= 0)
		core_epochs_lost(m->s->core, m->n_epochs);
	if (r >= 0)
		r = offline_store(m->s, err);
	if (r >= 0)
		printf("moed can be started. Of jobs that were taken out, ranks run on where they "
		       "run; their nodes get no other work until they end or the job was put "
		       "back.\n");
	return r;
}

int quarantine_run(const struct options *o, struct mo_error *err)
{
	_cleanup_(offline_done) struct offline s = { 0 };
	struct aside m = { .s = &s };

	if (o->quarantine && o->put_back)
		return mo_error_set(err, -EINVAL, "--quarantine and --put-back: only one of them");
	int r = offline_open(&s, o->state_dir, err);
	if (r < 0)
		return r;
	if (o->put_back)
		return put_back(&s, o->put_back, err);
	r = take_out(&m, err);
	files_done(&m);
	return r;
}
