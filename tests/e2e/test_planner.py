#!/usr/bin/python3
"""The planner as users meet it: moectl plan, POST /v1/plan, and jobs that leave their sizes to it.
Usage: test_planner.py [TEST...]"""
import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile

import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
import controller  # noqa: E402
import machine  # noqa: E402
from lib import (
    BUILD,
    MOECTL,
    ROOT,
    Cluster,
    Suite,
    clean_env,
    equal,
    moectl,
    need,
    wait_until,
)  # noqa: E402

WORK = tempfile.mkdtemp(prefix="moe-planner-")
suite = Suite()
# A rank that tells the command that it got; the last one prints iterations as Megatron-LM does; all
# stay.
PYTHON = """#!/bin/sh
echo "$@" >"%s/argv.$RANK.new"
mv "%s/argv.$RANK.new" "%s/argv.$RANK"
i=0
while [ $RANK = 7 ] && [ $i -lt 80 ]; do
	i=$((i + 1))
	echo " [2026-08-22 10:00:00.123456] iteration $i/ 1000 | consumed samples: 192 | elapsed\
 time per iteration (ms): 400.0 | lm loss: 2.3E+00 |"
done
exec sleep 100000
""" % (
    WORK,
    WORK,
    WORK,
)
DATA = os.path.join(ROOT, "config")
SEVEN = {"layers": 7, "hidden": 2048, "heads": 16, "kv_heads": 4, "ffn": 8192, "vocab": 32000}


def place(name):
    return os.path.join(WORK, name)


def recipe(**more):
    doc = {
        "recipe": 1,
        "name": "planned",
        "engine": {
            "kind": "megatron-lm",
            "workdir": WORK,
            "python": place("python"),
            "args": {"mock-data": True},
        },
        "model": SEVEN,
        "cluster": {"gpus": 8, "gpu": "mi355x", "nic_gbps": 400},
        "batch": {"seq": 4096, "global": 64},
        "precision": "bf16",
        "steps": 1000,
        "parallelism": "auto",
    }
    return doc | more


def value(argv, flag):
    """The last one counts."""
    at = len(argv) - 1 - argv[::-1].index(flag)
    return argv[at + 1]


class Planner(Cluster):
    def __init__(self):
        machine.make("mi355x", place("root"), faults=[], cores=4)
        with open(place("python"), "w") as f:
            f.write(PYTHON)
        os.chmod(place("python"), 0o755)
        super().__init__(
            place("cluster"), nodes=1, gpus_per_node=8, extra=["--topology", place("root")]
        )

    def ask(self, path, body):
        """POST through the UNIX socket: status and body."""
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(120)
        s.connect(os.path.join(self.dir, "moed.sock"))
        s.sendall(
            (
                "POST %s HTTP/1.0\r\nHost: moe\r\nContent-Type: application/yaml\r\n"
                "Content-Length: %d\r\n\r\n" % (path, len(body.encode()))
            ).encode()
            + body.encode()
        )
        head, _, rest = b"".join(iter(lambda: s.recv(65536), b"")).partition(b"\r\n\r\n")
        need(b"chunked" not in head.lower(), head)
        return int(head.split()[1]), rest.decode()


