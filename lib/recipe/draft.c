/* See draft.h. */
#include "lib/recipe/draft.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/rules_keys.h"

void draft_init(struct draft *d)
{
	*d = (struct draft){ .gpus = MO_NONE };
}

void draft_done(struct draft *d)
{
	char **const texts[] = { &d->kind,   &d->name, &d->workdir,    &d->entry,
				 &d->python, &d->gpu,  &d->time_limit, &d->loads };

	for (size_t i = 0; i < ELEMENTSOF(texts); i++)
		mo_str_set(texts[i], NULL);
	mo_strs_clear(&d->args, &d->n_args);
	mo_strs_clear(&d->lost, &d->n_lost);
	mo_vec_clear(&kv_desc, (void **)&d->values, &d->n_values);
	mo_vec_clear(&kv_desc, (void **)&d->said, &d->n_said);
	mo_vec_clear(&kv_desc, (void **)&d->env, &d->n_env);
	*d = (struct draft){ 0 };
}

const char *draft_value(const struct draft *d, const char *path)
{
	for (size_t i = 0; i < d->n_values; i++)
		if (mo_streq(d->values[i].key, path))
			return d->values[i].value;
	return NULL;
}

void draft_set(struct draft *d, const char *path, const char *value)
{
	struct kv *item = NULL;

	for (size_t i = 0; i < d->n_values && !item; i++)
		if (mo_streq(d->values[i].key, path))
			item = &d->values[i];
	if (!item) {
		item = MO_ADD(d, values, &kv_desc);
		item->key = mo_strdup(path);
	}
	mo_str_set(&item->value, value);
}

/* ---- words as flags ---- */

static bool is_flag(const char *word)
{
	double number;

	return word[0] == '-' && word[1] && mo_parse_double(word, &number) < 0;
}

/* A k=v word, as Primus and MaxText take them. To Primus one with '-' is a key, too. */
static size_t bare_key(const char *word)
{
	size_t n =
		strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return n && word[n] == '=' ? n : 0;
}

void word_flags_read(char *const *words, size_t n, struct word_flags *ret)
{
	struct word_flag *f = NULL;

	*ret = (struct word_flags){ 0 };
	for (size_t i = 0; i < n; i++) {
		size_t dashes = strspn(words[i], "-"), bare = bare_key(words[i]), len;
		bool flag = is_flag(words[i]);

		if (!flag && !bare && f) {
			mo_strs_add(&f->values, &f->n, words[i]);
			f->to = i + 1;
			continue;
		}
		f = MO_GROW(ret->items, ret->n);
		*f = (struct word_flag){ .from = i, .to = i + 1 };
		if (!flag && !bare) {
			mo_strs_add(&f->values, &f->n, words[i]);
			continue;
		}
		dashes = flag ? dashes : 0;
		len = strcspn(words[i] + dashes, "=");
		f->name = mo_strndup(words[i] + dashes, len);
		if (words[i][dashes + len])
			mo_strs_add(&f->values, &f->n, words[i] + dashes + len + 1);
		if (bare && !flag)
			f = NULL; /* what follows it is not its value */
	}
}

void word_flags_done(struct word_flags *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->items[i].name);
		mo_strs_clear(&f->items[i].values, &f->items[i].n);
	}
	free(f->items);
	*f = (struct word_flags){ 0 };
}

const struct word_flag *word_flags_find(const struct word_flags *f, const char *name)
{
	for (size_t i = f->n; name && i > 0; i--)
		if (f->items[i - 1].name && mo_streq(f->items[i - 1].name, name))
			return &f->items[i - 1];
	return NULL;
}

char *word_flag_text(const struct word_flag *f)
{
	struct mo_buf b = { 0 };

	if (f->name)
		mo_buf_printf(&b, "--%s", f->name);
	for (size_t i = 0; i < f->n; i++)
		mo_buf_printf(&b, "%s%s", b.len ? " " : "", f->values[i]);
	mo_buf_add(&b, "", 1);
	return mo_buf_take(&b);
}

bool word_flag_same(const struct word_flag *a, const struct word_flag *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		double x = 0, y = 0;
		bool numbers = mo_parse_double(a->values[i], &x) == 0 &&
			       mo_parse_double(b->values[i], &y) == 0;

		if (numbers ? x != y : strcmp(a->values[i], b->values[i]) != 0)
			return false;
	}
	return true;
}

