/* Completeness of checkpoints. Called by moe-ckpt for every entry of a checkpoint directory. What is checked, in this order:
 *   markers                           there, not empty, whole; what a JSON marker says of iteration, world and file sizes is true
 *   shards (level sizes)              none empty; with marker_last none newer than a marker: a save into an old directory leaves the old marker in place
 *   tracker (layouts that have one)   present, a number, not behind the entry: engines read it first, a damaged one makes Megatron end with status 0
 * Wrong "torn" costs some iterations, wrong "complete" costs the run: in doubt it is torn. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/core/ckpt.h"

#include <errno.h>
#include <pcre2.h>
#include <string.h>

#include "lib/base/parse.h"

#define TRACKER_TEXT_MAX 32
#define DIGITS_MAX 18

struct ckpt_rules {
	struct ckpt_layout layout;
	pcre2_code *entry, *shard;
	pcre2_match_data *data;
};

static void files_done(struct ckpt_file *files, size_t n) {
	for (size_t i = 0; i < n; i++)
		free(files[i].name);
	free(files);
}

void ckpt_entry_done(struct ckpt_entry *e) {
	for (size_t i = 0; i < e->n_markers; i++) {
		free(e->markers[i].name);
		free(e->markers[i].damage);
		files_done(e->markers[i].files, e->markers[i].n_files);
	}
	free(e->markers);
	files_done(e->files, e->n_files);
	free(e->name);
	*e = (struct ckpt_entry){ 0 };
}

struct ckpt_rules *ckpt_rules_free(struct ckpt_rules *r) {
	if (!r)
		return NULL;
	mo_desc_done(&ckpt_layout_desc, &r->layout);
	pcre2_code_free(r->entry);
	pcre2_code_free(r->shard);
	pcre2_match_data_free(r->data);
	free(r);
	return NULL;
}

static int compile(const char *pattern, const char *what, pcre2_code **ret, struct mo_error *err) {
	int code;
	PCRE2_SIZE at;

	*ret = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &code, &at, NULL);
	if (*ret)
		return 0;
	PCRE2_UCHAR text[128];
	pcre2_get_error_message(code, text, sizeof(text));
	return mo_error_set(err, -EINVAL, "checkpoint layout: %s '%s': %s at character %zu: correct the engine file", what, pattern, (const char *)text, (size_t)at + 1);
}

int ckpt_rules_new(const struct ckpt_layout *layout, struct ckpt_rules **ret, struct mo_error *err) {
	_cleanup_(ckpt_rules_freep) struct ckpt_rules *r = mo_alloc(sizeof(*r));
	int e;

	mo_desc_init(&ckpt_layout_desc, &r->layout);
	mo_desc_copy(&ckpt_layout_desc, &r->layout, layout);
	e = compile(layout->entry ? layout->entry : "(?<iteration>\\d+)$", "entry", &r->entry, err);
	if (e == 0 && layout->shard)
		e = compile(layout->shard, "shard", &r->shard, err);
	if (e < 0)
		return e;
	if (pcre2_substring_number_from_name(r->entry, (PCRE2_SPTR)"iteration") < 0)
		return mo_error_set(err, -EINVAL, "checkpoint layout: entry '%s' has no group (?<iteration>...): correct the engine file", layout->entry);
	r->data = pcre2_match_data_create(32, NULL);
	if (!r->data)
		return mo_error_set(err, -ENOMEM, "checkpoint layout: no memory for the pattern matcher");
	*ret = TAKE_PTR(r);
	return 0;
}

bool ckpt_is_entry(const struct ckpt_rules *r, const char *name, int64_t *ret_iteration) {
	PCRE2_UCHAR text[DIGITS_MAX + 1];
	PCRE2_SIZE n = sizeof(text);

	if (pcre2_match(r->entry, (PCRE2_SPTR)name, strlen(name), 0, 0, r->data, NULL) < 0)
		return false;
	if (pcre2_substring_copy_byname(r->data, (PCRE2_SPTR)"iteration", text, &n) < 0)
		return false;
	return mo_parse_i64((const char *)text, 0, INT64_MAX, ret_iteration) == 0;
}

enum ckpt_tracker ckpt_tracker_parse(const char *text, size_t n, int64_t *ret) {
	char word[TRACKER_TEXT_MAX];
	size_t begin = 0;

	while (begin < n && strchr(" \t\n", text[begin]) && text[begin])
		begin++;
	while (n > begin && strchr(" \t\n", text[n - 1]) && text[n - 1])
		n--;
	if (n == begin || n - begin >= sizeof(word))
		return TRACKER_DAMAGED;
	memcpy(word, text + begin, n - begin);
	word[n - begin] = 0;
	if (mo_streq(word, "release")) {
		*ret = INT64_MAX;
		return TRACKER_SAYS;
	}
	return strlen(word) == n - begin && mo_parse_i64(word, 0, INT64_MAX - 1, ret) == 0 ? TRACKER_SAYS : TRACKER_DAMAGED;
}

static char *judge_tracker(const struct ckpt_rules *r, const struct ckpt_entry *e, enum ckpt_tracker tracker, int64_t says) {
	switch (tracker) {
	case TRACKER_NONE: return NULL;
	case TRACKER_MISSING: return mo_printf("the tracker file %s is missing: write the iteration into it", r->layout.tracker);
	case TRACKER_DAMAGED: return mo_printf("the tracker file %s is damaged, and the engine reads it first: write the iteration into it", r->layout.tracker);
	case TRACKER_SAYS: break;
	}
	return says >= e->iteration ? NULL : mo_printf("the tracker file %s says %lld: this save was not finished", r->layout.tracker, (long long)says);
}

/* A JSON marker may list thousands of files of a directory of thousands: compared in sorted order. */
static int by_name(const void *a, const void *b) {
	return strcmp((*(const struct ckpt_file *const *)a)->name, (*(const struct ckpt_file *const *)b)->name);
}

