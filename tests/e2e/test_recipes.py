#!/usr/bin/python3
"""Every shipped recipe: valid without a warning, and the exact command and environment of every
rank by a dry run. Usage: test_recipes.py [TEST...]

Where the vendor's files are (../shared/data/primus), recipes are read together with them.
`test_recipes.py --write` writes config/experiments anew from config/models."""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, PATIENCE, ROOT, Suite, clean_env, equal, moectl, need

suite = Suite()
SHARED = os.path.join(ROOT, "..", "shared/data/primus")
TREE = os.path.realpath(os.path.join(SHARED, "tree"))
RECIPES = sorted(glob.glob(os.path.join(ROOT, "config", "recipes", "*.yaml")))
# what the features of a recipe must become, whatever else is said
SAYS = {
    "primus-megatron": {
        "a2a: deepep": "--use_turbo_deepep true",
        "loss_fusion: true": "--cross_entropy_loss_fusion true",
        "manual_gc: 1": "--manual_gc true --manual_gc_interval 1",
        "grouped_gemm: turbo": "--use_turbo_grouped_gemm true",
        "sync_free: 1": "--turbo_sync_free_moe_stage 1",
        "sync_free: 2": "--turbo_sync_free_moe_stage 2",
        "recompute_layers: [0, 1": "--recompute_layer_ids 0,1,",
    },
    "primus-torchtitan": {
        "grouped_gemm: turbo": "--primus_turbo.use_turbo_grouped_mm true",
        "loss_fusion: true": "--compile.components ['model','loss']",
        "manual_gc: 50": "--training.gc_freq 50",
    },
}
EXACT = """/usr/bin/python3 primus/cli/main.py train pretrain --log_interval 1 --log_throughput true
--exit_signal_handler true --auto_continue_train false --config\
 examples/moe_package/configs/MI355X/deepseek_v2_lite-pretrain-baseline.yaml\
 --tensor_model_parallel_size 1 --pipeline_model_parallel_size 1 --expert_model_parallel_size 8\
 --expert_tensor_parallel_size 1
--context_parallel_size 1 --use_distributed_optimizer true --use_torch_fsdp2 false\
 --use_megatron_fsdp false --seq_length 4096 --max_position_embeddings 4096 --micro_batch_size 14\
 --global_batch_size 896 --bf16 true --fp16 false --fp8 None --fp4 None --recompute_granularity\
 None --recompute_method None --recompute_num_layers None --recompute_layer_ids None --train_iters\
 1000
--save /ckpt/deepseek-v2-lite/checkpoints --disable_last_saving false --no_save_optim false\
 --no_save_rng false --save_interval 500 --mtp_num_layers None --moe_router_num_groups None\
 --moe_router_group_topk None --moe_grouped_gemm true --use_turbo_grouped_gemm false\
 --moe_use_legacy_grouped_gemm true --turbo_grouped_gemm_without_padding false\
 --enable_primus_turbo true --use_turbo_deepep true --moe_router_dtype fp32
--moe_shared_expert_overlap false --turbo_sync_free_moe_stage 1 --cross_entropy_loss_fusion true\
 --cross_entropy_fusion_impl te --manual_gc true --manual_gc_interval 1
--multi_latent_attention true --turbo_deepep_num_cu 64 --mock_data true\
 --moe_router_force_load_balancing true --turbo_deepep_use_comm_stream false""".split()


def dry_run(path, *sets):
    # no controller: the shape of the recipe is placed on free machines
    r = moectl(
        "submit",
        "--dry-run",
        "--json",
        path,
        *sets,
        env=clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
    )
    return json.loads(r.stdout)


