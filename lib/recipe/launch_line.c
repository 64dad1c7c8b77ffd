/* See launch_line.h. The tables say of each launcher's options what becomes of them. */
#include "lib/recipe/launch_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/model/env_names.h"
#include "lib/model/mask.h"

#define PLACED "moectl places the ranks and gives them this"
#define RESTARTS \
	"moectl restarts by itself, from the newest verified checkpoint: recovery in " \
	"docs/recipe.md"
#define LOGS "moectl keeps the output of every rank: moectl logs JOB --rank R"
#define BINDS "moectl binds each rank beside its GPU: bind in docs/recipe.md"
#define IMAGE \
	"containers are not part of a recipe here: run moe-agent inside the image " \
	"(docs/first-day.md)"

/* What becomes of an option: a number or text that is kept, or words that are lost for this
 * reason. */
enum keeps {
	KEEP_NOTHING,
	KEEP_SAME,
	KEEP_NODES,
	KEEP_GPUS,
	KEEP_MODULE,
	KEEP_ENV,
	KEEP_DIR,
	KEEP_NAME,
	KEEP_TIME
};
struct option {
	const char *names;
	bool valued;
	enum keeps keeps;
	const char *why;
};

static const struct option torchrun_options[] = {
	{ "--nnodes -N", true, KEEP_NODES, NULL },
	{ "--nproc-per-node --nproc_per_node", true, KEEP_GPUS, NULL },
	{ "-m --module", false, KEEP_MODULE, NULL },
	{ "--standalone", false, KEEP_SAME, NULL },
	{ "--node-rank --node_rank --master-addr --master_addr --master-port --master_port "
	  "--rdzv-backend --rdzv_backend "
	  "--rdzv-endpoint --rdzv_endpoint --rdzv-id --rdzv_id --local-addr --local_addr",
	  true, KEEP_SAME, NULL },
	{ "--rdzv-conf --rdzv_conf --monitor-interval --monitor_interval --start-method "
	  "--start_method --role",
	  true, KEEP_NOTHING, PLACED },
	{ "--max-restarts --max_restarts", true, KEEP_NOTHING, RESTARTS },
	{ "--log-dir --log_dir -r --redirects -t --tee --local-ranks-filter --local_ranks_filter "
	  "--logs-specs --logs_specs",
	  true, KEEP_NOTHING, LOGS },
	{ "--numa-binding --numa_binding", true, KEEP_NOTHING, BINDS },
	{ "--no-python --no_python", false, KEEP_NOTHING,
	  "a rank is the interpreter with the script" },
	{ "--run-path --run_path", false, KEEP_NOTHING,
	  "a rank is the interpreter with the script" },
};
static const struct option deepspeed_options[] = {
	{ "--num_nodes", true, KEEP_NODES, NULL },
	{ "--num_gpus", true, KEEP_GPUS, NULL },
	{ "--module", false, KEEP_MODULE, NULL },
	{ "--master_addr --master_port --node_rank --hostfile -H", true, KEEP_SAME, NULL },
	{ "-i --include -e --exclude --launcher --launcher_args --save_pid --enable_each_rank_log "
	  "--bind_core_list",
	  true, KEEP_NOTHING, PLACED },
	{ "--bind_cores_to_rank", false, KEEP_NOTHING, BINDS },
	{ "--force_multi --no_local_rank --no_python --elastic_training", false, KEEP_NOTHING,
	  PLACED },
};
static const struct option slurm_options[] = {
	{ "-N --nodes", true, KEEP_NODES, NULL },
	{ "--gpus-per-node", true, KEEP_GPUS, NULL },
	{ "--gres", true, KEEP_GPUS, NULL },
	{ "-J --job-name", true, KEEP_NAME, NULL },
	{ "-t --time", true, KEEP_TIME, NULL },
	{ "-D --chdir", true, KEEP_DIR, NULL },
	{ "-n --ntasks --ntasks-per-node -c --cpus-per-task --exclusive-user --mem", true,
	  KEEP_SAME, NULL },
	{ "--exclusive -l --label -u --unbuffered -K --kill-on-bad-exit", false, KEEP_SAME, NULL },
	{ "-o --output -e --error --open-mode", true, KEEP_NOTHING, LOGS },
	{ "--cpu-bind --cpu_bind --mem-bind --gpu-bind -m --distribution", true, KEEP_NOTHING,
	  BINDS },
	{ "-p --partition -A --account -q --qos -w --nodelist -x --exclude --reservation -C "
	  "--constraint --mpi --export "
	  "--container-image --container-mounts --container-workdir --container-name --nice "
	  "--signal --dependency "
	  "--requeue-delay --jobid --network --mail-type --mail-user --comment --switches --wckey "
	  "--begin --array",
	  true, KEEP_NOTHING,
	  "a word for Slurm; priority, cluster.exclude and time_limit are in docs/recipe.md" },
	{ "--requeue --no-requeue --overlap --overcommit -O --container-writable "
	  "--container-mount-home",
	  false, KEEP_NOTHING, "a word for Slurm" },
};
static const struct option primus_options[] = {
	{ "--env", true, KEEP_ENV, NULL },
	{ "--image --volume --name --device --cap --memory --cpus", true, KEEP_NOTHING, IMAGE },
	{ "--clean --no-auto-mount --privileged", false, KEEP_NOTHING, IMAGE },
	{ "--numa", false, KEEP_NOTHING, BINDS },
	{ "--config --script --log_file --log-file --patch", true, KEEP_NOTHING,
	  "a word for primus-cli; its hooks are engine.prepare in docs/recipe.md" },
	{ "--single --silent --debug --dry-run --no-numa", false, KEEP_NOTHING,
	  "a word for primus-cli" },
	{ "-N --nnodes", true, KEEP_NODES, NULL },
	{ "--nproc_per_node --gpus_per_node", true, KEEP_GPUS, NULL },
};
struct launcher {
	const char *name;
	const struct option *options;
	size_t n;
	bool ends; /* the program stands behind it */
};
static const struct launcher torchrun = { "torchrun", torchrun_options,
					  ELEMENTSOF(torchrun_options), true };
