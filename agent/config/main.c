/* moe-config: reads the configuration of an engine's own that a rank's command names, where the
 * rank will run: as the job's user, in its directory, with its environment, before any rank
 * starts (agent/stepd/config.c). The rules are those of moectl (lib/recipe). It prints what came
 * out as one line of JSON (lib/recipe/experiment_record.h), or one line on stderr and status 2:
 * the engine could not load it, or the rules for recipes refuse what it says together with the
 * recipe on standard input (none there: it is only read); 3: the file that the command names is
 * not there, which a program in the engine's place may not mind; 4: a file that the
 * configuration names (engine.inputs) is not there. Of an engine without an experiment it prints
 * nothing: only its inputs are read. Files are read as they come; the caller has the
 * deadline. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/rooted.h"
#include "lib/model/mask.h"
#include "lib/model/limits.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/config_files.h"
#include "lib/recipe/config_inputs.h"
#include "lib/recipe/experiment_judge.h"
#include "lib/recipe/experiment_record.h"
#include "lib/recipe/recipe_file.h"

enum { LOADED = 0, FAILED = 1, REFUSED = 2, ABSENT = 3, MISSING = 4, MISUSED = 64 };

/* Descriptor 3, where the word root:DIR names the directory of a rank in it: the root of the image
 * that the ranks run in. This program is of the node, with its data files. */
#define ROOT_FD 3
static const char *dir_in_root;

static int open_there(const char *path, int flags)
{
	_cleanup_(mo_freep) char *whole = NULL;

	if (!dir_in_root)
		return mo_open_at(AT_FDCWD, path, flags, 0);
	whole = *path == '/' ? mo_strdup(path) : mo_path(dir_in_root, "%s", path);
	return mo_open_in(ROOT_FD, whole, flags);
}

/* O_NONBLOCK: a FIFO in the file's place must not hang the launch. */
static int read_plain(void *arg, const char *path, size_t most, struct mo_buf *ret)
{
	_cleanup_(mo_closep) int fd = open_there(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char chunk[16384];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
		if (ret->len + (size_t)n > most)
			return -EFBIG;
		mo_buf_add(ret, chunk, (size_t)n);
	}
	return n < 0 ? -errno : 0;
}

/* What is a secret by its name stays on the node. */
static const char *variable(void *arg, const char *name)
{
	const char *value = getenv(name);

	return value && *value && mo_mask_variable(name) ? MO_MASKED : value;
}

static int read_recipe(struct mo_buf *ret)
{
	char chunk[16384];
	ssize_t n;

	while ((n = read(STDIN_FILENO, chunk, sizeof(chunk))) > 0) {
		if (ret->len + (size_t)n > MO_RECIPE_BYTES_MAX)
			return -EFBIG;
		mo_buf_add(ret, chunk, (size_t)n);
	}
	return n < 0 ? -errno : 0;
}

/* False, reported: ranks must not start with it. What this node's version of the rules cannot judge
 * is the controller's to judge when it hears of it. */
static bool judge(const struct mo_buf *text, const struct experiment *x)
{
	_cleanup_(experiment_verdict_done) struct experiment_verdict verdict = { 0 };
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct recipe recipe;
	struct engine engine;

	mo_desc_init(&recipe_desc, &verdict.recipe);
	mo_desc_init(&recipe_desc, &recipe);
	mo_desc_init(&engine_desc, &engine);
	if (recipe_parse(text->data, text->len, NULL, 0, &recipe, &engine, NULL, NULL, &errors) ==
		    0 &&
	    recipe_for_user(&recipe, getenv("MOE_SUBMITTED_BY"), NULL) >= 0)
		experiment_judge(&engine, &recipe, text->data, text->len, x, &verdict);
	mo_desc_done(&recipe_desc, &recipe);
	mo_desc_done(&engine_desc, &engine);
	if (verdict.refused)
		fprintf(stderr, "%s\n", verdict.refused);
	return !verdict.refused;
}

/* Only what is surely not there: what cannot be looked at is the engine's to say. */
static bool is_there(void *arg, const char *path)
{
	_cleanup_(mo_closep) int fd = open_there(path, O_PATH);

	return fd != -ENOENT && fd != -ENOTDIR;
}