# Experiments of models for which Primus ships the sizes alone: its name of the model, the sharding
# that was published, and where.
EXPERIMENTS = {
    "moe-515b": ("moe_515B", {"pp": 16, "vpp": 6, "ep": 8}, "PP16 EP8 VPP6 of figure 10"),
    "moe-1t": ("moe_1T", {"pp": 24, "vpp": 4, "ep": 8}, "PP24 EP8 of figure 8, VPP = layers / PP"),
    "moe-2t": ("moe_2T", {"pp": 24, "vpp": 4, "ep": 8}, "PP24 EP8 of figure 9, VPP = layers / PP"),
    "moe-4t": (
        "moe_4T",
        {"pp": 24, "vpp": 4, "ep": 16},
        "none is published for it: PP24 as for 2T, and EP16 for twice the experts",
    ),
}
EXPERIMENT = """\
# {title} with Primus' Megatron backend. Primus ships the sizes\
 (primus/configs/models/megatron/{primus}.yaml), but no experiment.
# Written by tests/e2e/test_recipes.py --write from config/models/{model}.yaml, so that what is\
 planned is what is trained. Sharding: {source}
# (MoE Training Best Practices on AMD GPUs); training options as in Primus' experiments of the\
 same family (deepseek_v2-BF16-pretrain.yaml).
work_group: ${{PRIMUS_TEAM:amd}}
user_name: ${{PRIMUS_USER:root}}
exp_name: ${{PRIMUS_EXP_NAME:{primus}-pretrain}}
workspace: ${{PRIMUS_WORKSPACE:./output}}

modules:
  pre_trainer:
    framework: megatron
    config: pre_trainer.yaml
    model: ${{PRIMUS_MODEL:{primus}}}.yaml
    overrides:
      # the model
      num_layers: {layers}
      hidden_size: {hidden}
      vocab_size: {vocab}
      num_attention_heads: {heads}
      group_query_attention: true
      num_query_groups: {kv_heads}
      kv_channels: {head_dim}
      multi_latent_attention: false
      num_experts: {experts}
      moe_router_topk: {topk}
      moe_ffn_hidden_size: {ffn}
      moe_shared_expert_intermediate_size: {shared_ffn}
      moe_layer_freq: 1

      # parallel
      tensor_model_parallel_size: ${{PRIMUS_TP:1}}
      pipeline_model_parallel_size: ${{PRIMUS_PP:{pp}}}
      num_virtual_stages_per_pipeline_rank: {vpp}
      expert_model_parallel_size: ${{PRIMUS_EP:{ep}}}
      use_distributed_optimizer: true
      overlap_grad_reduce: true
      overlap_param_gather: true
      gradient_accumulation_fusion: false

      # hyper parameters
      train_iters: 50
      micro_batch_size: 1
      global_batch_size: 1536
      seq_length: ${{PRIMUS_SEQ_LENGTH:4096}}
      max_position_embeddings: ${{PRIMUS_MAX_POSITION_EMBEDDINGS:4096}}
      lr: 1.0e-5
      min_lr: 0.0
      lr_warmup_iters: 2
      lr_decay_iters: null
      lr_decay_style: cosine
      weight_decay: 0.1
      adam_beta1: 0.9
      adam_beta2: 0.95
      init_method_std: 0.008
      norm_epsilon: 1.0e-6

      # data
      mock_data: true
      train_data_path: ${{PRIMUS_TOKENIZED_DATA_PATH:null}}
      valid_data_path: null
      test_data_path: null
      eval_iters: 0

      # checkpoints: all of the state, in the format that another sharding can read
      finetune: false
      auto_continue_train: false
      load: null
      save: null
      no_load_optim: null
      no_load_rng: null
      no_save_optim: null
      no_save_rng: null
      disable_last_saving: false
      ckpt_format: torch_dist

      # what DeepEP needs
      moe_router_dtype: fp32
      moe_shared_expert_overlap: false
"""


def experiment(model):
    """(path, text) of the experiment of a model of the catalogue."""
    primus, sharding, source = EXPERIMENTS[model]
    with open(os.path.join(ROOT, "config/models", model + ".yaml")) as f:
        text = f.read()
    values = dict(
        re.findall(r"^  (\w+): (\d+)$", text, re.M)
        + re.findall(r"(\w+): (\d+)", re.search(r"^  moe: {(.*)}$", text, re.M).group(1))
    )
    title = re.search(r"^title: (.*)$", text, re.M).group(1)
    equal(
        values["dense_layers"], "0", "dense layers of %s, which the experiment does not say" % model
    )
    return (
        os.path.join(ROOT, "config/experiments", primus + "-pretrain.yaml"),
        EXPERIMENT.format(
            model=model, primus=primus, title=title, source=source, **sharding, **values
        ),
    )


@suite.test
def experiments_are_those_of_the_models():
    for model in EXPERIMENTS:
        path, text = experiment(model)
        with open(path) as f:
            equal(f.read(), text, "%s: write it anew with tests/e2e/test_recipes.py --write" % path)


@suite.test
def all_are_valid():
    need(len(RECIPES) >= 20, "only %d recipes" % len(RECIPES))
    for path in RECIPES:
        r = moectl("validate", path)
        equal(r.stderr, "", "warnings of %s" % path)


@suite.test
def every_rank_has_a_command():
    for path in RECIPES:
        text = open(path).read()
        doc = dry_run(path)
        ranks = doc["ranks"]
        gpus = int(text.split("gpus: ")[1].split(",")[0].split("}")[0].split("\n")[0].split("#")[0])
        if "maxtext\n" in text:  # a process per node
            gpus //= 8
        equal([r["rank"] for r in ranks], list(range(gpus)), "ranks of %s" % path)
        engine = text.split("kind: ")[1].split("\n")[0].split()[0].rstrip(",}")
        for rank in ranks:
            env = rank["env"]
            equal(
                (env["RANK"], env["WORLD_SIZE"], env["LOCAL_RANK"]),
                (str(rank["rank"]), str(gpus), str(rank["local_rank"])),
                "names of rank %d of %s" % (rank["rank"], path),
            )
            need(env["HSA_KERNARG_POOL_SIZE"] == "12582912", "%s: no kernel-argument pool" % path)
            need(
                rank["argv"] == ranks[0]["argv"],
                "%s: rank %d has another command" % (path, rank["rank"]),
            )
            need(
                not any("{" in word for word in rank["argv"] if engine.startswith("primus")),
                "%s: a word with braces: %s" % (path, rank["argv"]),
            )
        command = " ".join(ranks[0]["argv"])
        for feature, words in SAYS.get(engine, {}).items():
            if feature in text:
                need(words in command, "%s: %s is not in %s" % (path, words, command))