static const struct launcher deepspeed = { "deepspeed", deepspeed_options,
					   ELEMENTSOF(deepspeed_options), true };
static const struct launcher slurm = { "srun", slurm_options, ELEMENTSOF(slurm_options), false };
static const struct launcher primus = { "primus-cli", primus_options, ELEMENTSOF(primus_options),
					false };

void launch_line_done(struct launch_line *l)
{
	mo_strs_clear(&l->program, &l->n_program);
	mo_strs_clear(&l->lost, &l->n_lost);
	mo_vec_clear(&kv_desc, (void **)&l->env, &l->n_env);
	free(l->python);
	free(l->dir);
	free(l->name);
	free(l->time_limit);
	*l = (struct launch_line){ 0 };
}

static void lose(struct launch_line *l, const char *what, const char *value, const char *why)
{
	mo_strs_printf(&l->lost, &l->n_lost, "%s%s%s: %s", what, value ? " " : "",
		       value ? value : "", why);
}

static void set_env(struct launch_line *l, const char *name, size_t n, const char *value)
{
	struct kv *item = NULL;

	for (size_t i = 0; i < l->n_env && !item; i++)
		if (strlen(l->env[i].key) == n && !strncmp(l->env[i].key, name, n))
			item = &l->env[i];
	if (!item) {
		item = MO_ADD(l, env, &kv_desc);
		item->key = mo_strndup(name, n);
	}
	mo_str_set(&item->value, value);
}

