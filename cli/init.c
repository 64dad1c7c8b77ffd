/* init: a recipe from what people have: an experiment of Primus, a TOML of torchtitan, or the
 * line or script that starts their training. The recipe is checked as a submit would check it,
 * and what its ranks would run is compared with the original: what is different or could not be
 * carried over is named in the recipe and on stderr. Nothing is dropped without a word. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/dryrun.h"
#include "cli/init_compare.h"
#include "cli/init_engine.h"
#include "cli/init_source.h"
#include "cli/init_tell.h"
#include "cli/visible.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/mask.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/draft_kind.h"

#define NODE_GPUS 8 /* of an Instinct node */

/* ---- the draft ---- */

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
static void look_for_gpu(struct init *i, const char *path)
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
static void look_for_entry(struct init *i)
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

static int fill(struct init *i)
{
	int r;

	take_launch(i);
	note_credentials(i);
	if ((r = choose_engine(i)) || (r = check_entry(i)) || (r = init_engine(i)))
		return r;
	guess_gpus(i);
	look_for_entry(i);
	init_local_rank(i);
	look_for_gpu(i, i->draft.entry);
	name_by_file(i, i->draft.entry                       ? i->draft.entry
			: mo_streq(i->draft.kind, "command") ? i->draft.args[2]
							     : i->draft.kind);
	init_name(i, "job");
	return 0;
}

/* ---- the verb ---- */

/* Said before anything is read: nobody waits for a recipe that has no place. */
static int check_out(const struct init *i)
{
	const char *slash = i->out ? strrchr(i->out, '/') : NULL;
	_cleanup_(mo_freep) char *dir = !slash ? mo_strdup(".")
					: slash == i->out
						? mo_strdup("/")
						: mo_strndup(i->out, (size_t)(slash - i->out));
	struct stat st;

	if (!i->out)
		return 0;
	if (stat(i->out, &st) == 0)
		return S_ISDIR(st.st_mode) ? init_no_out(i->out, -EISDIR)
		       : i->force          ? 0
					   : init_no_out(i->out, -EEXIST);
	if (errno != ENOENT)
		return init_no_out(i->out, -errno);
	return access(dir, W_OK | X_OK) < 0 ? init_no_out(i->out, -errno) : 0;
}

static int work(struct cli *cli, struct init *i, const char *from, char **words, size_t n_words)
{
	int r;

	if ((r = check_out(i)))
		return r;
	if (i->workdir && access(i->workdir, F_OK) < 0)
		return cli_fail(CLI_USAGE, "init: --workdir %s: %s", i->workdir, strerror(errno));
	if (from)
		r = init_from_path(i, from);
	else
		r = init_from_launch(i, NULL, NULL, words, n_words);
	if (r || (r = fill(i)) || (r = init_compare(cli, i)))
		return r;
	return init_put(i, cli);
}

#define LABEL_MAX 60 /* bytes of a line that are shown to tell it from others */

/* A file by its name; a line by its first words, without credentials: it stands in the recipe. */
static char *label_of(const char *from, char **words, size_t n)
{
	char **own = NULL;
	size_t n_own = 0;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (from && (!strpbrk(from, " \t\n") || access(from, F_OK) == 0))
		return visible(from);
	for (const char *p = from; p && *(p += strspn(p, " \t\n\\")); p += strcspn(p, " \t\n")) {
		_cleanup_(mo_freep) char *word = mo_strndup(p, strcspn(p, " \t\n"));

		mo_strs_add(&own, &n_own, word);
	}
	for (size_t k = 0; !from && k < n; k++)
		mo_strs_add(&own, &n_own, words[k]);
	mo_mask_words(own, n_own);
	size_t k = 0;
	for (; k < n_own && (k == 0 || b.len + strlen(own[k]) < LABEL_MAX); k++)
		mo_buf_printf(&b, "%s%.*s", k ? " " : "", LABEL_MAX, own[k]);
	mo_buf_add(&b, "", 1);
	bool cut = k < n_own;
	_cleanup_(mo_freep) char *shown = visible(b.data);
	mo_strs_clear(&own, &n_own);
	return mo_printf("%s%s", *shown ? shown : "--", cut ? " .." : "");
}

/* How many words the option at argv[0] takes; 0 = it is none of init. */
static int option_words(char **argv, const struct opt *opts, size_t n_opts)
{
	static const struct opt common[] = {
		{ "json", 0, OPT_FLAG, NULL },      { "raw", 0, OPT_FLAG, NULL },
		{ "help", 'h', OPT_FLAG, NULL },    { "url", 0, OPT_STR, NULL },
		{ "token-file", 0, OPT_STR, NULL },
	};
	const char *word = argv[0];
	size_t len = strcspn(word, "=");

	for (size_t k = 0; word[0] == '-' && k < n_opts + ELEMENTSOF(common); k++) {
		const struct opt *o = k < n_opts ? &opts[k] : &common[k - n_opts];
		bool is = word[1] == '-' ? strlen(o->name) == len - 2 &&
						   !strncmp(word + 2, o->name, len - 2)
					 : o->letter && word[1] == o->letter;

		if (is)
			return 1 +
			       (o->kind != OPT_FLAG && !word[len] && (word[1] == '-' || !word[2]));
	}
	return 0;
}