@suite.test
def one_command_to_the_letter():
    doc = dry_run(os.path.join(ROOT, "config/recipes/deepseek-v2-lite-8-mi355x.yaml"))
    equal(doc["ranks"][7]["argv"], EXACT, "the command of rank 7")


# What Primus' scripts beside the published figures give to the experiment that they name: their
# defaults, and the features 3 4 5 7 of their list.
MOE_PACKAGE = """--seq_length 4096 --tensor_model_parallel_size 1 --expert_tensor_parallel_size 1\
 --expert_model_parallel_size 8 --context_parallel_size 1
--mock_data True --moe_router_force_load_balancing True --optimizer adam\
 --moe_use_legacy_grouped_gemm True --multi_latent_attention True --mtp_num_layers None
--cross_entropy_fusion_impl te --cross_entropy_loss_fusion True --enable_primus_turbo True\
 --use_turbo_deepep True --turbo_deepep_num_cu 64
--turbo_deepep_use_comm_stream False --moe_shared_expert_overlap False --moe_router_dtype fp32\
 --turbo_sync_free_moe_stage 1 --manual_gc True --manual_gc_interval 1""".split()
PUBLISHED = {
    "deepseek-v2-32-mi355x": (
        2547.5,
        "deepseek_v2",
        "--micro_batch_size 1 --global_batch_size 256 --pipeline_model_parallel_size 4 "
        "--num_virtual_stages_per_pipeline_rank 5 --pp_warmup True",
    ),
    "deepseek-v2-lite-8-mi355x": (
        40805.5,
        "deepseek_v2_lite",
        "--micro_batch_size 14 --global_batch_size 896 --pipeline_model_parallel_size 1",
    ),
}
# What moectl says by itself: lines to read, a stop that saves, where and how long.
OURS = re.compile(
    "save|save_interval|train_iters|log_interval|log_throughput|exit_signal_handler|"
    "use_distributed_optimizer|bf16|max_position_embeddings|"
    "disable_last_saving|no_save_.*|finetune|moe_grouped_gemm|recompute_.*|"
    "turbo_grouped_gemm_without_padding|.*_path$"
)


def shared(test):
    if os.path.isdir(SHARED):
        suite.test(test)
    return test


def with_tree(path):
    """The vendor's files lie here, and not in the image that the recipe may name."""
    text = open(path).read()
    if "kind: primus" not in text:
        return []
    here = ["--set", "engine.container=none"] if "\n  container:" in text else []
    return ["--set", "engine.workdir=" + TREE] + here


def resolve(argv, env):
    command = (
        [os.path.join(BUILD, "tests/resolve/resolve"), TREE]
        + ["%s=%s" % pair for pair in env.items()]
        + ["--", "primus/cli/main.py", "train", "pretrain"]
        + argv
    )
    return json.loads(
        subprocess.run(
            command, stdout=subprocess.PIPE, check=True, timeout=PATIENCE * 60, text=True
        ).stdout
    )["merged"]


@shared
def recipes_with_the_vendors_files():
    """Each resolves with the files that it names, says nothing against them, and its plan by them
    fits."""
    seen = 0
    for path in RECIPES:
        if not with_tree(path):
            continue
        r = moectl("validate", path, *with_tree(path), check=False)
        wrong = [line for line in r.stderr.splitlines() if ": note: " not in line]
        need(r.returncode == 0 and not wrong, "%s: %s" % (path, wrong))
        said = {
            i["key"]: i["value"]
            for i in json.loads(
                moectl("explain", "config", path, *with_tree(path), "--json").stdout
            )["items"]
        }
        rank = dry_run(path, *with_tree(path))["ranks"][0]
        equal(
            said,
            resolve(rank["argv"][rank["argv"].index("pretrain") + 1 :], rank["env"]),
            "configuration of %s by its dry run" % path,
        )
        plan = json.loads(moectl("plan", path, *with_tree(path), "--json").stdout)["plans"][0]
        need(
            plan["fits"],
            "%s does not fit: %.1f of %.1f GB"
            % (path, plan["memory_gb"]["total"], plan["memory_gb"]["capacity"]),
        )
        seen += 1
    need(seen >= 18, "only %d recipes" % seen)


