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
#include "lib/recipe/quoted.h"
#include "lib/recipe/yaml_bytes.h"

#define CORE_TAG "tag:yaml.org,2002:"

struct anchor {
	char *name;
	const struct ynode *node;
};
struct span {
	size_t from, to;
	bool block;
};
enum reader { READER_OURS, READER_REPEATS, READER_PYTHON };
struct loader {
	const char *text;
	size_t n;
	struct fy_parser *parser;
	struct recipe_errors *errors;
	struct anchor *anchors;
	size_t n_anchors;
	size_t nodes, depth, bytes;
	enum reader reader;
	/* texts in quotes and blocks of text, in which a tab may stand */
	struct span *quoted;
	size_t n_quoted;
	int64_t line, column; /* of the last event that had a place: empty values have none */
};

static struct ynode *node_new(struct loader *l, enum yaml_kind kind, int64_t line, int64_t column)
{
	if (++l->nodes > MO_RECIPE_NODES_MAX) {
		errors_place(l->errors, line, column, "an alias that contains aliases multiplies",
			     "more than %d values after expanding aliases", MO_RECIPE_NODES_MAX);
		return NULL;
	}
	struct ynode *n = mo_alloc(sizeof(*n));

	n->kind = kind;
	n->line = line;
	n->column = column;
	return n;
}

/* Takes the text, which may be that of an alias: a long one would be there thousands of times. */
static bool node_text(struct loader *l, struct ynode *n, char *text)
{
	n->text = text;
	l->bytes += text ? strlen(text) : 0;
	if (l->bytes <= MO_RECIPE_TEXT_MAX)
		return true;
	errors_place(l->errors, n->line, n->column, "an alias repeats its text",
		     "more than %d bytes of texts after expanding aliases", MO_RECIPE_TEXT_MAX);
	return false;
}

static struct ynode *node_copy(struct loader *l, const struct ynode *from)
{
	_cleanup_(ynode_freep) struct ynode *n = node_new(l, from->kind, from->line, from->column);

	if (!n)
		return NULL;
	n->plain = from->plain;
	n->tag = from->tag;
	if (!node_text(l, n, mo_strdup(from->text)))
		return NULL;
	for (size_t i = 0; i < from->n; i++) {
		struct yitem *item = MO_GROW(n->items, n->n);

		if (from->items[i].key && !(item->key = node_copy(l, from->items[i].key)))
			return NULL;
		if (!(item->value = node_copy(l, from->items[i].value)))
			return NULL;
	}
	return TAKE_PTR(n);
}

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

/* The token's text. Piece by piece, because in libfyaml 0.7.12 fy_token_get_text() leaks 2 kB
 * for a text of many pieces. */
static void token_text(struct fy_token *token, struct mo_buf *b)
{
	struct fy_token_iter *it = token ? fy_token_iter_create(token) : NULL;
	const struct fy_iter_chunk *chunk = NULL;

	while (it && (chunk = fy_token_iter_chunk_next(it, chunk, NULL)))
		mo_buf_add(b, chunk->str, chunk->len);
	if (it)
		fy_token_iter_destroy(it);
}

static bool scalar_text(const struct loader *l, struct fy_token *token, struct mo_buf *b)
{
	enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;

	if (style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) {
		const struct fy_mark *from = fy_token_start_mark(token),
				     *to = fy_token_end_mark(token);

		return from && to && from->input_pos <= to->input_pos && to->input_pos <= l->n &&
		       quoted_text(l->text + from->input_pos, to->input_pos - from->input_pos,
				   style == FYSS_SINGLE_QUOTED ? '\'' : '"', b);
	}
	token_text(token, b);
	return true;
}

static void keep_quoted(struct loader *l, struct fy_token *token)
{
	const struct fy_mark *from = token ? fy_token_start_mark(token) : NULL,
			     *to = token ? fy_token_end_mark(token) : NULL;

	enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;

	if (from && to && style != FYSS_PLAIN)
		*MO_GROW(l->quoted, l->n_quoted) =
			(struct span){ from->input_pos, to->input_pos,
				       style == FYSS_LITERAL || style == FYSS_FOLDED };
}

