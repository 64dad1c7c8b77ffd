/* See launch_options.h. */
#include "lib/recipe/launch_options.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/base/utf8.h"
#include "lib/recipe/launch_accelerate.h"
#include "lib/recipe/launch_tables.h"

#define WORDS_MAX 400 /* bytes of what is lost that are printed: the reason is printed whole */

void launch_lose(struct launch_line *l, const char *what, const char *value, const char *why)
{
	_cleanup_(mo_freep) char *text =
		mo_printf("%s%s%s", what, value ? " " : "", value ? value : "");
	bool cut = strlen(text) > WORDS_MAX;

	for (char *p = text; *p; p++)
		*p = *p == '\n' || *p == '\t' || *p == '\r' ? ' ' : *p;
	if (cut)
		text[mo_utf8_cut(text, WORDS_MAX)] = '\0';
	mo_strs_printf(&l->lost, &l->n_lost, "%s%s: %s", text, cut ? ".." : "", why);
	for (size_t i = 0; i + 1 < l->n_lost; i++)
		if (mo_streq(l->lost[i], l->lost[l->n_lost - 1])) {
			free(l->lost[--l->n_lost]);
			return;
		}
}

static size_t name_length(const char *word)
{
	size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");

	return n ? n + strspn(word + n,
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789")
		 : 0;
}

size_t launch_assigned(const char *word)
{
	size_t n = name_length(word);

	return n && word[n] == '=' ? n : 0;
}

void launch_env(struct launch_line *l, const char *name, size_t n, const char *value)
{
	struct kv *item = NULL;

	for (size_t i = 0; i < l->n_env && !item; i++)
		if (strlen(l->env[i].key) == n && !strncmp(l->env[i].key, name, n))
			item = &l->env[i];
	if (!item) {
		item = MO_ADD(l, env, &kv_desc);
		item->key = mo_strndup(name, n);
	}
	mo_str_set(&item->value, value);
}

bool launch_among(const char *names, const char *word, size_t n)
{
	for (const char *at = names; *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");

		if (len == n && !strncmp(at, word, n))
			return true;
		at += len;
	}
	return false;
}

static const struct launch_option *option_of(const struct launcher *p, const char *word, size_t n)
{
	for (size_t i = 0; i < p->n; i++)
		if (launch_among(p->options[i].names, word, n))
			return &p->options[i];
	return NULL;
}

/* Slurm's D-HH:MM:SS, HH:MM:SS, MM:SS, MM. */
static char *slurm_time(const char *text)
{
	int64_t days = 0, parts[3] = { 0 }, v;
	size_t n = 0;
	const char *dash = strchr(text, '-');
	_cleanup_(mo_freep) char *first = dash ? mo_strndup(text, (size_t)(dash - text)) : NULL;

	if (first && mo_parse_i64(first, 0, 3650, &days) < 0)
		return NULL;
	for (const char *at = dash ? dash + 1 : text; n < 3;) {
		size_t len = strcspn(at, ":");
		_cleanup_(mo_freep) char *part = mo_strndup(at, len);

		if (mo_parse_i64(part, 0, 1000000, &v) < 0)
			return NULL;
		parts[n++] = v;
		if (!at[len])
			break;
		at += len + 1;
	}
	if (dash || n == 3) /* hours first */
		v = (days * 24 + parts[0]) * 3600 + parts[1] * 60 + parts[2];
	else
		v = parts[0] * 60 + parts[1];
	return v ? mo_printf("%llds", (long long)v) : NULL;
}

/* "8", "gpu:8", "gpu:mi300x:8"; of "2:4" and "2-4" nodes, what it may shrink to, the most. */
static int64_t number_of(const char *text)
{
	const char *colon = strrchr(text, ':'), *dash = colon ? NULL : strrchr(text, '-');
	int64_t v;

	text = colon ? colon + 1 : dash && dash > text ? dash + 1 : text;
	return mo_parse_i64(text, 1, 1000000, &v) == 0 ? v : MO_NONE;
}

/* Of "gpu:mi300x:8(S:0-1),nvme:1" the 8; "gpu" is one. MO_NONE: no GPU is in it. */
static int64_t gres_of(const char *text)
{
	for (const char *p = text; *p; p += strspn(p, ",")) {
		size_t n = strcspn(p, ",");
		_cleanup_(mo_freep) char *item = mo_strndup(p, strcspn(p, ",("));
		bool gpu = mo_starts_with(item, "gpu") && (!item[3] || item[3] == ':');

		if (gpu)
			return number_of(item) != MO_NONE ? number_of(item) : 1;
		p += n;
	}
	return MO_NONE;
}

/* "gpu", "auto", or what only a shell on the node counts: `$(nvidia-smi -L | wc -l)`. */
static bool is_all(const char *value)
{
	return mo_streq(value, "gpu") || mo_streq(value, "auto") || strpbrk(value, "$`");
}

static int64_t commas(const char *text)
{
	int64_t n = 0;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

/* Where a number that is kept goes. */
static int64_t *number_place(struct launch_line *l, enum launch_keeps keeps)
{
	switch (keeps) {
	case KEEP_NODES: return &l->nodes;
	case KEEP_TASKS: return &l->tasks;
	case KEEP_TASKS_PER_NODE: return &l->tasks_per_node;
	default: return &l->total;
	}
}

/* n: the number in value, MO_NONE none. */
static bool keep_gpus(struct launch_line *l, const char *word, const char *value, int64_t n)
{
	l->per_node = n != MO_NONE ? n : LAUNCH_ALL;
	if (n != MO_NONE)
		return true;
	if (!is_all(value))
		return false;
	free(l->all);
	l->all = mo_printf("%s %s", word, value);
	return true;
}

/* Of "localhost:0,1" or "a:0,1@b:0,1" how many GPUs; a node without numbers has all of its own. */
static void keep_included(struct launch_line *l, const char *value)
{
	int64_t n = 0;

	for (const char *p = value; *p; p += strspn(p, "@")) {
		_cleanup_(mo_freep) char *part = mo_strndup(p, strcspn(p, "@"));
		const char *colon = strchr(part, ':');

		if (!colon)
			return;
		n += commas(colon) + 1;
		p += strlen(part);
	}
	l->total = n ? n : l->total;
}

static bool keep_text(struct launch_line *l, enum launch_keeps keeps, const char *value)
{
	size_t name = launch_assigned(value);

	switch (keeps) {
	case KEEP_CONFIG: mo_str_set(&l->accelerate_config, value); return true;
	case KEEP_DIR: mo_str_set(&l->dir, value); return true;
	case KEEP_NAME: mo_str_set(&l->name, value); return true;
	case KEEP_TIME:
		free(l->time_limit);
		l->time_limit = slurm_time(value);
		return l->time_limit != NULL;
	default:
		if (name)
			launch_env(l, value, name, value + name + 1);
		return name > 0;
	}
}

static const char *why_not(enum launch_keeps keeps, const char *value)
{
	return mo_streq(value, "cpu") ? "one process for each core; a rank of moectl has a GPU: "
					"--gpus N"
	       : keeps == KEEP_ENV    ? "it says no value: write NAME: VALUE into env"
				   : "it is no number, duration or NAME=VALUE that a recipe has: "
				     "write it in yourself";
}

/* value: NULL of an option that has none. */
static void keep(struct launch_line *l, const struct launch_option *o, const char *word,
		 const char *value)
{
	int64_t n = value ? number_of(value) : MO_NONE;
	bool retained = true;

	switch (o->keeps) {
	case KEEP_PAIR:
	case KEEP_SAME: break;
	case KEEP_ONE: l->total = 1; break;
	case KEEP_USE_ENV: l->use_env = true; break;
	case KEEP_GRES:
		l->per_node = gres_of(value) != MO_NONE ? gres_of(value) : l->per_node;
		break;
	case KEEP_GPUS: retained = keep_gpus(l, word, value, n); break;
	case KEEP_NODES:
	case KEEP_TASKS:
	case KEEP_TASKS_PER_NODE:
	case KEEP_TOTAL:
		retained = n != MO_NONE;
		*number_place(l, o->keeps) = retained ? n : *number_place(l, o->keeps);
		break;
	case KEEP_CONFIG:
	case KEEP_DIR:
	case KEEP_NAME:
	case KEEP_TIME:
	case KEEP_ENV: retained = keep_text(l, o->keeps, value); break;
	case KEEP_INCLUDED:
		launch_lose(l, word, value, o->why);
		keep_included(l, value);
		break;
	case KEEP_REPORTED:
		if (!launch_accelerate_word(l, word, value))
			launch_lose(l, word, value, o->why);
		break;
	default: launch_lose(l, word, value, o->why);
	}
	if (!retained)
		launch_lose(l, word, value, why_not(o->keeps, value));
}

static bool is_script(const char *word)
{
	size_t n = strlen(word);

	return strchr(word, '/') || (n > 3 && mo_streq(word + n - 3, ".py"));
}

void launch_options(struct launch_line *l, const struct launcher *p, char *const *words, size_t n,
		    size_t *at, bool *module)
{
	while (*at < n && words[*at][0] == '-') {
		const char *word = words[(*at)++], *eq = strchr(word, '='),
			   *value = eq ? eq + 1 : NULL;
		size_t len = eq ? (size_t)(eq - word) : strlen(word);
		const struct launch_option *o = option_of(p, word, len);

		if (mo_streq(word, "--"))
			return;
		if (!o && word[1] != '-' && len > 2 && (o = option_of(p, word, 2)) && o->valued) {
			value = word + 2; /* -N4 */
			len = 2;
		}
		if (o && o->valued && !value && *at < n)
			value = words[(*at)++];
		if (o && o->keeps == KEEP_PAIR && *at < n)
			(*at)++; /* transport of MPI, which no rank uses */
		_cleanup_(mo_freep) char *name = mo_strndup(word, len);
		/* what stands behind an unknown word is none of the program's */
		if (!o && !eq && *at + 1 < n && words[*at][0] != '-' && !is_script(words[*at]))
			value = words[(*at)++];
		if (!o || (o->valued && !value))
			launch_lose(l, word, o || eq ? NULL : value,
				    o ? "its value is missing"
				      : "moectl does not know this word of the launcher");
		else if (o->keeps == KEEP_MODULE)
			*module = true;
		else
			keep(l, o, name, value);
	}
}
