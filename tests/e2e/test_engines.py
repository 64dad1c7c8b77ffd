#!/usr/bin/python3
"""Every kind of engine through the whole path: a program that prints a recorded log stands for the
engine (tests/fake/replay.c), started as the engine file says; metrics, phases and the CSV are
what the log says. An engine that exists only as a data file in MOE_DATA_DIR. engine.prepare.
Usage: test_engines.py [TEST...]"""
import csv
import http.server
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "fixtures")]
import checkpoints as fixtures
from lib import BUILD, PATIENCE, ROOT, Cluster, Suite, clean_env, equal, moectl, need, wait_until
from test_experiments import OWN

suite = Suite()
WORK = tempfile.mkdtemp(prefix="moe-eng-")
REPLAY = os.path.join(BUILD, "tests/fake/replay")


def place(name):
    return os.path.join(WORK, name)


def write(name, text, mode=0o644):
    path = place(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="latin-1") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


MEGATRON = (
    " [2026-08-22 10:00:00.123456] iteration %8d/ %d | consumed samples: %12d | elapsed time per "
    "iteration (ms): %s | throughput per GPU (TFLOP/s/GPU): 500.0 | learning rate: 1.0E-03 | "
    "global batch size:    16 |%s loss scale: 1.0 | grad norm: 0.9 | number of skipped "
    "iterations:   0 | number of nan iterations:   %d |\n"
)


def megatron_log(prefix="", inst="100.0"):
    lines = [
        "%s> initializing torch distributed ...\n" % prefix,
        "%stime to initialize megatron (seconds): 5.4\n" % prefix,
        "training ...\n",
    ]
    for i in range(1, 7):
        lines.append(
            prefix
            + MEGATRON
            % (i, 6, i * 16, inst, "" if i == 3 else " lm loss: %E |" % (9.0 / i), i == 3)
        )
    lines.insert(4, "\x1b[31m\xff garbage \x00 without sense\n")
    lines[6] = lines[6][:-1] + "\\c\n"  # two records in one line
    lines.insert(8, lines[7])  # printed twice
    lines.insert(1, "y" * 10000000 + "\n")
    return "".join(lines).rstrip("\n")  # and no newline at the end


TITAN = "[titan] 2026-05-18 16:04:46,338 - root - INFO - "
LOGS = {
    "megatron-lm": (megatron_log(), {"entry": "x.py"}),
    "primus-megatron": (
        megatron_log(
            "[20251121 12:10:29][rank-1/2][INFO ] [--------trainer.py:2488] : ", "100.0/120.5"
        ),
        {"entry": "x.yaml"},
    ),
    "torchtitan": (
        TITAN
        + "Starting job: x\n"
        + TITAN
        + "Training starts at step 1.\n"
        + "".join(
            TITAN
            + "step: %2d  loss: %s  grad_norm:  0.9000  memory:  9.46GiB(64.99%%)  tps: 7,282  "
            "tflops: 500.0  mfu: 160.17%%\n" % (i, "nan" if i == 3 else "%8.5f" % (9.0 / i))
            for i in range(1, 7)
        ),
        {},
    ),
    "maxtext": (
        "System Information: Jax Version: 0.7.2\nMemstats: After params initialized:\n"
        + "".join(
            "completed step: %d, seconds: 0.100, TFLOP/s/device: 500.0, Tokens/s/device: 7282.0, "
            "total_weights: 1456, loss: %s\n" % (i - 1, "nan" if i == 3 else "%.5f" % (9.0 / i))
            for i in range(1, 7)
        ),
        {},
    ),
    "deepspeed": (
        "[2026-08-22 06:51:29,903] [INFO] [logging.py:107:log_dist] [Rank 0] DeepSpeed info: "
        "version=0.17.0, git-hash=unknown\n"
        + "".join(
            "steps: %d loss: %s iter time (s): 0.100 samples/sec: 31.250\n"
            "[2026-08-22 06:59:46,878] [INFO] [logging.py:96:log_dist] [Rank 0] step=%d, "
            "skipped=0, lr=[1e-03, 1e-03], mom=[(0.9, 0.95)]\n"
            % (i, "nan" if i == 3 else "%.5f" % (9.0 / i), i)
            for i in range(1, 7)
        ),
        {"entry": "x.py"},
    ),
}
LOGS["maxtext-multiprocess"] = LOGS["maxtext"]
LOGS["primus-maxtext"] = (LOGS["maxtext"][0], {"entry": "x.yaml"})
LOGS["primus-megatron-sft"] = LOGS["primus-megatron"]


def samples(c, job):
    return {
        int(r["iteration"]): r
        for r in csv.DictReader(io.StringIO(c.run("metrics", job, "--csv").stdout))
    }


@suite.test
def replayed_logs():
    os.makedirs(place("w"), exist_ok=True)
    with Cluster(place("c1"), nodes=2, gpus_per_node=2) as c:
        jobs = {}
        for kind, (log, engine) in LOGS.items():
            path = write("logs/%s.log" % kind, log)
            doc = {
                "recipe": 1,
                "name": kind,
                "engine": dict(engine, kind=kind, python=REPLAY, workdir=place("w")),
                "cluster": {"gpus": 4},
                "steps": 6,
                "env": {"REPLAY_LOG": path},
            }
            if kind.startswith("primus-megatron"):
                doc["env"]["REPLAY_STDERR"] = "1"
            jobs[kind] = c.submit(json.dumps(doc))
        for kind, job in jobs.items():
            done = c.wait_state(job, ["completed", "failed"])
            equal(done["state"], "completed", "%s: %s" % (kind, done["reason"]))
            equal(
                done["ranks"], 2 if kind in ("maxtext", "primus-maxtext") else 4, "ranks of " + kind
            )
            rows = samples(c, job)
            equal(sorted(rows), [1, 2, 3, 4, 5, 6], "iterations of " + kind)
            equal(
                [round(float(rows[i]["loss"]), 3) for i in (1, 2, 6)],
                [9.0, 4.5, 1.5],
                "losses of " + kind,
            )
            equal(rows[3]["loss"].lower(), "nan", "loss of iteration 3 of " + kind)
            if kind != "torchtitan":
                equal(
                    [float(rows[i]["step_ms"]) for i in (1, 6)],
                    [100.0, 100.0],
                    "step_ms of " + kind,
                )
            if "maxtext" in kind or kind == "torchtitan":
                equal(float(rows[5]["tokens_per_s_per_gpu"]), 7282.0, "tokens/s/GPU of " + kind)
            equal(rows[2]["phase"], "train", "phase in a sample of " + kind)


SAVES = (
    """#!/bin/sh
echo "%s"
echo "[2026-08-22 10:00:10.1] saving checkpoint at iteration       5 to $WHERE in torch_dist format"
echo "  [2026-08-22 10:00:11.1] successfully saved checkpoint from iteration       5 to $WHERE [ t\
 1/1, p 1/1 ]"
exec sleep 1000
"""
    % (MEGATRON % (5, 20, 80, "100.0", " lm loss: 1.0 |", 0)).rstrip()
)