static struct ynode *scalar_node(struct loader *l, struct fy_event *ev)
{
	_cleanup_(ynode_freep) struct ynode *n = node_new(l, YAML_SCALAR, l->line, l->column);
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	if (!n)
		return NULL;
	if (!scalar_text(l, ev->scalar.value, &text) ||
	    (text.len && (memchr(text.data, 0, text.len) || !mo_utf8_valid(text.data, text.len)))) {
		errors_place(l->errors, n->line, n->column, NULL,
			     "a text with a NUL byte or a broken escape: remove it");
		return NULL;
	}
	keep_quoted(l, ev->scalar.value);
	n->plain = !ev->scalar.value || fy_token_scalar_style(ev->scalar.value) == FYSS_PLAIN;
	n->plain = n->plain && !fy_event_get_tag_token(ev);
	return node_text(l, n, mo_buf_take(&text)) ? TAKE_PTR(n) : NULL;
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

	token_text(ev->alias.anchor, &name);
	const struct ynode *target = anchor_find(l, name.data);

	if (!target) {
		errors_place(l->errors, l->line, l->column,
			     "an anchor (&name) must be complete before its alias",
			     "unknown anchor '%.60s'", name.data ? name.data : "");
		return NULL;
	}
	return node_copy(l, target);
}

/* Takes the pairs of a merged mapping that the target does not have. */
static int merge_from(struct loader *l, struct ynode *into, const struct ynode *from)
{
	if (from->kind != YAML_MAP) {
		errors_at(l->errors, from, NULL, "<<: expected a mapping or a list of mappings");
		return -EINVAL;
	}
	for (size_t i = 0; i < from->n; i++) {
		if (ynode_get(into, from->items[i].key->text))
			continue;
		if (into->n >= MO_RECIPE_KEYS_MAX) {
			errors_at(l->errors, into, NULL, "more than %d keys in one mapping",
				  MO_RECIPE_KEYS_MAX);
			return -EINVAL;
		}
		_cleanup_(ynode_freep) struct ynode *key = node_copy(l, from->items[i].key);
		_cleanup_(ynode_freep) struct ynode *value = node_copy(l, from->items[i].value);

		if (!key || !value)
			return -EINVAL;
		struct yitem *item = MO_GROW(into->items, into->n);

		item->key = TAKE_PTR(key);
		item->value = TAKE_PTR(value);
	}
	return 0;
}