@shared
def published_throughput_is_planned():
    """The recipes that name a throughput train the configuration that had it, and are planned
    within the error that the plan states."""
    for name, (measured, model, words) in PUBLISHED.items():
        path = os.path.join(ROOT, "config/recipes", name + ".yaml")
        need(
            "{:,}".format(measured).rstrip("0").rstrip(".") in open(path).read(),
            "%s does not name its throughput" % name,
        )
        theirs = resolve(
            ["--config", "examples/moe_package/configs/MI355X/%s-pretrain-baseline.yaml" % model]
            + MOE_PACKAGE
            + words.split(),
            {},
        )
        ours = {
            i["key"]: i["value"]
            for i in json.loads(
                moectl("explain", "config", path, *with_tree(path), "--json").stdout
            )["items"]
        }
        differ = sorted(
            k
            for k in set(theirs) | set(ours)
            if theirs.get(k) != ours.get(k) and not OURS.fullmatch(k)
        )
        need(
            not differ,
            "%s trains another configuration: %s"
            % (name, [(k, theirs.get(k), ours.get(k)) for k in differ]),
        )
        for sets in ([], with_tree(path)):
            plan = json.loads(moectl("plan", path, *sets, "--json").stdout)["plans"][0]
            off = 100 * (plan["tokens_per_s_per_gpu"] / measured - 1)
            print(
                "%s: %.0f planned, %.1f measured, %+.1f %%"
                % (name, plan["tokens_per_s_per_gpu"], measured, off)
            )
            need(
                abs(off) <= plan["error_pct"],
                "%s: %+.1f %%, stated %s" % (name, off, plan["error_pct"]),
            )


@shared
def experiments_resolve_to_the_models():
    """Primus makes of each of our experiments the sizes that the plan counts, which are those of
    its own model file."""
    for model, (primus, sharding, _) in EXPERIMENTS.items():
        path, text = experiment(model)
        merged = resolve(["--config", path], {})
        for line in re.findall(r"^      (\w+): ([\w.]+)$", text.split("# parallel")[0], re.M):
            if line[0] != "vocab_size":
                own = re.findall(
                    r"^%s: (\S+)" % line[0],
                    open(
                        os.path.join(TREE, "primus/configs/models/megatron", primus + ".yaml")
                    ).read(),
                    re.M,
                )
                need(
                    not own or own == [line[1]],
                    "%s: %s is %s in Primus' model file" % (model, line, own),
                )
            equal(json.dumps(merged[line[0]]), line[1], "%s of %s" % (line[0], model))
        equal(
            [
                merged[k]
                for k in (
                    "pipeline_model_parallel_size",
                    "expert_model_parallel_size",
                    "num_virtual_stages_per_pipeline_rank",
                    "disable_last_saving",
                )
            ],
            [sharding["pp"], sharding["ep"], sharding["vpp"], False],
            model,
        )


def said_in_text(text):
    """Commands and environments that the text of a dry run gives each rank, as a reader would put
    them together."""
    commands, common, by_node, by_rank, part = {}, {}, {}, {}, None
    pairs = lambda words: dict(w.split("=", 1) for w in words)
    for line in text.split("\n"):
        if line.startswith("command of "):
            whose = line[len("command of ") : -1]
            part = "command"
        elif line.startswith("environment"):
            part = line
        elif line.startswith("RANK "):
            break
        elif line.startswith("  ") and part == "command":
            commands[whose] = shlex.split(line)
        elif line.startswith("  ") and part == "environment of every rank:":
            common.update(pairs(shlex.split(line)))
        elif line.startswith("  ") and part == "environment, by node:":
            node, rest = line.strip().split(": ", 1)
            by_node[node] = pairs(shlex.split(rest))
        elif line.startswith("  ") and part == "environment, by rank:":
            rank, rest = line.strip()[len("rank ") :].split(": ", 1)
            by_rank[int(rank)] = pairs(shlex.split(rest))
    return commands, common, by_node, by_rank


@suite.test
def text_says_what_json_says():
    with tempfile.TemporaryDirectory() as d:
        odd = os.path.join(d, "odd.yaml")
        with open(odd, "w") as f:
            f.write(
                "recipe: 1\nname: odd\nengine: {kind: command, argv: [/bin/echo, 'a b', \"it's\", "
                "'', '$x']}\ncluster: {gpus: 12, gpu: mi300x}\n"
                "env: {ODD: 'x  y', EMPTY: '', MY_TOKEN: hush}\n"
            )
        for path in [odd] + [
            os.path.join(ROOT, "config/recipes", n + ".yaml")
            for n in ("deepseek-v2-32-mi355x", "mixtral-8x7b-8-mi355x-maxtext")
        ]:
            text = moectl(
                "submit", "--dry-run", path, env=clean_env(MOE_URL="unix:/nonexistent/moed.sock")
            ).stdout
            commands, common, by_node, by_rank = said_in_text(text)
            for rank in dry_run(path)["ranks"]:
                equal(
                    commands["every rank"],
                    rank["argv"],
                    "command of rank %d of %s" % (rank["rank"], path),
                )
                said = dict(
                    common, **by_node.get(rank["node"], {}), **by_rank.get(rank["rank"], {})
                )
                equal(said, rank["env"], "environment of rank %d of %s" % (rank["rank"], path))
            need("hush" not in text, "a secret in the text")


