#!/usr/bin/python3
"""Experiments of an engine resolve to what the engine's own loader makes of them. Usage:
test_experiments.py [TEST...]

tests/fixtures/primus holds a small tree of ours and what becomes of it; ../shared/data/primus,
where it is, the vendor's own files and what the vendor's own loader made of each."""
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
import machine  # noqa: E402
from lib import (
    BUILD,
    Cluster,
    Failed,
    PATIENCE,
    command_recipe,
    ROOT,
    Suite,
    clean_env,
    equal,
    moectl,
    need,
    wait_until,
)  # noqa: E402

suite = Suite()
RESOLVE = os.path.join(BUILD, "tests/resolve/resolve")
SHARED = os.path.join(ROOT, "..", "shared/data/primus")
PREFIX = ["primus/cli/main.py", "train", "pretrain"]


def resolve(root, words, env=None):
    """The document, or the line on stderr."""
    command = (
        [RESOLVE, root]
        + ["%s=%s" % pair for pair in sorted((env or {}).items())]
        + ["--"]
        + PREFIX
        + words
    )
    r = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60 * PATIENCE, text=True
    )
    if r.returncode == 0:
        return json.loads(r.stdout)
    need(r.returncode == 2, "%s: status %d: %s" % (words, r.returncode, r.stderr[-500:]))
    need(r.stderr.count("\n") == 1 and r.stderr.strip(), "%s: not one line: %r" % (words, r.stderr))
    return r.stderr.strip()


def same(a, b):
    """Numbers by value; a truth value is no number, a text is no number."""
    if isinstance(a, bool) or isinstance(b, bool) or type(a) is str or type(b) is str:
        return type(a) is type(b) and a == b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    return a is None and b is None


def misplaced(root, got):
    """Keys whose place is no line that names them, as far as a line can."""
    texts, bad = {}, []
    for key, (file, line, word) in got["sources"].items():
        if word >= 0:
            continue
        path = got["files"][file]
        if path not in texts:
            texts[path] = open(os.path.join(root, path), encoding="utf-8").read().split("\n")
        if key.split(".")[-1] not in texts[path][line - 1]:
            bad.append("%s at %s:%d" % (key, path, line))
    return bad


class Count:
    def __init__(self):
        self.runs = self.good = self.keys = self.good_keys = 0
        self.bad = []

    def compare(self, name, expected, got):
        self.runs += 1
        if isinstance(got, str):
            self.keys += len(expected["merged"])
            self.bad.append("%s: refused: %s" % (name, got))
            return
        wrong = sorted(
            k
            for k in set(expected["merged"]) | set(got["merged"])
            if k not in expected["merged"]
            or k not in got["merged"]
            or not same(expected["merged"][k], got["merged"][k])
        )
        self.keys += len(set(expected["merged"]) | set(got["merged"]))
        self.good_keys += len(set(expected["merged"]) | set(got["merged"])) - len(wrong)
        names = all(same(expected["meta"][k], got["names"].get(k)) for k in expected["meta"])
        module = (
            expected["module"]["name"] == got["module"]
            and expected["module"]["framework"] == got["framework"]
        )
        skipped = expected.get("skipped") or []
        if not wrong and names and module and skipped == got["skipped"]:
            self.good += 1
            return
        self.bad.append(
            "%s: %s %s"
            % (
                name,
                [
                    "%s: %r instead of %r"
                    % (k, got["merged"].get(k, "nothing"), expected["merged"].get(k, "nothing"))
                    for k in wrong[:4]
                ],
                ""
                if names and module
                else "names or module: %s %s %s" % (got["names"], got["module"], got["framework"]),
            )
        )

    def refuse(self, name, expected, got):
        self.runs += 1
        if isinstance(got, str):
            self.good += 1
        else:
            self.bad.append("%s: loaded, but: %s" % (name, expected["error"]["text"]))

    def judge(self, what):
        print(
            "%s: %d of %d runs, %d of %d keys"
            % (what, self.good, self.runs, self.good_keys, self.keys)
        )
        need(not self.bad, "%s: %d differ\n%s" % (what, len(self.bad), "\n".join(self.bad[:12])))


def lines(name):
    with gzip.open(os.path.join(SHARED, name), "rt") as f:
        return [json.loads(line) for line in f]


def shared(test):
    if os.path.isdir(SHARED):
        suite.test(test)
    return test


@shared
def vendor_files():
    count = Count()
    for line in lines("merged-dev.jsonl.gz"):
        got = resolve(
            os.path.join(SHARED, "tree"), ["--config", line["file"]] + line["cli"], line["env"]
        )
        name = "%s %s %s" % (line["file"], line["env"], line["cli"])
        if "error" in line:
            count.refuse(name, line, got)
        else:
            count.compare(name, line, got)
            if "files" in line and not isinstance(got, str):
                equal(
                    [f for f in got["files"] if "/platforms/" not in f],
                    line["files"],
                    "files of %s" % name,
                )
                bad = misplaced(os.path.join(SHARED, "tree"), got)
                need(not bad, "%s: %s" % (name, bad[:5]))
    need(count.runs > 400, "only %d lines" % count.runs)
    count.judge("the vendor's files")


@shared
def made_files():
    count = Count()
    for line in lines("made-dev.jsonl.gz"):
        with tempfile.TemporaryDirectory() as root:
            os.symlink(
                os.path.abspath(os.path.join(SHARED, "tree/primus")), os.path.join(root, "primus")
            )
            for path, text in line["texts"].items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            got = resolve(root, ["--config", line["file"]] + line["cli"], line["env"])
        if "error" in line:
            count.refuse(line["file"], line, got)
        else:
            count.compare(line["file"], line, got)
    need(count.runs >= 60, "only %d lines" % count.runs)
    count.judge("made-up files")


# what a recipe that says nothing of it leaves to the file
LEFT = {
    "megatron": [
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "num_virtual_stages_per_pipeline_rank",
        "virtual_pipeline_model_parallel_size",
        "expert_model_parallel_size",
        "expert_tensor_parallel_size",
        "context_parallel_size",
        "use_distributed_optimizer",
        "use_torch_fsdp2",
        "use_megatron_fsdp",
        "seq_length",
        "micro_batch_size",
        "global_batch_size",
        "recompute_granularity",
        "recompute_method",
        "recompute_num_layers",
        "pipeline_model_parallel_layout",
        "sequence_parallel",
        "bf16",
        "fp8",
    ],
    "torchtitan": [
        "parallelism.tensor_parallel_degree",
        "parallelism.pipeline_parallel_degree",
        "parallelism.expert_parallel_degree",
        "parallelism.context_parallel_degree",
        "parallelism.data_parallel_shard_degree",
        "parallelism.data_parallel_replicate_degree",
        "training.seq_len",
        "training.local_batch_size",
        "training.global_batch_size",
        "activation_checkpoint.mode",
        "training.mixed_precision_param",
    ],
}
MINIMAL = """recipe: 1
name: j
engine: {kind: primus-%s, workdir: %s, entry: %s}
cluster: {gpus: %d}
steps: 50
"""


def ranks_of(merged):
    return (
        max(merged.get("tensor_model_parallel_size") or 1, 1)
        * max(merged.get("pipeline_model_parallel_size") or 1, 1)
        * 8
    )


def kind_of(line):
    """primus-KIND trains it: the framework, and whether it is pre- or post-training."""
    post = line["module"]["name"] == "post_trainer" or line["merged"].get("stage") == "sft"
    return line["module"]["framework"] + ("-sft" if post else "")


def trainer_words(argv):
    """What stands behind `train pretrain` or `train posttrain`."""
    return argv[argv.index("train") + 2 :]


EXPLAINED = {}  # items of each minimal recipe, for the tests behind


@shared
def a_recipe_that_says_nothing_changes_nothing():
    """The command and the configuration of a minimal recipe: everything else is the file's, and
    every key has its place."""
    tree, env, wrong, n, sizes, last = (
        os.path.realpath(os.path.join(SHARED, "tree")),
        clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
        [],
        0,
        0,
        0,
    )
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")
        # what is for post-training runs under both kinds
        for line, kind in [
            (x, k)
            for x in lines("merged-dev.jsonl.gz")
            if x["variant"] == "plain" and x["module"]["framework"] in LEFT
            for k in sorted({kind_of(x), x["module"]["framework"]})
        ]:
            framework = line["module"]["framework"]
            n += 1
            with open(recipe, "w") as f:
                f.write(MINIMAL % (kind, tree, line["file"], ranks_of(line["merged"])))
            r = moectl("explain", "config", recipe, "--json", env=env, check=False)
            if r.returncode:
                wrong.append("%s: %s" % (line["file"], r.stderr.strip()))
                continue
            items = {i["key"]: i for i in json.loads(r.stdout)["items"]}
            EXPLAINED[line["file"]] = list(items.values())
            for key in LEFT[framework]:
                if key in line["merged"]:
                    sizes += 1
                    if (
                        key not in items
                        or not same(items[key]["value"], line["merged"][key])
                        or "file" not in items[key]["source"]
                    ):
                        wrong.append(
                            "%s: %s: %r instead of %r"
                            % (line["file"], key, items.get(key), line["merged"][key])
                        )
            # the same by the command of a dry run, which is what starts
            if n % 10 == 0:
                rank = json.loads(moectl("submit", "--dry-run", "--json", recipe, env=env).stdout)[
                    "ranks"
                ][0]
                got = resolve(tree, trainer_words(rank["argv"]), rank["env"])
                equal(
                    {k: i["value"] for k, i in items.items()},
                    got["merged"],
                    "configuration of %s" % line["file"],
                )
                last += 1
    print(
        "%d of %d minimal recipes, %d values that stay the file's, %d by their dry run"
        % (n - len({w.split(":")[0] for w in wrong}), n, sizes, last)
    )
    need(not wrong, "\n".join(wrong[:20]))
    need(n > 150, "only %d files" % n)


def joined(names):
    """The directory as Primus makes it of its four names."""
    return os.path.abspath(
        os.path.join(
            names["workspace"],
            names["work_group"],
            names["user_name"],
            names["exp_name"],
            "checkpoints",
        )
    )


CHECKPOINTS = MINIMAL + "checkpoint: {dir: %s}\n"
KEPT = {"disable_last_saving": False, "no_save_optim": False, "no_save_rng": False}


@shared
def checkpoints_are_where_they_are():
    """For each experiment Primus saves to checkpoint.dir, given with or without its checkpoints/,
    or the name that forbids it is said; and it saves its last state."""
    tree, env, wrong, counts = (
        os.path.realpath(os.path.join(SHARED, "tree")),
        clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
        [],
        {"met": 0, "refused": 0, "fixed": 0, "titan": 0, "lora": 0},
    )
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")

        def explain(line, checkpoint_dir):
            ranks = (
                max(line["merged"].get("tensor_model_parallel_size") or 1, 1)
                * max(line["merged"].get("pipeline_model_parallel_size") or 1, 1)
                * 8
            )
            with open(recipe, "w") as f:
                f.write(CHECKPOINTS % (kind_of(line), tree, line["file"], ranks, checkpoint_dir))
            # whose saves lose the base weights
            if line["merged"].get("lora.enabled") and line["merged"].get("ckpt_format") == "torch":
                r = moectl("explain", "config", recipe, "--json", env=env, check=False)
                need(
                    r.returncode == 2
                    and "leaves the base weights as they were drawn at random" in r.stderr,
                    line["file"] + ": " + r.stderr,
                )
                counts["lora"] += 1
                with open(recipe) as f:
                    text = f.read()
                with open(recipe, "w") as f:
                    f.write(
                        text.replace(
                            "entry: %s" % line["file"],
                            "entry: %s, args: {ckpt_format: torch_dist}" % line["file"],
                        )
                    )
            return moectl("explain", "config", recipe, "--json", env=env, check=False)

        for n, line in enumerate(
            l
            for l in lines("merged-dev.jsonl.gz")
            if l["variant"] == "plain" and l.get("module", {}).get("framework") == "megatron"
        ):
            given = "/ckpt/x/run-%d%s" % (n, "" if n % 2 else "/checkpoints")
            expected = "/ckpt/x/run-%d/checkpoints" % n
            r = explain(line, given)
            if r.returncode:
                fixed = line["meta"]["exp_name"]
                if (
                    "exp_name is '%s'" % fixed not in r.stderr
                    or r.stderr.count("\n") > 1
                    or r.returncode != 2
                ):
                    wrong.append("%s: %s" % (line["file"], r.stderr.strip()))
                counts["refused"] += 1
                expected = "/ckpt/x/%s/checkpoints" % fixed
                r = explain(line, expected)
                counts["fixed"] += not r.returncode
            if r.returncode:
                wrong.append("%s: %s" % (line["file"], r.stderr.strip()))
                continue
            doc = json.loads(r.stdout)
            items = {i["key"]: i for i in doc["items"]}
            if joined(doc["names"]) != expected or items["save"]["value"] != expected:
                wrong.append(
                    "%s: saves to %s, and --save is %s, instead of %s"
                    % (line["file"], joined(doc["names"]), items["save"]["value"], expected)
                )
            for key, value in KEPT.items():
                if not same(items[key]["value"], value) or items[key]["source"] != {
                    "recipe": "checkpoint.dir"
                }:
                    wrong.append("%s: %s: %s" % (line["file"], key, items[key]))
            counts["met"] += 1
        for n, line in enumerate(
            l
            for l in lines("merged-dev.jsonl.gz")
            if l["variant"] == "plain" and l.get("module", {}).get("framework") == "torchtitan"
        ):
            with open(recipe, "w") as f:
                f.write(CHECKPOINTS % ("torchtitan", tree, line["file"], 64, "/ckpt/x/run-%d" % n))
            items = {
                i["key"]: i["value"]
                for i in json.loads(moectl("explain", "config", recipe, "--json", env=env).stdout)[
                    "items"
                ]
            }
            if (
                items["checkpoint.enable"],
                items["checkpoint.folder"],
                items["checkpoint.last_save_model_only"],
            ) != (True, "/ckpt/x/run-%d" % n, False):
                wrong.append(
                    "%s: %s"
                    % (
                        line["file"],
                        {k: v for k, v in items.items() if k.startswith("checkpoint.")},
                    )
                )
            counts["titan"] += 1
    print("%d of torchtitan" % counts["titan"])
    need(counts["titan"] > 30, counts)
    print(
        "checkpoint.dir: %(met)d met, of them %(fixed)d only where the fixed name allows it "
        "(%(refused)d refused else)" % counts
    )
    need(not wrong, "\n".join(wrong[:20]))
    need(counts["met"] > 130 and counts["lora"] > 0, counts)


@shared
def one_sharding_at_a_time():
    """Whatever way of sharding a file has, the recipe's is the only one on; held against the
    assertions of Megatron's validate_args."""
    tree, env, n = (
        os.path.realpath(os.path.join(SHARED, "tree")),
        clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
        0,
    )
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")
        for kind, name in (
            ("megatron", "MI300X/llama3_70B-BF16-pretrain"),
            ("megatron", "MI300X/llama3.1_8B-FP8-pretrain"),
            ("megatron", "MI300X/llama3_8B-BF16-pretrain"),
            ("megatron-sft", "MI355X/llama3_8B-BF16-sft"),
        ):
            with open(recipe, "w") as f:
                f.write(
                    (MINIMAL % (kind, tree, "examples/megatron/configs/%s.yaml" % name, 8)).replace(
                        "gpus: 8", "gpus: 8, gpu: mi300x"
                    )
                )
            for sharding in ("none", "zero1", "zero2", "zero3"):
                rank = json.loads(
                    moectl(
                        "submit",
                        "--dry-run",
                        "--json",
                        recipe,
                        "--set",
                        "parallelism.sharding=" + sharding,
                        env=env,
                    ).stdout
                )["ranks"][0]
                got = resolve(tree, trainer_words(rank["argv"]), rank["env"])["merged"]
                what = "%s of %s" % (sharding, name)
                equal(
                    (
                        got["use_distributed_optimizer"],
                        got["use_megatron_fsdp"],
                        got["use_torch_fsdp2"],
                    ),
                    {
                        "none": (False, False, False),
                        "zero1": (True, False, False),
                        "zero2": (True, True, False),
                        "zero3": (False, False, True),
                    }[sharding],
                    what,
                )
                need(not got["overlap_param_gather"] or got["use_distributed_optimizer"], what)
                if sharding in ("zero2", "zero3"):
                    need(
                        not got["gradient_accumulation_fusion"]
                        and got["ckpt_format"]
                        == {"zero2": "fsdp_dtensor", "zero3": "torch_dist"}[sharding],
                        what,
                    )
                equal(
                    rank["env"]["CUDA_DEVICE_MAX_CONNECTIONS"],
                    "8" if sharding in ("zero2", "zero3") else "1",
                    "hardware queues with %s" % what,
                )
                n += 1
    equal(n, 16, "files and ways")


MORE_KINDS = {
    "primus-maxtext": (
        "examples/maxtext/configs",
        "",
        [
            "max_target_length",
            "per_device_batch_size",
            "ici_expert_parallelism",
            "ici_fsdp_parallelism",
            "ici_tensor_parallelism",
            "dcn_data_parallelism",
            "remat_policy",
            "dtype",
            "quantization",
        ],
    ),
    "primus-megatron-sft": (
        "examples/megatron/configs",
        "sft",
        LEFT["megatron"] + ["stage", "pretrained_checkpoint", "finetune"],
    ),
}


@shared
def maxtext_and_post_training():
    """Minimal recipes of the two kinds: valid, and everything that they do not say is the
    file's."""
    tree, env = os.path.realpath(os.path.join(SHARED, "tree")), clean_env(
        MOE_URL="unix:/nonexistent/moed.sock"
    )
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")
        for kind, (top, part, keys) in MORE_KINDS.items():
            n = 0
            for directory, _, names in sorted(os.walk(os.path.join(tree, top))):
                for name in sorted(names):
                    if part not in name or "template" in name or not name.endswith(".yaml"):
                        continue
                    path = os.path.relpath(os.path.join(directory, name), tree)
                    theirs = resolve(tree, ["--config", path])["merged"]
                    ranks = (
                        8
                        * (theirs.get("pipeline_model_parallel_size") or 1)
                        * (theirs.get("tensor_model_parallel_size") or 1)
                    )
                    with open(recipe, "w") as f:
                        f.write(
                            "recipe: 1\nname: j\nengine: {kind: %s, workdir: %s, entry: %s}\n"
                            "cluster: {gpus: %d}\nsteps: 50\n" % (kind, tree, path, ranks)
                        )
                    r = moectl("explain", "config", recipe, "--json", env=env, check=False)
                    need(r.returncode == 0, "%s: %s" % (path, r.stderr))
                    items = {i["key"]: i for i in json.loads(r.stdout)["items"]}
                    for key in keys:
                        need(
                            key not in theirs
                            or (
                                same(items[key]["value"], theirs[key])
                                and "file" in items[key]["source"]
                            ),
                            "%s: %s: %s" % (path, key, items.get(key)),
                        )
                    argv = json.loads(
                        moectl("submit", "--dry-run", "--json", recipe, env=env).stdout
                    )["ranks"][0]["argv"]
                    need(("posttrain" if part else "pretrain") in argv, argv)
                    n += 1
            print("%s: %d experiments" % (kind, n))
            need(n >= 15, n)


@shared
def torchtitan_dispatches_by_its_own_keys():
    tree, env = os.path.realpath(os.path.join(SHARED, "tree")), clean_env(
        MOE_URL="unix:/nonexistent/moed.sock"
    )
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")
        for features, sharding, expected in (
            ("a2a: deepep", "ep: 8", {"expert_parallel_comm_backend": "deepep"}),
            ("a2a: alltoall", "ep: 8", {"expert_parallel_comm_backend": "standard"}),
            (
                "overlap_a2a: true",
                "ep: 8, pp: 2, schedule: dualpipe",
                {
                    "pipeline_parallel_schedule": "DualPipeV",
                    "pipeline_parallel_expert_parallel_overlap": True,
                },
            ),
            (
                "overlap_a2a: false",
                "ep: 8, pp: 2, schedule: dualpipe",
                {
                    "pipeline_parallel_schedule": "DualPipeV",
                    "pipeline_parallel_expert_parallel_overlap": False,
                },
            ),
        ):
            with open(recipe, "w") as f:
                f.write(
                    MINIMAL
                    % (
                        "torchtitan",
                        tree,
                        "examples/torchtitan/configs/MI300X/deepseek_v3_16b-BF16-pretrain.yaml",
                        16,
                    )
                    + "recompute: none\nparallelism: {%s}\nfeatures: {%s}\n" % (sharding, features)
                )
            items = {
                i["key"]: i
                for i in json.loads(moectl("explain", "config", recipe, "--json", env=env).stdout)[
                    "items"
                ]
            }
            for key, value in expected.items():
                need(
                    same(items["parallelism." + key]["value"], value)
                    and "recipe" in items["parallelism." + key]["source"],
                    "%s: %s" % (features, items["parallelism." + key]),
                )


