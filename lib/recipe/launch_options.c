/* See launch_options.h. The tables say of each launcher's options what becomes of them. */
#include "lib/recipe/launch_options.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/base/utf8.h"
#include "lib/recipe/launch_accelerate.h"

#define WORDS_MAX 400 /* bytes of what is lost that are printed: the reason is printed whole */

/* What becomes of an option: a number or text that is kept, or words that are lost for this
 * reason. */
enum keeps {
	KEEP_NOTHING,
	KEEP_SAME,
	KEEP_ONE,
	KEEP_TASKS,
	KEEP_TASKS_PER_NODE,
	KEEP_TOTAL,
	KEEP_INCLUDED,
	KEEP_CONFIG,
	KEEP_REPORTED,
	KEEP_USE_ENV,
	KEEP_PAIR,
	KEEP_NODES,
	KEEP_GPUS,
	KEEP_GRES,
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
	  "--rdzv-backend --rdzv_backend --rdzv-endpoint --rdzv_endpoint --rdzv-id --rdzv_id "
	  "--local-addr --local_addr",
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
	{ "--use-env --use_env", false, KEEP_USE_ENV, NULL },
};
static const struct option deepspeed_options[] = {
	{ "--num_nodes", true, KEEP_NODES, NULL },
	{ "--num_gpus", true, KEEP_GPUS, NULL },
	{ "--module", false, KEEP_MODULE, NULL },
	{ "--master_addr --master_port --node_rank --hostfile -H", true, KEEP_SAME, NULL },
	{ "-i --include", true, KEEP_INCLUDED, PLACED },
	{ "--no_local_rank", false, KEEP_USE_ENV, NULL },
	{ "-e --exclude --launcher --launcher_args --save_pid --enable_each_rank_log "
	  "--bind_core_list",
	  true, KEEP_NOTHING, PLACED },
	{ "--bind_cores_to_rank", false, KEEP_NOTHING, BINDS },
	{ "--force_multi --no_python --elastic_training", false, KEEP_NOTHING, PLACED },
};
static const struct option slurm_options[] = {
	{ "-N --nodes", true, KEEP_NODES, NULL },
	{ "--gpus-per-node", true, KEEP_GPUS, NULL },
	{ "--gres", true, KEEP_GRES, NULL },
	{ "--gpus-per-task", true, KEEP_GPUS, NULL },
	{ "-G --gpus", true, KEEP_TOTAL, NULL },
	{ "-n --ntasks", true, KEEP_TASKS, NULL },
	{ "--ntasks-per-node --tasks-per-node", true, KEEP_TASKS_PER_NODE, NULL },
	{ "-J --job-name", true, KEEP_NAME, NULL },
	{ "-t --time", true, KEEP_TIME, NULL },
	{ "-D --chdir", true, KEEP_DIR, NULL },
	{ "-c --cpus-per-task --exclusive-user --mem --mem-per-cpu --mem-per-gpu --cpus-per-gpu",
	  true, KEEP_SAME, NULL },
	{ "--exclusive -l --label -u --unbuffered -K --kill-on-bad-exit", false, KEEP_SAME, NULL },
	{ "-o --output -e --error --open-mode", true, KEEP_NOTHING, LOGS },
	{ "--cpu-bind --cpu_bind --mem-bind --gpu-bind -m --distribution", true, KEEP_NOTHING,
	  BINDS },
	{ "-p --partition -A --account -q --qos -w --nodelist -x --exclude --reservation -C "
	  "--constraint --mpi --export --nice --signal --dependency --requeue-delay --jobid "
	  "--network --mail-type --mail-user --comment --switches --wckey --begin --array",
	  true, KEEP_NOTHING,
	  "a word for Slurm; priority, cluster.exclude and time_limit are in docs/recipe.md" },
	{ "--container-image --container-mounts --container-workdir --container-name", true,
	  KEEP_NOTHING, IMAGE },
	{ "--container-writable --container-mount-home --no-container-mount-home", false,
	  KEEP_NOTHING, IMAGE },
	{ "--requeue --no-requeue --overlap --overcommit -O --wait --parsable --test-only", false,
	  KEEP_NOTHING, "a word for Slurm" },
};
static const struct option primus_options[] = {
	{ "--env", true, KEEP_ENV, NULL },
	{ "--image --volume --name --device --cap --memory --cpus", true, KEEP_NOTHING, IMAGE },
	{ "--clean --no-auto-mount --privileged", false, KEEP_NOTHING, IMAGE },
	{ "--numa", false, KEEP_NOTHING, BINDS },
	{ "--config --script --log_file --log-file --patch", true, KEEP_NOTHING,
	  "a word for primus-cli; its hooks are engine.prepare in docs/recipe.md" },
	{ "--single", false, KEEP_ONE, NULL },
	{ "--silent --debug --dry-run --no-numa", false, KEEP_NOTHING, "a word for primus-cli" },
	{ "-N --nnodes", true, KEEP_NODES, NULL },
	{ "--nproc_per_node --gpus_per_node", true, KEEP_GPUS, NULL },
};
static const struct option accelerate_options[] = {
	{ "--num_processes --num-processes", true, KEEP_TASKS, NULL },
	{ "--num_machines --num-machines", true, KEEP_NODES, NULL },
	{ "-m --module", false, KEEP_MODULE, NULL },
	{ "--config_file --config-file", true, KEEP_CONFIG, NULL },
	{ "--multi_gpu --multi-gpu --same_network", false, KEEP_SAME, NULL },
	{ "--machine_rank --machine-rank --main_process_ip --main-process-ip --main_process_port "
	  "--main-process-port --rdzv_backend --rdzv_conf --deepspeed_hostfile "
	  "--deepspeed_multinode_launcher",
	  true, KEEP_SAME, NULL },
	{ "--gpu_ids --num_cpu_threads_per_process", true, KEEP_NOTHING, PLACED },
	{ "--max_restarts --monitor_interval", true, KEEP_NOTHING, RESTARTS },
	{ "--mixed_precision --mixed-precision --zero_stage --zero-stage --deepspeed_config_file "
	  "--gradient_accumulation_steps --gradient_clipping --offload_optimizer_device "
	  "--offload_param_device --zero3_init_flag --zero3_save_16bit_model --fsdp_version "
	  "--deepspeed_moe_layer_cls_names --fsdp_sharding_strategy --fsdp_reshard_after_forward "
	  "--fsdp_offload_params --fsdp_min_num_params --fsdp_auto_wrap_policy "
	  "--fsdp_transformer_layer_cls_to_wrap --fsdp_backward_prefetch --fsdp_state_dict_type "
	  "--fsdp_forward_prefetch --fsdp_use_orig_params --fsdp_cpu_ram_efficient_loading "
	  "--fsdp_sync_module_states --fsdp_activation_checkpointing",
	  true, KEEP_REPORTED, ACCELERATES },
	{ "--use_deepspeed --use-deepspeed --use_fsdp --use-fsdp", false, KEEP_REPORTED,
	  ACCELERATES },
	{ "--dynamo_backend --dynamo_mode --dynamo-backend", true, KEEP_NOTHING, ACCELERATES },
	{ "--use_megatron_lm --use-megatron-lm --tpu --cpu", false, KEEP_NOTHING, ACCELERATES },
};
static const struct option mpi_options[] = {
	{ "-np -n -c --np", true, KEEP_TASKS, NULL },
	{ "-N --npernode -npernode --ppn -ppn", true, KEEP_TASKS_PER_NODE, NULL },
	{ "-x", true, KEEP_ENV, NULL },
	{ "-H --host --hostfile -hostfile --machinefile -f", true, KEEP_SAME, NULL },
	{ "--allow-run-as-root --tag-output --oversubscribe --report-bindings -l", false, KEEP_SAME,
	  NULL },
	{ "--bind-to -bind-to --map-by -map-by --rank-by", true, KEEP_NOTHING, BINDS },
	{ "--output-filename", true, KEEP_NOTHING, LOGS },
	{ "-mca --mca", true, KEEP_PAIR, NULL },
};
static const struct option flux_options[] = {
	{ "-N --nodes", true, KEEP_NODES, NULL },
	{ "-n --ntasks", true, KEEP_TASKS, NULL },
	{ "--tasks-per-node", true, KEEP_TASKS_PER_NODE, NULL },
	{ "--job-name", true, KEEP_NAME, NULL },
	{ "--cwd", true, KEEP_DIR, NULL },
	{ "--env", true, KEEP_ENV, NULL },
	{ "-g --gpus-per-task --gpus-per-node -c --cores-per-task --cores", true, KEEP_SAME, NULL },
	{ "-x --exclusive -l --label-io", false, KEEP_SAME, NULL },
	{ "--output --error -u", true, KEEP_NOTHING, LOGS },
	{ "-o --setopt -t --time-limit -q --queue -B --bank --requires --urgency -S --setattr",
	  true, KEEP_NOTHING, "a word for Flux; priority and time_limit are in docs/recipe.md" },
};
#define TABLE(name, options) \
	{ \
		name, options, ELEMENTSOF(options) \
	}