@suite.test
def warnings_have_a_place():
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "w.yaml")
        with open(path, "w") as f:
            f.write(
                "recipe: 1\nname: w\nengine:\n  kind: primus-megatron\n  entry: e.yaml\n"
                "  args: {mock_data: true, of_my_own: 3}\ncluster: {gpus: 1}\nsteps: 1\n"
                "parallelism: {tp: 1, pp: 1, ep: 1, etp: 1, cp: 1}\n"
            )
        r = moectl("validate", path)
        need(
            "\n%s:6:27: warning: engine.args: unknown flag 'of_my_own' of Primus" % path
            in "\n" + r.stderr,
            r.stderr,
        )
        r = moectl("validate", path, "--set", "engine.args.another=1")
        need(
            "%s: warning: --set engine.args.another=1: engine.args: unknown flag 'another'" % path
            in r.stderr,
            r.stderr,
        )
        r = moectl("validate", path, "--set", "engine.strict_args=true", check=False)
        need(
            r.returncode == 2
            and "%s:6:27: engine.args: unknown flag 'of_my_own'" % path in r.stderr,
            r.stderr,
        )


@suite.test
def published_runs_fit():
    seen = []
    for path in RECIPES:
        name = os.path.basename(path)[: -len(".yaml")]
        if name in ("command-hello", "fabric", "tiny-moe"):  # no GPU is named
            continue
        plan = json.loads(moectl("plan", path, "--json").stdout)["plans"][0]
        need(
            plan["fits"],
            "%s does not fit: %.1f of %.1f GB"
            % (name, plan["memory_gb"]["total"], plan["memory_gb"]["capacity"]),
        )
        seen.append(name)
    need(len(seen) >= 20, "only %s" % seen)


def profile_items(name):
    """{variable: value} of config/env/NAME.yaml."""
    with open(os.path.join(ROOT, "config/env", name + ".yaml")) as f:
        items = f.read().partition("\nitems:\n")[2]
    return dict(re.findall(r"name: (\w+),?\s+value: \"?([^\n\",}]+)", items))


@suite.test
def the_network_is_the_profiles():
    """What a NIC's profile says, a recipe leaves to it, and so it does what a field cannot hold;
    every profile says what can be."""
    nics = [
        os.path.basename(p)[:-5] for p in glob.glob(os.path.join(ROOT, "config/env/nic-*.yaml"))
    ]
    said = {name: value for nic in nics + ["amd"] for name, value in profile_items(nic).items()}
    need(len(said) > 20 and "NCCL_IB_TC" in said, said)
    for path in RECIPES:
        env = re.search(r"^env: \{(.*)\}|^env:\n((?:  .*\n)*)", open(path).read(), re.M)
        names = (
            re.findall(r"(\w+):", (env.group(1) or env.group(2)).replace(" #", "\n")) if env else []
        )
        need(
            not [
                n
                for n in names
                if n.startswith(("NCCL_", "RCCL_")) or (n in said and n.startswith("NET_"))
            ],
            "%s sets %s" % (path, names),
        )
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "r.yaml")
        for env, expected in (
            ("".join('  %s: "%s"\n' % item for item in said.items()), None),
            ("  NCCL_IB_TIMEOUT: 22\n  NCCL_IB_RETRY_CNT: 7\n", None),
            (
                "  NCCL_IB_TIMEOUT: 300\n",
                "%s:6:20: env.NCCL_IB_TIMEOUT: expected a whole number from 0 to 31, got '300'"
                % path,
            ),
            (
                "  A: b\n  NCCL_IB_RETRY_CNT: 20\n",
                "%s:7:22: env.NCCL_IB_RETRY_CNT: expected a whole number from 0 to 7, got '20'"
                % path,
            ),
        ):
            with open(path, "w") as f:
                f.write(
                    "recipe: 1\nname: w\nengine: {kind: command, argv: [/bin/true]}\n"
                    "cluster: {gpus: 8}\nenv:\n" + env
                )
            r = moectl("validate", path, check=False)
            need(
                (r.returncode, r.stderr) == (0, "")
                if not expected
                else r.returncode == 2 and expected in r.stderr,
                "%s: %s" % (env, r.stderr),
            )


