/* What `moectl init` is given (init.c): an experiment, a TOML, a script or a line, made into a
 * launch. */
#include "cli/init_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "lib/base/fd.h"
#include "lib/base/utf8.h"
#include "lib/recipe/launch_script.h"

#define SCRIPT_BYTES_MAX (1 << 20)

static bool ends(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && mo_streq(text + n - m, end);
}

/* The directory above the file in which `inside` lies; NULL = none. Caller frees. */
static char *directory_with(const char *file, const char *inside)
{
	_cleanup_(mo_freep) char *real = realpath(file, NULL);

	for (char *slash = real ? strrchr(real, '/') : NULL; slash; slash = strrchr(real, '/')) {
		*slash = '\0';
		_cleanup_(mo_freep) char *path = mo_printf("%s/%s", real, inside);

		if (access(path, F_OK) == 0)
			return mo_strdup(*real ? real : "/");
	}
	return NULL;
}

static char *below(const char *file, const char *dir)
{
	_cleanup_(mo_freep) char *real = realpath(file, NULL);
	size_t n = strlen(dir);

	if (real && !strncmp(real, dir, n) && real[n] == '/')
		return mo_strdup(real + n + 1);
	return mo_strdup(real ? real : file);
}

/* A file alone is started as its engine starts it. */
static int from_file(struct init *i, const char *file, const char *inside, const char *const *words,
		     size_t n)
{
	char *dir = i->workdir ? realpath(i->workdir, NULL) : directory_with(file, inside);

	if (!dir && !inside[0])
		return CLI_USAGE;
	if (!dir) {
		_cleanup_(mo_freep) char *what =
			mo_printf("no directory above it holds %s", inside);
		return init_refuse(i, what, "name the engine's own directory: --workdir DIR");
	}
	i->draft.workdir = dir;
	launch_line_init(&i->line);
	i->line.launcher = (char *)"";
	for (size_t k = 0; k < n; k++)
		mo_strs_add(&i->line.program, &i->line.n_program, words[k]);
	_cleanup_(mo_freep) char *entry = below(file, dir);
	mo_strs_add(&i->line.program, &i->line.n_program, entry);
	return 0;
}

/* A line of the text is this key of the document. */
static bool has_key(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (!strncmp(p, key, n) && p[n] == ':')
			return true;
	return false;
}

#define PRESETS "primus/configs"

/* A preset is a part of experiments: which they are depends on what it is. */
static int refuse_preset(const struct init *i, const char *file, bool model)
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
	_cleanup_(mo_freep) char *next =
		mo_printf("give an experiment that names it: grep -rl 'model: %.*s' examples",
			  (int)(strrchr(name, '.') - name), name);

	return init_refuse(i,
			   model ? "it is a preset of Primus, a model, and no experiment"
				 : "it is a preset of Primus, values that experiments begin with, "
				   "and no experiment",
			   model ? next : "give an experiment, such as one of examples/*/configs");
}

/* A YAML file that is something else than an experiment: what it is, and what to give. */
static int check_yaml(const struct init *i, const char *file, const char *text)
{
	static const char presets[] = "/" PRESETS "/";
	_cleanup_(mo_freep) char *real = realpath(file, NULL);
	const char *preset = real ? strstr(real, presets) : NULL;

	if (has_key(text, "modules"))
		return 0;
	if (preset)
		return refuse_preset(i, file, mo_starts_with(preset + strlen(presets), "models/"));
	if (has_key(text, "workspace") || has_key(text, "extends"))
		return 0;
	if (has_key(text, "recipe"))
		return init_refuse(i, "it is a recipe already",
				   "moectl validate says whether it is a good one, moectl plan and "
				   "submit take it");
	if (has_key(text, "compute_environment") || has_key(text, "distributed_type"))
		return init_refuse(i, "it is a configuration of accelerate, and names no script",
				   "give the line that starts it: moectl init -- accelerate launch "
				   "--config_file FILE SCRIPT");
	if (strchr(text, ':') && !strpbrk(text, "\t{["))
		return init_refuse(i, "it is no experiment of Primus: it has no `modules`",
				   "give an experiment, or the line that starts your training");
	return 0; /* the loader says what is wrong with it */
}

static int from_experiment(struct init *i, const char *file)
{
	static const char *const words[] = { "primus/cli/main.py", "train", "pretrain",
					     "--config" };

	return from_file(i, file, "primus/configs", words, ELEMENTSOF(words));
}