const struct launcher launch_torchrun = TABLE("torchrun", torchrun_options);
const struct launcher launch_deepspeed = TABLE("deepspeed", deepspeed_options);
const struct launcher launch_slurm = TABLE("srun", slurm_options);
const struct launcher launch_primus = TABLE("primus-cli", primus_options);
const struct launcher launch_accelerate = TABLE("accelerate", accelerate_options);
const struct launcher launch_flux = TABLE("flux", flux_options);
const struct launcher launch_mpi = TABLE("mpirun", mpi_options);

void launch_lose(struct launch_line *l, const char *what, const char *value, const char *why)
{
	_cleanup_(mo_freep) char *text =
		mo_printf("%s%s%s", what, value ? " " : "", value ? value : "");
	bool cut = strlen(text) > WORDS_MAX;

	for (char *p = text; *p; p++)
		*p = *p == '\n' || *p == '\t' || *p == '\r' ? ' ' : *p;
	if (cut)
		text[mo_utf8_cut(text, WORDS_MAX)] = '\0';
	mo_strs_printf(&l->lost, &l->n_lost, "%s%s: %s", text, cut ? ".." : "", why);
	for (size_t i = 0; i + 1 < l->n_lost; i++)
		if (mo_streq(l->lost[i], l->lost[l->n_lost - 1])) {
			free(l->lost[--l->n_lost]);
			return;
		}
}

