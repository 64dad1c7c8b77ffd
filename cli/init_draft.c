/* What init fills into a draft: engine, name, directory, interpreter, GPUs. */
#include "cli/init_draft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/init_engine.h"
#include "cli/init_source.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/mask.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/draft_kind.h"

#define NODE_GPUS 8 /* of an Instinct node */

static int choose_engine(struct init *i)
{
	char **kinds = NULL;
	size_t n_kinds = 0, used = 0;
	struct draft *d = &i->draft;
	int entry = -1;

	mo_data_names("engines", &kinds, &n_kinds);
	const char *kind = draft_kind(&i->line, kinds, n_kinds, &used, &entry);
	bool module = i->line.n_program && mo_streq(i->line.program[0], "-m");

	d->kind = mo_strdup(kind ? kind : module ? "command" : "torch");
	if (!kind && module)
		mo_strs_add(&d->args, &d->n_args,
			    i->line.python ? i->line.python : "/usr/bin/python3");
	if (!kind && !module) {
		entry = 0;
		used = 1;
	}
	i->used = used;
	if (entry >= 0) {
		const char *path = i->line.program[entry];
		_cleanup_(mo_freep) char *whole = mo_printf("%s/%s", d->workdir, path);

		d->entry = path[0] != '/' && strstr(path, "..") && d->workdir
				   ? mo_path_clean(whole) /* a recipe's leads nowhere else */
				   : mo_strdup(path);
	}
	for (size_t k = used; k < i->line.n_program; k++)
		mo_strs_add(&d->args, &d->n_args, i->line.program[k]);
	mo_strs_clear(&kinds, &n_kinds);
	if (i->line.python && !module)
		d->python = mo_strdup(i->line.python);
	return 0;
}

static void name_by_file(struct init *i, const char *file)
{
	const char *slash = strrchr(file, '/');
	_cleanup_(mo_freep) char *base = mo_strdup(slash ? slash + 1 : file);
	char *dot = strrchr(base, '.');

	if (dot)
		*dot = '\0';
	init_name(i, base);
}

/* A directory of a path that is called as a GPU is: MI300X. */
static void find_gpu(struct init *i, const char *path)
{
	char **names = NULL;
	size_t n = 0;

	mo_data_names("gpus", &names, &n);
	for (size_t k = 0; k < n; k++) {
		if (!i->draft.gpu && path && strcasestr(path, names[k]))
			i->draft.gpu = mo_strdup(names[k]);
		free(names[k]);
	}
	free(names);
}

/* Where it is started, and where a relative `cd` of it leads from there. */
static void take_dir(struct init *i)
{
	struct draft *d = &i->draft;
	_cleanup_(mo_freep) char *given = i->workdir ? realpath(i->workdir, NULL) : NULL,
				 *here = realpath(".", NULL);
	const char *dir = i->line.dir;

	if (d->workdir)
		return;
	if (i->line.dir_unknown && !given)
		init_note(i,
			  "engine.workdir: %s, where init is called: nobody knows here where `cd "
			  "%s` of the original leads: --workdir DIR",
			  here, i->line.dir_unknown);
	if (given && (!dir || !mo_starts_with(dir, given) || dir[strlen(given)] != '/'))
		d->workdir = TAKE_PTR(given);
	else if (!dir || *dir == '/')
		d->workdir = mo_strdup(dir ? dir : here);
	else
		d->workdir = mo_printf("%s/%s", here, dir);
}

/* The interpreter: of the line, or of the environment that is active where init is called. */
static void take_python(struct init *i)
{
	struct launch_line *l = &i->line;
	const char *active = getenv("VIRTUAL_ENV") ? getenv("VIRTUAL_ENV") : getenv("CONDA_PREFIX");
	_cleanup_(mo_freep) char *own = active ? mo_printf("%s/bin/python3", active) : NULL;

	if (!l->python && *l->launcher && own && access(own, X_OK) == 0) {
		l->python = TAKE_PTR(own);
		init_note(i,
			  "engine.python: %s, of the environment that is active here; the nodes "
			  "must have it",
			  l->python);
	} else if (l->python && l->python[0] != '/' && i->draft.workdir) {
		char *whole = mo_printf("%s/%s", i->draft.workdir, l->python);

		free(l->python);
		l->python = mo_path_clean(whole);
		free(whole);
	}
}

