/* What an engine's own keys take, by the lists of its engine file (`types`, `names`, `keys`):
 * words of engine.args that its parser refuses are errors. What its files say is a warning: many a
 * loader takes a value of another type as it stands, and ends by it, or does not, in the middle
 * of its work. */
#include "lib/recipe/rules_types.h"

#include <string.h>
#include <strings.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/args.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/experiment_record.h"
#include "lib/recipe/experiment_values.h"

#define REPORTED_MAX 10
#define UNCHECKED "engine.args_unchecked: [FLAG] lets it pass"
#define DIGITS "0123456789"

/* "a b c" or "a|b|c" as a list of its own. */
struct words {
	char **items;
	size_t n;
};

static void words_done(struct words *w)
{
	mo_strs_clear(&w->items, &w->n);
}

static struct words words_of(const char *text, const char *between)
{
	struct words w = { 0 };

	for (const char *s = text + strspn(text, between); *s; s += strspn(s, between)) {
		size_t n = strcspn(s, between);
		_cleanup_(mo_freep) char *word = mo_strndup(s, n);

		mo_strs_add(&w.items, &w.n, word);
		s += n;
	}
	return w;
}

static const char *near_word(const struct words *w, const char *text)
{
	return mo_near_miss(text, (const char *const *)w->items, w->n);
}

static bool has_word(const struct words *w, const char *text)
{
	return mo_enum_parse((const char *const *)w->items, w->n, text) >= 0;
}

const char *rules_type(const struct engine_checks *c, const char *key)
{
	for (size_t i = 0; i < c->n_types; i++)
		for (const char *s = c->types[i].value; *s; s += strspn(s, " \n")) {
			size_t n = strcspn(s, " \n");

			if (flag_same(key, s, n))
				return c->types[i].key;
			s += n;
		}
	return NULL;
}

/* A whole number as Python's int() reads it. */
static bool is_int(const char *s)
{
	s += strspn(s, " ");
	s += *s == '-' || *s == '+';
	for (size_t n; (n = strspn(s, DIGITS));) {
		s += n;
		if (*s != '_' || !strchr(DIGITS, s[1]) || !s[1])
			return !s[strspn(s, " ")];
		s++;
	}
	return false;
}

/* Any number that Python's float() may read. */
static bool is_float(const char *s)
{
	static const char *const names[] = { "inf", "infinity", "nan" };
	const char *name = s + (*s == '-' || *s == '+');
	_cleanup_(mo_freep) char *plain = mo_strdup(s);
	char *end = plain;
	double v;

	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		if (!strcasecmp(name, names[i]))
			return true;
	for (s += strspn(s, " +"); *s; s++)
		if (*s != '_')
			*end++ = *s;
	*end = '\0';
	return mo_parse_double(plain, &v) == 0;
}

/* Does the engine's parser take the word? None stands for nothing where it may. */
static bool word_fits(const char *type, const char *text)
{
	if (mo_streq(type, "bool"))
		return !text;
	if (!text)
		return false;
	if (mo_streq(text, "None") || strchr(text, '{'))
		return true;
	if (mo_streq(type, "int"))
		return is_int(text);
	if (mo_streq(type, "float"))
		return is_float(text);
	_cleanup_(words_done) struct words w = words_of(type, "|");

	return has_word(&w, text);
}

static char *expected(const char *type)
{
	if (mo_streq(type, "bool"))
		return mo_strdup("true or false");
	if (mo_streq(type, "int") || mo_streq(type, "float"))
		return mo_strdup(mo_streq(type, "int") ? "a whole number" : "a number");
	_cleanup_(words_done) struct words w = words_of(type, "|");
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < w.n; i++)
		mo_buf_printf(&b, "%s%s", !i ? "" : i + 1 < w.n ? ", " : " or ", w.items[i]);
	return mo_buf_take(&b);
}

/* A bool is a flag without a word, which a mapping says by true; the flag that says no has "no-"
 * before the last part of its name. */
