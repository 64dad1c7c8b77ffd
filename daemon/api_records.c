/* GET /v1/jobs/{id}/records: the records of one job as the store keeps them, for who has to know
 * what moed wrote down and when (`moectl debug records`). Read from the database a piece at a
 * time: one answer reads RECORDS_READ_MAX records at most, whoever they belong to, and says
 * where to go on. What was before the newest snapshot is in the state alone. */
#include "daemon/api_records.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/api.h"
#include "daemon/journal.h"
#include "daemon/visible.h"
#include "lib/model/mask.h"
#include "lib/store/store.h"
#include "lib/wire/encode.h"

/* Of one answer, a few ms: records and bytes that are read, bytes of those that are shown
 * beside each other. One that is larger is shown alone, or named. */
#define RECORDS_READ_MAX 1000
#define RECORD_BYTES_MAX (4 << 20)
#define SHOWN_BYTES (256 << 10)

struct record_line {
	int64_t seq, time;
	char *record, *unreadable;
};
static const struct mo_field record_line_fields[] = {
	MO_D(record_line, seq, MO_INT, "its number in the log"),
	MO_D(record_line, time, MO_TIME, "when it was written"),
	MO_D(record_line, record, MO_RAWJSON,
	     "version 2, whatever it was written as; credentials are ***, of a submit only what "
	     "is its own is there"),
	MO_D(record_line, unreadable, MO_STR, "why there is no `record`", .omit = true),
};
const struct mo_desc record_line_desc = MO_DESC(record_line, record_line_fields);

struct records_view {
	int64_t first;
};
static const struct mo_field records_view_fields[] = {
	MO_D(records_view, first, MO_INT,
	     "number of the first record in the log; what came before is in the snapshot, as a "
	     "state"),
};
const struct mo_desc records_view_desc = MO_DESC(records_view, records_view_fields);

static void mask_texts(const struct mo_desc *d, void *obj);

static void mask_field(const struct mo_field *f, void *obj)
{
	void *at = (char *)obj + f->offset;
	size_t n = f->count_offset ? *(size_t *)(void *)((char *)obj + f->count_offset) : 0;
	char **text = at, *masked;

	switch (f->kind) {
	case MO_STR:
		masked = *text ? mo_mask_text(*text) : NULL;
		free(*text);
		*text = masked;
		break;
	case MO_STRS: mo_mask_words(*(char ***)at, n); break;
	case MO_STRUCT: mask_texts(f->sub, at); break;
	case MO_OPT:
		if (*(void **)at)
			mask_texts(f->sub, *(void **)at);
		break;
	case MO_VEC:
		for (size_t i = 0; i < n; i++)
			mask_texts(f->sub, mo_vec_element(f, obj, i));
		break;
	case MO_RAWJSON:
	case MO_BOOL:
	case MO_TRI:
	case MO_INT:
	case MO_ID:
	case MO_TIME:
	case MO_REAL:
	case MO_ENUM:
	case MO_INTS:
	case MO_REALS: break;
	}
}

/* The text member of that name, NULL = it has none. */
static char **text_of(const struct mo_desc *d, void *obj, const char *name)
{
	for (size_t i = 0; i < d->n_fields; i++)
		if (d->fields[i].kind == MO_STR && mo_streq(d->fields[i].name, name))
			return (char **)(void *)((char *)obj + d->fields[i].offset);
	return NULL;
}

/* Every text in it; a `value` by the `name` or `key` beside it, whatever struct that is. */
static void mask_texts(const struct mo_desc *d, void *obj)
{
	char **value = text_of(d, obj, "value"), **name = text_of(d, obj, "name");

	name = name ? name : text_of(d, obj, "key");
	for (size_t i = 0; i < d->n_fields; i++)
		mask_field(&d->fields[i], obj);
	if (value && *value && name && *name && mo_mask_variable(*name))
		mo_str_set(value, MO_MASKED);
}

/* A text of many lines says more than its names do. */
static void leave_out(char **text, const char *where)
{
	size_t n = *text ? strlen(*text) : 0;

	if (!n)
		return;
	free(*text);
	*text = mo_printf("%zu bytes: %s", n, where);
}

/* As it is shown; changes r. Caller frees. */
static char *shown(struct record *r)
{
	struct mo_buf b = { 0 };

	if (r->submit)
		leave_out(&r->submit->recipe_text, "`moectl explain config` tells what it says");
	mask_texts(&record_desc, r);
	wire_encode(&record_desc, r, &b);
	return mo_buf_take(&b);
}

struct record_search {
	struct list list;
	int64_t job, at; /* at: number of the last one that was read */
	size_t n, bytes, shown;
	bool full;
	char mark[40];
};

/* As records begin: most are others' and are not read. */
static bool may_be_of(const struct record_search *l, const char *text, size_t n)
{
	const char *at = memmem(text, n, l->mark, strlen(l->mark));
	const char *end = at ? at + strlen(l->mark) : NULL;

	return at && end < text + n && (*end == ',' || *end == '}');
}

MO_DEFINE_DONE(record)
MO_DEFINE_DONE(record_line)

static int on_record(void *arg, int64_t seq, const char *text, size_t n)
{
	struct record_search *l = arg;
	_cleanup_(record_done) struct record r;
	_cleanup_(record_line_done) struct record_line line;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	mo_desc_init(&record_desc, &r);
	mo_desc_init(&record_line_desc, &line);
	bool mine = may_be_of(l, text, n);
	if (mine && (!list_room(&l->list) || (l->shown && l->shown + n > SHOWN_BYTES))) {
		l->full = true;
		return 1;
	}
	l->at = seq;
	l->bytes += n;
	l->full = ++l->n >= RECORDS_READ_MAX || l->bytes >= RECORD_BYTES_MAX;
	if (!mine)
		return l->full;
	l->shown += n;
	int e = n > RECORD_BYTES_MAX
			? mo_error_set(&err, -EFBIG, "%zu bytes: more than is shown", n)
			: journal_show_record(text, n, &r, &err);
	if (e >= 0 && r.job != l->job)
		return l->full;
	line.seq = seq;
	if (e < 0)
		line.unreadable = mo_strdup(mo_error_text(&err, e));
	else
		line.record = shown(&r);
	line.time = r.time;
	list_add_numbered(&l->list, &record_line_desc, &line, seq);
	return l->full;
}

void api_job_records(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = api_job(m, r);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const struct records_view view = { store_first(m->store) };
	struct record_search l = { 0 };
	int64_t after;

	if (!j || !visible_to(m, r, j, "records") ||
	    !api_int(r, "after", 0, INT64_MAX - 1, 0, &after) || !list_start(r, &l.list))
		return;
	l.job = j->id;
	l.at = MO_MAX(after, view.first - 1);
	snprintf(l.mark, sizeof(l.mark), "\"job\":%lld", (long long)j->id);
	int e = store_read_raw(m->store, l.at + 1, on_record, &l, &err);
	if (e < 0) {
		http_problem(r, 500, "%s", mo_error_text(&err, e));
	} else {
		l.list.more = l.full && l.at < store_seq(m->store);
		mo_buf_reset(&l.list.next);
		mo_buf_printf(&l.list.next, "%lld", (long long)l.at);
		list_send_with(r, &l.list, &records_view_desc, &view);
	}
	list_done(&l.list);
}