/* "WHAT:VALUE" in front of the command, as moe-stepd writes them. */
struct asked {
	struct kv *inputs;
	size_t n_inputs;
	struct engine engine; /* how an engine without an experiment reads what its command names */
	const char *entry;
};

static bool take(struct asked *a, const char *word)
{
	static const char input[] = "input:", file[] = "file:", entry[] = "entry:";
	static const char variables[] = "variables:", root[] = "root:";
	const char *pair = strchr(word, ':'), *equals = pair ? strchr(pair, '=') : NULL;

	if (mo_starts_with(word, root)) {
		dir_in_root = word + strlen(root);
		return true;
	}
	if (mo_starts_with(word, entry)) {
		a->entry = word + strlen(entry);
		return true;
	}
	if (mo_starts_with(word, variables)) {
		mo_str_set(&a->engine.config_variables, word + strlen(variables));
		return true;
	}
	if (!equals || !(mo_starts_with(word, input) || mo_starts_with(word, file)))
		return false;
	struct kv *kv = mo_starts_with(word, input) ? MO_ADD(a, inputs, &kv_desc)
						    : MO_ADD(&a->engine, config_files, &kv_desc);

	kv->key = mo_strndup(pair + 1, (size_t)(equals - pair - 1));
	mo_str_set(&kv->value, equals + 1);
	return true;
}

static void asked_done(struct asked *a)
{
	mo_vec_clear(&kv_desc, (void **)&a->inputs, &a->n_inputs);
	mo_desc_done(&engine_desc, &a->engine);
}

/* One line with all that is missing. */
static int find_inputs(const struct asked *a, const struct experiment *x)
{
	struct config_missing *items = NULL;
	size_t n = 0;

	config_inputs(a->inputs, a->n_inputs, x, is_there, NULL, &items, &n);
	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *place = experiment_place(x, items[i].value->place);

		fprintf(stderr, "%s%s: %s: %s: no such file", i ? "; " : "", place, items[i].key,
			items[i].path);
	}
	if (n)
		fputs("\n", stderr);
	config_missing_free(items, n);
	return n ? MISSING : LOADED;
}

static int print_result(const struct experiment *x)
{
	_cleanup_(mo_freep) char *packed = experiment_pack(x);
	_cleanup_(mo_freep) char *line =
		mo_printf("{\"files\":\"crc32c:%08x\",\"result\":%s}\n", x->crc, packed);

	return mo_write_all(STDOUT_FILENO, line, strlen(line)) < 0 ? FAILED : LOADED;
}

int main(int argc, char **argv)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf recipe = { 0 };
	_cleanup_(asked_done) struct asked asked = { 0 };
	const struct experiment_world world = { NULL, read_plain, variable };
	bool primus = argc > 1 && strcmp(argv[1], "primus") == 0;
	struct experiment x;
	int at = 2;

	mo_desc_init(&engine_desc, &asked.engine);
	while (at < argc && take(&asked, argv[at]))
		at++;
	if (argc <= at) {
		fprintf(stderr, "moe-config: expected FORMAT COMMAND..., started by moe-stepd\n");
		return MISUSED;
	}
	mo_str_set(&asked.engine.config_words, argv[1]);
	int r = primus ? experiment_resolve(&world, argv + at, (size_t)(argc - at), &x, &err)
		       : config_files_resolve(&asked.engine, asked.entry, &world, argv + at,
					      (size_t)(argc - at), &x, &err);

	if (r < 0) {
		fprintf(stderr, "%s%s%s\n", mo_error_text(&err, r), err.hint ? "; " : "",
			err.hint ? err.hint : "");
		return r == -ENOENT || !primus ? ABSENT : REFUSED;
	}
	bool refused =
		!x.n_unread && read_recipe(&recipe) == 0 && recipe.len && !judge(&recipe, &x);

	r = refused ? REFUSED : find_inputs(&asked, &x);
	if (r == LOADED && primus)
		r = print_result(&x);
	experiment_done(&x);
	return r;
}