static void take_gpus(struct init *i)
{
	const struct launch_line *l = &i->line;
	struct draft *d = &i->draft;

	if (i->gpus != MO_NONE)
		d->gpus = i->gpus;
	else if (l->total != MO_NONE)
		d->gpus = l->total;
	else if (l->per_node != MO_NONE || l->nodes != MO_NONE)
		d->gpus = (l->per_node != MO_NONE ? l->per_node : NODE_GPUS) *
			  (l->nodes != MO_NONE ? l->nodes : 1);
	if (d->gpus == MO_NONE && l->all)
		d->gpus = NODE_GPUS;
	if (d->gpus != MO_NONE && i->gpus == MO_NONE && l->total == MO_NONE &&
	    l->per_node == MO_NONE && l->all)
		init_note(i,
			  "cluster.gpus: `%s` is as many as a node has; %d for each (%lld in all): "
			  "--gpus N",
			  l->all, NODE_GPUS, (long long)d->gpus);
	else if (d->gpus != MO_NONE && i->gpus == MO_NONE && l->total == MO_NONE &&
		 l->per_node == MO_NONE)
		init_note(i,
			  "cluster.gpus: nothing says how many a node has; %d for each (%lld in "
			  "all): --gpus N",
			  NODE_GPUS, (long long)d->gpus);
}

static void take_launch(struct init *i)
{
	struct draft *d = &i->draft;
	const struct launch_line *l = &i->line;

	for (size_t k = 0; k < l->n_lost; k++)
		draft_lose(d, "%s", l->lost[k]);
	for (size_t k = 0; k < l->n_env; k++)
		mo_desc_copy(&kv_desc, MO_ADD(d, env, &kv_desc), &l->env[k]);
	if (l->time_limit)
		d->time_limit = mo_strdup(l->time_limit);
	if (l->accelerate_config)
		init_note(i,
			  "env: what %s says; what it leaves out has accelerate's defaults of a "
			  "rank without its launcher",
			  l->accelerate_config);
	take_dir(i);
	take_python(i);
	init_tree(i);
	if (i->name)
		init_name(i, i->name);
	if (l->name)
		init_name(i, l->name);
	take_gpus(i);
}

/* Words with which a program starts processes by itself. */
static bool names_gpus(const struct draft *d)
{
	static const char *const names[] = {
		"gpus",          "num_gpus",   "num-gpus",        "n_gpus",
		"n-gpus",        "ngpus",      "devices",         "nproc",
		"world_size",    "world-size", "trainer.devices", "trainer.gpus",
		"num_processes",
	};

	for (size_t k = 0; k < d->n_args; k++) {
		const char *word = d->args[k] + strspn(d->args[k], "-");
		_cleanup_(mo_freep) char *name = mo_strndup(word, strcspn(word, "="));

		if (mo_enum_parse(names, ELEMENTSOF(names), name) >= 0)
			return true;
	}
	return false;
}

static int64_t size_of(const struct draft *d, const char *path)
{
	int64_t v = 1;

	if (draft_value(d, path))
		(void)mo_parse_i64(draft_value(d, path), 1, 100000, &v);
	return v;
}

/* Each stage holds its experts and the rest. */
static int64_t least_gpus(const struct init *i)
{
	const struct draft *d = &i->draft;
	int64_t dense = size_of(d, "parallelism.tp") * size_of(d, "parallelism.cp"),
		experts = size_of(d, "parallelism.ep") * size_of(d, "parallelism.etp");

	return MO_MAX(size_of(d, "parallelism.pp") * MO_MAX(dense, experts), i->least_gpus);
}