@suite.test
def a_save_elsewhere_is_an_error():
    """The engine says that it saves to another directory than checkpoint.dir: its first save ends
    the job, which trains on where it is the same."""
    python, kept, other = (
        write("saves.sh", SAVES, 0o755),
        place("kept ones/x"),
        place("output/amd/root/e/checkpoints"),
    )
    for d in (kept, place("w"), other):
        os.makedirs(d, exist_ok=True)
    with Cluster(place("c-else"), nodes=1, gpus_per_node=4) as c:

        def submit(name, kind, where, kept=kept):
            return c.submit(
                json.dumps(
                    {
                        "recipe": 1,
                        "name": name,
                        "engine": {
                            "kind": kind,
                            "python": python,
                            "entry": "x",
                            "workdir": place("w"),
                        },
                        "cluster": {"gpus": 1},
                        "steps": 20,
                        "env": {"WHERE": where},
                        "checkpoint": {"dir": kept, "every": 5},
                    }
                )
            )

        good = submit("good", "megatron-lm", kept + "/")
        job = submit("bad", "primus-megatron", other, kept + "2")
        done = c.wait_state(job, ["failed"])
        equal((done["attempt"], done["checkpoint"]), (1, None), done)
        need(
            "the engine saved to %s, and not to checkpoint.dir %s2/checkpoints: " % (other, kept)
            in done["reason"],
            done["reason"],
        )
        why = c.json("why", job)
        need([r for r in why["reasons"] if r["code"] == "saves-elsewhere"], why)
        types = [e["type"] for e in c.json("events", job)["items"]]
        equal(
            (
                types.count("checkpoint.elsewhere"),
                types.count("checkpoint.torn"),
                types.count("checkpoint.saved"),
            ),
            (1, 0, 0),
            types,
        )
        # Of a place that the node does not see nothing is proven: it trains on, and status tells of
        # it.
        unseen = submit("unseen", "megatron-lm", place("nobody/made/it"), kept + "3")
        late = wait_until(
            lambda: c.job(unseen).get("checkpoint_late"), 60, "a refused save is reported"
        )
        need("was refused: it went to %s, " % place("nobody/made/it") in late, late)
        wait_until(
            lambda: [
                e for e in c.json("events", unseen)["items"] if e["type"] == "checkpoint.elsewhere"
            ],
            60,
            "its event",
        )
        equal(c.job(unseen)["state"], "running", c.job(unseen))
        c.run("cancel", unseen, "--now")
        wait_until(
            lambda: [e for e in c.json("events", good)["items"] if e["type"] == "checkpoint.saved"],
            60,
            "the good save",
        )
        equal(c.json("status", good)["state"], "running", "the good one")
        c.run("cancel", good, "--now")


# What MaxText does at its start, as far as it matters here: it takes the newest step that it sees.
# The second tree is one before v26.4.
TRAIN = r"""
import os, sys
top = [w.split("=", 1)[1] for w in sys.argv if w.startswith("base_output_directory=")][0]
saves = top + "/moe/checkpoints"
steps = sorted(int(n) for n in os.listdir(saves) if n.isdigit()) if os.path.isdir(saves) else []
module = __name__ if __name__ != "__main__" else os.path.relpath(__file__, os.getcwd())
print("module %s, configuration %s" % (module, sys.argv[1]))
if steps:
    print("restoring from this run's directory step %d" % steps[-1], flush=True)
for step in range(steps[-1] + 1 if steps else 0, 40):
    print("completed step: %d, seconds: 0.100, TFLOP/s/device: 500.0, Tokens/s/device: 7282.0, "
          "total_weights: 1456, loss: 2.5" % step, flush=True)
"""


TITAN_SAVES = (
    "#!/bin/sh\nt() { echo \"%s$1\"; }\n" % TITAN
    + """
step() { t "step: $1  loss:  2.7506  grad_norm:  0.4065  memory:  3.07GiB(2.20%)  tps: 7,011 \
 tflops: 3.81  mfu: 0.38%"; }
t "Checkpointing active. Checkpoints will be loaded from and saved to $WHERE"
step 4
step 5
t "Saving the checkpoint (or staging if async is enabled)."
t "Finished saving the checkpoint (or staging if async is enabled)in 0.59 seconds."
step 6
exec sleep 1000
"""
)
DEEPSPEED_SAVES = """#!/bin/sh
step() { echo "steps: $1 loss: 2.5 iter time (s): 0.100 samples/sec: 31.250"; }
step 5
echo "[2026-11-22 12:16:44,627] [INFO] [torch_checkpoint_engine.py:21:save] [Torch] Saving\
 $WHERE/global_step5/mp_rank_00_model_states.pt..."
echo "[2026-11-22 12:16:44,646] [INFO] [torch_checkpoint_engine.py:23:save] [Torch] Saved\
 $WHERE/global_step5/mp_rank_00_model_states.pt."
step 6
exec sleep 1000
"""


@suite.test
def the_last_save_elsewhere_is_told_at_the_end():
    """Ranks that end at once behind their save: the node is asked before the job ends, and a place
    that nobody can see holds up no end."""
    python, kept, other = (
        write("saves-and-ends.sh", SAVES.replace("exec sleep 1000\n", ""), 0o755),
        place("kept-end"),
        place("other-end"),
    )
    for d in (kept, other, place("w")):
        os.makedirs(d, exist_ok=True)
    with Cluster(place("c-end"), nodes=1, gpus_per_node=2) as c:
        for where, words in (
            (other, "the engine saved to %s, and not to checkpoint.dir %s: " % (other, kept)),
            (place("nobody/made/this"), "at 5 of 20"),
        ):
            job = c.submit(
                json.dumps(
                    {
                        "recipe": 1,
                        "name": "ends",
                        "engine": {
                            "kind": "megatron-lm",
                            "python": python,
                            "entry": "x",
                            "workdir": place("w"),
                        },
                        "cluster": {"gpus": 2},
                        "steps": 20,
                        "env": {"WHERE": where},
                        "checkpoint": {"dir": kept, "every": 5},
                    }
                )
            )
            done = c.wait_state(job, ["failed", "completed"])
            need(done["state"] == "failed" and words in done["reason"], done)