@suite.test
def what_primus_has_no_setting_for():
    for recipe, expected in (
        (
            "parallelism: {pp: 2, schedule: dualpipe}\n",
            "no setting for dualpipe: Primus' pipeline has no schedule from both ends",
        ),
        ("precision: nvfp4\n", "no setting for nvfp4: the format is that of NVIDIA's GPUs"),
        ("precision: mxfp4\n", "'mxfp4' is not supported by this version: no plan counts it"),
        (
            "parallelism: {pp: 2, sharding: zero3}\n",
            "Megatron shards by torch's FSDP2 where there is neither a pipeline nor",
        ),
    ):
        with Own(recipe) as own:
            status, said = own.validate()
            need(status == 2 and expected in said, said)


PLANNED = """recipe: 1
name: j
engine: {kind: primus-%s, workdir: %s, entry: %s}
cluster: {gpus: %d, gpu: %s}
"""
# Kinds of models that plans have no model of: what the files say of them.
NOT_PLANNED = (
    "is_hybrid_model=true",
    "model_type=mamba",
    "model_type=diffusion_model",
    "model_type=flux",
    "model_type=deepseek_v4",
    "model_type=kimi_k3",
    "routed_expert_hidden_size",
    "experimental_attention_variant",
    "linear_attention_freq",
    "lfm_layer_types",
)


def layers_with_experts(freq, layers):
    """Megatron's moe_layer_freq as its argument parser takes it."""
    pattern = eval(freq, {"__builtins__": {}}) if isinstance(freq, str) else freq
    return (
        pattern
        if isinstance(pattern, list)
        else [1 if i % pattern == 0 else 0 for i in range(layers)]
    )


@shared
def plans_are_the_files():
    """A recipe that names an experiment and a cluster validates, and its plan is of what the
    experiment's files say."""
    tree, env, wrong, n, no_model = (
        os.path.realpath(os.path.join(SHARED, "tree")),
        clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
        [],
        0,
        0,
    )
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")
        for number, line in enumerate(lines("merged-dev.jsonl.gz")):
            m, framework = line.get("merged", {}), line.get("module", {}).get("framework")
            if line["variant"] != "plain" or framework not in LEFT or number % 3:
                continue
            n += 1
            tp, pp, ep, cp = (
                max(m.get(k) or 1, 1)
                for k in (
                    "tensor_model_parallel_size",
                    "pipeline_model_parallel_size",
                    "expert_model_parallel_size",
                    "context_parallel_size",
                )
            )
            gpus = 64 if framework == "torchtitan" else max(8, pp * max(tp * cp, ep))
            with open(recipe, "w") as f:
                f.write(PLANNED % (kind_of(line), tree, line["file"], gpus, "mi355x"))
            r = moectl("validate", recipe, env=env, check=False)
            if r.returncode:
                wrong.append("%s: %s" % (line["file"], r.stderr.strip()))
                continue
            r = moectl("plan", recipe, "--json", env=env, check=False)
            if r.returncode:
                no_model += 1
                text = r.stderr.splitlines()[-1]
                if (
                    not any(k in text for k in NOT_PLANNED)
                    and not (framework == "torchtitan" and "model.flavor: " in text)
                    and "model.vocab" not in text
                ):
                    wrong.append("%s: %s" % (line["file"], text))
                continue
            plan = json.loads(r.stdout)["plans"][0]
            if framework == "torchtitan":
                want = {"seq": m["training.seq_len"], "micro": m["training.local_batch_size"]}
                got = {k: plan["batch"][k] for k in want}
            else:
                layout = m.get("pipeline_model_parallel_layout")
                vpp = (
                    m.get("num_virtual_stages_per_pipeline_rank")
                    or m.get("virtual_pipeline_model_parallel_size")
                    or 1
                )
                want = {
                    "tp": tp,
                    "pp": pp,
                    "ep": ep,
                    "cp": cp,
                    "seq": m["seq_length"],
                    "micro": m["micro_batch_size"],
                    "global": m["global_batch_size"],
                    "recompute": m.get("recompute_granularity") or "none",
                }
                if not layout:
                    want["vpp"] = vpp
                got = {**plan["parallelism"], **plan["batch"], "recompute": plan["recompute"]}
                got = {k: got[k] for k in want}
            if got != want:
                wrong.append("%s: %s instead of %s" % (line["file"], got, want))
    print(
        "%d of %d minimal recipes validate, %d are planned by their files, %d are of kinds that "
        "plans do not know" % (n - len(wrong), n, n - len(wrong) - no_model, no_model)
    )
    need(not wrong, "\n".join(wrong[:20]))
    need(n > 50 and no_model < n / 4, "%d files, %d without a model" % (n, no_model))


# What our command says whatever the recipe says.
ALWAYS = (
    "log_interval",
    "log_throughput",
    "exit_signal_handler",
    "auto_continue_train",
    "train_iters",
    "training.steps",
    "metrics.log_freq",
    "metrics.disable_color_printing",
)
# What switches a feature off: lines of the recipe, where the file has it on, and what is left
# behind Primus' own stages (None: null or false). moves: further keys that may change with it.
OFF = {
    "megatron": [
        (
            "features: {grouped_gemm: native}",
            lambda m: m.get("use_turbo_grouped_gemm") or m.get("moe_use_legacy_grouped_gemm"),
            {
                "use_turbo_grouped_gemm": None,
                "moe_use_legacy_grouped_gemm": None,
                "turbo_grouped_gemm_without_padding": None,
                "moe_grouped_gemm": True,
            },
        ),
        (
            "features: {grouped_gemm: none}",
            lambda m: m.get("turbo_sync_free_moe_stage", 0) > 1,
            {
                "use_turbo_grouped_gemm": None,
                "moe_use_legacy_grouped_gemm": None,
                "turbo_grouped_gemm_without_padding": None,
                "moe_grouped_gemm": None,
            },
        ),
        (
            "features: {grouped_gemm: legacy}",
            lambda m: m.get("turbo_sync_free_moe_stage", 0) > 1,
            {
                "use_turbo_grouped_gemm": None,
                "moe_use_legacy_grouped_gemm": True,
                "turbo_grouped_gemm_without_padding": None,
                "moe_grouped_gemm": True,
            },
        ),
        (
            "features: {a2a: alltoall}",
            lambda m: m.get("use_turbo_deepep") or m.get("moe_token_dispatcher_type") != "alltoall",
            {
                "use_turbo_deepep": None,
                "moe_enable_deepep": None,
                "moe_token_dispatcher_type": "alltoall",
            },
        ),
        (
            "features: {a2a: none}",
            lambda m: m.get("turbo_sync_free_moe_stage", 0) > 1,
            {
                "use_turbo_deepep": None,
                "moe_enable_deepep": None,
                "moe_token_dispatcher_type": "alltoall",
            },
        ),
        (
            "features: {sync_free: 0}",
            lambda m: m.get("turbo_sync_free_moe_stage"),
            {"turbo_sync_free_moe_stage": 0},
        ),
        (
            "features: {loss_fusion: false}",
            lambda m: m.get("cross_entropy_loss_fusion"),
            {"cross_entropy_loss_fusion": None},
        ),
        ("features: {manual_gc: 0}", lambda m: m.get("manual_gc"), {"manual_gc": None}),
        (
            "features: {pipeline_layout: none}",
            lambda m: m.get("pipeline_model_parallel_layout"),
            {"pipeline_model_parallel_layout": None},
        ),
        (
            "recompute: none",
            lambda m: m.get("recompute_granularity") or m.get("recompute_layer_ids"),
            {
                "recompute_granularity": None,
                "recompute_method": None,
                "recompute_num_layers": None,
                "recompute_layer_ids": None,
            },
        ),
        (
            "recompute: selective",
            lambda m: m.get("recompute_granularity") == "full" and m.get("fp8"),
            {
                "recompute_granularity": "selective",
                "recompute_method": None,
                "recompute_num_layers": None,
                "recompute_layer_ids": None,
            },
        ),
        (
            "precision: bf16",
            lambda m: m.get("fp8") or m.get("fp4"),
            {"fp8": None, "fp4": None, "fp16": None, "bf16": True},
        ),
        (
            "parallelism: {vpp: 1}",
            lambda m: m.get("num_virtual_stages_per_pipeline_rank")
            or m.get("pipeline_model_parallel_layout"),
            {
                "num_virtual_stages_per_pipeline_rank": None,
                "num_layers_per_virtual_pipeline_stage": None,
                "pipeline_model_parallel_layout": None,
            },
        ),
    ],
    "torchtitan": [
        (
            "features: {grouped_gemm: native}",
            lambda m: m.get("primus_turbo.use_turbo_grouped_mm"),
            {"primus_turbo.use_turbo_grouped_mm": None},
        ),
        (
            "precision: bf16",
            lambda m: "quantize.linear.float8" in (m.get("model.converters") or []),
            {
                "model.converters": lambda v: v in ([], ["primus_turbo"]),
                "primus_turbo.use_turbo_float8_linear": None,
                "primus_turbo.use_moe_fp8": None,
            },
        ),
        (
            "precision: fp8",
            lambda m: "quantize.linear.float8" not in (m.get("model.converters") or []),
            {
                "model.converters": lambda v: "quantize.linear.float8" in v,
                "primus_turbo.use_turbo_float8_linear": True,
                "primus_turbo.use_moe_fp8": True,
            },
        ),
        (
            "features: {loss_fusion: false}",
            lambda m: "loss" in (m.get("compile.components") or []),
            {"compile.components": ["model"]},
        ),
        (
            "recompute: none",
            lambda m: m.get("activation_checkpoint.mode") != "none",
            {"activation_checkpoint.mode": "none"},
        ),
    ],
}


# These switch each other; so each is tried by itself.
ALONE = [
    "features: {grouped_gemm: native}",
    "features: {grouped_gemm: none}",
    "features: {grouped_gemm: legacy}",
    "features: {a2a: alltoall}",
    "features: {a2a: none}",
    "features: {sync_free: 0}",
    "recompute: selective",
    "features: {pipeline_layout: none}",
]


def staged(m):
    """What Primus does behind the merge: the dispatcher's patch before the stage table
    (rocm_arg_validation.py:44, moe_dispatcher_patches.py:19)."""
    m, stage = dict(m), m.get("turbo_sync_free_moe_stage") or 0
    if m.get("enable_primus_turbo") and m.get("use_turbo_deepep"):
        m.update(moe_enable_deepep=True, moe_token_dispatcher_type="flex")
    need(
        not (m.get("use_turbo_grouped_gemm") and m.get("moe_use_legacy_grouped_gemm")),
        "Primus: turbo and legacy grouped GEMM",
    )
    need(not stage or m.get("enable_primus_turbo"), "Primus: stages need Primus-Turbo")
    need(
        stage < 2 or m.get("use_turbo_grouped_gemm"),
        "Primus: stages 2 and 3 need Turbo's grouped GEMM",
    )
    if stage:
        m.update(
            moe_use_fused_router_with_aux_score=True,
            moe_permute_fusion=True,
            moe_router_padding_for_quantization=bool(m.get("fp8") or m.get("fp4")),
        )
    if stage > 1:
        m.update(use_turbo_deepep=True, use_turbo_grouped_gemm=True)
    if stage > 2:
        m.update(use_turbo_fused_act_with_probs=True)
    return m


@shared
def what_the_engine_forces():
    """Beside the merged value explain config has what Primus' own patches made of it, for every key
    that our rows know."""
    tree, env, wrong, n, told = (
        os.path.realpath(os.path.join(SHARED, "tree")),
        clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
        [],
        0,
        0,
    )
    known = (
        "iterations_to_skip",
        "sequence_parallel",
        "tokenizer_type",
        "vocab_size",
        "moe_router_padding_for_quantization",
        "moe_use_fused_router_with_aux_score",
        "moe_permute_fusion",
        "use_turbo_deepep",
        "use_turbo_grouped_gemm",
        "use_turbo_fused_act_with_probs",
        "dump_pp_data",
    )
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")
        for line in lines("merged-dev.jsonl.gz"):
            if line["variant"] != "plain" or "rewritten" not in line:
                continue
            with open(recipe, "w") as f:
                f.write(MINIMAL % (kind_of(line), tree, line["file"], ranks_of(line["merged"])))
            items = (
                EXPLAINED.get(line["file"])
                or json.loads(moectl("explain", "config", recipe, "--json", env=env).stdout)[
                    "items"
                ]
            )
            got = {
                i["key"]: i["forced"]["value"] for i in items if "forced" in i and i["key"] in known
            }
            need(
                all(
                    "engine primus-%s sets it: " % kind_of(line) in i["forced"]["source"]["moectl"]
                    for i in items
                    if "forced" in i
                ),
                line["file"],
            )
            want = {
                k: v for k, v in line["rewritten"].items() if k in known and k in line["merged"]
            }
            n, told = n + 1, told + len(got)
            if not all(
                k in got and k in want and same(got[k], want[k]) for k in set(got) | set(want)
            ):
                wrong.append("%s: %s instead of %s" % (line["file"], got, want))
    print("%d values that Primus forces in %d files" % (told, n))
    need(not wrong, "\n".join(wrong[:10]))
    need(n > 130 and told > 300, (n, told))


@shared
def off_is_off():
    tree, env, wrong, counts = (
        os.path.realpath(os.path.join(SHARED, "tree")),
        clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
        [],
        {},
    )
    plain = [
        line
        for line in lines("merged-dev.jsonl.gz")
        if line["variant"] == "plain" and line.get("module", {}).get("framework") in OFF
    ]
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")
        for line in plain:
            framework, merged = line["module"]["framework"], line["merged"]
            on = [(text, final) for text, is_on, final in OFF[framework] if is_on(merged)]
            # those that do not touch each other go into one recipe
            for rows in [
                [row for row in on if row[0] in ALONE[i : i + 1]] for i in range(len(ALONE))
            ] + [[row for row in on if row[0] not in ALONE]]:
                if not rows:
                    continue
                text = "\n".join(row[0] for row in rows)
                features = ", ".join(
                    row[0][len("features: {") : -1] for row in rows if row[0].startswith("features")
                )
                counts.update({row[0]: counts.get(row[0], 0) + 1 for row in rows})
                final = {key: value for row in rows for key, value in row[1].items()}
                with open(recipe, "w") as f:
                    f.write(
                        MINIMAL % (kind_of(line), tree, line["file"], ranks_of(merged))
                        + "features: {%s}\n" % features
                        + "".join(
                            row[0] + "\n" for row in rows if not row[0].startswith("features")
                        )
                    )
                r = moectl("explain", "config", recipe, "--json", env=env, check=False)
                if r.returncode:
                    wrong.append("%s: %s: %s" % (line["file"], text, r.stderr.strip()))
                    continue
                got = {i["key"]: i["value"] for i in json.loads(r.stdout)["items"]}
                try:
                    left = staged(got)
                except Failed as e:
                    wrong.append("%s: %s: %s" % (line["file"], text, e))
                    continue
                for key, value in final.items():
                    if (
                        left.get(key) not in (None, False)
                        if value is None
                        else not value(left.get(key))
                        if callable(value)
                        else left.get(key) != value
                    ):
                        wrong.append("%s: %s: %s is %r" % (line["file"], text, key, left.get(key)))
                moved = [
                    k
                    for k in merged
                    if k not in final and k not in ALWAYS and not same(got.get(k), merged[k])
                ]
                if moved != (
                    ["turbo_sync_free_moe_stage"]
                    if merged.get("turbo_sync_free_moe_stage", 0) > 1
                    and ("gemm" in text or "a2a" in text)
                    else []
                ):
                    wrong.append("%s: %s: moves %s" % (line["file"], text, moved))
    print("; ".join("%s: %d" % pair for pair in sorted(counts.items())))
    need(not wrong, "%d wrong\n%s" % (len(wrong), "\n".join(wrong[:40])))
    need(sum(counts.values()) > 300, counts)


WORDS = {
    "V": "8",
    "E": "",
    "N": "null",
    "S": "a b",
    "F": "1e-5",
    "Z": "007",
    "T": "True",
    "Q": "x:y",
}


def one_key(text):
    """An experiment with this as its overrides, in a tree of its own."""
    return (
        "work_group: a\nuser_name: b\nexp_name: c\nworkspace: d\nmodules:\n  pre_trainer:\n"
        "    framework: m\n    config: none\n    model: none\n"
        "    overrides:\n%s" % text
    )


@shared
def words():
    """What becomes of a word: placeholders, YAML, the command line."""
    wrong, n = [], 0
    with tempfile.TemporaryDirectory() as root:
        for path in ("modules/m/none.yaml", "models/m/none.yaml"):
            os.makedirs(os.path.join(root, "primus/configs", os.path.dirname(path)))
            with open(os.path.join(root, "primus/configs", path), "w") as f:
                f.write("none: 1\n")
        os.symlink(
            os.path.abspath(os.path.join(SHARED, "tree/primus/configs/platforms")),
            os.path.join(root, "primus/configs/platforms"),
        )
        for case in map(json.loads, open(os.path.join(SHARED, "coercion.jsonl"))):
            text, form, given, body = case["text"], case["form"], [], "      none: 2\n"
            if form == "placeholder":
                body = "      m: {k: %s}\n" % json.dumps(text)
            elif form == "yaml":
                body = "      m:\n        k:%s%s\n" % (
                    "\n          " if ": " in text or text.startswith("- ") else " ",
                    text,
                )
            else:
                given = ["--k=" + text] if form == "cli" else shlex.split(text)
            with open(os.path.join(root, "e.yaml"), "w") as f:
                f.write(one_key(body))
            got = resolve(
                root,
                ["--config", "e.yaml"] + given
                if form != "argparse"
                else given + ["--config=e.yaml"][: "--exp " not in text],
                WORDS,
            )
            n += 1
            if form == "argparse":
                # what is left when main took its own words: as overrides they are judged above
                left = resolve(root, ["--config", "e.yaml"] + case["value"]["left"], WORDS)
                want = "no such file" if case["value"]["config"] != "exp.yaml" else left
                good = want in got if isinstance(got, str) else got["merged"] == want["merged"]
            elif "error" in case:
                good = isinstance(got, str)
            elif isinstance(got, str):
                good = False
            elif form == "override":
                merged = {k: v for k, v in got["merged"].items() if k not in ("none", "model")}
                good = same(merged, flat(case["value"]))
            else:
                merged = {k: v for k, v in got["merged"].items() if k not in ("none", "model")}
                good = same(
                    merged,
                    flat({"k": case["value"]} if form == "cli" else {"m": {"k": case["value"]}}),
                )
            if not good:
                wrong.append("%s: %s" % (case, got if isinstance(got, str) else got["merged"]))
    print("%d of %d words" % (n - len(wrong), n))
    need(not wrong, "\n".join(wrong[:20]))


def flat(value, prefix=""):
    if not isinstance(value, dict) or not value:
        return {prefix[1:]: value} if prefix else {}
    return {k: v for key in value for k, v in flat(value[key], "%s.%s" % (prefix, key)).items()}


@shared
def every_file_of_the_tree_is_read():
    """Those without an answer here too: none may be refused that is a whole experiment."""
    tree, refused, n = os.path.join(SHARED, "tree"), [], 0
    for directory, _, names in os.walk(os.path.join(tree, "examples")):
        for name in names:
            path = os.path.relpath(os.path.join(directory, name), tree)
            text = open(os.path.join(tree, path), encoding="utf-8").read()
            if not name.endswith(".yaml") or "modules:" not in text or "template" in name:
                continue
            n += 1
            got = resolve(tree, ["--config", path])
            if isinstance(got, str):
                refused.append("%s: %s" % (path, got))
    print("%d of %d experiments of the tree are read" % (n - len(refused), n))
    need(not refused, "\n".join(refused[:20]))


