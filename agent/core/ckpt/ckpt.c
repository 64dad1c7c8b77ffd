/* Layouts of checkpoints as compiled rules, and what a name, a tracker or a marker's content
 * says by them. The judgement is in ckpt_judge.c. */
#include "agent/core/ckpt/ckpt_inner.h"

#include <errno.h>
#include <string.h>

#include "agent/core/ckpt/archive.h"
#include "agent/core/ckpt/pickle.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"

#define TRACKER_TEXT_MAX 32
#define DIGITS_MAX 18
#define LISTED_MAX 1000000 /* files that markers name */
#define LISTED_NAME_MAX 1024
#define SLOTS 4096
#define PARTS_MAX (1 << 20)

const char *const ckpt_level_names[3] = { "marker", "sizes", "crc" };

void ckpt_files_done(struct ckpt_file *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(files[i].name);
		free(files[i].damage);
	}
	free(files);
}

static int file_order(const void *a, const void *b)
{
	return strcmp(((const struct ckpt_file *)a)->name, ((const struct ckpt_file *)b)->name);
}

void ckpt_files_sort(struct ckpt_file *files, size_t n)
{
	if (n > 1)
		qsort(files, n, sizeof(*files), file_order);
}

void ckpt_entry_done(struct ckpt_entry *e)
{
	for (size_t i = 0; i < e->n_markers; i++) {
		free(e->markers[i].name);
		free(e->markers[i].damage);
		ckpt_files_done(e->markers[i].files, e->markers[i].n_files);
	}
	free(e->markers);
	ckpt_files_done(e->files, e->n_files);
	free(e->name);
	free(e->damage);
	free(e->fixed);
	*e = (struct ckpt_entry){ 0 };
}

static void free_codes(pcre2_code *const *codes, size_t n)
{
	for (size_t i = 0; codes && i < n; i++)
		pcre2_code_free(codes[i]);
}

struct ckpt_rules *ckpt_rules_free(struct ckpt_rules *r)
{
	if (!r)
		return NULL;
	pcre2_code *const codes[] = { r->entry,  r->unfinished, r->shard,      r->leftover,
				      r->listed, r->contains,   r->by_tracker, r->beside };
	free_codes(codes, ELEMENTSOF(codes));
	free_codes(r->grids, CKPT_GRIDS_MAX);
	free_codes(r->told_by, CKPT_GRIDS_MAX);
	free_codes(r->each, CKPT_NEEDS_MAX);
	free_codes(r->unless, CKPT_NEEDS_MAX);
	free_codes(r->unless_said, CKPT_NEEDS_MAX);
	free_codes(r->formats, r->layout.n_formats);
	free(r->formats);
	free_codes(r->iterations, r->layout.n_iterations);
	free(r->iterations);
	mo_desc_done(&ckpt_layout_desc, &r->layout);
	pcre2_match_data_free(r->data);
	free(r);
	return NULL;
}

static int compile(const char *pattern, const char *what, pcre2_code **ret, struct mo_error *err)
{
	int code;
	PCRE2_SIZE at;

	if (!pattern)
		return 0;
	*ret = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &code, &at, NULL);
	if (*ret)
		return 0;
	PCRE2_UCHAR text[128];
	pcre2_get_error_message(code, text, sizeof(text));
	return mo_error_set(err, -EINVAL,
			    "checkpoint layout: %s '%s': %s at character %zu: correct the engine "
			    "file",
			    what, pattern, (const char *)text, (size_t)at + 1);
}