static char *expected_word(const struct rules *k, const char *type, const struct arg *arg)
{
	const struct ynode *args = ynode_find(k->root, "engine.args");
	const char *flag = arg->flag + strspn(arg->flag, "-"), *dot = strrchr(flag, '.');
	const char *name = dot ? dot + 1 : flag;
	_cleanup_(mo_freep) char *want = expected(type);

	if (!mo_streq(type, "bool") || k->engine->bool_words)
		return mo_printf("%s here", want);
	if (args && args->kind == YAML_MAP)
		return mo_printf("%s here, in lower case, without quotes", want);
	return mo_printf("no word here: --%s, or --%.*sno-%s", flag, (int)(name - flag), flag,
			 name);
}

static const char *source_of(const struct rules *k)
{
	const struct engine_checks *c = k->engine->checks;

	return c->keys_source ? c->keys_source : k->engine->source;
}

/* "torchtitan v0.2.2 (2026-02-20)" */
static char *version_of(const struct rules *k)
{
	const char *source = source_of(k);

	return mo_strndup(source, strcspn(source, ","));
}

/* A word of braces for which the recipe has no value: that is reported by itself. */
static bool is_unfilled(const struct arg *arg)
{
	return arg->value && !*arg->value && strchr(arg->at_value->text, '{');
}

static void check_word(struct rules *k, const struct arg *arg)
{
	const char *type = rules_type(k->engine->checks, arg->flag);

	if (!type || is_unfilled(arg) || (arg->off && !k->engine->bool_words) ||
	    word_fits(type, arg->value) || rules_unchecked(k, arg->flag) ||
	    rules_said(k, arg->at_value) || rules_said(k, arg->at_flag))
		return;
	_cleanup_(words_done) struct words w = words_of(type, "|");
	const char *near = arg->value ? near_word(&w, arg->value) : NULL;
	_cleanup_(mo_freep) char *version = version_of(k);
	_cleanup_(mo_freep) char *want = expected_word(k, type, arg);
	_cleanup_(mo_freep) char *hint =
		near ? mo_printf("did you mean '%s'? " UNCHECKED, near) : mo_strdup(UNCHECKED);

	errors_at(k->errors, arg->at_value, hint, "engine.args: %s%s%.60s: %s takes %s", arg->flag,
		  arg->value ? " " : "", arg->value ? arg->value : "", version, want);
}

static bool is_kind(const struct config_value *v, const char *type, bool texts_only)
{
	bool number = v->kind == CONFIG_INT || v->kind == CONFIG_REAL;

	if (v->kind == CONFIG_NULL || v->kind == CONFIG_DATE)
		return true;
	if (texts_only && v->kind != CONFIG_TEXT)
		return true;
	if (mo_streq(type, "bool"))
		return texts_only || v->kind == CONFIG_BOOL;
	/* Numbers in quotes are reported where the files are read. */
	if (mo_streq(type, "int") || mo_streq(type, "float"))
		return number || (texts_only && (is_float(v->text) || mo_streq(v->text, "None")));
	_cleanup_(words_done) struct words w = words_of(type, "|");

	return v->text && has_word(&w, v->text);
}

static const struct config_value *of_files(const struct config_value *v)
{
	return v->place.file >= 0 ? v : NULL;
}

/* A place that errors and warnings begin with: FILE:LINE: KEY. */
struct file_place {
	struct ynode node;
	char *text;
};

static struct file_place place_of(const struct experiment *x, const struct config_value *v,
				  const char *key)
{
	_cleanup_(mo_freep) char *where = experiment_place(x, v->place);
	char *text = mo_printf("%s: %s", where, key);

	return (struct file_place){ { .left = true, .set = text }, text };
}

static void file_place_done(struct file_place *p)
{
	free(p->text);
}

/* What the engine's files say of a typed key. An experiment's loader hands on what words say as
 * well. */