@suite.test
def chosen_sizes_reach_the_ranks(c):
    """7 layers on two stages: the search keeps the stages that engine.args fix, the job gets their
    layout, and every rank's command has what status shows. So has a dry run, with and without a
    controller."""
    doc = recipe()
    doc["engine"]["args"] = {
        "mock-data": True,
        "pipeline-model-parallel-size": 2,
        "recompute-granularity": "selective",
    }
    text = json.dumps(doc)
    dry = json.loads(c.run("submit", "-", "--dry-run", "--json", stdin=text).stdout)["ranks"][0][
        "argv"
    ]
    alone = json.loads(
        moectl(
            "submit",
            "-",
            "--dry-run",
            "--json",
            env=clean_env(MOE_URL="unix:" + place("nobody")),
            stdin=text,
        ).stdout
    )["ranks"][0]["argv"]
    job = c.submit(text)
    chosen = c.job(job)["plan"]["chosen"]
    equal(
        (chosen["pp"], chosen["vpp"], chosen["pipeline_layout"], chosen["recompute"]),
        (2, 1, "Et*4|t*3,L", None),
        "sizes of the job",
    )
    need(
        "pipeline_layout Et*4|t*3,L; chosen by the planner" in c.run("status", job).stdout,
        "status names what was chosen",
    )
    c.wait_state(job, "running")
    for rank in range(8):
        wait_until(lambda: os.path.exists(place("argv.%d" % rank)), 60, "command of rank %d" % rank)
    with open(place("argv.7")) as f:
        run = f.read().split()
    for argv in (run, dry[1:], alone[1:]):
        equal(
            [
                value(argv, "--" + f)
                for f in (
                    "pipeline-model-parallel-layout",
                    "pipeline-model-parallel-size",
                    "tensor-model-parallel-size",
                    "micro-batch-size",
                )
            ],
            ["Et*4|t*3,L", "2", str(chosen["tp"]), str(chosen["micro"])],
            "flags",
        )
        equal(
            [argv.count("--recompute-granularity"), value(argv, "--recompute-granularity")],
            [1, "selective"],
            "recomputation stays as engine.args say",
        )
    wait_until(lambda: c.job(job)["plan"]["within"] is not None, 60, "measured steps")
    with open(place("anchor"), "w") as f:
        f.write(c.run("report", job, "--anchor").stdout)
    with open(place("anchor")) as f:
        equal(
            json.load(f)["runs"][0]["recipe"]["features"],
            {"pipeline_layout": "Et*4|t*3,L"},
            "what the run is kept with",
        )
    text = c.run("plan", "-", "--anchor", place("anchor"), stdin=text).stdout
    need("calibrated by 1 measured" in text, "the run can be planned again: %s" % text)
    c.run("cancel", job, "--now")
    c.wait_state(job, "cancelled")


def shuffled(value, r):
    """The same value, mappings in another order."""
    if isinstance(value, dict):
        keys = list(value)
        r.shuffle(keys)
        return {k: shuffled(value[k], r) for k in keys}
    return [shuffled(v, r) for v in value] if isinstance(value, list) else value


@suite.test
def the_same_bytes_everywhere(c):
    """Whatever the order of keys in recipe and catalogue, of files in its directories, locale, time
    zone and terminal; on a command line, from another directory, and by the controller."""
    r = random.Random(5)
    catalogue = place("catalogue")
    for directory in ("models", "gpus", "engines", "env", "health", "failures"):
        os.makedirs(os.path.join(catalogue, directory))
        files = sorted(f for f in os.listdir(os.path.join(DATA, directory)) if f.endswith(".yaml"))
        r.shuffle(files)
        for name in files:
            with open(os.path.join(DATA, directory, name)) as f:
                text = f.read()
            with open(os.path.join(catalogue, directory, name), "w") as f:
                f.write(
                    yaml.safe_dump(shuffled(yaml.safe_load(text), r), sort_keys=False, width=100000)
                    if directory in ("models", "gpus")
                    else text
                )
    for doc in (
        recipe(
            model="mixtral-8x7b",
            cluster={"gpus": 64, "gpu": "mi300x"},
            batch={"seq": 4096, "global": 512},
            features={"a2a": "deepep", "overlap_a2a": True},
        ),
        recipe(
            model="deepseek-v3",
            cluster={"gpus": 256, "gpu": "mi325x"},
            batch={"seq": 4096, "micro": 1, "global": 2048},
            parallelism={"pp": 8, "ep": 8},
            features={"pipeline_layout": "Et*8|(t*8|)*6t*5,m,L"},
        ),
    ):
        words = ("plan", "-", "--json", "--top", "20", "--scale", "64,128,256", "--tokens", "15T")
        first = moectl(*words, stdin=json.dumps(doc)).stdout
        need(
            len(json.loads(first)["plans"]) == (20 if doc["parallelism"] == "auto" else 1),
            "plans of %s" % first[:200],
        )
        for n, (data, extra) in enumerate(
            (
                (DATA, {}),
                (catalogue, {}),
                (
                    catalogue,
                    {
                        "LC_ALL": "de_DE.UTF-8",
                        "LANG": "tr_TR.UTF-8",
                        "TZ": "Pacific/Kiritimati",
                        "COLUMNS": "20",
                        "TERM": "xterm",
                    },
                ),
            )
        ):
            text = (
                yaml.safe_dump(shuffled(doc, r), sort_keys=False)
                if n
                else json.dumps(shuffled(doc, r))
            )
            equal(
                moectl(*words, stdin=text, env=clean_env(**extra) | {"MOE_DATA_DIR": data}).stdout,
                first,
                "run %d" % n,
            )
        status, body = c.ask(
            "/v1/plan?top=20&scale=64,128,256&tokens=15T", json.dumps(shuffled(doc, r))
        )
        equal((status, body.rstrip("\n")), (200, first.rstrip("\n")), "POST /v1/plan")