static int compile_lists(const struct ckpt_layout *l, struct ckpt_rules *r, struct mo_error *err)
{
	int e = 0;

	if (l->n_grids > CKPT_GRIDS_MAX || l->n_needs > CKPT_NEEDS_MAX)
		return mo_error_set(err, -EINVAL,
				    "checkpoint layout: more than %d grids or %d needs: correct "
				    "the engine file",
				    CKPT_GRIDS_MAX, CKPT_NEEDS_MAX);
	r->formats = mo_alloc_array(l->n_formats + 1, sizeof(*r->formats));
	r->iterations = mo_alloc_array(l->n_iterations + 1, sizeof(*r->iterations));
	for (size_t i = 0; i < l->n_grids; i++)
		if (l->grids[i].n_variants > CKPT_VARIANTS_MAX)
			return mo_error_set(err, -EINVAL,
					    "checkpoint layout: more than %d variants: correct the "
					    "engine file",
					    CKPT_VARIANTS_MAX);
	for (size_t i = 0; i < l->n_grids; i++)
		if (l->grids[i].tied &&
		    (l->grids[i].n_says < 2 || l->grids[i].n_says > CKPT_NUMBERS_MAX))
			return mo_error_set(err, -EINVAL,
					    "checkpoint layout: grids: tied wants two to %d "
					    "numbers of says: correct the engine file",
					    CKPT_NUMBERS_MAX);
	for (size_t i = 0; i < l->n_grids && e == 0; i++)
		e = compile(l->grids[i].files ? l->grids[i].files : "^$", "grids", &r->grids[i],
			    err);
	for (size_t i = 0; i < l->n_grids && e == 0; i++)
		e = compile(l->grids[i].told_by, "grids", &r->told_by[i], err);
	for (size_t i = 0; i < l->n_formats && e == 0; i++)
		e = compile(l->formats[i].key, "formats", &r->formats[i], err);
	for (size_t i = 0; i < l->n_iterations && e == 0; i++)
		e = compile(l->iterations[i].key, "iterations", &r->iterations[i], err);
	for (size_t i = 0; i < l->n_needs && e == 0; i++) {
		const struct ckpt_need *need = &l->needs[i];
		e = compile(need->each, "needs", &r->each[i], err);
		e = e ? e : compile(need->unless, "needs", &r->unless[i], err);
		e = e ? e : compile(need->unless_said, "needs", &r->unless_said[i], err);
	}
	return e;
}

int ckpt_rules_new(const struct ckpt_layout *layout, struct ckpt_rules **ret, struct mo_error *err)
{
	_cleanup_(ckpt_rules_freep) struct ckpt_rules *r = mo_alloc(sizeof(*r));
	int e;

	mo_desc_init(&ckpt_layout_desc, &r->layout);
	mo_desc_copy(&ckpt_layout_desc, &r->layout, layout);
	const struct {
		const char *pattern, *what;
		pcre2_code **code;
	} patterns[] = {
		{ layout->entry ? layout->entry : "(?<iteration>\\d+)$", "entry", &r->entry },
		{ layout->unfinished, "unfinished", &r->unfinished },
		{ layout->shard, "shard", &r->shard },
		{ layout->leftover, "leftover", &r->leftover },
		{ layout->listed, "listed", &r->listed },
		{ layout->contains, "contains", &r->contains },
		{ layout->by_tracker, "by_tracker", &r->by_tracker },
		{ layout->beside, "beside", &r->beside },
	};
	for (size_t i = 0; i < ELEMENTSOF(patterns); i++) {
		e = compile(patterns[i].pattern, patterns[i].what, patterns[i].code, err);
		if (e < 0)
			return e;
		if (i < 2 && !layout->unnumbered && *patterns[i].code &&
		    pcre2_substring_number_from_name(*patterns[i].code, (PCRE2_SPTR) "iteration") <
			    0)
			return mo_error_set(err, -EINVAL,
					    "checkpoint layout: %s '%s' has no group "
					    "(?<iteration>...): correct the engine file",
					    patterns[i].what, patterns[i].pattern);
	}
	e = compile_lists(&r->layout, r, err);
	if (e < 0)
		return e;
	r->data = pcre2_match_data_create(32, NULL);
	if (!r->data)
		return mo_error_set(err, -ENOMEM,
				    "checkpoint layout: no memory for the pattern matcher");
	*ret = TAKE_PTR(r);
	return 0;
}

