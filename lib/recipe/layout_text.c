/* checkpoint.layout: a path below checkpoint.dir.
 *   ckpt_{iteration}.pt                        a file per save
 *   checkpoint-{iteration}/                    a directory per save
 *   checkpoint-{iteration}/trainer_state.json  the same, whole when that file is there, which is
 *                                              written last
 *   epoch=*-step={iteration}.ckpt              '*': any text
 *   ckpt.pt, last/, best*.pt                   without iteration: every save writes over the
 *                                              last one
 * It becomes a layout as an engine file has it. */
#include "lib/recipe/layout_text.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/desc.h"
#include "lib/base/util.h"

#define HOLE LAYOUT_HOLE

/* Of a path the part that names a checkpoint: [from, to); the parts before it are a directory,
 * those behind it a marker. */
static void entry_part(const char *text, size_t *ret_from, size_t *ret_to)
{
	const char *hole = strstr(text, HOLE), *star = strchr(text, '*'), *in = hole ? hole : star;
	size_t n = strlen(text);

	while (n > 0 && text[n - 1] == '/')
		n--;
	*ret_to = in ? (size_t)(in - text) + strcspn(in, "/") : n;
	for (*ret_from = *ret_to; *ret_from > 0 && text[*ret_from - 1] != '/';)
		(*ret_from)--;
}

static bool stays_below(const char *text)
{
	for (const char *s = text; *s;) {
		size_t n = strcspn(s, "/");

		if (n == 0 || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
			return false;
		s += n + (s[n] == '/');
	}
	return true;
}

char *layout_text_error(const char *text)
{
	const char *hole = strstr(text, HOLE);
	size_t from, to;

	if (!*text)
		return mo_strdup("it is empty: name a file or a directory below checkpoint.dir");
	if (!stays_below(text))
		return mo_printf("'%.128s' does not stay below checkpoint.dir: name a path "
				 "relative to it, without '..'",
				 text);
	if (mo_starts_with(text, ".moe-"))
		return mo_printf("'%.128s': names that begin with .moe- are moectl's own", text);
	for (const char *open = strchr(text, '{'); open; open = strchr(open + 1, '{'))
		if (!mo_starts_with(open, HOLE))
			return mo_printf("unknown placeholder '%.*s': expected " HOLE,
					 (int)MO_MIN(strcspn(open, "}") + 1, (size_t)64), open);
	if (hole && strstr(hole + 1, HOLE))
		return mo_strdup(HOLE " stands there twice: once is enough");
	entry_part(text, &from, &to);
	for (const char *star = strchr(text, '*'); star; star = strchr(star + 1, '*'))
		if ((size_t)(star - text) < from || (size_t)(star - text) >= to)
			return mo_strdup("'*' may stand in the name of a checkpoint only, not in a "
					 "directory above it or in a file below it");
	return NULL;
}

/* The part as a pattern on names. What stands between two '*' is taken where it is found first and
 * not searched again (?>), or names that almost fit twenty of them would take for ever. */
static char *pattern(const char *s, size_t n)
{
	struct mo_buf b = { 0 };
	bool between = false;

	mo_buf_str(&b, "^");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '_' || c >= 0x80;

		if (strncmp(s + i, HOLE, strlen(HOLE)) == 0) {
			mo_buf_str(&b, "(?<iteration>\\d+)");
			i += strlen(HOLE) - 1;
		} else if (c == '*') {
			mo_buf_str(&b, between ? ")" : "");
			between = memchr(s + i + 1, '*', n - i - 1);
			mo_buf_str(&b, between ? "(?>[^/]*?" : "[^/]*?");
		} else {
			mo_buf_printf(&b, "%s%c", plain ? "" : "\\", c);
		}
	}
	mo_buf_str(&b, "$");
	return mo_buf_take(&b);
}

static void add_format(struct ckpt_layout *l, const char *files, const char *format)
{
	struct kv *f = MO_ADD(l, formats, &kv_desc);

	f->key = mo_strdup(files);
	f->value = mo_strdup(format);
}

void layout_from_text(const char *text, struct ckpt_layout *ret)
{
	struct ckpt_layout l;
	size_t from, to;

	mo_desc_init(&ckpt_layout_desc, &l);
	entry_part(text, &from, &to);
	l.given = true;
	l.unnumbered = !strstr(text, HOLE);
	l.entry = pattern(text + from, to - from);
	if (from > 0)
		l.subdir = mo_strndup(text, from - 1);
	if (text[to] == '/' && text[to + 1]) {
		_cleanup_(mo_freep) char *marker =
			mo_strndup(text + to + 1,
				   strlen(text + to + 1) - (text[strlen(text) - 1] == '/'));

		mo_strs_add(&l.markers, &l.n_markers, marker);
	}
	add_format(&l, "\\.pth?$", "torch");
	add_format(&l, "\\.safetensors$", "safetensors");
	for (size_t i = 0; i < ret->n_state_names; i++)
		mo_strs_add(&l.state_names, &l.n_state_names, ret->state_names[i]);
	for (size_t i = 0; i < ret->n_state_words; i++)
		mo_strs_add(&l.state_words, &l.n_state_words, ret->state_words[i]);
	l.state_bytes = ret->state_bytes;
	mo_desc_done(&ckpt_layout_desc, ret);
	*ret = l;
}
