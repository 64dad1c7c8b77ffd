/* See launch_tables.h: a row for the options of which the same becomes. */
#include "lib/recipe/launch_tables.h"

#include "lib/base/util.h"

static const struct launch_option torchrun_options[] = {
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
static const struct launch_option deepspeed_options[] = {
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
static const struct launch_option slurm_options[] = {
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
	{ "--container-image", true, KEEP_NOTHING, IMAGE },
	{ "--container-mounts", true, KEEP_NOTHING, MOUNTS },
	{ "--container-workdir", true, KEEP_DIR, NULL },
	{ "--container-name", true, KEEP_NOTHING, RIGHTS },
	{ "--container-writable --no-container-mount-home", false, KEEP_SAME, NULL },
	{ "--container-mount-home", false, KEEP_NOTHING,
	  "write it as engine.container: {home: true} (docs/recipe.md)" },
	{ "--requeue --no-requeue --overlap --overcommit -O --wait --parsable --test-only", false,
	  KEEP_NOTHING, "a word for Slurm" },
};
static const struct launch_option primus_options[] = {
	{ "--env", true, KEEP_ENV, NULL },
	{ "--image", true, KEEP_NOTHING, IMAGE },
	{ "--volume", true, KEEP_NOTHING, MOUNTS },
	{ "--name --device --cap --memory --cpus", true, KEEP_NOTHING, RIGHTS },
	{ "--clean --no-auto-mount --privileged", false, KEEP_NOTHING, RIGHTS },
	{ "--numa", false, KEEP_NOTHING, BINDS },
	{ "--config --script --log_file --log-file --patch", true, KEEP_NOTHING,
	  "a word for primus-cli; its hooks are engine.prepare in docs/recipe.md" },
	{ "--single", false, KEEP_ONE, NULL },
	{ "--silent --debug --dry-run --no-numa", false, KEEP_NOTHING, "a word for primus-cli" },
	{ "-N --nnodes", true, KEEP_NODES, NULL },
	{ "--nproc_per_node --gpus_per_node", true, KEEP_GPUS, NULL },
};
static const struct launch_option accelerate_options[] = {
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
static const struct launch_option mpi_options[] = {
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
static const struct launch_option flux_options[] = {
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