# A small tree of ours, which is always there.
OWN = {
    "primus/configs/platforms/platform_azure.yaml": "".join(
        "%s: x\n" % k
        for k in (
            "name",
            "workspace",
            "num_nodes_env_key",
            "node_rank_env_key",
            "master_addr_env_key",
            "master_port_env_key",
            "gpus_per_node_env_key",
        )
    ),
    "primus/configs/modules/megatron/pre.yaml": "extends: [base.yaml]\ntrain_iters: 50\n"
    "lr: 1.0e-5\n",
    "primus/configs/modules/megatron/base.yaml": "tensor_model_parallel_size: 1\n"
    "pipeline_model_parallel_size: 1\n"
    "expert_model_parallel_size: 1\n"
    "expert_tensor_parallel_size: null\ncontext_parallel_size: 1\nmicro_batch_size: 1\n"
    "global_batch_size: 16\nlr: 2.0e-5\n",
    "primus/configs/models/megatron/small.yaml": "num_layers: 4\nseq_length: 128\n"
    "hidden_size: 64\nnum_attention_heads: 4\n"
    "ffn_hidden_size: 128\nswiglu: true\n"
    "num_experts: 8\nmoe_router_topk: 2\nmoe_ffn_hidden_size: 32\nmoe_layer_freq: ([0]*1+[1]*3)\n"
    "vocab_size: 1000\n",
    "low.yaml": "work_group: ${PRIMUS_TEAM:amd}\nuser_name: root\nexp_name: e\nworkspace: ./o\n",
    "e.yaml": "extends: low.yaml\nmodules:\n  pre_trainer:\n    framework: megatron\n"
    "    config: pre.yaml\n    model: small.yaml\n    overrides:\n"
    "      pipeline_model_parallel_size: ${PP:2}\n      expert_model_parallel_size: 4\n"
    "      note: \"yes\"\n",
}
# its directory may be chosen
FREE = OWN["low.yaml"].replace("exp_name: e", "exp_name: ${PRIMUS_EXP_NAME:e}")
OWN_RECIPE = """recipe: 1
name: own
engine: {kind: primus-megatron, workdir: %s, entry: e.yaml}
cluster: {gpus: 8}
"""


