/* Completeness of checkpoints. Called by moe-ckpt for every entry of a checkpoint directory. What is checked, in this order:
 *   the entry itself                  no link, no name of an unfinished save, nothing left over from a save that was cut
 *   markers                           there, not empty, whole; what they say of iteration, world, files and sizes is true; what a resume needs is in them
 *   shards (level sizes)              none empty, cut or a link; with marker_last none newer than a marker: a save into an old directory leaves the old marker in place
 *   grid (level sizes)                every combination of numbers, as many as the ranks want
 *   tracker (layouts that have one)   present, a number or an entry's name, not behind the entry: engines read it first, a damaged one makes Megatron end with status 0
 * Wrong "torn" costs some iterations, wrong "complete" costs the run: in doubt it is torn. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/core/ckpt.h"

#include <errno.h>
#include <pcre2.h>
#include <string.h>

#include "lib/base/parse.h"

#define TRACKER_TEXT_MAX 32
#define DIGITS_MAX 18
#define LISTED_MAX 1000000             /* files that markers name */
#define LISTED_NAME_MAX 1024
#define GRID_GROUPS 4
#define GRID_MAX 1000000

const char *const ckpt_level_names[3] = { "marker", "sizes", "crc" };

struct ckpt_rules {
	struct ckpt_layout layout;
	pcre2_code *entry, *unfinished, *shard, *leftover, *listed, *contains, *grid;
	pcre2_match_data *data;
};

void ckpt_files_done(struct ckpt_file *files, size_t n) {
	for (size_t i = 0; i < n; i++) {
		free(files[i].name);
		free(files[i].damage);
	}
	free(files);
}

static int file_order(const void *a, const void *b) {
	return strcmp(((const struct ckpt_file *)a)->name, ((const struct ckpt_file *)b)->name);
}

void ckpt_files_sort(struct ckpt_file *files, size_t n) {
	if (n > 1)
		qsort(files, n, sizeof(*files), file_order);
}

void ckpt_entry_done(struct ckpt_entry *e) {
	for (size_t i = 0; i < e->n_markers; i++) {
		free(e->markers[i].name);
		free(e->markers[i].damage);
		ckpt_files_done(e->markers[i].files, e->markers[i].n_files);
	}
	free(e->markers);
	ckpt_files_done(e->files, e->n_files);
	free(e->name);
	free(e->damage);
	*e = (struct ckpt_entry){ 0 };
}

struct ckpt_rules *ckpt_rules_free(struct ckpt_rules *r) {
	if (!r)
		return NULL;
	mo_desc_done(&ckpt_layout_desc, &r->layout);
	pcre2_code *const codes[] = { r->entry, r->unfinished, r->shard, r->leftover, r->listed, r->contains, r->grid };
	for (size_t i = 0; i < ELEMENTSOF(codes); i++)
		pcre2_code_free(codes[i]);
	pcre2_match_data_free(r->data);
	free(r);
	return NULL;
}

static int compile(const char *pattern, const char *what, pcre2_code **ret, struct mo_error *err) {
	int code;
	PCRE2_SIZE at;

	if (!pattern)
		return 0;
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
	const struct { const char *pattern, *what; pcre2_code **code; } patterns[] = {
		{ layout->entry ? layout->entry : "(?<iteration>\\d+)$", "entry", &r->entry }, { layout->unfinished, "unfinished", &r->unfinished }, { layout->shard, "shard", &r->shard },
		{ layout->leftover, "leftover", &r->leftover }, { layout->listed, "listed", &r->listed }, { layout->contains, "contains", &r->contains }, { layout->grid, "grid", &r->grid },
	};
	for (size_t i = 0; i < ELEMENTSOF(patterns); i++) {
		e = compile(patterns[i].pattern, patterns[i].what, patterns[i].code, err);
		if (e < 0)
			return e;
		if (i < 2 && *patterns[i].code && pcre2_substring_number_from_name(*patterns[i].code, (PCRE2_SPTR)"iteration") < 0)
			return mo_error_set(err, -EINVAL, "checkpoint layout: %s '%s' has no group (?<iteration>...): correct the engine file", patterns[i].what, patterns[i].pattern);
	}
	r->data = pcre2_match_data_create(32, NULL);
	if (!r->data)
		return mo_error_set(err, -ENOMEM, "checkpoint layout: no memory for the pattern matcher");
	*ret = TAKE_PTR(r);
	return 0;
}

static bool found(const struct ckpt_rules *r, const pcre2_code *code, const char *text, size_t n) {
	return code && pcre2_match(code, (PCRE2_SPTR)text, n, 0, 0, r->data, NULL) >= 0;
}

static bool iteration_of(const struct ckpt_rules *r, const pcre2_code *code, const char *name, int64_t *ret) {
	PCRE2_UCHAR text[DIGITS_MAX + 1];
	PCRE2_SIZE n = sizeof(text);

	return found(r, code, name, strlen(name)) && pcre2_substring_copy_byname(r->data, (PCRE2_SPTR)"iteration", text, &n) >= 0
		&& mo_parse_i64((const char *)text, 0, INT64_MAX, ret) == 0;
}

