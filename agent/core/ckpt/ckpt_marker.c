/* What the content of a marker says: a list of files with sizes or checksums, a pickle. */
#include "agent/core/ckpt/ckpt_marker.h"

#include <string.h>

#include "agent/core/ckpt/archive.h"
#include "agent/core/ckpt/ckpt.h"
#include "agent/core/ckpt/ckpt_inner.h"
#include "agent/core/text/pickle.h"

#define LISTED_MAX 1000000 /* files that markers name */
#define LISTED_NAME_MAX 1024
#define SLOTS 4096

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
	size_t retained = 0;

	ckpt_files_sort(m->files, m->n_files);
	for (size_t i = 0; i < m->n_files; i++) {
		if (retained > 0 && mo_streq(m->files[retained - 1].name, m->files[i].name)) {
			m->files[retained - 1].least =
				MO_MAX(m->files[retained - 1].least, m->files[i].least);
			m->files[retained - 1].bytes =
				MO_MAX(m->files[retained - 1].bytes, m->files[i].bytes);
			free(m->files[i].name);
			continue;
		}
		m->files[retained++] = m->files[i];
	}
	m->n_files = retained;
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