@suite.test
def a_save_behind_a_link_is_none_elsewhere():
    """checkpoint.dir is a link, or lies below one, and the engine prints where that leads: the save
    is taken, and the job trains on."""
    os.makedirs(place("w"), exist_ok=True)
    os.makedirs(place("disk/runs"), exist_ok=True)
    os.symlink(place("disk"), place("scratch"))
    os.symlink(place("disk/runs"), place("by-name"))
    with Cluster(place("c-link"), nodes=1, gpus_per_node=4) as c:
        kinds = (
            ("deepspeed", DEEPSPEED_SAVES, {"entry": "x"}),
            ("torchtitan", TITAN_SAVES, {}),
            ("megatron-lm", SAVES, {"entry": "x"}),
        )
        # Where checkpoint.dir leads; and a third name of it, which only a stat of the place itself
        # tells.
        for (kind, script, engine), prints in (
            (k, p) for k in kinds for p in ("disk/runs", "by-name")
        ):
            where = kind + "-" + prints.replace("/", "-")
            kept, real = place("scratch/runs/" + where), place("disk/runs/" + where)
            fixtures.write(os.path.join(real, "global_step5/mp_rank_00_model_states.pt"), b"x")
            python = write("%s-link.sh" % kind, script, 0o755)
            job = c.submit(
                json.dumps(
                    {
                        "recipe": 1,
                        "name": kind,
                        "engine": dict(engine, kind=kind, python=python, workdir=place("w")),
                        "cluster": {"gpus": 1},
                        "steps": 20,
                        "env": {"WHERE": place(prints) + "/" + where},
                        "checkpoint": {"dir": kept, "every": 5, "resume": "never"},
                    }
                )
            )
            c.wait_iteration(job, 5 if kind == "megatron-lm" else 6)
            wait_until(
                lambda: [i for i in c.json("checkpoints", job)["items"] if i["attempt"] == 1],
                60,
                "%s, %s: its save is in the ledger" % (kind, prints),
            )
            equal(c.job(job)["state"], "running", "%s: %s" % (kind, c.job(job)))
            items = c.json("checkpoints", job)["items"]
            equal([i["iteration"] for i in items], [5], kind)
            if prints == "disk/runs":
                need(real not in str(items[0]["path"]), items)
                types = [e["type"] for e in c.json("events", job)["items"]]
                equal(
                    (types.count("checkpoint.elsewhere"), types.count("checkpoint.refused")),
                    (0, 0),
                    types,
                )
            c.run("cancel", job, "--now")


@suite.test
def a_save_elsewhere_that_says_no_end():
    """torchtitan says at its start where it will save, DeepSpeed of each file: the first save
    elsewhere ends the job when it goes on behind it."""
    os.makedirs(place("w"), exist_ok=True)
    with Cluster(place("c-noend"), nodes=1, gpus_per_node=4) as c:
        for kind, script, engine in (
            ("torchtitan", TITAN_SAVES, {}),
            ("deepspeed", DEEPSPEED_SAVES, {"entry": "x"}),
        ):
            kept, other, python = (
                place("kept-" + kind),
                place("other-" + kind),
                write("%s-saves.sh" % kind, script, 0o755),
            )
            os.makedirs(kept, exist_ok=True)
            fixtures.write(os.path.join(other, "global_step5/mp_rank_00_model_states.pt"), b"x")

            def submit(name, where, directory):
                os.makedirs(directory, exist_ok=True)
                return c.submit(
                    json.dumps(
                        {
                            "recipe": 1,
                            "name": name,
                            "engine": dict(engine, kind=kind, python=python, workdir=place("w")),
                            "cluster": {"gpus": 1},
                            "steps": 20,
                            "env": {"WHERE": where},
                            "checkpoint": {"dir": directory, "every": 5},
                        }
                    )
                )

            good, bad = submit("good", kept, kept), submit("bad", other, kept + "2")
            done = c.wait_state(bad, ["failed"])
            equal((done["attempt"], done["checkpoint"]), (1, None), done)
            need(
                "the engine saved to %s" % other in done["reason"]
                and "not to checkpoint.dir %s2: " % kept in done["reason"],
                done["reason"],
            )
            types = [e["type"] for e in c.json("events", bad)["items"]]
            equal(
                (types.count("checkpoint.elsewhere"), types.count("checkpoint.torn")), (1, 0), types
            )
            wait_until(lambda: c.json("status", good)["iteration"] == 6, 60, "the good one goes on")
            equal(c.json("status", good)["state"], "running", "the good one of " + kind)
            need(
                not [
                    e
                    for e in c.json("events", good)["items"]
                    if e["type"] in ("checkpoint.elsewhere", "checkpoint.refused")
                ],
                c.json("events", good)["items"],
            )
            c.run("cancel", good, "--now")


@suite.test
def maxtext_resumes_from_the_chosen_step():
    trees = {
        "new": ("src/maxtext/trainers/pre_train", "src/maxtext/configs"),
        "old": ("src/MaxText", "src/MaxText/configs"),
    }
    for tree, (module, configs) in trees.items():
        parts = module.split("/")[1:]
        for n in range(len(parts)):
            write("%s/src/%s/__init__.py" % (tree, "/".join(parts[: n + 1])), "")
        write("%s/%s/train.py" % (tree, module), TRAIN)
        write("%s/%s/base.yml" % (tree, configs), "")
    with Cluster(place("cmt"), nodes=1, gpus_per_node=2) as c:
        for tree, resume, expected, aside in (
            ("new", 20, 20, ["30"]),
            ("old", "auto", 30, []),
            ("new", "never", -1, ["10", "20", "30"]),
        ):
            top = place("mt-%s-%s" % (tree, resume))
            os.makedirs(top + "/moe/checkpoints")
            for i in (10, 20, 30):
                fixtures.Orbax().save(top, i, 1)
            job = c.submit(
                json.dumps(
                    {
                        "recipe": 1,
                        "name": "mt-%s" % tree,
                        "engine": {"kind": "maxtext", "workdir": place(tree)},
                        "cluster": {"gpus": 2},
                        "steps": 40,
                        "checkpoint": {"dir": top, "every": 10, "resume": resume},
                    }
                )
            )
            done = c.wait_state(job, ["completed", "failed"])
            log = c.run("logs", job).stdout
            equal(done["state"], "completed", "%s: %s\n%s" % (tree, done["reason"], log))
            need(("module %s/train.py, configuration %s/base.yml" % trees[tree]) in log, log)
            need(("step %d\n" % expected if expected > 0 else "completed step: 0,") in log, log)
            names = os.listdir(top + "/moe/set-aside/" + job + ".1") if aside else []
            equal(sorted(names), aside, "what was set aside")
            equal(
                sorted(n for n in os.listdir(top + "/moe/checkpoints") if n.isdigit()),
                sorted({"10", "20", "30"} - set(aside)),
                "what is left",
            )
            need(
                not aside
                or "set aside before resuming from %s: %s, now in"
                % (expected if expected > 0 else "nothing", " ".join(aside))
                in log,
                log,
            )