/* ---- which engine ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file itself, or one below some directory. */
static bool is_file(const char *word, const char *path)
{
	size_t n = strlen(word), m = strlen(path);

	return n >= m && mo_streq(word + n - m, path) && (n == m || word[n - m - 1] == '/');
}

/* A module of the template by the name that newer trees have; what starts it finds either. */
static bool is_module(const struct engine *e, const char *word, const char *want)
{
	const struct engine_checks *c = e->checks;

	for (size_t i = 0; c && i < c->n_module_names; i++)
		if (mo_streq(want, c->module_names[i].key) &&
		    mo_streq(word, c->module_names[i].value))
			return true;
	return is_file(word, want);
}

static bool says_otherwise(const struct launch_line *l, const char *word)
{
	size_t n = strcspn(word, "=") + 1;

	for (size_t i = 0; i < l->n_program; i++)
		if (!strncmp(l->program[i], word, n) && strcmp(l->program[i], word) != 0)
			return true;
	return false;
}

/* How many words of the program the engine's template has, 0 = it is another program. */
static size_t fits(const struct launch_line *l, const struct engine *e, int *ret_entry)
{
	size_t at = 0;

	*ret_entry = -1;
	for (size_t i = 1; i < e->n_argv; i++) {
		const char *want = e->argv[i], *word = at < l->n_program ? l->program[at] : NULL;
		bool entry = mo_streq(want, "{entry}");

		if (mo_streq(want, "{args}") || mo_streq(want, "{argv}") ||
		    mo_starts_with(want, "--"))
			break;
		/* a program of ours, which starts the module behind it */
		if (*want == '/' && i + 1 < e->n_argv && mo_streq(e->argv[i + 1], "-m"))
			continue;
		/* hardware=gpu: said anywhere, or left out, but not otherwise */
		if (strchr(want, '=') && !(word && mo_streq(word, want))) {
			if (says_otherwise(l, want))
				return 0;
			continue;
		}
		if (!word)
			return 0;
		if (entry && mo_streq(word, "-m"))
			return 0; /* a module is no script */
		if (entry && at == 0 &&
		    (!e->entry || !mo_streq(base_name(word), base_name(e->entry))) &&
		    !mo_streq(l->launcher, e->kind))
			return 0;
		if (entry)
			*ret_entry = (int)at;
		else if (!strchr(want, '=') && !is_module(e, word, want))
			return 0;
		at++;
	}
	return at;
}

const char *draft_kind(const struct launch_line *l, char *const *kinds, size_t n_kinds,
		       size_t *ret_used, int *ret_entry)
{
	const char *best = NULL;

	*ret_used = 0;
	*ret_entry = -1;
	for (size_t i = 0; i < n_kinds; i++) {
		struct engine e;
		int entry = -1;

		mo_desc_init(&engine_desc, &e);
		size_t n = engine_load(kinds[i], &e, NULL) == 0 ? fits(l, &e, &entry) : 0;
		mo_desc_done(&engine_desc, &e);
		/* names come in no order */
		if (n > *ret_used || (n && n == *ret_used && strcmp(kinds[i], best) < 0)) {
			*ret_used = n;
			*ret_entry = entry;
			best = kinds[i];
		}
	}
	return best;
}

/* ---- rows of the engine file, backwards ---- */

struct row {
	char *path, *operand;
	struct word_flags flags;
	char **words;
	size_t n_words;
};

static void row_done(struct row *r)
{
	word_flags_done(&r->flags);
	mo_strs_clear(&r->words, &r->n_words);
	free(r->path);
	free(r->operand);
}

/* False: a row that is not read backwards. */
static bool row_read(const struct kv *flag, struct row *r)
{
	static const char *const paths[] = { "engine.entry", "parallelism.", "batch.",   "steps",
					     "checkpoint.",  "precision",    "recompute" };
	size_t whole = strcspn(flag->key, " "), n = strcspn(flag->key, "=> ");
	bool wanted = false;

	*r = (struct row){ 0 };
	for (size_t i = 0; i < ELEMENTSOF(paths); i++)
		wanted |= mo_starts_with(flag->key, paths[i]);
	if (!wanted || flag->key[n] == '>' || strstr(flag->value, "{derived."))
		return false;
	r->path = mo_strndup(flag->key, n);
	r->operand = flag->key[n] == '=' ? mo_strndup(flag->key + n + 1, whole - n - 1) : NULL;
	for (const char *p = flag->value; *p; p += strspn(p, " ")) {
		size_t len = strcspn(p, " ");
		_cleanup_(mo_freep) char *word = mo_strndup(p, len);

		mo_strs_add(&r->words, &r->n_words, word);
		p += len;
	}
	/* `path: --flag`: the value is its own word behind it */
	if (!r->operand && !strchr(flag->value, '{')) {
		_cleanup_(mo_freep) char *hole = mo_printf("{%s}", r->path);
		mo_strs_add(&r->words, &r->n_words, hole);
	}
	word_flags_read(r->words, r->n_words, &r->flags);
	return r->flags.n > 0;
}

