/* See launch_line.h: words that begin with a launcher, behind what only runs it. */
#include "lib/recipe/launch_line.h"

#include "lib/recipe/launch_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/model/env_names.h"
#include "lib/model/mask.h"
#include "lib/recipe/launch_accelerate.h"
#include "lib/recipe/launch_tables.h"
#include "lib/recipe/launch_wrapper.h"

void launch_line_done(struct launch_line *l)
{
	mo_strs_clear(&l->program, &l->n_program);
	mo_strs_clear(&l->lost, &l->n_lost);
	mo_vec_clear(&kv_desc, (void **)&l->env, &l->n_env);
	free(l->python);
	free(l->program_path);
	free(l->all);
	for (size_t i = 0; i < l->n_settings; i++) {
		free(l->settings[i].value);
		free(l->settings[i].where);
		free(l->settings[i].over);
	}
	free(l->settings);
	free(l->accelerate_config);
	free(l->dir);
	free(l->dir_unknown);
	free(l->name);
	free(l->time_limit);
	*l = (struct launch_line){ 0 };
}

static bool is_python(const char *word)
{
	const char *name = launch_base_name(word);

	return mo_starts_with(name, "python") && !name[strspn(name, "python0123456789.")];
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && mo_streq(text + n - m, end);
}

/* The rest of the words: SCRIPT WORD.. */
static int take_program(struct launch_line *l, const char *launcher, char *const *words, size_t n,
			bool module, struct mo_error *err)
{
	/* what Primus' launchers put before a rank */
	if (n > 0 && mo_streq(launch_base_name(words[0]), "numa_bind.sh")) {
		launch_lose(l, words[0], NULL, BINDS);
		words++;
		n--;
	}
	if (n == 0)
		return mo_error_set(err, -EINVAL, "%s: no script stands behind its options",
				    launcher);
	if (module)
		mo_strs_add(&l->program, &l->n_program, "-m");
	for (size_t i = 0; i < n; i++)
		mo_strs_add(&l->program, &l->n_program, words[i]);
	return 0;
}

/* primus-cli [slurm [srun|sbatch] OPTIONS --] [container OPTIONS --] [direct OPTIONS --] train
 * pretrain WORD.. */
static int read_primus(struct launch_line *l, char *const *words, size_t n, struct mo_error *err)
{
	size_t at = 0;
	bool module = false;

	for (;;) {
		const struct launcher *p =
			at < n && (mo_streq(words[at], "slurm") || mo_streq(words[at], "srun") ||
				   mo_streq(words[at], "sbatch"))
				? &launch_slurm
				: &launch_primus;

		if (at < n && mo_streq(words[at], "container"))
			launch_lose(l, "primus-cli container", NULL, IMAGE);
		if (at < n && words[at][0] != '-' && !mo_streq(words[at], "train") &&
		    !mo_streq(words[at], "slurm") && !mo_streq(words[at], "srun") &&
		    !mo_streq(words[at], "sbatch") && !mo_streq(words[at], "container") &&
		    !mo_streq(words[at], "direct"))
			return mo_error_set(err, -EINVAL,
					    "primus-cli: '%s' trains nothing: expected `-- train "
					    "pretrain --config FILE ..`",
					    words[at]);
		if (at >= n || mo_streq(words[at], "train"))
			break;
		at += words[at][0] != '-';
		launch_options(l, p, words, n, &at, &module);
	}
	if (n - at < 2 ||
	    (!mo_streq(words[at + 1], "pretrain") && !mo_streq(words[at + 1], "posttrain")))
		return mo_error_set(err, -EINVAL,
				    "primus-cli: it trains nothing: expected `-- train pretrain "
				    "--config FILE ..`");
	mo_strs_add(&l->program, &l->n_program, "primus/cli/main.py");
	return take_program(l, "primus-cli", words + at, n - at, false, err);
}

/* The interpreter that stands beside a launcher that is named by its path. */
static void take_python(struct launch_line *l, const char *launcher)
{
	const char *slash = strrchr(launcher, '/');

	if (!slash)
		return;
	free(l->python);
	l->python = is_python(launcher)
			    ? mo_strdup(launcher)
			    : mo_printf("%.*s/python3", (int)(slash - launcher), launcher);
}

/* torchrun starts one process where nothing says how many. */
static int read_torchrun(struct launch_line *l, char *const *words, size_t n, bool tells_rank,
			 struct mo_error *err)
{
	int64_t node = l->per_node;
	size_t at = 0;
	bool module = false;

	l->launcher = (char *)launch_torchrun.name;
	l->per_node = 1;
	launch_options(l, &launch_torchrun, words, n, &at, &module);
	if (l->per_node == LAUNCH_ALL)
		l->per_node = node;
	if (tells_rank && !l->use_env)
		launch_lose(l, "--local-rank=N", NULL, LOCAL_RANK_IS_SET);
	return take_program(l, l->launcher, words + at, n - at, module, err);
}

