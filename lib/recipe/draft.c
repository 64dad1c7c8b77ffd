/* See draft.h. */
#include "lib/recipe/draft.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/recipe/argv.h"
#include "lib/recipe/rules_keys.h"
#include "lib/recipe/word_flags.h"

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

/* ---- which engine ---- */

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