bool ckpt_found(const struct ckpt_rules *r, const pcre2_code *code, const char *text, size_t n)
{
	return code && pcre2_match(code, (PCRE2_SPTR)text, n, 0, 0, r->data, NULL) >= 0;
}

static bool iteration_of(const struct ckpt_rules *r, const pcre2_code *code, const char *name,
			 int64_t *ret)
{
	PCRE2_UCHAR text[DIGITS_MAX + 1];
	PCRE2_SIZE n = sizeof(text);

	return ckpt_found(r, code, name, strlen(name)) &&
	       pcre2_substring_copy_byname(r->data, (PCRE2_SPTR) "iteration", text, &n) >= 0 &&
	       mo_parse_i64((const char *)text, 0, INT64_MAX, ret) == 0;
}

bool ckpt_is_entry(const struct ckpt_rules *r, const char *name, int64_t *ret_iteration,
		   bool *ret_unfinished)
{
	*ret_unfinished = iteration_of(r, r->unfinished, name, ret_iteration);
	if (r->layout.unnumbered) {
		*ret_iteration = 0;
		return ckpt_found(r, r->entry, name, strlen(name));
	}
	return *ret_unfinished || iteration_of(r, r->entry, name, ret_iteration);
}

bool ckpt_is_beside(const struct ckpt_rules *r, const char *name)
{
	return ckpt_found(r, r->beside, name, strlen(name));
}

bool ckpt_is_part(const struct ckpt_rules *r, const char *name, bool in_entry)
{
	for (size_t i = 0; i < r->layout.n_grids; i++)
		if (ckpt_found(r, r->grids[i], name, strlen(name)))
			return true;
	return in_entry && ckpt_found(r, r->shard, name, strlen(name));
}

bool ckpt_looks_like_state(const struct ckpt_layout *layout, const char *name, int64_t bytes)
{
	size_t n = strlen(name);

	for (size_t i = 0; layout->state_bytes != MO_NONE && bytes >= layout->state_bytes &&
			   i < layout->n_state_names;
	     i++) {
		size_t k = strlen(layout->state_names[i]);

		if (n > k && strcasecmp(name + n - k, layout->state_names[i]) == 0)
			return true;
	}
	return false;
}

enum ckpt_format ckpt_format_of(const struct ckpt_rules *r, const char *name)
{
	for (size_t i = 0; i < r->layout.n_formats; i++)
		if (ckpt_found(r, r->formats[i], name, strlen(name)))
			return (enum ckpt_format)mo_enum_parse(ckpt_format_names, _CKPT_FORMAT_N,
							       r->layout.formats[i].value
								       ? r->layout.formats[i].value
								       : "");
	return FORMAT_UNKNOWN;
}

const char *ckpt_members_of(const struct ckpt_rules *r, const char *marker)
{
	for (size_t i = 0; i < r->layout.n_members; i++)
		if (mo_streq(r->layout.members[i].key, marker))
			return r->layout.members[i].value;
	return NULL;
}

const char *ckpt_iteration_words(const struct ckpt_rules *r, const char *name)
{
	for (size_t i = 0; i < r->layout.n_iterations; i++)
		if (ckpt_found(r, r->iterations[i], name, strlen(name)))
			return r->layout.iterations[i].value;
	return NULL;
}

char *ckpt_iteration_damage(const char *words, const void *pickle, size_t n, int64_t iteration)
{
	int64_t stated = words ? pickle_number_behind(pickle, n, words) : -1;

	return stated < 0 || stated == iteration
		       ? NULL
		       : mo_printf("it is of iteration %lld: the content of another save is here",
				   (long long)stated);
}

int64_t ckpt_state_iteration(const struct ckpt_layout *layout, const void *pickle, size_t n)
{
	int64_t stated = -1;

	for (size_t i = 0; stated < 0 && i < layout->n_state_words; i++)
		stated = pickle_number_behind(pickle, n, layout->state_words[i]);
	return stated;
}