/* One of init's, or one that was meant to be. */
static bool is_option(char **argv, const struct opt *opts, size_t n_opts)
{
	_cleanup_(mo_freep) const char **names = mo_alloc_array(n_opts, sizeof(*names));

	for (size_t k = 0; k < n_opts; k++)
		names[k] = opts[k].name;
	return option_words(argv, opts, n_opts) ||
	       (mo_starts_with(argv[0], "--") && mo_near_miss(argv[0] + 2, names, n_opts));
}

/* `init torchrun --nproc_per_node 8 train.py`, `init run.sh --lr 1`: such words could be options of
 * init, so they are not taken, and what to write is said. */
static int check_dashes(int argc, char **argv, const struct opt *opts, size_t n_opts)
{
	int at = 0;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (int n = 1; at < argc && n; at += n)
		n = option_words(argv + at, opts, n_opts);
	if (at >= argc || argv[at][0] == '-' || strpbrk(argv[at], " \t\n"))
		return 0;
	bool file = access(argv[at], F_OK) == 0, line = !file && launch_line_begins(argv[at]);

	if (!line && !(file && at + 1 < argc && !is_option(argv + at + 1, opts, n_opts)))
		return 0;
	for (int k = 0; k < argc; k++) {
		mo_buf_str(&b, k == at ? (line ? " -- " : " -- bash ") : " ");
		dryrun_word(&b, argv[k]);
	}
	_cleanup_(mo_freep) char *shown = visible(b.data);
	return cli_fail(CLI_USAGE,
			"init: the words of a command stand behind --, options of init before it: "
			"moectl init%s",
			shown);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL }, *from = NULL;
	_cleanup_(init_done) struct init i = { .gpus = MO_NONE, .steps = MO_NONE };
	int n = 0;
	const struct opt opts[] = {
		{ "from", 0, OPT_STR, &from },
		{ "out", 'o', OPT_STR, &i.out },
		{ "force", 0, OPT_FLAG, &i.force },
		{ "workdir", 0, OPT_STR, &i.workdir },
		{ "name", 0, OPT_STR, &i.name },
		{ "gpus", 0, OPT_INT, &i.gpus, 1, 1000000 },
		{ "steps", 0, OPT_INT, &i.steps, 1, INT64_MAX / 2 },
	};

	draft_init(&i.draft);
	while (n < argc && strcmp(argv[n], "--"))
		n++;
	int r = n == argc ? check_dashes(argc, argv, opts, ELEMENTSOF(opts)) : 0;
	if (r || (r = cli_options(cli, n, argv, opts, ELEMENTSOF(opts), args, 0, 1)))
		return cli_stop(r);
	if (!!from + !!args[0] + (n < argc) != 1)
		return cli_misuse(cli, "give one thing to begin with: a file, a line, or the words "
				       "behind --");
	from = from ? from : args[0];
	i.is_line = !from;
	i.label = label_of(from, argv + n + 1, n < argc ? (size_t)(argc - n - 1) : 0);
	if (i.name && !mo_name_valid(i.name))
		return cli_misuse(cli,
				  "--name %s is no name: letters, digits, '.', '_' and '-', at "
				  "most 63",
				  i.name);
	return work(cli, &i, from, argv + n + 1, n < argc ? (size_t)(argc - n - 1) : 0);
}

const struct verb verb_init = {
	"init",
	"Prepare",
	"init FROM [--out FILE] | init -- WORDS...",
	"make a recipe from what starts your training today, and say what is different",
	"FROM is an experiment of Primus (.yaml), a TOML of torchtitan, a shell or sbatch script, "
	"or one line in quotes;\n"
	"WORDS are those of torchrun, primus-cli, deepspeed or python, also behind srun. The "
	"recipe goes to stdout.\n"
	"What its ranks would run is compared with the original; what differs, and what could not "
	"be carried over, stands\n"
	"in the recipe and on stderr.\n"
	"  -o, --out FILE    write the recipe there; a file that exists is left alone\n"
	"  --force           overwrite it\n"
	"  --workdir DIR     where the original is started (default: found from FROM, cd of the "
	"script, or here)\n"
	"  --gpus N          how many GPUs, where the original does not say it\n"
	"  --steps N         how many iterations, where the original does not say it\n"
	"  --name NAME       of the job\n"
	"\n  moectl init examples/megatron/configs/MI300X/qwen3_30B_A3B-BF16-pretrain.yaml -o "
	"qwen3.yaml\n"
	"  moectl init -- torchrun --nproc_per_node 8 train.py --lr 1e-4\n",
	run,
};