@suite.test
def a_site_limits_variables():
    with tempfile.TemporaryDirectory() as d:
        shutil.copytree(os.path.join(ROOT, "config"), os.path.join(d, "data"))
        recipe, limits = os.path.join(d, "r.yaml"), os.path.join(d, "data/env/site.yaml")
        with open(recipe, "w") as f:
            f.write(
                "recipe: 1\nname: w\nengine: {kind: command, argv: [/bin/true]}\n"
                "cluster: {gpus: 8}\nenv: {OUR_NICS: 9}\n"
            )
        for text, expected in (
            (
                "limits: [{name: OUR_NICS, min: 1, max: 8, reason: a node has eight}]\n",
                "r.yaml:5:17: env.OUR_NICS: expected a whole number from 1 to 8, got '9': a node "
                "has",
            ),
            ("limits: [{name: OUR_NICS, min: 1, max: 9, reason: nine}]\n", None),
            (
                "limits: [{name: OUR_NICS, min: 1, reason: nine}]\n",
                "site.yaml:3:10: missing key 'max'",
            ),
            ("limits: [OUR_NICS]\n", "site.yaml:3:10: limits: expected {name, min, max, reason}"),
            ("limits: OUR_NICS\n", "site.yaml:3:9: limits: expected a list"),
            ("order: 3\n", "missing key 'items', or 'limits'"),
        ):
            with open(limits, "w") as f:
                f.write("env: 1\nlayer: base\n" + text)
            r = moectl(
                "validate", recipe, env=clean_env(MOE_DATA_DIR=os.path.join(d, "data")), check=False
            )
            need(
                r.returncode == (2 if expected else 0) and (expected or "") in r.stderr,
                "%s: %s" % (text, r.stderr),
            )


@suite.test
def engines_that_are_like_others():
    """`like`: sections that the file leaves out are the other's; what cannot be is one line with
    the file."""
    with tempfile.TemporaryDirectory() as d:
        shutil.copytree(os.path.join(ROOT, "config"), os.path.join(d, "data"))
        recipe = os.path.join(d, "r.yaml")
        with open(recipe, "w") as f:
            f.write(
                "recipe: 1\nname: w\nengine: {kind: mine, entry: e.yaml}\ncluster: {gpus: 8}\n"
                "steps: 7\n"
                "parallelism: {tp: 1, pp: 1, ep: 1, etp: 1, cp: 1}\n"
            )
        for text, expected in (
            (
                "like: primus-megatron\nargv: [mine, '{data:engines/maxtext/start.py}', "
                "'{args}']\n",
                None,
            ),
            ("like: primus\n", "like: there is no config/engines/primus.yaml"),
            ("like: ../x\n", "like: there is no config/engines/../x.yaml"),
            (
                "like: primus-maxtext\n",
                "like: primus-maxtext is like another one itself: name that one, maxtext, and copy",
            ),
            ("like: [maxtext]\n", "like: "),
            (
                "like: command\nargv: ['{data:engines/gone.py}']\n",
                "argv: engines/gone.py is not installed",
            ),
            ("like: command\nrules: 3\n", "mine.yaml:"),
        ):
            with open(os.path.join(d, "data/engines/mine.yaml"), "w") as f:
                f.write("engine: 1\nkind: mine\nsource: this test\n" + text)
            env = clean_env(
                MOE_DATA_DIR=os.path.join(d, "data"), MOE_URL="unix:/nonexistent/moed.sock"
            )
            r = moectl("submit", "--dry-run", "--json", recipe, env=env, check=False)
            need(
                r.returncode == (2 if expected else 0) and (expected or "") in r.stderr,
                "%s: %d: %s" % (text, r.returncode, r.stderr),
            )
            if not expected:
                argv = json.loads(r.stdout)["ranks"][0]["argv"]
                equal(
                    argv[:2],
                    ["mine", os.path.realpath(os.path.join(d, "data/engines/maxtext/start.py"))],
                    "its own command",
                )
                need("--train_iters 7" in " ".join(argv), argv)