static bool is_hole(const char *word)
{
	return word[0] == '{' && word[strlen(word) - 1] == '}';
}

/* enable_checkpointing=false: who says that does not mean the row that switches it on. */
static bool is_switched(const struct word_flag *want, const struct word_flag *have)
{
	return want->n == 1 && have->n == 1 && strcasecmp(want->values[0], "true") == 0 &&
	       strcasecmp(have->values[0], "false") == 0;
}

/* The value that the words give the row's path; NULL = they do not say it so. */
static const char *row_value(const struct row *r, const struct word_flags *words)
{
	const char *value = r->operand;

	for (size_t i = 0; i < r->flags.n; i++) {
		const struct word_flag *want = &r->flags.items[i],
				       *have = word_flags_find(words, want->name);
		bool hole = want->n == 1 && is_hole(want->values[0]);

		if (!have && (hole || r->operand))
			return NULL;
		if (have && hole && (have->n != 1 || (value && !mo_streq(value, have->values[0]))))
			return NULL;
		if (have && hole)
			value = have->values[0];
		else if (have && (r->operand || is_switched(want, have)) &&
			 !word_flag_same(want, have))
			return NULL;
	}
	return value;
}

static void keep_words(struct draft *d, const struct row *r, const struct word_flag *f)
{
	struct kv *last = d->n_said ? &d->said[d->n_said - 1] : NULL;
	_cleanup_(mo_freep) char *text = word_flag_text(f);

	if (!mo_streq(last ? last->key : NULL, r->path)) {
		last = MO_ADD(d, said, &kv_desc);
		last->key = mo_strdup(r->path);
	}
	char *all =
		mo_printf("%s%s%s", last->value ? last->value : "", last->value ? " " : "", text);

	free(last->value);
	last->value = all;
}

/* Marks the words that the row stands for. What else of its flags was given otherwise moectl
 * decides. */
static void consume(struct draft *d, const struct row *r, const struct word_flags *words,
		    bool *used)
{
	for (size_t i = 0; i < r->flags.n; i++) {
		const struct word_flag *want = &r->flags.items[i];
		bool hole = want->n == 1 && is_hole(want->values[0]);

		for (size_t k = 0; k < words->n; k++) {
			const struct word_flag *have = &words->items[k];

			if (!have->name || !mo_streq(have->name, want->name))
				continue;
			if (!hole && !word_flag_same(want, have)) {
				_cleanup_(mo_freep) char *was = word_flag_text(have),
							 *is = word_flag_text(want);
				draft_lose(d, "%s: moectl says %s with %s", was, is, r->path);
			}
			memset(used + have->from, true, have->to - have->from);
			keep_words(d, r, have);
		}
	}
}

/* Of several rows with words of their own the one that says most counts. */
static void read_rows(struct draft *d, const struct engine *e, const struct word_flags *words,
		      bool *used)
{
	for (size_t i = 0; i < e->n_flags; i++) {
		struct row row, best = { 0 };
		const char *value = NULL, *best_value = NULL;

		if (!row_read(&e->flags[i], &row)) {
			row_done(&row);
			continue;
		}
		/* a micro-batch of the recipe changes what a rank takes at once, too: the word
		 * stays as it is */
		if (draft_value(d, row.path) ||
		    (mo_streq(row.path, "batch.micro") && rules_tells(e, "derived.pass_batch"))) {
			row_done(&row);
			continue;
		}
		for (size_t k = i; k < e->n_flags; k++) {
			struct row other;

			value = row_read(&e->flags[k], &other) && mo_streq(other.path, row.path)
					? row_value(&other, words)
					: NULL;
			if (value && other.flags.n > best.flags.n) {
				row_done(&best);
				best = other;
				best_value = value;
			} else {
				row_done(&other);
			}
		}
		if (best_value) {
			if (mo_streq(best.path, "engine.entry"))
				mo_str_set(&d->entry, best_value);
			else
				draft_set(d, best.path, best_value);
			consume(d, &best, words, used);
		}
		row_done(&best);
		row_done(&row);
	}
}