def put(doc, path, v):
    at = doc
    *parents, last = path.split(".")
    for p in parents:
        at = at.setdefault(p, {})
    at[last] = v


SCRIPT = {"kind": "command", "argv": ["x"]}
SMALL = {"layers": 8, "hidden": 1024, "heads": 8, "vocab": 32000, "ffn": 4096}
# A recipe of mixtral-8x7b on 64 GPUs with pp 4 and ep 8, what is changed in it, and what is said:
# field, rule, and the nearest values that do.
IMPOSSIBLE = [
    (
        {"parallelism.pp": 5},
        "parallelism.pp: pp 5 does not divide cluster.gpus 64",
        "use pp 4 or 8, or cluster.gpus 60 or 65",
    ),
    (
        {"cluster.gpus": 62},
        "parallelism.pp: pp 4 does not divide cluster.gpus 62",
        "use pp 2 or 31, or cluster.gpus 60 or 64",
    ),
    (
        {"parallelism.tp": 3},
        "parallelism.tp: tp 3 does not divide cluster.gpus 64",
        "use tp 2 or 4, or cluster.gpus 60 or 72",
    ),
    (
        {"parallelism.cp": 3},
        "parallelism.cp: pp 4 x cp 3 does not divide cluster.gpus 64",
        "use cp 2 or 4, or cluster.gpus 60 or 72",
    ),
    (
        {"parallelism.dp": 8},
        "parallelism.dp: tp 1 x pp 4 x cp 1 x dp 8 = 32 is not cluster.gpus 64",
        "dp must be 16, or auto",
    ),
    (
        {"model": "deepseek-v2-lite", "parallelism.pp": 4},
        "parallelism.pp: pp 4 x vpp 1 = 4 stages do not divide the model's 27 layers",
        'features.pipeline_layout: "Et*7|(t*7|)*2t*6,L"',
    ),
    (
        {"parallelism.pp": 64, "parallelism.ep": 1},
        "parallelism.pp: pp 64 x vpp 1 = 64 stages are more than the model's 32 layers + 2",
        "use pp 32 or less",
    ),
    (
        {"parallelism.vpp": 3},
        "parallelism.vpp: pp 4 x vpp 3 = 12 stages do not divide the model's 32 layers",
        "use vpp 2 or 4, or features.pipeline_layout",
    ),
    (
        {"parallelism.vpp": 16},
        "parallelism.vpp: pp 4 x vpp 16 = 64 stages are more than",
        "use vpp 8 or less",
    ),
    (
        {"parallelism.pp": 1, "parallelism.vpp": 2},
        "parallelism.vpp: 2 virtual stages need a pipeline",
        "use pp above 1, or vpp 1",
    ),
    (
        {"parallelism.ep": 3},
        "parallelism.ep: 3 does not divide the model's 8 experts",
        "use 2 or 4",
    ),
    ({"parallelism.ep": 16}, "parallelism.ep: 16 does not divide the model's 8 experts", "use 8"),
    (
        {"cluster.gpus": 60},
        "parallelism.ep: 8 does not divide the 15 GPUs of a pipeline stage",
        "use 1",
    ),
    (
        {"parallelism.etp": 16},
        "parallelism.ep: 8 does not divide the 1 GPUs of a pipeline stage (tp x cp x dp) by etp",
        "use 1, or etp 2",
    ),
    (
        {"parallelism.etp": 3},
        "parallelism.etp: 3 does not divide the 16 GPUs of a pipeline stage",
        "use 2",
    ),
    (
        {
            "model": SMALL | {"moe": {"experts": 8, "topk": 2, "ffn": 1026}},
            "parallelism.etp": 4,
            "parallelism.ep": 4,
        },
        "parallelism.etp: 4 does not divide the experts' width 1026",
        "use 2",
    ),
    (
        {"model": "llama3-8b", "parallelism": {"ep": 2}},
        "parallelism.ep: the model has no experts",
        "use 1",
    ),
    (
        {"parallelism.tp": 64, "parallelism.pp": 1},
        "parallelism.tp: 64 does not divide the model's 32 attention heads",
        "use 8",
    ),
    (
        {"parallelism.tp": 16, "parallelism.ep": 1},
        "parallelism.tp: 16 does not divide the model's 8 key-value heads",
        "use 8",
    ),
    (
        {"model": SMALL | {"heads": 8, "ffn": 4100}, "parallelism": {"tp": 8}},
        "parallelism.tp: 8 does not divide the model's feed-forward width 4100",
        "use 4",
    ),
    (
        {"parallelism.cp": 16, "parallelism.ep": 1, "batch.seq": 1000},
        "parallelism.cp: 16 does not divide batch.seq 1000",
        "use 8",
    ),
    (
        {"batch.global": 500},
        "batch.global: 500 is no multiple of micro 1 x dp 16 = 16",
        "use 496 or 512",
    ),
    (
        {"batch.micro": 3},
        "batch.global: 512 is no multiple of micro 3 x dp 16 = 48",
        "use 480 or 528, or batch.micro 2 or 4",
    ),
    ({"batch.global": 8}, "batch.global: 8 is no multiple of micro 1 x dp 16 = 16", "use 16"),
    (
        {"batch.global": None, "batch.global_tokens": 1000000},
        "batch.global_tokens: 1000000 is no multiple of batch.seq 4096",
        "use 999424 or 1003520",
    ),
    (
        {"parallelism": "auto", "cluster.gpus": 127},
        "no sharding of cluster.gpus 127 divides the model's 32 layers and 32 heads and "
        "batch.global 512",
        "use cluster.gpus 64 or 128, or batch.global 508 or 635",
    ),
    (
        {"parallelism": "auto", "batch.micro": 3},
        "batch.global: 512 is no multiple of batch.micro 3",
        "use 510 or 513, or batch.micro 2 or 4",
    ),
    (
        {"engine": SCRIPT, "parallelism.schedule": "dualpipe", "batch.global": 48},
        "parallelism.schedule: dualpipe needs an even pp and an even number of micro-batches of "
        "at least 2 pp; pp 4 has 3",
        "use pp 4 with 8 of them",
    ),
    (
        {"engine": SCRIPT, "parallelism": {"pp": 32, "schedule": "zbv"}},
        "parallelism.schedule: zbv gives each of 32 stages two chunks, and the model has 32 layers",
        "use pp 16 or less",
    ),
    (
        {"parallelism.schedule": "interleaved"},
        "parallelism.schedule: interleaved needs vpp above 1",
        "use 1f1b",
    ),
    ({"model": SMALL | {"heads": 3}}, "model.heads: 3 does not divide hidden 1024", "use 2 or 4"),
    ({"model": SMALL | {"kv_heads": 3}}, "model.kv_heads: 3 does not divide heads 8", "use 2 or 4"),
    (
        {"model": SMALL | {"moe": {"experts": 8, "topk": 9, "ffn": 64}}},
        "model.moe.topk: 9 is more than the 8 experts",
        "use 1 to 8",
    ),
    (
        {"model": SMALL | {"moe": {"experts": 8, "topk": 2, "ffn": 64, "dense_layers": 9}}},
        "model.moe.dense_layers: 9 is more than the 8 layers",
        "use 0 to 8",
    ),
    (
        {
            "model": SMALL
            | {"moe": {"experts": 8, "topk": 2, "ffn": 64, "groups": 3, "topk_groups": 1}}
        },
        "model.moe.groups: 3 does not divide the 8 experts",
        "use 2 or 4",
    ),
    ({"cluster.gpu": "mi3000x"}, "cluster.gpu", "did you mean 'mi300x'?"),
]
ABSURD = [
    0,
    -1,
    1e18,
    1.5,
    float("nan"),
    float("inf"),
    10**30,
    "eight",
    "8",
    "",
    [8],
    {"a": 8},
    True,
]


