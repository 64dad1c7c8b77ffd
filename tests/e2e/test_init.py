#!/usr/bin/python3
"""moectl init: a recipe from what people have runs the same, and what does not is named. Usage:
test_init.py [TEST...]

Over ../shared/data/primus, where it is: the recipe's configuration (moectl explain config) against
what the vendor's own loader made of the original."""
import collections
import gzip
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import MOECTL, ROOT, Suite, clean_env, equal, moectl, need

suite = Suite()
SHARED = os.path.realpath(os.path.join(ROOT, "..", "shared/data/primus"))
TREE = os.path.join(SHARED, "tree")
ENV = clean_env(MOE_URL="unix:/nonexistent/moed.sock")
FRAMEWORKS = ("megatron", "torchtitan")


def shared(test):
    if os.path.isdir(TREE):
        suite.test(test)
    return test


def same(a, b):
    if isinstance(a, bool) or isinstance(b, bool) or type(a) is str or type(b) is str:
        return type(a) is type(b) and a == b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b


def flat(merged, prefix=""):
    """As explain config has it: no maps, but empty ones."""
    out = {}
    for k, v in merged.items():
        if isinstance(v, dict) and v:
            out.update(flat(v, prefix + k + "."))
        else:
            out[prefix + k] = v
    return out


def judge(line, directory, number):
    """[] or what is wrong, how many keys, how many of them are named as different."""
    out = os.path.join(directory, "r%d.yaml" % number)
    path = os.path.join(TREE, line["file"])
    if line["cli"] or line["env"]:
        sets = ["%s=%s" % pair for pair in sorted(line["env"].items())]
        source = (
            ["--"]
            + sets
            + ["runner/primus-cli", "direct", "--", "train", "pretrain", "--config", line["file"]]
            + line["cli"]
        )
    else:
        source = [path]
    r = moectl("init", "--json", "--out", out, "--workdir", TREE, *source, env=ENV, check=False)
    name = "%s %s %s" % (line["file"], line["env"], line["cli"])
    if (
        r.returncode == 2
        and line["cli"]
        and "is refused as said above" in r.stderr
        and not os.path.exists(out)
    ):
        return [], 0, 0  # words by lot for another model: a submit refuses them too
    if r.returncode:
        return ["%s: init: %s" % (name, r.stderr.strip()[-300:])], 0, 0
    doc = json.loads(r.stdout)
    r = moectl("explain", "config", out, "--json", env=ENV, check=False)
    if r.returncode:
        return ["%s: explain config: %s" % (name, r.stderr.strip()[-300:])], 0, 0
    have, want = {i["key"]: i["value"] for i in json.loads(r.stdout)["items"]}, flat(line["merged"])
    different = {d.split(" is ")[0] for d in doc["different"]}
    named = different | {w.lstrip("-").split(" ")[0].split("=")[0] for w in doc["lost"]}
    wrong = [
        k
        for k in sorted(set(have) | set(want))
        if (k not in have or k not in want or not same(have[k], want[k])) and k not in named
    ]
    said = [k for k in different if k in have and k in want and same(have[k], want[k])]
    if (
        doc["compared"] != len(set(have) | set(want))
        or doc["same"] + len(doc["different"]) != doc["compared"]
    ):
        return (
            [
                "%s: %d keys are compared, %d there"
                % (name, doc["compared"], len(set(have) | set(want)))
            ],
            len(want),
            len(named),
        )
    return (
        (
            [
                "%s: %s"
                % (
                    name,
                    [
                        "%s: %r instead of %r" % (k, have.get(k, "nothing"), want.get(k, "nothing"))
                        for k in wrong[:4]
                    ],
                )
            ]
            if wrong
            else ["%s: named without a difference: %s" % (name, said)]
            if said
            else []
        ),
        len(want),
        len(named),
    )


@shared
def experiments_of_the_vendor():
    """Each key of each experiment is the original's, or is named."""
    with gzip.open(os.path.join(SHARED, "merged-dev.jsonl.gz"), "rt") as f:
        lines = [json.loads(line) for line in f]
    lines = [x for x in lines if "error" not in x and x["module"]["framework"] in FRAMEWORKS]
    plain, others = [x for x in lines if not x["env"] and not x["cli"]], [
        x for x in lines if x["env"] or x["cli"]
    ]
    lines = plain + others[::4]
    with tempfile.TemporaryDirectory() as d, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: judge(x[1], d, x[0]), enumerate(lines)))
    wrong = [w for f in found for w in f[0]]
    refused = sum(not f[0] and not f[1] for f in found)
    print(
        "%d of %d launches of %d experiments, %d refused by their own words, %d keys, %d of them "
        "named as different"
        % (
            len(lines) - len(wrong) - refused,
            len(lines),
            len(plain),
            refused,
            sum(f[1] for f in found),
            sum(f[2] for f in found),
        )
    )
    need(refused <= 10, "%d are refused" % refused)
    need(not wrong, "%d:\n%s" % (len(wrong), "\n".join(wrong[:20])))
    need(len(plain) > 150 and len(lines) > 180, "only %d lines" % len(lines))


@shared
def a_tree_elsewhere():
    """primus-cli by its path, called from anywhere: presets come from its tree, the experiment from
    where it is started."""
    experiment = "examples/megatron/configs/MI300X/qwen3_30B_A3B-BF16-pretrain.yaml"
    with tempfile.TemporaryDirectory() as d:
        d = os.path.realpath(d)
        tree = d + "/tree"
        os.makedirs(d + "/exp")
        for name in (experiment, "runner/primus-cli", "primus-cli", "examples/run_pretrain.sh"):
            os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
            open(os.path.join(tree, name), "w").close()
        os.symlink(TREE + "/primus", tree + "/primus")
        for path in (os.path.join(tree, experiment), d + "/exp/mine.yaml"):
            with open(os.path.join(TREE, experiment)) as f, open(path, "w") as g:
                g.write(f.read())
        trains, whole, mine = (
            ["train", "pretrain", "--config"],
            os.path.join(tree, experiment),
            d + "/exp/mine.yaml",
        )
        for words, entry in (
            (["%s/runner/primus-cli" % tree, "direct", "--"] + trains + [whole], experiment),
            (["%s/runner/primus-cli" % tree, "direct", "--"] + trains + [experiment], experiment),
            (["bash", "%s/primus-cli" % tree, "direct", "--"] + trains + ["exp/mine.yaml"], mine),
            (["primus-cli", "direct", "--"] + trains + [whole], experiment),
            (["env", "EXP=" + experiment, "bash", tree + "/examples/run_pretrain.sh"], experiment),
            (["env", "EXP=exp/mine.yaml", "bash", "tree/examples/run_pretrain.sh"], mine),
        ):
            r = subprocess.run(
                [MOECTL, "init", "--json", "--"] + words,
                cwd=d,
                env=ENV,
                capture_output=True,
                text=True,
            )
            equal(r.returncode, 0, "%s: %s" % (words, r.stderr))
            doc = json.loads(r.stdout)
            need("  workdir: %s\n  entry: %s\n" % (tree, entry) in doc["recipe"], doc["recipe"])
            need(
                any(
                    x.startswith("engine.workdir: %s, the tree that %s/" % (tree, tree))
                    and "is started in %s" % d in x
                    for x in doc["notes"]
                ),
                doc["notes"],
            )