static char *judge_listed(const struct ckpt_entry *e, const struct ckpt_marker *m) {
	_cleanup_(mo_freep) const struct ckpt_file **sorted = mo_alloc_array(e->n_files + 1, sizeof(*sorted));

	for (size_t i = 0; i < e->n_files; i++)
		sorted[i] = &e->files[i];
	qsort(sorted, e->n_files, sizeof(*sorted), by_name);
	for (size_t i = 0; i < m->n_files; i++) {
		const struct ckpt_file *want = &m->files[i];
		const struct ckpt_file **have = bsearch(&want, sorted, e->n_files, sizeof(*sorted), by_name);
		if (!have)
			return mo_printf("%s, which %s lists, is missing", want->name, m->name);
		if ((*have)->bytes != want->bytes)
			return mo_printf("%s has %lld bytes of %lld", want->name, (long long)(*have)->bytes, (long long)want->bytes);
	}
	return NULL;
}

static char *judge_marker(const struct ckpt_entry *e, const struct ckpt_marker *m, enum ckpt_level level, int64_t world) {
	if (!m->present)
		return mo_printf("%s is missing", m->name);
	if (m->bytes <= 0)
		return mo_printf("%s is empty", m->name);
	if (m->damage)
		return mo_printf("%s: %s", m->name, m->damage);
	if (m->iteration != MO_NONE && m->iteration != e->iteration)
		return mo_printf("%s speaks of iteration %lld", m->name, (long long)m->iteration);
	if (m->world != MO_NONE && world != MO_NONE && m->world != world)
		return mo_printf("%lld ranks wrote it, the job has %lld", (long long)m->world, (long long)world);
	if (m->lists_files && m->world != MO_NONE && (int64_t)m->n_files < m->world)
		return mo_printf("%s lists %zu files of %lld ranks", m->name, m->n_files, (long long)m->world);
	return m->lists_files && level >= LEVEL_SIZES ? judge_listed(e, m) : NULL;
}

static bool is_marker(const struct ckpt_entry *e, const char *name) {
	for (size_t i = 0; i < e->n_markers; i++)
		if (mo_streq(e->markers[i].name, name))
			return true;
	return false;
}

static bool is_shard(const struct ckpt_rules *r, const struct ckpt_file *f) {
	return pcre2_match(r->shard, (PCRE2_SPTR)f->name, strlen(f->name), 0, 0, r->data, NULL) >= 0;
}

static char *judge_shards(const struct ckpt_rules *r, const struct ckpt_entry *e) {
	size_t n = 0;
	const struct ckpt_marker *oldest = NULL;

	/* Without a pattern any file is one; but not where only the user's own program knows what its empty files mean. */
	if (!r->shard && r->layout.announced_is_complete)
		return NULL;
	for (size_t i = 0; i < e->n_markers; i++)
		if (!oldest || e->markers[i].mtime_ns < oldest->mtime_ns)
			oldest = &e->markers[i];
	for (size_t i = 0; i < e->n_files; i++) {
		const struct ckpt_file *f = &e->files[i];
		if (is_marker(e, f->name) || (r->shard && !is_shard(r, f)))
			continue;
		n++;
		if (f->bytes <= 0)
			return mo_printf("%s is empty", f->name);
		if (r->layout.marker_last && oldest && f->mtime_ns > oldest->mtime_ns)
			return mo_printf("%s is newer than %s: a later save into this directory was not finished", f->name, oldest->name);
	}
	return n || !r->shard ? NULL : mo_strdup("it holds no shard");
}

char *ckpt_judge(const struct ckpt_rules *r, const struct ckpt_entry *e, enum ckpt_level level, int64_t world, enum ckpt_tracker tracker, int64_t tracker_says) {
	char *reason = NULL;

	if (!e->directory)
		return r->layout.n_markers ? mo_printf("%s is missing: it is a single file", r->layout.markers[0]) : mo_strdup("it is a single file");
	for (size_t i = 0; i < e->n_markers && !reason; i++)
		reason = judge_marker(e, &e->markers[i], level, world);
	if (!reason && level >= LEVEL_SIZES)
		reason = judge_shards(r, e);
	return reason ? reason : judge_tracker(r, e, tracker, tracker_says);
}
