/* The sections `layout`, `resume` and `fresh` of an engine file: where checkpoints lie, when one
 * is complete, and which words make the engine take one (docs/engines.md). Everything that a
 * helper on a node will do with them is checked here, with its place: patterns compile, names
 * stay below the directory, placeholders are known ones. */
#include "lib/recipe/engine_layout.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/model/engine.h"
#include "lib/recipe/engine_lines.h"
#include "lib/recipe/engine_pairs.h"
#include "lib/recipe/schema_scalar.h"

#define GRID_NUMBERS 4
#define GRIDS_MAX 8
#define WORD_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."

static const char *const words_count[] = { "world", "divides", NULL };

/* ---- names of files ---- */

/* n bytes at s: a relative path without empty parts, "." and "..". */
static bool stays_below(const char *s, size_t n)
{
	for (const char *end = s + n; s <= end;) {
		const char *slash = memchr(s, '/', (size_t)(end - s)), *stop = slash ? slash : end;
		size_t part = (size_t)(stop - s);

		if (part == 0 || (part == 1 && s[0] == '.') ||
		    (part == 2 && s[0] == '.' && s[1] == '.'))
			return false;
		s = stop + 1;
	}
	return true;
}

static void check_name(struct reader *r, const char *what, const struct ynode *v, const char *name,
		       size_t n)
{
	if (!stays_below(name, n))
		errors_at(r->errors, v, NULL,
			  "%s: '%.*s' does not stay below the directory: name a relative path "
			  "without '..'",
			  what, (int)MO_MIN(n, (size_t)128), name);
}

static void read_name(struct reader *r, const struct key *k, const struct ynode *v)
{
	char **text = (char **)((char *)r->bases[k->base] + k->offset);

	if (value_text(r, k->path, v, text))
		check_name(r, k->path, v, *text, strlen(*text));
}

static void read_markers(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_layout *l = r->bases[0];

	value_list(r, k->path, v, &l->markers, &l->n_markers);
	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++) {
		const struct ynode *item = v->items[i].value;

		for (const char *s = item->kind == YAML_SCALAR ? item->text : NULL; s;) {
			size_t n = strcspn(s, "|");

			check_name(r, k->path, item, s, n);
			s = s[n] ? s + n + 1 : NULL;
		}
	}
}

/* ---- patterns ---- */

static void read_pattern(struct reader *r, const struct key *k, const struct ynode *v)
{
	bool named = mo_streq(k->path, "layout.entry") || mo_streq(k->path, "layout.unfinished");

	if (value_text(r, k->path, v, (char **)((char *)r->bases[k->base] + k->offset)))
		engine_pattern_check(r, v, named ? "iteration" : NULL);
}

static void check_grid_groups(struct reader *r, const struct ynode *v, const pcre2_code *re)
{
	uint32_t groups = 0, names = 0, size = 0;
	PCRE2_SPTR table = NULL;

	pcre2_pattern_info(re, PCRE2_INFO_CAPTURECOUNT, &groups);
	pcre2_pattern_info(re, PCRE2_INFO_NAMECOUNT, &names);
	pcre2_pattern_info(re, PCRE2_INFO_NAMEENTRYSIZE, &size);
	pcre2_pattern_info(re, PCRE2_INFO_NAMETABLE, &table);
	for (uint32_t i = 0; i < names; i++)
		if (!mo_streq((const char *)table + i * size + 2, "variant"))
			errors_at(r->errors, v, NULL,
				  "pattern: unknown group '%s': a grid knows 'variant'; groups "
				  "without a name are numbers",
				  (const char *)table + i * size + 2);
	if (groups - names < 1 || groups - names > GRID_NUMBERS)
		errors_at(r->errors, v, NULL,
			  "pattern: a grid needs one to %d groups (\\d+), not %u", GRID_NUMBERS,
			  groups - names);
}

static void read_grid_files(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_grid *g = r->bases[0];
	int code;
	PCRE2_SIZE offset;

	if (!value_text(r, k->path, v, &g->files))
		return;
	pcre2_code *re =
		pcre2_compile((PCRE2_SPTR)g->files, PCRE2_ZERO_TERMINATED, 0, &code, &offset, NULL);

	if (re)
		check_grid_groups(r, v, re);
	else
		engine_pattern_check(r, v, NULL); /* says why */
	pcre2_code_free(re);
}

static void read_variants(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_grid *g = r->bases[0];

	engine_pairs_read(r, k->path, v, &g->variants, &g->n_variants);
	if (g->n_variants > CKPT_VARIANTS_MAX)
		errors_at(r->errors, v, NULL, "%s: more than %d", k->path, CKPT_VARIANTS_MAX);
}

