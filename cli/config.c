/* explain config: what the engine will really be configured with, and who said it: of a recipe by the files that lie here, of a job by
 * what its record keeps. Both give the same document, so people see both in the same form. */
#include "cli/config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/experiment.h"
#include "cli/output.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/wire/json.h"

static char *source_text(struct json_object *source)
{
	_cleanup_(mo_freep) char *text = NULL;

	if (js_str(source, "file"))
		text = mo_printf("%s:%lld", js_str(source, "file"),
				 (long long)js_int(source, "line"));
	else if (js_str(source, "recipe"))
		text = mo_printf("recipe %s", js_str(source, "recipe"));
	else
		text = mo_strdup(js_str(source, "moectl") ? js_str(source, "moectl") : "?");
	return visible(text);
}

static char *value_text(struct json_object *o)
{
	struct json_object *v = NULL;

	json_object_object_get_ex(o, "value", &v);
	return visible(json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN |
								 JSON_C_TO_STRING_NOSLASHESCAPE));
}

static void print_item(const struct cli *cli, struct json_object *item)
{
	_cleanup_(mo_freep) char *key = visible(js_str(item, "key")), *value = value_text(item);
	_cleanup_(mo_freep) char *source = source_text(js_get(item, "source"));
	struct json_object *over = js_get(item, "overrides"), *forced = js_get(item, "forced");

	printf("%s = %s    %s", paint(cli, "1", key), value, source);
	if (js_str(item, "variable"))
		printf(", by the variable %s", js_str(item, "variable"));
	printf("\n");
	if (forced) {
		_cleanup_(mo_freep) char *later = value_text(forced);
		_cleanup_(mo_freep) char *why = source_text(js_get(forced, "source"));

		printf("    becomes %s    %s\n", later, why);
	}
	for (size_t i = 0; i < js_len(over); i++) {
		_cleanup_(mo_freep) char *was = value_text(js_at(over, i));
		_cleanup_(mo_freep) char *from = source_text(js_get(js_at(over, i), "source"));

		printf("    instead of %s    %s\n", was, from);
	}
}

static void print_items(const struct cli *cli, struct json_object *doc)
{
	struct json_object *items = js_items(doc);

	struct json_object *unread = js_get(doc, "unread");

	for (size_t i = 0; i < js_len(unread); i++) {
		_cleanup_(mo_freep) char *file = visible(json_object_get_string(js_at(unread, i)));

		fprintf(stderr, "moectl: explain: not read: %s\n", file);
	}
	if (js_str(doc, "defaults"))
		fprintf(stderr, "moectl: explain: %s\n", js_str(doc, "defaults"));
	for (size_t i = 0; i < js_len(items); i++)
		print_item(cli, js_at(items, i));
}

static int no_key(const char *what, const char *key)
{
	return cli_fail(CLI_NOT_FOUND, "%s: no key '%s' in its configuration", what, key);
}

static int of_recipe(struct cli *cli, const char *file, const char *key, struct recipe_input *in)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	size_t n = 0;
	int r = recipe_input_read(in, file);

	in->explaining = true;
	if (r || (r = recipe_input_check(cli, in)))
		return r;
	if (!in->engine.experiment && !in->engine.config_words)
		return cli_fail(CLI_USAGE,
				"%s: engine %s has no configuration file that moectl reads; "
				"`moectl submit --dry-run` shows its command",
				in->file, in->recipe.engine.kind);
	r = experiment_explain(in, key, &b, &n, &err);
	if (r < 0)
		return cli_fail_error(r == -EINVAL ? CLI_USAGE : CLI_FAILED, in->file, &err, r);
	if (cli->json) {
		puts(b.data);
		return n || !key ? CLI_OK : no_key(in->file, key);
	}
	struct json_object *doc = NULL;

	r = wire_parse(b.data, b.len, &doc, &err);
	if (r < 0)
		return cli_fail_error(CLI_FAILED, in->file, &err, r);
	print_items(cli, doc);
	json_object_put(doc);
	return n || !key ? CLI_OK : no_key(in->file, key);
}

static int of_job(struct cli *cli, const char *job, const char *key)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL, *quoted = key ? url_quote(key) : NULL;
	int r = client_job(cli, job, &id);

	if (r)
		return r;
	r = client_get(cli, id, &a, "/v1/jobs/%s/config%s%s", id, key ? "?key=" : "",
		       key ? quoted : "");
	if (r)
		return r;
	if (cli->json)
		print_answer(&a);
	else
		print_items(cli, a.doc);
	return js_len(js_items(a.doc)) || !key ? CLI_OK : no_key(id, key);
}

/* A file that is there, or a word that is no name of a job. */
static bool is_recipe(const char *what)
{
	const char *dot = strrchr(what, '.');

	return mo_streq(what, "-") || strchr(what, '/') || mo_streq(dot, ".yaml") ||
	       mo_streq(dot, ".yml") || mo_streq(dot, ".json") ||
	       (!is_job_id(what) && access(what, F_OK) == 0);
}

int explain_config(struct cli *cli, const char *what, const char *key, struct recipe_input *in)
{
	if (is_recipe(what))
		return of_recipe(cli, what, key, in);
	if (in->n_sets)
		return cli_misuse(cli, "--set belongs to a recipe: the configuration of a job is "
				       "what it was launched with");
	return of_job(cli, what, key);
}
