/* YAML text -> tree with guards. Order of the guards: size, UTF-8, then libfyaml's event parser
 * (linear in the input: measured 25,000 keys in 17 ms where its document builder takes more than
 * 8 s), counting depth, keys per mapping and nodes while the tree grows. Called by everything in
 * lib/recipe that reads a file. */
#include "lib/recipe/yaml.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/model/limits.h"
#include "lib/recipe/yaml_bytes.h"
#include "lib/recipe/yaml_growth.h"
#include "lib/recipe/yaml_syntax.h"
#include "lib/recipe/yaml_texts.h"
#include "lib/recipe/yaml_token.h"

#define CORE_TAG "tag:yaml.org,2002:"

struct anchor {
	char *name;
	const struct ynode *node;
};
enum reader { READER_OURS, READER_REPEATS, READER_PYTHON };
struct loader {
	const char *text;
	size_t n;
	struct fy_parser *parser;
	struct recipe_errors *errors; /* growth has them too */
	struct anchor *anchors;
	size_t n_anchors, depth;
	struct yaml_growth growth;
	enum reader reader;
	struct yaml_texts texts;
	int64_t line, column; /* of the last event that had a place: empty values have none */
};

static void event_place(struct loader *l, struct fy_event *ev)
{
	const struct fy_mark *mark = fy_event_start_mark(ev);

	if (!mark)
		return;
	l->line = mark->line + 1;
	l->column = mark->column + 1;
	if (ev->type == FYET_ALIAS && l->column > 1)
		l->column--;
	if (ev->type == FYET_SCALAR && ev->scalar.value && l->column > 1) {
		enum fy_scalar_style style = fy_token_scalar_style(ev->scalar.value);

		/* libfyaml's place of a quoted text is behind the quote, that of an alias behind
		 * the asterisk. */
		if (style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED)
			l->column--;
	}
}

static struct ynode *scalar_node(struct loader *l, struct fy_event *ev)
{
	_cleanup_(ynode_freep) struct ynode *n =
		yaml_node_new(&l->growth, YAML_SCALAR, l->line, l->column);
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	if (!n)
		return NULL;
	if (!yaml_scalar_text(l->text, l->n, ev->scalar.value, &text) ||
	    (text.len && (memchr(text.data, 0, text.len) || !mo_utf8_valid(text.data, text.len)))) {
		errors_place(l->errors, n->line, n->column, NULL,
			     "a text with a NUL byte or a broken escape: remove it");
		return NULL;
	}
	yaml_texts_add(&l->texts, ev->scalar.value);
	n->plain = !ev->scalar.value || fy_token_scalar_style(ev->scalar.value) == FYSS_PLAIN;
	n->plain = n->plain && !fy_event_get_tag_token(ev);
	return yaml_node_text(&l->growth, n, mo_buf_take(&text)) ? TAKE_PTR(n) : NULL;
}

static const struct ynode *anchor_find(const struct loader *l, const char *name)
{
	for (size_t i = l->n_anchors; i-- > 0;) /* the latest definition wins */
		if (mo_streq(l->anchors[i].name, name))
			return l->anchors[i].node;
	return NULL;
}

static struct ynode *alias_node(struct loader *l, struct fy_event *ev)
{
	_cleanup_(mo_buf_done) struct mo_buf name = { 0 };

	yaml_token_text(ev->alias.anchor, &name);
	const struct ynode *target = anchor_find(l, name.data);

	if (!target) {
		errors_place(l->errors, l->line, l->column,
			     "an anchor (&name) must be complete before its alias",
			     "unknown anchor '%.60s'", name.data ? name.data : "");
		return NULL;
	}
	return yaml_node_copy(&l->growth, target);
}

static struct ynode *read_node(struct loader *l, struct fy_event *ev);

/* Next event's node. *ret_end: the collection's end came instead. */
static struct ynode *next_node(struct loader *l, bool *ret_end)
{
	struct fy_event *ev = fy_parser_parse(l->parser);

	*ret_end = false;
	if (!ev)
		return NULL;
	if (ev->type == FYET_MAPPING_END || ev->type == FYET_SEQUENCE_END) {
		*ret_end = true;
		fy_parser_event_free(l->parser, ev);
		return NULL;
	}
	event_place(l, ev);
	struct ynode *n = read_node(l, ev);

	fy_parser_event_free(l->parser, ev);
	return n;
}

static int read_list(struct loader *l, struct ynode *list)
{
	for (;;) {
		bool end;
		struct ynode *value = next_node(l, &end);

		if (end)
			return 0;
		if (!value)
			return -EINVAL;
		MO_GROW(list->items, list->n)->value = value;
		if (list->n > MO_RECIPE_ITEMS_MAX) {
			errors_at(l->errors, value, NULL, "more than %d values in one list",
				  MO_RECIPE_ITEMS_MAX);
			return -EINVAL;
		}
	}
}

