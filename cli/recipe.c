/* Recipe files on the command line (see recipe.h). */
#include "cli/recipe.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/visible.h"
#include "daemon/core/state/state.h"
#include "lib/base/fd.h"
#include "lib/model/limits.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/engine_words.h"
#include "lib/recipe/env_file.h"
#include "lib/recipe/env_layers.h"

void recipe_input_init(struct recipe_input *in)
{
	*in = (struct recipe_input){ 0 };
	mo_desc_init(&recipe_desc, &in->recipe);
	mo_desc_init(&engine_desc, &in->engine);
}

void recipe_input_done(struct recipe_input *in)
{
	for (size_t i = 0; i < in->n_sets; i++) {
		free(in->sets[i].key);
		free(in->sets[i].value);
		free(in->sets[i].name);
	}
	free(in->sets);
	for (size_t i = 0; i < in->n_warnings; i++)
		free(in->warnings[i]);
	free(in->warnings);
	free(in->experiment);
	free(in->no_model);
	free(in->unread);
	recipe_errors_done(&in->failed);
	mo_error_done(&in->refusal);
	mo_buf_done(&in->text);
	mo_desc_done(&recipe_desc, &in->recipe);
	mo_desc_done(&engine_desc, &in->engine);
}

int recipe_input_set(const struct cli *cli, struct recipe_input *in, const char *word)
{
	const char *eq = strchr(word, '=');
	if (!eq || eq == word)
		return cli_misuse(cli,
				  "--set %s is not of the form key=value, such as batch.micro=4",
				  word);
	struct recipe_set *s = MO_GROW(in->sets, in->n_sets);
	s->key = mo_strndup(word, (size_t)(eq - word));
	s->value = mo_strdup(eq + 1);
	return 0;
}

void recipe_input_option(struct recipe_input *in, const char *option, const char *key,
			 const char *value)
{
	*MO_GROW(in->sets, in->n_sets) = (struct recipe_set){ .key = mo_strdup(key),
							      .value = mo_strdup(value),
							      .name = mo_strdup(option) };
}

static int read_stdin(struct mo_buf *b)
{
	char piece[4096];
	ssize_t n;
	while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0) {
		mo_buf_add(b, piece, (size_t)n);
		if (b->len > MO_RECIPE_BYTES_MAX)
			return -EFBIG;
	}
	return n < 0 ? -errno : 0;
}

int recipe_input_read(struct recipe_input *in, const char *file)
{
	bool is_stdin = !strcmp(file, "-");
	in->file = is_stdin ? "stdin" : file;
	int r = is_stdin ? read_stdin(&in->text)
			 : mo_read_file(file, MO_RECIPE_BYTES_MAX, &in->text);
	if (r == -ENOENT)
		return cli_fail(CLI_USAGE, "%s: no such file; check the path of the recipe", file);
	if (r == -EFBIG)
		return cli_fail(CLI_USAGE, "%s: larger than %d kB; a recipe is a short YAML file",
				in->file, MO_RECIPE_BYTES_MAX / 1024);
	if (r < 0)
		return cli_fail(CLI_USAGE, "%s: %s; the recipe must be a readable file", in->file,
				strerror(-r));
	return 0;
}

/* The job as the controller would hold it, from what lies on this machine. */
int recipe_input_spec(const struct recipe_input *in, struct submit *spec, struct mo_error *err)
{
	mo_desc_copy(&recipe_desc, &spec->recipe, &in->recipe);
	mo_desc_copy(&engine_desc, &spec->engine, &in->engine);
	engine_argv(&in->engine, &in->recipe, &spec->argv, &spec->n_argv);
	engine_prepare(&in->engine, &in->recipe, &spec->prepare, &spec->n_prepare);
	env_layers(&in->recipe, &in->engine, &spec->env, &spec->n_env);
	return env_profiles(&in->recipe, &spec->profiles, &spec->n_profiles, err);
}

struct json_object *recipe_errors_json(const struct recipe_errors *errors)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < errors->n; i++) {
		const struct mo_error *e = &errors->items[i];
		struct json_object *item = json_object_new_object();
		json_object_object_add(item, "line",
				       e->line > 0 ? json_object_new_int64(e->line) : NULL);
		json_object_object_add(item, "column",
				       e->line > 0 ? json_object_new_int64(e->column) : NULL);
		json_object_object_add(item, "message",
				       json_object_new_string(mo_error_text(e, -EINVAL)));
		json_object_object_add(item, "hint",
				       e->hint ? json_object_new_string(e->hint) : NULL);
		json_object_array_add(list, item);
	}
	return list;
}

