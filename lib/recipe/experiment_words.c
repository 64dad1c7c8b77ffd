/* The words behind the program: Primus' main takes some for itself, also when they are cut
 * short, as argparse does; the rest are overrides (arg_utils.py, parse_cli_overrides). */
#include "lib/recipe/experiment_words.h"

#include <errno.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/recipe/config_scalar.h"

#define WORD_PARTS_MAX CONFIG_DEPTH_MAX /* a.b.c of a key */

enum own { OWN_CONFIG, OWN_OTHER, OWN_MAYBE, OWN_HELP, OWN_NONE, OWN_UNCLEAR };
static const struct {
	const char *word;
	enum own own;
} own_words[] = {
	{ "--config", OWN_CONFIG },
	{ "--exp", OWN_CONFIG },
	{ "--data_path", OWN_OTHER },
	{ "--export_config", OWN_OTHER },
	{ "--backend_path", OWN_MAYBE },
	{ "--help", OWN_HELP },
	{ "-h", OWN_HELP },
};

/* Which of its own words argparse sees in word[0..n): that word, or the only one that begins so. */
static enum own own_word(const char *word, size_t n)
{
	enum own found = OWN_NONE;

	for (size_t i = 0; i < ELEMENTSOF(own_words); i++)
		if (strlen(own_words[i].word) == n && !strncmp(own_words[i].word, word, n))
			return own_words[i].own;
	if (strncmp(word, "--", 2) != 0 || (n < 3 && !word[n])) /* `--=x` begins all of them */
		return OWN_NONE;
	for (size_t i = 0; i < ELEMENTSOF(own_words); i++)
		if (!strncmp(own_words[i].word, word, n))
			found = found == OWN_NONE ? own_words[i].own : OWN_UNCLEAR;
	return found;
}

/* Would argparse see an option here, and no value? */
static bool is_option(const char *word)
{
	if (*word != '-' || !word[1])
		return false;
	const char *digits = word + 1 + strspn(word + 1, "0123456789");

	if (*digits == '.')
		digits += 1 + strspn(digits + 1, "0123456789");
	return *digits && !strchr(word, ' ');
}

/* What is left when Primus' main took its own: indices into words. */
static int take_own(char *const *words, size_t n, struct experiment_words *ret, size_t *left,
		    size_t *n_left, struct mo_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const char *word = words[i];
		size_t length = strcspn(word, "=");
		enum own own = *word == '-' ? own_word(word, length) : OWN_NONE;
		const char *value = word[length] ? word + length + 1 : NULL;

		if (own == OWN_NONE) {
			left[(*n_left)++] = i;
			continue;
		}
		if (own == OWN_UNCLEAR)
			return mo_error_set(err, -EINVAL,
					    "the word %s: Primus has more than one option that "
					    "begins so",
					    word);
		if (own == OWN_HELP)
			return mo_error_set(err, -EINVAL,
					    "the word %s: Primus prints its help and ends", word);
		if (!value && i + 1 < n && !is_option(words[i + 1]))
			value = words[++i];
		if (!value && own != OWN_MAYBE)
			return mo_error_set(err, -EINVAL, "the word %s: a value must follow", word);
		if (own == OWN_CONFIG)
			ret->file = value;
	}
	return 0;
}

static char *stripped(const char *s, size_t n)
{
	static const char blank[] = " \t\r\n\f\v";

	while (n && strchr(blank, *s)) {
		s++;
		n--;
	}
	while (n && strchr(blank, s[n - 1]))
		n--;
	return mo_strndup(s, n);
}

/* One value into the map, through the maps that its dots name. */
static int give(struct config_value *map, const char *key, struct config_value *value,
		struct mo_error *err)
{
	_cleanup_(config_value_freep) struct config_value *v = value;
	const char *part = key;