@shared
def words_as_primus_takes_them():
    """--exp is --config; --single is one process; k=v words behind a flag are no values of it."""
    experiment = "examples/megatron/configs/MI300X/qwen3_30B_A3B-BF16-pretrain.yaml"
    with tempfile.TemporaryDirectory() as d:
        for words, gpus, named in (
            (["--exp", experiment], 8, []),
            (["--exp=" + experiment, "lr=1.0e-5"], 8, []),
            (["--config", experiment, "foo-bar=3", "--profile"], 8, []),
            (
                ["--config", experiment, "train-iters=3"],
                8,
                ["train-iters 3: Primus does not know it and drops it; train_iters is the key"],
            ),
        ):
            doc, ranks = init(
                d,
                "--workdir",
                TREE,
                "--",
                "primus-cli",
                "direct",
                "--",
                "train",
                "pretrain",
                *words,
            )
            need(
                "  entry: %s\n" % experiment in doc["recipe"] and len(ranks) == gpus, doc["recipe"]
            )
            equal([x.lstrip("-") for x in doc["lost"]], named, str(words))
            equal(
                [
                    x
                    for x in doc["different"]
                    if not x.startswith("exit_signal_handler ") and "is gone" not in x
                ],
                [],
                str(words),
            )
        r = moectl(
            "init",
            "--workdir",
            TREE,
            "--",
            "primus-cli",
            "direct",
            "--single",
            "--",
            "train",
            "pretrain",
            "--exp",
            "examples/megatron/configs/MI300X/llama3.1_8B-BF16-pretrain.yaml",
            env=ENV,
        )
        need("cluster: {gpus: 1, " in r.stdout, r.stdout)


@shared
def what_has_no_engine_is_said():
    """Frameworks without an engine, and templates: one line, nothing written."""
    seen = collections.Counter()
    for name in (
        "maxtext/configs/MI300X/llama2_7B-bf16-pretrain.yaml",
        "megatron/configs/MI355X/native_hf_to_megatron_sft.template.yaml",
    ):
        with tempfile.TemporaryDirectory() as d:
            r = moectl(
                "init",
                os.path.join(TREE, "examples", name),
                "--out",
                d + "/r.yaml",
                env=ENV,
                check=False,
            )
            if r.returncode == 0 and "maxtext" in name:
                continue  # there is one by now
            equal(
                (r.returncode, r.stderr.count("\n"), os.listdir(d)),
                (2, 1, []),
                "%s: %s" % (name, r.stderr),
            )
            seen[name] += 1
    need(seen, "nothing was refused")


MEGATRON = """#!/bin/bash
#SBATCH --nodes=2 --gpus-per-node=8
#SBATCH --job-name=mixtral --time=12:00:00
export CUDA_DEVICE_MAX_CONNECTIONS=1 HF_TOKEN=hf_secret
DISTRIBUTED_ARGS=(
    --nproc_per_node ${GPUS_PER_NODE:-"8"}
    --nnodes $SLURM_NNODES   # as Slurm has it
    --master_addr $(hostname) --max-restarts 3
)
MODEL="--num-layers 4 --hidden-size 64"
srun torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py $MODEL --seq-length 64\
 --max-position-embeddings 64 \\
    --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer --bf16 --lr\
 1.0e-4 \\
    --micro-batch-size 1 --global-batch-size 16 --train-iters 100 --save ckpt --save-interval 10\
 --load ckpt \\
    --data-path "/data/my file" --tokenizer-type ${TOKENIZER}
"""
SUBMITTED = """#!/bin/bash
#SBATCH --nodes=2 --gpus-per-node=8
cd $SLURM_SUBMIT_DIR
export NCCL_SOCKET_IFNAME=$(ip route | awk '{print $5}')
srun torchrun --nnodes=$SLURM_NNODES --nproc_per_node=8 train.py --out $SLURM_SUBMIT_DIR/out
"""
TITAN = """[job]
dump_folder = "./out"
[training]
steps = 1_000
mixed_precision_param = "bfloat16"
[parallelism]
tensor_parallel_degree = 2
data_parallel_shard_degree = -1
[checkpoint]
enable = true
folder = "ck"
interval = 10
"""


def init(directory, *words, stdin=None):
    doc = json.loads(
        moectl(
            "init",
            "--json",
            "--out",
            directory + "/r.yaml",
            "--force",
            *words,
            env=ENV,
            stdin=stdin,
        ).stdout
    )
    rank = json.loads(
        moectl("submit", "--dry-run", "--json", directory + "/r.yaml", env=ENV).stdout
    )["ranks"]
    return doc, rank


@suite.test
def a_script_of_slurm():
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/run.sh", "w") as f:
            f.write(MEGATRON)
        doc, ranks = init(d, d + "/run.sh", "--workdir", d)
        argv = " ".join(ranks[0]["argv"])
        equal(len(ranks), 16, "two nodes of eight")
        for words in (
            "--num-layers 4",
            "--hidden-size 64",
            "--seq-length 64",
            "--tensor-model-parallel-size 2",
            "--expert-tensor-parallel-size 2",
            "--lr 1.0e-4",
            "--bf16",
            "--train-iters 100",
            "--save-interval 10",
            "--save %s/ckpt" % d,
            "--data-path /data/my file",
            "--sequence-parallel",
        ):
            need(words in argv, "%s is not in %s" % (words, argv))
        equal(ranks[0]["env"]["CUDA_DEVICE_MAX_CONNECTIONS"], "1", "its environment")
        text = open(d + "/r.yaml").read()
        need("name: mixtral" in text and "time_limit: " in text and "hf_secret" not in text, text)
        lost = "\n".join(doc["lost"])
        need(
            "--load" not in lost + "\n".join(doc["different"]),
            "it loads from where it saves: %s" % doc,
        )
        for word in ("--max-restarts 3", "${TOKENIZER}", "HF_TOKEN"):
            need(word in lost and word in text, "%s is not named: %s" % (word, lost))
        need(
            any(
                x.startswith("--save %s/ckpt here instead of --save ckpt" % d)
                for x in doc["different"]
            ),
            doc["different"],
        )
        equal(doc["same"] + len(doc["different"]) <= doc["compared"], True, "figures: %s" % doc)