static int read_deepspeed(struct launch_line *l, char *const *words, size_t n, struct mo_error *err)
{
	size_t at = 0;
	bool module = false;

	l->launcher = (char *)launch_deepspeed.name;
	launch_options(l, &launch_deepspeed, words, n, &at, &module);
	if (!l->use_env)
		launch_lose(l, "--local_rank=N", NULL, LOCAL_RANK_IS_SET);
	return take_program(l, l->launcher, words + at, n - at, module, err);
}

static int read_accelerate(struct launch_line *l, char *const *words, size_t n,
			   struct mo_error *err)
{
	size_t at = 0;
	bool module = false;

	l->launcher = (char *)launch_accelerate.name;
	launch_options(l, &launch_accelerate, words, n, &at, &module);
	launch_accelerate_type(l, words, at);
	if (l->tasks != MO_NONE)
		l->total = l->tasks; /* of all machines */
	return take_program(l, l->launcher, words + at, n - at, module, err);
}

/* Modules of python that prepare something. */
#define TOOLS \
	"pip venv ensurepip build pytest json.tool zipfile http.server ipykernel " \
	"compileall site virtualenv wandb"

/* python [-u] SCRIPT, python -m torch.distributed.run .. */
static int read_python(struct launch_line *l, char *const *words, size_t n, struct mo_error *err)
{
	size_t at = 1;
	bool module = false;

	take_python(l, words[0]);
	for (; at < n && words[at][0] == '-' && !module; at++) {
		module = mo_streq(words[at], "-m");
		if (mo_streq(words[at], "-c") || mo_streq(words[at], "-"))
			return mo_error_set(err, -EINVAL, "python %s runs no script", words[at]);
		if (module || mo_streq(words[at], "-u"))
			continue;
		bool valued =
			(mo_streq(words[at], "-X") || mo_streq(words[at], "-W")) && at + 1 < n;

		launch_lose(l, words[at], valued ? words[at + 1] : NULL,
			    "a word for python; engine.python names the interpreter alone");
		at += valued;
	}
	const char *name = module && at < n ? words[at] : "";

	if (mo_streq(name, "torch.distributed.run") || mo_streq(name, "torch.distributed.launch"))
		return read_torchrun(l, words + at + 1, n - at - 1, ends_in(name, "launch"), err);
	if (mo_streq(name, "deepspeed.launcher.runner") || mo_streq(name, "deepspeed"))
		return read_deepspeed(l, words + at + 1, n - at - 1, err);
	if (mo_starts_with(name, "accelerate.commands.launch"))
		return read_accelerate(l, words + at + 1, n - at - 1, err);
	if (*name && launch_among(TOOLS, name, strlen(name)))
		return mo_error_set(err, -EINVAL, "python -m %s trains nothing", name);
	if (!l->launcher)
		l->launcher = (char *)"python";
	return take_program(l, l->launcher, words + at, n - at, module, err);
}

/* Primus' older launchers: EXP=FILE bash examples/run_pretrain.sh WORD.. */
bool launch_is_pretrain_sh(const char *path)
{
	const char *name = launch_base_name(path);

	return mo_streq(name, "run_pretrain.sh") || mo_streq(name, "run_local_pretrain.sh") ||
	       mo_streq(name, "run_slurm_pretrain.sh");
}

static int read_pretrain_sh(struct launch_line *l, char *const *words, size_t n,
			    struct mo_error *err)
{
	static const char *const own[] = { "primus/cli/main.py", "train", "pretrain", "--config" };

	l->launcher = (char *)launch_primus.name;
	for (size_t i = 0; i < l->n_env; i++) {
		if (!mo_streq(l->env[i].key, "EXP"))
			continue;
		for (size_t k = 0; k < ELEMENTSOF(own); k++)
			mo_strs_add(&l->program, &l->n_program, own[k]);
		mo_strs_add(&l->program, &l->n_program, l->env[i].value);
		mo_vec_remove(&kv_desc, l->env, &l->n_env, i);
		for (size_t k = 0; k < n; k++)
			mo_strs_add(&l->program, &l->n_program, words[k]);
		return 0;
	}
	return mo_error_set(err, -EINVAL, "run_pretrain.sh: EXP does not say which experiment");
}