class Own:
    def __init__(self, recipe="", steps="steps: 9\n", **files):
        self.changes, self.recipe = files, steps + recipe

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory()
        for path, text in {**OWN, **self.changes}.items():
            self.write(path, text)
        self.path = self.write("r.yaml", OWN_RECIPE % self.dir.name + self.recipe)
        return self

    def write(self, path, text):
        whole = os.path.join(self.dir.name, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as f:
            f.write(text)
        return whole

    def take_away(self):
        """As where only the nodes have the files: neither the checkout nor the experiment is
        here."""
        for name in ("primus", "e.yaml"):
            os.rename(os.path.join(self.dir.name, name), os.path.join(self.dir.name, "no-" + name))

    def __exit__(self, *exc):
        self.dir.cleanup()

    def explain(self, *args, check=True):
        return moectl(
            "explain",
            "config",
            self.path,
            *args,
            env=clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
            check=check,
        )

    def validate(self, *args):
        r = moectl("validate", self.path, *args, check=False)
        return r.returncode, r.stderr.replace(self.path, "r.yaml")


@suite.test
def explain_config():
    with Own("env: {PRIMUS_TEAM: t, PP: \"1\"}\n") as own:
        doc = json.loads(own.explain("--json").stdout)
        items = {i["key"]: i for i in doc["items"]}
        equal(
            (doc["engine"], doc["names"]["work_group"], doc["files"][:2]),
            ("primus-megatron", "t", ["e.yaml", "low.yaml"]),
            "head",
        )
        equal(
            items["lr"],
            {
                "key": "lr",
                "value": 1e-05,
                "source": {"file": "primus/configs/modules/megatron/pre.yaml", "line": 3},
                "overrides": [
                    {
                        "value": 2e-05,
                        "source": {"file": "primus/configs/modules/megatron/base.yaml", "line": 8},
                    }
                ],
            },
            "lr",
        )
        equal(
            (
                items["note"]["value"],
                items["pipeline_model_parallel_size"]["value"],
                items["pipeline_model_parallel_size"]["variable"],
            ),
            ("yes", 1, "PP"),
            "values",
        )
        equal(items["train_iters"]["source"], {"recipe": "steps"}, "train_iters")
        equal(
            items["train_iters"]["overrides"][0]["source"],
            {"file": "primus/configs/modules/megatron/pre.yaml", "line": 2},
            "what steps overrides",
        )
        need("moectl" in items["log_interval"]["source"], items["log_interval"])
        r = own.explain("--key", "lr")
        equal(
            r.stdout,
            "lr = 1e-05    primus/configs/modules/megatron/pre.yaml:3\n"
            "    instead of 2e-05    primus/configs/modules/megatron/base.yaml:8\n",
            "people's text",
        )
        equal(
            json.loads(own.explain("--key", "lr", "--json").stdout)["items"],
            [items["lr"]],
            "one key",
        )
        r = own.explain("--key", "lrr", check=False)
        equal((r.returncode, "no key 'lrr'" in r.stderr), (5, True), "an unknown key")
        for key, told in (
            (
                "train_iter",
                "did you mean 'train_iters'? `moectl explain config %s` lists all" % own.path,
            ),
            ("ffn", "; there are ffn_hidden_size, moe_ffn_hidden_size; `moectl"),
            ("workgroup", "did you mean 'work_group'?"),
        ):
            r = own.explain("--key", key, check=False)
            need(
                r.returncode == 5 and "no key '%s'" % key in r.stderr and told in r.stderr, r.stderr
            )
        equal(
            own.explain("--key", "work_group").stdout,
            "work_group = \"t\"    of the run's own directory\n",
            "a name",
        )
        items = {
            i["key"]: i
            for i in json.loads(
                own.explain(
                    "--json", "--set", "engine.args.lr=1.0e-6", "--set", "parallelism.ep=2"
                ).stdout
            )["items"]
        }
        equal(
            (
                items["lr"]["value"],
                items["lr"]["source"],
                items["expert_model_parallel_size"]["source"],
            ),
            (1e-06, {"recipe": "engine.args.lr"}, {"recipe": "parallelism.ep"}),
            "what the recipe says",
        )


@suite.test
def what_is_refused_is_shown():
    """Whoever mends a recipe that fails a rule needs its configuration; the rule is named and the
    status stays that of a refusal."""
    base = "primus/configs/modules/megatron/base.yaml"
    cases = (
        ({}, ["cluster.gpus=3"], "cluster.gpus: 3: the experiment's pp 2"),
        (
            {base: OWN[base] + "num_experts: 6\n"},
            [],
            "parallelism.ep: 4 does not divide the model's 6 experts",
        ),
        ({}, ["parallelism=auto"], "parallelism: auto needs cluster.gpu"),
        (
            {"low.yaml": OWN["low.yaml"].replace("exp_name: e", "exp_name: other")},
            ["checkpoint.dir=/d/x"],
            "exp_name",
        ),
    )
    for files, sets, rule in cases:
        with Own(**files) as own:
            words = [w for s in sets for w in ("--set", s)]
            status, said = own.validate(*words)
            need(status == 2 and rule in said, said)
            r = own.explain("--key", "lr", *words, check=False)
            equal((r.returncode, r.stdout), (2, own_lr()), "what is shown: " + r.stderr)
            need(rule in r.stderr and "a submit of it is refused" in r.stderr, r.stderr)
            r = own.explain("--json", *words, check=False)
            doc = json.loads(r.stdout)
            need(
                r.returncode == 2 and {i["key"]: i["value"] for i in doc["items"]}["lr"] == 1e-05,
                r.stdout[:300],
            )
            need(any(rule in e["message"] for e in doc["errors"]), doc["errors"])
            need(rule in r.stderr, r.stderr)
    # nothing to show: the files are not here, or the engine has none
    hello = os.path.join(ROOT, "config/recipes/command-hello.yaml")
    with Own() as own:
        for path, sets in (
            (
                own.path,
                (
                    "engine.workdir=/nonexistent/Primus",
                    "parallelism={tp: 3, pp: 1, vpp: 1, ep: 1, etp: 1, cp: 1}",
                ),
            ),
            (hello, ("parallelism.tp=7",)),
        ):
            r = moectl(
                "explain", "config", path, *[w for s in sets for w in ("--set", s)], check=False
            )
            need(
                r.returncode == 2
                and "does not divide" in r.stderr
                and "a submit of it" not in r.stderr
                and not r.stdout,
                r.stderr,
            )
    with Own() as own:  # a key that is none is no rule between keys: nothing can be shown
        r = own.explain("--set", "cluster.gpuss=8", check=False)
        equal((r.returncode, r.stdout), (2, ""), "an unknown key")
        # more ranks than a dry run shows are no reason not to read the files
        r = own.explain("--key", "lr", "--set", "cluster.gpus=16384", "--set", "batch.global=8192")
        equal((r.stdout, "was not read here" in r.stderr), (own_lr(), False), "16,384 ranks")


@suite.test
def what_the_planner_chooses_is_shown():
    """parallelism: auto is neither the file's sharding nor that of a recipe without one."""
    with Own() as own:
        planned = ["--set", "parallelism=auto", "--set", "cluster.gpu=mi300x"]
        env = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
        best = json.loads(moectl("plan", own.path, *planned, "--json", env=env).stdout)["plans"][0]
        r = own.explain("--json", *planned)
        items = {i["key"]: i for i in json.loads(r.stdout)["items"]}
        for size, key in (("tp", "tensor"), ("pp", "pipeline"), ("ep", "expert")):
            item = items[key + "_model_parallel_size"]
            equal(
                (item["value"], item["source"]),
                (
                    best["parallelism"][size],
                    {"moectl": "chosen by the planner (parallelism: auto)"},
                ),
                key,
            )
        need("`moectl plan %s %s` chooses" % (own.path, " ".join(planned)) in r.stderr, r.stderr)
        r = own.explain(
            "--key", "expert_model_parallel_size", "--set", "parallelism=auto", check=False
        )
        need(
            r.returncode == 2
            and "not decided yet (parallelism: auto): cluster.gpu is not given; `moectl plan %s "
            "--set parallelism=auto --gpu mi300x`" % own.path in r.stdout,
            r.stdout + r.stderr,
        )
    with Own(
        "model: null\n",
        **{
            "primus/configs/models/megatron/small.yaml": OWN[
                "primus/configs/models/megatron/small.yaml"
            ]
            + "model_type: mamba\n"
        },
    ) as own:
        status, said = own.validate(*planned)
        need(
            status == 0
            and "parallelism: auto: there is no model to choose by: the experiment's own sharding "
            "stands" in said,
            said,
        )
        equal(
            own.explain("--key", "expert_model_parallel_size", *planned).stdout.split("    ")[1],
            "e.yaml:9\n",
            "the file's word",
        )
    with Cluster(nodes=1, gpus_per_node=8) as c, Own() as own:
        r = c.run("submit", own.path, *planned, "--json")
        item = [
            i
            for i in c.json("explain", "config", json.loads(r.stdout)["id"])["items"]
            if i["key"] == "expert_model_parallel_size"
        ][0]
        equal(item["source"], {"moectl": "chosen by the planner (parallelism: auto)"}, "of a job")


@suite.test
def words_reach_the_training():
    """What Primus' main takes for itself travels as key=value; plain numbers as Primus reads them;
    a name that it reads as something else is refused."""
    with Own() as own:
        given = {
            "data_path": "/d/a",
            "data": "/x",
            "lr": "1e-5",
            "min_lr": "2E-06",
            "clip_grad": "0x10",
            "wandb_name": "'1e5'",
            "mock_data": "false",
            "exp": "7",
        }
        r = own.explain(
            "--json",
            *[word for pair in given.items() for word in ("--set", "engine.args.%s=%s" % pair)],
        )
        items = {i["key"]: i["value"] for i in json.loads(r.stdout)["items"]}
        equal(
            {k: items.get(k) for k in given},
            {
                "data_path": "/d/a",
                "data": "/x",
                "lr": 1e-05,
                "min_lr": 2e-06,
                "clip_grad": 16,
                "wandb_name": "1e5",
                "mock_data": False,
                "exp": 7,
            },
            "values",
        )
        equal(json.loads(r.stdout)["files"][0], "e.yaml", "the experiment")
        status, said = own.validate("--set", "engine.args=[--data_path, /d]")
        need(
            status == 2
            and "--data_path: the engine's program takes this word for itself, and training never "
            "sees it: write data_path=VALUE as one word" in said,
            said,
        )
        equal(own.validate("--set", "engine.args=[data_path=/d]")[0], 0, "as one word")
    for value, reads in (
        ("yes", "a truth value ('true')"),
        ("on", "a truth value ('true')"),
        ("null", "null"),
        ("1e5", None),
        ("\"yes\"", None),
        ("~", "null"),
        ("1_000", "a whole number"),
    ):
        with Own(
            "", **{"low.yaml": OWN["low.yaml"].replace("exp_name: e", "exp_name: " + value)}
        ) as own:
            status, said = own.validate()
            need(
                (status == 0)
                if reads is None
                else (
                    status == 2
                    and "low.yaml:3: exp_name: Primus needs a text here, and reads " + reads in said
                ),
                "%s: %s" % (value, said),
            )
    for value, good in (
        ("1e5", False),
        ("True", False),
        ("007", False),
        ("yes", True),
        ("null", True),
    ):
        with Own("env: {PRIMUS_TEAM: \"%s\"}\n" % value) as own:
            status, said = own.validate()
            need(
                (status == 0)
                if good
                else (status == 2 and "low.yaml:1: work_group: Primus needs a text here" in said),
                "%s: %s" % (value, said),
            )


@suite.test
def rules_see_the_files():
    """Errors of the merged configuration stand at the line that says the value; what the files
    alone say against an engine's habit is a warning."""
    base = "primus/configs/modules/megatron/base.yaml"
    for lines_of_base, recipe, status, expected in (
        (
            "num_experts: 6\n",
            "",
            2,
            base + ":9: num_experts: 6 does not go with parallelism.ep 4 (e.yaml:9: "
            "expert_model_parallel_size): each rank holds equally many experts",
        ),
        ("num_experts: 6\n", "parallelism: {ep: 2}\n", 0, ""),
        (
            "num_attention_heads: 5\n",
            "parallelism: {tp: 2}\n",
            2,
            base + ":9: num_attention_heads: 5 does not go with parallelism.tp 2",
        ),
        ("turbo_sync_free_moe_stage: 2\nuse_turbo_grouped_gemm: true\n", "", 0, ""),
        (
            "turbo_sync_free_moe_stage: 2\nuse_turbo_grouped_gemm: false\n",
            "",
            2,
            base
            + ":10: use_turbo_grouped_gemm: false does not go with turbo_sync_free_moe_stage 2 "
            "(%s:9)" % base,
        ),
        # Primus before 26.4 named it otherwise
        (
            "turbo_sync_free_moe_stage: 2\nuse_turbo_grouped_gemm: false\n"
            "use_turbo_grouped_mlp: true\n",
            "",
            0,
            "",
        ),
        (
            "turbo_sync_free_moe_stage: 2\nuse_turbo_grouped_mlp: true\n"
            "moe_use_legacy_grouped_gemm: true\n",
            "",
            0,
            "",
        ),
        (
            "turbo_sync_free_moe_stage: 2\nuse_turbo_grouped_gemm: true\n"
            "moe_use_legacy_grouped_gemm: true\n",
            "",
            2,
            "moe_use_legacy_grouped_gemm: true does not go with",
        ),
        # DeepEP's flag without Turbo does nothing; both are the files'
        ("use_turbo_deepep: true\nenable_primus_turbo: false\nmoe_router_dtype: fp32\n", "", 0, ""),
        ("use_turbo_grouped_gemm: true\n", "features: {sync_free: 2}\n", 0, ""),
        (
            "use_turbo_grouped_gemm: false\n",
            "features: {sync_free: 2}\n",
            2,
            base + ":9: use_turbo_grouped_gemm: false does not go with features.sync_free 2",
        ),
        (
            "turbo_deepep_num_cu: 64\n",
            "parallelism: {ep: 16}\nfeatures: {a2a: deepep}\n",
            2,
            base + ":9: turbo_deepep_num_cu: 64 does not go with features.a2a deepep",
        ),
        ("turbo_deepep_num_cu: 64\n", "parallelism: {ep: 16}\nfeatures: {a2a: uccl}\n", 0, ""),
        (
            "turbo_deepep_num_cu: 64\n",
            "parallelism: {ep: 16}\nfeatures: {a2a: deepep}\n"
            "env: {PRIMUS_TURBO_MOE_DISPATCH_COMBINE_BACKEND: DEEP_EP}\n",
            0,
            "",
        ),
        (
            "num_layers: 5\n",
            "",
            0,
            "warning: " + base + ":9: num_layers: 5 does not go with pp x vpp 2 (e.yaml:8: "
            "pipeline_model_parallel_size)",
        ),
        (
            "num_layers: 6\n",
            "parallelism: {pp: 4}\n",
            2,
            base + ":9: num_layers: 6 does not go with pp x vpp 4",
        ),
        (
            "recompute_granularity: full\n",
            "",
            2,
            base + ":9: engine.args.recompute_num_layers: not given does not go with "
            "recompute_granularity full",
        ),
    ):
        with Own(
            recipe,
            **{
                base: OWN[base] + lines_of_base,
                "primus/configs/models/megatron/small.yaml": "seq_length: 128\n",
            },
        ) as own:
            own.write(
                "r.yaml",
                open(own.path).read().replace("gpus: 8", "gpus: 64") + "batch: {global: 64}\n",
            )
            got, said = own.validate()
            need(
                got == status and expected in said,
                "%s%s: status %d: %s" % (lines_of_base, recipe, got, said),
            )


@suite.test
def the_variables_of_attention_backend():
    """Primus' Megatron sets them by its own key, whatever its environment says
    (attention_backend_patches.py): ranks have them so, and another value is a warning."""
    base, names = "primus/configs/modules/megatron/base.yaml", (
        "NVTE_FLASH_ATTN",
        "NVTE_FUSED_ATTN",
        "NVTE_UNFUSED_ATTN",
    )
    for of_base, recipe, expected, warned in (
        ("", "", None, False),
        ("attention_backend: auto\n", "env: {NVTE_FLASH_ATTN: \"0\"}\n", None, False),
        ("attention_backend: flash\n", "", "100", False),
        ("attention_backend: fused\n", "env: {NVTE_FUSED_ATTN: \"1\"}\n", "010", False),
        ("attention_backend: unfused\n", "env: {NVTE_FUSED_ATTN: \"1\"}\n", None, True),
        ("attention_backend: fused\n", "engine_args", "000", False),
    ):
        args = recipe == "engine_args"
        with Own("" if args else recipe, **{base: OWN[base] + of_base}) as own:
            more = ("--set", "engine.args={attention_backend: local}") if args else ()
            rank = json.loads(
                moectl(
                    "submit",
                    "--dry-run",
                    "--json",
                    own.path,
                    *more,
                    env=clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
                ).stdout
            )["ranks"][0]
            got = [rank["env"].get(n) for n in names]
            need(
                not expected or "".join(map(str, got)) == expected,
                "%s%s: %s" % (of_base, recipe, got),
            )
            need(expected or warned or got[1:] == [None, None], "%s%s: %s" % (of_base, recipe, got))
            status, said = own.validate(*more)
            equal(
                (status, "Primus sets these variables by attention_backend" in said),
                (0, warned),
                said,
            )


@suite.test
def what_is_overridden_is_said():
    with Own("parallelism: {ep: 2}\n", **{"low.yaml": OWN["low.yaml"] + "lr: 5\n"}) as own:
        status, said = own.validate()
        equal(status, 0, said)
        need(
            "r.yaml: note: parallelism.ep overrides e.yaml:9 expert_model_parallel_size 4 -> 2\n"
            in said,
            said,
        )
        need(
            "r.yaml: note: steps overrides primus/configs/modules/megatron/pre.yaml:2 train_iters "
            "50 -> 9\n" in said,
            said,
        )
        need("low.yaml:5: lr: warning: nothing reads this key beside `modules`" in said, said)
        need("not read" not in said, said)


@suite.test
def the_last_state_is_saved_and_resumed():
    """What switches it off in the file is overridden, and said with its place; the user's own word
    stands only where he says so."""
    off = "      finetune: true\n      disable_last_saving: true\n      no_save_optim: true\n"
    files = {
        "e.yaml": OWN["e.yaml"] + off,
        "low.yaml": OWN["low.yaml"].replace("exp_name: e", "exp_name: ${PRIMUS_EXP_NAME:e}"),
    }
    with Own("checkpoint: {dir: /ckpt/x}\n", **files) as own:
        status, said = own.validate()
        equal(status, 0, said)
        for note in (
            "checkpoint.dir overrides e.yaml:12 disable_last_saving true -> false",
            "checkpoint.dir overrides e.yaml:13 no_save_optim true -> false",
            "e.yaml:11 finetune true is for a fresh start: a resume takes false",
        ):
            need("r.yaml: note: %s\n" % note in said, said)
        items = {i["key"]: i for i in json.loads(own.explain("--json").stdout)["items"]}
        equal(
            (items["disable_last_saving"]["value"], items["disable_last_saving"]["source"]),
            (False, {"recipe": "checkpoint.dir"}),
            "explain config",
        )
        resume = json.loads(
            moectl(
                "submit",
                "--dry-run",
                "--json",
                own.path,
                env=clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
            ).stdout
        )["resume_args"]
        need(resume[resume.index("--finetune") + 1] == "false", resume)
        status, said = own.validate("--set", "engine.args.disable_last_saving=true")
        need(
            status == 2 and "disable_last_saving is moectl's: the last state would be lost" in said,
            said,
        )
        own.write(
            "r.yaml",
            (OWN_RECIPE % own.dir.name).replace(
                "entry: e.yaml",
                "entry: e.yaml, args: {disable_last_saving: true}, args_unchecked: "
                "[disable_last_saving]",
            )
            + "checkpoint: {dir: /ckpt/x}\n",
        )
        status, said = own.validate()
        need(
            status == 0
            and "disable_last_saving true stands, as engine.args_unchecked says" in said,
            said,
        )
        items = {i["key"]: i for i in json.loads(own.explain("--json").stdout)["items"]}
        equal(items["disable_last_saving"]["value"], True, "his own word")


@suite.test
def the_file_is_judged():
    for files, recipe, expected in (
        (
            {},
            "env: {PP: \"3\"}\n",
            "r.yaml:4:17: cluster.gpus: 8: the experiment's pp 3 x ep 4 needs a multiple of 12; "
            "use cluster.gpus 12, or parallelism.pp 2\n",
        ),
        (
            {},
            "env: {PP: \"4\"}\n",
            "r.yaml:4:17: cluster.gpus: 8: the experiment's pp 4 x ep 4 needs a multiple of 16; "
            "use cluster.gpus 16, or parallelism.ep 2\n",
        ),
        (
            {},
            "parallelism: {pp: 4}\n",
            "e.yaml:9: expert_model_parallel_size: parallelism.ep: 4 does not divide the 2 GPUs "
            "of a pipeline stage",
        ),
        ({}, "batch: {global: 6}\n", "batch.global: 6 is no multiple of micro 1 x dp 4 = 4"),
        (
            {"low.yaml": "extends: e.yaml\n"},
            "",
            "low.yaml:1: extends: e.yaml: the files extend each other in a circle",
        ),
        (
            {"low.yaml": OWN["low.yaml"].replace("root", "${NOBODY}")},
            "",
            "low.yaml:2: ${NOBODY}: the variable is not set, and the file gives no default",
        ),
        ({"low.yaml": OWN["low.yaml"] + "\tx: 1\n"}, "", "low.yaml:5: a tab indents this line"),
        ({"low.yaml": "#" * (1 << 20)}, "", "low.yaml:1: larger than 256 kB"),
        (
            {},
            "env: {PRIMUS_TEAM: \"007\"}\n",
            "low.yaml:1: work_group: Primus needs a text here, and reads a whole number ('7')",
        ),
        (
            {"e.yaml": OWN["e.yaml"].replace("small", "gone")},
            "",
            "e.yaml:6: model: primus/configs/models/megatron/gone.yaml: no such file",
        ),
    ):
        with Own(recipe, **files) as own:
            status, said = own.validate()
            need(status == 2 and expected in said, "%s: status %d: %s" % (expected, status, said))
            need(not [line for line in said.splitlines() if len(line) > 400], said)
    crlf = {path: text.replace("\n", "\r\n") for path, text in OWN.items()}
    with Own("", **crlf) as own:
        equal(own.validate()[0], 0, "CRLF")
    # more of what is no experiment: each one clear line, with its place
    for files, recipe, expected in (
        ({"low.yaml": "extends: gone.yaml\n"}, "", "low.yaml:1: extends: gone.yaml: no such file"),
        (
            {"low.yaml": "extends: [1]\n"},
            "",
            "low.yaml:1: extends: expected the name of a file, got a whole number",
        ),
        (
            {"low.yaml": "extends: low.yaml\n"},
            "",
            "low.yaml:1: extends: low.yaml: the files extend each other in a circle",
        ),
        (
            {"e.yaml": OWN["e.yaml"].replace("pre.yaml", "gone.yaml")},
            "",
            "e.yaml:5: config: primus/configs/modules/megatron/gone.yaml: no such file",
        ),
        (
            {"e.yaml": OWN["e.yaml"].replace("framework: megatron", "framework: megatrn")},
            "",
            "e.yaml:5: config: primus/configs/modules/megatrn/pre.yaml: no such file",
        ),
        (
            {"e.yaml": OWN["e.yaml"].replace("framework: megatron", "framework: [m]")},
            "",
            "e.yaml:4: framework: Primus needs a text here, and reads a list",
        ),
        (
            {"e.yaml": OWN["e.yaml"].replace("pre.yaml", "../../../../etc/passwd")},
            "",
            "e.yaml:5: config: '../../../../etc/passwd' leads out of primus/configs",
        ),
        (
            {"e.yaml": "- a\n"},
            "",
            "e.yaml:1: no mapping: a configuration is a mapping of keys to values",
        ),
        ({"e.yaml": "# nothing\n"}, "", "e.yaml:1: the file is empty"),
        (
            {"e.yaml": "extends: low.yaml\nmodules: [a]\n"},
            "",
            "e.yaml:2: modules: expected a mapping",
        ),
        (
            {"e.yaml": "extends: low.yaml\nmodules: {trainer: 5}\n"},
            "",
            "e.yaml:2: the module 'trainer': expected a mapping",
        ),
        (
            {"e.yaml": "extends: low.yaml\nmodules: {pre: {}}\n"},
            "",
            "e.yaml:2: the module 'pre': Primus takes only those with `trainer` in their name",
        ),
        (
            {"e.yaml": OWN["e.yaml"].replace("overrides:\n", "overrides: 5\n    x:\n")},
            "",
            "e.yaml:7: overrides: expected a mapping, got a whole number",
        ),
        (
            {
                "e.yaml": OWN["e.yaml"].replace(
                    "expert_model_parallel_size: 4", "expert_model_parallel_size: four"
                )
            },
            "",
            "e.yaml:9: expert_model_parallel_size: parallelism.ep: expected a whole number",
        ),
        (
            {"e.yaml": OWN["e.yaml"].replace("expert_model_parallel_size: 4", "1: x")},
            "",
            "e.yaml:9: the key '1' is no text in YAML 1.1",
        ),
        ({"e.yaml": OWN["e.yaml"].replace("\"yes\"", "\"yes")}, "", "e.yaml:"),
        ({"e.yaml": OWN["e.yaml"] + "      \x07: 1\n"}, "", "e.yaml:11:"),
        (
            {"primus/configs/platforms/platform_azure.yaml": "x: 1\n"},
            "",
            "primus/configs/platforms/platform_azure.yaml:1: missing key 'num_nodes_env_key'",
        ),
        (
            {"low.yaml": "work_group: a\nuser_name: root\nexp_name: e\n"},
            "",
            "missing key 'workspace'",
        ),
    ):
        with Own(recipe, **files) as own:
            status, said = own.validate()
            need(status == 2 and expected in said, "%s: status %d: %s" % (expected, status, said))
            need(said.count("\n") == 1 and len(said) < 400, said)


SFT = (
    OWN["e.yaml"]
    .replace("pre_trainer", "post_trainer")
    .replace("      note:", "      stage: sft\n      note:")
)


@suite.test
def the_kind_is_the_files():
    """An experiment under an engine kind for another framework, or one for pretraining under a kind
    for post-training."""
    trees = {
        "primus/configs/%s/%s/%s.yaml"
        % (a, f, b): OWN["primus/configs/%s/megatron/%s.yaml" % (a, b)]
        for a, b in (("modules", "pre"), ("modules", "base"), ("models", "small"))
        for f in ("torchtitan", "maxtext", "bridge")
    }
    both = OWN["e.yaml"] + "".join(SFT.partition("  post_trainer")[1:])
    staged = OWN["e.yaml"].replace("      note:", "      stage: sft\n      note:")
    for text, kind, expected in (
        (
            OWN["e.yaml"],
            "primus-megatron-sft",
            "e.yaml:3: pre_trainer: this is pretraining, and engine.kind primus-megatron-sft is "
            "for post-training; use engine.kind: primus-megatron",
        ),
        (
            OWN["e.yaml"].replace("framework: megatron", "framework: torchtitan"),
            "primus-megatron",
            "e.yaml:4: framework: torchtitan: engine.kind primus-megatron is for megatron; use "
            "engine.kind: primus-torchtitan",
        ),
        (
            OWN["e.yaml"].replace("framework: megatron", "framework: maxtext"),
            "primus-torchtitan",
            "e.yaml:4: framework: maxtext: engine.kind primus-torchtitan is for torchtitan; use "
            "engine.kind: primus-maxtext",
        ),
        (
            SFT,
            "primus-maxtext",
            "e.yaml:4: framework: megatron: engine.kind primus-maxtext is for maxtext; use "
            "engine.kind: primus-megatron-sft",
        ),
        (
            OWN["e.yaml"].replace("framework: megatron", "framework: bridge"),
            "primus-megatron",
            "e.yaml:4: framework: bridge: engine.kind primus-megatron is for megatron; this "
            "version has no engine kind for it",
        ),
        # Primus' pretraining takes a post_trainer where there is no other, and the trainer by
        # `stage`
        (SFT, "primus-megatron", None),
        (staged, "primus-megatron", None),
        (SFT.replace("      stage: sft\n", ""), "primus-megatron", None),
        (SFT.replace("framework: megatron", "framework: torchtitan"), "primus-torchtitan", None),
        (SFT, "primus-megatron-sft", None),
        (staged, "primus-megatron-sft", None),
        (OWN["e.yaml"], "primus-megatron", None),
        (both, "primus-megatron-sft", None),
        (both, "primus-megatron", None),
    ):
        with Own(**{**trees, "e.yaml": text}) as own:
            own.write(
                "r.yaml",
                (OWN_RECIPE % own.dir.name).replace("kind: primus-megatron,", "kind: %s," % kind)
                + own.recipe,
            )
            status, said = own.validate()
            if expected is None:
                equal(status, 0, "%s: %s" % (kind, said))
            else:
                need(
                    status == 2 and expected in said and said.count("\n") == 1,
                    "%s: status %d: %s" % (expected, status, said),
                )


@suite.test
def init_takes_the_kind_of_the_file():
    """An experiment for post-training, by itself or by the line that starts it, is a recipe of that
    kind."""
    with Own(**{"e.yaml": SFT, "p.yaml": OWN["e.yaml"], "primus/cli/main.py": ""}) as own:
        env = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
        line = [
            "--workdir",
            own.dir.name,
            "--gpus",
            "8",
            "--",
            "runner/primus-cli",
            "direct",
            "--",
            "train",
        ]
        for words, kind in (
            (["--gpus", "8", own.dir.name + "/e.yaml"], "primus-megatron-sft"),
            (["--gpus", "8", own.dir.name + "/p.yaml"], "primus-megatron"),
            (line + ["posttrain", "--config", "e.yaml"], "primus-megatron-sft"),
            (line + ["pretrain", "--config", "e.yaml"], "primus-megatron-sft"),
            (line + ["pretrain", "--config", "p.yaml"], "primus-megatron"),
        ):
            text = moectl("init", *words, env=env).stdout
            need("kind: %s\n" % kind in text, "%s: %s" % (words, text))
        r = moectl(
            "init",
            *line,
            "pretrain",
            "--config",
            "p.yaml",
            "--lr-warmup-iters",
            "7",
            "train-iters=3",
            env=env,
        )
        need(
            "--lr-warmup-iters 7: Primus does not know it and drops it; lr_warmup_iters is the key"
            in r.stdout
            and "--train-iters 3: Primus does not" in r.stdout,
            r.stdout,
        )
        need(
            "steps: 3" not in r.stdout
            and " 6 different; 2 not carried over" in r.stdout
            and "contradicts" not in r.stderr,
            r.stdout + r.stderr,
        )
        r = moectl(
            "init",
            "--out",
            own.dir.name + "/out.yaml",
            *line,
            "posttrain",
            "--config",
            "p.yaml",
            env=env,
            check=False,
        )
        need(
            r.returncode == 2
            and "p.yaml:3: pre_trainer: this is pretraining" in r.stderr
            and not os.path.exists(own.dir.name + "/out.yaml"),
            r.stderr,
        )


TITAN = {
    "primus/configs/modules/torchtitan/pre.yaml": "training: {steps: 50, local_batch_size: 6, "
    "global_batch_size: -1, seq_len: 128}\n"
    "parallelism: {tensor_parallel_degree: 1, pipeline_parallel_degree: 1, "
    "data_parallel_shard_degree: -1, pipeline_parallel_microbatch_size: 1}\n",
    "primus/configs/models/torchtitan/small.yaml": "model: {name: llama3, flavor: 8B}\n",
    "e.yaml": OWN["e.yaml"]
    .replace("framework: megatron", "framework: torchtitan")
    .partition("    overrides:")[0],
}


@suite.test
def torchtitan_takes_the_batch_of_the_plan():
    """The micro-batch of a plan is what a rank takes at once; a pipeline takes its whole step and
    cuts it."""
    keys = (
        "parallelism.pipeline_parallel_microbatch_size",
        "training.local_batch_size",
        "training.global_batch_size",
    )
    for batch, want in (
        ("", (1, 6, -1)),
        ("batch: {micro: 2}\n", (2, 2, -1)),
        ("batch: {global: 96}\n", (1, 6, 96)),
        ("batch: {micro: 2, global: 64}\n", (2, 2, 64)),
        ("batch: {micro: 2, global: 64}\nparallelism: {pp: 2}\n", (2, 16, 64)),
    ):
        with Own(**TITAN) as own:
            own.write(
                "r.yaml",
                (OWN_RECIPE % own.dir.name).replace(
                    "kind: primus-megatron", "kind: primus-torchtitan"
                )
                + own.recipe
                + batch,
            )
            items = {
                i["key"]: i["value"] for i in json.loads(own.explain("--json").stdout)["items"]
            }
            equal(tuple(items[key] for key in keys), want, batch)
            equal(own.validate()[0], 0, batch)
    # What the recipe's micro-batch makes of the file's other key is shown, and whose word it is.
    with Own(**TITAN) as own:
        recipe = (OWN_RECIPE % own.dir.name).replace("primus-megatron", "primus-torchtitan")
        own.write("r.yaml", recipe + own.recipe + "batch: {micro: 2}\n")
        items = {i["key"]: i for i in json.loads(own.explain("--json").stdout)["items"]}
        equal(items[keys[1]]["source"], {"recipe": "batch.micro"})
        status, said = own.validate()
        need(status == 0 and "training.local_batch_size 6 -> 2" in said, said)
    with Own(**TITAN) as own:
        own.write(
            "r.yaml",
            (OWN_RECIPE % own.dir.name).replace("kind: primus-megatron", "kind: primus-torchtitan")
            + own.recipe
            + "batch: {global: 64}\n",
        )
        status, said = own.validate()
        need(
            status == 2
            and "batch.global: 64 is no multiple of micro 6 x dp 8 = 48; use 48 or 96, or "
            "batch.micro 4 or 8" in said
            and said.count("\n") == 1,
            said,
        )


@suite.test
def values_that_read_otherwise_are_said():
    """1e-5 is a text, "false" is true and of two equal keys the last one counts: the engine says
    nothing, moectl does."""
    base = (
        OWN["primus/configs/modules/megatron/base.yaml"]
        + "overlap: false\nadam_eps: null\nload: null\nrecipe_of: auto\nmoe_aux_loss_coeff: 0.5\n"
    )
    tree = {"primus/configs/modules/megatron/base.yaml": base}
    with Own(
        **{
            **tree,
            "e.yaml": OWN["e.yaml"]
            + "      lr: 1e-5\n      overlap: \"no\"\n      adam_eps: 1e-8\n"
            "      moe_aux_loss_coeff: \"0.1\"\n      lr: .5e5\n"
            "      load: /a\n      recipe_of: \"no\"\n",
        }
    ) as own:
        status, said = own.validate()
        equal(status, 0, said)
        for line in (
            "e.yaml:15: warning: lr: given in line 11 already",
            "e.yaml:12: warning: overlap: \"no\" is a text",
            ": write false",
            "e.yaml:13: warning: adam_eps: \"1e-8\" is a text for the engine's YAML: write 1.0e-8",
            "e.yaml:14: warning: moe_aux_loss_coeff: \"0.1\" is a text for the engine's YAML: "
            "write 0.1",
            "e.yaml:15: warning: lr: \".5e5\" is a text for the engine's YAML: write 0.5e+5",
        ):
            need(line in said, "%s: %s" % (line, said))
        equal(
            [k for k in ("load", "recipe_of", "note") if "%s: \"" % k in said],
            [],
            "what is meant as a text is one",
        )
    good = (
        "      lr: 1.0e-5\n      overlap: no\n      adam_eps: 1.0e-8\n"
        "      moe_aux_loss_coeff: ${NONE:1e-3}\n"
    )
    with Own(**{**tree, "e.yaml": OWN["e.yaml"] + good}) as own:
        status, said = own.validate()
        equal((status, "is a text" in said, "given in line" in said), (0, False, False), said)
    # words of the recipe: a number of its own becomes what the engine reads, what is quoted stays
    # what it is
    words = (
        "engine.args=[lr=1e-4, --adam_eps, '1e-7', --overlap, 'off', --moe_aux_loss_coeff, 1e-3]"
    )
    with Own(**tree) as own:
        status, said = own.validate("--set", words)
        equal(status, 0, said)
        for line in (
            "r.yaml: engine.args: warning: lr: \"1e-4\" is a text for the engine's command line: "
            "write 1.0e-4",
            "warning: adam_eps: \"1e-7\" is a text",
            "warning: overlap: \"off\" is a text",
        ):
            need(line in said, "%s: %s" % (line, said))
        need("moe_aux_loss_coeff: \"" not in said, said)
        status, said = own.validate(
            "--set", "engine.args.lr=1e-4", "--set", "engine.args.overlap=true"
        )
        equal((status, "is a text" in said), (0, False), said)


@suite.test
def sizes_in_engine_args_are_the_engines():
    """A size that the recipe leaves to the experiment may come from engine.args, and checks and
    plans go by it."""
    with Own() as own:
        for key, value in (
            ("pipeline_model_parallel_size", 1),
            ("expert_model_parallel_size", 2),
            ("context_parallel_size", 2),
        ):
            word = "engine.args.%s=%d" % (key, value)
            status, said = own.validate("--set", word)
            equal((status, "contradicts" in said), (0, False), said)
            equal(
                [
                    i["value"]
                    for i in json.loads(own.explain("--key", key, "--set", word, "--json").stdout)[
                        "items"
                    ]
                ],
                [value],
                key,
            )
        status, said = own.validate("--set", "engine.args.pipeline_model_parallel_size=3")
        need(
            status == 2
            and "the command: pipeline_model_parallel_size: parallelism.pp: pp 3 does not divide "
            "cluster.gpus 8" in said,
            said,
        )
        status, said = own.validate(
            "--set", "parallelism.ep=1", "--set", "engine.args.expert_model_parallel_size=2"
        )
        need(
            status == 2
            and "expert_model_parallel_size 2 contradicts parallelism.ep 1: give it there only"
            in said,
            said,
        )
        # a hyphen makes another key of it, which nothing reads
        for words, key in (
            ("expert-model-parallel-size=4", "expert_model_parallel_size"),
            ("lr-warmup-iters=3", "lr_warmup_iters"),
        ):
            status, said = own.validate("--set", "engine.args." + words)
            need(
                status == 2
                and "engine.args: Primus does not know '%s' and drops it: write %s"
                % (words.split("=")[0], key)
                in said
                and said.count("Primus does not") == 1,
                said,
            )
        equal(
            own.validate(
                "--set",
                "engine.args.lr-warmup-iters=3",
                "--set",
                "engine.args_unchecked=[lr-warmup-iters]",
            )[0],
            0,
        )
        # an engine without experiments is given 1 where the recipe says nothing
        own.write(
            "r.yaml",
            (OWN_RECIPE % own.dir.name)
            .replace("primus-megatron", "megatron-lm")
            .replace(", entry: e.yaml", "")
            + "steps: 9\n",
        )
        status, said = own.validate("--set", "engine.args.expert-model-parallel-size=8")
        need(
            status == 2
            and "engine.args: expert-model-parallel-size 8: give it as parallelism.ep: 8: the "
            "command has parallelism.ep 1" in said,
            said,
        )


@suite.test
def a_wrong_tp_is_told_once():
    """Experts are split as tp says where nothing else is said: what follows of a wrong tp is no
    second error."""
    with Own() as own:
        for gpus in (6, 24):
            status, said = own.validate(
                "--set",
                "parallelism.tp=3",
                "--set",
                "cluster.gpus=%d" % gpus,
                "--set",
                "engine.args.num_experts=8",
                "--set",
                "engine.args.moe_ffn_hidden_size=1408",
                "--set",
                "parallelism.ep=1",
            )
            need(status == 2 and "parallelism.tp: 3 does not divide the model's" in said, said)
            need("parallelism.etp" not in said, said)


@suite.test
def a_tree_of_another_version():
    """Keys that the version we know does not have pass through and are named, whoever says them."""
    with Own(
        **{
            "e.yaml": OWN["e.yaml"] + "      micro_batch_sise: 4\n      brand_new: {of: 1}\n",
            "primus/configs/modules/megatron/pre.yaml": OWN[
                "primus/configs/modules/megatron/pre.yaml"
            ]
            + "other_versions: 1\nlora: {dim: 1}\n",
        }
    ) as own:
        status, said = own.validate()
        equal(status, 0, said)
        need(
            "e.yaml:11: warning: micro_batch_sise: no preset and no option of Primus fd1eeab"
            in said
            and "did you mean 'micro_batch_size'?" in said,
            said,
        )
        need("e.yaml:12: warning: brand_new.of: no preset" in said, said)
        need(
            "r.yaml: note: 1 key of the presets is not of Primus fd1eeab" in said
            and ": other_versions; it passes through" in said,
            said,
        )
        need("lora" not in said, said)
        items = {i["key"]: i["value"] for i in json.loads(own.explain("--json").stdout)["items"]}
        equal(
            (items["micro_batch_sise"], items["brand_new.of"], items["other_versions"]),
            (4, 1, 1),
            "they pass through",
        )


SMALL = OWN["primus/configs/models/megatron/small.yaml"]


@suite.test
def the_model_is_the_files():
    """No model, no batch, no steps in the recipe: all of it is planned from the experiment, and
    what cannot be is refused at the file's line."""
    small = "primus/configs/models/megatron/small.yaml"
    with Own(steps="") as own:
        plan = json.loads(moectl("plan", own.path, "--gpu", "mi300x", "--json").stdout)
        equal(
            {k: plan["plans"][0]["parallelism"][k] for k in ("tp", "pp", "ep")},
            {"tp": 1, "pp": 2, "ep": 4},
            "sharding",
        )
        equal(plan["plans"][0]["batch"], {"micro": 1, "global": 16, "seq": 128}, "batch")
        # 4 layers: attention 4 x 64 x 64, two norms; one dense of 3 x 64 x 128; three of 8 experts
        # of 3 x 64 x 32 and a router; 2 x 1000 x 64
        equal(
            plan["model"]["total_params"],
            4 * (4 * 64 * 64 + 128)
            + 3 * 64 * 128
            + 3 * (8 * 3 * 64 * 32 + 64 * 8)
            + 2 * 1000 * 64
            + 64,
            "parameters",
        )
        argv = json.loads(
            moectl(
                "submit",
                "--dry-run",
                "--json",
                own.path,
                env=clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
            ).stdout
        )["ranks"][0]["argv"]
        need(
            "--train_iters" not in argv
            and "--num_layers" not in argv
            and "--mtp_num_layers" not in argv,
            argv,
        )
    for files, expected in (
        (
            {small: SMALL.replace("layers: 4", "layers: many")},
            small + ":1: num_layers: model.layers: expected a whole number from 1 to 10000, got",
        ),
        (
            {small: SMALL.replace("layers: 4", "layers: 0")},
            small
            + ":1: num_layers: model.layers: expected a whole number from 1 to 10000, got '0'",
        ),
        (
            {small: SMALL.replace("layers: 4", "layers: [4]")},
            small + ":1: num_layers: model.layers: expected a whole number",
        ),
        (
            {small: SMALL.replace("size: 64", "size: 66")},
            small + ":4: num_attention_heads: model.heads: 4 does not divide hidden 66",
        ),
        (
            {small: SMALL.replace("topk: 2", "topk: 9")},
            small + ":8: moe_router_topk: model.moe.topk: 9 is more than the 8 experts",
        ),
        (
            {small: SMALL.replace("experts: 8", "experts: 6")},
            "e.yaml:9: expert_model_parallel_size: parallelism.ep: 4 does not divide the model's "
            "6 experts",
        ),
        (
            {small: SMALL.replace("seq_length: 128", "seq_length: 1e5")},
            small + ":2: seq_length: batch.seq: expected a whole number",
        ),
        (
            {"e.yaml": OWN["e.yaml"] + "      micro_batch_size: 0\n"},
            "e.yaml:11: micro_batch_size: batch.micro: expected a whole number",
        ),
        (
            {"e.yaml": OWN["e.yaml"] + "      global_batch_size: 15\n"},
            "e.yaml:11: global_batch_size: batch.global: 15 is no multiple of micro 1 x dp 4",
        ),
        ({"e.yaml": OWN["e.yaml"] + "      train_iters: null\n"}, "missing key 'steps'"),
    ):
        with Own(steps="", **files) as own:
            status, said = own.validate()
            need(status == 2 and expected in said, "%s: status %d: %s" % (expected, status, said))
    with Own(steps="", **{small: SMALL.replace("vocab_size: 1000\n", "")}) as own:
        r = moectl("plan", own.path, "--gpu", "mi300x", check=False)
        need(
            r.returncode == 2
            and "gives no model that can be planned: it says nothing that gives model.vocab"
            in r.stderr,
            r.stderr,
        )
        equal(own.validate()[0], 0, "it may be trained")
    # a model beside the file's own
    with Own() as own:
        need("model" not in own.validate()[1], own.validate())
        status, said = own.validate("--set", "model=mixtral-8x7b")
        need(
            status == 0
            and "r.yaml: warning: model: mixtral-8x7b has layers 32, and %s:1 says num_layers 4: "
            "the engine trains what its file says" % small in said,
            said,
        )
        need(
            "warning: model:"
            not in own.validate(
                "--set",
                "model=mixtral-8x7b",
                *sum(
                    (
                        ["--set", "engine.args.%s" % a]
                        for a in ("num_layers=32", "hidden_size=4096", "num_attention_heads=32")
                    ),
                    [],
                ),
            )[1],
            "the command says it too",
        )


MAXTEXT = {
    "primus/configs/modules/module_base.yaml": "trainable: false\nsink_level: null\n"
    "file_sink_level: DEBUG\nstderr_sink_level: INFO\n",
    "primus/configs/modules/maxtext/pre.yaml": "extends: [../module_base.yaml]\n"
    "base_config: base.yml\nmax_target_length: 4096\n"
    "per_device_batch_size: 1\nremat_policy: full\n",
    "primus/configs/models/maxtext/named.yaml": "model_name: mixtral-8x7b\n",
    "primus/configs/models/maxtext/sizes.yaml": "model_name: default\nbase_num_decoder_layers: 2\n"
    "base_emb_dim: 64\nbase_num_query_heads: 4\n"
    "base_num_kv_heads: 4\nhead_dim: 16\n"
    "base_mlp_dim: 32\n"
    "vocab_size: 1000\nnum_experts: 8\nnum_experts_per_tok: 2\n",
    "e.yaml": "extends: low.yaml\nmodules:\n  pre_trainer:\n    framework: maxtext\n"
    "    config: pre.yaml\n    model: named.yaml\n    overrides:\n"
    "      ici_expert_parallelism: -1\n      ici_fsdp_parallelism: 1\n",
}


@suite.test
def plans_of_maxtext_say_what_they_take():
    """A -1 is what the other sizes leave of a node; sizes are the file's where no name gives them;
    what cannot be planned says why, and whatever was read is never called unread."""
    e = MAXTEXT["e.yaml"]

    def planned(text, *args, gpus=8):
        with Own(**dict(MAXTEXT, **{"e.yaml": text})) as own:
            with open(own.path) as f:
                recipe = (
                    f.read()
                    .replace("primus-megatron", "primus-maxtext")
                    .replace("gpus: 8", "gpus: %d" % gpus)
                )
            own.write("r.yaml", recipe)
            r = moectl("plan", own.path, "--gpu", "mi300x", "--json", *args, check=False)
            need("of the presets" not in r.stderr, "keys that Primus reads itself: " + r.stderr)
            return (json.loads(r.stdout) if r.returncode == 0 else None), r.stderr

    for text, gpus, ep in (
        (e, 8, 8),
        (e, 4, 4),
        (e, 16, 8),
        (e.replace("fsdp_parallelism: 1", "fsdp_parallelism: 2"), 8, 4),
        (e.replace("-1", "2"), 8, 2),
    ):
        doc, said = planned(text, gpus=gpus)
        need(
            doc and doc["plans"][0]["parallelism"]["ep"] == ep,
            "%s on %d GPUs: %s" % (text, gpus, said),
        )
        need(46e9 < doc["model"]["total_params"] < 47e9, doc["model"])
    doc, said = planned(e.replace("named", "sizes"))
    # 2 layers: attention 4 x 64 x 64, two norms, 8 experts of 3 x 64 x 32 and a router; 2 x 1000 x
    # 64, a norm
    equal(
        doc["model"]["total_params"],
        2 * (4 * 64 * 64 + 128 + 8 * 3 * 64 * 32 + 64 * 8) + 2 * 1000 * 64 + 64,
        "the file's sizes",
    )
    for text, gpus, expected in (
        # two are -1
        (
            e.replace("      ici_fsdp_parallelism: 1\n", ""),
            8,
            "the sharding is left to the engine, and its experiment does not say all of it in "
            "numbers",
        ),
        (e, 12, "does not say all of it in numbers"),
        (
            e + "      model_name: gemma4-26b\n",
            8,
            "e.yaml:10: model_name: gemma4-26b: the sizes behind this name are the engine's own "
            "and were not read",
        ),
        (
            e + "      base_num_decoder_layers: 2\n",
            8,
            "e.yaml:10: base_num_decoder_layers: it changes the model behind model_name",
        ),
        (
            e + "      shared_experts: 1\n",
            8,
            "e.yaml:10: shared_experts>0: plans know no model of that kind",
        ),
    ):
        doc, said = planned(text, gpus=gpus)
        need(
            doc is None and expected in said and "not read here" not in said,
            "%s: %s" % (expected, said),
        )


@suite.test
def two_jobs_never_share_a_directory():
    """While the first is unfinished the second is refused by name, however it spells the path;
    without checkpoint.dir each has names of its own."""
    free = {"low.yaml": OWN["low.yaml"].replace("exp_name: e", "exp_name: ${PRIMUS_EXP_NAME:e}")}
    with Own(**free) as own, Cluster(nodes=1, gpus_per_node=8) as c:
        top = own.dir.name
        # the first waits: there is no Primus here, and it would fail at once
        c.run("drain", "node-0", "--reason", "t")
        first = json.loads(
            c.run("submit", own.path, "--json", "--set", "checkpoint.dir=%s/x" % top).stdout
        )["id"]
        for spelled in (top + "/x", top + "//x/checkpoints/"):
            r = c.run(
                "submit",
                own.path,
                "--name",
                "other",
                "--set",
                "checkpoint.dir=" + spelled,
                check=False,
            )
            need(
                r.returncode == 1
                and "checkpoint.dir: %s/x/checkpoints is that of %s (own), which is " % (top, first)
                in r.stderr,
                r.stderr,
            )
        c.run("cancel", first)
        c.wait_state(first, "cancelled")
        c.run("submit", own.path, "--name", "other", "--set", "checkpoint.dir=%s/x" % top)
    with Own() as own, Cluster(nodes=1, gpus_per_node=8) as c:
        r = c.run("submit", own.path)
        need(
            "checkpoint.dir: not given: nothing is resumed" in r.stderr and "own-j-ID" in r.stderr,
            r.stderr,
        )
        env = c.json("submit", "--dry-run", own.path)["ranks"][0]["env"]
        need(
            env["PRIMUS_EXP_NAME"].startswith("own-j-") and env["PRIMUS_USER"].startswith("j-"), env
        )


@suite.test
def a_missing_directory_is_told_everywhere():
    said = (
        "r.yaml:3:9: warning: checkpoint.dir: not given: nothing is resumed, and a restart begins "
        "at 0"
    )
    env = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
    with Own() as own:
        for verb in (["validate"], ["submit", "--dry-run"], ["plan", "--gpu", "mi300x"]):
            r = moectl(*verb, own.path, env=env)
            equal(r.stderr.replace(own.path, "r.yaml").count(said), 1, "%s: %s" % (verb, r.stderr))
    with Own("checkpoint: {dir: /ckpt/x}\n", **{"low.yaml": FREE}) as own:
        need("not given" not in own.validate()[1], own.validate())


@suite.test
def saves_behind_the_end():
    """Also those of the file's own interval, with its line."""
    saves = {"e.yaml": OWN["e.yaml"] + "      save_interval: 20000\n", "low.yaml": FREE}
    with Own("checkpoint: {dir: /ckpt/x/checkpoints}\n", **saves) as own:
        said = (
            "e.yaml:11: checkpoint.every: 20000 iterations are more than the job's 9: only the "
            "state at the end is saved"
        )
        need(said in own.validate()[1], own.validate())
        need(
            "iterations are more" not in own.validate("--set", "checkpoint.every=3")[1],
            own.validate("--set", "checkpoint.every=3"),
        )


@suite.test
def variables_of_the_shell():
    """What is exported for Primus' own launcher, or what the files ask for, counts here only as the
    ranks have it; reported once, and never with the value."""
    with Own() as own:

        def note(*args, **shell):
            r = moectl(
                "validate",
                own.path,
                *args,
                env=clean_env(MOE_URL="unix:/nonexistent/moed.sock", **shell),
                check=False,
            )
            lines = [
                line
                for line in r.stderr.replace(own.path, "r.yaml").split("\n")
                if "of your shell" in line
            ]
            return [line.split(" of your shell")[0] for line in lines]

        equal(
            note(PRIMUS_WORKSPACE="secret", PP="2", SEED="1"),
            ["r.yaml: note: PP, PRIMUS_WORKSPACE"],
            "two of them",
        )
        equal(note("--set", "env.PP=2", PP="2"), [], "the ranks have the same")
        equal(
            note("--set", "engine.workdir=/nowhere", PRIMUS_TEAM="t", PP="2"),
            ["r.yaml: note: PRIMUS_TEAM"],
            "where the files are not here",
        )
        equal(note(), [], "none")


@suite.test
def misspelt_keys_of_a_file():
    for change, said in (
        (
            ("    overrides:", "    override:"),
            "e.yaml:7: warning: override: nothing reads this key of the module, and nothing below "
            "it is used; did you mean 'overrides'?",
        ),
        (("modules:", "module:"), "e.yaml:2: missing key 'modules'; is 'module' meant as it?"),
        (("    model:", "    modle:"), "e.yaml:6: missing key 'model'; is 'modle' meant as it?"),
        (
            ("extends:", "platforms: 1\nextends:"),
            "e.yaml:1: platforms: warning: nothing reads this key beside `modules`; did you mean "
            "'platform'?",
        ),
    ):
        with Own(**{"e.yaml": OWN["e.yaml"].replace(*change)}) as own:
            text = own.validate()[1]
            equal(text.count(said), 1, "%s: %s" % (change, text))
            need(text.count("did you mean") + text.count("meant as it") == 1, text)


@suite.test
def values_that_are_set():
    """A number that begins with a minus is a number; 0 groups are none, whatever the file says."""
    model = (
        "model: {layers: 4, hidden: 64, heads: 4, ffn: 128, vocab: 1000, moe: {experts: 8, topk: "
        "2, ffn: 32, dense_layers: 1%s}}\n"
    )
    grouped = {
        "primus/configs/models/megatron/small.yaml": OWN[
            "primus/configs/models/megatron/small.yaml"
        ]
        + "moe_router_num_groups: 4\nmoe_router_group_topk: 2\n"
    }

    def values(own, *args):
        return {
            i["key"]: i["value"] for i in json.loads(own.explain("--json", *args).stdout)["items"]
        }

    with Own() as own:
        for text, value in (
            ("-2E-06", -2e-06),
            ("-2", -2),
            ("-.5e1", -5.0),
            ("'-2E-06'", "-2E-06"),
            ("2E-06", 2e-06),
            ("-x", "-x"),
        ):
            equal(values(own, "--set", "engine.args.lr=" + text)["lr"], value, text)
    for groups, left in (("", None), (", groups: 0", None), (", groups: 2, topk_groups: 1", 2)):
        with Own(model % groups, **grouped) as own:
            items = values(own)
            equal(
                (items["moe_router_num_groups"], items["moe_router_group_topk"]),
                (left, left and 1),
                groups,
            )
    with Own(**grouped) as own:
        equal(values(own)["moe_router_num_groups"], 4, "what the recipe leaves to the file")


@suite.test
def more_gpus_than_there_are():
    """The job is taken, because nodes may still join; the submit says what it waits for, and what
    would run on what is there."""
    with Own("checkpoint: {dir: /ckpt/x}\n", **{"low.yaml": FREE}) as own, Cluster(
        nodes=2, gpus_per_node=2
    ) as c:

        def said(*args):
            r = c.run(
                "submit",
                own.path,
                "--name",
                "n%d" % len(names),
                "--set",
                "checkpoint.dir=/ckpt/%d" % len(names),
                *args,
            )
            names.append(r.stdout.split()[0])
            lines = [line for line in r.stderr.split("\n") if "cluster.gpus:" in line]
            return lines[0].split("warning: ")[1] if lines else ""

        names = []
        begin = (
            "cluster.gpus: needs 8 GPUs; the cluster has 4 (the largest node 2), so the job waits "
            "until more join"
        )
        equal(
            said(),
            begin
            + "; --set cluster.gpus=4 alone will not do: cluster.gpus: 4: the experiment's pp 2 x "
            "ep 4 needs a multiple of 8",
            "sizes",
        )
        equal(
            said("--set", "env.PP=1"),
            begin
            + "; on what is there it runs by --set cluster.gpus=4 with dp 4 instead of 8 and the "
            "same global batch, each step about 2 times as long",
            "dp",
        )
        need(
            "needs 8 GPUs of type mi300x; the cluster has 0 and 4 of other types"
            in said("--set", "cluster.gpu=mi300x"),
            "another type",
        )
        equal(said("--set", "env.PP=1", "--set", "cluster.gpus=4"), "", "it fits")
        need("needs 8 GPUs" in c.json("status", names[0])["reason"], "as `why` says it")
        for name, then in (
            (
                names[0],
                "; --set cluster.gpus=4 alone will not do: cluster.gpus: 4: the experiment's pp 2 "
                "x ep 4 needs a multiple of 8",
            ),
            (
                names[1],
                "; on what is there it runs by --set cluster.gpus=4 with dp 4 instead of 8 and "
                "the same global batch, each step about 2 times as long",
            ),
            (names[2], "; --set cluster.gpu=null takes any type"),
        ):
            equal(
                c.json("why", name)["next"],
                "it starts when more nodes join" + then,
                "the hint of its submit",
            )


@suite.test
def a_name_that_is_fixed():
    """Of workspace/work_group/user_name/exp_name only the group is left to a variable: such
    directories can be met, others name what is in the way."""
    with Own("checkpoint: {dir: /ckpt/x/root/e}\n") as own:
        doc = json.loads(own.explain("--json").stdout)
        equal(joined(doc["names"]), "/ckpt/x/root/e/checkpoints", doc["names"])
        equal(own.validate()[0], 0, "fits")
        status, said = own.validate("--set", "checkpoint.dir=/ckpt/x/root/f")
        equal((status, said.count("\n")), (2, 1), said)
        need(
            "/ckpt/x/root/f/checkpoints cannot be met: exp_name is 'e' at low.yaml:3, and the "
            "engine would save to /ckpt/x/root/e/checkpoints; name a directory that ends in "
            "/root/e/checkpoints, "
            "or write `exp_name: ${PRIMUS_EXP_NAME:e}` there" in said,
            said,
        )
        status, said = own.validate("--set", "checkpoint.dir=/ckpt/x/me/e")
        need(
            status == 2
            and "/ckpt/x/me/e/checkpoints cannot be met: user_name is 'root' at low.yaml:2" in said
            and "write `user_name: ${PRIMUS_USER:root}`" in said,
            said,
        )
    with Own(
        "checkpoint: {dir: /ckpt/x}\n",
        **{"low.yaml": OWN["low.yaml"].replace("exp_name: e", "exp_name: ${EXP_NAME:e}")},
    ) as own:
        doc = json.loads(own.explain("--json").stdout)
        equal(
            (joined(doc["names"]), doc["names"]["exp_name"]),
            ("/ckpt/x/checkpoints", "/ckpt/x"),
            "a file with other names of variables",
        )


@suite.test
def what_plans_do_not_count():
    """A model that plans do not know is not planned as another one; what is trained otherwise than
    it is counted is said."""
    sized = "      moe_router_topk: 2\n"

    def plan(key, *more):
        with Own(**{"e.yaml": OWN["e.yaml"].replace("PP:2", "PP:1") + key}) as own:
            r = moectl("plan", own.path, "--gpu", "mi355x", "--json", *more, check=False)
            return (
                r.stderr
                if r.returncode
                else [n for n in json.loads(r.stdout)["plans"][0]["notes"] if "counted as" in n]
            )

    for key in (
        "model_type: kimi_k3",
        "routed_expert_hidden_size: 32",
        "linear_attention_freq: 4",
        "linear_attention_freq: ([1]*3+[0])*1",
        "experimental_attention_variant: gated_delta_net",
        "lfm_layer_types: [conv, full_attention]",
    ):
        said = plan(sized + "      %s\n" % key)
        need(
            "plans know no model of that kind" in said
            and "e.yaml:12: " + key.split(":")[0] in said,
            "%s: %s" % (key, said),
        )
    for key in (
        "model_type: gpt",
        "routed_expert_hidden_size: null",
        "linear_attention_freq: null",
        "experimental_attention_variant: null",
        "lfm_layer_types: null",
        "lora: {enabled: false, dim: 32}",
        "fp4: null",
    ):
        equal(plan(sized + "      %s\n" % key), [], key)
    lora, fp4 = (
        "LoRA: every parameter is counted as trained, which takes more memory than adapters do",
        "fp4 is counted as bf16",
    )
    equal(
        plan("      bf16: true\n      fp4: e2m1\n      lora: {enabled: true, dim: 32}\n"),
        [fp4, lora],
        "of the file",
    )
    equal(
        plan("      bf16: true\n      fp4: e2m1\n", "--set", "precision=bf16"),
        [],
        "what the recipe switches off",
    )
    equal(
        plan(
            "      bf16: true\n",
            "--set",
            "engine.args.fp4=e2m1",
            "--set",
            "engine.args.lora.enabled=true",
        ),
        [fp4, lora],
        "of the recipe",
    )


@suite.test
def files_that_are_not_here():
    with Own() as own:
        own.take_away()
        status, said = own.validate()
        need(
            status == 0
            and "tp, pp, vpp, ep, etp, cp, sharding are left to the experiment, which was not "
            "read here (%s/e.yaml):" % own.dir.name in said,
            said,
        )
        r = moectl("plan", own.path, "--gpu", "mi300x", check=False)
        need(
            r.returncode == 2
            and "the model is the experiment's, which was not read here (%s/e.yaml)" % own.dir.name
            in r.stderr,
            r.stderr,
        )
        r = moectl(
            "plan",
            own.path,
            "--gpu",
            "mi300x",
            "--set",
            "model=llama3-8b",
            "--set",
            "batch.seq=128",
            "--set",
            "batch.global=16",
            check=False,
        )
        need(
            r.returncode != 0
            and "the sharding is left to the engine's own files, which were not read here"
            in r.stderr,
            r.stderr,
        )
        r = own.explain(check=False)
        need(r.returncode == 1 and "e.yaml: no such file" in r.stderr, r.stderr)


@suite.test
def an_entry_that_is_mistyped():
    """Where the engine's checkout is, a job of an experiment that is not there would only end; what
    only the nodes may have goes on."""
    with Own(**{"examples/MI300X/small.yaml": OWN["e.yaml"], "there/x.yaml": OWN["e.yaml"]}) as own:
        root = own.dir.name

        def entry(path, *more):
            return own.validate("--set", "engine.entry=" + path, *more)

        for path, why in (
            ("ee.yaml", "ee.yaml: no such file; did you mean 'e.yaml'?"),
            (
                "examples/MI300X/smal.yaml",
                "examples/MI300X/smal.yaml: no such file; did you mean "
                "'examples/MI300X/small.yaml'?",
            ),
            (
                "examples/M1300X/small.yaml",
                "examples/M1300X/small.yaml: no such file; did you mean "
                "'examples/MI300X/small.yaml'?",
            ),
            (
                "example/MI300X/other.yaml",
                "example/MI300X/other.yaml: no such file; did you mean 'examples'?",
            ),
            (
                root + "/there/y.yaml",
                "there/y.yaml: no such file; did you mean '%s/there/x.yaml'?" % root,
            ),
            ("e.yaml/x", "e.yaml/x: no such file; give the experiment's file"),
            (
                "nothing-like-it.yaml",
                "nothing-like-it.yaml: no such file; give the experiment's file",
            ),
            ("examples", "examples: a directory; give the experiment's file"),
        ):
            status, said = entry(path)
            equal(status, 2, said)
            need(said.startswith("r.yaml: engine.entry: %s/" % root) or path.startswith("/"), said)
            need(said.count("\n") == 1 and why in said, said)
        r = moectl(
            "submit",
            own.path,
            "--set",
            "engine.entry=ee.yaml",
            env=clean_env(MOE_URL="unix:/nonexistent/moed.sock"),
            check=False,
        )
        need(
            r.returncode == 2 and "engine.entry: %s/ee.yaml: no such file" % root in r.stderr,
            r.stderr,
        )
        # a directory of the nodes, what engine.prepare makes there, and a tree that is no checkout
        for path, more in (
            ("/nonexistent/nodes/e.yaml", ()),
            ("ee.yaml", ("--set", "engine.prepare=sh make.sh")),
        ):
            status, said = entry(path, *more)
            need(status == 0 and "which was not read here (" in said, said)
        own.take_away()
        status, said = entry("ee.yaml")
        need(status == 0 and "which was not read here (%s/ee.yaml)" % root in said, said)


@suite.test
def an_experiment_of_ours_without_the_engine():
    """What is in moectl's data directory names presets of a tree that need not be here."""
    recipe = os.path.join(ROOT, "config/recipes/moe-1t-768-mi355x.yaml")
    gone = ["--set", "engine.workdir=/nonexistent/Primus"]
    r = moectl("validate", recipe, *gone)
    equal(r.stderr, "", "what is said of it")
    need(
        re.search(
            r": valid: .*; not judged here: \S+, which the job's first node reads and judges "
            r"before its ranks start\n$",
            r.stdout,
        ),
        r.stdout,
    )
    r = moectl("explain", "config", recipe, *gone, check=False)
    need(r.returncode == 1 and "/nonexistent/Primus: no such directory" in r.stderr, r.stderr)
    # a tree that is here and lacks them is another matter
    with tempfile.TemporaryDirectory() as d:
        r = moectl("validate", recipe, "--set", "engine.workdir=" + d, check=False)
        need(
            r.returncode == 2 and "primus/configs/" in r.stderr and "no such file" in r.stderr,
            r.stderr,
        )


@suite.test
def a_controller_hears_of_it():
    """The controller has no such files: it gets what they say, checks by it, and its command says
    none of it."""
    with Own("env: {PP: \"1\"}\n") as own, Cluster(nodes=1, gpus_per_node=8) as c:
        argv = c.json("submit", "--dry-run", own.path)["ranks"][0]["argv"]
        need("--pipeline_model_parallel_size" not in argv and "--train_iters" in argv, argv)
        r = c.run("submit", own.path, "--json")
        need("not read" not in r.stderr, r.stderr)
        need(
            "--expert_model_parallel_size"
            not in c.json("submit", "--dry-run", own.path)["ranks"][0]["argv"],
            "the command",
        )
        # the same text without what was read: accepted, and said
        own.take_away()
        r = c.run("submit", own.path, "--json")
        need("was not read here" in r.stderr, r.stderr)


# What stands where Primus' main would: it trains as far as its experiment says.
PROGRAM = """import os, sys
assert "--config" in sys.argv
n = 3
for i in range(1, n + 1):
    if os.environ["RANK"] == str(int(os.environ["WORLD_SIZE"]) - 1):
        print("iteration %8d/%8d | consumed samples: %d | elapsed time per iteration (ms): 1.0 |\
 lm loss: 1.0E+00 |" % (i, n, i), flush=True)
"""


@suite.test
def the_record_keeps_it():
    """What a job was launched with stays with it: after its end, without the files, and over a new
    controller."""
    files = {
        "primus/cli/main.py": PROGRAM,
        "e.yaml": OWN["e.yaml"].replace("PP:2", "PP:1")
        + "      train_iters: 3\n      wandb_api_key: hush-hush\n"
        "      of_env: ${WANDB_API_KEY:none}\n",
    }
    with Own("env: {WANDB_API_KEY: hush-hush}\n", steps="", **files) as own, Cluster(
        nodes=1, gpus_per_node=8
    ) as c:
        local = {i["key"]: i for i in json.loads(own.explain("--json").stdout)["items"]}
        equal(
            (local["wandb_api_key"]["value"], local["of_env"]["value"]),
            ("hush-hush", "***"),
            "one's own file, and a variable",
        )
        r = c.run("submit", own.path, "--json")
        need("not read" not in r.stderr, r.stderr)
        job = json.loads(r.stdout)["id"]
        seen = c.wait_state(job, ("completed", "failed"))
        equal(
            (seen["state"], seen["steps"], seen["iteration"]),
            ("completed", 3, 3),
            "the job, which is complete when it did what its experiment says: %s" % seen,
        )
        os.rename(os.path.join(own.dir.name, "e.yaml"), os.path.join(own.dir.name, "f.yaml"))

        def same_as_launched():
            doc = c.json("explain", "config", job)
            items = {i["key"]: i for i in doc["items"]}
            equal(set(items), set(local), "keys")
            equal(
                {k: v for k, v in items.items() if k != "wandb_api_key"},
                {k: v for k, v in local.items() if k != "wandb_api_key"},
                "configuration of the job",
            )
            equal(items["wandb_api_key"]["value"], "***", "a secret")
            need("hush-hush" not in json.dumps(doc), "a secret is shown")

        same_as_launched()
        equal(c.run("explain", "config", job, "--key", "lr").stdout, own_lr(), "people's text")
        r = c.run("explain", "config", job, "--key", "lrr", check=False)
        equal((r.returncode, "no key 'lrr'" in r.stderr), (5, True), "an unknown key")
        r = c.run("explain", "config", job, "--set", "a=1", check=False)
        need(r.returncode == 2 and "--set belongs to a recipe" in r.stderr, r.stderr)
        r = c.run("explain", "config", "j-999", check=False)
        equal(r.returncode, 5, "no such job")
        other = c.submit(
            "recipe: 1\nname: o\nengine: {kind: command, argv: [/bin/true]}\ncluster: {gpus: 1}\n"
        )
        r = c.run("explain", "config", other, check=False)
        need(
            r.returncode == 1 and "of engine command no configuration is read" in r.stderr, r.stderr
        )
        pid = c.status()["moed"]["pid"]
        os.kill(pid, 9)
        c.up()
        same_as_launched()


def submit_unread(c, text):
    """As from a machine that has none of the engine's files; the job's id."""
    status = c.status()
    request = urllib.request.Request(
        status["tcp_url"] + "/v1/jobs",
        text.encode(),
        {
            "Content-Type": "application/yaml",
            "Authorization": "Bearer " + open(status["token_file"]).read().strip(),
        },
    )
    with urllib.request.urlopen(request, timeout=PATIENCE * 30) as r:
        return json.load(r)["id"]


def seen_by(c, token, job, *paths):
    """What a caller with that token is shown of the job, as one text."""

    def get(path):
        request = urllib.request.Request(
            "%s/v1/jobs/%s%s" % (c.status()["tcp_url"], job, path),
            headers={"Authorization": "Bearer " + token},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE * 30) as r:
            return r.read().decode()

    return "\n".join(get(path) for path in paths)


@suite.test
def old_ones_are_let_go():
    """Recipes and configurations of finished jobs are kept up to a limit; then the oldest says what
    it was, and all else of it stays."""
    files = {
        "primus/cli/main.py": PROGRAM,
        "e.yaml": OWN["e.yaml"].replace("PP:2", "PP:1") + "      train_iters: 3\n",
    }
    with Own(steps="", **files) as own, Cluster(nodes=1, gpus_per_node=8) as c:
        job = c.json("submit", own.path)["id"]
        equal(c.wait_state(job, ("completed", "failed"))["state"], "completed", "the job")
        digest = c.json("explain", "config", job)["hash"]
        status = c.status()
        large = command_recipe("large", ["/bin/true"], 64) + "\n#" + "x" * 250000

        def post(path, text):
            request = urllib.request.Request(
                status["tcp_url"] + path,
                text.encode(),
                {
                    "Content-Type": "application/json" if text == "{}" else "application/yaml",
                    "Authorization": "Bearer " + open(status["token_file"]).read().strip(),
                },
            )
            with urllib.request.urlopen(request, timeout=PATIENCE * 30) as r:
                return json.load(r)

        for _ in range((64 << 20) // 250000 + 1):
            post("/v1/jobs/%s/cancel" % post("/v1/jobs", large)["id"], "{}")
        for again in (False, True):
            if again:
                os.kill(status["moed"]["pid"], 9)
                c.up()
            r = c.run("explain", "config", job, check=False)
            need(
                r.returncode == 5
                and "are kept no more" in r.stderr
                and "e.yaml" in r.stderr
                and digest in r.stderr
                and r.stderr.count("\n") == 1,
                r.stderr,
            )
            equal(c.job(job)["iteration"], 3, "the job itself")
            need(c.run("report", job, "--json").stdout, "its report")


@suite.test
def a_node_reads_it():
    """The files are only where the ranks run, and a variable is mapped there: what the job is
    launched with is read there, and what cannot be loaded ends the launch."""
    files = {
        "primus/cli/main.py": PROGRAM,
        "prepare.sh": "echo env.PP=1\necho env.WANDB_TOKEN=hush-hush\necho extra.seed=7\n",
        "mine": "hush-hush\n",
        "e.yaml": OWN["e.yaml"].replace("PP:2", "PP")
        + "      train_iters: 3\n      told: ${WANDB_TOKEN}\n      of_file: ${OF_FILE}\n"
        "      libraries: ${LD_LIBRARY_PATH}\n",
    }
    text = (
        "recipe: 1\nname: away\nengine: {kind: primus-megatron, workdir: %s, entry: e.yaml, "
        "prepare: sh prepare.sh}\ncluster: {gpus: 8}\n"
        "env: {OF_FILE: {file: %s/mine}, LD_LIBRARY_PATH: /of/the/job}\n"
    )
    cluster = Cluster(nodes=1, gpus_per_node=8)
    cluster.env["LD_LIBRARY_PATH"] = "/of/the/agent"
    with Own(**files) as own, cluster as c:

        def submit():
            return submit_unread(c, text % (own.dir.name, own.dir.name))

        job = submit()
        seen = c.wait_state(job, ("completed", "failed"))
        equal(seen["state"], "completed", seen["reason"])
        doc = c.json("explain", "config", job)
        items = {i["key"]: i for i in doc["items"]}
        equal(
            (
                items["pipeline_model_parallel_size"]["value"],
                items["pipeline_model_parallel_size"]["variable"],
            ),
            (1, "PP"),
            "a variable of the node",
        )
        equal(
            items["lr"]["source"],
            {"file": "primus/configs/modules/megatron/pre.yaml", "line": 3},
            "a place",
        )
        equal(
            (items["told"]["value"], items["of_file"]["value"]),
            ("***", "***"),
            "a secret stays on the node",
        )
        need("hush-hush" not in json.dumps(doc), "a secret is shown")
        equal(
            items["libraries"]["value"],
            "/of/the/agent:/of/the/job",
            "where moe-config looks for libraries first",
        )
        need(
            items["seed"]["value"] == 7
            and "engine.prepare printed" in items["seed"]["source"]["moectl"],
            items["seed"],
        )
        equal(doc["files"][:2], ["e.yaml", "low.yaml"], "files")
        for change, reason, told in (
            (
                {"low.yaml": "extends: e.yaml\n"},
                "low.yaml:1: extends: e.yaml: the files extend each other in a circle",
                "its node could not load them",
            ),
            (
                {"prepare.sh": "exit 0\n"},
                "e.yaml:8: ${PP}: the variable is not set, and the file gives no default",
                "its node could not load them",
            ),
            (
                {"prepare.sh": "echo no such data; exit 3\n"},
                "engine.prepare on node-0 ended with exit code 3",
                "engine.prepare failed before its node read them",
            ),
            # a program that stands in Primus' place may not read it
            ({"e.yaml": None}, None, "the node that started attempt 1 did not find them either"),
        ):
            for path, content in {**OWN, **files, **change}.items():
                os.remove(os.path.join(own.dir.name, path)) if content is None else own.write(
                    path, content
                )
            job = submit()
            seen = c.wait_state(job, ("completed", "failed"))
            need(
                seen["state"] == "failed" and reason in seen["reason"] and seen["attempt"] == 1
                if reason
                else seen["state"] == "completed",
                "%s: %s" % (reason, seen),
            )
            r = c.run("explain", "config", job, check=False)
            equal(r.returncode, 1, r.stderr)
            need(told in r.stderr and "no node" not in r.stderr, r.stderr)
            if reason:
                why = c.run("why", job).stdout
                need(
                    why.count(reason) == 1
                    and "died first" not in why
                    and "as it is, it fails again" in why,
                    why,
                )
        c.run("drain", "node-0", "--reason", "t")
        job = submit()
        for told in (
            "the job is queued: the node that starts it reads them",
            "the job is cancelled, and no node ever started it",
        ):
            r = c.run("explain", "config", job, check=False)
            need(r.returncode == 1 and told in r.stderr, r.stderr)
            c.run("cancel", job, check=False)
            c.wait_state(job, "cancelled")


@suite.test
def what_a_job_puts_in_its_place():
    """The job's environment is that of moe-config, too, so it may print what it likes or never end:
    the job runs without the record, and its node stays whole."""
    library = os.path.join(BUILD, "tests/fake/preload/hostile.so")
    files = {
        "primus/cli/main.py": PROGRAM,
        "prepare.sh": "exit 0\n",
        "e.yaml": OWN["e.yaml"].replace("PP:2", "PP:1") + "      train_iters: 3\n",
    }
    text = (
        "recipe: 1\nname: %s\nengine: {kind: primus-megatron, workdir: %s, entry: e.yaml, "
        "prepare: sh prepare.sh}\ncluster: {gpus: 4}\nenv: {LD_PRELOAD: %s, HOSTILE: '%s'}\n"
    )
    with Own(**files) as own, Cluster(nodes=1, gpus_per_node=16) as c:
        # one by one: their program makes their directories one
        for i, what in enumerate(("hang", 255, 1, 34)):
            job = c.submit(text % ("h%d" % i, own.dir.name, library, what))
            seen = c.wait_state(job, ("completed", "failed"))
            equal(seen["state"], "completed", seen["reason"])
            items = {i["key"]: i["value"] for i in c.json("explain", "config", job)["items"]}
            equal((items["train_iters"], items["lr"]), (3, 1e-05), "what the submit read")
        equal(c.json("nodes")["items"][0]["state"], "up", "the node")


# Leaves a trace of each rank that starts, and does as many iterations as its directory says.
TRACE = """import os, sys
rank, world = os.environ["RANK"], int(os.environ["WORLD_SIZE"])
open("ran." + rank, "w").close()
for i in range(1, int(open("n").read()) + 1):
    if rank == str(world - 1):
        print("iteration %8d/%8d | consumed samples: %d | elapsed time per iteration (ms): 1.0 |\
 lm loss: 1.0E+00 |" % (i, 3, i), flush=True)
"""
AWAY = (
    "recipe: 1\nname: away\nengine: {kind: primus-megatron, workdir: %s, entry: e.yaml}\n"
    "cluster: {gpus: 8}\n"
)
BASE = "primus/configs/modules/megatron/base.yaml"


def events_of(c, job, type_):
    return [e for e in c.json("events", job)["items"] if e["type"] == type_]


@suite.test
def a_node_judges_it():
    """Where only nodes have the files, what the submit would have refused is refused there, before
    any rank starts; what it would have warned of is an event."""
    files = {
        "primus/cli/main.py": TRACE,
        "n": "3",
        "e.yaml": OWN["e.yaml"].replace("PP:2", "PP:1") + "      train_iters: 3\n",
    }
    with Own(**files) as own, Cluster(nodes=1, gpus_per_node=8) as c:
        for change, more, reason in (
            (
                {BASE: OWN[BASE] + "num_experts: 6\n"},
                "",
                "e.yaml:9: expert_model_parallel_size: parallelism.ep: 4 does not divide the "
                "model's 6 experts",
            ),
            (
                {BASE: OWN[BASE].replace("global_batch_size: 16", "global_batch_size: 12")},
                "",
                BASE + ":7: global_batch_size: batch.global: 12 is no multiple of micro 1 x dp 8",
            ),
            (
                {BASE: OWN[BASE] + "turbo_sync_free_moe_stage: 2\nuse_turbo_grouped_gemm: false\n"},
                "",
                BASE
                + ":10: use_turbo_grouped_gemm: false does not go with turbo_sync_free_moe_stage "
                "2 (%s:9)" % BASE,
            ),
            # longer than what is kept of it
            (
                {"low.yaml": "extends: %sgone.yaml\n" % ("deep/" * 600)},
                "",
                "low.yaml:1: extends: deep/deep/",
            ),
            (
                {},
                "checkpoint: {dir: %s/ck, every: 1}\n" % own.dir.name,
                "cannot be met: exp_name is 'e' at low.yaml:3, and the engine would save to",
            ),
        ):
            for path, content in {**OWN, **files, **change}.items():
                own.write(path, content)
            job = submit_unread(c, AWAY % own.dir.name + more)
            seen = c.wait_state(job, ("completed", "failed"))
            need(
                seen["state"] == "failed"
                and seen["attempt"] == 1
                and reason in seen["reason"]
                and "config on node-0" in seen["reason"],
                "%s: %s" % (reason, seen),
            )
            why = c.json("why", job)
            need(any(reason in line for r in why["reasons"] for line in r["evidence"]), why)
            need(
                not [n for n in os.listdir(own.dir.name) if n.startswith("ran.")], "a rank has run"
            )
        for path, content in {
            **OWN,
            **files,
            "e.yaml": OWN["e.yaml"] + "      train_iters: 3\n",
            BASE: OWN[BASE] + "num_layers: 5\n",
            "primus/configs/models/megatron/small.yaml": "seq_length: 128\n",
        }.items():
            own.write(path, content)
        job = submit_unread(c, AWAY % own.dir.name)
        equal(c.wait_state(job, ("completed", "failed"))["state"], "completed", "a warning")
        told = events_of(c, job, "config.warning")
        need(
            told
            and told[0]["data"]["node"] == "node-0"
            and BASE + ":9: num_layers: 5 does not go with" in told[0]["data"]["text"],
            told,
        )
        eve = seen_by(
            c,
            c.json("token", "create", "--role", "user", "--user", "eve")["token"],
            job,
            "/events",
            "/why",
            "/report",
            "",
        )
        need(
            "config.warning" in eve and "num_layers" not in eve and BASE not in eve,
            "another user reads the files: %s" % eve,
        )


@suite.test
def a_node_judges_a_toml():
    """A TOML that the submit did not read is judged where it lies: what the submit would have
    refused ends the attempt before a rank runs."""
    with tempfile.TemporaryDirectory() as d, Cluster(nodes=1, gpus_per_node=8) as c:
        program, ran = os.path.join(d, "python"), os.path.join(d, "ran")
        with open(program, "w") as f:
            f.write("#!/bin/sh\n: >%s\n" % ran)
        os.chmod(program, 0o755)
        recipe = (
            "recipe: 1\nname: t\nengine: {kind: torchtitan, workdir: %s, python: %s, args: "
            "{job.config_file: t.toml}}\ncluster: {gpus: 8}\n" % (d, program)
        )
        for toml, reason in (
            (
                "training.batch_size = 2\n",
                "t.toml:1: training.batch_size: torchtitan v0.2.2 (2026-02-20) has no such key, "
                "and refuses the file",
            ),
            (
                "parallelism.pipeline_parallel_degree = 2\ntraining.global_batch_size = 48\n",
                "t.toml:2: training.global_batch_size: batch.global: 48 does not divide by "
                "training.local_batch_size 8 x dp 4",
            ),
            ("training.steps = 2\n", None),
        ):
            with open(os.path.join(d, "t.toml"), "w") as f:
                f.write(toml)
            job = submit_unread(c, recipe)
            seen = c.wait_state(job, ("completed", "failed"))
            need(os.path.exists(ran) != bool(reason), "%s: %s" % (toml, seen))
            if reason:
                need(
                    seen["state"] == "failed"
                    and reason in seen["reason"]
                    and "configuration on node-0" in seen["reason"],
                    seen,
                )


@suite.test
def the_job_is_what_its_node_read():
    """Steps, sizes and the plan of a recipe that leaves them out are those of the files on the
    node."""
    files = {
        "primus/cli/main.py": TRACE,
        "n": "3",
        "e.yaml": OWN["e.yaml"].replace("PP:2", "PP:1") + "      train_iters: 3\n",
    }
    with Own(**files) as own, Cluster(nodes=2, gpus_per_node=4) as c:
        job = submit_unread(c, AWAY % own.dir.name)
        seen = c.wait_state(job, ("completed", "failed"))
        equal((seen["state"], seen["steps"], seen["iteration"]), ("completed", 3, 3), seen)
        ranks = c.json("ranks", job)["items"]
        equal(
            [r["coords"]["ep"] for r in ranks],
            [0, 1, 2, 3, 0, 1, 2, 3],
            "the mesh of the file: %s" % ranks,
        )
        read = events_of(c, job, "config.read")
        equal([(e["node"], e["data"]["steps"]) for e in read], [("node-0", 3)], read)
        own.write(
            "low.yaml", OWN["low.yaml"].replace("exp_name: e", "exp_name: ${PRIMUS_EXP_NAME:e}")
        )
        job = submit_unread(
            c, AWAY % own.dir.name + "checkpoint: {dir: %s/ck, every: 5}\n" % own.dir.name
        )
        equal(c.wait_state(job, ("completed", "failed"))["state"], "completed", "with a directory")
        told = [e["data"]["text"] for e in events_of(c, job, "config.warning")]
        need(
            any("checkpoint.every: 5 iterations are more than the job's 3: " in t for t in told),
            told,
        )
        own.write("n", "2")
        job = submit_unread(c, AWAY % own.dir.name)
        seen = c.wait_state(job, ("completed", "failed"))
        need(seen["state"] == "failed" and "ended early at 2 of 3" in seen["reason"], seen)


@suite.test
def its_plan_is_that_of_the_files():
    """The plan that the run is set against is the one that a submit beside the files would have
    made; what cannot fit is refused."""
    files = {
        "primus/cli/main.py": TRACE,
        "n": "3",
        "e.yaml": OWN["e.yaml"].replace("PP:2", "PP:1")
        + "      train_iters: 3\n      bf16: true\n",
    }
    with Own(steps="", **files) as own, tempfile.TemporaryDirectory() as d:
        root = os.path.join(d, "root")
        machine.make("mi355x", root, faults=[], cores=4)
        with Cluster(
            os.path.join(d, "cluster"), nodes=1, gpus_per_node=8, extra=["--topology", root]
        ) as c:
            text = (AWAY % own.dir.name).replace("gpus: 8", "gpus: 8, gpu: mi355x")
            beside, away = c.submit(text), submit_unread(c, text)
            plans = [
                c.wait_state(job, ("completed", "failed"))["plan"]["planned"]
                for job in (beside, away)
            ]
            need(plans[0]["step_time_s"] and plans[0] == plans[1], plans)
            own.write(
                "primus/configs/models/megatron/small.yaml",
                OWN["primus/configs/models/megatron/small.yaml"]
                .replace("hidden_size: 64", "hidden_size: 65536")
                .replace("ffn_hidden_size: 128", "ffn_hidden_size: 655360"),
            )
            away = submit_unread(c, text)
            seen = c.wait_state(away, ("completed", "failed"))
            need(
                seen["state"] == "failed"
                and "the engine's configuration on node-0; it said: " in seen["reason"]
                and "does not fit" in seen["reason"],
                seen,
            )


@suite.test
def two_trees_are_reported():
    """The submit read one tree, and the node has another: what the node has is what counts, and
    that is said."""
    files = {
        "primus/cli/main.py": TRACE,
        "n": "3",
        "e.yaml": OWN["e.yaml"].replace("PP:2", "PP:1") + "      train_iters: 3\n",
    }
    with Own(steps="", **files) as own, Cluster(nodes=1, gpus_per_node=8) as c:
        c.run("drain", "node-0", "--reason", "t")
        jobs = [c.submit(open(own.path).read())]
        doc = c.json("explain", "config", jobs[0])
        own.write("e.yaml", files["e.yaml"].replace("train_iters: 3", "train_iters: 2"))
        own.write("n", "2")
        jobs.append(submit_unread(c, AWAY % own.dir.name))
        c.run("undrain", "node-0")
        seen = [c.wait_state(job, ("completed", "failed")) for job in jobs]
        equal([(s["state"], s["steps"]) for s in seen], [("completed", 2)] * 2, seen)
        told = events_of(c, jobs[0], "config.differs")
        equal(
            [(e["node"], e["data"]["node"], e["data"]["submit"]) for e in told],
            [("node-0", "node-0", doc["hash"])],
            told,
        )
        need(told[0]["data"]["hash"] not in (doc["hash"], None), told)
        equal(events_of(c, jobs[1], "config.differs"), [], "one tree")
        now = c.json("explain", "config", jobs[0])
        equal(
            (now["hash"], now["read"]),
            (
                told[0]["data"]["hash"],
                {"node": "node-0", "hash": now["hash"], "submit": doc["hash"], "differs": True},
            ),
            now,
        )
        equal(
            c.json("explain", "config", jobs[1])["read"],
            {"node": "node-0", "hash": now["hash"], "submit": None, "differs": False},
            "one tree",
        )
        same = c.submit(open(own.path).read())
        equal(
            c.wait_state(same, ("completed", "failed"))["state"],
            "completed",
            "one tree, read at both places",
        )
        read = c.json("explain", "config", same)["read"]
        equal(
            (read["differs"], read["submit"], events_of(c, same, "config.differs")),
            (False, read["hash"], []),
            read,
        )
        equal(
            doc["read"],
            {"node": None, "hash": None, "submit": doc["hash"], "differs": False},
            "before any node did",
        )
        # to people as well
        for job, words in ((jobs[0], True), (jobs[1], False)):
            equal(
                "the engine's files on node-0 are not those that the submit read"
                in c.run("why", job).stdout,
                words,
                "why",
            )
            equal(
                "the files on node-0 (%s) are not those" % now["hash"]
                in c.run("explain", "config", job, "--key", "lr").stderr,
                words,
                "explain config",
            )


@suite.test
def two_jobs_share_no_directory_of_a_file():
    """A file that fixes the names decides where the engine saves: the second job that would save
    there is ended at its start."""
    fixed = "work_group: w\nuser_name: u\nexp_name: e\nworkspace: ./o\n"
    files = {
        "primus/cli/main.py": "import time\nwhile True: time.sleep(1)\n",
        "low.yaml": fixed,
        "e.yaml": OWN["e.yaml"].replace("PP:2", "PP:1") + "      train_iters: 3\n",
    }
    saves = {**files, "e.yaml": files["e.yaml"] + "      save: ./anywhere\n"}
    with Own(**files) as own, Cluster(nodes=2, gpus_per_node=8) as c:
        # without `save`, as the vendor's files are, nothing is saved there, and nobody's
        # checkpoints are in danger
        jobs = [submit_unread(c, AWAY % own.dir.name) for _ in range(2)]
        for job in jobs:
            wait_until(lambda: events_of(c, job, "config.read"), 60, "%s is judged" % job)
        equal(
            [c.wait_state(job, ("running", "failed"))["state"] for job in jobs],
            ["running"] * 2,
            "two jobs that save nothing",
        )
    with Own(**saves) as own, Cluster(nodes=2, gpus_per_node=8) as c:
        first = submit_unread(c, AWAY % own.dir.name)
        wait_until(lambda: events_of(c, first, "config.read"), 60, "the first is judged")
        second = submit_unread(c, AWAY % own.dir.name)
        seen = c.wait_state(second, ("completed", "failed"))
        need(
            seen["state"] == "failed"
            and "low.yaml:3: exp_name: the engine saves to %s/o/w/u/e/checkpoints, which is that "
            "of %s" % (own.dir.name, first) in seen["reason"],
            seen,
        )
        equal(c.job(first)["state"], "running", "the first one")
        c.run("cancel", first, "--now")
        c.wait_state(first, "cancelled")


def own_lr():
    return (
        "lr = 1e-05    primus/configs/modules/megatron/pre.yaml:3\n"
        "    instead of 2e-05    primus/configs/modules/megatron/base.yaml:8\n"
    )


# What the other engines read, each in its way.
FILES = {
    "ds.json": '{\n  "train_batch_size": 64,\n  "zero_optimization": {"stage": 2},\n'
    '  "optimizer": {"params": {"lr": 1e-5}}\n}\n',
    "base.yml": 'model_name: "default"\nsteps: 150_001\nlearning_rate: 3.e-5\nbase_emb_dim: 2048\n',
    "my.yml": 'base_config: "base.yml"\nmodel_name: "m1"\nsteps: 20\n',
    "models/m1.yml": "base_emb_dim: 4096\n",
    "t.toml": "[training]\nsteps = 1_000\nlr = 8e-4\n[model]\nflavor = 'a'\n",
}
OTHERS = [
    (
        "deepspeed",
        "entry: t.py, args: {deepspeed_config: ds.json, lr: 0.1}",
        {
            "zero_optimization.stage": (2, {"file": "ds.json", "line": 3}, []),
            "optimizer.params.lr": (1e-5, {"file": "ds.json", "line": 4}, []),
            "--lr": (0.1, {"recipe": "engine.args.lr"}, []),
        },
    ),
    (
        "maxtext",
        "entry: my.yml",
        {
            "steps": (50, {"recipe": "steps"}, [20, 150001]),
            "base_emb_dim": (4096, {"file": "models/m1.yml", "line": 1}, [2048]),
            "model_name": ("m1", {"file": "my.yml", "line": 2}, ["default"]),
            "learning_rate": (3e-5, {"file": "base.yml", "line": 3}, []),
        },
    ),
    (
        "megatron-lm",
        "args: {data-path: a, lr: 1e-5}",
        {
            "lr": (1e-5, {"recipe": "engine.args.lr"}, []),
            "train_iters": (50, {"recipe": "steps"}, []),
            "log_interval": (
                1,
                {"moectl": "a word that engine megatron-lm adds to every command"},
                [],
            ),
        },
    ),
    (
        "torchtitan",
        "args: {job.config_file: t.toml}",
        {
            "training.steps": (50, {"recipe": "steps"}, [1000]),
            "training.lr": (8e-4, {"file": "t.toml", "line": 3}, []),
            "model.flavor": ("a", {"file": "t.toml", "line": 5}, []),
            "job.config_file": ("t.toml", {"recipe": "engine.args.job.config_file"}, []),
        },
    ),
    (
        "torchtitan",
        "args: {module: llama3, config: llama3_8b}",
        {
            "module": ("llama3", {"recipe": "engine.args.module"}, []),
            "training.steps": (50, {"recipe": "steps"}, []),
        },
    ),
]


@suite.test
def other_engines_files_and_words():
    env = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
    with tempfile.TemporaryDirectory() as d, Cluster(nodes=1, gpus_per_node=8) as c:
        os.makedirs(os.path.join(d, "models"))
        for path, text in FILES.items():
            with open(os.path.join(d, path), "w") as f:
                f.write(text)
        for kind, engine, expected in OTHERS:
            recipe = os.path.join(d, "r.yaml")
            with open(recipe, "w") as f:
                f.write(
                    "recipe: 1\nname: o-%s\nengine: {kind: %s, workdir: %s, %s}\n"
                    "cluster: {gpus: 8}\nsteps: 50\n" % (kind, kind, d, engine)
                )
            doc = json.loads(moectl("explain", "config", recipe, "--json", env=env).stdout)
            items = {i["key"]: i for i in doc["items"]}
            for key, (value, source, over) in expected.items():
                got = items[key]
                need(
                    same(got["value"], value)
                    and got["source"] == source
                    and [o["value"] for o in got["overrides"]] == over,
                    "%s: %s" % (kind, got),
                )
            need("default" in doc["defaults"] and not doc["unread"], doc["defaults"])
            r = moectl("explain", "config", recipe, "--key", "nothing.such", env=env, check=False)
            equal(r.returncode, 5, kind)
            # the same by the record of a job, which ends at once: there is no such program
            job = json.loads(c.run("submit", recipe, "--json").stdout)["id"]
            of_job = {i["key"]: i for i in c.json("explain", "config", job)["items"]}
            for key in expected:
                equal(of_job[key], items[key], "%s of the job" % kind)
            c.wait_state(job, ("completed", "failed"))
        # a file that is not here is said; one that is wrong, with its line
        with open(recipe, "w") as f:
            f.write(
                "recipe: 1\nname: d\nengine: {kind: deepspeed, workdir: %s, entry: t.py, args: "
                "{deepspeed_config: gone.json}}\ncluster: {gpus: 8}\n" % d
            )
        r = moectl("explain", "config", recipe, env=env)
        need("not read: gone.json: no such file" in r.stderr, r.stderr)
        for name, text, line in (
            ("ds.json", '{\n "a": 1,\n "b": yes\n}\n', "ds.json:3: 'yes' is no value of JSON"),
            ("ds.json", '{"a": [1,\n', "ds.json:"),
            ("ds.json", "[1]\n", "ds.json:1: no mapping"),
            ("ds.json", "#" * (1 << 20), "ds.json:1: larger than 256 kB"),
            ("ds.json", '{"a": "\x07"}', "ds.json:1:"),
        ):
            with open(os.path.join(d, name), "w") as f:
                f.write(text)
            r = moectl(
                "explain",
                "config",
                recipe,
                "--set",
                "engine.args.deepspeed_config=ds.json",
                env=env,
                check=False,
            )
            need(
                r.returncode == 2
                and line in r.stderr
                and not [l for l in r.stderr.splitlines() if len(l) > 400],
                "%s: %s" % (text[:40], r.stderr),
            )


FIELDS = dict(
    l.split()
    for l in open(os.path.join(ROOT, "tests/fixtures/engines/torchtitan/v0.2.2.keys"))
    if l[0] != "#"
)
TOMLS = [
    l.rstrip("\n").split(": ")
    for l in open(os.path.join(ROOT, "tests/fixtures/engines/torchtitan/v0.2.2.tomls"))
    if l[0] != "#"
]
VALUES = {"bool": "false", "int": "1", "float": "0.5", "list": '["a"]', "text": '"a"'}
SAID = {
    "model.name": '"llama3"',
    "model.flavor": '"8B"',
    "activation_checkpoint.mode": '"full"',
    "parallelism.pipeline_parallel_schedule": '"1F1B"',
    "training.mixed_precision_param": '"bfloat16"',
    "training.seq_len": "4096",
    "training.steps": "20",
    "parallelism.data_parallel_shard_degree": "-1",
    "checkpoint.async_mode": '"disabled"',
    "checkpoint.export_dtype": '"float32"',
    "lr_scheduler.decay_type": '"linear"',
    "optimizer.name": '"AdamW"',
    "parallelism.fsdp_reshard_after_forward": '"default"',
    "compile.components": '["model"]',
    "model.converters": "[]",
    "model.hf_assets_path": '"."',
    "model.tokenizer_path": '"."',
    "training.dataset_path": '"."',
    "validation.dataset_path": '"."',
}


@suite.test
def the_tomls_of_torchtitan_are_told_nothing_wrong():
    """A TOML with the keys of each of v0.2.2's own, and values of their types: valid without a
    word, in the plan as it will run, and the command leaves to it what it says."""
    env = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
    with tempfile.TemporaryDirectory() as d:
        path, recipe = os.path.join(d, "t.toml"), os.path.join(d, "r.yaml")
        with open(recipe, "w") as f:
            f.write(
                "recipe: 1\nname: t\nengine: {kind: torchtitan, workdir: %s, args: "
                "{job.config_file: t.toml}}\ncluster: {gpus: 8, gpu: h100}\n" % d
            )

        def write(keys):
            with open(path, "w") as f:
                f.write(
                    "".join(
                        "%s = %s\n" % (k, SAID.get(k, VALUES[FIELDS.get(k, "int")])) for k in keys
                    )
                )

        need(len(TOMLS) > 15, "TOMLs")
        for name, keys in TOMLS:
            keys = keys.split()
            own = [k for k in keys if k not in FIELDS]
            need(not own or "job.custom_config_module" in keys, name)
            write(keys)
            r = moectl("validate", recipe, env=env)
            equal(
                (r.stdout, r.stderr),
                ("r.yaml: valid: t, 8 ranks, engine torchtitan\n".replace("r.yaml", recipe), ""),
                name,
            )
            plan = json.loads(moectl("plan", recipe, "--json", env=env).stdout)["plans"][0]
            equal(
                (plan["batch"], plan["recompute"]),
                (
                    {"micro": 1, "global": 8, "seq": 4096}
                    if "training.seq_len" in keys
                    else {"micro": 1, "global": 8, "seq": 2048},
                    "full",
                ),
                name,
            )
            argv = json.loads(moectl("submit", "--dry-run", "--json", recipe, env=env).stdout)[
                "ranks"
            ][0]["argv"]
            equal(
                argv[1:],
                [
                    "-m",
                    "torchtitan.train",
                    "--job.config_file",
                    "t.toml",
                    "--metrics.log_freq",
                    "1",
                    "--metrics.disable_color_printing",
                ],
                name,
            )
        # a key that this version refuses is named, with its line; the module of the user's own may
        # bring it
        write(["training.steps", "training.batch_size"])
        r = moectl("validate", recipe, env=env, check=False)
        equal(
            (r.returncode, r.stdout, r.stderr),
            (
                2,
                "",
                "moectl: t.toml:2: training.batch_size: torchtitan v0.2.2 (2026-02-20) has no "
                "such key, and refuses the file: "
                "use training.local_batch_size, or batch.micro; engine.args_unchecked: [KEY] lets "
                "it pass\n",
            ),
            "an old key",
        )
        write(["job.custom_config_module", "training.steps", "training.batch_size"])
        equal(moectl("validate", recipe, env=env).stderr, "", "a module of the user's own")


@suite.test
def a_batch_reaches_torchtitan_in_its_version_s_words():
    env = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")
        for file, args, has, note in (
            (
                "config/job_config.py",
                "job.config_file: t.toml",
                "--training.seq_len 128 --parallelism.pipeline_parallel_microbatch_size 2 "
                "--training.global_batch_size 64 --training.local_batch_size 2 ",
                "",
            ),
            (
                "config_manager.py",
                "job.config_file: t.toml",
                "--checkpoint.enable_checkpoint ",
                "taken as engine.kind torchtitan-0.1",
            ),
            (
                "config/configurable.py",
                "training.max_norm: 1",
                "--training.num_tokens_per_train_step 8192 ",
                "taken as engine.kind torchtitan-dev",
            ),
            (
                "config/configurable.py",
                "module: a, config: b",
                "--training.num_tokens_per_train_step 8192 ",
                "",
            ),
        ):
            shutil.rmtree(os.path.join(d, "torchtitan"), ignore_errors=True)
            os.makedirs(os.path.dirname(os.path.join(d, "torchtitan", file)))
            open(os.path.join(d, "torchtitan", file), "w").close()
            with open(os.path.join(d, "t.toml"), "w") as f:
                f.write("[training]\nlocal_batch_size = 4\n")
            with open(recipe, "w") as f:
                f.write(
                    "recipe: 1\nname: t\nengine: {kind: torchtitan, workdir: %s, args: {%s}}\n"
                    "cluster: {gpus: 8}\nbatch: {seq: 128, micro: 2, global: 64}\n"
                    "parallelism: {sharding: zero3}\ncheckpoint: {dir: %s/c}\nsteps: 9\n"
                    % (d, args, d)
                )
            r = moectl("submit", "--dry-run", "--json", recipe, env=env)
            argv = " ".join(json.loads(r.stdout)["ranks"][0]["argv"])
            need(has in argv, "%s: %s" % (file, argv))
            need(note in r.stderr and (note or "taken as" not in r.stderr), r.stderr)


@suite.test
def a_micro_batch_of_the_recipe_makes_the_step():
    """A TOML without global_batch_size: a step is the recipe's micro-batch on every rank."""
    env = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")
        with open(os.path.join(d, "t.toml"), "w") as f:
            f.write(
                '[model]\nname = "llama3"\nflavor = "8B"\n'
                '[training]\nseq_len = 128\nlocal_batch_size = 3\n'
            )
        with open(recipe, "w") as f:
            f.write(
                "recipe: 1\nname: t\ncluster: {gpus: 8, gpu: h100}\nsteps: 5\n"
                "engine: {kind: torchtitan, workdir: %s, args: {job.config_file: t.toml}}\n" % d
            )
        for sets, want in (
            (("batch.micro=2",), 16),
            (("batch.micro=4",), 32),
            ((), 24),
            (("batch.micro=4", "parallelism.tp=2"), 16),
        ):
            words = [w for s in sets for w in ("--set", s)]
            r = moectl("plan", "--json", recipe, *words, env=env, check=False)
            need(r.returncode == 0, "%s: %s" % (sets, r.stderr))
            equal(json.loads(r.stdout)["plans"][0]["batch"]["global"], want, sets)
            said = moectl("validate", recipe, *words, env=env).stderr
            note = "training.local_batch_size 3 -> %s" % sets[0][-1] if sets else ""
            need(note in said and (note or "->" not in said), said)
        r = moectl(
            "validate",
            recipe,
            "--set",
            "batch.micro=2",
            "--set",
            "parallelism.pp=2",
            env=env,
            check=False,
        )
        said = "t.toml:6: training.local_batch_size: batch.global: 12 is no multiple of micro 2 x"
        need(r.returncode == 2 and said in r.stderr, "a pipeline cuts what is there: " + r.stderr)


@suite.test
def data_parallel_degrees_of_torchtitan_are_the_gpus():
    """Replicas x shards x the other sizes: what torchtitan ends for is an error at its line."""

    def refused(r, said):
        need(r.returncode == (2 if said else 0) and said in r.stderr, "%r: %s" % (said, r.stderr))

    env = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")
        text = (
            "recipe: 1\nname: t\ncluster: {gpus: 8}\nsteps: 5\n"
            "engine: {kind: %s, workdir: %s, args: {job.config_file: t.toml}}\n"
        )
        key = "parallelism.data_parallel_"
        four = (
            "t.toml:2: " + key + "shard_degree: replicas 1 x shards 4 x tp 1 x pp 1 x cp 1 is "
            "not cluster.gpus 8; use -1 or 8"
        )
        for kind in ("torchtitan", "torchtitan-0.1"):
            with open(recipe, "w") as f:
                f.write(text % (kind, d))
            for shards, replicas, tp, sets, said in (
                (4, 1, 1, "", four),
                (8, 1, 1, "", ""),
                (-1, 1, 1, "", ""),
                (4, 2, 1, "", ""),
                (4, 1, 2, "", ""),
                (4, 1, 1, "parallelism.tp=2", ""),
                (4, 1, 1, "parallelism.sharding=zero3", ""),
                (4, 1, 1, "parallelism=auto", ""),
                (4, 1, 1, "engine.args_unchecked=[" + key + "shard_degree]", ""),
                (-1, 3, 1, "", "t.toml:3: " + key + "replicate_degree: replicas 3 x tp 1"),
                (-1, 2, 1, "", ""),
                (2, 2, 1, "", "shards 2 x tp 1 x pp 1 x cp 1 is not"),
                (2, 2, 1, "", "use -1 or 4"),
                (8, 1, 2, "", "use -1 or 4"),
            ):
                with open(os.path.join(d, "t.toml"), "w") as f:
                    f.write(
                        "[parallelism]\ndata_parallel_shard_degree = %d\n"
                        "data_parallel_replicate_degree = %d\ntensor_parallel_degree = %d\n"
                        % (shards, replicas, tp)
                    )
                words = ("--set", sets) if sets else ()
                refused(moectl("validate", recipe, *words, env=env, check=False), said)
    (base,) = [name for name in TITAN if name.endswith("pre.yaml")]
    text = TITAN[base].replace("shard_degree: -1", "shard_degree: 4")
    for tree, said in ((TITAN, ""), ({**TITAN, base: text}, "shards 4 x tp 1 x pp 1 x cp 1 is")):
        with Own(**tree) as own:
            recipe = (OWN_RECIPE % own.dir.name).replace("primus-megatron", "primus-torchtitan")
            own.write("r.yaml", recipe + own.recipe)
            status, told = own.validate()
            need(status == (2 if said else 0) and said in told, told)


@suite.test
def a_pipeline_of_torchtitan_is_planned_as_it_runs():
    """What a rank takes at once goes through the pipeline as local_batch_size / microbatch_size
    micro-batches, as often as a step needs it; a micro-batch of the recipe makes that one pass."""
    env = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "r.yaml")
        with open(recipe, "w") as f:
            f.write(
                "recipe: 1\nname: t\nengine: {kind: torchtitan, workdir: %s, args: "
                "{job.config_file: t.toml}}\ncluster: {gpus: 8, gpu: h200}\n" % d
            )

        def plan(local, micro, step, *sets):
            with open(os.path.join(d, "t.toml"), "w") as f:
                f.write(
                    '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 8192\n'
                    'local_batch_size = %d\nglobal_batch_size = %d\n'
                    '[parallelism]\npipeline_parallel_degree = 4\n'
                    'pipeline_parallel_microbatch_size = %d\n' % (local, step, micro)
                )
            return moectl("plan", recipe, "--json", *sets, env=env, check=False)

        for local, micro, step, sets, batches in (
            (8, 2, 64, (), 4),
            (32, 2, 64, (), 16),
            (8, 1, 16, (), 8),
            (8, 1, -1, (), 8),
            (8, 2, 64, ("--set", "batch.micro=2"), 16),
        ):
            p = json.loads(plan(local, micro, step, *sets).stdout)["plans"][0]
            need(
                abs(p["bubble"] - 3 / (batches + 3)) < 1e-9 and p["batch"]["micro"] == micro,
                "%s: %s" % ((local, micro, step), p),
            )
        for local, micro, step, said in (
            (
                3,
                2,
                64,
                "training.local_batch_size: 3 does not divide by the micro-batch of the pipeline, "
                "2",
            ),
            (24, 2, 64, "batch.global: 64 does not divide by training.local_batch_size 24 x dp 2"),
        ):
            r = plan(local, micro, step)
            need(r.returncode == 2 and said in r.stderr, r.stderr)


@suite.test
def maxtext_takes_variables():
    """M_STEPS in a rank's environment says the key too, of the type of the file's value, above the
    files and never beside the command; sizes of the files do not stand where the recipe is
    silent."""
    env = clean_env(MOE_URL="unix:/nonexistent/moed.sock", M_BASE_EMB_DIM="1")
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "r.yaml")
        for name, text in (
            (
                "base.yml",
                "learning_rate: 3.e-5\nbase_emb_dim: 2048\nrun: 'a'\nscan_layers: true\n"
                "ici_tensor_parallelism: -1\nici_expert_parallelism: 1\n",
            ),
            (
                "r.yaml",
                "recipe: 1\nname: m\nengine: {kind: maxtext, workdir: %s, entry: base.yml}\n"
                "cluster: {gpus: 8}\nsteps: 50\n"
                "env: {M_LEARNING_RATE: 1.0e-3, M_RUN: 7, M_SCAN_LAYERS: false, M_NEW: 1}\n" % d,
            ),
        ):
            with open(os.path.join(d, name), "w") as f:
                f.write(text)
        r = moectl("explain", "config", path, "--json", env=env)
        items = {i["key"]: i for i in json.loads(r.stdout)["items"]}
        for key, value, over in (
            ("learning_rate", 1e-3, 3e-5),
            ("run", "7", "a"),
            ("scan_layers", False, True),
        ):
            got = items[key]
            need(
                same(got["value"], value)
                and got["variable"] == "M_" + key.upper()
                and got["source"]["file"] == "base.yml"
                and [o["value"] for o in got["overrides"]] == [over],
                got,
            )
        need(
            items["base_emb_dim"]["value"] == 2048 and "new" not in items,
            "variables of this shell, and keys that no file has",
        )
        said = (
            "base.yml:5: ici_tensor_parallelism -1 does not count, the command says 1: "
            "parallelism.tp is what moectl takes where the recipe says nothing; give it in the "
            "recipe"
        )
        r = moectl("validate", path, env=env)
        need(said in r.stderr and "ici_expert" not in r.stderr, r.stderr)
        need(
            "does not count"
            not in moectl("validate", path, "--set", "parallelism.tp=2", env=env).stderr,
            "the recipe says it",
        )
        r = moectl("validate", path, "--set", "env.M_STEPS=9", env=env)
        need(
            "M_STEPS is in the environment, and the command gives steps: the engine ends where "
            "both say a key" in r.stderr,
            r.stderr,
        )


