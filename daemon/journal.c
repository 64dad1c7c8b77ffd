/* A record's text: [parts N JSON] newline, record JSON by record_desc. A snapshot's:
 * "moe-snapshot 2" newline, any number of lines parts N JSON, state JSON by state_desc. The parts
 * leave the environment to each job, or a variable with another value in every recipe would make
 * every job's set another one ("moe-snapshot 1" and records of before 2026-11-29, which are still
 * read, had it in the parts). Unknown keys are ignored (a newer moed of the same version wrote
 * them); an unknown version, unknown parts or anything that cannot be read stops the start,
 * because forgetting a record could start an attempt twice. */
#include "daemon/journal.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/state/record_v1.h"
#include "daemon/record_label.h"
#include "lib/base/util.h"
#include "lib/model/orders.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define SNAPSHOT_HEAD "moe-snapshot 2\n"
#define SNAPSHOT_HEAD_1 "moe-snapshot 1\n"

struct journal *journal_new(void)
{
	return mo_alloc(sizeof(struct journal));
}

struct journal *journal_free(struct journal *j)
{
	if (!j)
		return NULL;
	parts_table_done(&j->parts);
	free(j);
	return NULL;
}

char *journal_record_text(struct journal *j, const struct record *r)
{
	struct mo_buf b = { 0 };

	if (r->submit) {
		struct submit bare =
			parts_stripped(r->submit, parts_refer(&j->parts, r->submit, &b));
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
	_cleanup_(parts_table_done) struct parts_table table = { .last_id = j->parts.last_id };
	struct state copy = *s;

	mo_buf_str(ret, SNAPSHOT_HEAD);
	for (size_t i = 0; i < s->n_jobs; i++) {
		apart[i] = &jobs[i];
		jobs[i] = *s->jobs[i];
		jobs[i].spec = parts_stripped(&s->jobs[i]->spec,
					      parts_refer(&table, &s->jobs[i]->spec, ret));
	}
	copy.jobs = apart;
	wire_encode(&state_desc, &copy, ret);
	for (size_t i = 0; i < s->n_jobs; i++)
		free(jobs[i].spec.own);
}

void journal_snapshot_taken(struct journal *j)
{
	parts_table_done(&j->parts);
	j->parts.last_id += PARTS_MAX;
}

const char *journal_snapshot_behind(const char *text, size_t *n)
{
	size_t head = strlen(SNAPSHOT_HEAD);

	if (*n < head ||
	    (memcmp(text, SNAPSHOT_HEAD, head) != 0 && memcmp(text, SNAPSHOT_HEAD_1, head) != 0))
		return NULL;
	*n -= head;
	return text + head;
}

/* MO_NONE: it does not say. */
static int64_t version_of(const char *text, size_t n)
{
	/* as they are written here; another order of keys is as good */
	if (n > 6 && !memcmp(text, "{\"v\":", 5) && text[6] == ',' && text[5] >= '0' &&
	    text[5] <= '9')
		return text[5] - '0';
	_cleanup_(record_label_done) struct record_label l;

	record_label_of(text, n, &l);
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

int journal_show_record(const char *text, size_t n, struct record *ret, struct mo_error *err)
{
	int r;

	text = parts_behind(text, &n);
	r = version_of(text, n) == 1 ? read_v1(text, n, ret, err)
				     : wire_decode(&record_desc, text, n, false, ret, err);
	if (r >= 0 && ret->scan)
		answer_from_wire(ret->scan);
	return r;
}

int journal_read_record(struct journal *j, const char *text, size_t n, struct record *ret,
			struct mo_error *err)
{
	int r = parts_read(&j->parts, &text, &n, err);

	if (r >= 0)
		r = journal_show_record(text, n, ret, err);
	if (r >= 0 && ret->submit)
		r = parts_fill(&j->parts, ret->submit, err);
	return r;
}

int journal_read_job(struct journal *j, const char *text, size_t n, struct job *ret,
		     struct mo_error *err)
{
	int r = parts_read(&j->parts, &text, &n, err);

	if (r >= 0)
		r = wire_decode(&job_desc, text, n, false, ret, err);
	return r < 0 ? r : parts_fill(&j->parts, &ret->spec, err);
}
