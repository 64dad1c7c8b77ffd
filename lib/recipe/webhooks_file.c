/* See webhooks_file.h. What cannot work is refused here with its place: a pattern that no event
 * has, an address that would be sent in clear text, a key that is guessed. */
#include "lib/recipe/webhooks_file.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "lib/base/address.h"
#include "lib/base/parse.h"
#include "lib/base/secret.h"
#include "lib/model/event_type.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/schema.h"
#include "lib/recipe/schema_scalar.h"

#define WHAT "webhooks"
#define FILE_MAX (256u << 10)
#define URL_MAX 2048
#define SECRET_LEAST 16

static const char *const words_format[] = { "events", "text", "content", NULL };
_Static_assert(ELEMENTSOF(words_format) == _WEBHOOK_FORMAT_N + 1, "those of the model");

/* NULL: nothing is wrong with it. Its text is never repeated: it may be a secret. */
static const char *url_problem(const char *url)
{
	size_t scheme = mo_starts_with(url, "https://")  ? 8
			: mo_starts_with(url, "http://") ? 7
							 : 0;

	if (!scheme || !url[scheme] || strchr("/:?#", url[scheme]) ||
	    strcspn(url, "?#") < scheme + strcspn(url + scheme, "/"))
		return "url: expected https://HOST/PATH";
	if (strlen(url) > URL_MAX)
		return "url: longer than 2048 bytes";
	for (const char *p = url; *p; p++)
		if (*p <= ' ' || *p >= 0x7f)
			return "url: has a blank, a control character or one that is not ASCII: "
			       "write such as %20";
	if (memchr(url + scheme, '@', strcspn(url + scheme, "/?#")))
		return "url: has a user or password before its host: put what it needs behind the "
		       "host";
	if (mo_url_clear_text(url))
		return "url: http:// to another machine is sent in clear text: use https://, or a "
		       "relay on this machine";
	return NULL;
}

static void read_url(struct reader *r, const struct key *k, const struct ynode *v)
{
	char **to = (char **)((char *)r->bases[k->base] + k->offset);
	const char *problem = value_text(r, k->path, v, to) ? url_problem(*to) : NULL;

	if (problem)
		errors_at(r->errors, v, NULL, "%s", problem);
}

static void read_secret(struct reader *r, const struct key *k, const struct ynode *v)
{
	char **to = (char **)((char *)r->bases[k->base] + k->offset);

	if (v->kind != YAML_SCALAR || strlen(v->text) < SECRET_LEAST)
		errors_at(r->errors, v, NULL,
			  "secret: shorter than %d characters: `openssl rand -hex 32` makes one",
			  SECRET_LEAST);
	else
		*to = mo_strdup(v->text);
}

static bool some_type_matches(const char *pattern)
{
	for (int i = 0; i < _EVENT_TYPE_N; i++)
		if (fnmatch(pattern, event_type_names[i], 0) == 0)
			return true;
	return false;
}

static void read_types(struct reader *r, const struct key *k, const struct ynode *v)
{
	char ***to = (char ***)((char *)r->bases[k->base] + k->offset);
	size_t *n = (size_t *)((char *)r->bases[k->base] + k->count_offset);

	value_list(r, k->path, v, to, n);
	for (size_t i = 0; i < *n && i < v->n; i++) {
		if (some_type_matches((*to)[i]))
			continue;
		const char *near = mo_near_miss((*to)[i], event_type_names, _EVENT_TYPE_N);
		_cleanup_(mo_freep) char *hint = near ? mo_printf("did you mean '%s'?", near)
						      : mo_strdup("docs/events.md has them all");

		errors_at(r->errors, v->items[i].value, hint, "types: no event is a '%s'",
			  (*to)[i]);
	}
}

#define W(f, p, t, ...) \
	{ \
		.path = (p), .type = (t), .offset = offsetof(struct webhook, f), ##__VA_ARGS__ \
	}
static const struct key webhook_keys[] = {
	W(name, "name", KEY_NAME, .required = true),
	W(url, "url", KEY_CUSTOM, .read = read_url, .required = true),
	W(secret, "secret", KEY_CUSTOM, .read = read_secret),
	W(ca_file, "ca_file", KEY_PATH),
	W(types, "types", KEY_CUSTOM, .read = read_types,
	  .count_offset = offsetof(struct webhook, n_types)),
	W(jobs, "jobs", KEY_LIST, .count_offset = offsetof(struct webhook, n_jobs)),
	W(format, "format", KEY_ENUM, .words = words_format, .has_def = true),
};

static bool name_taken(const struct webhooks_file *f, const struct webhook *w)
{
	for (size_t i = 0; i < f->n_webhooks; i++)
		if (&f->webhooks[i] != w && mo_streq(f->webhooks[i].name, w->name))
			return w->name != NULL;
	return false;
}

static void read_webhook(struct reader *r, struct webhooks_file *f, const struct ynode *v)
{
	struct webhook *w = MO_ADD(f, webhooks, &webhook_desc);
	struct reader one = { .errors = r->errors,
			      .keys = webhook_keys,
			      .n_keys = ELEMENTSOF(webhook_keys),
			      .bases = { w } };

	schema_defaults(&one, "");
	if (v->kind != YAML_MAP) {
		errors_at(r->errors, v, NULL, WHAT ": expected {name, url, ...}");
		return;
	}
	schema_read(&one, "", v);
	if (name_taken(f, w))
		errors_at(r->errors, v, NULL, "name: there are two webhooks '%s'", w->name);
}

static void read_webhooks(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct webhooks_file *f = r->bases[k->base];

	if (v->kind != YAML_LIST)
		errors_at(r->errors, v, NULL, WHAT ": expected a list of {name, url, ...}");
	else if (v->n > WEBHOOKS_MAX)
		errors_at(r->errors, v, NULL, WHAT ": %zu of them, and %d is the most", v->n,
			  WEBHOOKS_MAX);
	else
		for (size_t i = 0; i < v->n; i++)
			read_webhook(r, f, v->items[i].value);
}

static const struct key file_keys[] = {
	{ .path = "webhooks", .type = KEY_CUSTOM, .read = read_webhooks, .required = true },
};

int webhooks_parse(const char *text, size_t n, struct webhooks_file *ret,
		   struct recipe_errors *errors)
{
	_cleanup_(ynode_freep) struct ynode *root = yaml_load(text, n, WHAT, errors);
	struct reader r = { .errors = errors,
			    .keys = file_keys,
			    .n_keys = ELEMENTSOF(file_keys),
			    .bases = { ret } };

	if (root && root->kind == YAML_MAP)
		schema_read(&r, "", root);
	else if (root)
		errors_at(errors, root, NULL, WHAT ": expected a mapping");
	return recipe_errors_finish(errors);
}

int webhooks_load(const char *path, struct webhooks_file *ret, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int r = mo_secret_read_file(path, FILE_MAX, &text, err);

	if (r < 0)
		return r;
	r = webhooks_parse(text.len ? text.data : "", text.len, ret, &errors);
	if (r < 0) {
		catalogue_fail(&errors, path, err);
		if (err)
			err->hint = mo_strdup(errors.items[0].hint);
	}
	return r;
}