@suite.test
def toml():
    """By the whole verb: values, places, and every way to be wrong with its line."""
    env = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
    with tempfile.TemporaryDirectory() as d:
        recipe, path = os.path.join(d, "r.yaml"), os.path.join(d, "t.toml")
        with open(recipe, "w") as f:
            f.write(
                "recipe: 1\nname: t\nengine: {kind: torchtitan, workdir: %s, args: "
                "{job.config_file: t.toml}}\n"
                "cluster: {gpus: 8}\nsteps: 5\n" % d
            )

        def explain(text):
            with open(path, "w", newline="") as f:
                f.write(text)
            return moectl("explain", "config", recipe, "--json", env=env, check=False)

        for text, key, value in (
            ('a = "x\\u00e9\\n\\"q\\""\n', "a", 'x\xe9\n"q"'),
            ("a = '''\nl1\nl2'''\n", "a", "l1\nl2"),
            ('a = """x \\\n   y"""\n', "a", "x y"),
            ("a = 0xff\r\n", "a", 255),
            ("a = 0o17", "a", 15),
            ("a = -1_000", "a", -1000),
            ("a = +0.5", "a", 0.5),
            ("a = 1e3", "a", 1000.0),
            ("a = true # c", "a", True),
            ("a = 1979-05-27", "a", "1979-05-27"),
            ("[a.b]\nc.d = 1\n", "a.b.c.d", 1),
            ('[a]\n"x y" = 1\n', "a.x y", 1),
            ("a = [ 1, # c\n 2,\n]", "a", [1, 2]),
            ("a = {b = [{c = 1}]}", "a.b", [{"c": 1}]),
            (
                "[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nd = 3\n",
                "a",
                [{"b": 1}, {"b": 2, "c": {"d": 3}}],
            ),
            ("a = {}\n", "a", {}),
        ):
            r = explain(text)
            need(r.returncode == 0, "%r: %s" % (text, r.stderr))
            items = {i["key"]: i["value"] for i in json.loads(r.stdout)["items"]}
            need(
                key in items and same(items[key], value),
                "%r: %s" % (text, {k: v for k, v in items.items() if k.startswith("a")}),
            )
        for text, said in (
            ("a = 1\na = 2\n", "t.toml:2: 'a' is given twice"),
            ("a = yes\n", "t.toml:1: 'yes' is no value of TOML"),
            ("\n[a\n", "t.toml:2: expected ] behind"),
            ("a\n", "t.toml:1: expected ="),
            ('a = "x\n', "t.toml:1: a text without its closing quote"),
            ("a = [1 2]\n", "t.toml:1: expected , or ]"),
            ("= 1\n", "t.toml:1: expected a key"),
            ("a = 1 b = 2\n", "t.toml:1: expected the end of the line"),
            ('a = "\\q"\n', "t.toml:1: an unknown escape"),
            ("a = 1\n[a]\n", "t.toml:2: 'a' is something else already"),
            ("a = " + "[" * 100, "t.toml:1: more than"),
            ("a = 010\n", "t.toml:1: '010' is no value"),
            ("a = {b = 1,\n", "t.toml:1:"),
            ('a = "\\ud800"\n', "t.toml:1: an escape that is no character"),
            ("a = 1\nb = [\n", "t.toml:3:"),
        ):
            r = explain(text)
            need(
                r.returncode == 2 and said in r.stderr, "%r: %d %s" % (text, r.returncode, r.stderr)
            )