@suite.test
def lines_of_torchrun():
    with tempfile.TemporaryDirectory() as d:
        doc, ranks = init(
            d,
            "--workdir",
            d,
            "--",
            "OMP_NUM_THREADS=4",
            "torchrun",
            "--nnodes=2",
            "--nproc_per_node",
            "4",
            "train.py",
            "--lr",
            "1e-4",
            "--name",
            "a b",
            "-x",
            "yes",
            "no",
        )
        equal((doc["different"], doc["lost"], len(ranks)), ([], [], 8), "a script")
        equal(
            ranks[0]["argv"][1:],
            ["train.py", "--lr", "1e-4", "--name", "a b", "-x", "yes", "no"],
            "its command",
        )
        doc, ranks = init(d, "--workdir", d, "torchrun --nproc_per_node 8 train.py --lr '1e-4'")
        equal(ranks[0]["argv"][1:], ["train.py", "--lr", "1e-4"], "a line in quotes")
        doc, ranks = init(d, "--workdir", d, "--", "python3", "-m", "pkg.train", "--deep", "{x}")
        equal(
            (ranks[0]["argv"][1:], len(ranks)),
            (["-m", "pkg.train", "--deep", "{x}"], 1),
            "a module",
        )
        doc, ranks = init(
            d,
            "--workdir",
            d,
            "--",
            "torchrun",
            "--nproc_per_node=8",
            "-m",
            "torchtitan.train",
            "--module",
            "llama3",
            "--config",
            "llama3_8b",
            "--training.steps",
            "100",
            "--parallelism.tensor_parallel_degree",
            "2",
            "--checkpoint.enable",
            "--checkpoint.folder",
            "ck",
        )
        argv = " ".join(ranks[0]["argv"])
        need(
            "--parallelism.tensor_parallel_degree 2" in argv
            and "--checkpoint.folder %s/outputs/ck " % d in argv
            and "--module llama3 --config llama3_8b" in argv,
            argv,
        )
        equal(len(ranks), 8, "ranks")


@suite.test
def where_it_saves_and_loads():
    """One directory is checkpoint.dir; two are named; an interval that is proposed fits the steps,
    one that does not fit them is named."""
    with tempfile.TemporaryDirectory() as d:
        line = [
            "--workdir",
            d,
            "--",
            "torchrun",
            "--nproc_per_node",
            "2",
            "pretrain_gpt.py",
            "--lr",
            "1",
            "--train-iters",
            "40",
        ]
        doc, ranks = init(d, *line, "--save", "ck", "--load", "./ck", "--save-interval", "50")
        equal(
            (doc["lost"], [x for x in doc["different"] if "--load" in x]),
            ([], []),
            "it loads from where it saves",
        )
        need("--save %s/ck " % d in " ".join(ranks[0]["argv"]), ranks[0]["argv"])
        doc, _ = init(d, *line, "--save", "ck", "--load", "/other/ck")
        need(
            len(doc["lost"]) == 1
            and doc["lost"][0].startswith(
                "--load /other/ck: a job resumes from where it saves, which is ck: "
            ),
            doc["lost"],
        )
        doc, _ = init(d, *line)
        need(
            any("saves no checkpoints" in x and "every: 8}" in x for x in doc["notes"]),
            doc["notes"],
        )


PREPARED = """#!/bin/bash
# how a stranger's script begins
set -euo pipefail
source venv/bin/activate
GPUS=${GPUS:-4}; export NCCL_DEBUG=${NCCL_DEBUG:-WARN}
LR=1e-4
while [[ $# -gt 0 ]]; do
    case "$1" in
        --lr) LR="$2"; shift 2 ;;
        *) echo "what is $1"; exit 1 ;;
    esac
done
ARGS=(--lr $LR)
if [ "${AMP:-on}" = on ]; then ARGS+=(--amp "bf16 ok"); fi
for f in a b; do ARGS+=(--feature "$f"); done
python tokenize.py --out data
torchrun --nproc_per_node $GPUS train.py "${ARGS[@]}" 2>&1 | tee log.txt
"""
# What people type, the words behind the interpreter, ranks, what is named as not carried over.
TYPED = [
    (
        "bash run.sh --lr 3",
        "train.py|--lr|3|--amp|bf16 ok|--feature|a|--feature|b",
        4,
        ["python tokenize.py --out data: not run before it", "| tee log.txt: "],
    ),
    (
        "GPUS=2 AMP=off ./run.sh",
        "train.py|--lr|1e-4|--feature|a|--feature|b",
        2,
        ["| tee log.txt: ", "python tokenize.py"],
    ),
    (
        "cd sub && nohup torchrun --nproc_per_node=2 train.py --x 1 > out.log 2>&1 &",
        "train.py|--x|1",
        2,
        ["> out.log: "],
    ),
    (
        "srun -N2 --ntasks-per-node=1 bash -c 'torchrun --nnodes 2 --nproc_per_node 8 train.py'",
        "train.py",
        16,
        [],
    ),
    (
        "srun -N 2 --ntasks-per-node=4 python train.py",
        "train.py",
        8,
        ["a rank gets RANK, LOCAL_RANK"],
    ),
    ("srun -N 1 bash -c 'torchrun train.py' 2>&1 | tee x.log", "train.py", 1, ["| tee x.log: "]),
    (
        "python3 -m torch.distributed.run --nproc_per_node 2 \\\n   train.py \\\n  --lr 1",
        "train.py|--lr|1",
        2,
        [],
    ),
    (
        "python3 -m torch.distributed.launch --nproc_per_node 2 train.py",
        "train.py",
        2,
        ["--local-rank=N: "],
    ),
    (
        "CUDA_VISIBLE_DEVICES=0,1 accelerate launch --num_processes 2 --mixed_precision bf16 "
        "train.py",
        "train.py",
        2,
        ["CUDA_VISIBLE_DEVICES: "],
    ),
    (
        "mpirun -np 4 --bind-to none python train.py",
        "train.py",
        4,
        ["--bind-to none: ", "a rank gets RANK"],
    ),
    ("mpirun -n 4 -mca btl ^openib -x A=1 python train.py", "train.py", 4, ["a rank gets RANK"]),
    (
        "timeout 24h numactl --membind 0 torchrun --standalone train.py",
        "train.py",
        1,
        ["timeout 24h: ", "numactl --membind 0: "],
    ),
    (
        "torchrun --nproc_per_node 2 train.py --out $(date +%s) --data $DATA",
        "train.py|--out|$(date +%s)|--data|$DATA",
        2,
        ["$(date +%s): ", "$DATA: "],
    ),
    (
        "[ -n \"$DEBUG\" ] && A=--debug || A=--fast; torchrun --nproc_per_node 2 train.py $A",
        "train.py|--fast",
        2,
        [],
    ),
    (
        "if test -f x; then B=1; fi; torchrun --nproc_per_node 2 train.py $B",
        "train.py|1",
        2,
        ["B: set where only a running shell knows"],
    ),
]