bool ckpt_tells_parts(const struct ckpt_rules *r, const char *name, size_t *ret_grid)
{
	for (size_t i = 0; i < r->layout.n_grids; i++)
		if (r->layout.grids[i].n_says > 0 &&
		    ckpt_found(r, r->grids[i], name, strlen(name))) {
			*ret_grid = i;
			return true;
		}
	return false;
}

/* "tp 1, pp 2, ep 1", and "etp 1" behind it where there are experts that are not split as the
 * rest is, or could be. */
static void fix_sizes(const struct ckpt_grid *g, const int64_t *numbers, struct ckpt_entry *e)
{
	bool apart = g->tied && (numbers[g->n_says] != numbers[0] ||
				 (numbers[0] > 1 && numbers[g->n_says - 1] > 1));
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < g->n_fixes && i < g->n_says + apart; i++)
		mo_buf_printf(&b, "%s%s %lld", i ? ", " : "", g->fixes[i], (long long)numbers[i]);
	if (b.len) {
		free(e->fixed);
		e->fixed = mo_buf_take(&b);
	}
}

/* How many files there are of these sizes; 0 = they make no sense. */
static int64_t parts_of(const struct ckpt_grid *g, const int64_t *numbers)
{
	int64_t product = 1;

	for (size_t i = 0; i < g->n_says + !!g->tied; i++)
		if (numbers[i] <= 0 || numbers[i] > PARTS_MAX)
			return 0;
	for (size_t i = 0; i < g->n_says; i++)
		if (__builtin_mul_overflow(product,
					   i == 0 && g->tied ? numbers[g->n_says] : numbers[i],
					   &product))
			return 0;
	return product;
}

void ckpt_parts_stated(const struct ckpt_rules *r, size_t grid, const void *pickle, size_t n,
		       struct ckpt_entry *e)
{
	const struct ckpt_grid *g = &r->layout.grids[grid];
	size_t n_sizes = g->n_says + !!g->tied, n_names = n_sizes + g->n_variants;
	_cleanup_(mo_freep) char **names = mo_alloc_array(n_names + 1, sizeof(*names));
	_cleanup_(mo_freep) int64_t *numbers = mo_alloc_array(n_names + 1, sizeof(*numbers));

	for (size_t i = 0; i < n_names; i++)
		names[i] = i < g->n_says ? g->says[i]
			   : i < n_sizes ? g->tied
					 : g->variants[i - n_sizes].value;
	if (!pickle_numbers(pickle, n, names, n_names, numbers))
		return;
	if (g->tied && numbers[g->n_says] <= 0)
		/* not said: versions and engines that know one number only */
		numbers[g->n_says] = numbers[0];
	e->parts[grid] = parts_of(g, numbers);
	if (e->parts[grid] == 0)
		return;
	if (g->tied && numbers[g->n_says] != numbers[0]) {
		memcpy(e->stated[grid], numbers, g->n_says * sizeof(*numbers));
		e->tied[grid] = numbers[g->n_says];
	}
	fix_sizes(g, numbers, e);
	for (size_t i = 0; i < g->n_variants; i++)
		e->due[grid] |= numbers[n_sizes + i] > 0 ? 1u << i : 0;
}

bool ckpt_tells_of_grid(const struct ckpt_rules *r, size_t grid, const char *name)
{
	return ckpt_found(r, r->told_by[grid], name, strlen(name));
}

static bool holds(const struct kv *condition, const void *pickle, size_t n)
{
	bool negated = condition->value[0] == '!';
	int64_t want = 0, stated = pickle_number_behind(pickle, n, condition->key);

	return mo_parse_i64(condition->value + negated, 0, INT64_MAX, &want) == 0 &&
	       (stated == want) != negated;
}

void ckpt_grid_stated(const struct ckpt_rules *r, size_t grid, const void *pickle, size_t n,
		      struct ckpt_entry *e)
{
	const struct ckpt_grid *g = &r->layout.grids[grid];