@suite.test
def impossible_shapes(c):
    """Each rule: exit status 2 and 422, with the field, the rule and what would do, the same on a
    command line and by the controller."""
    for changes, said, instead in IMPOSSIBLE:
        doc = recipe(
            model="mixtral-8x7b",
            cluster={"gpus": 64, "gpu": "mi300x"},
            parallelism={"pp": 4, "ep": 8},
            batch={"seq": 4096, "micro": 1, "global": 512},
        )
        for path, v in changes.items():
            put(doc, path, v)
        doc["batch"] = {k: v for k, v in doc["batch"].items() if v is not None}
        r = moectl("plan", "-", stdin=json.dumps(doc), check=False)
        line = next((x for x in r.stderr.splitlines() if said in x), "")
        need(
            r.returncode == 2 and line and instead in line,
            "%s: exit %d: %s" % (changes, r.returncode, r.stderr),
        )
        status, body = c.ask("/v1/plan", json.dumps(doc))
        answer = json.loads(body)
        texts = ["%s; %s" % (e["message"], e["hint"]) for e in answer.get("errors", [])] + [
            answer.get("detail", "")
        ]
        need(
            status == 422 and any(said in t and instead in t for t in texts),
            "%s: POST /v1/plan: %d %s" % (changes, status, body),
        )