static int read_launch(struct launch_line *l, char *const *words, size_t n, struct mo_error *err)
{
	size_t at = launch_line_head(l, words, n);
	const char *name = at < n ? launch_base_name(words[at]) : "";

	if ((mo_streq(name, "bash") || mo_streq(name, "sh")) && at + 1 < n &&
	    (mo_starts_with(launch_base_name(words[at + 1]), "primus-cli") ||
	     launch_is_pretrain_sh(words[at + 1])))
		name = launch_base_name(words[++at]);
	if ((mo_streq(name, "primus-cli") || launch_is_pretrain_sh(name)) && strchr(words[at], '/'))
		mo_str_set(&l->program_path, words[at]);
	if (mo_streq(name, "primus-cli")) {
		l->launcher = (char *)launch_primus.name;
		return read_primus(l, words + at + 1, n - at - 1, err);
	}
	if (launch_is_pretrain_sh(name))
		return read_pretrain_sh(l, words + at + 1, n - at - 1, err);
	if (is_python(name))
		return read_python(l, words + at, n - at, err);
	bool accelerate =
		mo_streq(name, "accelerate") && at + 1 < n && mo_streq(words[at + 1], "launch");

	if (accelerate || mo_streq(name, "torchrun") || mo_streq(name, "deepspeed"))
		take_python(l, words[at]);
	if (mo_streq(name, "torchrun"))
		return read_torchrun(l, words + at + 1, n - at - 1, false, err);
	if (mo_streq(name, "deepspeed"))
		return read_deepspeed(l, words + at + 1, n - at - 1, err);
	if (accelerate)
		return read_accelerate(l, words + at + 2, n - at - 2, err);
	if (launch_among("docker podman nerdctl apptainer singularity enroot", name, strlen(name)))
		return mo_error_set(err, -ENOTSUP,
				    "%s: give the command that runs in the container; " IMAGE,
				    name);
	return mo_error_set(err, -EINVAL,
			    "'%.60s' starts no training that moectl knows: expected torchrun, "
			    "primus-cli, deepspeed, accelerate launch, python, or srun before one "
			    "of them",
			    name);
}

bool launch_line_begins(const char *word)
{
	static const char names[] =
		"torchrun deepspeed accelerate srun sbatch mpirun mpiexec aprun flux primus-cli "
		"bash sh docker podman nerdctl apptainer singularity enroot";
	const char *name = launch_base_name(word);

	return launch_assigned(word) || launch_wrapper_of(word) || is_python(word) ||
	       launch_among(names, name, strlen(name));
}

static int64_t commas(const char *text)
{
	int64_t n = 0;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

/* Names that only the launcher sets, and values that nobody should read in a file. */
static void sift_env(struct launch_line *l)
{
	for (size_t i = 0; i < l->n_env;) {
		const char *name = l->env[i].key;
		int64_t n;

		if (mo_streq(name, "NNODES") && l->nodes == MO_NONE &&
		    mo_parse_i64(l->env[i].value, 1, 1000000, &n) == 0)
			l->nodes = n;
		if (mo_streq(name, "GPUS_PER_NODE") && l->per_node == MO_NONE &&
		    mo_parse_i64(l->env[i].value, 1, 1000000, &n) == 0)
			l->per_node = n;
		if (mo_streq(name, "WORLD_SIZE") && mo_streq(l->launcher, "python") && !l->spread &&
		    mo_parse_i64(l->env[i].value, 1, 1000000, &n) == 0)
			l->world = n;
		if (mo_env_visibility(name) && *l->env[i].value && !strchr(l->env[i].value, '$'))
			l->visible = commas(l->env[i].value) + 1;
		if (mo_env_visibility(name))
			launch_lose(l, name, NULL,
				    "moectl chooses the GPUs of a job and tells its ranks");
		else if (mo_mask_variable(name))
			launch_lose(l, name, NULL,
				    "a secret stands in a file on the nodes: env: {NAME: {file: "
				    "PATH}}");
		if (!mo_env_launch_name(name) && !mo_mask_variable(name) &&
		    !mo_streq(name, "GPUS_PER_NODE"))
			i++;
		else
			mo_vec_remove(&kv_desc, l->env, &l->n_env, i);
	}
}

void launch_line_init(struct launch_line *l)
{
	*l = (struct launch_line){ .nodes = MO_NONE,
				   .per_node = MO_NONE,
				   .tasks = MO_NONE,
				   .tasks_per_node = MO_NONE,
				   .world = MO_NONE,
				   .visible = MO_NONE,
				   .total = MO_NONE };
}

/* One process of its own is one rank, and one that Slurm or MPI starts is as many as they start. */
static void settle(struct launch_line *l)
{
	if (l->per_node == LAUNCH_ALL)
		l->per_node = MO_NONE;
	/* of several processes where nothing says how many, as many as there are GPUs */
	if (l->per_node == MO_NONE && l->total == MO_NONE &&
	    launch_among("torchrun deepspeed accelerate", l->launcher, strlen(l->launcher)))
		l->per_node = l->visible;
	if (l->tasks_per_node == MO_NONE && l->tasks != MO_NONE)
		l->tasks_per_node = l->tasks / MO_MAX(l->nodes, 1);
	if (mo_streq(l->launcher, "python") && l->spread) {
		launch_lose(l, "SLURM_PROCID, OMPI_COMM_WORLD_RANK and their like", NULL,
			    "a rank gets RANK, LOCAL_RANK and WORLD_SIZE");
		l->total = l->nodes == MO_NONE ? l->tasks : MO_NONE;
		if (l->tasks_per_node != MO_NONE || l->nodes != MO_NONE)
			l->per_node = MO_MAX(l->tasks_per_node, 1);
	}
}

int launch_line_plain(char *const *words, size_t n, struct launch_line *ret, struct mo_error *err)
{
	launch_line_init(ret);
	int r = read_launch(ret, words, n, err);

	if (r < 0) {
		launch_line_done(ret);
	} else {
		sift_env(ret);
		settle(ret);
	}
	return r;
}