static int read_pair(struct loader *l, struct ynode *map, struct yitem *merges, bool *ret_end)
{
	_cleanup_(ynode_freep) struct ynode *key = next_node(l, ret_end);
	bool end;

	if (*ret_end)
		return 0;
	if (!key)
		return -EINVAL;
	if (key->kind != YAML_SCALAR) {
		errors_at(l->errors, key, NULL,
			  "a key must be a plain word, not a mapping or a list");
		return -EINVAL;
	}
	l->line = key->line;
	l->column = key->column;
	size_t texts = l->texts.n;
	struct ynode *value = next_node(l, &end);

	if (!value)
		return -EINVAL;
	if (yaml_not_of_block(&l->texts, texts, l->text, l->n, key, value)) {
		errors_at(l->errors, key, "write \"\" for an empty text, or indent the block",
			  "%s: a block of text that is not deeper than its key", key->text);
		ynode_free(value);
		return -EINVAL;
	}
	if (key->plain && mo_streq(key->text, "<<") && !merges->key) {
		merges->key = TAKE_PTR(key);
		merges->value = value;
		return 0;
	}
	if (l->reader == READER_OURS && ynode_get(map, key->text))
		errors_at(l->errors, key, NULL, "duplicate key '%s': the first is on line %lld",
			  key->text, (long long)ynode_get(map, key->text)->line);
	struct yitem *item = MO_GROW(map->items, map->n);

	item->key = TAKE_PTR(key);
	item->value = value;
	return 0;
}

static int read_map(struct loader *l, struct ynode *map)
{
	struct yitem merges = { NULL, NULL };
	int r;

	for (;;) {
		bool end = false;

		if (map->n > MO_RECIPE_KEYS_MAX) {
			errors_at(l->errors, map->items[map->n - 1].key, NULL,
				  "more than %d keys in one mapping", MO_RECIPE_KEYS_MAX);
			r = -EINVAL;
			break;
		}
		r = read_pair(l, map, &merges, &end);
		if (r < 0 || end)
			break;
	}
	if (r >= 0 && merges.key)
		r = yaml_merge(&l->growth, map, merges.value);
	ynode_free(merges.key);
	ynode_free(merges.value);
	return r;
}

/* The tag of a node that PyYAML has a type of its own for; false: some other tag, or a reader
 * that wants none. */
static bool known_tag(struct loader *l, struct fy_event *ev, enum yaml_tag *ret)
{
	static const struct {
		const char *name;
		enum fy_event_type of;
		enum yaml_tag tag;
	} tags[] = {
		{ "str", FYET_SCALAR, YAML_TAG_STR },
		{ "int", FYET_SCALAR, YAML_TAG_INT },
		{ "float", FYET_SCALAR, YAML_TAG_FLOAT },
		{ "bool", FYET_SCALAR, YAML_TAG_BOOL },
		{ "null", FYET_SCALAR, YAML_TAG_NULL },
		{ "map", FYET_MAPPING_START, YAML_TAG_NONE },
		{ "seq", FYET_SEQUENCE_START, YAML_TAG_NONE },
	};
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct fy_token *token = ev->type == FYET_ALIAS ? NULL : fy_event_get_tag_token(ev);

	*ret = YAML_TAG_NONE;
	if (!token)
		return true;
	yaml_token_text(token, &b);
	const char *name = b.data && mo_starts_with(b.data, "!!")       ? b.data + 2
			   : b.data && mo_starts_with(b.data, CORE_TAG) ? b.data + strlen(CORE_TAG)
									: "";

	for (size_t i = 0; l->reader == READER_PYTHON && i < sizeof(tags) / sizeof(tags[0]); i++)
		if (mo_streq(name, tags[i].name) && ev->type == tags[i].of) {
			*ret = tags[i].tag;
			return true;
		}
	return false;
}

static bool keep_anchor(struct loader *l, struct fy_token *anchor, const struct ynode *n)
{
	_cleanup_(mo_buf_done) struct mo_buf name = { 0 };

	yaml_token_text(anchor, &name);
	if (l->n_anchors >= MO_RECIPE_ANCHORS_MAX) {
		errors_at(l->errors, n, NULL, "more than %d anchors", MO_RECIPE_ANCHORS_MAX);
		return false;
	}
	if (l->reader == READER_PYTHON && anchor_find(l, name.data)) {
		errors_at(l->errors, n, "give this one another name", "a second anchor '%.60s'",
			  name.data);
		return false;
	}
	struct anchor *a = MO_GROW(l->anchors, l->n_anchors);

	a->name = mo_buf_take(&name);
	a->node = n;
	return true;
}

/* Scalars, aliases and collections; NULL with an error added, or without one when the parser
 * itself failed. */
