/* One file of an experiment: YAML 1.1, then placeholders, then `extends`, as yaml_loader.py does
 * it: each file by itself before it is merged into another. */
#include "lib/recipe/experiment_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/desc.h"
#include "lib/model/limits.h"
#include "lib/recipe/config_toml.h"
#include "lib/recipe/experiment_scalar.h"
#include "lib/recipe/yaml.h"

char *experiment_path(const char *from, const char *path)
{
	const char *slash = from ? strrchr(from, '/') : NULL;
	_cleanup_(mo_freep) char *dir =
		mo_strndup(from ? from : "", slash ? (size_t)(slash - from) + 1 : 0);
	_cleanup_(mo_freep) char *whole = mo_printf("%s%s", *path == '/' ? "" : dir, path);
	struct mo_buf b = { 0 };

	for (const char *s = whole; *s;) {
		size_t n = strcspn(s, "/");
		const char *last = b.len ? strrchr(b.data, '/') : NULL;
		const char *part = last ? last + 1 : b.data;

		if (n == 2 && !strncmp(s, "..", 2) && b.len && strcmp(part, "..") != 0) {
			b.len = last ? (size_t)(last - b.data) : 0;
			b.data[b.len] = 0;
		} else if (n && !(n == 1 && *s == '.')) {
			mo_buf_str(&b, b.len || *whole == '/' ? "/" : "");
			mo_buf_add(&b, s, n);
		}
		s += n + (s[n] == '/');
	}
	if (!b.len)
		mo_buf_str(&b, *whole == '/' ? "/" : ".");
	return mo_buf_take(&b);
}

static struct config_value *convert(struct experiment_reader *r, const struct ynode *n,
				    struct config_place place);

/* Given twice: the last one stands. */
static void drop_earlier(struct experiment_reader *r, struct config_value *map, const char *key,
			 struct config_place place)
{
	struct config_value *earlier = config_take(map, key);

	if (earlier && r->out->n_repeats < EXPERIMENT_REPEATS_MAX)
		*MO_GROW(r->out->repeats, r->out->n_repeats) =
			(struct experiment_repeat){ mo_strdup(key), place, earlier->place.line };
	config_value_free(earlier);
}

static int convert_pair(struct experiment_reader *r, const struct ynode *key,
			const struct ynode *node, struct config_value *map)
{
	struct config_place place = map->place;
	_cleanup_(config_value_freep) struct config_value *kind = NULL;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	place.line = key->line;
	kind = experiment_yaml_value(key, place, &err);
	if (!kind)
		return experiment_error(r, place, NULL, "%s", mo_error_text(&err, -EINVAL));
	struct config_value *value = convert(r, node, place);

	if (!value)
		return -EINVAL;
	drop_earlier(r, map, key->text, place);
	config_put(map, key->text, value)->no_text = kind->kind != CONFIG_TEXT;
	return 0;
}

/* place: that of the key, whose line is the value's; items of lists have lines of their own. */
static struct config_value *convert(struct experiment_reader *r, const struct ynode *n,
				    struct config_place place)
{
	if (++r->values > CONFIG_VALUES_MAX) {
		experiment_error(r, place, NULL, "more than %d values in one experiment",
				 CONFIG_VALUES_MAX);
		return NULL;
	}
	if (n->kind == YAML_SCALAR)
		return experiment_scalar(r, n, place);
	_cleanup_(config_value_freep) struct config_value *v =
		config_value_new(n->kind == YAML_MAP ? CONFIG_MAP : CONFIG_LIST, NULL, place);

	for (size_t i = 0; i < n->n; i++) {
		const struct yitem *item = &n->items[i];

		if (item->key) {
			if (convert_pair(r, item->key, item->value, v) < 0)
				return NULL;
			continue;
		}
		struct config_place at = { place.file, item->value->line, -1 };
		struct config_value *value = convert(r, item->value, at);

		if (!value)
			return NULL;
		config_append(v, value);
	}
	return TAKE_PTR(v);
}

/* Is there nothing in the text but comments? */
static bool is_empty(const char *s)
{
	while (*s) {
		s += strspn(s, " \t\r\n");
		if (*s == '#')
			s += strcspn(s, "\n");
		else if (mo_starts_with(s, "---"))
			s += 3;
		else if (*s)
			return false;
	}
	return true;
}

/* Control characters, which PyYAML refuses wherever they stand, and Unicode's own ends of lines,
 * which end its comments and plain texts and not ours; 0: there are none. */
static int64_t control_line(const char *s)
{
	int64_t line = 1;

	for (; *s; s++) {
		if (*s == '\n')
			line++;
		else if (((unsigned char)*s < 0x20 && *s != '\t' && *s != '\r') || *s == 0x7f ||
			 (*s == '\xc2' && (unsigned char)s[1] < 0xa0) ||
			 mo_starts_with(s, "\xe2\x80\xa8") || mo_starts_with(s, "\xe2\x80\xa9"))
			return line;
	}
	return 0;
}

static struct config_value *parse_toml(struct experiment_reader *r, const char *text, size_t n,
				       struct config_place at)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct config_value *v = config_toml(text, n, at, &at.line, &err);

	if (!v)
		experiment_error(r, at, NULL, "%s", mo_error_text(&err, -EINVAL));
	return v;
}

