#!/usr/bin/python3
"""Torch scripts that know nothing of moectl (tests/fixtures/scripts.py): what they leave in a
checkpoint directory is never trained over without a word, and is resumed when the recipe says
how. Usage: test_torch.py [TEST...]"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "fixtures"))
import checkpoints as fixtures  # noqa: E402
import scripts  # noqa: E402
from lib import BUILD, PATIENCE, ROOT, Skipped, Suite, equal, moectl, need, wait_until  # noqa: E402
from node_rig import processes  # noqa: E402
from rig import Rig, alive  # noqa: E402

SCRIPT = os.path.join(ROOT, "tests/fixtures/scripts.py")
suite = Suite()
RIG = []


def rig():
    if not RIG:
        RIG.append(Rig(nodes=1, gpus_per_node=2))
        RIG[0].up()
    return RIG[0]


def recipe(name, kind, args=(), **top):
    top = dict(
        {
            "recipe": 1,
            "name": name,
            "engine": {"kind": "torch", "entry": SCRIPT, "args": [kind] + list(args)},
            "cluster": {"gpus": 2},
        },
        **top,
    )
    return json.dumps(top)


def directory(name):
    path = os.path.join(rig().dir, name)
    os.makedirs(path)
    return path


def kill_rank(job, rank=0):
    pid = wait_until(lambda: rig().rank_pids(job).get(rank), 30, "rank %d of %s runs" % (rank, job))
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), 30, "the end of rank %d of %s" % (rank, job))


def gated(name, at):
    """Words of a script whose saves from iteration `at` on wait for let(): what is killed meanwhile
    is in no save."""
    return ["--gate=" + os.path.join(rig().dir, name + ".gate"), "--gate_at=%d" % at]


def let(name, attempt, word):
    """Saves of this attempt up to that iteration go on; `on`: all of them; `cut`: the next one to
    its middle."""
    path = os.path.join(rig().dir, "%s.gate.%d" % (name, attempt))
    with open(path + ".new", "w") as f:
        f.write(word)
    os.rename(path + ".new", path)
    return path


def looks(pid):
    """Is it the helper, and asleep between two passes? What lay there before the first is no
    save."""
    with open("/proc/%d/cmdline" % pid) as f, open("/proc/%d/stat" % pid) as g:
        return (
            "moe-ckpt" in f.read().split("\0")[0] and g.read().rpartition(")")[2].split()[0] == "S"
        )


def first_save(top, name, iteration):
    """Goes on once the helper that keeps copies has read the directory."""
    wait_until(
        lambda: [p for p, cmd in processes() if "--keep" in cmd and top + '"' in cmd and looks(p)],
        60,
        "a helper looks at " + top,
    )
    let(name, 1, str(iteration))


def waits(job, *names):
    """The job waits, and names the files and the three ways on, wherever a user looks."""

    def told():
        w = rig().json("why", job)
        return [r for r in w["reasons"] if r["code"] == "checkpoint-unread"] and w

    why = wait_until(told, 30, "%s waits for a word" % job)
    reason = [r for r in why["reasons"] if r["code"] == "checkpoint-unread"][0]
    status = rig().job(job)
    for name in names:
        need(
            name in reason["text"]
            and name in status["reason"]
            and any(name in e for e in reason["evidence"]),
            lambda: "%s is not named: %s, %s" % (name, why, status["reason"]),
        )
    for way in ("checkpoint.layout", "--from 0", "another checkpoint.dir"):
        need(
            way in why["next"] and way in status["reason"],
            lambda: "%r is not among the ways on: %s" % (way, why["next"]),
        )
    events = [e for e in rig().json("events", job)["items"] if e["type"] == "checkpoint.unread"]
    need(
        events and all(name in events[-1]["message"] for name in names),
        lambda: "event: %s" % events,
    )
    return status


@suite.test
def a_directory_says_what_nobody_reads():
    top = directory("offline")
    fixtures.write(
        os.path.join(top, "ckpt.pt"), fixtures.archive({"iter_num": 5}, b"w" * (2 << 20))
    )
    fixtures.write(os.path.join(top, "last/model.safetensors"), fixtures.safetensors(2 << 20))
    fixtures.write(os.path.join(top, "checkpoint-20/pytorch_model.bin"), b"w" * (2 << 20))
    fixtures.write(os.path.join(top, "step_30/model.pt"), fixtures.archive({}, b"w" * (2 << 20)))
    fixtures.write(os.path.join(top, "step_30/COMPLETE"), "no list")
    for name in ("small.pt", "settings/a.pt"):
        fixtures.write(os.path.join(top, name), b"w" * 1000)
    fixtures.write(os.path.join(top, "events.log"), b"w" * (2 << 20))
    os.symlink("ckpt.pt", os.path.join(top, "link.pt"))
    doc = json.loads(moectl("checkpoints", "--dir", top, "--engine", "torch", "--json").stdout)
    equal(
        sorted(u["name"] for u in doc["unread"]),
        ["checkpoint-20/", "ckpt.pt", "last/"],
        "what nobody reads",
    )
    equal(doc["resume"], {"iteration": 30}, "what somebody reads")
    os.unlink(os.path.join(top, "step_30/COMPLETE"))
    out = moectl("checkpoints", "--dir", top, "--engine", "torch").stdout
    need(
        all("%s (" % n in out for n in ("step_30/", "ckpt.pt")) and "checkpoint.layout" in out, out
    )
    for kind, name in (
        ("megatron-lm", "iter_0000020/mp_rank_00/model_optim_rng.pt"),
        ("torchtitan", "step-20/a.pt"),
        ("maxtext", "moe/checkpoints/20/a.bin"),
        ("deepspeed", "global_step20/a.pt"),
    ):
        top = directory("offline-" + kind)
        fixtures.write(os.path.join(top, name), b"w" * (2 << 20))
        doc = json.loads(moectl("checkpoints", "--dir", top, "--engine", kind, "--json").stdout)
        equal(
            ("unread" in doc, doc["resume"]), (False, None), "entries of %s, damaged or not" % kind
        )
        fixtures.write(os.path.join(top, "ckpt.pt"), b"w" * (2 << 20))
        doc = json.loads(moectl("checkpoints", "--dir", top, "--engine", kind, "--json").stdout)
        equal([u["name"] for u in doc["unread"]], ["ckpt.pt"], kind)
    many = directory("offline-many")
    for i in range(40):
        fixtures.write(os.path.join(many, "m%d.pt" % i), b"w" * (1 << 20), i)
    doc = json.loads(moectl("checkpoints", "--dir", many, "--engine", "torch", "--json").stdout)
    equal(
        [u["name"] for u in doc["unread"]],
        ["m%d.pt" % i for i in range(39, 23, -1)],
        "the newest are named",
    )


BESIDE = (
    "logs1/out.txt",
    "version_0/hparams.yaml",
    "version_0/events.out.tfevents.1763.h.1.0",
    "20261122/train.log",
    "20261122/.hydra/config.yaml",
    "rotated.log.3",
)


@suite.test
def numbered_directories_without_state_are_no_checkpoints():
    """Logs of a day and Lightning's version_0/ hold nothing up; model files without their marker
    do."""
    top = directory("beside")
    os.makedirs(os.path.join(top, "run1"))
    for name in BESIDE:
        fixtures.write(
            os.path.join(top, name), b"w" * ((2 << 20) if name.endswith(".log") else 100)
        )
    look = ("checkpoints", "--dir", top, "--engine", "torch", "--json")
    equal(json.loads(moectl(*look).stdout)["items"], [], "checkpoints among logs")
    job = rig().submit(
        recipe(
            "beside",
            "nanogpt",
            ["--max_iters=30", "--out_dir=" + directory("beside-out")],
            checkpoint={"dir": top},
        )
    )
    rig().wait_state(job, "completed", 60)
    for name in (
        "version_7/checkpoints/epoch=0.ckpt",
        "step_8/__0_0.distcp",
        "step_9/rank_0.safetensors",
        "5/state",
    ):
        where = directory("beside-" + name.split("/")[0])
        fixtures.write(os.path.join(where, name), b"w" * 100)
        fixtures.write(os.path.join(where, name.split("/")[0], "train.log"), b"w")
        items = json.loads(
            moectl("checkpoints", "--dir", where, "--engine", "torch", "--json").stdout
        )["items"]
        equal([(c["state"], c["reason"]) for c in items], [("torn", "COMPLETE is missing")], name)
    for name, text in (("marked_3", b""), ("link_3", None)):
        where = directory("beside-" + name)
        os.makedirs(os.path.join(where, name))
        path = os.path.join(where, name, "COMPLETE")
        if text is None:
            os.symlink("/nowhere", path)
        else:
            fixtures.write(path, text)
        items = json.loads(
            moectl("checkpoints", "--dir", where, "--engine", "torch", "--json").stdout
        )["items"]
        equal([c["state"] for c in items], ["torn"], name)
    for kind, name in (
        ("megatron-lm", "iter_0000100"),
        ("torchtitan", "step-20"),
        ("deepspeed", "global_step20"),
    ):
        where = directory("beside-" + kind)
        os.makedirs(os.path.join(where, name))
        items = json.loads(
            moectl("checkpoints", "--dir", where, "--engine", kind, "--json").stdout
        )["items"]
        equal([c["state"] for c in items], ["torn"], "an empty one of " + kind)


@suite.test
def what_lay_there_is_not_trained_over():
    top = directory("before")
    path = os.path.join(top, "ckpt.pt")
    fixtures.write(path, fixtures.archive({"iter_num": 500}, b"w" * (2 << 20)))
    before = open(path, "rb").read()
    job = rig().submit(
        recipe("before", "nanogpt", ["--out_dir=" + top, "--max_iters=30"], checkpoint={"dir": top})
    )
    equal(waits(job, "ckpt.pt")["state"], "queued", "state")
    equal(open(path, "rb").read(), before, "the file")
    rig().run("restart", job, "--from", "0")
    rig().wait_state(job, "completed", 60)
    need(open(path, "rb").read() != before, "it never began")


@suite.test
def its_own_work_is_not_trained_over():
    """The script overwrites one file, and nobody said how it is resumed: after a kill the job
    waits."""
    top = directory("own")
    job = rig().submit(
        recipe(
            "own",
            "nanogpt",
            ["--out_dir=" + top, "--max_iters=100000"] + gated("own", 40),
            checkpoint={"dir": top},
        )
    )
    wait_until(lambda: os.path.exists(os.path.join(top, "ckpt.pt")), 60, "a first save")
    rig().wait_iteration(job, 25)
    kill_rank(job)
    equal(waits(job, "ckpt.pt")["state"], "recovering", "state")
    rig().run("cancel", job)
    rig().wait_state(job, "cancelled", 30)
    top = directory("own-hf")
    job = rig().submit(
        recipe(
            "own-hf", "trainer", ["--out_dir=" + top, "--max_iters=100000"], checkpoint={"dir": top}
        )
    )
    wait_until(
        lambda: os.path.exists(os.path.join(top, "checkpoint-40/trainer_state.json")),
        60,
        "two saves",
    )
    kill_rank(job)
    waits(job, "checkpoint-20/", "checkpoint-40/")
    rig().run("cancel", job)


def resumed(job, attempt=2):
    """Where the newest attempt was told to begin, once it is that attempt."""
    wait_until(
        lambda: rig().job(job)["attempt"] >= attempt, 60, "attempt %d of %s" % (attempt, job)
    )
    started = wait_until(
        lambda: [
            e
            for e in rig().json("events", job)["items"]
            if e["type"] == "job.started" and e["attempt"] == attempt
        ],
        30,
        "the start of attempt %d" % attempt,
    )
    return started[-1]["data"]["resume"]


@suite.test
def what_they_print_is_read():
    job = rig().submit(
        recipe("prints", "nanogpt", ["--out_dir=" + directory("prints"), "--max_iters=40"])
    )
    rig().wait_state(job, "completed", 60)
    items = rig().json("metrics", job)["items"]
    equal(
        [
            (s["iteration"], s["loss"], s["step_ms"], round(s["mfu"], 4))
            for s in items
            if s["iteration"] == 30
        ],
        [(30, round(scripts.loss(30), 4), 20.0, 0.1288)],
        "nanoGPT's line",
    )
    top = directory("prints-hf")
    job = rig().submit(
        recipe(
            "prints-hf",
            "trainer",
            ["--out_dir=" + top, "--max_iters=100", "--step_ms=30"],
            steps=100,
        )
    )
    rig().wait_iteration(job, 60)
    rig().wait_state(job, ["completed", "failed"], 60)
    items = [s for s in rig().json("metrics", job)["items"]]
    need(
        all(a["iteration"] < b["iteration"] <= 100 for a, b in zip(items, items[1:])),
        lambda: "iterations: %s" % [s["iteration"] for s in items],
    )
    told = [s for s in items if s["loss"] is not None]
    need(
        len(told) > 10
        and all(
            s["grad_norm"] == 1.25
            and s["lr"] == 4.9e-05
            and abs(s["loss"] - scripts.loss(s["iteration"])) < 1
            for s in told
        ),
        told,
    )


@suite.test
def rules_of_a_recipe_are_tried():
    top = directory("classify")
    log, path = os.path.join(top, "log"), os.path.join(top, "recipe.yaml")
    fixtures.write(
        log,
        "starts\nit 5 nll 2.5\nit 6 nll 2.25 speed 12\n"
        "iter 7: loss 2.0, time 15.00ms, mfu 10.00%\n5 "
        + "xyzw" * 1900
        + "\nRuntimeError: HIP out of memory\n",
    )
    rules = [
        {"kind": "sample", "pattern": r"\bit (?<iteration>\d+) nll (?<loss>\S+)"},
        {"kind": "sample", "pattern": r"(?<iteration>\d+) .*x.*y.*z.*w.*x.*y(?:p|q)"},
    ]
    fixtures.write(path, recipe("rules", "nanogpt", metrics={"lines": rules}))
    doc = json.loads(moectl("classify", "--log", log, "--recipe", path, "--json").stdout)
    first, second = doc["lines"]["rules"][:2]
    equal(
        (first["rule"], first["pattern"], first["matched"], first["first"], first["gave_up"]),
        (1, rules[0]["pattern"], 2, 2, 0),
        "the first rule",
    )
    equal(
        (second["matched"], second["gave_up"], second["gave_up_at"]), (0, 1, 5), "the second rule"
    )
    equal(
        (doc["lines"]["last"]["iteration"], doc["lines"]["last"]["loss"]),
        (7, 2.0),
        "the last sample",
    )
    out = moectl("classify", "--log", log, "--recipe", path).stdout
    need(
        "rule 1 (sample): 2 times, first on line 2" in out
        and "rule 2 backtracked too much on 1 lines, first on line 5" in out,
        out,
    )
    equal(
        sorted(json.loads(moectl("classify", "--log", log, "--json").stdout)),
        ["class", "evidence", "first_rank", "rule", "why"],
        "without a recipe",
    )
    need(
        moectl("classify", "--exit", "1", "--recipe", path, check=False).returncode == 2,
        "--recipe without --log",
    )
    script = "for i in range(1, 21): print('it %d nll %s' % (i, 3.0 - i / 100), flush=True)"
    job = rig().submit(
        json.dumps(
            {
                "recipe": 1,
                "name": "rules",
                "engine": {"kind": "command", "argv": ["/usr/bin/python3", "-c", script]},
                "cluster": {"gpus": 1},
                "metrics": {"lines": rules},
            }
        )
    )
    rig().wait_state(job, "completed", 60)
    equal(
        [s["loss"] for s in rig().json("metrics", job)["items"] if s["iteration"] == 20],
        [2.8],
        "a job's own rule",
    )


@suite.test
def one_file_is_resumed_as_the_recipe_says():
    top = directory("one-file")
    # What ends a job may end it in the middle of a save: the next one waits, and the one before is
    # kept.
    doc = recipe(
        "one-file",
        "nanogpt",
        ["--out_dir=" + top, "--max_iters=100000"] + gated("one-file", 20),
        checkpoint={"dir": top, "layout": "ckpt.pt", "resume_args": ["--init_from=resume"]},
    )
    job = rig().submit(doc)
    first_save(top, "one-file", 20)
    let("one-file", 2, "20")
    wait_until(
        lambda: os.path.exists(os.path.join(top, ".moe-kept/whole/ckpt.pt")),
        60,
        "a save that is kept",
    )
    kill_rank(job, 1)
    at = resumed(job)
    equal(at, 20, "resumed from")
    wait_until(
        lambda: "Resuming training from" in rig().run("logs", job).stdout,
        30,
        "the script was told to resume",
    )
    wait_until(
        lambda: [
            s
            for s in rig().json("metrics", job)["items"]
            if s["attempt"] == 2 and s["iteration"] > at
        ],
        60,
        "iterations behind its first save",
    )
    ledger = {c["iteration"]: c["state"] for c in rig().json("checkpoints", job)["items"]}
    need(ledger.get(at) in ("verified", "complete", "deleted"), ledger)
    rig().run("cancel", job)
    rig().wait_state(job, "cancelled", 30)
    job = rig().submit(doc)
    need(resumed(job, 1) >= at, "a new job resumes from it")
    rig().run("cancel", job)


@suite.test
def directories_are_resumed_as_the_recipe_says():
    top = directory("directories")
    job = rig().submit(
        recipe(
            "directories",
            "trainer",
            ["--out_dir=" + top, "--max_iters=100000"] + gated("directories", 60),
            checkpoint={
                "dir": top,
                "layout": "checkpoint-{iteration}/trainer_state.json",
                "resume_args": ["--resume_from_checkpoint", "{dir}/checkpoint-{iteration}"],
            },
        )
    )
    wait_until(
        lambda: os.path.exists(os.path.join(top, "checkpoint-40/trainer_state.json")),
        60,
        "two saves",
    )
    middle = let("directories", 1, "cut") + ".cut"
    wait_until(lambda: os.path.exists(middle), 60, "a third one is in its middle")
    let("directories", 2, "on")
    kill_rank(job)
    equal(resumed(job), 40, "the newest whole one")
    wait_until(
        lambda: os.path.exists(os.path.join(top, "checkpoint-60/trainer_state.json")),
        60,
        "it trains on",
    )
    rig().run("cancel", job)


ENDLESS = ["--max_iters=100000", "--interval=30"]
ONE_FILE = {"layout": "ckpt.pt", "resume_args": ["--init_from=resume"]}


def iteration_in(path):
    try:
        return scripts.read(path)["iter_num"]
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def saved(job, iteration):
    return [
        e
        for e in rig().json("events", job)["items"]
        if e["type"] == "checkpoint.saved" and e["data"]["iteration"] == iteration
    ]


def cut_save(job, top, name, last, attempt=1):
    """Kills rank 0 in the middle of a save, after a copy of the one before, that of iteration
    `last`, was kept."""
    path, kept = os.path.join(top, "ckpt.pt"), os.path.join(top, ".moe-kept/whole/ckpt.pt")
    wait_until(lambda: iteration_in(kept) == last, 60, "a copy is kept")
    need(
        os.stat(kept).st_ino != os.stat(path).st_ino and os.stat(path).st_nlink == 1, "a hard link"
    )
    wait_until(
        lambda: saved(job, last),
        30,
        "the save of iteration %d is reported: it is when its copy is there" % last,
    )
    middle = let(name, attempt, "cut") + ".cut"
    wait_until(lambda: os.path.exists(middle), 60, "a save is in its middle")
    need(os.path.getsize(path) < os.path.getsize(kept), "a part of a save")
    kill_rank(job)


@suite.test
def a_cut_save_costs_the_iterations_since_the_one_before():
    """The file is torn in the middle of a save: its copy goes back by a copy, and what the save
    left stays there under another name."""
    top = directory("cut")
    path = os.path.join(top, "ckpt.pt")
    job = rig().submit(
        recipe(
            "cut",
            "nanogpt",
            ["--out_dir=" + top] + ENDLESS + gated("cut", 30),
            checkpoint=dict(ONE_FILE, dir=top),
        )
    )
    last = 30
    first_save(top, "cut", last)
    for attempt in (2, 3):  # a resumed one saves once more what it resumed from
        let("cut", attempt, str(last))
    cut_save(job, top, "cut", last)
    equal(resumed(job), last, "iteration resumed from")
    need(
        iteration_in(os.path.join(top, "ckpt.pt.torn-1")) is None
        and os.path.getsize(os.path.join(top, "ckpt.pt.torn-1")) > 0,
        "what the save left is gone",
    )
    equal(
        iteration_in(os.path.join(top, ".moe-kept/whole/ckpt.pt")), last, "the copy is still there"
    )
    c = [c for c in rig().json("checkpoints", job)["items"] if c["iteration"] == last][0]
    need(c["state"] == "verified" and "ckpt.pt.torn-1" in c["reason"], c)
    wait_until(
        lambda: "Resuming training from" in rig().run("logs", job).stdout,
        30,
        "the script was told to resume",
    )
    cut_save(job, top, "cut", last, 2)
    equal(resumed(job, 3), last, "resumed again")
    rig().run("cancel", job)
    rig().wait_state(job, "cancelled", 60)
    need(
        iteration_in(path) is not None
        or os.path.exists(os.path.join(top, ".moe-kept/whole/ckpt.pt")),
        os.listdir(top),
    )
    # a fresh start that was asked for takes neither the file nor its copy
    job = rig().submit(
        recipe(
            "cut-fresh",
            "nanogpt",
            ["--out_dir=" + top] + ENDLESS,
            checkpoint=dict(ONE_FILE, dir=top, resume="never"),
        )
    )
    equal(resumed(job, 1), -1, "a fresh start")
    wait_until(
        lambda: os.path.exists(os.path.join(top, ".moe-kept/past/ckpt.pt"))
        or not os.path.exists(os.path.join(top, ".moe-kept/whole")),
        30,
        "the copy of the run before is put aside",
    )
    rig().run("cancel", job)
    rig().wait_state(job, "cancelled", 60)


@suite.test
def directories_are_kept_and_put_back_too():
    """moe-ckpt alone: a directory that each save writes over, an interrupted copy of before, and
    what lay there before the job."""
    top = directory("keeper")
    layout = {
        "entry": "^last$",
        "given": True,
        "unnumbered": True,
        "state_words": ["iter_num"],
        "formats": [{"key": r"\\.pt$", "value": "torch"}],
    }

    def save(n, name="last"):
        fixtures.write(
            os.path.join(top, name, "part/model.pt"), fixtures.archive({"iter_num": n}, b"w" * 5000)
        )
        fixtures.write(os.path.join(top, name, "opt.pt"), fixtures.archive({}, b"w" * 9000))

    def kept():
        return iteration_in(os.path.join(top, ".moe-kept/whole/last/part/model.pt"))

    save(10)
    fixtures.write(os.path.join(top, ".moe-kept/next/last/half"), "a copy that a kill cut")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.settimeout(120)
    keeper = subprocess.Popen(
        [
            os.path.join(BUILD, "moe-ckpt"),
            "--keep",
            json.dumps({"kind": "scan", "dir": top, "layout": layout}),
            "--resumed",
        ],
        stdin=subprocess.PIPE,
        preexec_fn=lambda: os.dup2(theirs.fileno(), 3),
        pass_fds=(3,),
    )
    try:
        wait_until(lambda: kept() == 10, 20, "what lay there is copied")
        for n in (20, 30):
            save(n)
            equal(
                ours.recv(4096).decode(),
                "CHECKPOINT=%s/last\nITERATION=%d\n" % (top, n),
                "announced",
            )
            equal(kept(), n, "kept")
        fixtures.cut(os.path.join(top, "last/opt.pt"), 100)
    finally:
        keeper.stdin.close()
        keeper.wait(PATIENCE * 120)

    def scan(**more):
        order = {
            "kind": "scan",
            "dir": top,
            "layout": layout,
            "level": "sizes",
            "job": 7,
            "attempt": 2,
            "world": 4,
            "restore": True,
            **more,
        }
        r = subprocess.run(
            [os.path.join(BUILD, "moe-ckpt"), "--scan", json.dumps(order), "--allow-root"],
            stdout=subprocess.PIPE,
            check=True,
        )
        return json.loads(r.stdout)["items"]

    equal([(c["iteration"], c["complete"]) for c in scan(restore=False)], [(30, False)], "torn")
    equal(
        [(c["iteration"], c["complete"], "last.torn-1" in c["reason"]) for c in scan()],
        [(30, True, True)],
        "put back",
    )
    equal(
        sorted(os.listdir(top)),
        [".moe-kept", ".moe-manifests", "last", "last.torn-1"],
        "what lies there",
    )
    equal(os.listdir(os.path.join(top, ".moe-kept")), ["whole"], "the copy stays")
    shutil.rmtree(os.path.join(top, "last"))
    equal(scan(attempt=1), [], "a new job takes nothing back that somebody removed")
    equal([c["iteration"] for c in scan()], [30], "a job whose save is gone does")


def documented(name):
    """The recipe of docs/scripts.md with that name, as a file."""
    with open(os.path.join(ROOT, "docs/scripts.md")) as f:
        found = [
            b
            for b in re.findall(r"^```yaml\n(.*?)^```", f.read(), re.M | re.S)
            if "\nname: %s\n" % name in b
        ]
    path = os.path.join(rig().dir, name + ".yaml")
    fixtures.write(path, found[0])
    return path


def stand_in(name, entry, kind, words):
    """A directory with a script of that name, which plays it: it takes the same words."""
    top = directory(name + "-workdir")
    fixtures.write(
        os.path.join(top, entry),
        "import runpy, sys\nsys.argv = [sys.argv[0], %r] + (%s)(sys.argv[1:]) + %r\n"
        "runpy.run_path(%r, run_name='__main__')\n"
        % (
            kind,
            "lambda w: [x for x in w if x.startswith('--')]"
            if kind == "nanogpt"
            else "lambda w: ['--out_dir=' + w[w.index('--output_dir') + 1], '--max_iters=' + "
            "w[w.index('--max_steps') + 1], '--interval=' + w[w.index('--save_steps') + 1]] + "
            "(w[w.index('--resume_from_checkpoint'):] if '--resume_from_checkpoint' in w else [])",
            words,
            SCRIPT,
        ),
    )
    return top


@suite.test
def the_documented_recipes_are_killed_and_resumed():
    """docs/scripts.md, word by word, but for directories, the interpreter and the number of steps:
    each is killed, one of them in the middle of a save, resumed and completed."""
    for name, entry, kind, words, steps in (
        ("nanogpt", "train.py", "nanogpt", ["--interval=130"] + gated("nanogpt", 130), 270),
        ("run-clm", "run_clm.py", "trainer", gated("run-clm", 150), 150),
    ):
        top, recipe_file = directory(name), documented(name)
        sets = [
            "--set",
            "engine.workdir=" + stand_in(name, entry, kind, words),
            "--set",
            "engine.python=/usr/bin/python3",
            "--set",
            "checkpoint.dir=" + top,
            "--set",
            "steps=%d" % steps,
        ]
        dry = json.loads(rig().run("submit", recipe_file, *sets, "--dry-run", "--json").stdout)
        equal(
            dry["resume_args"],
            {
                "nanogpt": ["--init_from=resume"],
                "run-clm": ["--resume_from_checkpoint", "{dir}/checkpoint-{iteration}"],
            }[name],
            "what a resume adds",
        )
        need(
            rig()
            .run("submit", recipe_file, *sets, "--dry-run")
            .stdout.count("a resume adds: " + dry["resume_args"][0])
            == 1,
            "shown to people",
        )
        job = json.loads(rig().run("submit", recipe_file, *sets, "--json").stdout)["id"]
        last = {"nanogpt": 130, "trainer": 100}[kind]
        let(name, 2, "on")
        if kind == "nanogpt":
            first_save(top, name, last)
            cut_save(job, top, name, last)
        else:
            wait_until(
                lambda: os.path.exists(os.path.join(top, "checkpoint-100/trainer_state.json")),
                60,
                "a save",
            )
            rig().wait_iteration(job, 110)
            kill_rank(job)
        at = resumed(job)
        need(
            at == last,
            lambda: "%s is resumed from %s, not %d: %s"
            % (
                name,
                at,
                last,
                [(e["attempt"], e["message"]) for e in rig().json("events", job)["items"]],
            ),
        )
        done = rig().wait_state(job, ["completed", "failed"], 120)
        equal(
            (done["state"], done["iteration"] >= steps - 1),
            ("completed", True),
            "%s: %s" % (name, done["reason"]),
        )
        first = [s for s in rig().json("metrics", job)["items"] if s["attempt"] == 2][0]
        need(
            last <= first["iteration"] <= last + 10,
            "%s: attempt 2 begins with iteration %s after %s" % (name, first["iteration"], last),
        )


@suite.test
def where_there_is_no_room_it_is_said():
    """A file system of 5 MiB of the helper's own: a small save is copied, a larger one is announced
    with the reason, and the older copy stays."""
    if os.geteuid() != 0:
        raise Skipped("needs root to mount a small file system")
    top = directory("no-room")
    layout = {
        "entry": "^ckpt\\.pt$",
        "given": True,
        "unnumbered": True,
        "state_words": ["iter_num"],
    }
    order = json.dumps({"kind": "scan", "dir": top, "layout": layout})
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.settimeout(120)
    keeper = subprocess.Popen(
        [
            "unshare",
            "-m",
            "sh",
            "-c",
            'mount -t tmpfs -o size=5m none "$1" && exec "$2" --keep "$3"',
            "sh",
            top,
            os.path.join(BUILD, "moe-ckpt"),
            order,
        ],
        stdin=subprocess.PIPE,
        preexec_fn=lambda: os.dup2(theirs.fileno(), 3),
        pass_fds=(3,),
    )
    try:
        wait_until(lambda: keeper.poll() is not None or looks(keeper.pid), 20, "the helper runs")
        if keeper.poll() is not None:
            raise Skipped("a file system cannot be mounted here")
        inside = "/proc/%d/root%s" % (keeper.pid, top)
        for n, size, said in (
            (10, 1, ""),
            (20, 3, "STATUS=no copy of it is kept: there is no room for one\n"),
        ):
            fixtures.write(
                os.path.join(inside, "ckpt.pt"),
                fixtures.archive({"iter_num": n}, b"w" * (size << 20)),
            )
            equal(
                ours.recv(4096).decode(),
                "CHECKPOINT=%s/ckpt.pt\nITERATION=%d\n%s" % (top, n, said),
                "announced",
            )
        equal(
            (
                os.listdir(os.path.join(inside, ".moe-kept")),
                iteration_in(os.path.join(inside, ".moe-kept/whole/ckpt.pt")),
            ),
            (["whole"], 10),
            "the copy of before",
        )
    finally:
        keeper.stdin.close()
        keeper.wait(PATIENCE * 120)


@suite.test
def what_cannot_be_kept_is_said():
    top = directory("unkept")
    fixtures.write(os.path.join(top, ".moe-kept"), "in the way")
    job = rig().submit(
        recipe(
            "unkept",
            "nanogpt",
            ["--out_dir=" + top] + ENDLESS + gated("unkept", 30),
            checkpoint=dict(ONE_FILE, dir=top),
        )
    )
    first_save(top, "unkept", 30)
    event = wait_until(
        lambda: [e for e in rig().json("events", job)["items"] if e["type"] == "checkpoint.unkept"],
        60,
        "an event",
    )[0]
    need("no copy of it is kept" in event["message"], event)
    middle = let("unkept", 1, "cut") + ".cut"
    wait_until(lambda: os.path.exists(middle), 60, "a save is in its middle")
    kill_rank(job)
    wait_until(
        lambda: "every checkpoint" in (rig().job(job)["reason"] or ""),
        60,
        "it waits: nothing whole is left",
    )
    rig().run("cancel", job)


if __name__ == "__main__":
    try:
        failures = suite.main()
    finally:
        for r in RIG:
            r.down(check=False)
    sys.exit(1 if failures else 0)