@suite.test
def files_that_are_not_there():
    """A file that the configuration names is looked for where the recipe is checked, and where the
    ranks will run, behind the preparation; there no rank starts without it."""
    toml = '[model]\nhf_assets_path = "./tokenizer"\n[training]\ndataset_path = "hub/name"\n'
    data = {
        "e.yaml": OWN["e.yaml"] + "      train_iters: 3\n      tokenizer_model: hub/name\n"
        "      train_data_path: 0.5 ${DATA:none/a} 0.5 ./b\n",
        "primus/cli/main.py": PROGRAM,
        "b.idx": "",
        "prepare.sh": "exit 0\n",
        "low.yaml": FREE,
    }
    with Own("checkpoint: {dir: /ckpt/x}\n", **data) as own:
        top = own.dir.name
        titan = own.write(
            "titan.yaml",
            "recipe: 1\nname: titan\nengine:\n  kind: torchtitan\n  workdir: %s\n  args:\n"
            "    job.config_file: t.toml\n  args_unchecked: [job.config_file]\n"
            "cluster: {gpus: 2}\nsteps: 5\n" % top,
        )
        mine = own.write(
            "mine.yaml",
            OWN_RECIPE.replace("entry: e.yaml", "entry: e.yaml, prepare: sh prepare.sh") % top,
        )

        def warned(path, *args):
            r = moectl(
                "validate", path, *args, env=clean_env(MOE_URL="unix:/nonexistent/moed.sock")
            )
            return [
                line.replace(top, "W").split(": no such file here")[0]
                for line in r.stderr.split("\n")
                if "no such file here" in line
            ]

        equal(
            warned(titan),
            ["W/titan.yaml:7:22: warning: job.config_file: t.toml"],
            "the file itself",
        )
        equal(
            warned(titan, "--set", "engine.args.job.config_file=/nowhere/at/all"),
            [],
            "a path that only nodes may have",
        )
        equal(
            warned(titan, "--set", "engine.args.job.config_file=%s/u.toml" % top),
            ["W/titan.yaml: engine.args.job.config_file: warning: job.config_file: W/u.toml"],
            "a value that was set",
        )
        equal(
            warned(mine),
            ["e.yaml:13: warning: train_data_path: none/a"],
            "a line of the experiment",
        )
        equal(warned(mine, "--set", "engine.args.mock_data=true"), [], "mock data")
        equal(warned(mine, "--set", "engine.workdir=/nowhere"), [], "a tree that only nodes have")
        # what a tokenizer of its kind does not read need not be there
        for kind, asked in (
            ("GPT2BPETokenizer", ["vocab_file", "merge_file"]),
            ("HuggingFaceTokenizer", ["tokenizer_model"]),
            ("NullTokenizer", []),
        ):
            sets = sum(
                (
                    ["--set", "engine.args.%s=%s" % pair]
                    for pair in (
                        ("tokenizer_type", kind),
                        ("tokenizer_model", "./no-t"),
                        ("vocab_file", "no-v"),
                        ("merge_file", "no-m"),
                        ("train_data_path", "b"),
                    )
                ),
                [],
            )
            equal([line.split(": ")[-2] for line in warned(mine, *sets)], asked, kind)
        with Cluster(nodes=1, gpus_per_node=8) as c:

            def ended(path):
                job = c.run("submit", path).stdout.split()[0]
                return c.wait_state(job, ("completed", "failed"))

            seen = ended(titan)
            need(
                seen["state"] == "failed"
                and seen["attempt"] == 1
                and "the command: job.config_file: t.toml: no such file: put it there, or name "
                "another" in seen["reason"],
                seen,
            )
            own.write("t.toml", toml)
            seen = ended(titan)
            need(
                "t.toml:2: model.hf_assets_path: ./tokenizer: no such file" in seen["reason"], seen
            )
            own.write("tokenizer", "")
            need(
                "no such file" not in ended(titan)["reason"], "all is there; there is no torchtitan"
            )
            seen = ended(mine)
            need(
                seen["state"] == "failed"
                and seen["attempt"] == 1
                and "e.yaml:13: train_data_path: none/a: no such file" in seen["reason"],
                seen,
            )
            own.write("prepare.sh", "mkdir -p made && : >made/a.bin && echo env.DATA=made/a\n")
            equal(ended(mine)["state"], "completed", "the preparation made it")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
