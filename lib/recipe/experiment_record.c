/* See experiment_record.h. Places and values are written as they are; what is read back comes
 * from a recipe's text, which anybody may have written, so nothing of it is believed. */
#include "lib/recipe/experiment_record.h"

#include <errno.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/yaml.h"

static void text_json(const char *s, struct mo_buf *b)
{
	const struct config_value v = { .kind = CONFIG_TEXT, .text = (char *)s };

	config_json(&v, b);
}

static void setter_json(const struct config_value *v, struct mo_buf *b)
{
	bool word = v->place.file < 0;

	mo_buf_str(b, "[");
	config_json(v, b);
	mo_buf_printf(b, ",%lld,%lld", (long long)(word ? -1 : v->place.file),
		      (long long)(word ? v->place.word : v->place.line));
	if (v->variable) {
		mo_buf_str(b, ",");
		text_json(v->variable, b);
	}
	mo_buf_str(b, "]");
}

/* Of the names, which are texts without places of their own: {NAME: [FILE, LINE]}. */
static void name_places_json(const struct experiment *x, struct mo_buf *b)
{
	mo_buf_str(b, ",\"named\":{");
	for (size_t i = 0, n = 0; x->names && i < x->names->n; i++) {
		const struct config_place *place = &x->names->items[i].value->place;

		if (place->file < 0)
			continue;
		mo_buf_str(b, n++ ? "," : "");
		text_json(x->names->items[i].key, b);
		mo_buf_printf(b, ":[%lld,%lld]", (long long)place->file, (long long)place->line);
	}
	mo_buf_str(b, "}");
}

char *experiment_pack(const struct experiment *x)
{
	struct mo_buf b = { 0 };
	struct config_item *items = NULL;
	size_t n = 0;

	mo_buf_str(&b, "{\"read\":[");
	for (size_t i = 0; i < x->n_files; i++) {
		mo_buf_str(&b, i ? "," : "");
		text_json(x->files[i], &b);
	}
	mo_buf_str(&b, "],\"framework\":");
	text_json(x->framework ? x->framework : "", &b);
	mo_buf_str(&b, ",\"module\":");
	text_json(x->module ? x->module : "", &b);
	mo_buf_str(&b, ",\"names\":");
	if (x->names)
		config_json(x->names, &b);
	else
		mo_buf_str(&b, "{}");
	name_places_json(x, &b);
	mo_buf_str(&b, ",\"keys\":[");
	config_items(x->merged, &items, &n);
	for (size_t i = 0; i < n; i++) {
		mo_buf_str(&b, i ? ",[" : "[");
		text_json(items[i].key, &b);
		for (const struct config_value *v = items[i].value; v; v = v->over) {
			mo_buf_str(&b, ",");
			setter_json(v, &b);
		}
		mo_buf_str(&b, "]");
	}
	config_items_free(items, n);
	mo_buf_str(&b, "]}");
	return mo_buf_take(&b);
}

static struct config_value *value_of(const struct ynode *n, struct config_place place)
{
	static const struct {
		const char *text;
		enum config_kind kind;
	} words[] = { { "null", CONFIG_NULL }, { "true", CONFIG_BOOL }, { "false", CONFIG_BOOL } };
	enum config_kind kind = n->kind == YAML_MAP    ? CONFIG_MAP
				: n->kind == YAML_LIST ? CONFIG_LIST
						       : CONFIG_TEXT;

	for (size_t i = 0; i < ELEMENTSOF(words) && kind == CONFIG_TEXT && n->plain; i++)
		if (mo_streq(n->text, words[i].text))
			kind = words[i].kind;
	bool text = n->kind == YAML_SCALAR && kind != CONFIG_NULL;
	struct config_value *v =
		kind == CONFIG_TEXT && n->plain ? config_number(n->text, place) : NULL;

	v = v ? v : config_value_new(kind, text ? n->text : NULL, place);