@suite.test
def lines_as_people_have_them():
    with tempfile.TemporaryDirectory() as d:
        os.makedirs(d + "/sub")
        for path, text in (("run.sh", PREPARED), ("train.py", ""), ("sub/train.py", "")):
            with open(os.path.join(d, path), "w") as f:
                f.write(text)
        for line, words, n, lost in TYPED:
            doc, ranks = init(d, "--workdir", d, line)
            equal(("|".join(ranks[0]["argv"][1:]), len(ranks)), (words, n), line)
            left = [x for x in doc["lost"] if not any(part in x for part in lost)]
            need(
                len(lost) <= len(doc["lost"])
                and not left
                and all(any(part in x for x in doc["lost"]) for part in lost),
                "%s: %s" % (line, doc["lost"]),
            )
            equal(doc["different"], [], line)
        doc, ranks = init(d, "--workdir", d, "cd sub && torchrun --nproc_per_node=2 ../train.py")
        equal(ranks[0]["argv"][1:], [d + "/train.py"], "a path that leads up")
        doc, ranks = init(d, "--workdir", d, d + "/run.sh")
        equal(
            (ranks[0]["argv"][0], ranks[0]["env"]["NCCL_DEBUG"]),
            (d + "/venv/bin/python3", "WARN"),
            "an environment that is activated",
        )
        need(any(x.startswith('"$@": ') or x.startswith("LR") for x in doc["lost"]), doc["lost"])
        doc, ranks = init(
            d, "--workdir", d, "--", "/opt/v/bin/torchrun", "--nproc_per_node", "2", "gone.py"
        )
        equal(
            ranks[0]["argv"],
            ["/opt/v/bin/python3", "gone.py"],
            "the interpreter beside the launcher",
        )
        need(any("there is no %s/gone.py here" % d in x for x in doc["notes"]), doc["notes"])


# Bash itself is asked what these become: a torchrun of our own in its PATH writes down its words.
SHELLS = [
    PREPARED.replace("source venv/bin/activate\n", "").replace(
        "python tokenize.py --out data\n", ""
    )
] + [
    "set -e\n" + text
    for text in (
        'A="x y"; B=($A "$A"); torchrun t.py "${B[@]}" ${B[@]} "${#B[@]}" ${A%y}z "${A##* }" '
        '\'$A\' "\\$A" a\\ b\n',
        'f() { local n=$1; shift; torchrun t.py --n "$n" "$@" "${@:2}" $#; }\nf 1 "a b" c\n',
        'N=0; while (( N < 3 )); do N=$((N * 2 + 1)); done\n'
        'until [ $N -lt 5 ]; do N=$((N - 1)); done; torchrun t.py $N $((7 / 2 - -1)) $(( N > 3 && '
        'N != 5 ))\n',
        'for m in alpha beta-2 c; do\n  case $m in\n    alpha|x) W+=(1) ;;\n    *-[0-9])\n'
        '      W+=("two $m");;\n    *) W+=( ) ;;\n  esac\ndone\n'
        'torchrun t.py "${W[@]}" "${W[*]}"\n',
        'if [[ ( -z $U || $V == y ) && ! "a.b" != a* ]]; then X=${U:-${V:-d e}}; elif true; then '
        'X=no; else X=no; fi\ntorchrun t.py $X "$X" ${U+set} "${X:+it is}" ""\n',
        'P="a b/c b"; torchrun t.py "${P// /_}" ${P/b/x} "${P// }" "${P/z/y}" ${P//b/}\n',
        'CMD="torchrun t.py --a 1"\nCMD+=" --b \'q\'"\n$CMD\n',
        'CMD="torchrun t.py --a \'1 2\'"\neval "$CMD --c"\n',
        'bash -c "cd sub && torchrun t.py \\$PWD $(basename /a/b.c) \'`dirname /a/b.c`\'" > '
        '/dev/null 2>&1\n',
        'false || Y=1 && Z=2; [ "$Y$Z" = 12 ] && { S=in; } || S=out; torchrun t.py $S \\\n'
        '  --more # not this\n',
        'set -- -g 4 -vcx.yaml -- -q; while getopts ":g:vc:" o; do case $o in g) G=$OPTARG ;; v) '
        'V=1 ;; c) C=$OPTARG ;; esac; done; shift $((OPTIND - 1))\n'
        'torchrun t.py "$G" "$V" "$C" "$@" $(seq 3)\n',
        'cat > x.txt <<-END\n\ttorchrun no.py\n\tEND\ntorchrun t.py 2>&1 1 > o.txt\n',
        'export E="k=v w"; D=$E; set -- p "q r"; torchrun t.py $D "$1" "${2}" "${3:-third}"; '
        'unset E\n',
    )
]


@suite.test
def scripts_are_what_bash_makes_of_them():
    with tempfile.TemporaryDirectory() as d:
        os.makedirs(d + "/bin")
        os.makedirs(d + "/sub")
        with open(d + "/bin/torchrun", "w") as f:
            f.write("#!/bin/sh\nprintf '%%s\\0' \"$@\" > %s/words\n" % d)
        os.chmod(d + "/bin/torchrun", 0o755)
        for text in SHELLS:
            with open(d + "/s.sh", "w") as f:
                f.write(text)
            r = subprocess.run(
                ["bash", d + "/s.sh"],
                cwd=d,
                env=dict(ENV, PATH=d + "/bin:" + os.environ["PATH"]),
                capture_output=True,
                text=True,
            )
            need(os.path.exists(d + "/words"), "bash ran nothing of %s: %s" % (text, r.stderr))
            with open(d + "/words") as f:
                words = f.read().split("\0")[:-1]
            os.remove(d + "/words")
            _, ranks = init(d, "--workdir", d, "--", "bash", d + "/s.sh")
            argv = ranks[0]["argv"][1:]
            equal(argv, words[len(words) - len(argv) :], text)
            need(
                len(argv) == len(words) or words[: -len(argv)] == ["--nproc_per_node", "4"],
                "%s: %s" % (text, words),
            )


@suite.test
def samples_are_steps():
    """Megatron takes the samples or the iterations: with a batch the steps follow, and the words of
    samples are named."""
    with tempfile.TemporaryDirectory() as d:
        gpt = (
            "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 64 "
            "--num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --lr 1 "
            "--micro-batch-size 1 --train-samples 1000 --lr-decay-samples 900 "
        )
        doc, ranks = init(d, "--workdir", d, gpt + "--global-batch-size 16")
        argv = " ".join(ranks[0]["argv"])
        need("--train-iters 62" in argv and "samples" not in argv, argv)
        need(
            [x.split(" ")[0] for x in doc["lost"]] == ["--train-samples", "--lr-decay-samples"]
            and any(x.startswith("steps: 62, --train-samples 1000") for x in doc["notes"]),
            doc,
        )
        r = moectl("init", "--workdir", d, gpt, env=ENV, check=False)
        need(r.returncode == 2 and r.stderr.endswith("give --steps N\n"), r.stderr)
        doc, ranks = init(d, "--workdir", d, "python train.py --devices 8")
        need(
            len(ranks) == 1
            and any("one process is started; if it starts others" in x for x in doc["notes"]),
            doc,
        )
        doc, ranks = init(
            d, "--workdir", d, "deepspeed --no_local_rank --num_gpus 2 --module pkg.train --x 1"
        )
        equal(ranks[0]["argv"][1:], ["-m", "pkg.train", "--x", "1"], "a module of deepspeed")