static const char *owned_by(const struct engine *e, const char *name)
{
	for (size_t i = 0; i < e->n_owned; i++)
		if (mo_streq(e->owned[i].key, name))
			return e->owned[i].value;
	return NULL;
}

/* The flag that tells the engine from where it resumes; NULL = it has none. */
static const char *load_flag(const struct engine *e)
{
	for (size_t i = 1; i < e->n_resume; i++)
		if (mo_streq(e->resume[i], "{dir}"))
			return e->resume[i - 1] + strspn(e->resume[i - 1], "-");
	return NULL;
}

/* By their text, both from the same directory: ck, ./ck and ck/ are one. */
static bool same_path(const char *a, const char *b)
{
	_cleanup_(mo_freep) char *x = mo_printf("/%s", a ? a : ""), *y = mo_printf("/%s", b);
	_cleanup_(mo_freep) char *clean_x = mo_path_clean(x), *clean_y = mo_path_clean(y);

	return a && (*a == '/') == (*b == '/') && mo_streq(clean_x, clean_y);
}

/* A job resumes from where it saves: the original's own load is that, or it is said. */
static void lose_load(struct draft *d, const struct word_flag *f, const char *why)
{
	_cleanup_(mo_freep) char *text = word_flag_text(f);
	const char *dir = draft_value(d, "checkpoint.dir"), *from = f->n == 1 ? f->values[0] : "";

	if (same_path(dir, from))
		mo_str_set(&d->loads, text);
	else if (dir)
		draft_lose(d, "%s: a job resumes from where it saves, which is %s: %s", text, dir,
			   why);
	else
		draft_lose(d,
			   "%s: a job resumes from where it saves, and the original saves nothing: "
			   "%s",
			   text, why);
}

/* Words with '-' for '_', which do nothing in the original. As Primus takes words: `--key`
 * takes the next one unless that begins with "--". */
static void drop_unread(struct draft *d, const struct engine *e)
{
	char **left = NULL;
	size_t n_left = 0;

	for (size_t i = 0, next; i < d->n_args; i = next) {
		const char *word = d->args[i], *name = word + strspn(word, "-");
		const char *value = strchr(word, '='), *meant = NULL;

		next = i + 1;
		if (value) {
			value++;
		} else if (mo_starts_with(word, "--") && next < d->n_args &&
			   !mo_starts_with(d->args[next], "--")) {
			value = d->args[next++];
		}
		if (strchr(word, '=') || mo_starts_with(word, "--"))
			meant = rules_dropped(e, word);
		for (size_t k = i; !meant && k < next; k++)
			mo_strs_add(&left, &n_left, d->args[k]);
		if (meant)
			draft_lose(d,
				   "--%.*s%s%s: Primus does not know it and drops it; %s is the "
				   "key",
				   (int)strcspn(name, "="), name, value ? " " : "",
				   value ? value : "", meant);
	}
	mo_strs_clear(&d->args, &d->n_args);
	d->args = left;
	d->n_args = n_left;
}

void draft_values(struct draft *d, const struct engine *e)
{
	if (e->experiment)
		drop_unread(d, e);

	struct word_flags words;
	_cleanup_(mo_freep) bool *used = mo_alloc_array(d->n_args + 1, sizeof(*used));
	char **left = NULL;
	size_t n_left = 0;

	word_flags_read(d->args, d->n_args, &words);
	read_rows(d, e, &words, used);
	for (size_t i = 0; i < words.n; i++) {
		const struct word_flag *f = &words.items[i];
		const char *why = f->name ? owned_by(e, f->name) : NULL;

		if (!why && f->name && d->args[f->from][0] == '-' &&
		    engine_takes_itself(e, d->args[f->from]))
			why = "the engine's program takes this word for itself, and training never "
			      "saw it; as key=value it reaches it";
		if (!why || used[f->from])
			continue;
		if (mo_streq(f->name, load_flag(e))) {
			lose_load(d, f, why);
		} else {
			_cleanup_(mo_freep) char *text = word_flag_text(f);
			draft_lose(d, "%s: %s", text, why);
		}
		memset(used + f->from, true, f->to - f->from);
	}
	for (size_t i = 0; i < d->n_args; i++)
		if (!used[i])
			mo_strs_add(&left, &n_left, d->args[i]);
	word_flags_done(&words);
	mo_strs_clear(&d->args, &d->n_args);
	d->args = left;
	d->n_args = n_left;
}

/* ---- the text ---- */

/* Always one YAML scalar that reads back as this text. plain: numbers and words may stand
 * without quotes. */