@suite.test
def an_engine_that_no_source_names():
    """One file, and the kind is checked, started, explained and planned like any other
    (docs/engines.md: To add an engine)."""
    with tempfile.TemporaryDirectory() as d:
        os.makedirs(os.path.join(d, "data/engines"))
        shutil.copy(
            os.path.join(ROOT, "tests/fixtures/engines/zephyr/zephyr.yaml"),
            os.path.join(d, "data/engines"),
        )
        env = clean_env(MOE_DATA_DIR=os.path.join(d, "data"), MOE_URL="unix:/nonexistent/moed.sock")

        def recipe(args="{}", features="{}", ep=8):
            with open(os.path.join(d, "r.yaml"), "w") as f:
                f.write(
                    "recipe: 1\nname: z\nengine: {kind: zephyr, workdir: /srv, args: %s}\n"
                    "features: %s\nmodel: mixtral-8x7b\ncluster: {gpus: 64, gpu: mi355x}\n"
                    "parallelism: {ep: %d}\nbatch: {seq: 4096, micro: 4, global: 256}\n"
                    "precision: bf16\nsteps: 9\n" % (args, features, ep)
                )
            return os.path.join(d, "r.yaml")

        def plan(*given):
            return json.loads(moectl("plan", "--json", recipe(*given), env=env).stdout)["plans"][0]

        equal(moectl("validate", recipe(), env=env).returncode, 0, "validate")
        ranks = json.loads(
            moectl(
                "submit",
                "--dry-run",
                "--json",
                recipe("{thrift: some}", "{loss_fusion: true, a2a: deepep}"),
                env=env,
            ).stdout
        )["ranks"]
        words = " ".join(ranks[0]["argv"])
        for word in (
            "zephyr.py --wings 1",
            "--feathers 8",
            "--storm 256",
            "--half",
            "--laminar",
            "--jet-stream",
            "--thrift some",
        ):
            need(word in words, "no %s in %s" % (word, words))
        need(
            json.dumps(ranks[0]).count("ZEPHYR_LAMINAR"),
            "no variable of the feature: %s" % ranks[0],
        )
        for given, said in (
            (
                ("{}", "{sync_free: 2}"),
                "features.sync_free: engine zephyr has no 2: a breeze has no stages",
            ),
            (("{jet-stream: true}", "{}", 1), "there is nothing to exchange"),
            (("{wing: 2}",), "wing"),
        ):
            r = moectl("validate", recipe(*given), env=env, check=False)
            need(said in r.stderr, "%s: %s" % (given, r.stderr))
        equal(
            [plan(args)["recompute"] for args in ("{}", "{thrift: some}", "{thrift: all}")],
            ["selective", "selective", "full"],
            "what its flags recompute",
        )
        memory = [
            plan(args)["memory_gb"]["activations"]
            for args in ("{thrift: all}", "{deck: deep}", "{deck: light}", "{}")
        ]
        need(memory == sorted(memory) and len(set(memory)) == 4, "what its flags keep: %s" % memory)
        need(
            plan("{laminar: true}")["memory_gb"]["total"] < plan()["memory_gb"]["total"],
            "the logits of a fused loss",
        )
        with open(os.path.join(d, "data/engines/zephyr.yaml"), "a") as f:
            f.write("  recompute_modul=norms: deck\n")
        r = moectl("validate", recipe(), env=env, check=False)
        need(
            r.returncode == 2
            and "zephyr.yaml:" in r.stderr
            and "plan: 'recompute_modul' is no trait that plans know" in r.stderr,
            r.stderr,
        )


IN_IMAGE = """recipe: 1
name: a
engine:
  kind: torchtitan
  workdir: /w
  container: {image: "dir:%s", mounts: ["%s:/w/exp:ro"]}
  args: {job.config_file: t.toml}
cluster: {gpus: 8}
steps: 5
checkpoint: {dir: /nfs/ckpt}
"""


@suite.test
def an_image_has_its_own_files():
    """Paths of a recipe with an image are the image's: its files are read on a mount of it, or
    where the image lies."""
    env = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
    with tempfile.TemporaryDirectory() as d:

        def length(*words):
            r = moectl("explain", "config", d + "/r.yaml", "--json", *words, env=env)
            items = {i["key"]: i["value"] for i in json.loads(r.stdout)["items"]}
            return items.get("training.seq_len")

        for name, n in (("img/w", 2048), ("img/rootfs/w", 512), ("exp", 1024)):
            os.makedirs(os.path.join(d, name))
            with open(os.path.join(d, name, "t.toml"), "w") as f:
                f.write('[model]\nname = "llama3"\n[training]\nseq_len = %d\n' % n)
        with open(d + "/r.yaml", "w") as f:
            f.write(IN_IMAGE % (d + "/img", d + "/exp"))
        equal(length(), 2048, "in the image")
        equal(length("--set", "engine.args.job.config_file=exp/t.toml"), 1024, "on the mount")
        with open(d + "/img/config.json", "w") as f:
            f.write("{}")
        equal(length(), 512, "in the image of a bundle")
        r = moectl("validate", d + "/r.yaml", env=env)
        need(
            "4:" not in r.stderr and "r.yaml:10:19: warning: checkpoint.dir: no mount" in r.stderr,
            r,
        )
        r = moectl("submit", "--dry-run", d + "/r.yaml", env=env)
        need(
            "in the image dir:%s/img, whose own variables come before those below; it sees "
            "%s/exp:/w/exp:ro\n" % (d, d) in r.stdout,
            r.stdout,
        )
        need("\n  python3 -m torchtitan.train " in r.stdout, r.stdout)
        for words, said in (
            (["--set", "engine.container=rocm/Primus:v26"], "is no name of an image"),
            (["--set", "engine.container.mounts=[/a:/proc]"], "/proc is made for each step"),
            (["--set", "engine.container.privileged=true"], "with the same rights"),
        ):
            r = moectl("validate", d + "/r.yaml", *words, env=env, check=False)
            need(r.returncode == 2 and said in r.stderr and words[1] in r.stderr, r)
        r = moectl("validate", d + "/r.yaml", "--set", "engine.container=none", env=env)
        need("checkpoint.dir" not in r.stderr, r)