@suite.test
def what_is_told_is_short():
    """Words of one reason are one line; a recipe on a terminal is not printed twice."""
    with tempfile.TemporaryDirectory() as d:
        r = moectl(
            "init",
            "--workdir",
            d,
            "--out",
            d + "/t.yaml",
            "torchrun --nproc_per_node=2 train.py > log",
            env=ENV,
        )
        need(
            r.stderr.startswith("init: 0 flags") and "\n  not carried over: > log: " in r.stderr,
            r.stderr,
        )
        moectl(*r.stderr.strip().split("; next: moectl ")[1].split(" "), env=ENV)
        r = moectl(
            "init",
            "--workdir",
            d,
            "--",
            "srun",
            "-p",
            "gpu",
            "-A",
            "me",
            "torchrun",
            "--nproc_per_node=2",
            "pretrain_gpt.py",
            "--train-iters",
            "5",
            "--lr",
            "1",
            env=ENV,
        )
        equal(
            [x for x in r.stderr.split("\n") if "not carried over: " in x],
            [
                "  not carried over: -p gpu; -A me: a word for Slurm; priority, cluster.exclude "
                "and time_limit are in docs/recipe.md"
            ],
            r.stderr,
        )
        equal(r.stderr.count("which the original does not say"), 1, r.stderr)
        need("--exit-signal SIGUSR2 (stop.signal)" in r.stderr, r.stderr)


@suite.test
def what_only_a_shell_replaces():
    """Nothing with a `$` is a path of the recipe: it is resolved, or the directory of the call
    stands there and that is said."""
    with tempfile.TemporaryDirectory() as d:
        for name in ("train.py", "here.py"):
            open(os.path.join(d, name), "w").close()
        cases = (
            (SUBMITTED, "train.py", ["--out", d + "/out"], ""),
            (
                "cd $WORK/x\nsrun $V/bin/torchrun --nproc_per_node 2 here.py\n",
                "here.py",
                [],
                "`cd $WORK/x` of the original",
            ),
        )
        for text, entry, words, said in cases:
            with open(d + "/run.sbatch", "w") as f:
                f.write(text)
            r = subprocess.run(
                [MOECTL, "init", "--json", "--force", "-o", "r.yaml", "run.sbatch"],
                cwd=d,
                env=ENV,
                capture_output=True,
                text=True,
            )
            equal(r.returncode, 0, r.stderr)
            doc = json.loads(r.stdout)
            need(
                "  workdir: %s\n" % d in doc["recipe"]
                and "$" not in doc["recipe"].split("recipe: 1\n")[1],
                doc["recipe"],
            )
            need(
                said in "\n".join(doc["notes"])
                and not any("$SLURM_SUBMIT_DIR" in x for x in doc["lost"]),
                doc,
            )
            ranks = json.loads(
                moectl("submit", "--dry-run", "--json", d + "/r.yaml", env=ENV).stdout
            )["ranks"]
            equal(ranks[0]["argv"][1:], [entry] + words, text)
        r = moectl(
            "init", "--workdir", d, "torchrun --nproc_per_node 2 $SCRIPT --x", env=ENV, check=False
        )
        need(
            r.returncode == 2
            and r.stderr.count("\n") == 1
            and "what it starts is not known here: $SCRIPT; give what the script gets from "
            "outside: moectl init -- env NAME=VALUE bash SCRIPT" in r.stderr,
            r.stderr,
        )


@suite.test
def a_script_that_is_not_there():
    with tempfile.TemporaryDirectory() as d:
        for words in (
            ["bash none.sh"],
            ["--", "bash", "none.sh"],
            ["sbatch none.sh --x"],
            ["--", "srun", "-N", "2", "./none.sh"],
        ):
            r = moectl("init", "--workdir", d, "--out", d + "/r.yaml", *words, env=ENV, check=False)
            equal(
                (r.returncode, r.stderr.count("\n"), os.path.exists(d + "/r.yaml")),
                (2, 1, False),
                r.stderr,
            )
            need(
                "none.sh: there is no such script in %s; give its path, or --workdir DIR" % d
                in r.stderr,
                r.stderr,
            )
        r = moectl(
            "init", "docker run --rm img torchrun --nproc_per_node 8 train.py", env=ENV, check=False
        )
        need(
            r.returncode == 2
            and "docker: give the command that runs in the container; unpack the image on each node"
            in r.stderr
            and r.stderr.count("\n") == 1,
            r.stderr,
        )
        with open(d + "/train.py", "w") as f:
            f.write("import torch\n")
        r = moectl("init", d + "/train.py", env=ENV, check=False)
        need(
            r.returncode == 2
            and "moectl init -- torchrun --nproc_per_node 8 train.py" in r.stderr
            and r.stderr.count("\n") == 1,
            r.stderr,
        )


@suite.test
def a_toml_of_torchtitan():
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/x.toml", "w") as f:
            f.write(TITAN)
        doc, ranks = init(d, d + "/x.toml", "--gpus", "16")
        argv = " ".join(ranks[0]["argv"])
        for words in (
            "--job.config_file x.toml",
            "--training.steps 1000",
            "--checkpoint.interval 10",
            "--checkpoint.folder %s/out/ck" % d,
        ):
            need(words in argv, "%s is not in %s" % (words, argv))
        # what the file says stays there
        need("parallelism" not in argv and "mixed_precision" not in argv, argv)
        equal((ranks[0]["rank"], len(ranks)), (0, 16), "ranks")
        text = open(d + "/r.yaml").read()
        need("name: x\n" in text and "# different: checkpoint.folder" in text, text)
        for enable in ("enable = true", "enable_checkpoint = true", "enable = false"):
            with open(d + "/x.toml", "w") as f:
                f.write(TITAN.replace("enable = true", enable))
            moectl("init", d + "/x.toml", "--gpus", "16", "--out", d + "/s.yaml", env=ENV)
            with open(d + "/s.yaml") as f:
                text = f.read()
            need(("saves no checkpoints" in text) == ("false" in enable), enable + text)
            # a file of 0.1 is of that version's kind
            need(
                ("kind: torchtitan-0.1\n" in text) == ("enable_checkpoint" in enable), enable + text
            )
            os.unlink(d + "/s.yaml")
        for n, bad in ((2, "[job]\nx = nope\n"), (1, "x = \"\n"), (1, "\xff\n")):
            with open(d + "/x.toml", "wb") as f:
                f.write(bad.encode("latin-1"))
            r = moectl("init", d + "/x.toml", "--out", d + "/s.yaml", env=ENV, check=False)
            equal(
                (r.returncode, r.stderr.count("\n"), os.path.exists(d + "/s.yaml")),
                (2, 1, False),
                r.stderr,
            )
        for bad, said in (
            ("a = 1\n= 3\nb = 2\n", ":2: expected a key, got '= 3'; "),
            ("a = [1 2,\n3]\n", ":1: expected , or ], got '2,'; "),
            ("a = 1 2\nb = 3\n", ":1: expected the end of the line, got '2'; "),
            ("[\nb = 3\n", ":1: expected a key, got the end of the line; "),
            ("a.", ":1: expected a key, got the end of the file; "),
            ("a = {b = 1\n}\n", ":1: expected , or }, got the end of the line; "),
        ):
            with open(d + "/x.toml", "w") as f:
                f.write(bad)
            r = moectl("init", d + "/x.toml", "--out", d + "/s.yaml", env=ENV, check=False)
            need(
                r.stderr.startswith("moectl: init: %s/x.toml%s" % (d, said))
                and r.stderr.count("\n") == 1,
                r.stderr,
            )