# An engine that nobody has seen: its own words, lines, checkpoints and flags, all in one file.
ACME = r"""
engine: 1
kind: acme
title: Acme trainer
source: this test
python: /usr/bin/python3
processes: node
argv: ["{python}", "{entry}", "{args}"]
args_equals: true
flags:
  steps: "n={steps}"
  checkpoint.dir: "out={checkpoint.dir}"
  checkpoint.every: "each={checkpoint.every}"
resume: ["from={iteration}"]
fresh: [fresh]
env:
  - {name: ACME_HEAD, value: "{master_addr}:{master_port}", reason: where the first process listens}
  - {name: ACME_ME, value: "{rank}/{world_size} with {local_gpus}", reason: who it is}
metrics_rank: first
lines:
  - kind: sample
    begin: '<<round (?<iteration>\d+)>>'
    separator: ';'
    fields: {penalty: loss, each: step_ms, held: mem_mib, speed: tokens_per_s}
  - {kind: saving, pattern: 'storing round (?<iteration>\d+)'}
  - {kind: resumed, pattern: 'back at round (?<iteration>\d+)'}
layout:
  subdir: kept
  entry: '^round\.(?<iteration>\d+)$'
  markers: [WHOLE]
needs_steps: true
may_change: [cluster.gpus]
"""
ACME_PY = r"""
import os, sys, time
args = dict(w.split("=", 1) for w in sys.argv[1:] if "=" in w)
me, first = os.environ["RANK"], int(args.get("from", 0)) + 1
told = "|".join((os.environ["ACME_HEAD"], os.environ["ACME_ME"], " ".join(sys.argv[1:])))
open(os.path.join(args["log"], "start.%s.%s" % (os.environ["MOE_ATTEMPT"], me)), "w").write(told)
if "from" in args:
    open(os.path.join(args["out"], "kept", "round.%s" % args["from"], "WHOLE")).read()
    print("back at round %s" % args["from"], flush=True)
for i in range(first, int(args["n"]) + 1):
    time.sleep(0.02)
    print("[1m<<round %d>> penalty: %.4f; each: 20.0; held: 1,024; speed=4,000; other: x"
          % (i, 9.0 / i), flush=True)
    if me == "0" and i % int(args["each"]) == 0:
        d = os.path.join(args["out"], "kept", "round.%d" % i)
        os.makedirs(d)
        print("storing round %d" % i, flush=True)
        open(os.path.join(d, "data"), "w").write("x" * 100)
        open(os.path.join(d, "WHOLE"), "w").write("yes")
"""


def data_dir():
    """A MOE_DATA_DIR with one more engine than the shipped one."""
    path = place("data")
    if not os.path.isdir(path):
        shutil.copytree(os.path.join(ROOT, "config"), path)
        write("data/engines/acme.yaml", ACME)
    return path


class OwnData(Cluster):
    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.env["MOE_DATA_DIR"] = data_dir()


@suite.test
def an_engine_by_data_alone():
    entry, log, out = write("acme.py", ACME_PY), place("acme-log"), place("acme-out")
    os.makedirs(log)
    os.makedirs(out)
    with OwnData(place("c2"), nodes=2, gpus_per_node=2) as c:
        doc = {
            "recipe": 1,
            "name": "acme",
            "engine": {"kind": "acme", "entry": entry, "workdir": WORK, "args": {"log": log}},
            "cluster": {"gpus": 4},
            "steps": 400,
            "checkpoint": {"dir": out, "every": 20},
        }
        job = c.submit(json.dumps(doc))
        c.wait_iteration(job, 70)
        ranks = c.json("ranks", job)["items"]
        equal([r["rank"] for r in ranks], [0, 1], "ranks, one per node")
        with open(os.path.join(log, "start.1.1")) as f:
            head, me, words = f.read().split("|")
        equal(me, "1/2 with 2", "who rank 1 is")
        need(head.startswith(("127.", "10.", "192.", "172.", "n")) and ":" in head, head)
        equal(words, "n=400 out=%s each=20 log=%s fresh" % (out, log), "words of rank 1")
        os.kill(ranks[1]["pid"], signal.SIGKILL)
        wait_until(
            lambda: c.job(job)["attempt"] == 2 and c.job(job)["state"] == "running", 60, "attempt 2"
        )
        words = wait_until(
            lambda: open(os.path.join(log, "start.2.0")).read().split("|")[2].split(),
            30,
            "attempt 2 of the engine",
        )
        resumed = int(words[-1].split("=")[1])
        need(words[-1].startswith("from=") and resumed >= 60 and resumed % 20 == 0, words)
        done = c.wait_state(job, ["completed", "failed"], 60)
        equal(
            (done["state"], done["restarts"], done["iteration"]),
            ("completed", 1, 400),
            "end: %s" % done["reason"],
        )
        rows = list(csv.DictReader(io.StringIO(c.run("metrics", job, "--csv").stdout)))
        after = [r for r in rows if r["attempt"] == "2"]
        equal(int(after[0]["iteration"]), resumed + 1, "first iteration after the resume")
        equal(
            [float(after[0][k]) for k in ("step_ms", "tokens_per_s_per_gpu")],
            [20.0, 1000.0],
            "rates over 4 GPUs",
        )
        equal(round(float(after[0]["mem_gb"]), 6), 1.073742, "memory of 1024 MiB")
        need(
            any(r["iteration"] == resumed for r in c.json("checkpoints", job)["items"]),
            "the ledger lacks what was resumed from",
        )


@suite.test
def what_cannot_resume_is_said_at_submit():
    entry, log, out = write("acme.py", ACME_PY), place("acme-log2"), place("acme-out2")
    os.makedirs(log)
    os.makedirs(out)
    with OwnData(place("c6"), nodes=1, gpus_per_node=2) as c:

        def submit(layers, gpus=2, **checkpoint):
            doc = {
                "recipe": 1,
                "name": "acme",
                "engine": {"kind": "acme", "entry": entry, "workdir": WORK, "args": {"log": log}},
                "cluster": {"gpus": gpus},
                "steps": 5,
                "model": {"layers": layers, "hidden": 64, "heads": 4, "ffn": 128, "vocab": 100},
                "checkpoint": dict({"dir": out, "every": 5}, **checkpoint),
                "recovery": {"backoff": 0},
            }
            r = c.run("submit", write("acme.json", json.dumps(doc)))
            # a directory belongs to one unfinished job
            c.wait_state(r.stdout.split()[0], ["completed", "failed"])
            return r.stdout.split()[0], r.stderr

        job, said = submit(8)
        equal(said, "", "the first job of a directory")
        equal(submit(8, gpus=1)[1], "", "more or fewer GPUs, which the engine file allows")
        said = submit(16)[1]
        need(
            "model.layers 16 instead of 8" in said and "saved there" in said,
            "no warning of another model: %r" % said,
        )
        equal(submit(16, resume="never")[1], "", "a job that does not resume")