@suite.test
def absurd_numbers(c):
    """In every number of a recipe that a plan reads: one line that names it and says what is
    expected."""
    paths = ["parallelism." + p for p in ("tp", "pp", "vpp", "ep", "etp", "cp", "dp")] + [
        "batch.seq",
        "batch.micro",
        "batch.global",
        "cluster.gpus",
        "cluster.nic_gbps",
    ]
    paths += [
        "model." + p
        for p in (
            "layers",
            "hidden",
            "heads",
            "kv_heads",
            "head_dim",
            "ffn",
            "vocab",
            "moe.experts",
            "moe.topk",
            "moe.ffn",
        )
    ]
    for path in paths:
        for v in ABSURD:
            doc = recipe(
                model=SMALL | {"moe": {"experts": 8, "topk": 2, "ffn": 64}}, parallelism={"ep": 8}
            )
            put(doc, path, v)
            r = moectl("plan", "-", stdin=yaml.safe_dump(doc), check=False)
            need(
                r.returncode == 2
                and r.stderr.count("\n") == 1
                and path + ": expected a whole number from" in r.stderr,
                "%s %r: exit %d: %s" % (path, v, r.returncode, r.stderr),
            )
    for v in ("0", "-1", "1e18", "nan", "x", "", "131073"):
        r = moectl("plan", "-", "--gpus", v, stdin=json.dumps(recipe()), check=False)
        need(
            r.returncode == 2 and "--gpus" in r.stderr and "1 to 131072" in r.stderr,
            "--gpus %s: %s" % (v, r.stderr),
        )
        status, body = c.ask("/v1/plan?gpus=" + v, json.dumps(recipe()))
        need(status == 400 and "gpus" in body, "?gpus=%s: %d %s" % (v, status, body))


@suite.test
def limits_of_the_search(c):
    """A controller whose search goes wrong: what ended it is reported, and the next one is taken.
    The search is a script beside a copy of the controller."""
    os.makedirs(place("bin"))
    shutil.copy(controller.MOED, place("bin/moed"))
    was, controller.MOED = controller.MOED, place("bin/moed")
    m = controller.Moed()
    try:
        for script, status, said in (
            (
                "head -c 9000000 /dev/zero | tr '\\0' x",
                503,
                "answered more than 8 MiB: ask for fewer plans",
            ),
            ("kill -XCPU $$", 503, "took longer than 60 s: give more of parallelism"),
            ("kill -ABRT $$", 503, "ran out of its 4 GiB of memory"),
            ("kill -KILL $$", 503, "was killed from outside"),
            (
                "cat >/dev/null; echo 'moectl: stdin: plan: no such thing' >&2; exit 2",
                422,
                "plan: no such thing",
            ),
            # they are set once it runs
            (
                "while [ $(ulimit -v) = unlimited ] || [ $(ulimit -t) = unlimited ]; do :; done; "
                "echo $(ulimit -v) $(ulimit -t) >&2; exit 2",
                422,
                "4194304 60",
            ),
            ("exec %s plan - --json" % os.path.join(BUILD, "moectl"), 200, '"plans"'),
        ):
            with open(place("bin/moectl"), "w") as f:
                f.write("#!/bin/sh\n%s\n" % script)
            os.chmod(place("bin/moectl"), 0o755)
            a = m.ask("POST", "/v1/plan", recipe())
            need(
                a.status == status and said in a.body.decode(),
                "%s: %d %s" % (script, a.status, a.body[:300]),
            )
    finally:
        controller.MOED = was
        m.stop()


LARGE = {
    "layers": 1000,
    "hidden": 4096,
    "heads": 64,
    "vocab": 128000,
    "moe": {"experts": 4096, "topk": 8, "ffn": 1024},
}


