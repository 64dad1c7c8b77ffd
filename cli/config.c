/* explain config: what the engine will really be configured with, and who said it: of a recipe
 * by the files that lie here, of a job by what its record keeps. Both give the same document, so
 * people see both in the same form. */
#include "cli/config.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/experiment.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "cli/recipe_check.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/plan/plan_desc.h"
#include "lib/wire/parse.h"

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

/* key NULL: all; controllers of before send all whatever the key is. */
static void print_names(const struct cli *cli, struct json_object *names, const char *wanted)
{
	if (!names)
		return;
	json_object_object_foreach(names, name, value) {
		if (wanted && !mo_streq(wanted, name))
			continue;
		_cleanup_(mo_freep) char *key = visible(name);
		_cleanup_(mo_freep) char *shown = visible(
			json_object_to_json_string_ext(value,
						       JSON_C_TO_STRING_PLAIN |
							       JSON_C_TO_STRING_NOSLASHESCAPE));

		printf("%s = %s    of the run's own directory\n", paint(cli, "1", key), shown);
	}
}

static void print_items(const struct cli *cli, struct json_object *doc, const char *key)
{
	struct json_object *items = js_items(doc);

	struct json_object *unread = js_get(doc, "unread");

	for (size_t i = 0; i < js_len(unread); i++) {
		_cleanup_(mo_freep) char *file = visible(json_object_get_string(js_at(unread, i)));

		fprintf(stderr, "moectl: explain: not read: %s\n", file);
	}
	if (js_str(doc, "defaults"))
		fprintf(stderr, "moectl: explain: %s\n", js_str(doc, "defaults"));
	print_names(cli, js_get(doc, "names"), key);
	for (size_t i = 0; i < js_len(items); i++)
		print_item(cli, js_at(items, i));
}

static bool has_key(struct json_object *doc, const char *key)
{
	struct json_object *names = js_get(doc, "names");

	return js_len(js_items(doc)) || (names && json_object_object_get_ex(names, key, NULL));
}

static int no_key(const char *what, const char *key, struct json_object *doc)
{
	struct json_object *like = js_get(doc, "like");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t i = 0; i < js_len(like) && js_len(like) > 1; i++)
		mo_buf_printf(&b, "%s%s", i ? ", " : "; there are ",
			      json_object_get_string(js_at(like, i)));
	if (js_len(like) == 1)
		mo_buf_printf(&b, "; did you mean '%s'?", json_object_get_string(js_at(like, 0)));
	_cleanup_(mo_freep) char *meant = visible(b.data ? b.data : "");

	return cli_fail(CLI_NOT_FOUND,
			"%s: no key '%s' in its files and its command%s%s`moectl explain config "
			"%s` lists all",
			what, key, meant, js_len(like) == 1 ? " " : "; ", what);
}

/* What `parallelism: auto` leaves open is chosen as for a dry run. Returns why that cannot be (the
 * caller's), NULL: it is chosen, or nothing is open. */
static char *choose(struct recipe_input *in)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf sets = { 0 };
	struct plan_doc doc;

	if (!in->recipe.parallelism.automatic)
		return NULL;
	mo_desc_init(&plan_doc_desc, &doc);
	int r = planning_choose(in, &doc, &err);

	mo_desc_done(&plan_doc_desc, &doc);
	/* what --set says belongs to the command that decides */
	for (size_t i = 0; i < in->n_sets; i++)
		if (!in->sets[i].name)
			mo_buf_printf(&sets, " --set %s=%s", in->sets[i].key, in->sets[i].value);
	_cleanup_(mo_freep) char *words = visible(sets.data ? sets.data : "");

	if (r < 0 && !in->recipe.gpu)
		return mo_printf("cluster.gpu is not given; `moectl plan %s%s --gpu mi300x` shows "
				 "what would be chosen for that",
				 in->file, words);
	if (r < 0)
		return mo_printf("%s; `moectl plan %s%s` says more", mo_error_text(&err, r),
				 in->file, words);
	fprintf(stderr,
		"moectl: explain: the sharding is what `moectl plan %s%s` chooses; a controller "
		"plans again, by what it has measured\n",
		in->file, words);
	return NULL;
}