static void check_value(struct rules *k, const struct experiment *x, const struct config_item *item,
			size_t *reported)
{
	const struct config_value *v = item->value;
	bool own = k->engine->experiment;
	const char *type = of_files(v) || own ? rules_type(k->engine->checks, item->key) : NULL;

	if (!type || is_kind(v, type, own) || ++*reported > REPORTED_MAX)
		return;
	_cleanup_(file_place_done) struct file_place at = place_of(x, v, item->key);
	_cleanup_(words_done) struct words w = words_of(type, "|");
	const char *near = v->text ? near_word(&w, v->text) : NULL;
	_cleanup_(mo_freep) char *version = version_of(k), *want = expected(type);
	_cleanup_(mo_buf_done) struct mo_buf said = { 0 };

	if (rules_said(k, &at.node))
		return;
	config_json(v, &said);
	rules_warn(k, &at.node, "%.60s: %s takes %s here, and may end by anything else%s%s%s",
		   said.data, version, want, near ? "; did you mean '" : "", near ? near : "",
		   near ? "'?" : "");
}

/* ~NAME: in any case. */
static bool is_name(const struct words *w, const char *text)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->items[i][0] == '~' ? !strcasecmp(w->items[i] + 1, text)
					  : !strcmp(w->items[i], text))
			return true;
	return false;
}

static void check_name(struct rules *k, const struct experiment *x, const struct words *w,
		       const char *key, const struct config_value *v)
{
	if (v->kind != CONFIG_TEXT || is_name(w, v->text))
		return;
	_cleanup_(file_place_done) struct file_place at = place_of(x, v, key);
	_cleanup_(mo_freep) char *version = version_of(k);
	_cleanup_(mo_buf_done) struct mo_buf names = { 0 };
	const char *near = near_word(w, v->text);
	const struct ynode *args = PLACE(k, "engine.args", "engine");

	for (size_t i = 0; i < w->n; i++)
		mo_buf_printf(&names, "%s%s", i ? ", " : "", w->items[i] + (w->items[i][0] == '~'));
	rules_warn(k, of_files(v) ? &at.node : args, "%s%s'%.60s' is none of those of %s: %s%s%s",
		   of_files(v) ? "" : key, of_files(v) ? "" : ": ", v->text, version,
		   near ? "did you mean '" : "", near ? near + (*near == '~') : names.data,
		   near ? "'?" : "");
}

/* "KEY if CONDITIONS": the names that its code has; a tree of the user's may have more. */
static void check_names(struct rules *k, const struct experiment *x)
{
	const struct engine_checks *c = k->engine->checks;

	for (size_t i = 0; i < c->n_names; i++) {
		const char *on = strstr(c->names[i].key, " if ");
		_cleanup_(mo_freep) char *key =
			mo_strndup(c->names[i].key,
				   on ? (size_t)(on - c->names[i].key) : strlen(c->names[i].key));
		const struct config_value *v = config_find(x->merged, key);

		if (!v || (on && !experiment_holds(x, on + strlen(" if "))))
			continue;
		_cleanup_(words_done) struct words w = words_of(c->names[i].value, " \n");

		check_name(k, x, &w, key, v);
		for (size_t n = 0; v->kind == CONFIG_LIST && n < v->n; n++)
			check_name(k, x, &w, key, v->items[n].value);
	}
}

static void check_files(struct rules *k, const struct experiment *x)
{
	struct config_item *items = NULL;
	size_t n = 0, reported = 0;

	config_items(x->merged, &items, &n);
	for (size_t i = 0; i < n; i++)
		check_value(k, x, &items[i], &reported);
	config_items_free(items, n);
	check_names(k, x);
}

void rules_types(struct rules *k)
{
	const struct engine_checks *c = k->engine->checks;
	struct experiment x;
	struct args args;

	if (!c || (!c->n_types && !c->n_names))
		return;
	bool read = experiment_of_tree(k->root, &x, NULL) >= 0;

	args_read(k, &args);
	if (!rules_extended(k, read ? x.merged : NULL)) {
		for (size_t i = 0; i < args.n && !k->engine->experiment; i++)
			check_word(k, &args.items[i]);
		if (read)
			check_files(k, &x);
	}
	args_done(&args);
	if (read)
		experiment_done(&x);
}