/* What its sharding needs at least, in whole nodes. */
static void guess_gpus(struct init *i)
{
	struct draft *d = &i->draft;
	int64_t least;

	if (i->gpus == MO_NONE && mo_streq(i->line.launcher, "python") && !i->line.spread &&
	    (mo_streq(d->kind, "torch") || mo_streq(d->kind, "command"))) {
		if (i->line.world == MO_NONE &&
		    ((d->gpus != MO_NONE && d->gpus > 1) || names_gpus(d)))
			init_note(i, "cluster.gpus: one process is started; if it starts others by "
				     "itself, give --gpus N: moectl starts all ranks");
		/* one process, as the line has it, or as many as it is told that there are */
		d->gpus = i->line.world != MO_NONE ? i->line.world : 1;
	}
	if (d->gpus != MO_NONE)
		return;
	least = least_gpus(i);
	if (least == 1 && mo_streq(i->line.launcher, "python") && !i->line.spread &&
	    !i->one_of_many) {
		init_note(i, "cluster.gpus: one process is started: --gpus N for more");
		d->gpus = 1;
		return;
	}
	d->gpus = (least + NODE_GPUS - 1) / NODE_GPUS * NODE_GPUS;
	init_note(i,
		  "cluster.gpus: nothing says how many; %lld are the fewest in whole nodes of %d "
		  "that its sharding fits: --gpus N",
		  (long long)d->gpus, NODE_GPUS);
}

/* What it trains stands in a variable that its caller sets: a recipe without it is none. */
static int check_entry(const struct init *i)
{
	const char *entry = i->draft.entry, *name = entry ? strpbrk(entry, "$`") : NULL;

	if (!name)
		return 0;
	_cleanup_(mo_freep) char *what = mo_printf("what it starts is not known here: %s", entry);
	return init_refuse(i, what,
			   "give what the script gets from outside: moectl init -- env NAME=VALUE "
			   "bash SCRIPT");
}

/* The script may be on the nodes alone, so that this is no error; mostly it is the directory. */
static void find_entry(struct init *i)
{
	const struct draft *d = &i->draft;
	_cleanup_(mo_freep) char *path = !d->entry || !d->workdir ? NULL
					 : d->entry[0] == '/'
						 ? mo_strdup(d->entry)
						 : mo_printf("%s/%s", d->workdir, d->entry);

	if (path && access(path, F_OK) < 0)
		init_note(i,
			  "engine.entry: there is no %s here; --workdir DIR names the directory "
			  "that holds %s on the nodes",
			  path, d->entry);
}

/* Words are kept, because the program needs them, but whoever reads the recipe reads them. */
static void note_credentials(struct init *i)
{
	const struct launch_line *l = &i->line;

	for (size_t k = 0; k < l->n_program; k++) {
		const char *word = l->program[k] + strspn(l->program[k], "-");
		_cleanup_(mo_freep) char *name = mo_strndup(word, strcspn(word, "="));
		bool value =
			strchr(word, '=') || (k + 1 < l->n_program && l->program[k + 1][0] != '-');

		if (l->program[k][0] == '-' && value && mo_mask_argument(name))
			init_note(i,
				  "engine.args: --%s stands in the recipe for all to read; a "
				  "variable can come from a file on the nodes: env: {NAME: {file: "
				  "PATH}}",
				  name);
	}
}

int init_fill(struct init *i)
{
	int r;

	take_launch(i);
	note_credentials(i);
	if ((r = choose_engine(i)) || (r = check_entry(i)) || (r = init_engine(i)))
		return r;
	guess_gpus(i);
	find_entry(i);
	init_local_rank(i);
	find_gpu(i, i->draft.entry);
	name_by_file(i, i->draft.entry                       ? i->draft.entry
			: mo_streq(i->draft.kind, "command") ? i->draft.args[2]
							     : i->draft.kind);
	init_name(i, "job");
	return 0;
}