static int from_toml(struct init *i, const char *file)
{
	static const char *const words[] = { "-m", "torchtitan.train", "--job.config_file" };
	_cleanup_(mo_freep) char *dir = directory_with(file, "torchtitan"), *own = NULL;

	if (!i->workdir && !dir) {
		own = realpath(file, NULL);
		if (own && strrchr(own, '/'))
			*strrchr(own, '/') = '\0';
		i->workdir = own;
	}
	int r = from_file(i, file, "torchtitan", words, ELEMENTSOF(words));
	if (own)
		i->workdir = NULL;
	return r;
}

/* A script that another one runs; NULL = it is not there, or no text. */
static char *read_script(void *arg, const char *path)
{
	struct mo_buf b = { 0 };

	(void)arg;
	if (mo_read_file(path, SCRIPT_BYTES_MAX, &b) < 0 || !b.len ||
	    !mo_utf8_valid(b.data, b.len) || memchr(b.data, 0, b.len)) {
		mo_buf_done(&b);
		return NULL;
	}
	return mo_buf_take(&b);
}

/* The text of `script` (NULL = a line), or words. */
int init_from_launch(struct init *i, const char *text, const char *script, char *const *words,
		     size_t n)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_freep) char *path = script ? realpath(script, NULL) : NULL,
				 *dir = realpath(i->workdir ? i->workdir : ".", NULL);
	const char *const names[] = { "HOME", "USER", "LOGNAME" };
	static const char path_of_rank[] =
		"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	struct kv known[ELEMENTSOF(names) + 1] = { { (char *)"PATH", (char *)path_of_rank } };
	struct launch_world world = {
		.read = read_script, .dir = dir, .script = path, .known = known, .n_known = 1
	};

	for (size_t k = 0; k < ELEMENTSOF(names); k++)
		if (getenv(names[k]))
			known[world.n_known++] = (struct kv){ (char *)names[k], getenv(names[k]) };
	int r = text ? launch_line_script(text, &world, &i->line, &err)
		     : launch_line_words(words, n, &world, &i->line, &err);
	if (r == -ENOENT)
		return init_refuse(i, mo_error_text(&err, r),
				   "give its path, or --workdir DIR, where it is started");
	if (r < 0)
		return init_refuse(i, mo_error_text(&err, r),
				   text ? "give the file, the script or the line that starts your "
					  "training"
					: "give what starts your training behind the --");
	return 0;
}

/* What an experiment is handed to: without it the launcher's own lines say nothing of a
 * training. */
static bool is_launcher_of_primus(const char *file)
{
	_cleanup_(mo_freep) char *dir = directory_with(file, "primus/configs");
	_cleanup_(mo_freep) char *path = dir ? below(file, dir) : NULL;

	return path && (mo_starts_with(path, "runner/primus-cli") ||
			(mo_starts_with(path, "examples/run_") && ends(path, "pretrain.sh")));
}

int init_from_path(struct init *i, const char *from)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = mo_read_file(from, SCRIPT_BYTES_MAX, &b);

	/* a long line is no file either, by another error */
	i->is_line =
		(r == -ENOENT || r == -ENAMETOOLONG || r == -ENOTDIR) && strpbrk(from, " \t\n");
	if (i->is_line)
		return init_from_launch(i, from, NULL, NULL, 0);
	if (r < 0)
		return cli_fail(CLI_USAGE,
				"init: %s: %s; give an experiment, a TOML, a script, or a line "
				"such as 'torchrun ..'",
				i->label,
				r == -ENOENT  ? "no such file"
				: r == -EFBIG ? "larger than 1 MB"
					      : strerror(-r));
	mo_buf_add(&b, "", 1);
	if (strlen(b.data) + 1 != b.len || !mo_utf8_valid(b.data, b.len - 1))
		return init_refuse(i, "it is no text", "give an experiment, a TOML or a script");
	if (ends(from, ".yaml") || ends(from, ".yml")) {
		r = check_yaml(i, from, b.data);
		return r ? r : from_experiment(i, from);
	}
	if (ends(from, ".json"))
		return init_refuse(i, "a configuration does not say what is started with it",
				   "give the line that does, such as moectl init -- deepspeed "
				   "train.py --deepspeed_config FILE");
	if (ends(from, ".toml"))
		return from_toml(i, from);
	if (is_launcher_of_primus(from))
		return init_refuse(i,
				   "it is Primus' own launcher, and trains what it is called with",
				   "give the line that calls it, such as moectl init -- env "
				   "EXP=x.yaml bash examples/run_pretrain.sh");
	if (ends(from, ".py"))
		return init_refuse(i, "a program does not say how it is started",
				   "give the line that does, such as moectl init -- torchrun "
				   "--nproc_per_node 8 train.py");
	return init_from_launch(i, b.data, from, NULL, 0);
}