	e->excused[grid] = g->n_excused > 0;
	for (size_t i = 0; i < g->n_excused; i++)
		e->excused[grid] &= holds(&g->excused[i], pickle, n);
	e->share[grid] = g->share ? MO_MAX(pickle_number_behind(pickle, n, g->share), 0) : 0;
	e->sum[grid] = g->sum ? MO_MAX(pickle_sum_behind(pickle, n, g->sum), 0) : 0;
}

/* ---- markers ---- */

bool ckpt_reads_marker(const struct ckpt_rules *r, const char *name)
{
	if (r->listed || r->contains || ckpt_members_of(r, name) ||
	    ckpt_format_of(r, name) != FORMAT_UNKNOWN)
		return true;
	for (size_t i = 0; i < r->layout.n_needs; i++)
		if (r->unless_said[i])
			return true;
	return false;
}

/* Names are relative to the marker's own directory. NULL: too many, or no name. */
static struct ckpt_file *list_file(struct ckpt_marker *m, const char *name, size_t n)
{
	const char *slash = strrchr(m->name, '/');
	int below = slash ? (int)(slash - m->name) + 1 : 0;

	if (n == 0 || n > LISTED_NAME_MAX || m->n_files >= LISTED_MAX) {
		if (!m->damage && n > 0)
			m->damage = mo_printf("it lists more than %d files, or names longer than "
					      "%d bytes",
					      LISTED_MAX, LISTED_NAME_MAX);
		return NULL;
	}
	struct ckpt_file *f = MO_GROW(m->files, m->n_files);
	*f = (struct ckpt_file){ .name = mo_printf("%.*s%.*s", below, m->name, (int)n, name),
				 .bytes = MO_NONE };
	m->lists_files = true;
	return f;
}

static void list_matches(const struct ckpt_rules *r, const char *text, size_t n,
			 struct ckpt_marker *m)
{
	for (size_t at = 0; r->listed && pcre2_match(r->listed, (PCRE2_SPTR)text, n, at,
						     PCRE2_NOTEMPTY, r->data, NULL) >= 0;) {
		const PCRE2_SIZE *v = pcre2_get_ovector_pointer(r->data);
		at = v[1];
		if (v[1] <= v[0] || !list_file(m, text + v[0], v[1] - v[0]))
			return;
	}
}

/* A pickle names a file, mostly by reference to where it was named first; numbers behind the
 * name say which bytes of the file a part is. Slots remember files by that place. */
struct slot {
	size_t at, file;
};
/* file: index + 1 */
struct listing {
	const struct ckpt_rules *r;
	struct ckpt_marker *m;
	struct slot slots[SLOTS];
	size_t file;
	int due;
	int64_t sum;
};

static bool is_word(const struct pickle_item *item, const char *word)
{
	return strlen(word) == item->n && memcmp(word, item->text, item->n) == 0;
}

static void list_number(struct listing *l, int64_t number)
{
	if (l->file == 0 || number < 0 || number > INT64_MAX / 4)
		return;
	l->sum = l->due == 0 ? number : l->sum + number;
	if ((size_t)l->due + 1 == l->r->layout.n_listed_bytes) {
		struct ckpt_file *f = &l->m->files[l->file - 1];
		f->least = MO_MAX(f->least, l->sum);
	}
}

static void list_text(struct listing *l, const struct pickle_item *item)
{
	struct slot *slot = &l->slots[item->at * 2654435761u % SLOTS];

	for (size_t i = 0; i < l->r->layout.n_listed_bytes && l->due < 0; i++)
		if (is_word(item, l->r->layout.listed_bytes[i]))
			l->due = (int)i;
	if (l->due >= 0)
		return;
	if (slot->file > 0 && slot->at == item->at) {
		l->file = slot->file;
	} else if (ckpt_found(l->r, l->r->listed, item->text, item->n)) {
		const PCRE2_SIZE *v = pcre2_get_ovector_pointer(l->r->data);
		l->file = list_file(l->m, item->text + v[0], v[1] - v[0]) ? l->m->n_files : 0;
		*slot = (struct slot){ item->at, l->file };
	}
}