@suite.test
def a_schedule_without_a_pipeline():
    """torchtitan's own DeepSeek files name one beside a pipeline degree of 1; either way it stays
    the file's."""
    with tempfile.TemporaryDirectory() as d:
        text = TITAN.replace(
            "[parallelism]\n",
            "[parallelism]\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
            "pipeline_parallel_degree = 1\n",
        )
        for degree in (2, 1):
            with open(d + "/x.toml", "w") as f:
                f.write(
                    text.replace(
                        "pipeline_parallel_degree = 1", "pipeline_parallel_degree = %d" % degree
                    )
                )
            doc, ranks = init(d, d + "/x.toml")
            need(
                "schedule" not in open(d + "/r.yaml").read()
                and "schedule" not in " ".join(ranks[0]["argv"]),
                "degree %d" % degree,
            )
        need("8 are the fewest in whole nodes of 8" in "\n".join(doc["notes"]), doc["notes"])


@suite.test
def gpus_that_nothing_says():
    """The line of one process is the whole, unless what starts it tells it of others; experts are
    spread in each stage."""
    train = "python3 -m MaxText.train base.yml hardware=%s steps=3 run_name=x"
    sizes = (
        "srun python3 pretrain_gpt.py --train-iters 3 --pipeline-model-parallel-size 2 "
        "--expert-model-parallel-size %d"
    )
    with tempfile.TemporaryDirectory() as d:
        for line, gpus, said in (
            (train % "gpu", 8, "8 are the fewest in whole nodes"),
            (train % "gpu_multiprocess", 8, "8 are the fewest in whole nodes"),
            ("python3 pretrain_gpt.py --train-iters 3", 1, "one process is started"),
            (sizes % 16, 32, "32 are the fewest"),
            (sizes % 4, 8, "8 are the fewest"),
        ):
            r = moectl("init", "--json", "--workdir", d, "--", *line.split(), env=ENV)
            doc = json.loads(r.stdout)
            need("cluster: {gpus: %d" % gpus in doc["recipe"], "%s: %s" % (line, doc["recipe"]))
            need(any(said in x for x in doc["notes"]), "%s: %s" % (line, doc["notes"]))


@suite.test
def a_launcher_of_primus_alone():
    """Its own lines say nothing of what it trains: refused, with what to give; a script of the
    user's that calls it is read."""
    with tempfile.TemporaryDirectory() as d:
        os.makedirs(d + "/primus/configs")
        for name in (
            "examples/run_pretrain.sh",
            "examples/run_local_pretrain.sh",
            "runner/primus-cli",
            "runner/primus-cli-direct.sh",
        ):
            os.makedirs(os.path.dirname(os.path.join(d, name)), exist_ok=True)
            with open(os.path.join(d, name), "w") as f:
                f.write(
                    "torchrun --nproc_per_node 8 primus/cli/main.py train pretrain --config $EXP\n"
                )
            r = moectl("init", os.path.join(d, name), "--out", d + "/r.yaml", env=ENV, check=False)
            equal(
                (r.returncode, r.stderr.count("\n"), os.path.exists(d + "/r.yaml")),
                (2, 1, False),
                r.stderr,
            )
            need(
                "it is Primus' own launcher" in r.stderr
                and "env EXP=x.yaml bash examples/run_pretrain.sh" in r.stderr,
                r.stderr,
            )
        with open(d + "/run_pretrain.sh", "w") as f:
            f.write("EXP=x.yaml bash examples/run_pretrain.sh\n")
        r = moectl("init", d + "/run_pretrain.sh", "--workdir", d, env=ENV, check=False)
        need(r.returncode == 2 and "x.yaml: no such file" in r.stderr, r.stderr)


@suite.test
def what_is_there_is_left_alone():
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/r.yaml", "w") as f:
            f.write("mine\n")
        line = ["--", "torchrun", "--nproc_per_node=2", "t.py"]
        r = moectl("init", "--out", d + "/r.yaml", *line, env=ENV, check=False)
        equal(
            (r.returncode, r.stderr.count("\n"), open(d + "/r.yaml").read()),
            (2, 1, "mine\n"),
            r.stderr,
        )
        need("--force" in r.stderr, r.stderr)
        moectl("init", "--out", d + "/r.yaml", "--force", *line, env=ENV)
        need("kind: torch" in open(d + "/r.yaml").read(), "it is overwritten")
        r = moectl("init", *line, env=ENV)
        need(
            r.stdout.endswith("cluster: {gpus: 2}\n") and "compared with the original" in r.stderr,
            r.stdout,
        )
        os.mkdir(d + "/ro")
        for out, why in (
            (d + "/none/r.yaml", "No such file or directory"),
            (d + "/ro", "Is a directory"),
            (d + "/r.yaml/x", "Not a directory"),
        ):
            for force in ([], ["--force"]):
                r = moectl("init", "--out", out, *force, *line, env=ENV, check=False)
                equal(
                    (r.returncode, r.stderr),
                    (
                        2,
                        "moectl: init: --out %s: %s; nothing was written: give a file that can be "
                        "made\n" % (out, why),
                    ),
                    out,
                )
        equal(os.listdir(d + "/ro"), [], "nothing is left there")