@suite.test
def sizes_at_the_limits(c):
    """From one GPU to 131,072, primes among them, models of one layer and of a thousand with 4,096
    experts: within 128 MiB of address space the search answers, with a plan or with what would
    do."""
    with open(MOECTL, "rb") as f:  # a sanitizer's shadow memory alone is larger
        limit = (
            None
            if b"__asan_init" in f.read()
            else lambda: resource.setrlimit(resource.RLIMIT_AS, (128 << 20, 128 << 20))
        )

    def search(gpus, model, per_gpu, *more):
        text = json.dumps(
            recipe(
                model=model,
                cluster={"gpus": gpus, "gpu": "mi355x"},
                batch={"seq": 4096, "global": gpus * per_gpu},
            )
        )
        return subprocess.run(
            [MOECTL, "plan", "-", "--json", *more],
            input=text,
            capture_output=True,
            text=True,
            timeout=300,
            env=clean_env(),
            preexec_fn=limit,
        )

    for gpus in (1, 2, 7, 12, 24, 127, 1000, 1009, 65536, 65537, 100000, 131072):
        for model in (SMALL, SMALL | {"layers": 1}, "moe-2t"):
            r = search(gpus, model, 8)
            need(r.returncode == 0, "%d GPUs, %s: %s" % (gpus, model, r.stderr))
            p = json.loads(r.stdout)["plans"][0]["parallelism"]
            equal(p["tp"] * p["cp"] * p["pp"] * p["dp"], gpus, "GPUs of the plan on %d" % gpus)
    for gpus in (8, 65536, 100000):
        for more in ((), ("--open",)):
            r = search(gpus, LARGE, 1, *more)
            need(
                r.returncode == 0 and len(json.loads(r.stdout)["plans"]) == 5,
                "a thousand layers of 4,096 experts on %d GPUs: %s" % (gpus, r.stderr),
            )


@suite.test
def what_engine_args_fix(c):
    """Sizes, schedule and sharding that the engine's own flags say stay as they are, also those
    that no search looks for unasked; features get what their rules ask for."""
    primus = {"kind": "primus-megatron", "workdir": WORK, "entry": "x.yaml"}
    rows = [
        (
            "megatron-lm",
            {"tensor-model-parallel-size": 4},
            {},
            lambda p: p["parallelism"]["tp"] == 4,
        ),
        (
            "megatron-lm",
            {"num-virtual-stages-per-pipeline-rank": 2},
            {},
            lambda p: (p["parallelism"]["vpp"], p["schedule"]) == (2, "interleaved"),
        ),
        (
            "megatron-lm",
            {"micro-batch-size": 3},
            {"batch": {"seq": 4096, "global": 768}},
            lambda p: p["batch"]["micro"] == 3,
        ),
        (
            "megatron-lm",
            {
                "recompute-granularity": "full",
                "recompute-method": "block",
                "recompute-num-layers": 2,
            },
            {},
            lambda p: p["recompute"] == "full",
        ),
        (
            "primus-megatron",
            # says nothing of schedules and of FSDP, which nobody gets unasked
            {"use_distributed_optimizer": False},
            {},
            lambda p: p["parallelism"]["sharding"] == "none"
            and p["schedule"] in ("1f1b", "interleaved"),
        ),
        (
            "primus-megatron",
            {"use_torch_fsdp2": True},
            {},
            lambda p: (p["parallelism"]["sharding"], p["schedule"]) == ("zero3", "1f1b"),
        ),
        (
            "primus-megatron",
            {
                "use_distributed_optimizer": False,
                "patch_primus_pipeline": True,
                "pp_algorithm": "zero-bubble",
                "micro_batch_size": 3,
            },
            {"batch": {"seq": 4096, "global": 768}},
            lambda p: (p["parallelism"]["sharding"], p["schedule"], p["batch"]["micro"])
            == ("none", "zb1p", 3),
        ),
        (
            "primus-megatron",
            {"patch_primus_pipeline": True, "pp_algorithm": "zbv-formatted"},
            {},
            lambda p: (p["schedule"], p["parallelism"]["vpp"], p["recompute"])
            == ("zbv", 2, "none"),
        ),
        (
            "megatron-lm",
            {},
            {"features": {"overlap_a2a": True, "a2a": "deepep"}},
            lambda p: p["parallelism"]["ep"] > 1
            and p["recompute"] != "full"
            and (p["parallelism"]["pp"] == 1 or p["parallelism"]["vpp"] > 1),
        ),
        (
            "torchtitan",
            {"module": "m", "config": "c"},
            {},
            lambda p: (
                p["parallelism"]["vpp"],
                p["parallelism"]["etp"],
                p["parallelism"]["sharding"],
                p["recompute"],
            )
            == (1, 1, "zero3", "none"),
        ),
    ]
    for kind, args, more, holds in rows:
        doc = (
            recipe(
                model="mixtral-8x7b",
                cluster={"gpus": 64, "gpu": "mi300x"},
                batch={"seq": 4096, "global": 512},
            )
            | more
        )
        doc["engine"] = (
            primus if kind == "primus-megatron" else {"kind": kind, "workdir": WORK}
        ) | {"args": args}
        plans = json.loads(
            moectl("plan", "-", "--json", "--top", "20", stdin=json.dumps(doc)).stdout
        )["plans"]
        need(
            plans and all(holds(p) for p in plans),
            lambda: "%s %s %s: %s"
            % (
                kind,
                args,
                more,
                [
                    (p["parallelism"], p["batch"], p["recompute"], p["schedule"])
                    for p in plans
                    if not holds(p)
                ][:2],
            ),
        )
        argv = json.loads(
            c.run("submit", "-", "--dry-run", "--json", stdin=json.dumps(doc)).stdout
        )["ranks"][0]["argv"]
        for flag, v in args.items():
            said = [argv[i + 1] for i, w in enumerate(argv[:-1]) if w.lstrip("-") == flag]
            need(
                len(said) >= 1 and {s.lower() for s in said} == {str(v).lower()},
                "%s: --%s is said to be %s: %s" % (kind, flag, said, argv),
            )