/* ---- the tree of Primus ---- */

static char *from_dir(const char *dir, const char *path)
{
	_cleanup_(mo_freep) char *whole =
		*path == '/' ? mo_strdup(path) : mo_printf("%s/%s", dir, path);

	return mo_path_clean(whole);
}

/* The word that names the experiment, and where its path begins in it; NULL = none. --exp is
 * Primus' other name for the flag, and becomes the one that its engine's file has. */
static char **experiment_word(struct launch_line *l, size_t *ret_skip)
{
	static const char *const flags[] = { "--config", "--exp" };

	for (size_t k = 1; k < l->n_program; k++)
		for (size_t f = 0; f < ELEMENTSOF(flags); f++) {
			const char *word = l->program[k];
			size_t n = strlen(flags[f]);

			if (!mo_starts_with(word, flags[f]) || (word[n] && word[n] != '='))
				continue;
			bool whole = !word[n];
			char *same = mo_printf("%s%s", flags[0], word + n);

			free(l->program[k]);
			l->program[k] = same;
			*ret_skip = whole ? 0 : strlen(flags[0]) + 1;
			return !whole                 ? &l->program[k]
			       : k + 1 < l->n_program ? &l->program[k + 1]
						      : NULL;
		}
	return NULL;
}

void init_tree(struct init *i)
{
	struct launch_line *l = &i->line;
	const char *dir = i->draft.workdir, *program = l->n_program ? l->program[0] : "";
	_cleanup_(mo_freep) char *here = dir ? mo_printf("%s/" PRESETS, dir) : NULL;
	bool primus = ends(program, "primus/cli/main.py");
	size_t skip = 0;
	char **word = primus ? experiment_word(l, &skip) : NULL;

	if (!here || !primus || access(here, F_OK) == 0)
		return;
	_cleanup_(mo_freep) char *launcher =
					 from_dir(dir, l->program_path ? l->program_path : program),
				 *file = word ? from_dir(dir, *word + skip) : NULL,
				 *tree = directory_with(launcher, PRESETS);
	bool by_launcher = tree;

	if (!tree && file)
		tree = directory_with(file, PRESETS);
	if (!tree)
		return;
	init_note(i,
		  "engine.workdir: %s, the tree that %s is in; the original is started in %s, from "
		  "where relative paths of its own words lead",
		  tree, by_launcher ? launcher : file, dir);
	if (file && access(file, F_OK) == 0) {
		_cleanup_(mo_freep) char *path = below(file, tree);
		char *whole = mo_printf("%.*s%s", (int)skip, *word, path);

		free(*word);
		*word = whole;
	}
	free(i->draft.workdir);
	i->draft.workdir = TAKE_PTR(tree);
	if (program[0] == '/')
		mo_str_set(&l->program[0], "primus/cli/main.py");
}

/* ---- a script that gets its rank as an argument ---- */

void init_local_rank(struct init *i)
{
	static const char *const words[] = { "--local_rank", "--local-rank" };
	const struct draft *d = &i->draft;
	_cleanup_(mo_freep) char *path = d->entry && d->workdir ? from_dir(d->workdir, d->entry)
								: NULL,
				 *text = path ? read_script(NULL, path) : NULL;
	const char *at = NULL;
	int64_t line = 1;

	for (size_t k = 0; text && k < ELEMENTSOF(words) && !at; k++)
		at = strstr(text, words[k]);
	if (!at || strstr(text, "LOCAL_RANK"))
		return;
	for (const char *p = text; p < at; p++)
		line += *p == '\n';
	for (size_t k = 0; k < d->n_lost; k++) {
		bool own = mo_starts_with(d->lost[k], "--local_rank") ||
			   mo_starts_with(d->lost[k], "--local-rank");

		if (!own)
			continue;
		init_note(i,
			  "%s:%lld takes %.12s and nothing there reads LOCAL_RANK: every rank "
			  "would have its default; read os.environ[\"LOCAL_RANK\"] instead",
			  path, (long long)line, at);
		return;
	}
}
