/* See record_label.h. */
#include "daemon/record_label.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/base/util.h"
#include "lib/wire/decode.h"

static const struct mo_field label_parts_fields[] = {
	MO_D(label_parts, parts, MO_INT, "number of the parts that it refers to"),
};
static const struct mo_desc label_parts_desc = MO_DESC(label_parts, label_parts_fields);
static const struct mo_field label_fields[] = {
	MO_DN(record_label, version, "v", MO_INT, "version of the record's format"),
	MO_D(record_label, type, MO_STR, "what the record tells"),
	MO_D(record_label, job, MO_INT, "number of the job; null: it is of none"),
	MO_D(record_label, id, MO_INT, "number of the job that a snapshot has here"),
	MO_D_SUB(record_label, submit, MO_OPT, &label_parts_desc, "what a submit refers to"),
	MO_D_SUB(record_label, spec, MO_OPT, &label_parts_desc,
		 "what a job of a snapshot refers to"),
};
static const struct mo_desc record_label_desc = MO_DESC(record_label, label_fields);

void record_label_init(struct record_label *l)
{
	mo_desc_init(&record_label_desc, l);
}

void record_label_done(struct record_label *l)
{
	mo_desc_done(&record_label_desc, l);
}

/* The characters of `of` behind mark, NULL = none. Caller frees. */
static char *word_behind(const char *text, const char *mark, const char *of)
{
	const char *at = strstr(text, mark);
	size_t n = at ? strspn(at + strlen(mark), of) : 0;

	return n ? mo_strndup(at + strlen(mark), n) : NULL;
}

void record_label_of(const char *text, size_t n, struct record_label *ret)
{
	mo_desc_init(&record_label_desc, ret);
	if (wire_decode(&record_label_desc, text, n, false, ret, NULL) >= 0)
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

int64_t record_label_parts(const struct record_label *l)
{
	return l->submit ? l->submit->parts : l->spec ? l->spec->parts : MO_NONE;
}