bool ckpt_is_entry(const struct ckpt_rules *r, const char *name, int64_t *ret_iteration, bool *ret_unfinished) {
	*ret_unfinished = iteration_of(r, r->unfinished, name, ret_iteration);
	return *ret_unfinished || iteration_of(r, r->entry, name, ret_iteration);
}

bool ckpt_reads_markers(const struct ckpt_rules *r) {
	return r->listed || r->contains;
}

void ckpt_marker_content(const struct ckpt_rules *r, const char *text, size_t n, struct ckpt_marker *m) {
	const char *slash = strrchr(m->name, '/');
	size_t below = slash ? (size_t)(slash - m->name) + 1 : 0;

	m->contains = found(r, r->contains, text, n);
	for (size_t at = 0; r->listed && m->n_files < LISTED_MAX && pcre2_match(r->listed, (PCRE2_SPTR)text, n, at, PCRE2_NOTEMPTY, r->data, NULL) >= 0; ) {
		const PCRE2_SIZE *v = pcre2_get_ovector_pointer(r->data);
		at = v[1];
		m->lists_files = true;
		if (v[1] <= v[0] || v[1] - v[0] > LISTED_NAME_MAX)
			break;
		_cleanup_(mo_freep) char *name = mo_strndup(text + v[0], v[1] - v[0]);
		struct ckpt_file *f = MO_GROW(m->files, m->n_files);
		*f = (struct ckpt_file){ .name = mo_printf("%.*s%s", (int)below, m->name, name), .bytes = MO_NONE };
	}
}

enum ckpt_tracker ckpt_tracker_parse(const struct ckpt_rules *r, const char *text, size_t n, int64_t *ret) {
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
	if (strlen(word) != n - begin)
		return TRACKER_DAMAGED;
	bool says = r->layout.tracker_names_entry ? iteration_of(r, r->entry, word, ret) : mo_parse_i64(word, 0, INT64_MAX - 1, ret) == 0;
	return says ? TRACKER_SAYS : TRACKER_DAMAGED;
}