	for (size_t i = 0; i < n->n; i++) {
		struct config_value *item = value_of(n->items[i].value, place);

		if (kind == CONFIG_MAP)
			config_put(v, n->items[i].key->text, item);
		else
			config_append(v, item);
	}
	return v;
}

static bool whole_of(const struct ynode *list, size_t at, int64_t least, int64_t *ret)
{
	const struct ynode *n = at < list->n ? list->items[at].value : NULL;

	return n && n->kind == YAML_SCALAR && n->plain &&
	       mo_parse_i64(n->text, least, 1000000000, ret) == 0;
}

/* [VALUE, FILE, LINE, VARIABLE]; NULL: it is no such. */
static struct config_value *setter_of(const struct ynode *s, const struct experiment *x)
{
	struct config_place place = { -1, 0, -1 };
	const struct ynode *variable = s->kind == YAML_LIST && s->n > 3 ? s->items[3].value : NULL;
	int64_t line;

	if (s->kind != YAML_LIST || s->n > 4 || !whole_of(s, 1, -1, &place.file) ||
	    !whole_of(s, 2, place.file < 0 ? -1 : 0, &line) || place.file >= (int64_t)x->n_files ||
	    (variable && variable->kind != YAML_SCALAR))
		return NULL;
	*(place.file < 0 ? &place.word : &place.line) = line;
	struct config_value *v = value_of(s->items[0].value, place);

	if (variable)
		v->variable = mo_strdup(variable->text);
	return v;
}

/* "a.b" below maps; where a value stands in the way, by its whole name. Takes v. */
static int put(struct config_value *map, const char *path, struct config_value *v,
	       struct mo_error *err)
{
	struct config_value *at = map;
	const char *part = path;

	if (config_parts(path, strlen(path)) > CONFIG_DEPTH_MAX) {
		config_value_free(v);
		return mo_error_set(err, -EINVAL,
				    "experiment.result.keys: %.100s: more than %d parts", path,
				    CONFIG_DEPTH_MAX);
	}
	for (size_t n = strcspn(part, "."); part[n]; part += n + 1, n = strcspn(part, ".")) {
		_cleanup_(mo_freep) char *key = mo_strndup(part, n);
		struct config_value *below = config_get(at, key);

		if (!below)
			below = config_put(at, key, config_value_new(CONFIG_MAP, NULL, v->place))
					->value;
		if (below->kind != CONFIG_MAP) {
			config_put(map, path, v);
			return 0;
		}
		at = below;
	}
	config_put(at, part, v);
	return 0;
}

static bool is_row(const struct ynode *row)
{
	return row->kind == YAML_LIST && row->n > 1 && row->items[0].value->kind == YAML_SCALAR;
}

static int row_of(const struct ynode *row, struct experiment *x, struct mo_error *err)
{
	_cleanup_(config_value_freep) struct config_value *first = NULL;
	struct config_value **end = &first;
	bool good = is_row(row);

	/* Appended at the end that is known: somebody's row may have thousands. */
	for (size_t k = 1; good && k < row->n; k++) {
		*end = setter_of(row->items[k].value, x);
		good = *end;
		end = good ? &(*end)->over : end;
	}
	if (!good)
		return mo_error_set(err, -EINVAL,
				    "experiment.result.keys: expected [[key, [value, file, "
				    "line]]]");
	return put(x->merged, row->items[0].value->text, TAKE_PTR(first), err);
}

static bool are_texts(const struct ynode *n)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->items[i].value->kind != YAML_SCALAR)
			return false;
	return true;
}

/* {read, framework, module, names, keys} of the kinds that experiment_pack() writes. */
static bool is_result(const struct ynode *result)
{
	static const char *const texts[] = { "framework", "module" };
	const struct ynode *read = ynode_get(result, "read"), *keys = ynode_get(result, "keys");
	const struct ynode *names = ynode_get(result, "names");

	for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
		const struct ynode *n = ynode_get(result, texts[i]);

		if (n && n->kind != YAML_SCALAR)
			return false;
	}
	return read && read->kind == YAML_LIST && are_texts(read) && keys &&
	       keys->kind == YAML_LIST && (!names || (names->kind == YAML_MAP && are_texts(names)));
}