static void read_fixes(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_grid *g = r->bases[0];

	value_list(r, k->path, v, &g->fixes, &g->n_fixes);
	for (size_t i = 0; i < g->n_fixes; i++)
		if (mo_enum_parse(ckpt_fixed_names, CKPT_FIXED_N, g->fixes[i]) < 0)
			errors_at(r->errors, v, NULL, "%s: '%s' is none of tp, pp, ep, etp, cp",
				  k->path, g->fixes[i]);
	if (g->n_fixes != g->n_says + !!g->tied)
		errors_at(r->errors, v, NULL,
			  "%s: as many as 'says' and 'tied', which come before it", k->path);
}

static void read_tied(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_grid *g = r->bases[0];

	if (value_text(r, k->path, v, &g->tied) && (g->n_says < 2 || g->n_says > CKPT_NUMBERS_MAX))
		errors_at(r->errors, v, NULL,
			  "%s: it wants two to %d numbers of 'says', which comes before it",
			  k->path, CKPT_NUMBERS_MAX);
}

static void read_excused(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_grid *g = r->bases[0];
	int64_t number;

	engine_pairs_read(r, k->path, v, &g->excused, &g->n_excused);
	for (size_t i = 0; i < g->n_excused; i++)
		if (mo_parse_i64(g->excused[i].value + (g->excused[i].value[0] == '!'), 0,
				 INT64_MAX, &number) < 0)
			errors_at(r->errors, v, NULL, "%s: '%s' is no number and no !number",
				  k->path, g->excused[i].value);
}

#define G(f, t, ...) \
	{ \
		.path = #f, .type = (t), .offset = offsetof(struct ckpt_grid, f), ##__VA_ARGS__ \
	}
static const struct key grid_keys[] = {
	{ .path = "files", .type = KEY_CUSTOM, .read = read_grid_files, .required = true },
	G(count, KEY_ENUM, .words = words_count),
	G(required, KEY_BOOL),
	G(says, KEY_LIST, .count_offset = offsetof(struct ckpt_grid, n_says)),
	{ .path = "tied", .type = KEY_CUSTOM, .read = read_tied },
	{ .path = "fixes", .type = KEY_CUSTOM, .read = read_fixes },
	{ .path = "variants", .type = KEY_CUSTOM, .read = read_variants },
	G(told_by, KEY_CUSTOM, .read = read_pattern),
	{ .path = "excused", .type = KEY_CUSTOM, .read = read_excused },
	G(share, KEY_TEXT),
	G(sum, KEY_TEXT),
};
#define N(f, ...) \
	{ \
		.path = #f, .type = KEY_CUSTOM, .offset = offsetof(struct ckpt_need, f), \
		##__VA_ARGS__ \
	}
static void read_needed(struct reader *r, const struct key *k, const struct ynode *v);
static const struct key need_keys[] = {
	N(file, .read = read_needed, .required = true),
	N(each, .read = read_pattern),
	N(unless, .read = read_pattern),
	N(unless_said, .read = read_pattern),
};

/* "/" at its end means a directory. */
static void read_needed(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_need *need = r->bases[0];

	if (value_text(r, k->path, v, &need->file)) {
		size_t n = strlen(need->file);

		check_name(r, k->path, v, need->file,
			   n > 0 && need->file[n - 1] == '/' ? n - 1 : n);
	}
}

/* A list of mappings, each read into a new element. */
static void read_items(struct reader *r, const char *what, const struct ynode *v, size_t max,
		       const struct key *keys, size_t n_keys, const struct mo_desc *d, void **ret,
		       size_t *n_ret)
{
	if (v->kind != YAML_LIST || v->n > max) {
		errors_at(r->errors, v, NULL, "%s: expected a list of at most %zu mappings", what,
			  max);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *item = v->items[i].value;
		struct reader one = { .errors = r->errors,
				      .keys = keys,
				      .n_keys = n_keys,
				      .bases = { mo_vec_add(d, ret, n_ret) } };

		if (item->kind == YAML_MAP)
			schema_read(&one, "", item);
		else
			errors_at(r->errors, item, NULL, "%s: expected a mapping", what);
	}
}

static void read_grids(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_layout *l = r->bases[0];

	read_items(r, k->path, v, GRIDS_MAX, grid_keys, ELEMENTSOF(grid_keys), &ckpt_grid_desc,
		   (void **)&l->grids, &l->n_grids);
}

static void read_needs(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_layout *l = r->bases[0];

	read_items(r, k->path, v, CKPT_NEEDS_MAX, need_keys, ELEMENTSOF(need_keys), &ckpt_need_desc,
		   (void **)&l->needs, &l->n_needs);
}

static void read_formats(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_layout *l = r->bases[0];

	engine_pairs_read(r, k->path, v, &l->formats, &l->n_formats);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++) {
		const struct ynode *value = v->items[i].value;

		engine_pattern_check(r, v->items[i].key, NULL);
		if (value->kind == YAML_SCALAR &&
		    mo_enum_parse(ckpt_format_names, _CKPT_FORMAT_N, value->text) < 0)
			errors_at(r->errors, value, NULL,
				  "%s: '%s' is no format: expected one of torch, pickle, json, "
				  "safetensors, ocdbt, data",
				  k->path, value->text);
	}
}