static size_t name_length(const char *word)
{
	size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");

	return n ? n + strspn(word + n,
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789")
		 : 0;
}

size_t launch_assigned(const char *word)
{
	size_t n = name_length(word);

	return n && word[n] == '=' ? n : 0;
}

void launch_env(struct launch_line *l, const char *name, size_t n, const char *value)
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

bool launch_among(const char *names, const char *word, size_t n)
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
		if (launch_among(p->options[i].names, word, n))
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

/* "8", "gpu:8", "gpu:mi300x:8"; of "2:4" and "2-4" nodes, what it may shrink to, the most. */
static int64_t number_of(const char *text)
{
	const char *colon = strrchr(text, ':'), *dash = colon ? NULL : strrchr(text, '-');
	int64_t v;

	text = colon ? colon + 1 : dash && dash > text ? dash + 1 : text;
	return mo_parse_i64(text, 1, 1000000, &v) == 0 ? v : MO_NONE;
}

/* Of "gpu:mi300x:8(S:0-1),nvme:1" the 8; "gpu" is one. MO_NONE: no GPU is in it. */
static int64_t gres_of(const char *text)
{
	for (const char *p = text; *p; p += strspn(p, ",")) {
		size_t n = strcspn(p, ",");
		_cleanup_(mo_freep) char *item = mo_strndup(p, strcspn(p, ",("));
		bool gpu = mo_starts_with(item, "gpu") && (!item[3] || item[3] == ':');

		if (gpu)
			return number_of(item) != MO_NONE ? number_of(item) : 1;
		p += n;
	}
	return MO_NONE;
}

/* "gpu", "auto", or what only a shell on the node counts: `$(nvidia-smi -L | wc -l)`. */
static bool is_all(const char *value)
{
	return mo_streq(value, "gpu") || mo_streq(value, "auto") || strpbrk(value, "$`");
}

static int64_t commas(const char *text)
{
	int64_t n = 0;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

static void keep(struct launch_line *l, const struct option *o, const char *word, const char *value)
{
	int64_t n = value ? number_of(value) : MO_NONE;
	bool retained = true;

	switch (o->keeps) {
	case KEEP_PAIR:
	case KEEP_SAME: return;
	case KEEP_ONE: l->total = 1; return;
	case KEEP_NODES:
		retained = n != MO_NONE;
		l->nodes = retained ? n : l->nodes;
		break;
	case KEEP_GPUS:
		retained = n != MO_NONE;
		l->per_node = retained ? n : LAUNCH_ALL;
		if (!retained && is_all(value)) {
			free(l->all);
			l->all = mo_printf("%s %s", word, value);
			return;
		}
		break;
	case KEEP_GRES:
		n = gres_of(value);
		l->per_node = n != MO_NONE ? n : l->per_node;
		return;
	case KEEP_TASKS:
		retained = n != MO_NONE;
		l->tasks = retained ? n : l->tasks;
		break;
	case KEEP_TASKS_PER_NODE:
		retained = n != MO_NONE;
		l->tasks_per_node = retained ? n : l->tasks_per_node;
		break;
	case KEEP_TOTAL:
		retained = n != MO_NONE;
		l->total = retained ? n : l->total;
		break;
	case KEEP_INCLUDED: /* localhost:0,1 or a:0,1@b:0,1 */
		launch_lose(l, word, value, o->why);
		n = 0;
		for (const char *p = value; *p; p += strspn(p, "@")) {
			_cleanup_(mo_freep) char *part = mo_strndup(p, strcspn(p, "@"));
			const char *colon = strchr(part, ':');

			if (!colon)
				return; /* all of that node */
			n += commas(colon) + 1;
			p += strlen(part);
		}
		l->total = n ? n : l->total;
		return;
	case KEEP_CONFIG: mo_str_set(&l->accelerate_config, value); return;
	case KEEP_REPORTED:
		if (!launch_accelerate_word(l, word, value))
			launch_lose(l, word, value, o->why);
		return;
	case KEEP_USE_ENV: l->use_env = true; return;
	case KEEP_DIR: mo_str_set(&l->dir, value); break;
	case KEEP_NAME: mo_str_set(&l->name, value); break;
	case KEEP_TIME:
		free(l->time_limit);
		l->time_limit = slurm_time(value);
		retained = l->time_limit;
		break;
	case KEEP_ENV:
		retained = launch_assigned(value);
		if (retained)
			launch_env(l, value, launch_assigned(value),
				   value + launch_assigned(value) + 1);
		break;
	default: launch_lose(l, word, value, o->why); return;
	}
	if (!retained)
		launch_lose(l, word, value,
			    value && mo_streq(value, "cpu") ? "one process for each core; a rank "
							      "of moectl has a GPU: --gpus N"
			    : o->keeps == KEEP_ENV ? "it says no value: write NAME: VALUE into env"
						   : "it is no number, duration or NAME=VALUE that "
						     "a recipe has: write it in yourself");
}

static bool is_script(const char *word)
{
	size_t n = strlen(word);

	return strchr(word, '/') || (n > 3 && mo_streq(word + n - 3, ".py"));
}

void launch_options(struct launch_line *l, const struct launcher *p, char *const *words, size_t n,
		    size_t *at, bool *module)
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
		if (o && o->keeps == KEEP_PAIR && *at < n)
			(*at)++; /* transport of MPI, which no rank uses */
		_cleanup_(mo_freep) char *name = mo_strndup(word, len);
		/* what stands behind an unknown word is none of the program's */
		if (!o && !eq && *at + 1 < n && words[*at][0] != '-' && !is_script(words[*at]))
			value = words[(*at)++];
		if (!o || (o->valued && !value))
			launch_lose(l, word, o || eq ? NULL : value,
				    o ? "its value is missing"
				      : "moectl does not know this word of the launcher");
		else if (o->keeps == KEEP_MODULE)
			*module = true;
		else
			keep(l, o, name, value);
	}
}