static struct config_value *parse(struct experiment_reader *r, const char *text, size_t n,
				  struct config_place at)
{
	if (mo_streq(r->format, "toml"))
		return parse_toml(r, text, n, at);
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(ynode_freep) struct ynode *root =
		mo_streq(r->format, "json") ? yaml_load_repeats(text, n, "configuration", &errors)
					    : yaml_load_python(text, n, "configuration", &errors);

	if (!root || errors.n) {
		at.line = errors.n ? errors.items[0].line : 1;
		experiment_error(r, at, errors.n ? errors.items[0].hint : NULL, "%s",
				 errors.n ? mo_error_text(&errors.items[0], -EINVAL)
					  : "not valid YAML");
		return NULL;
	}
	if (root->kind != YAML_MAP || is_empty(text)) {
		at.line = root->line;
		experiment_error(r, at, NULL, "%s: a configuration is a mapping of keys to values",
				 is_empty(text) ? "the file is empty" : "no mapping");
		return NULL;
	}
	at.line = control_line(text);
	if (at.line) {
		experiment_error(r, at, "remove it", "a control character");
		return NULL;
	}
	at.line = root->line;
	return convert(r, root, at);
}

static int64_t file_index(struct experiment *out, const char *path)
{
	for (size_t i = 0; i < out->n_files; i++)
		if (mo_streq(out->files[i], path))
			return (int64_t)i;
	mo_strs_add(&out->files, &out->n_files, path);
	return (int64_t)out->n_files - 1;
}

static struct config_value *read_one(struct experiment_reader *r, const char *path, const char *by,
				     struct config_place from, struct config_place at,
				     int *ret_errno)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int e = r->world->read(r->world->arg, path, MO_RECIPE_BYTES_MAX, &text);

	if (ret_errno)
		*ret_errno = e == -EFBIG ? -EINVAL : e;
	if (e < 0 && e != -EFBIG) {
		experiment_error(r, from, NULL, "%s: %s: %s", by, path,
				 e == -ENOENT ? "no such file" : strerror(-e));
		return NULL;
	}
	if (e == -EFBIG || text.len > MO_RECIPE_BYTES_MAX) {
		at.line = 1;
		experiment_error(r, at, NULL, "larger than %d kB: it is no configuration",
				 MO_RECIPE_BYTES_MAX / 1024);
		return NULL;
	}
	r->out->crc = mo_crc32c(mo_crc32c(r->out->crc, path, strlen(path)), text.data, text.len);
	return parse(r, text.data ? text.data : "", text.len, at);
}

struct config_value *experiment_load_as(struct experiment_reader *r, const char *path,
					const char *format, struct config_place from,
					int *ret_errno)
{
	struct config_place at = { .file = file_index(r->out, path), .line = 1, .word = -1 };

	r->format = format;
	return read_one(r, path, "the configuration", from, at, ret_errno);
}

static int extend(struct experiment_reader *r, const char *path, const struct config_value *name,
		  struct config_value *into)
{
	if (name->kind != CONFIG_TEXT)
		return experiment_error(r, name->place, NULL,
					"extends: expected the name of a file, got %s",
					config_kind_names[name->kind]);
	_cleanup_(mo_freep) char *file = experiment_path(path, name->text);
	struct config_value *base = experiment_load(r, file, "extends", name->place, NULL);

	if (!base)
		return -EINVAL;
	config_merge(into, base);
	if (into->n > CONFIG_KEYS_MAX)
		return experiment_error(r, name->place, NULL, "more than %d keys in one map",
					CONFIG_KEYS_MAX);
	return 0;
}

/* What the file extends, in its order, and the file above it. Takes v. */
static struct config_value *extended(struct experiment_reader *r, const char *path,
				     struct config_value *v)
{
	_cleanup_(config_value_freep) struct config_value *own = v;
	_cleanup_(config_value_freep) struct config_value *names = config_take(own, "extends");

	if (!names)
		return TAKE_PTR(own);
	_cleanup_(config_value_freep) struct config_value *merged =
		config_value_new(CONFIG_MAP, NULL, own->place);

	if (names->kind != CONFIG_LIST && extend(r, path, names, merged) < 0)
		return NULL;
	for (size_t i = 0; names->kind == CONFIG_LIST && i < names->n; i++)
		if (extend(r, path, names->items[i].value, merged) < 0)
			return NULL;
	config_merge(merged, TAKE_PTR(own));
	return TAKE_PTR(merged);
}

struct config_value *experiment_load(struct experiment_reader *r, const char *path, const char *by,
				     struct config_place from, int *ret_errno)
{
	if (ret_errno)
		*ret_errno = -EINVAL;
	for (size_t i = 0; i < r->depth; i++)
		if (mo_streq(r->stack[i], path)) {
			experiment_error(r, from, "remove one of them",
					 "%s: %s: the files extend each other in a circle", by,
					 path);
			return NULL;
		}
	if (r->depth >= ELEMENTSOF(r->stack) || ++r->reads > EXPERIMENT_FILES_MAX) {
		experiment_error(r, from, NULL,
				 "%s: %s: more than %d files, or %d that extend each other", by,
				 path, EXPERIMENT_FILES_MAX, CONFIG_DEPTH_MAX);
		return NULL;
	}
	struct config_place at = { .file = file_index(r->out, path), .line = 1, .word = -1 };

	r->stack[r->depth++] = path;
	struct config_value *v = read_one(r, path, by, from, at, ret_errno);

	if (v)
		v = extended(r, path, v);
	r->depth--;
	return v;
}