static void read_iterations(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_layout *l = r->bases[0];

	engine_pairs_read(r, k->path, v, &l->iterations, &l->n_iterations);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++)
		engine_pattern_check(r, v->items[i].key, NULL);
}

static bool is_marker(const struct ynode *markers, const char *name)
{
	for (size_t i = 0; markers && markers->kind == YAML_LIST && i < markers->n; i++) {
		const struct ynode *item = markers->items[i].value;

		for (const char *s = item->kind == YAML_SCALAR ? item->text : NULL; s;) {
			size_t n = strcspn(s, "|");

			if (strlen(name) == n && strncmp(s, name, n) == 0)
				return true;
			s = s[n] ? s + n + 1 : NULL;
		}
	}
	return false;
}

static void read_members(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct ckpt_layout *l = r->bases[0];

	engine_pairs_read(r, k->path, v, &l->members, &l->n_members);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++)
		if (!is_marker(r->arg, v->items[i].key->text))
			errors_at(r->errors, v->items[i].key, NULL,
				  "%s: '%s' is not among layout.markers", k->path,
				  v->items[i].key->text);
}

#define F(f, t, ...) \
	{ \
		.path = "layout." #f, .type = (t), .offset = offsetof(struct ckpt_layout, f), \
		##__VA_ARGS__ \
	}
#define CUSTOM(f, fn) \
	{ \
		.path = "layout." #f, .type = KEY_CUSTOM, .read = (fn) \
	}
static const struct key layout_keys[] = {
	F(entry, KEY_CUSTOM, .read = read_pattern, .required = true),
	F(subdir, KEY_CUSTOM, .read = read_name),
	F(tracker, KEY_CUSTOM, .read = read_name),
	F(tracker_names_entry, KEY_BOOL),
	F(by_tracker, KEY_CUSTOM, .read = read_pattern),
	CUSTOM(markers, read_markers),
	F(shard, KEY_CUSTOM, .read = read_pattern),
	F(marker_last, KEY_BOOL),
	F(announced_is_complete, KEY_BOOL),
	F(unfinished, KEY_CUSTOM, .read = read_pattern),
	F(leftover, KEY_CUSTOM, .read = read_pattern),
	F(listed, KEY_CUSTOM, .read = read_pattern),
	F(listed_bytes, KEY_LIST, .count_offset = offsetof(struct ckpt_layout, n_listed_bytes)),
	F(contains, KEY_CUSTOM, .read = read_pattern),
	CUSTOM(grids, read_grids),
	CUSTOM(needs, read_needs),
	CUSTOM(formats, read_formats),
	CUSTOM(members, read_members),
	CUSTOM(iterations, read_iterations),
};

void engine_layout_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];
	struct reader one = { .errors = r->errors,
			      .keys = layout_keys,
			      .n_keys = ELEMENTSOF(layout_keys),
			      .bases = { &e->layout } };

	e->has_layout = true;
	if (v->kind != YAML_MAP) {
		errors_at(r->errors, v, NULL, "layout: expected a mapping");
		return;
	}
	one.arg = (void *)ynode_get(v, "markers");
	schema_read(&one, "layout.", v);
}

/* ---- resume, fresh ---- */

static void check_word(struct reader *r, const char *what, const struct ynode *v)
{
	for (const char *open = strchr(v->text, '{'); open; open = strchr(open + 1, '{')) {
		size_t n = strspn(open + 1, WORD_CHARS);

		if (n > 0 && open[n + 1] == '}' && strncmp(open, "{iteration}", n + 2) != 0 &&
		    strncmp(open, "{dir}", n + 2) != 0)
			errors_at(r->errors, v, NULL,
				  "%s: unknown placeholder '%.*s': expected {iteration} or {dir}",
				  what, (int)MO_MIN(n + 2, (size_t)64), open);
	}
}

void engine_resume_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];
	bool fresh = mo_streq(k->path, "fresh");

	value_list(r, k->path, v, fresh ? &e->fresh : &e->resume,
		   fresh ? &e->n_fresh : &e->n_resume);
	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++)
		if (v->items[i].value->kind == YAML_SCALAR)
			check_word(r, k->path, v->items[i].value);
}

/* ---- skip ---- */

void engine_skip_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];
	bool filled = false;

	value_list(r, k->path, v, &e->skip, &e->n_skip);
	for (size_t i = 0; i < e->n_skip; i++)
		filled |= strstr(e->skip[i], "{iterations}") != NULL;
	if (e->n_skip && (e->skip[0][0] != '-' || !filled))
		errors_at(r->errors, v, NULL,
			  "skip: expected a flag and {iterations}, such as [--skip, "
			  "\"{iterations}\"]");
}