@suite.test
def rules_are_documented():
    with open(os.path.join(ROOT, "docs/features.md")) as f:
        doc = f.read()
    for path in glob.glob(os.path.join(ROOT, "config/engines/*.yaml")):
        with open(path) as f:
            for line in f:
                if line.startswith("  - id: "):
                    need(
                        "`%s`" % line.split()[2] in doc,
                        "docs/features.md does not explain the rule %s of %s"
                        % (line.split()[2], path),
                    )


def schema():
    """The JSON Schema of a recipe, and what it says of a text."""
    import jsonschema
    import yaml

    doc = json.loads(moectl("explain", "schema").stdout)
    jsonschema.Draft7Validator.check_schema(doc)
    validator = jsonschema.Draft7Validator(doc)

    class Loader(yaml.SafeLoader):
        """Words of YAML 1.2: `off` is a text, times are texts."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, rx) for tag, rx in rows if tag.split(":")[-1] in ("int", "float", "null")]
        for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:bool", re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
    )
    return lambda text: [e.message for e in validator.iter_errors(yaml.load(text, Loader))]


BASE = """recipe: 1
name: a
engine: {kind: torch, entry: train.py, workdir: /w}
cluster: {gpus: 8}
"""
# more of a recipe, and whether it is one for the table of keys
SAID = [
    ("", True),
    ("steps: 10\n", True),
    ("steps: 0\n", False),
    ("steps: many\n", False),
    ("stepz: 10\n", False),
    ("parallelism: auto\n", True),
    ("parallelism: {tp: 1, dp: auto, sharding: none}\n", True),
    ("parallelism: {tp: 1, sharding: zero4}\n", False),
    ("parallelism: [1]\n", False),
    ("stop: {grace: 90s, signal: USR1}\n", True),
    ("stop: {grace: 1.5h, signal: 10}\n", True),
    ("stop: {grace: 30}\n", True),
    ("stop: {grace: soon}\n", False),
    ("checkpoint: {dir: /c, every: none}\n", True),
    ("checkpoint: {dir: /c, every: 0}\n", True),
    ("checkpoint: {dir: /c, every: false, keep: all, resume: never}\n", True),
    ("checkpoint: {dir: /c, every: -1}\n", False),
    ("checkpoint: {dir: c}\n", False),
    ("checkpoint: {dir: /c, verify: md5}\n", False),
    ("recovery: {hang: off, straggler: drain, loss_spike: none, backoff: 0}\n", True),
    ("recovery: {loss_spike: {action: rollback, factor: 3}}\n", True),
    ("recovery: {loss_spike: {action: rollback, factor: 0.5}}\n", False),
    ("recovery: {policy: {suspect: stop}}\n", True),
    ("health: {preflight: none}\n", True),
    ("health: {preflight: [gpu.ras_ue]}\n", True),
    ("health: {preflight: {a: 1}}\n", False),
    ("bind: {cpu: none, memory: none, smt: all, reserve_cores: 0}\n", True),
    ("bind: {cpu: all}\n", False),
    ("env: {A: 1, B: {file: /x}}\n", True),
    (
        "model: {layers: 2, hidden: 8, heads: 2, vocab: 99, moe: {experts: 4, topk: 2, ffn: 8}}\n",
        True,
    ),
    ("model: {hidden: 8, heads: 2, vocab: 99}\n", False),
    ("model: {layers: 2, hidden: 8, heads: 2, vocab: 99, moe: {experts: 4}}\n", False),
    ("priority: 101\n", False),
    ("precision: int4\n", False),
]


@suite.test
def the_schema_takes_what_recipes_may_say():
    """The same table: what moectl takes it takes, and of what it refuses moectl takes nothing."""
    wrong = schema()
    for path in RECIPES:
        equal(wrong(open(path).read()), [], "of %s" % path)
    with tempfile.TemporaryDirectory() as dir:
        for more, good in SAID:
            path = os.path.join(dir, "r.yaml")
            open(path, "w").write(BASE + more)
            r = moectl("validate", path, check=False)
            said = wrong(BASE + more)
            equal((r.returncode == 0, not said), (good, good), "%r: %s%s" % (more, r.stderr, said))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        for name in EXPERIMENTS:
            with open(experiment(name)[0], "w") as out:
                out.write(experiment(name)[1])
        sys.exit(0)
    sys.exit(1 if suite.main() else 0)