@suite.test
def places_are_the_original_s():
    """A draft has no lines that anybody could look up: errors name the words of the original, and
    the heading the line of the script."""
    with tempfile.TemporaryDirectory() as d:
        gpt = (
            "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 64 "
            "--num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --train-iters "
            "10 --lr 1 --foo-bar 3 "
        )
        with open(d + "/run.sh", "w") as f:
            f.write("#!/bin/sh\nset -e\n\nA=1; %s\n" % gpt)
        r = moectl("init", "--workdir", d, "-o", d + "/r.yaml", d + "/run.sh", env=ENV)
        need(
            r.stderr.startswith(d + "/run.sh:4: ") and r.stderr.count(d + "/run.sh") == 1, r.stderr
        )
        need(
            "\n  note: engine.args: unknown flag '--foo-bar' of " in r.stderr
            and "# note: engine.args: unknown flag '--foo-bar'" in open(d + "/r.yaml").read(),
            r.stderr,
        )
        need(max(len(x) for x in r.stderr.split("\n") if "parallel" in x) < 120, r.stderr)
        for words, said in (
            (
                "--tensor-model-parallel-size 3",
                "--tensor-model-parallel-size 3: parallelism.tp: tp 3 does not divide "
                "cluster.gpus 8",
            ),
            (
                "--global-batch-size 17 --micro-batch-size 2",
                "--global-batch-size 17: batch.global: 17 is no multiple of",
            ),
            (
                "--moe-token-dispatcher-typ x",
                "engine.args: unknown flag '--moe-token-dispatcher-typ'",
            ),
        ):
            r = moectl(
                "init",
                "--workdir",
                d,
                "-o",
                d + "/s.yaml",
                "HF_TOKEN=hf_secret " + gpt + words,
                env=ENV,
                check=False,
            )
            equal(
                (r.returncode, r.stderr.count("\n"), os.path.exists(d + "/s.yaml")),
                (2, 2, False),
                r.stderr,
            )
            need(
                r.stderr.startswith("moectl: " + said)
                and "hf_secret" not in r.stderr
                and "init: HF_TOKEN=*** torchrun --nproc_per_node 8 pretrain_gpt.py .." in r.stderr,
                r.stderr,
            )
        doc, _ = init(d, "--workdir", d, "HF_TOKEN=hf_secret " + gpt)
        need("hf_secret" not in doc["recipe"], doc["recipe"])


@suite.test
def what_else_people_give():
    """Files that start nothing say what they are and what to give; a line without its -- is
    reported with it."""
    with tempfile.TemporaryDirectory() as d:
        preset = d + "/primus/configs/models/megatron/llama9.9_8B.yaml"
        os.makedirs(os.path.dirname(preset))
        for path, text in (
            (preset, "extends:\n  - base.yaml\nnum_layers: 2\n"),
            (d + "/primus/configs/platform.yaml", "name: x\n"),
            (d + "/recipe.yaml", "recipe: 1\nname: a\n"),
            (d + "/acc.yaml", "distributed_type: FSDP\n"),
            (d + "/other.yaml", "a: 1\n"),
            (d + "/pyproject.toml", "[build-system]\nrequires = []\n"),
            (d + "/ds.json", "{}"),
            (d + "/run.sh", "torchrun t.py $1\n"),
        ):
            with open(path, "w") as f:
                f.write(text)
        for words, said in (
            (
                [preset],
                "it is a preset of Primus, a model, and no experiment; give an experiment that "
                "names it: grep -rl 'model: llama9.9_8B' examples",
            ),
            ([d + "/primus/configs/platform.yaml"], "it is a preset of Primus, values"),
            ([d + "/recipe.yaml"], "it is a recipe already; moectl validate"),
            ([d + "/acc.yaml"], "moectl init -- accelerate launch --config_file FILE SCRIPT"),
            ([d + "/other.yaml"], "no experiment of Primus: it has no `modules`"),
            ([d + "/pyproject.toml"], "none of its tables is one of torchtitan"),
            ([d + "/ds.json"], "moectl init -- deepspeed train.py --deepspeed_config FILE"),
            (
                ["torchrun", "--nproc_per_node", "2", "t.py", "--x", "a b"],
                "moectl init -- torchrun --nproc_per_node 2 t.py --x 'a b'",
            ),
            (
                ["-o", d + "/r.yaml", "--gpus=2", "A=1", "srun", "x"],
                "moectl init -o %s/r.yaml --gpus=2 -- A=1 srun x" % d,
            ),
            ([d + "/run.sh", "--lr", "3"], "moectl init -- bash %s/run.sh --lr 3" % d),
            ([d + "/run.sh", "3"], "moectl init -- bash %s/run.sh 3" % d),
            ([d + "/run.sh", "--forse"], "did you mean --force?"),
        ):
            r = moectl("init", *words, env=ENV, check=False)
            need(
                r.returncode == 2
                and r.stderr.count("\n") == 1
                and said in r.stderr
                and not r.stdout
                and not os.path.exists(d + "/r.yaml"),
                "%s: %r" % (words, r.stderr),
            )
        need(
            "gpus: 1" in moectl("init", d + "/run.sh", "--name", "x", env=ENV).stdout,
            "options of init behind a file are its own",
        )


ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: %s
%s_config:
%s
machine_rank: 0
main_training_function: main
mixed_precision: bf16
num_machines: 2
num_processes: 16
rdzv_backend: static
use_cpu: false
dynamo_config:
  dynamo_backend: INDUCTOR