static int merge(struct loader *l, struct ynode *into, const struct ynode *value)
{
	if (value->kind != YAML_LIST)
		return merge_from(l, into, value);
	for (size_t i = 0; i < value->n; i++)
		if (merge_from(l, into, value->items[i].value) < 0)
			return -EINVAL;
	return 0;
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

/* libfyaml 0.7.12 takes the pairs behind an empty block of text (`a: |`) for its text: does it
 * begin no deeper than its key? */
static bool not_of_block(const struct loader *l, const struct ynode *key, const struct ynode *value,
			 size_t quoted)
{
	if (value->kind != YAML_SCALAR || l->n_quoted != quoted + 1 || !l->quoted[quoted].block ||
	    !value->text[strspn(value->text, "\n ")])
		return false;
	size_t i = l->quoted[quoted].from, column = 1;

	while (i < l->n && strchr("\r\n ", l->text[i]))
		i++;
	while (i > 0 && l->text[i - 1] == ' ') {
		i--;
		column++;
	}
	return (int64_t)column <= key->column;
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
	size_t quoted = l->n_quoted;
	struct ynode *value = next_node(l, &end);

	if (!value)
		return -EINVAL;
	if (not_of_block(l, key, value, quoted)) {
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
		r = merge(l, map, merges.value);
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
	token_text(token, &b);
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

	token_text(anchor, &name);
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

		n = node_new(l, map ? YAML_MAP : YAML_LIST, l->line, l->column);
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

/* Line of a tab where PyYAML takes none, 0: there is no such. It may stand in quotes, in blocks
 * of text and in comments. */
static int64_t stray_tab(const struct loader *l)
{
	bool blank = true, comment = false;
	int64_t line = 1;
	size_t q = 0;

	for (size_t i = 0; i < l->n; i++) {
		char c = l->text[i];

		while (q < l->n_quoted && l->quoted[q].to <= i)
			q++;
		if (c == '\n') {
			line++;
			comment = false;
		} else if (!comment && (q == l->n_quoted || i < l->quoted[q].from)) {
			if (c == '\t')
				return line;
			comment = c == '#' && blank;
		}
		blank = c == '\n' || c == '\r' || c == ' ';
	}
	return 0;
}

/* "  gpus:2" in the line at text: its key, the colon behind it not counted; 0: it has none, or a
 *    blank behind the colon. */
static size_t unspaced_key(const char *text, size_t n, size_t *ret_indent)
{
	static const char word[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	size_t indent = 0, key = 0;

	while (indent < n && text[indent] == ' ')
		indent++;
	while (indent + key < n && strchr(word, text[indent + key]) && text[indent + key])
		key++;
	size_t colon = indent + key;

	*ret_indent = indent;
	return colon + 1 < n && text[colon] == ':' && !strchr(" \t\r\n/:", text[colon + 1]) ? key
											    : 0;
}

/* The most usual reason for a line that is no YAML, at that line. */
static bool report_unspaced(const char *text, size_t n, int64_t line, struct recipe_errors *errors)
{
	size_t at = 0, indent;

	for (int64_t i = 1; i < line && at < n; i++) {
		const char *end = memchr(text + at, '\n', n - at);

		at = end ? (size_t)(end - text) + 1 : n;
	}
	const char *end = memchr(text + at, '\n', n - at);
	size_t len = end ? (size_t)(end - text) - at : n - at,
	       key = unspaced_key(text + at, len, &indent);

	if (!key)
		return false;
	const char *rest = text + at + indent + key + 1;
	_cleanup_(mo_freep) char *hint =
		mo_printf("write '%.*s: %.*s'", (int)MO_MIN(key, 60), text + at + indent,
			  (int)MO_MIN(len - indent - key - 1, 60), rest);

	errors_place(errors, line, (int64_t)indent + 1, hint,
		     "not valid YAML: a blank is missing behind the colon");
	return true;
}

static void report_syntax(struct fy_diag *diag, const char *text, size_t n,
			  struct recipe_errors *errors)
{
	void *state = NULL;
	const struct fy_diag_error *e = fy_diag_errors_iterate(diag, &state);
	int64_t tab = yaml_tab_line(text, n);

	if (tab)
		errors_place(errors, tab, 1, "indent with spaces",
			     "a tab indents this line: YAML allows only spaces");
	else if (e && report_unspaced(text, n, MO_MAX(e->line, 1), errors))
		return;
	else if (e)
		errors_place(errors, MO_MAX(e->line, 1), MO_MAX(e->column, 1), NULL,
			     "not valid YAML: %s", e->msg);
	else
		errors_place(errors, 1, 1, NULL, "not valid YAML");
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
	struct loader l = {
		.text = text, .n = n, .errors = errors, .line = 1, .column = 1, .reader = reader
	};
	size_t before = errors->n;
	struct fy_diag_cfg diag_cfg;

	if (n > MO_RECIPE_BYTES_MAX) {
		errors_place(errors, 1, 1, NULL, "the %s is larger than %d bytes", what,
			     MO_RECIPE_BYTES_MAX);
		return NULL;
	}
	if (memchr(text, 0, n) || !mo_utf8_valid(text, n)) {
		yaml_report_byte(text, n, what, errors);
		return NULL;
	}
	if (yaml_refuse_costly(text, n, errors))
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
		report_syntax(diag, text, n, errors);
	else if (!root && errors->n == before)
		root = node_new(&l, YAML_MAP, 1, 1);
	if (fy_parser_get_stream_error(l.parser))
		root = ynode_free(root);
	int64_t tab = root && reader == READER_PYTHON ? stray_tab(&l) : 0;

	if (tab)
		errors_place(errors, tab, 1, "use spaces",
			     "a tab outside quotes: PyYAML, which reads this file, takes none "
			     "here");
	fy_parser_destroy(l.parser);
	fy_diag_destroy(diag);
	free(l.quoted);
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