/* What stops a submit of what was shown, as the list `errors`: the caller's. */
static struct json_object *errors_of(const struct recipe_input *in)
{
	struct json_object *list = recipe_errors_json(&in->failed);
	const struct recipe_errors beside = { .items = (struct mo_error *)&in->refusal, .n = 1 };

	if (in->refusal.text) {
		struct json_object *one = recipe_errors_json(&beside);

		json_object_array_add(list, json_object_get(js_at(one, 0)));
		json_object_put(one);
	}
	return list;
}

static int refusals(const struct recipe_input *in, bool shown)
{
	struct json_object *doc;

	if (!recipe_input_refused(in))
		return CLI_OK;
	doc = json_object_new_object();
	json_object_object_add(doc, "errors", recipe_errors_json(&in->failed));
	visible_json(doc);
	fflush(stdout);
	if (shown)
		fputs("moectl: explain: that is what the recipe and its files say; a submit of it "
		      "is refused:\n",
		      stderr);
	problem_print_recipe(doc, in->file);
	json_object_put(doc);
	if (in->refusal.text)
		cli_fail_error(CLI_USAGE, in->file, &in->refusal, -EINVAL);
	return CLI_USAGE;
}

static int of_recipe(struct cli *cli, const char *file, const char *key, struct recipe_input *in)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	size_t n = 0;
	int r = recipe_input_read(in, file);

	in->explaining = true; /* what fails a rule is shown: whoever mends it needs to see it */
	if (r || (r = recipe_input_check(cli, in)))
		return r;
	if (!in->engine.experiment && !in->engine.config_words)
		return refusals(in, false)
			       ? CLI_USAGE
			       : cli_fail(CLI_FAILED,
					  "%s: of engine %s no configuration is read: it lies in "
					  "what the command starts; `moectl submit %s --dry-run` "
					  "shows the command and its variables",
					  in->file, in->recipe.engine.kind, in->file);
	_cleanup_(mo_freep) char *undecided = choose(in);

	r = experiment_explain(in, key, undecided, &b, &n, &err);
	if (r < 0) {
		bool refused = refusals(in, false) != CLI_OK;

		return cli_fail_error(refused || r == -EINVAL ? CLI_USAGE : CLI_FAILED, in->file,
				      &err, r);
	}
	struct json_object *doc = NULL;

	r = wire_parse(b.data, b.len, &doc, &err);
	if (r < 0)
		return cli_fail_error(CLI_FAILED, in->file, &err, r);
	if (recipe_input_refused(in))
		json_object_object_add(doc, "errors", errors_of(in));
	if (cli->json && recipe_input_refused(in))
		print_json_doc(doc);
	else if (cli->json)
		puts(b.data);
	else
		print_items(cli, doc, key);
	r = refusals(in, !cli->json);
	if (!r && key && !n)
		r = no_key(in->file, key, doc);
	json_object_put(doc);
	return r;
}

/* Two trees: the submit's and the node's. What trains is what the node has. */
static void print_read(struct json_object *doc)
{
	struct json_object *read = js_get(doc, "read");

	if (!read || !json_object_get_boolean(js_get(read, "differs")))
		return;
	_cleanup_(mo_freep) char *node = visible(text_or(js_str(read, "node")));

	fprintf(stderr,
		"moectl: explain: the files on %s (%s) are not those that the submit read (%s): "
		"shown is what %s has, which is what trains\n",
		node, text_or(js_str(read, "hash")), text_or(js_str(read, "submit")), node);
}

static int of_job(struct cli *cli, const char *job, const char *key)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL, *quoted = key ? url_quote(key) : NULL;
	int r = client_job_or_file(cli, job, &id);

	if (r)
		return r;
	r = client_get(cli, id, &a, "/v1/jobs/%s/config%s%s", id, key ? "?key=" : "",
		       key ? quoted : "");
	if (r)
		return r;
	if (cli->json) {
		print_answer(&a);
	} else {
		print_read(a.doc);
		print_items(cli, a.doc, key);
	}
	return !key || has_key(a.doc, key) ? CLI_OK : no_key(id, key, a.doc);
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