"""


@suite.test
def what_accelerate_is_told_by_its_file():
    """The ranks get the variables that its launcher makes of it; a section of it wins over the
    line, and that is said; what has no variable is named by its place."""
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/train.py", "w") as f:
            f.write("")
        for name, text in (
            (
                "ds.yaml",
                ACCELERATE
                % (
                    "DEEPSPEED",
                    "deepspeed",
                    "  zero_stage: 3\n  offload_optimizer_device: none\n  zero3_init_flag: True",
                ),
            ),
            (
                "fsdp.yaml",
                ACCELERATE
                % (
                    "FSDP",
                    "fsdp",
                    "  fsdp_sharding_strategy: FULL_SHARD\n"
                    "  fsdp_transformer_layer_cls_to_wrap: Block\n  fsdp_use_orig_params: true",
                ),
            ),
            ("bad.yaml", "a: [1\n"),
        ):
            with open(os.path.join(d, name), "w") as f:
                f.write(text)
        doc, ranks = init(
            d,
            "--workdir",
            d,
            "accelerate launch --config_file ds.yaml --zero_stage 2 train.py --x 1",
        )
        equal((len(ranks), ranks[0]["argv"][1:]), (16, ["train.py", "--x", "1"]), "ds.yaml")
        equal(
            {k: v for k, v in ranks[0]["env"].items() if k.startswith("ACCELERATE_")},
            {
                "ACCELERATE_MIXED_PRECISION": "bf16",
                "ACCELERATE_USE_DEEPSPEED": "true",
                "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3",
                "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE": "none",
                "ACCELERATE_DEEPSPEED_ZERO3_INIT": "true",
                "ACCELERATE_CONFIG_DS_FIELDS": "zero_stage,offload_optimizer_device,"
                "zero3_init_flag",
            },
            "variables",
        )
        lost = (
            "ds.yaml:15 dynamo_backend INDUCTOR: ",
            "--zero_stage 2: accelerate 1.x takes ds.yaml:4 zero_stage 3 over it",
        )
        need(len(doc["lost"]) == 2 and all(x.startswith(lost) for x in doc["lost"]), doc)
        need(any(x.startswith("env: what ds.yaml says") for x in doc["notes"]), doc)
        doc, ranks = init(
            d,
            "--workdir",
            d,
            "accelerate launch --config_file %s/fsdp.yaml --num_processes 8 train.py" % d,
        )
        need(
            len(ranks) == 8
            and ranks[0]["env"]["ACCELERATE_USE_FSDP"] == "true"
            and ranks[0]["env"]["FSDP_TRANSFORMER_CLS_TO_WRAP"] == "Block"
            and ranks[0]["env"]["FSDP_USE_ORIG_PARAMS"] == "true",
            ranks[0]["env"],
        )
        os.makedirs(d + "/.cache/huggingface/accelerate")
        os.rename(d + "/fsdp.yaml", d + "/.cache/huggingface/accelerate/default_config.yaml")
        doc = json.loads(
            moectl(
                "init",
                "--json",
                "--workdir",
                d,
                "accelerate launch train.py",
                env=dict(ENV, HOME=d),
            ).stdout
        )
        need(
            "gpus: 16" in doc["recipe"] and "FSDP_SHARDING_STRATEGY: FULL_SHARD" in doc["recipe"],
            doc["recipe"],
        )
        for name, why in (
            ("bad.yaml", "it is no YAML that can be read here"),
            ("none.yaml", "it cannot be read here"),
        ):
            doc, _ = init(d, "--workdir", d, "accelerate launch --config_file %s train.py" % name)
            need(
                len(doc["lost"]) == 1
                and doc["lost"][0].startswith("--config_file %s: %s" % (name, why)),
                doc["lost"],
            )


@suite.test
def ranks_and_how_many():
    """As many as a node has; Slurm's words for GPUs; a script that gets its rank as an argument
    alone is named by its line."""
    with tempfile.TemporaryDirectory() as d:
        for name, text in (
            ("old.py", "import argparse\np.add_argument('--local_rank', type=int)\n"),
            ("new.py", "p.add_argument('--local-rank')\nos.environ['LOCAL_RANK']\n"),
        ):
            with open(os.path.join(d, name), "w") as f:
                f.write(text)
        for line, n, note, lost in (
            (
                "torchrun --nproc_per_node gpu new.py",
                8,
                "`--nproc_per_node gpu` is as many as a node has; 8 for each (8 in all)",
                [],
            ),
            ("torchrun --nnodes 2 --nproc-per-node=auto new.py", 16, "`--nproc-per-node auto`", []),
            (
                "torchrun --nproc_per_node $(nvidia-smi -L | wc -l) new.py",
                8,
                "`--nproc_per_node $(nvidia-smi -L | wc -l)`",
                [],
            ),
            (
                "torchrun --nproc_per_node cpu new.py",
                8,
                "",
                ["--nproc_per_node cpu: one process for each core"],
            ),
            (
                "srun -N 2 --gres=gpu:mi300x:4,nvme:1 torchrun --nproc_per_node gpu new.py",
                8,
                "",
                [],
            ),
            ("srun --gres=gpu -N 3 torchrun --nnodes 3 --nproc_per_node auto new.py", 3, "", []),
            (
                "deepspeed --no_local_rank --include a:0,1@b:2 new.py",
                3,
                "",
                ["--include a:0,1@b:2: "],
            ),
            ("WORLD_SIZE=2 python new.py", 2, "", []),
            ("python new.py", 1, "", []),
            (
                "srun -N 1 --ntasks-per-node 2 python new.py --local_rank $SLURM_LOCALID --x 1",
                2,
                "",
                ["--local_rank $SLURM_LOCALID: it is another one", "SLURM_PROCID"],
            ),
            (
                "torchrun --nproc_per_node 2 new.py --local-rank=$LOCAL_RANK --x 1",
                2,
                "",
                ["--local-rank=$LOCAL_RANK: it is another one"],
            ),
            (
                "deepspeed --num_gpus 2 old.py",
                2,
                "%s/old.py:2 takes --local_rank and nothing there reads LOCAL_RANK" % d,
                ["--local_rank=N: "],
            ),
            ("deepspeed --num_gpus 2 new.py", 2, "", ["--local_rank=N: "]),
        ):
            doc, ranks = init(d, "--workdir", d, line)
            equal(
                (len(ranks), ranks[0]["argv"][2:]), (n, ["--x", "1"] if "--x" in line else []), line
            )
            need(
                note in "\n".join(doc["notes"])
                and ("LOCAL_RANK: every" in str(doc["notes"])) == ("takes" in note),
                "%s: %s" % (line, doc["notes"]),
            )
            need(
                len(doc["lost"]) == len(lost)
                and all(any(part in x for x in doc["lost"]) for part in lost),
                "%s: %s" % (line, doc["lost"]),
            )


@suite.test
def bad_input_is_one_line():
    with tempfile.TemporaryDirectory() as d:
        files = {
            "empty.yaml": b"",
            "not.yaml": b"a: [1\n",
            "tab.yaml": b"a:\n\tb: 1\n",
            "bytes.sh": b"\x00\x01",
            "none.sh": b"echo hi\n",
            "big.sh": b"#" * (2 << 20),
            "loop.sh": b"A=(${A[@]} x)\ntorchrun $A\n",
            "quote.sh": b"torchrun 'x\n",
            "deep.toml": b"a = " + b"[" * 100000,
        }
        for name, text in files.items():
            with open(os.path.join(d, name), "wb") as f:
                f.write(text)
        cases = [[os.path.join(d, n)] for n in files if n != "loop.sh"] + [
            [d + "/missing.yaml"],
            [d],
            [],
            ["a", "b"],
            ["--from", "x", "--", "torchrun", "t.py"],
            ["--"],
            ["--", "torchrun"],
            ["--", "mpirun", "x"],
            ["--gpus", "0", "--", "torchrun", "t.py"],
            ["--name", "-x", "--", "torchrun", "t.py"],
            ["--workdir", d + "/nowhere", "--", "torchrun", "t.py"],
            ["--", "torchrun", "pretrain_gpt.py", "--lr", "1"],
            ["echo hi there"],
            ["--", "primus-cli", "direct", "--", "train", "pretrain", "--config", "no.yaml"],
            ["--", "primus-cli", "direct", "--", "benchmark"],
        ]
        for words in cases:
            r = moectl("init", "--out", d + "/out.yaml", *words, env=ENV, check=False)
            need(
                r.returncode == 2
                and r.stderr.count("\n") == 1
                and r.stderr.startswith("moectl: init")
                and not r.stdout
                and not os.path.exists(d + "/out.yaml"),
                "%s: %d %r %r" % (words, r.returncode, r.stderr[-600:], r.stdout[-100:]),
            )


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
