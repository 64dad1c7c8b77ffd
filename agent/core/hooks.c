/* See hooks.h. Called by moe-stepd for each line that engine.prepare prints on its standard output, when the engine file says hooks: true. */
#include "agent/core/hooks.h"

#include <string.h>

void hooks_done(struct hooks *h) {
	mo_vec_clear(&kv_desc, (void **)&h->env, &h->n_env);
	mo_vec_clear(&kv_desc, (void **)&h->extra, &h->n_extra);
}

/* NAME of a variable, or key of a flag (which may have dots and dashes, but begins with neither). */
static bool name_valid(const char *s, size_t n, bool variable) {
	for (size_t i = 0; i < n; i++) {
		char c = s[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_', digit = c >= '0' && c <= '9';

		if (!letter && !(digit && i > 0) && (variable || i == 0 || (c != '.' && c != '-')))
			return false;
	}
	return n > 0 && n <= 128;
}

void hooks_line(struct hooks *h, const char *line, size_t n) {
	bool variable = n > 4 && memcmp(line, "env.", 4) == 0, extra = n > 6 && memcmp(line, "extra.", 6) == 0;
	size_t skip = variable ? 4 : 6;

	if (!variable && !extra)
		return;
	const char *eq = memchr(line, '=', n);
	size_t key = eq ? (size_t)(eq - line) - MO_MIN(skip, (size_t)(eq - line)) : 0;

	if (!eq || !name_valid(line + skip, key, variable) || memchr(line, 0, n) || (variable ? h->n_env : h->n_extra) >= HOOKS_MAX) {
		h->refused++;
		return;
	}
	struct kv *pair = variable ? MO_ADD(h, env, &kv_desc) : MO_ADD(h, extra, &kv_desc);

	pair->key = mo_strndup(line + skip, key);
	pair->value = mo_strndup(eq + 1, n - skip - key - 1);
}

void hooks_apply(const struct hooks *h, struct launch *l) {
	for (size_t i = 0; i < h->n_env; i++) {
		struct env_item *item = MO_ADD(l, env, &env_item_desc);

		item->name = mo_strdup(h->env[i].key);
		item->value = mo_strdup(h->env[i].value);
		item->layer = ENV_FEATURE;
		item->source = mo_strdup("prepare");
		item->reason = mo_strdup("engine.prepare printed it on this node");
	}
	for (size_t i = 0; i < h->n_extra; i++) {
		_cleanup_(mo_freep) char *flag = mo_printf("--%s", h->extra[i].key);

		mo_strs_add(&l->argv, &l->n_argv, flag);
		if (*h->extra[i].value)
			mo_strs_add(&l->argv, &l->n_argv, h->extra[i].value);
	}
}