char *ckpt_judge_tracker(const struct ckpt_rules *r, const struct ckpt_entry *e, const struct ckpt_question *q) {
	switch (q->tracker) {
	case TRACKER_NONE: return NULL;
	case TRACKER_MISSING: return mo_printf("the tracker file %s is missing: write the iteration into it", r->layout.tracker);
	case TRACKER_DAMAGED: return mo_printf("the tracker file %s is damaged, and the engine reads it first: write the iteration into it", r->layout.tracker);
	case TRACKER_SAYS: break;
	}
	return q->tracker_says >= e->iteration ? NULL : mo_printf("the tracker file %s says %lld: this save was not finished", r->layout.tracker, (long long)q->tracker_says);
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
		if ((*have)->damage)
			return mo_printf("%s: %s", want->name, (*have)->damage);
		if (want->bytes != MO_NONE && (*have)->bytes != want->bytes)
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

static bool is_archive(const char *name) {
	size_t n = strlen(name);

	return n > 3 && strcmp(name + n - 3, ".pt") == 0;
}

static char *judge_shards(const struct ckpt_rules *r, const struct ckpt_entry *e) {
	/* Without a pattern any file is one; but not where only the user's own program knows what its empty files mean. */
	bool own = !r->shard && r->layout.announced_is_complete;
	size_t n = 0;
	const struct ckpt_marker *oldest = NULL;

	for (size_t i = 0; i < e->n_markers; i++)
		if (e->markers[i].present && (!oldest || e->markers[i].mtime_ns < oldest->mtime_ns))
			oldest = &e->markers[i];
	for (size_t i = 0; i < e->n_files; i++) {
		const struct ckpt_file *f = &e->files[i];
		if (is_marker(e, f->name))
			continue;
		if (r->shard && !found(r, r->shard, f->name, strlen(f->name))) {
			/* What lies beside the shards, such as common.pt, is loaded too. */
			if (is_archive(f->name) && (f->damage || f->bytes <= 0))
				return mo_printf("%s: %s", f->name, f->damage ? f->damage : "it is empty");
			continue;
		}
		n++;
		if (f->damage)
			return mo_printf("%s: %s", f->name, f->damage);
		if (f->bytes <= 0 && !own)
			return mo_printf("%s is empty", f->name);
		if (r->layout.marker_last && oldest && f->mtime_ns > oldest->mtime_ns)
			return mo_printf("%s is newer than %s: a later save into this directory was not finished", f->name, oldest->name);
	}
	return n || !r->shard ? NULL : mo_strdup("it holds no shard");
}

static char *judge_leftovers(const struct ckpt_rules *r, const struct ckpt_entry *e) {
	for (size_t i = 0; r->leftover && i < e->n_files; i++)
		if (found(r, r->leftover, e->files[i].name, strlen(e->files[i].name)))
			return mo_printf("%s is left over: the save was not finished", e->files[i].name);
	return NULL;
}

/* The numbers of the grid's groups in this name; false = it is none of its files. */
static bool grid_cell(const struct ckpt_rules *r, const char *name, int64_t cell[GRID_GROUPS]) {
	int n = pcre2_match(r->grid, (PCRE2_SPTR)name, strlen(name), 0, 0, r->data, NULL);

	for (int g = 0; g < GRID_GROUPS; g++) {
		PCRE2_UCHAR text[8];
		PCRE2_SIZE size = sizeof(text);
		cell[g] = 0;
		if (g + 1 < n && pcre2_substring_copy_bynumber(r->data, (uint32_t)g + 1, text, &size) == 0 && size > 0 && mo_parse_i64((const char *)text, 0, GRID_MAX - 1, &cell[g]) < 0)
			return false;
	}
	return n > 0;
}

/* With markers and a grid an engine has two formats: where there are files of the grid they stand for the markers. */
static bool has_cells(const struct ckpt_rules *r, const struct ckpt_entry *e) {
	int64_t cell[GRID_GROUPS];

	for (size_t i = 0; r->grid && i < e->n_files; i++)
		if (grid_cell(r, e->files[i].name, cell))
			return true;
	return false;
}

static char *missing_cell(const int64_t size[GRID_GROUPS], size_t at) {
	int64_t cell[GRID_GROUPS];
	char *text = NULL;

	for (int g = GRID_GROUPS - 1; g >= 0; g--) {
		cell[g] = (int64_t)at % size[g];
		at /= (size_t)size[g];
	}
	for (int g = 0; g < GRID_GROUPS; g++)
		if (size[g] > 1 || g == 0) {
			char *longer = mo_printf("%s%s%lld", text ? text : "", text ? ", " : "", (long long)cell[g]);
			free(text);
			text = longer;
		}
	return text;
}

/* Cells are numbers of files that one rank or one group of ranks writes: TP x PP x EP directories, a file of optimizer states per rank. */
static char *judge_grid(const struct ckpt_rules *r, const struct ckpt_entry *e, int64_t world) {
	int64_t size[GRID_GROUPS] = { 0 }, cell[GRID_GROUPS], cells = 1;

	for (size_t i = 0; i < e->n_files; i++)
		for (int g = 0; grid_cell(r, e->files[i].name, cell) && g < GRID_GROUPS; g++)
			size[g] = MO_MAX(size[g], cell[g] + 1);
	for (int g = 0; g < GRID_GROUPS; g++)
		cells = cells > GRID_MAX ? cells : cells * size[g];
	if (cells == 0)
		return mo_strdup("it holds none of the files that the ranks write");
	if (cells > GRID_MAX)
		return mo_strdup("the numbers in its files' names make no sense");
	_cleanup_(mo_freep) bool *seen = mo_alloc_array((size_t)cells, sizeof(*seen));
	for (size_t i = 0; i < e->n_files; i++)
		if (grid_cell(r, e->files[i].name, cell))
			seen[((cell[0] * size[1] + cell[1]) * size[2] + cell[2]) * size[3] + cell[3]] = true;
	for (int64_t i = 0; i < cells; i++)
		if (!seen[i]) {
			_cleanup_(mo_freep) char *which = missing_cell(size, (size_t)i);
			return mo_printf("the file of %s is missing: there are others up to %lld", which, (long long)cells);
		}
	if (world == MO_NONE || (r->layout.grid_is_world ? world == cells : world % cells == 0))
		return NULL;
	return r->layout.grid_is_world ? mo_printf("%lld ranks wrote it, the job has %lld", (long long)cells, (long long)world)
		: mo_printf("it has %lld parts, which %lld ranks are no multiple of: parts are missing, or others wrote it", (long long)cells, (long long)world);
}

static char *judge_markers(const struct ckpt_rules *r, const struct ckpt_entry *e, const struct ckpt_question *q) {
	bool excused = q->announced && r->layout.announced_is_complete, contains = false;
	char *reason = NULL;

	for (size_t i = 0; i < e->n_markers && !reason; i++) {
		if (!e->markers[i].present && excused)
			continue;
		reason = judge_marker(e, &e->markers[i], q->level, q->world);
		contains |= e->markers[i].contains;
	}
	if (!reason && r->contains && !contains)
		reason = mo_strdup("it holds the model only, without the optimizer's state: it cannot be resumed");
	return reason;
}

char *ckpt_judge(const struct ckpt_rules *r, const struct ckpt_entry *e, const struct ckpt_question *q) {
	char *reason;
	bool cells = has_cells(r, e);

	if (e->damage)
		return mo_strdup(e->damage);
	if (!e->directory)
		return r->layout.n_markers ? mo_printf("%s is missing: it is a single file", r->layout.markers[0]) : mo_strdup("it is a single file");
	if (e->too_many)
		return mo_printf("it holds more than %zu files", e->n_files);
	reason = judge_leftovers(r, e);
	if (!reason && !(cells && e->n_markers))
		reason = judge_markers(r, e, q);
	if (!reason && q->level >= LEVEL_SIZES)
		reason = judge_shards(r, e);
	if (!reason && r->grid && q->level >= LEVEL_SIZES && (cells || !e->n_markers))
		reason = judge_grid(r, e, q->world);
	return reason ? reason : ckpt_judge_tracker(r, e, q);
}