/* Of another form, or of an earlier version: they have none. */
static void place_names(const struct ynode *named, struct experiment *x)
{
	for (size_t i = 0; named && named->kind == YAML_MAP && i < x->names->n; i++) {
		const struct ynode *n = ynode_get(named, x->names->items[i].key);
		int64_t file, line;

		if (n && n->kind == YAML_LIST && whole_of(n, 0, 0, &file) &&
		    whole_of(n, 1, 0, &line) && file < (int64_t)x->n_files)
			x->names->items[i].value->place =
				(struct config_place){ .file = file, .line = line, .word = -1 };
	}
}

int experiment_unpack(const struct ynode *result, struct experiment *ret, struct mo_error *err)
{
	const struct ynode *read = ynode_get(result, "read"), *keys = ynode_get(result, "keys");
	const struct ynode *names = ynode_get(result, "names"), *w;
	const struct config_place nowhere = { -1, 0, -1 };

	*ret = (struct experiment){ 0 };
	if (!is_result(result))
		return mo_error_set(err, -EINVAL,
				    "experiment.result: expected {read: [file], keys: [..]} with "
				    "texts as framework, module and names");
	for (size_t i = 0; i < read->n; i++)
		mo_strs_add(&ret->files, &ret->n_files, read->items[i].value->text);
	ret->merged = config_value_new(CONFIG_MAP, NULL, nowhere);
	ret->names = names ? value_of(names, nowhere) : config_value_new(CONFIG_MAP, NULL, nowhere);
	place_names(ynode_get(result, "named"), ret);
	if ((w = ynode_get(result, "framework")))
		ret->framework = mo_strdup(w->text);
	if ((w = ynode_get(result, "module")))
		ret->module = mo_strdup(w->text);
	int r = 0;

	for (size_t i = 0; i < keys->n && r == 0; i++)
		r = row_of(keys->items[i].value, ret, err);
	if (r < 0)
		experiment_done(ret);
	return r;
}

const struct ynode *experiment_key(const struct ynode *root, const char *key)
{
	const struct ynode *keys = ynode_find(root, "experiment.result.keys");

	for (size_t i = 0; keys && keys->kind == YAML_LIST && i < keys->n; i++) {
		const struct ynode *row = keys->items[i].value;
		const struct ynode *setter = is_row(row) ? row->items[1].value : NULL;

		if (setter && mo_streq(row->items[0].value->text, key) &&
		    setter->kind == YAML_LIST && setter->n)
			return setter->items[0].value;
	}
	return NULL;
}

/* "crc32c:" and eight digits; 0 of anything else. */
static uint32_t crc_of(const struct ynode *hash)
{
	static const char digits[] = "0123456789abcdef", begins[] = "crc32c:";
	uint32_t crc = 0;

	if (!hash || hash->kind != YAML_SCALAR || !mo_starts_with(hash->text, begins))
		return 0;
	for (const char *s = hash->text + strlen(begins); *s; s++) {
		const char *digit = strchr(digits, *s);

		if (!digit)
			return 0;
		crc = crc << 4 | (uint32_t)(digit - digits);
	}
	return crc;
}

int experiment_of_tree(const struct ynode *root, struct experiment *ret, struct mo_error *err)
{
	const struct ynode *result = root ? ynode_find(root, "experiment.result") : NULL;

	*ret = (struct experiment){ 0 };
	if (!result)
		return -ENOENT;
	int r = experiment_unpack(result, ret, err);

	if (r == 0)
		ret->crc = crc_of(ynode_find(root, "experiment.files"));
	return r;
}

int experiment_of_text(const char *text, size_t n, struct experiment *ret, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(ynode_freep) struct ynode *root = yaml_load(text, n, "recipe", &errors);

	return experiment_of_tree(root, ret, err);
}