/* The document that POST /v1/validate would answer. */
static struct json_object *problem_of(const struct recipe_errors *errors)
{
	struct json_object *doc = json_object_new_object();

	json_object_object_add(doc, "type", json_object_new_string("about:blank"));
	json_object_object_add(doc, "title", json_object_new_string("Unprocessable Content"));
	json_object_object_add(doc, "status", json_object_new_int(422));
	json_object_object_add(doc, "detail",
			       json_object_new_string(
				       errors->n ? mo_error_text(&errors->items[0], -EINVAL)
						 : "the recipe is invalid"));
	json_object_object_add(doc, "errors", recipe_errors_json(errors));
	return doc;
}

/* Errors of a draft name the words that the value comes from, and no line. */
static void unplace(const struct recipe_input *in, const struct recipe_errors *errors)
{
	for (size_t i = 0; i < errors->n; i++) {
		struct mo_error *e = &errors->items[i];
		const char *text = mo_error_text(e, -EINVAL);
		size_t n = strcspn(text, ":");

		e->line = 0;
		for (size_t k = 0; k < in->n_said; k++) {
			if (strlen(in->said[k].key) != n || strncmp(text, in->said[k].key, n) != 0)
				continue;
			char *whole = mo_printf("%s: %s", in->said[k].value, text);

			free(e->text);
			e->text = whole;
			break;
		}
	}
}

bool recipe_input_changed(const struct recipe_input *in)
{
	return in->n_sets && !(in->n_sets == 1 && in->experiment); /* which goes behind the text */
}

/* A line of the file may be wrong only by what was set: then that is said. */
static void note_sets(const struct recipe_input *in, const struct recipe_errors *errors)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	bool placed = false;

	for (size_t i = 0; i < errors->n; i++)
		placed = placed || errors->items[i].line > 0;
	for (size_t i = 0; i < in->n_sets && placed; i++)
		if (!in->sets[i].name)
			mo_buf_printf(&b, "%s--set %s", b.len ? ", " : "", in->sets[i].key);
	_cleanup_(mo_freep) char *list = b.len ? visible(b.data) : NULL;

	if (list)
		fprintf(stderr, "%s: note: checked with %s; without that the file may be right\n",
			in->file, list);
}

int recipe_input_refuse(const struct cli *cli, const struct recipe_input *in,
			const struct recipe_errors *errors)
{
	if (in->draft)
		unplace(in, errors);
	struct json_object *doc = problem_of(errors);
	if (cli->json)
		print_json_doc(doc);
	visible_json(doc);
	if (!problem_print_recipe(doc, in->file))
		cli_fail(CLI_USAGE, "%s: the recipe is invalid", in->file);
	note_sets(in, errors);
	json_object_put(doc);
	return CLI_USAGE;
}

void recipe_print_warning(const char *file, const char *warning)
{
	_cleanup_(mo_freep) char *text = visible(warning);
	size_t line = strspn(text, "0123456789"),
	       column = line && text[line] == ':' ? strspn(text + line + 1, "0123456789") : 0,
	       place = line + 1 + column;
	if (column && text[place] == ':' && text[place + 1] == ' ')
		fprintf(stderr, "%s:%.*s: warning: %s\n", file, (int)place, text, text + place + 2);
	else
		fprintf(stderr, "%s: warning: %s\n", file, text);
}

bool recipe_input_refused(const struct recipe_input *in)
{
	return in->failed.n || in->refusal.text;
}

char *recipe_input_document(struct cli *cli, const struct recipe_input *in)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	if (!in->n_sets)
		return mo_strndup(in->text.data ? in->text.data : "", in->text.len);
	/* What the experiment says goes behind the user's own text, which stays as it was
	 * written. */
	if (!recipe_input_changed(in)) {
		_cleanup_(recipe_errors_done) struct recipe_errors own = { 0 };
		char *whole = mo_printf("%s\n# What the engine's own experiment says, read by "
					"moectl at the submit.\nexperiment: %s\n",
					in->text.data, in->experiment);
		_cleanup_(mo_freep) char *again =
			recipe_apply_sets(whole, strlen(whole), NULL, 0, &own);
		if (again)
			return whole;
		free(whole);
	}
	char *text = recipe_apply_sets(in->text.data ? in->text.data : "", in->text.len, in->sets,
				       in->n_sets, &errors);
	if (!text)
		recipe_input_refuse(cli, in, &errors);
	return text;
}
