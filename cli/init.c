/* init: a recipe from what people have: an experiment of Primus, a TOML of torchtitan, or the
 * line or script that starts their training. The recipe is checked as a submit would check it,
 * and what its ranks would run is compared with the original: what is different or could not be
 * carried over is named in the recipe and on stderr. Nothing is dropped without a word. */
#include "cli/init.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/dryrun.h"
#include "cli/init_compare.h"
#include "cli/init_draft.h"
#include "cli/init_source.h"
#include "cli/init_tell.h"
#include "cli/options.h"
#include "cli/visible.h"
#include "lib/base/parse.h"
#include "lib/model/mask.h"

/* ---- the draft ---- */

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
		return cli_fail(CLI_USAGE,
				"init: --workdir %s: %s; give the directory in which the original "
				"is "
				"started",
				i->workdir, strerror(errno));
	if (from)
		r = init_from_path(i, from);
	else
		r = init_from_launch(i, NULL, NULL, words, n_words);
	if (r || (r = init_fill(i)) || (r = init_compare(cli, i)))
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
	"  --from FROM       the same as FROM, where it begins with a dash\n",
	run,
	.examples = "  moectl init "
		    "examples/megatron/configs/MI300X/qwen3_30B_A3B-BF16-pretrain.yaml -o "
		    "qwen3.yaml\n"
		    "  moectl init -- torchrun --nproc_per_node 8 train.py --lr 1e-4\n",
};
