/* checkpoint.layout: a path below checkpoint.dir.
 *   ckpt_{iteration}.pt                        a file per save
 *   checkpoint-{iteration}/                    a directory per save
 *   checkpoint-{iteration}/trainer_state.json  the same, whole when that file is there, which is
 *                                              written last
 *   epoch=*-step={iteration}.ckpt              '*': any text
 *   ckpt.pt, last/, best*.pt                   without iteration: every save writes over the
 *                                              last one
 * It becomes a layout as an engine file has it. checkpoint.resume_args become the engine's words
 * for a resume. */
#include "lib/recipe/layout_text.h"

#include <string.h>

#include "lib/recipe/keys.h"

#define HOLE "{iteration}"

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
 * not looked for again (?>), or names that almost fit twenty of them would take for ever. */
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

/* ---- rules ---- */

static void check_layout(struct rules *k)
{
	const struct recipe_checkpoint *c = &k->recipe->checkpoint;
	const struct ynode *at = PLACE(k, "checkpoint.layout");
	bool unnumbered = !strstr(c->layout, HOLE);

	if (!k->engine->layout.announced_is_complete) {
		errors_at(k->errors, at, NULL,
			  "checkpoint.layout: engine %s has a layout of its own: leave it out, or "
			  "use engine.kind torch or command",
			  k->recipe->engine.kind);
		return;
	}
	if (unnumbered && c->keep > 0)
		errors_at(k->errors, PLACE(k, "checkpoint.keep"), NULL,
			  "checkpoint.keep: '%.128s' is written over by each save: there is "
			  "nothing older to remove; leave it out",
			  c->layout);
	if (!c->n_resume_args && !k->engine->n_resume)
		rules_warn(k, at,
			   "checkpoint.layout: no word tells the program to resume: give it in "
			   "checkpoint.resume_args, e.g. [--init_from=resume], unless it goes on "
			   "by itself (MOE_RESUME_ITERATION)");
	if (unnumbered)
		rules_warn(k, at,
			   "checkpoint.layout: each save writes over '%.128s'; a copy of the last "
			   "whole one is kept in .moe-kept beside it: blocks are shared where the "
			   "file system can, elsewhere it takes as much room again",
			   c->layout);
}

static void check_resume_args(struct rules *k)
{
	const struct ynode *list = ynode_find(k->root, "checkpoint.resume_args");

	if (k->engine->n_resume) {
		errors_at(k->errors, PLACE(k, "checkpoint.resume_args"), NULL,
			  "checkpoint.resume_args: engine %s resumes by flags of its own: leave it "
			  "out",
			  k->recipe->engine.kind);
		return;
	}
	for (size_t i = 0; list && list->kind == YAML_LIST && i < list->n; i++) {
		const struct ynode *v = list->items[i].value;
		const char *missing = NULL;
		_cleanup_(mo_freep) char *word =
			v->kind == YAML_SCALAR ? recipe_expand(k->recipe, v->text, &missing) : NULL;

		if (missing)
			errors_at(k->errors, v, NULL,
				  "checkpoint.resume_args: '%.60s' needs %s, which the recipe does "
				  "not give",
				  v->text, missing);
		for (const char *open = word ? strchr(word, '{') : NULL; open && !missing;
		     open = strchr(open + 1, '{')) {
			size_t n = strspn(open + 1, "abcdefghijklmnopqrstuvwxyz_.");

			if (n > 0 && open[n + 1] == '}' && !mo_starts_with(open, HOLE) &&
			    !mo_starts_with(open, "{dir}"))
				errors_at(k->errors, v, NULL,
					  "checkpoint.resume_args: unknown placeholder '%.*s': "
					  "expected {iteration}, {dir} or a value of the recipe",
					  (int)MO_MIN(n + 2, (size_t)64), open);
		}
	}
}

void layout_rules(struct rules *k)
{
	const struct recipe_checkpoint *c = &k->recipe->checkpoint;

	if (c->layout && c->dir)
		check_layout(k);
	if (c->n_resume_args && c->dir)
		check_resume_args(k);
}

void layout_apply(const struct recipe *r, struct engine *e)
{
	const struct recipe_checkpoint *c = &r->checkpoint;

	if (c->layout)
		layout_from_text(c->layout, &e->layout);
	for (size_t i = 0; i < c->n_resume_args; i++) {
		_cleanup_(mo_freep) char *word = recipe_expand(r, c->resume_args[i], NULL);

		mo_strs_add(&e->resume, &e->n_resume, word);
	}
}