@suite.test
def iterations_without_metrics_are_counted():
    with Cluster(place("c7"), nodes=1, gpus_per_node=1) as c:
        for steps, said in (
            ("1 2 5 9", "(5 iterations between these have no metrics"),
            ("3 4 5", ""),
        ):
            doc = {
                "recipe": 1,
                "name": "some",
                "engine": {
                    "kind": "command",
                    "argv": ["/bin/sh", "-c", "for i in %s; do echo step $i loss 2; done" % steps],
                },
                "cluster": {"gpus": 1},
            }
            job = c.submit(json.dumps(doc))
            c.wait_state(job, ["completed", "failed"])
            for words in ([], ["--csv"]):
                err = c.run("metrics", job, *words).stderr
                need(
                    err.startswith(said) if said else not err,
                    lambda: "steps %s, %s: %r" % (steps, words, err),
                )


def prepare_recipe(name, prepare, argv, **engine):
    return json.dumps(
        {
            "recipe": 1,
            "name": name,
            "engine": dict(
                {"kind": "hooked", "prepare": prepare, "argv": argv, "workdir": WORK}, **engine
            ),
            "cluster": {"gpus": 4},
        }
    )


@suite.test
def prepare():
    data_dir()
    hooked = (
        open(os.path.join(ROOT, "config/engines/command.yaml"))
        .read()
        .replace("kind: command", "kind: hooked", 1)
    )
    write(
        "data/engines/hooked.yaml",
        hooked + "prepare: {hooks: true, limit: 5s}\nowned: {load: use checkpoint.dir}\n",
    )
    with OwnData(place("c3"), nodes=2, gpus_per_node=2) as c:
        count, seen = place("count"), place("seen")
        job = c.submit(
            prepare_recipe(
                "hooks",
                "echo $NODE_RANK >> %s; echo env.HOOK=node-$NODE_RANK; echo env.RANK=9; echo "
                "extra.lr=0.5; echo env.BAD >&2; echo env.ALSO-BAD=1" % count,
                ["/bin/sh", "-c", "echo rank $RANK $HOOK \"$@\" >> %s" % seen, "sh"],
            )
        )
        done = c.wait_state(job, ["completed", "failed"])
        equal(done["state"], "completed", done["reason"])
        equal(sorted(open(count).read().split()), ["0", "1"], "nodes that prepared, once each")
        equal(
            sorted(open(seen).read().splitlines()),
            ["rank %d node-%d --lr 0.5" % (r, r // 2) for r in range(4)],
            "what ranks got",
        )
        need(
            "env.HOOK=node-1" in c.run("logs", job, "--rank", 2).stdout,
            "output of prepare at the head of rank 2's log",
        )
        job = c.submit(
            prepare_recipe("stays", "echo env.HOOK=node-$NODE_RANK", ["/bin/sleep", "1000"])
        )
        c.wait_state(job, "running")
        item = [i for i in c.explain_env(job, "--rank", 3)["items"] if i["name"] == "HOOK"][0]
        equal((item["value"], item["source"]), ("node-1", "prepare"), "provenance of HOOK")
        c.run("cancel", job)
        c.wait_state(job, "cancelled")
        wait_until(lambda: not c.status()["steps"], 30, "the end of the step")
        doc = c.explain_env(job, "--rank", 3)
        equal(
            (doc["source"], doc["note"]),
            ("node", "attempt 1 has ended: this is what it was given"),
            "whose word it is",
        )
        equal(
            [(i["value"], i["source"]) for i in doc["items"] if i["name"] == "HOOK"],
            [("node-1", "prepare")],
            "HOOK after the job's end",
        )
        job = c.submit(
            prepare_recipe(
                "fails",
                [
                    "/bin/sh",
                    "-c",
                    "for i in 1 2 3 4 5 6 7; do echo line $i; done; echo no such data >&2; exit 3",
                ],
                ["/bin/true"],
            )
        )
        done = c.wait_state(job, ["completed", "failed"])
        equal(done["state"], "failed", "a job whose preparation fails")
        for text in ("exit code 3", "no such data", "line 7"):
            need(text in done["reason"], done["reason"])
        why = c.json("why", job)
        equal(why["reasons"][0]["code"], "user_error", "class")
        need(
            "engine.prepare" in why["next"]
            and not any("died first" in e for r in why["reasons"] for e in r["evidence"]),
            why,
        )
        equal(c.run("why", job).stdout.count("no such data"), 1, "how often the reason is shown")
        # what is moectl's: refused from a hook too, before any rank has run, unless the recipe lets
        # it pass
        ran = place("ran")
        job = c.submit(
            prepare_recipe(
                "elsewhere",
                "echo extra.load=/elsewhere",
                ["/bin/sh", "-c", "echo $@ >> %s" % ran, "sh"],
            )
        )
        done = c.wait_state(job, ["completed", "failed"])
        need(
            done["state"] == "failed"
            and "printed extra.load=/elsewhere, which is not its to decide: use checkpoint.dir"
            in done["reason"],
            done["reason"],
        )
        need(not os.path.exists(ran), "ranks ran with what the hook had said")
        need(
            "extra.load=/elsewhere" in c.run("events", job).stdout,
            "events say nothing of the refusal",
        )
        job = c.submit(
            prepare_recipe(
                "knowingly",
                "echo extra.load=/elsewhere",
                ["/bin/sh", "-c", "echo $@ >> %s" % ran, "sh"],
                args_unchecked=["load"],
            )
        )
        done = c.wait_state(job, ["completed", "failed"])
        equal(done["state"], "completed", done["reason"])
        equal(open(ran).read().splitlines(), ["--load /elsewhere"] * 4, "what ranks got")
        job = c.submit(prepare_recipe("missing", ["/nonexistent/program"], ["/bin/true"]))
        done = c.wait_state(job, ["completed", "failed"])
        need(done["state"] == "failed" and "/nonexistent/program" in done["reason"], done["reason"])
        job = c.submit(
            prepare_recipe(
                "slow", "echo waiting for the moon; sleep 1000 & sleep 1000", ["/bin/true"]
            )
        )
        done = c.wait_state(job, ["completed", "failed"], 30)
        need(
            done["state"] == "failed"
            and "not ended after 5 s" in done["reason"]
            and "waiting for the moon" in done["reason"],
            done["reason"],
        )


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@suite.test
def prepare_is_timed():
    """How long engine.prepare takes is the job's: while it runs in `why`, then per node in its
    document, `status` and `report`, also after a restart of the controller."""
    data_dir()
    gate = place("gate")
    hooked = (
        open(os.path.join(ROOT, "config/engines/command.yaml"))
        .read()
        .replace("kind: command", "kind: hooked", 1)
    )
    write("data/engines/hooked.yaml", hooked + "prepare: {hooks: true}\n")
    with OwnData(place("timed"), nodes=2, gpus_per_node=2) as c:
        # node 0 is done at once, node 1 when the test says so
        job = c.submit(
            prepare_recipe(
                "timed",
                "while [ $NODE_RANK = 1 -a ! -e %s ]; do sleep 0.05; done" % gate,
                ["/bin/true"],
            )
        )

        def waits():
            return [
                r
                for r in c.json("why", job)["reasons"]
                if r["code"] == "prepare"
                and r["text"].startswith("engine.prepare runs on 1 of 2 nodes, for ")
                and len(r["evidence"]) == 2
            ]

        why = wait_until(waits, 60, "one node is done, one is not")[0]
        equal(why["evidence"][0], "node-1: not done yet", why)
        need(why["evidence"][1].startswith("node-0: done in "), why)
        open(gate, "w").close()
        seen = c.wait_state(job, ("completed", "failed"))
        equal(seen["state"], "completed", seen["reason"])
        took = {n["node"]: n["ms"] for n in seen["prepare"]["nodes"]}
        need(min(took.values()) >= 0 and sorted(took) == ["node-0", "node-1"], took)
        # who began first may have taken longer than who ended last
        longest = seen["prepare"]["nodes"][0]["node"]
        equal(longest, max(took, key=took.get), "the slowest first: %s" % took)
        equal(
            seen["prepare"]["gpu_s"],
            sum(took.values()) * 2 / 1000,
            "what it cost: %s" % seen["prepare"],
        )
        need(
            "prepare      %.1f s on %s, the longest of 2 nodes; " % (took[longest] / 1000, longest)
            in c.run("status", job).stdout,
            c.run("status", job).stdout,
        )
        report = c.json("report", job)
        equal(report["prepare"], seen["prepare"], "the report's")
        need(
            report["gpu_seconds"]["launch"] >= report["prepare"]["gpu_s"],
            "a part of launch: %s" % report,
        )
        need(
            "engine.prepare: " + seen["prepare"]["text"] in c.run("report", job).stdout,
            c.run("report", job).stdout,
        )
        os.kill(c.status()["moed"]["pid"], signal.SIGKILL)
        c.up()
        equal(c.job(job)["prepare"], seen["prepare"], "over a new controller")
        job = c.submit(prepare_recipe("fails", "exit 3", ["/bin/true"]))
        seen = c.wait_state(job, ("completed", "failed"))
        need(
            seen["state"] == "failed" and seen["prepare"]["nodes"],
            "also of one that failed: %s" % seen,
        )
        need(
            "prepare"
            not in c.job(
                c.submit(
                    json.dumps(
                        {
                            "recipe": 1,
                            "name": "none",
                            "engine": {"kind": "command", "argv": ["/bin/true"]},
                            "cluster": {"gpus": 1},
                        }
                    )
                )
            ),
            "none",
        )


@suite.test
def prepare_dies_with_its_step():
    data_dir()
    write(
        "data/engines/hooked.yaml",
        open(os.path.join(ROOT, "config/engines/command.yaml"))
        .read()
        .replace("kind: command", "kind: hooked", 1)
        + "prepare: {hooks: true}\n",
    )
    with OwnData(place("c4"), nodes=1, gpus_per_node=4) as c:
        pids = place("pids")

        def begin(name):
            if os.path.exists(pids):
                os.unlink(pids)
            job = c.submit(
                prepare_recipe(
                    name,
                    "echo $$ >> %s; (setsid sleep 1000 & echo $! >> %s); exec sleep 1000"
                    % (pids, pids),
                    ["/bin/sleep", "1000"],
                )
            )
            wait_until(
                lambda: os.path.exists(pids) and len(open(pids).read().split()) == 2,
                30,
                "preparation begun",
            )
            return job, [int(p) for p in open(pids).read().split()]

        job, processes = begin("cancelled")
        c.run("cancel", job)
        c.wait_state(job, "cancelled", 30)
        need(not any(alive(p) for p in processes), "a preparation outlived its cancelled job")
        job, processes = begin("killed")
        os.kill(c.status()["steps"][0]["pid"], signal.SIGKILL)
        wait_until(
            lambda: not any(alive(p) for p in processes),
            30,
            "everything of the preparation gone with its supervisor",
        )
        c.run("cancel", job)
        c.wait_state(job, ["cancelled", "failed"], 30)


class Hub:
    """Stands for a hub of data sets and tokenizers and, below /simple, for a registry of packages,
    on loopback: the hub answers who brings the token; both count."""

    def __init__(self, token):
        hub = self
        self.asked, self.refused, self.packages = 0, 0, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path.startswith("/simple/"):
                    hub.packages.append(self.path[len("/simple/") :])
                    self.send_response(200)
                    self.end_headers()
                    return
                good = self.headers.get("Authorization") == "Bearer " + token
                hub.asked, hub.refused = hub.asked + good, hub.refused + (not good)
                self.send_response(200 if good else 401)
                self.end_headers()
                self.wfile.write(b"tokens" if good else b"")

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()


# Stands for pip: asks the registry for what it should install.
PIP = """#!/usr/bin/python3
import os, sys, urllib.request
for name in open(sys.argv[3]).read().split():
    urllib.request.urlopen(os.environ["PIP_INDEX_URL"] + "/" + name).read()
    print("pip was asked to " + " ".join(sys.argv[1:]))
"""
TITAN_TREE = {
    "primus/configs/modules/torchtitan/pre.yaml": "training: {steps: 50, local_batch_size: 1, "
    "global_batch_size: 4, seq_len: 128}\nparallelism: {data_parallel_shard_degree: -1}\n",
    "primus/configs/models/torchtitan/small.yaml": "model: {name: small, flavor: s, "
    "hf_assets_path: meta/small}\n",
    "titan.yaml": "work_group: ${PRIMUS_TEAM:amd}\nuser_name: root\nexp_name: e\nworkspace: ./o\n"
    "modules:\n  pre_trainer:\n    framework: torchtitan\n    config: pre.yaml\n"
    "    model: small.yaml\n    overrides: {}\n",
}


def primus_tree(name):
    """What stands for a checkout of Primus (tests/fake/primus): the trainer, its hooks, and beside
    a python a pip that says what it was asked."""
    root = place(name)
    shutil.copytree(os.path.join(ROOT, "tests/fake/primus"), root)
    for path, text in {**OWN, **TITAN_TREE}.items():
        write(os.path.join(root, path), text)
    write(os.path.join(root, "primus/cli/main.py"), open(os.path.join(root, "main.py")).read())
    write(
        os.path.join(root, "primus/cli/checkpoints.py"),
        open(os.path.join(ROOT, "tests/fixtures/checkpoints.py")).read(),
    )
    os.makedirs(os.path.join(root, "bin"))
    os.symlink(os.path.realpath("/usr/bin/python3"), os.path.join(root, "bin/python3"))
    write(os.path.join(root, "requirements.txt"), "nltk\n")
    write(os.path.join(root, "bin/pip"), PIP, 0o755)
    return root


def primus_recipe(root, name, args=None, **env):
    return json.dumps(
        {
            "recipe": 1,
            "name": name,
            "steps": 4,
            "cluster": {"gpus": 4},
            "parallelism": {"ep": 2, "pp": 1},
            "env": dict({"STAND_IN_STEP_S": "0.02"}, **env),
            "engine": {
                "kind": "primus-megatron",
                "workdir": root,
                "entry": "e.yaml",
                "python": root + "/bin/python3",
                "args": args or {"mock_data": True},
            },
        }
    )


def in_order(text, *parts):
    at = 0
    for part in parts:
        found = re.compile(part).search(text, at)
        need(found, "%r does not come next in: %s" % (part, text[at : at + 3000]))
        at = found.end()


def files_with(top, text):
    found = []
    for base, _, names in os.walk(top):
        for path in (os.path.join(base, n) for n in names):
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    found += [path] if text.encode() in f.read() else []
    return found


@suite.test
def primus_hooks():
    """What primus-cli does before the ranks, done by the shipped preparation: hooks once per node,
    each with what those before it said."""
    root, token = primus_tree("tree"), "hf_stand_in_0123456789abcdef"
    with Cluster(place("c-hooks"), nodes=2, gpus_per_node=2) as c, Hub(token) as hub:
        job = c.submit(primus_recipe(root, "mock", HF_HOME=place("hub")))
        done = c.wait_state(job, ["completed", "failed"])
        equal(done["state"], "completed", "with mock data: %s" % done["reason"])
        in_order(
            c.run("logs", job, "--rank", 0).stdout,
            r"the first hook, of train pretrain",
            r"\[prepare\] runner/helpers/hooks/03_first.sh: \d+ s\n",
            r"/05_second.sh: \d+ s\n",
            "/10_auto_nccl_net.sh left out",
            r"left out, since PRIMUS_SKIP_PIP is 1: pip install -r requirements.txt\n",
            "Skipping dataset preparation",
            r"/prepare_experiment.sh: \d+ s\n",
            r"\[prepare\] 3 hooks of primus/cli/main.py train pretrain on node 0: \d+ s\n",
            r"training \.\.\.",
        )
        need(
            "on node 1: " in c.run("logs", job, "--rank", 2).stdout, "the other node's preparation"
        )
        given = {i["name"]: i for i in c.explain_env(job, "--rank", 2)["items"]}
        equal(
            [
                (given[n]["value"], given[n]["source"])
                for n in ("STAND_IN_FIRST", "STAND_IN_SECOND", "AITER_LOG_LEVEL", "DATA_PATH")
            ],
            [(v, "prepare") for v in ("one two", "one two three", "WARNING", root + "/data")],
            "what hooks printed, after the job's end",
        )
        equal(
            (given["HF_HOME"]["value"], "NCCL_IB_HCA" in given),
            (place("hub"), False),
            "what the recipe says, and what no hook decides",
        )
        need(
            os.path.exists(root + "/third_party/Megatron-LM/megatron/core/datasets/helpers_cpp.so"),
            "the helper of data sets was not built",
        )
        write(root + "/hf.token", token + "\n", 0o600)
        real = dict(
            HF_ENDPOINT=hub.url,
            HF_TOKEN={"file": root + "/hf.token"},
            PRIMUS_SKIP_PIP="0",
            PIP_INDEX_URL=hub.url + "/simple",
        )
        equal(hub.packages, [], "what the registry was asked")
        job = c.submit(primus_recipe(root, "real", {"mock_data": False}, **real))
        equal(c.wait_state(job, ["completed", "failed"])["state"], "completed", "with a hub's data")
        data = root + "/data/bookcorpus/stand-in/bookcorpus_text_sentence"
        for rank in (0, 3):
            need(
                "> data of %s, 6 bytes" % data in c.run("logs", job, "--rank", rank).stdout,
                "rank %d has no data" % rank,
            )
        equal((hub.asked, hub.refused), (1, 0), "what the hub was asked, by both nodes together")
        equal(hub.packages, ["nltk"] * 2, "what the registry was asked, by each node")
        need(
            "pip was asked to install -r requirements.txt"
            in c.run("logs", job, "--rank", 0).stdout,
            "packages that the job wants",
        )
        equal(
            [i["value"] for i in c.explain_env(job)["items"] if i["name"] == "HF_TOKEN"],
            [None],
            "the token in explain env",
        )
        titan = json.loads(primus_recipe(root, "titan", **real))
        job = c.submit(
            json.dumps(
                dict(
                    titan,
                    engine=dict(
                        titan["engine"], kind="primus-torchtitan", entry="titan.yaml", args={}
                    ),
                    parallelism={},
                )
            )
        )
        done = c.wait_state(job, ["completed", "failed"])
        equal(done["state"], "completed", "torchtitan: %s" % done["reason"])
        for rank in (0, 3):
            need(
                "> tokenizer of %s/data/torchtitan/stand-in, 6 bytes" % root
                in c.run("logs", job, "--rank", rank).stdout,
                "rank %d has no tokenizer" % rank,
            )
        equal(hub.asked, 2, "what the hub was asked")
        shutil.rmtree(root + "/data")
        job = c.submit(primus_recipe(root, "tokenless", {"mock_data": False}, HF_ENDPOINT=hub.url))
        done = c.wait_state(job, ["completed", "failed"])
        need(
            done["state"] == "failed" and "HF_TOKEN must be set" in c.run("why", job).stdout,
            "%s: %s" % (done["reason"], c.run("why", job).stdout),
        )
        job = c.submit(
            primus_recipe(root, "off", {"mock_data": True}).replace(
                '"entry"', '"prepare": ":", "entry"'
            )
        )
        equal(c.wait_state(job, ["completed", "failed"])["state"], "completed", "without the hooks")
        need(
            "[prepare]" not in c.run("logs", job, "--rank", 0).stdout,
            "engine.prepare takes the hooks' place",
        )
        equal(files_with(c.dir, token), [], "files with the token")


@suite.test
def primus_hooks_in_a_checkout_of_somebody_else():
    """The shipped preparation as a user who may not write there: what it tells the ranks, by
    experiment and environment."""
    root, own = primus_tree("foreign"), place("own")
    for name, text in (
        ("titan", "framework: torchtitan\nworkspace: ${PRIMUS_WORKSPACE:./o}\n"),
        ("fixed", "workspace: ./output\n"),
        ("free", "workspace: ${PRIMUS_WORKSPACE:./output}\n"),
    ):
        write(root + "/%s.yaml" % name, text + "mock_data: true\n")
    subprocess.run(["chmod", "-R", "a-w,a+rX", root], check=True)
    os.chmod(WORK, 0o755)
    os.makedirs(own)
    os.chmod(own, 0o777)
    with open(os.path.join(ROOT, "config/engines/primus-hooks.sh")) as f:
        script = f.read()
    user = (
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        if os.geteuid() == 0
        else []
    )

    def begun(config, *words, **env):
        base = {
            "PATH": os.environ["PATH"],
            "MOE_JOB": "j-1",
            "TMPDIR": own,
            "NODE_RANK": "0",
            "PRIMUS_SKIP_PIP": "1",
        }
        return subprocess.run(
            user
            + [
                "/bin/bash",
                "-c",
                script,
                "primus-hooks.sh",
                "/usr/bin/python3",
                "primus/cli/main.py",
                "train",
                "pretrain",
                "--config",
                config + ".yaml",
                *words,
            ],
            cwd=root,
            env=dict(base, **env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE * 60,
        )

    def told(config, *words, **env):
        r = begun(config, *words, **env)
        need(r.returncode == 0, "%s: status %d: %s" % (config, r.returncode, r.stdout))
        equal([n for n in os.listdir(own) if n.startswith("tmp.")], [], "what is left in TMPDIR")
        return r.stdout, {
            k: v for k, v in re.findall(r"^(?:env|extra)\.([A-Za-z_.]+)=(.*)$", r.stdout, re.M)
        }

    there = own + "/run"
    with_checkpoints = dict(MOE_CHECKPOINT_DIR=there + "/checkpoints")
    text, said = told("free", **with_checkpoints)
    equal(
        (said["DATA_PATH"], said["HF_HOME"], said["PRIMUS_WORKSPACE"], said["backend_path"]),
        tuple(
            there + "/prepare/" + n for n in ("data", "data/huggingface", "output", "Megatron-LM.0")
        ),
        "beside the checkpoints",
    )
    need(
        os.path.exists(there + "/prepare/Megatron-LM.0/megatron/core/datasets/helpers_cpp.so"),
        "the helper of data sets: " + text,
    )
    said = told(
        "free",
        DATA_PATH=own + "/shared",
        HF_HOME=own + "/hub",
        PRIMUS_WORKSPACE=own + "/o",
        **with_checkpoints,
    )[1]
    equal(
        [said.get(k) for k in ("DATA_PATH", "HF_HOME", "PRIMUS_WORKSPACE")],
        [None] * 3,
        "what the job says itself",
    )
    said = told("fixed", **with_checkpoints)[1]
    equal(
        (said.get("PRIMUS_WORKSPACE"), said["PRIMUS_TEAM"]),
        (None, there + "/prepare/output"),
        "a fixed workspace",
    )
    write(there + "/prepare/data/torchtitan/stand-in/tokenizer.json", "{}")
    said = told("titan", **with_checkpoints)[1]
    equal(said["job.dump_folder"], there + "/prepare/output", "torchtitan's directory")
    need(
        "job.dump_folder" not in told("titan", "--job.dump_folder", "/d", **with_checkpoints)[1],
        "torchtitan's directory is the job's to say",
    )
    text, said = told("free", NNODES="2")
    equal(
        said["DATA_PATH"],
        "%s/moe-%d/j-1/prepare/data" % (own, 65534 if user else os.getuid()),
        "without a directory of checkpoints",
    )
    need("is seen by this node alone: name a checkpoint.dir, or DATA_PATH in env" in text, text)
    mine = "%s/moe-%d" % (own, 65534 if user else os.getuid())
    equal(os.stat(mine).st_mode & 0o777, 0o700, "the mode of a directory that others can name")
    told("free")  # what is ours is taken again
    for level in (mine + "/j-1/prepare", mine + "/j-1", mine):
        shutil.rmtree(level)
        trap = tempfile.mkdtemp(dir=WORK)
        os.chmod(trap, 0o777)
        os.symlink(trap, level)
        r = begun("free")
        need(
            r.returncode == 1
            and "%s is not a directory of this user's own: remove it, or name a checkpoint.dir"
            % level
            in r.stdout,
            "a link: %d %s" % (r.returncode, r.stdout),
        )
        equal(os.listdir(trap), [], "what was made behind the link")
        os.remove(level)
    if user:
        os.mkdir(mine)
        os.chmod(mine, 0o777)
        r = begun("free")
        need(
            r.returncode == 1 and mine + " is not a directory of this user's own" in r.stdout,
            "somebody else's: %d %s" % (r.returncode, r.stdout),
        )
        os.rmdir(mine)
    subprocess.run(["chmod", "-R", "u+w", root], check=True)


# Writes torchtitan's structured log and prints nothing: rank 1 stays behind at step 5 and saves.
TITAN_PY = r"""#!/usr/bin/python3
import json, os, sys, time
rank = int(os.environ["RANK"])
d = sys.argv[sys.argv.index("--dump_folder") + 1] + "/structured_logs"
os.makedirs(d, exist_ok=True)
open(d + "/training.global_rank_%d.old.jsonl" % rank, "a").close()
if os.environ["MOE_ATTEMPT"] == "1":
    os.utime(d + "/training.global_rank_%d.old.jsonl" % rank, (1, 1))
with open(d + "/training.global_rank_%d.20260821-abc.jsonl" % rank, "w") as f:
    def say(kind, step):
        f.write(json.dumps({"step": step, "pid": os.getpid(), "host_name": "h", "time_us": 1,
                            "log_type_name": kind, "seq_id": 1}) + "\n")
        f.flush()
    say("torch_distributed_init_start", 0)
    f.write("garbage\n{\"step\": \"x\", \"log_type_name\": 7}\n[1]\n" + "x" * 300000 + "\n")
    for i in range(1, 6 if rank == 1 else 10):
        say("fetching_batch_start", i)
        say("step_start", i)
        say("step_end", i)
    if rank == 1:
        say("checkpoint_save_start", 6)
    f.write('{"step": 77, "log_type_name": "step_end"')
    f.flush()
    time.sleep(1000)
"""


@suite.test
def heartbeat_files():
    python = write("titan.py", TITAN_PY, 0o755)
    with Cluster(place("c5"), nodes=1, gpus_per_node=2) as c:
        job = c.submit(
            json.dumps(
                {
                    "recipe": 1,
                    "name": "titan",
                    "engine": {
                        "kind": "torchtitan",
                        "python": python,
                        "workdir": WORK,
                        "args": {"dump_folder": "dump"},
                    },
                    "cluster": {"gpus": 2},
                    "steps": 10,
                }
            )
        )

        def progress():
            return {r["rank"]: r["iteration"] for r in c.json("ranks", job)["items"]} == {
                0: 9,
                1: 5,
            }

        wait_until(progress, 30, "iterations 9 and 5 from the files")
        step = c.status()["steps"][0]["pid"]
        children = [int(p) for p in open("/proc/%d/task/%d/children" % (step, step)).read().split()]
        equal(len(children), 3, "two ranks and a reader")
        c.run("cancel", job)
        c.wait_state(job, "cancelled", 30)
        wait_until(lambda: not any(alive(p) for p in children), 30, "the end of the step's reader")


if __name__ == "__main__":
    status = suite.main()
    shutil.rmtree(WORK, ignore_errors=True)
    sys.exit(1 if status else 0)