static void list_item(void *arg, const struct pickle_item *item)
{
	struct listing *l = arg;

	if (l->due >= 0 && item->kind == PICKLE_INT)
		list_number(l, item->number);
	l->due = -1;
	if (item->kind == PICKLE_TEXT)
		list_text(l, item);
}

/* Each once, with the largest number of bytes that was said of it. */
static void list_unique(struct ckpt_marker *m)
{
	size_t kept = 0;

	ckpt_files_sort(m->files, m->n_files);
	for (size_t i = 0; i < m->n_files; i++) {
		if (kept > 0 && mo_streq(m->files[kept - 1].name, m->files[i].name)) {
			m->files[kept - 1].least =
				MO_MAX(m->files[kept - 1].least, m->files[i].least);
			m->files[kept - 1].bytes =
				MO_MAX(m->files[kept - 1].bytes, m->files[i].bytes);
			free(m->files[i].name);
			continue;
		}
		m->files[kept++] = m->files[i];
	}
	m->n_files = kept;
}

static void pickle_content(const struct ckpt_rules *r, const char *text, size_t n,
			   struct ckpt_marker *m)
{
	_cleanup_(mo_freep) struct listing *l = mo_alloc(sizeof(*l));

	*l = (struct listing){ .r = r, .m = m, .due = -1 };
	const char *damage = pickle_walk(text, n, r->listed ? list_item : NULL, l);

	if (damage && !m->damage)
		m->damage = mo_strdup(damage);
}

void ckpt_marker_content(const struct ckpt_rules *r, const char *text, size_t n,
			 struct ckpt_marker *m)
{
	m->contains = ckpt_found(r, r->contains, text, n);
	for (size_t i = 0; i < r->layout.n_needs; i++)
		m->said |= ckpt_found(r, r->unless_said[i], text, n) ? 1u << i : 0;
	if (ckpt_format_of(r, m->name) == FORMAT_PICKLE)
		pickle_content(r, text, n, m);
	else if (ckpt_format_of(r, m->name) == FORMAT_MSGPACK)
		m->damage = mo_strdup(msgpack_damage((const unsigned char *)text, n));
	else if (n > 0 && (unsigned char)text[0] == 0x80 && text[n - 1] != '.')
		/* a pickle, though the layout does not say so */
		m->damage = mo_strdup("it is cut short");
	else
		list_matches(r, text, n, m);
	list_unique(m);
}

/* ---- trackers ---- */

enum ckpt_tracker ckpt_tracker_parse(const struct ckpt_rules *r, const char *text, size_t n,
				     int64_t *ret)
{
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
	bool says = r->layout.tracker_names_entry ? iteration_of(r, r->entry, word, ret)
						  : mo_parse_i64(word, 0, INT64_MAX - 1, ret) == 0;
	return says ? TRACKER_SAYS : TRACKER_DAMAGED;
}

char *ckpt_judge_tracker(const struct ckpt_rules *r, const struct ckpt_entry *e,
			 const struct ckpt_question *q)
{
	switch (q->tracker) {
	case TRACKER_NONE: return NULL;
	case TRACKER_MISSING:
		return mo_printf("the tracker file %s is missing: write the iteration into it",
				 r->layout.tracker);
	case TRACKER_LINK:
		return mo_printf("the tracker file %s is a link, not followed: put a file with the "
				 "iteration in its place",
				 r->layout.tracker);
	case TRACKER_DAMAGED:
		return mo_printf("the tracker file %s is damaged, and the engine reads it first: "
				 "write the iteration into it",
				 r->layout.tracker);
	case TRACKER_SAYS: break;
	}
	if (q->tracker_says == INT64_MAX)
		return mo_printf("the tracker file %s says release: the engine would load that, "
				 "whatever iteration it is told; write the iteration into it",
				 r->layout.tracker);
	return q->tracker_says >= e->iteration
		       ? NULL
		       : mo_printf("the tracker file %s says %lld: this save was not finished",
				   r->layout.tracker, (long long)q->tracker_says);
}