	for (size_t depth = 0; depth < WORD_PARTS_MAX; depth++) {
		size_t n = strcspn(part, ".");
		_cleanup_(mo_freep) char *name = mo_strndup(part, n);
		struct config_value *there = config_get(map, name);

		if (!part[n]) {
			config_value_free(config_take(map, name));
			config_put(map, name, TAKE_PTR(v));
			return 0;
		}
		if (!there) {
			there = config_value_new(CONFIG_MAP, NULL, v->place);
			config_put(map, name, there);
		}
		if (there->kind != CONFIG_MAP)
			return mo_error_set(err, -EINVAL,
					    "the word %.100s: '%s' is no map, an earlier word gave "
					    "it a value",
					    key, name);
		map = there;
		part += n + 1;
	}
	return mo_error_set(err, -EINVAL, "the word %.100s: more than %d parts", key,
			    WORD_PARTS_MAX);
}

static int override(struct config_value *map, const char *key, const char *value, size_t at,
		    struct mo_error *err)
{
	const struct config_place place = { .file = -1, .word = (int64_t)at };
	_cleanup_(mo_freep) char *text = stripped(value, strlen(value));

	if (strlen(text) > CONFIG_TEXT_MAX || map->n >= CONFIG_KEYS_MAX)
		return mo_error_set(err, -EINVAL,
				    "the word %.60s: too many words, or one of more than %d bytes",
				    key, CONFIG_TEXT_MAX);
	struct config_value *v = config_word_value(text, place);
	const struct config_pair *bad = config_bad_key(v);

	if (bad) {
		mo_error_set(err, -EINVAL, "the word %.60s: the key %.60s is no text", key,
			     bad->key);
		config_value_free(v);
		return -EINVAL;
	}
	return give(map, key, v, err);
}

static const char *without_dashes(const char *s)
{
	return s + strspn(s, "-");
}

/* `k=v`, `--k v`, `--k`; what is none of them is skipped. */
static int overrides(char *const *words, const size_t *left, size_t n, struct config_value *map,
		     struct experiment *out, struct mo_error *err)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = left[i];
		_cleanup_(mo_freep) char *word = stripped(words[at], strlen(words[at]));
		const char *equals = strchr(word, '='),
			   *next = i + 1 < n ? words[left[i + 1]] : NULL;
		_cleanup_(mo_freep) char *key = NULL;
		int r = 0;

		if (!*word)
			continue;
		if (equals) {
			const char *begin =
				without_dashes(word) > equals ? equals : without_dashes(word);

			key = stripped(begin, (size_t)(equals - begin));
			r = override(map, key, equals + 1, at, err);
		} else if (mo_starts_with(word, "--")) {
			bool value = next && !mo_starts_with(next, "--");
			const char *begin = without_dashes(word);

			key = stripped(begin, strlen(begin));
			r = override(map, key, value ? next : "true", at, err);
			i += value;
		} else {
			mo_strs_add(&out->skipped, &out->n_skipped, word);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* Behind `train pretrain`; the module that it asks for. */
static size_t after_verb(char *const *words, size_t n, const char **ret_module)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(words[i], "pretrain") || !strcmp(words[i], "posttrain")) {
			*ret_module = words[i][1] == 'r' ? "pre_trainer" : "post_trainer";
			return i + 1;
		}
	*ret_module = "pre_trainer";
	return 0;
}

int experiment_words_read(char *const *words, size_t n, struct experiment_words *ret,
			  struct experiment *out, struct mo_error *err)
{
	_cleanup_(config_value_freep) struct config_value *map =
		config_value_new(CONFIG_MAP, NULL, (struct config_place){ .file = -1, .word = -1 });
	size_t begin = after_verb(words, n, &ret->module), n_left = 0;
	_cleanup_(mo_freep) size_t *left = mo_alloc_array(n + 1, sizeof(*left));
	int r = take_own(words + begin, n - begin, ret, left, &n_left, err);

	for (size_t i = 0; i < n_left; i++)
		left[i] += begin;
	if (r >= 0)
		r = overrides(words, left, n_left, map, out, err);
	ret->given = r >= 0 ? TAKE_PTR(map) : NULL;
	return r;
}

const char *experiment_file(char *const *words, size_t n)
{
	struct experiment_words w = { 0 };
	size_t begin = after_verb(words, n, &w.module), n_left = 0;
	_cleanup_(mo_freep) size_t *left = mo_alloc_array(n + 1, sizeof(*left));

	return take_own(words + begin, n - begin, &w, left, &n_left, NULL) < 0 ? NULL : w.file;
}