@suite.test
def advice_that_can_be_taken(c):
    """What does not fit is taken with a warning; what it advises passes the engine's rules: no full
    recomputation beside overlapped exchanges, in a plan and at a submit."""
    # one key-value head, and a sequence that cannot be cut
    one = {
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 1,
        "ffn": 14336,
        "vocab": 32000,
        "moe": {"experts": 8, "topk": 2, "ffn": 14336},
    }
    doc = recipe(
        model=one,
        cluster={"gpus": 64, "gpu": "mi300x"},
        parallelism={"ep": 8},
        batch={"seq": 32766, "micro": 1, "global": 256},
    )
    free, bound = json.dumps(doc), json.dumps(
        doc | {"features": {"a2a": "deepep", "overlap_a2a": True}}
    )
    for ask in (lambda t: moectl("plan", "-", stdin=t).stdout, lambda t: c.ask("/v1/jobs", t)[1]):
        need(
            "nearest plan that fits: recompute full" in ask(free),
            "without features the nearest is full recomputation: %s" % ask(free)[-1500:],
        )
        text = ask(bound)
        need(
            "no plan that differs in one choice fits" in text
            or "nearest plan that fits: " in text
            and "recompute full" not in text.split("nearest plan that fits: ")[1][:40],
            "with overlapped exchanges: %s" % text[-1500:],
        )


@suite.test
def nothing_to_choose(c):
    """A recipe that leaves no sharding is refused alike by plan, a dry run without a controller,
    and the controller."""
    doc = recipe()
    doc["engine"]["args"]["micro-batch-size"] = 65
    why = (
        "no sharding that parallelism: auto may choose passes the recipe's checks: engine.args: "
        "micro-batch-size 65 contradicts batch.micro 1: change that, or give the sizes"
    )
    # the engine's tree: without it there is a warning too
    open(place("pretrain_gpt.py"), "w").close()
    text, nobody = json.dumps(doc), clean_env(MOE_URL="unix:" + place("nobody"))
    for r in (
        c.run("plan", "-", stdin=text, check=False),
        moectl("submit", "-", "--dry-run", env=nobody, stdin=text, check=False),
        c.run("submit", "-", "--dry-run", stdin=text, check=False),
        c.run("submit", "-", stdin=text, check=False),
    ):
        need(
            r.returncode == 2 and why in r.stderr and r.stderr.count("\n") == 1,
            "exit %d: %s" % (r.returncode, r.stderr),
        )


def main():
    c = Planner()
    try:
        c.up()
        return suite.main(c)
    finally:
        c.down(check=False)
        shutil.rmtree(WORK, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