static struct ynode *read_node(struct loader *l, struct fy_event *ev)
{
	struct fy_token *anchor = fy_event_get_anchor_token(ev);
	_cleanup_(ynode_freep) struct ynode *n = NULL;
	enum yaml_tag tag;

	if (!known_tag(l, ev, &tag)) {
		errors_place(l->errors, l->line, l->column, "quotes make a value a text",
			     "tags (!name) are not used here: remove it");
		return NULL;
	}
	if (ev->type == FYET_ALIAS)
		return alias_node(l, ev);
	if (ev->type == FYET_SCALAR)
		n = scalar_node(l, ev);
	else if (l->depth >= YAML_DEPTH_MAX)
		errors_place(l->errors, l->line, l->column, NULL, "nested deeper than %d levels",
			     YAML_DEPTH_MAX);
	else {
		bool map = ev->type == FYET_MAPPING_START;

		n = yaml_node_new(&l->growth, map ? YAML_MAP : YAML_LIST, l->line, l->column);
		l->depth++;
		if (n && (map ? read_map(l, n) : read_list(l, n)) < 0)
			n = ynode_free(n);
		l->depth--;
	}
	if (n && anchor && !keep_anchor(l, anchor, n))
		n = ynode_free(n);
	if (n)
		n->tag = tag;
	return TAKE_PTR(n);
}

static struct ynode *read_document(struct loader *l, const char *what)
{
	_cleanup_(ynode_freep) struct ynode *root = NULL;
	struct fy_event *ev;
	bool ok = true;

	while (ok && (ev = fy_parser_parse(l->parser))) {
		event_place(l, ev);
		if (ev->type == FYET_DOCUMENT_START && root) {
			errors_place(l->errors, l->line, l->column, NULL,
				     "a second document: a %s is one document", what);
			ok = false;
		} else if (ev->type == FYET_SCALAR || ev->type == FYET_MAPPING_START ||
			   ev->type == FYET_SEQUENCE_START || ev->type == FYET_ALIAS) {
			root = read_node(l, ev);
			ok = root;
		}
		fy_parser_event_free(l->parser, ev);
	}
	return ok ? TAKE_PTR(root) : NULL;
}

static struct ynode *load(const char *text, size_t n, const char *what, enum reader reader,
			  struct recipe_errors *errors)
{
	struct loader l = { .text = text,
			    .n = n,
			    .errors = errors,
			    .line = 1,
			    .column = 1,
			    .reader = reader,
			    .growth = { .errors = errors } };
	size_t before = errors->n;
	struct fy_diag_cfg diag_cfg;

	if (yaml_bytes_refused(text, n, what, errors))
		return NULL;
	errno = 0;
	fy_diag_cfg_default(&diag_cfg);
	diag_cfg.fp = NULL;
	struct fy_diag *diag = fy_diag_create(&diag_cfg);
	struct fy_parse_cfg cfg = { .flags = FYPCF_QUIET | FYPCF_DEFAULT_VERSION_1_2 |
					     FYPCF_SLOPPY_FLOW_INDENTATION,
				    .diag = diag };

	fy_diag_set_collect_errors(diag, true);
	l.parser = fy_parser_create(&cfg);
	_cleanup_(ynode_freep) struct ynode *root = NULL;

	if (fy_parser_set_string(l.parser, n ? text : "", n) == 0)
		root = read_document(&l, what);
	/* libfyaml gives up without a word: here that is as everywhere, and no fault of the text */
	if (errno == ENOMEM)
		abort();
	if (errors->n == before && fy_parser_get_stream_error(l.parser))
		yaml_report_syntax(diag, text, n, errors);
	else if (!root && errors->n == before)
		root = yaml_node_new(&l.growth, YAML_MAP, 1, 1);
	if (fy_parser_get_stream_error(l.parser))
		root = ynode_free(root);
	int64_t tab = root && reader == READER_PYTHON ? yaml_stray_tab(&l.texts, text, n) : 0;

	if (tab)
		errors_place(errors, tab, 1, "use spaces",
			     "a tab outside quotes: PyYAML, which reads this file, takes none "
			     "here");
	fy_parser_destroy(l.parser);
	fy_diag_destroy(diag);
	free(l.texts.all);
	for (size_t i = 0; i < l.n_anchors; i++)
		free(l.anchors[i].name);
	free(l.anchors);
	return TAKE_PTR(root);
}

struct ynode *yaml_load(const char *text, size_t n, const char *what, struct recipe_errors *errors)
{
	return load(text, n, what, READER_OURS, errors);
}

struct ynode *yaml_load_repeats(const char *text, size_t n, const char *what,
				struct recipe_errors *errors)
{
	return load(text, n, what, READER_REPEATS, errors);
}

struct ynode *yaml_load_python(const char *text, size_t n, const char *what,
			       struct recipe_errors *errors)
{
	return load(text, n, what, READER_PYTHON, errors);
}