static void scalar(const char *text, bool plain, struct mo_buf *b)
{
	static const char safe[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
	static const char *const words[] = {
		"true", "false", "null", "yes", "no", "on", "off", "~"
	};
	double number;

	plain &= *text && !text[strspn(text, safe)] && text[0] != '-' &&
		 text[strlen(text) - 1] != '-';
	if (!plain && *text && !text[strspn(text, safe)] && (text[0] != '-' || text[1] == '-')) {
		plain = mo_parse_double(text, &number) < 0 && text[0] != '.' && text[0] != '+' &&
			!strchr("0123456789", text[0]) && (text[0] != '-' || strlen(text) > 3);
		for (size_t i = 0; i < ELEMENTSOF(words); i++)
			plain &= strcasecmp(text, words[i]) != 0;
	}
	if (plain) {
		mo_buf_str(b, text);
		return;
	}
	mo_buf_str(b, "\"");
	for (const char *p = text; *p; p++)
		if (*p == '"' || *p == '\\')
			mo_buf_printf(b, "\\%c", *p);
		else if ((unsigned char)*p < 0x20 || *p == 0x7f)
			mo_buf_printf(b, "\\x%02x", (unsigned char)*p);
		else
			mo_buf_add(b, p, 1);
	mo_buf_str(b, "\"");
}

static void line(const char *key, const char *value, struct mo_buf *b)
{
	if (!value)
		return;
	mo_buf_printf(b, "%s: ", key);
	scalar(value, false, b);
	mo_buf_str(b, "\n");
}

/* One flag and its values on a line. */
static void args_text(const struct draft *d, struct mo_buf *b)
{
	if (d->n_args)
		mo_buf_printf(b, "  %s:\n", mo_streq(d->kind, "command") ? "argv" : "args");
	for (size_t i = 0; i < d->n_args; i++) {
		mo_buf_str(b, "    - ");
		scalar(d->args[i], false, b);
		mo_buf_str(b, "\n");
	}
}

/* "parallelism: {tp: 2, pp: 4}"; paths without a dot are lines of their own. */
static void values_text(const struct draft *d, struct mo_buf *b)
{
	static const char *const groups[] = { "parallelism", "batch", "checkpoint" };

	for (size_t g = 0; g < ELEMENTSOF(groups); g++) {
		size_t n = 0, len = strlen(groups[g]);

		for (size_t i = 0; i < d->n_values; i++) {
			const char *key = d->values[i].key;

			if (!mo_starts_with(key, groups[g]) || key[len] != '.')
				continue;
			if (n++ == 0)
				mo_buf_printf(b, "%s: {", groups[g]);
			mo_buf_printf(b, "%s%s: ", n > 1 ? ", " : "", key + len + 1);
			scalar(d->values[i].value, true, b);
		}
		mo_buf_str(b, n ? "}\n" : "");
	}
	for (size_t i = 0; i < d->n_values; i++)
		if (!strchr(d->values[i].key, '.')) {
			mo_buf_printf(b, "%s: ", d->values[i].key);
			scalar(d->values[i].value, true, b);
			mo_buf_str(b, "\n");
		}
}

char *draft_text(const struct draft *d, char *const *comments, size_t n_comments)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < n_comments; i++) {
		mo_buf_str(&b, "# ");
		for (const char *p = comments[i]; *p; p++)
			mo_buf_add(&b, (unsigned char)*p < 0x20 || *p == 0x7f ? "?" : p, 1);
		mo_buf_str(&b, "\n");
	}
	mo_buf_str(&b, "recipe: 1\n");
	line("name", d->name, &b);
	mo_buf_str(&b, "engine:\n");
	line("  kind", d->kind, &b);
	line("  workdir", d->workdir, &b);
	line("  entry", d->entry, &b);
	line("  python", d->python, &b);
	args_text(d, &b);
	mo_buf_printf(&b, "cluster: {gpus: %lld%s%s}\n", (long long)d->gpus,
		      d->gpu ? ", gpu: " : "", d->gpu ? d->gpu : "");
	values_text(d, &b);
	if (d->n_env)
		mo_buf_str(&b, "env:\n");
	for (size_t i = 0; i < d->n_env; i++) {
		mo_buf_printf(&b, "  %s: ", d->env[i].key);
		scalar(d->env[i].value ? d->env[i].value : "", false, &b);
		mo_buf_str(&b, "\n");
	}
	line("time_limit", d->time_limit, &b);
	return mo_buf_take(&b);
}
