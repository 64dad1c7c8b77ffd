/* See hooks.h. Called by moe-stepd for each line that engine.prepare prints on its standard
 * output, when the engine file says hooks: true. */
#include "agent/core/stepd/hooks.h"

#include <string.h>

void hooks_done(struct hooks *h)
{
	mo_vec_clear(&kv_desc, (void **)&h->env, &h->n_env);
	mo_vec_clear(&kv_desc, (void **)&h->extra, &h->n_extra);
}

/* NAME of a variable, or key of a flag (which may have dots and dashes, but begins with
 * neither). */
static bool name_valid(const char *s, size_t n, bool variable)
{
	for (size_t i = 0; i < n; i++) {
		char c = s[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_',
		     digit = c >= '0' && c <= '9';

		if (!letter && !(digit && i > 0) && (variable || i == 0 || (c != '.' && c != '-')))
			return false;
	}
	return n > 0 && n <= 128;
}

void hooks_line(struct hooks *h, const char *line, size_t n)
{
	bool variable = n > 4 && memcmp(line, "env.", 4) == 0,
	     extra = n > 6 && memcmp(line, "extra.", 6) == 0;
	size_t skip = variable ? 4 : 6;

	if (!variable && !extra)
		return;
	const char *eq = memchr(line, '=', n);
	size_t key = eq ? (size_t)(eq - line) - MO_MIN(skip, (size_t)(eq - line)) : 0;

	if (!eq || !name_valid(line + skip, key, variable) || memchr(line, 0, n) ||
	    (variable ? h->n_env : h->n_extra) >= HOOKS_MAX) {
		h->refused++;
		return;
	}
	struct kv *pair = variable ? MO_ADD(h, env, &kv_desc) : MO_ADD(h, extra, &kv_desc);

	pair->key = mo_strndup(line + skip, key);
	pair->value = mo_strndup(eq + 1, n - skip - key - 1);
}

/* Dashes in front and '_' for '-' make no difference. a may go on with "=...". */
static bool flag_same(const char *a, const char *b)
{
	a += strspn(a, "-");
	b += strspn(b, "-");
	for (; *a && *b && (*a == *b || (strchr("-_", *a) && strchr("-_", *b))); a++, b++)
		;
	return !*b && (!*a || *a == '=');
}

/* The engine's program takes a flag of that name for itself, so training would never see it. */
static bool is_main_word(const struct launch *l, const struct kv *extra)
{
	return main_word_is(l->main_words, l->n_main_words, extra->key);
}

/* Does the command end with this value for the flag? */
static bool on_command(const struct launch *l, const struct kv *extra)
{
	const char *value = NULL;
	bool itself = is_main_word(l, extra);

	for (size_t i = 0; i < l->n_argv; i++) {
		const char *word = l->argv[i], *eq = strchr(word, '=');

		if (itself && word[0] != '-' && eq && flag_same(word, extra->key))
			value = eq + 1;
		else if (!itself && word[0] == '-' && flag_same(word, extra->key))
			value = eq ? eq + 1
				: i + 1 < l->n_argv && (l->argv[i + 1][0] != '-' ||
							mo_streq(l->argv[i + 1], extra->value))
					? l->argv[i + 1]
					: "";
	}
	return mo_streq(value, extra->value);
}

/* Its key, or what looks like a flag where its value should be: --key --save=/x saves there when
 * key takes no value. */
static bool decides(const struct launch *l, const struct kv *extra, const char *flag)
{
	return (flag_same(extra->key, flag) && !on_command(l, extra)) ||
	       (*extra->value == '-' && flag_same(extra->value, flag));
}

char *hooks_refusal(const struct hooks *h, const struct launch *l)
{
	for (size_t i = 0; i < h->n_extra; i++)
		for (size_t k = 0; k < l->n_owned; k++)
			if (decides(l, &h->extra[i], l->owned[k].key))
				return mo_printf("printed extra.%s=%.200s, which is not its to "
						 "decide: %s; engine.args_unchecked: [%s] lets it "
						 "pass",
						 h->extra[i].key, h->extra[i].value,
						 l->owned[k].value ? l->owned[k].value
								   : "leave it out",
						 l->owned[k].key);
	return NULL;
}

void hooks_apply(const struct hooks *h, struct launch *l)
{
	for (size_t i = 0; i < h->n_env; i++) {
		struct env_item *item = MO_ADD(l, env, &env_item_desc);

		item->name = mo_strdup(h->env[i].key);
		item->value = mo_strdup(h->env[i].value);
		item->layer = ENV_FEATURE;
		item->source = mo_strdup("prepare");
		item->reason = mo_strdup("engine.prepare printed it on this node");
	}
	for (size_t i = 0; i < h->n_extra; i++) {
		bool itself = is_main_word(l, &h->extra[i]);
		_cleanup_(mo_freep) char *word =
			itself ? mo_printf("%s=%s", h->extra[i].key, h->extra[i].value)
			       : mo_printf("--%s", h->extra[i].key);

		if (on_command(l, &h->extra[i]))
			continue;
		mo_strs_add(&l->argv, &l->n_argv, word);
		if (*h->extra[i].value && !itself)
			mo_strs_add(&l->argv, &l->n_argv, h->extra[i].value);
	}
}