static size_t name_length(const char *word)
{
	size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");

	return n ? n + strspn(word + n,
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789")
		 : 0;
}

static bool is_assignment(const char *word)
{
	size_t n = name_length(word);

	return n && word[n] == '=';
}

static bool among(const char *names, const char *word, size_t n)
{
	for (const char *at = names; *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");

		if (len == n && !strncmp(at, word, n))
			return true;
		at += len;
	}
	return false;
}

static const struct option *option_of(const struct launcher *p, const char *word, size_t n)
{
	for (size_t i = 0; i < p->n; i++)
		if (among(p->options[i].names, word, n))
			return &p->options[i];
	return NULL;
}

/* Slurm's D-HH:MM:SS, HH:MM:SS, MM:SS, MM. */
static char *slurm_time(const char *text)
{
	int64_t days = 0, parts[3] = { 0 }, v;
	size_t n = 0;
	const char *dash = strchr(text, '-');
	_cleanup_(mo_freep) char *first = dash ? mo_strndup(text, (size_t)(dash - text)) : NULL;

	if (first && mo_parse_i64(first, 0, 3650, &days) < 0)
		return NULL;
	for (const char *at = dash ? dash + 1 : text; n < 3;) {
		size_t len = strcspn(at, ":");
		_cleanup_(mo_freep) char *part = mo_strndup(at, len);

		if (mo_parse_i64(part, 0, 1000000, &v) < 0)
			return NULL;
		parts[n++] = v;
		if (!at[len])
			break;
		at += len + 1;
	}
	if (dash || n == 3) /* hours first */
		v = (days * 24 + parts[0]) * 3600 + parts[1] * 60 + parts[2];
	else
		v = parts[0] * 60 + parts[1];
	return v ? mo_printf("%llds", (long long)v) : NULL;
}

/* "8", "gpu:8", "gpu:mi300x:8"; of "2:4" nodes, what it may shrink to, the most. */
static int64_t number_of(const char *text)
{
	const char *colon = strrchr(text, ':');
	int64_t v;

	return mo_parse_i64(colon ? colon + 1 : text, 1, 1000000, &v) == 0 ? v : MO_NONE;
}

static void keep(struct launch_line *l, const struct option *o, const char *word, const char *value)
{
	int64_t n = value ? number_of(value) : MO_NONE;
	bool kept = true;

	switch (o->keeps) {
	case KEEP_SAME: return;
	case KEEP_NODES:
		kept = n != MO_NONE;
		l->nodes = kept ? n : l->nodes;
		break;
	case KEEP_GPUS:
		kept = n != MO_NONE;
		l->per_node = kept ? n : l->per_node;
		break;
	case KEEP_DIR: mo_str_set(&l->dir, value); break;
	case KEEP_NAME: mo_str_set(&l->name, value); break;
	case KEEP_TIME:
		free(l->time_limit);
		l->time_limit = slurm_time(value);
		kept = l->time_limit;
		break;
	case KEEP_ENV:
		kept = is_assignment(value);
		if (kept)
			set_env(l, value, name_length(value), value + name_length(value) + 1);
		break;
	default: lose(l, word, value, o->why); return;
	}
	if (!kept)
		lose(l, word, value,
		     "it is no number, duration or NAME=VALUE that a recipe has: write it in "
		     "yourself");
}

static bool is_script(const char *word)
{
	size_t n = strlen(word);

	return strchr(word, '/') || (n > 3 && mo_streq(word + n - 3, ".py"));
}

/* Options of a launcher up to its first other word, or "--"; *at is behind them. */
static void read_options(struct launch_line *l, const struct launcher *p, char *const *words,
			 size_t n, size_t *at, bool *module)
{
	while (*at < n && words[*at][0] == '-') {
		const char *word = words[(*at)++], *eq = strchr(word, '='),
			   *value = eq ? eq + 1 : NULL;
		size_t len = eq ? (size_t)(eq - word) : strlen(word);
		const struct option *o = option_of(p, word, len);

		if (mo_streq(word, "--"))
			return;
		if (!o && word[1] != '-' && len > 2 && (o = option_of(p, word, 2)) && o->valued) {
			value = word + 2; /* -N4 */
			len = 2;
		}
		if (o && o->valued && !value && *at < n)
			value = words[(*at)++];
		_cleanup_(mo_freep) char *name = mo_strndup(word, len);
		/* what stands behind an unknown word is none of the program's */
		if (!o && !eq && *at + 1 < n && words[*at][0] != '-' && !is_script(words[*at]))
			value = words[(*at)++];
		if (!o || (o->valued && !value))
			lose(l, word, o || eq ? NULL : value,
			     o ? "its value is missing"
			       : "moectl does not know this word of the launcher");
		else if (o->keeps == KEEP_MODULE)
			*module = true;
		else
			keep(l, o, name, value);
	}
}

static const char *base_name(const char *word)
{
	const char *slash = strrchr(word, '/');

	return slash ? slash + 1 : word;
}

static bool is_python(const char *word)
{
	const char *name = base_name(word);

	return mo_starts_with(name, "python") && !name[strspn(name, "python0123456789.")];
}

/* The rest of the words: SCRIPT WORD.. */
static int take_program(struct launch_line *l, const char *launcher, char *const *words, size_t n,
			bool module, struct mo_error *err)
{
	/* what Primus' launchers put before a rank */
	if (n > 0 && mo_streq(base_name(words[0]), "numa_bind.sh")) {
		lose(l, words[0], NULL, BINDS);
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
				? &slurm
				: &primus;

		if (at < n && mo_streq(words[at], "container"))
			lose(l, "primus-cli container", NULL, IMAGE);
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
		read_options(l, p, words, n, &at, &module);
	}
	if (n - at < 2)
		return mo_error_set(err, -EINVAL,
				    "primus-cli: it trains nothing: expected `-- train pretrain "
				    "--config FILE ..`");
	mo_strs_add(&l->program, &l->n_program, "primus/cli/main.py");
	return take_program(l, "primus-cli", words + at, n - at, false, err);
}

static int read_launch(struct launch_line *l, char *const *words, size_t n, struct mo_error *err);

/* python [-u] SCRIPT, python -m torch.distributed.run .. */
static int read_python(struct launch_line *l, char *const *words, size_t n, struct mo_error *err)
{
	size_t at = 1;
	bool module = false;

	if (words[0][0] == '/')
		mo_str_set(&l->python, words[0]);
	for (; at < n && words[at][0] == '-' && !module; at++) {
		module = mo_streq(words[at], "-m");
		if (!module && !mo_streq(words[at], "-u"))
			lose(l, words[at], NULL,
			     "a word for python; engine.python names the interpreter alone");
	}
	if (module && at < n &&
	    (mo_streq(words[at], "torch.distributed.run") ||
	     mo_streq(words[at], "torch.distributed.launch"))) {
		l->launcher = (char *)torchrun.name;
		module = false;
		at++;
		read_options(l, &torchrun, words, n, &at, &module);
	} else if (!l->launcher) {
		l->launcher = (char *)"python";
	}
	return take_program(l, l->launcher, words + at, n - at, module, err);
}

/* Primus' older launchers: EXP=FILE bash examples/run_pretrain.sh WORD.. */
static bool is_pretrain_sh(const char *name)
{
	return mo_streq(name, "run_pretrain.sh") || mo_streq(name, "run_local_pretrain.sh") ||
	       mo_streq(name, "run_slurm_pretrain.sh");
}

static int read_pretrain_sh(struct launch_line *l, char *const *words, size_t n,
			    struct mo_error *err)
{
	static const char *const own[] = { "primus/cli/main.py", "train", "pretrain", "--config" };

	l->launcher = (char *)primus.name;
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

static bool is_wrapper(const char *word)
{
	return mo_streq(word, "env") || mo_streq(word, "exec") || mo_streq(word, "nohup") ||
	       mo_streq(word, "time") || mo_streq(word, "command");
}

static int read_launch(struct launch_line *l, char *const *words, size_t n, struct mo_error *err)
{
	size_t at = 0;
	bool module = false;
	const char *name;

	for (; at < n && (is_assignment(words[at]) || is_wrapper(words[at])); at++)
		if (is_assignment(words[at]))
			set_env(l, words[at], name_length(words[at]),
				words[at] + name_length(words[at]) + 1);
	name = at < n ? base_name(words[at]) : "";
	if (mo_streq(name, "srun") || mo_streq(name, "sbatch")) {
		at++;
		read_options(l, &slurm, words, n, &at, &module);
		return read_launch(l, words + at, n - at, err);
	}
	if ((mo_streq(name, "bash") || mo_streq(name, "sh")) && at + 1 < n &&
	    (mo_starts_with(base_name(words[at + 1]), "primus-cli") ||
	     is_pretrain_sh(base_name(words[at + 1]))))
		name = base_name(words[++at]);
	if (mo_streq(name, "primus-cli")) {
		l->launcher = (char *)primus.name;
		return read_primus(l, words + at + 1, n - at - 1, err);
	}
	if (is_pretrain_sh(name))
		return read_pretrain_sh(l, words + at + 1, n - at - 1, err);
	if (is_python(name))
		return read_python(l, words + at, n - at, err);
	if (mo_streq(name, "torchrun") || mo_streq(name, "deepspeed")) {
		const struct launcher *p = mo_streq(name, "torchrun") ? &torchrun : &deepspeed;

		l->launcher = (char *)p->name;
		at++;
		read_options(l, p, words, n, &at, &module);
		return take_program(l, name, words + at, n - at, module, err);
	}
	return mo_error_set(err, -EINVAL,
			    "'%.60s' starts no training that moectl knows: expected torchrun, "
			    "primus-cli, deepspeed, python, or srun before one of them",
			    name);
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
		if (mo_env_visibility(name))
			lose(l, name, NULL, "moectl chooses the GPUs of a job and tells its ranks");
		else if (mo_mask_variable(name))
			lose(l, name, NULL,
			     "a secret stands in a file on the nodes: env: {NAME: {file: PATH}}");
		if (!mo_env_launch_name(name) && !mo_mask_variable(name) &&
		    !mo_streq(name, "GPUS_PER_NODE"))
			i++;
		else
			mo_vec_remove(&kv_desc, l->env, &l->n_env, i);
	}
}

static void clear(struct launch_line *l)
{
	*l = (struct launch_line){ .nodes = MO_NONE, .per_node = MO_NONE };
}

int launch_line_words(char *const *words, size_t n, struct launch_line *ret, struct mo_error *err)
{
	clear(ret);
	int r = read_launch(ret, words, n, err);

	if (r < 0)
		launch_line_done(ret);
	else
		sift_env(ret);
	return r;
}
