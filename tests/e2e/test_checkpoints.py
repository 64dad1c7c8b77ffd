"""The checkpoint ledger: every damaged directory of tests/fixtures/checkpoints.py through `moectl
checkpoints --dir`, checksums and manifests, removal that a kill cut short."""
import functools
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "fixtures"))
import checkpoints as fixtures  # noqa: E402
from lib import (
    PATIENCE,
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

suite = Suite()


def in_directory(fn):
    @functools.wraps(fn)
    def run():
        with tempfile.TemporaryDirectory() as top:
            fn(os.path.join(top, "ckpt"))

    return suite.test(run)


def look(top, kind, *words, world=4, level=None):
    args = (
        ["checkpoints", "--dir", top, "--engine", kind.split()[0], "--world", world]
        + (["--verify", level] if level else [])
        + list(words)
    )
    doc = json.loads(moectl(*args, "--json").stdout)
    return doc, {c["iteration"]: c for c in doc["items"]}


def helper(order, *words):
    return subprocess.run(
        [os.path.join(BUILD, "moe-ckpt"), "--scan", "-", "--allow-root"] + list(words),
        input=json.dumps(order),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 60,
    )


def ask(order, *words):
    r = helper(order, *words)
    need(r.returncode == 0, "moe-ckpt: %s" % r.stderr)
    return {i["iteration"]: i for i in json.loads(r.stdout)["items"]}


TORCH = {"entry": r"(?<iteration>\d+)$", "markers": ["COMPLETE"], "announced_is_complete": True}


def order(top, **kw):
    return {
        "kind": "scan",
        "dir": top,
        "layout": TORCH,
        "level": "sizes",
        "job": 7,
        "attempt": 2,
        "world": 4,
        **kw,
    }


@suite.test
def files_of_users_take_no_memory_of_others():
    """The agent is protected when memory is short; who reads what users wrote is not, and is
    bounded: a marker of 500 MB of brackets would become 40 GB."""
    with tempfile.TemporaryDirectory() as top:
        p = subprocess.Popen(
            [os.path.join(BUILD, "moe-ckpt"), "--keep", json.dumps(order(top))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with open("/proc/%d/oom_score_adj" % os.getpid()) as f:
                need(f.read() != "1000\n", "the test itself is to be killed first")

            def bounded():
                with open("/proc/%d/oom_score_adj" % p.pid) as f:
                    first = f.read() == "1000\n"
                with open("/proc/%d/limits" % p.pid) as f:
                    data = [line for line in f if line.startswith("Max data size")][0].split()
                return first and ("san" in BUILD or data[3:5] == [str(4 << 30)] * 2)

            wait_until(bounded, 20, "moe-ckpt bounds itself")
        finally:
            p.communicate(timeout=PATIENCE * 20)


def damaged(kind):
    engine = fixtures.ENGINES[kind]

    def run():
        for name, damage, iteration, words in engine.cases():
            with tempfile.TemporaryDirectory() as box:
                top = os.path.join(box, "ckpt", "checkpoints" if kind == "primus-megatron" else "")
                engine.build(top)
                doc, items = look(top, kind)
                equal(
                    {i: c["state"] for i, c in items.items()},
                    {10: "verified", 20: "verified"},
                    "%s, whole" % kind,
                )
                equal(doc["resume"], {"iteration": 20}, "resume")
                damage(top)
                doc, items = look(top, kind)
                need(
                    iteration in items and items[iteration]["state"] == "torn",
                    lambda: "%s: %s passes: %s" % (kind, name, items.get(iteration)),
                )
                need(
                    words in items[iteration]["reason"],
                    lambda: "%s: %s: %r, not %r" % (kind, name, items[iteration]["reason"], words),
                )
                need(doc["resume"] != {"iteration": iteration}, "a damaged one is resumed")
                out = moectl(
                    "checkpoints", "--dir", top, "--engine", kind.split()[0], "--world", 4
                ).stdout
                need(
                    len([x for x in out.split("\n") if x]) == len(items) + 2,
                    lambda: "%s: %s: not one line per checkpoint:\n%s" % (kind, name, out),
                )

    run.__name__ = "damaged_" + kind.replace("-", "_").replace(" ", "_")
    suite.test(run)


for k in sorted(fixtures.ENGINES):
    damaged(k)


def whole_ones(kind, engine, worlds):
    def run():
        for world in worlds:
            with tempfile.TemporaryDirectory() as top:
                engine.build(top, world)
                for level in ("marker", "sizes"):
                    doc, items = look(top, kind, world=world, level=level)
                    equal(
                        {i: (c["state"], c["reason"]) for i, c in items.items()},
                        {10: ("verified", None), 20: ("verified", None)},
                        "%s, %d ranks, %s" % (kind, world, level),
                    )

    run.__name__ = (
        "whole_"
        + kind.replace("-", "_")
        + "_"
        + "_".join(
            str(x)
            for x in (
                type(engine).__name__.lower(),
                getattr(engine, "shape", getattr(engine, "parts", "")),
            )
        )
    )
    suite.test(run)


for g in fixtures.GOOD:
    whole_ones(*g)


RECORDED = {
    "dcp1": ("torchtitan", 1),
    "dcp4": ("torchtitan", 4),
    "ocdbt": ("maxtext", 1),
    "ocdbt3": ("maxtext", 1),
    "zarr": ("maxtext", 1),
    "legacy": ("megatron-lm", 4),
    "megatron": ("megatron-lm", 2),
    "ocdbt2": ("maxtext", 2),
    "deepspeed": ("deepspeed", 2),
}


# formats that do not reshard
FIXED = {"legacy": "tp 2, pp 1, ep 2, etp 2", "megatron": "tp 1, pp 2, ep 1"}


@suite.test
def what_does_not_reshard_is_not_tried():
    """A save of Megatron's older format: a job of other sizes ends before its launch and says which
    it needs; one of the same resumes, and moectl why tells of it."""
    with tempfile.TemporaryDirectory() as top, Cluster(nodes=1, gpus_per_node=2) as c:
        subprocess.run(
            [
                "tar",
                "-xzf",
                os.path.join(ROOT, "tests/fixtures/engines/checkpoints.tgz"),
                "-C",
                top,
                "./megatron",
            ],
            check=True,
            timeout=PATIENCE * 60,
        )
        program = os.path.join(top, "program")
        with open(program, "w") as f:
            f.write("#!/bin/sh\necho \"$@\" > %s/words\nexec sleep 1000\n" % top)
        os.chmod(program, 0o755)

        def submit(pp):
            return c.submit(
                json.dumps(
                    {
                        "recipe": 1,
                        "name": "legacy",
                        "engine": {"kind": "megatron-lm", "python": program, "workdir": top},
                        "cluster": {"gpus": 2},
                        "steps": 60,
                        "parallelism": {"pp": pp},
                        "checkpoint": {"dir": top + "/megatron", "every": 20},
                    }
                )
            )

        job = c.wait_state(submit(1), ["failed"])
        need(
            "checkpoint 40 in %s/megatron does not reshard: it was saved with tp 1, pp 2, ep 1, "
            "and this job has pp 1; " % top in job["reason"],
            job["reason"],
        )
        need(not os.path.exists(top + "/words"), "a rank was started")
        job = submit(2)
        wait_until(
            lambda: os.path.exists(top + "/words")
            and "--ckpt-step 40" in open(top + "/words").read(),
            60,
            "a resume from 40",
        )
        reasons = {r["code"]: r["text"] for r in c.json("why", job)["reasons"]}
        equal(
            reasons.get("checkpoint-fixed"),
            "its checkpoints do not reshard: a resume needs tp 1, pp 2, ep 1, as they were saved",
            reasons,
        )
        c.run("cancel", job, "--now")


@in_directory
def another_name_of_a_directory(top):
    """What a job is not ended for: a path that leads to checkpoint.dir, that nobody can look at, or
    whose save lies there all the same."""
    engine, other = fixtures.ENGINES["megatron-lm"], top + "-other"
    engine.build(top)
    os.makedirs(other + "/iter_0000030")
    fixtures.write(other + "/file", "x")
    os.symlink(top, top + "-link")
    os.symlink(os.path.dirname(top), top + "-above")
    os.symlink(os.path.join(top, "iter_0000020"), top + "-deep")
    above = os.path.join(top + "-above", os.path.basename(top))
    layout = {"entry": r"^iter_(?<iteration>\d{7})$", "markers": [".metadata"]}
    for doubt, only, place, alias in (
        (top + "-link", 30, "same", top + "-link"),
        (top + "-link/iter_0000020", 30, "same", top + "-link"),
        (above + "/iter_0000020/", 30, "same", above),
        (top + "-deep", 30, "same", None),
        (top, 30, "same", top),
        (other, 30, "other", None),
        (other + "/iter_0000030", 30, "other", None),
        (other + "/file", 30, "other", None),
        ("/", 30, "other", None),
        (other, 20, None, None),
        (other + "/no", 30, None, None),
        ("relative", 30, None, None),
        ("", 30, None, None),
    ):
        r = helper(
            {
                "kind": "scan",
                "dir": top,
                "layout": layout,
                "level": "sizes",
                "job": 7,
                "attempt": -5,
                "only": only,
                "doubt": doubt,
            }
        )
        need(r.returncode == 0, r.stderr)
        doc = json.loads(r.stdout)
        equal((doc.get("place"), doc.get("alias")), (place, alias), "%r" % doubt)


MISPLACED = (("primus-megatron", "", "checkpoints"), ("maxtext", "", "moe/checkpoints"))


@suite.test
def checkpoints_where_the_engine_does_not_look():
    """In checkpoint.dir, and not below it where the engine reads and saves: --dir says that a job
    would wait, and what to do."""
    for kind, above, own in MISPLACED:
        with tempfile.TemporaryDirectory() as box:
            engine, top = fixtures.ENGINES[kind], os.path.join(box, "ckpt")
            engine.build(os.path.join(box, "made"))
            entries = os.path.dirname(
                os.path.dirname(engine.at(os.path.join(box, "made"), 20, "x"))
            )
            os.makedirs(top)
            doc, _ = look(top, kind)
            equal(
                (doc["resume"], "unread" in doc, "waits" in doc),
                (None, False, False),
                "nothing there: %s" % kind,
            )
            os.rmdir(top)
            os.rename(entries, os.path.join(top, above))
            doc, _ = look(top, kind)
            names = sorted(u["name"] for u in doc["unread"])
            equal(
                (doc["resume"], len(names), {u["where"] for u in doc["unread"]}),
                (None, 2, {top}),
                kind,
            )
            need(all(u["bytes"] > 0 for u in doc["unread"]), doc)
            need(
                "reads checkpoints in %s, and not what lies above it: %s"
                % (os.path.join(top, own), top)
                in doc["waits"],
                doc["waits"],
            )
            out = moectl("checkpoints", "--dir", top, "--engine", kind).stdout
            need(
                "would wait" in out
                and "resume: never" in out
                and "restart j-" not in out
                and "start afresh\n" not in out,
                out,
            )
            os.makedirs(os.path.join(top, own))
            for name in os.listdir(top):
                if name != own.split("/")[0]:
                    os.rename(os.path.join(top, name), os.path.join(top, own, name))
            doc, items = look(top, kind)
            equal(
                (doc["resume"], "waits" in doc, sorted(items)),
                ({"iteration": 20}, False, [10, 20]),
                "moved: %s" % kind,
            )


@suite.test
def a_directory_that_is_one_checkpoint():
    for kind in sorted(k for k in fixtures.ENGINES if k not in ("torch", "command")):
        engine = fixtures.ENGINES[kind]
        with tempfile.TemporaryDirectory() as box:
            engine.build(box)
            one = os.path.dirname(engine.at(box, 20, "x"))
            while not os.path.basename(one).endswith("20"):
                one = os.path.dirname(one)
            os.symlink(one, os.path.join(box, "link"))
            for path, name in (
                (one, one),
                (one + "/", one),
                (os.path.join(box, "link"), os.path.join(box, "link")),
            ):
                doc, _ = look(path, kind)
                need(
                    doc["resume"] is None
                    and "checkpoint.dir is one checkpoint: %s/ (" % name in doc.get("waits", ""),
                    lambda: "%s: %s" % (kind, doc),
                )
                need(
                    "name the one above it (%s, " % os.path.dirname(name) in doc["waits"],
                    doc["waits"],
                )
            os.rename(one, os.path.join(box, "best"))
            doc, _ = look(os.path.join(box, "best"), kind)
            need(
                "checkpoint.dir is one checkpoint" in doc.get("waits", ""),
                lambda: "%s of another name: %s" % (kind, doc),
            )


@suite.test
def a_job_waits_beside_checkpoints_that_it_does_not_read():
    with tempfile.TemporaryDirectory() as top, Cluster(nodes=1, gpus_per_node=2) as c:
        program, words = os.path.join(top, "program"), os.path.join(top, "words")
        fixtures.write(program, "#!/bin/sh\necho \"$@\" > %s\nexec sleep 1000\n" % words)
        os.chmod(program, 0o755)
        kept = os.path.join(top, "kept")
        fixtures.ENGINES["primus-megatron"].build(kept)

        def submit(where):
            return c.submit(
                json.dumps(
                    {
                        "recipe": 1,
                        "name": "beside",
                        "engine": {
                            "kind": "primus-megatron",
                            "python": program,
                            "entry": "x",
                            "workdir": top,
                        },
                        "cluster": {"gpus": 2},
                        "steps": 60,
                        "checkpoint": {"dir": where, "every": 20},
                    }
                )
            )

        for where, word in (
            (kept, "not what lies above it: %s/iter_" % kept),
            (kept + "/iter_0000020", "checkpoint.dir is one checkpoint: %s/iter_0000020/ (" % kept),
        ):
            job = submit(where)
            wait_until(
                lambda: word in (c.json("status", job)["reason"] or ""),
                60,
                "it waits for %r" % word,
            )
            why = c.json("why", job)
            need(
                [
                    r
                    for r in why["reasons"]
                    if r["code"] == "checkpoint-unread"
                    and "%s/iter_0000020/: " % kept in " ".join(r["evidence"])
                ],
                why,
            )
            equal(c.json("status", job)["attempt"], 0, "attempts")
            c.run("cancel", job, "--now")
            c.wait_state(job, ["cancelled"])
        need(not os.path.exists(words), "a rank was started")
        for name in [n for n in os.listdir(kept) if n != "checkpoints"]:
            os.rename(os.path.join(kept, name), os.path.join(kept, "checkpoints", name))
        job = submit(kept)
        wait_until(
            lambda: os.path.exists(words) and "--ckpt_step 20" in open(words).read(),
            60,
            "a resume from 20",
        )
        c.run("cancel", job, "--now")


@suite.test
def a_plan_tells_what_does_not_reshard():
    with tempfile.TemporaryDirectory() as top:
        subprocess.run(
            [
                "tar",
                "-xzf",
                os.path.join(ROOT, "tests/fixtures/engines/checkpoints.tgz"),
                "-C",
                top,
                "./megatron",
            ],
            check=True,
            timeout=PATIENCE * 60,
        )
        recipe = os.path.join(top, "r.yaml")
        with open(recipe, "w") as f:
            f.write(
                "recipe: 1\nname: r\nengine: {kind: megatron-lm, workdir: /w}\n"
                "model: {layers: 8, hidden: 512, heads: 8, ffn: 2048, vocab: 32000}\n"
                "cluster: {gpus: 8, gpu: mi300x}\nsteps: 60\n"
                "batch: {seq: 1024, micro: 1, global: 16}\n"
                "checkpoint: {dir: %s/megatron, every: 20}\n" % top
            )
        said = (
            "checkpoint 40 in %s/megatron does not reshard: a resume from it needs tp 1, pp 2, ep "
            "1, and this plan has " % top
        )
        for pp, notes in ((1, 1), (2, 0)):
            doc = json.loads(
                moectl("plan", recipe, "--json", "--set", "parallelism.pp=%d" % pp).stdout
            )
            equal(
                [n for n in doc["plans"][0]["notes"] if said in n],
                [said + "pp 1"] * notes,
                "notes of pp %d" % pp,
            )
        need("does not reshard" in moectl("plan", recipe).stdout, "people's text")


@suite.test
def recorded_ones():
    """As PyTorch 2.11, orbax 0.12.4 and their like left them
    (tests/fixtures/record_checkpoints.py); and as PyTorch here writes archives."""
    with tempfile.TemporaryDirectory() as top:
        subprocess.run(
            [
                "tar",
                "-xzf",
                os.path.join(ROOT, "tests/fixtures/engines/checkpoints.tgz"),
                "-C",
                top,
            ],
            check=True,
            timeout=PATIENCE * 60,
        )
        for name, (kind, world) in RECORDED.items():
            _, items = look(os.path.join(top, name), kind, world=world)
            need(
                items and all(c["state"] == "verified" for c in items.values()),
                lambda: "%s: %s" % (name, items),
            )
            equal(
                {c.get("fixed") for c in items.values()},
                {FIXED.get(name)},
                "sizes that %s needs" % name,
            )
        equal(
            list(look(os.path.join(top, "megatron"), "primus-megatron", world=4)[1]),
            [40],
            "the same by Primus, of a job of more ranks",
        )
        need(
            "does not reshard: a resume needs tp 1, pp 2, ep 1"
            in moectl(
                "checkpoints", "--dir", os.path.join(top, "megatron"), "--engine", "megatron-lm"
            ).stdout,
            "people's text",
        )
        engine, own = fixtures.ENGINES["megatron-lm legacy"], os.path.join(top, "own")
        engine.build(own)
        code = (
            "import argparse, sys, torch\n"
            "a = argparse.Namespace(tensor_model_parallel_size=2, pipeline_model_parallel_size=2, "
            "expert_model_parallel_size=1)\n"
            "for p in sys.argv[1:]: torch.save({'args': a, 'model': {'w': torch.zeros(1000), 'v': "
            "torch.ones(3)}}, p)"
        )
        subprocess.run(
            ["/usr/bin/python3", "-c", code]
            + [engine.at(own, 20, p, "model_optim_rng.pt") for p in engine.parts()],
            check=True,
            timeout=PATIENCE * 120,
        )
        equal(look(own, "megatron-lm")[1][20]["reason"], None, "written here")


@in_directory
def a_cut_index_never_passes(top):
    """Every shorter .metadata, metadata.json, _CHECKPOINT_METADATA and manifest.ocdbt."""

    def cuts(engine, kind, name, step):
        engine.build(top + kind)
        path = engine.at(top + kind, 20, name)
        whole = open(path, "rb").read()
        for n in list(range(0, len(whole), step)) + [len(whole) - 1]:
            fixtures.change(path, whole[:n])
            need(
                look(top + kind, kind)[1][20]["state"] == "torn",
                lambda: "%s of %d bytes passes" % (name, n),
            )

    cuts(fixtures.Torchtitan(), "torchtitan", ".metadata", 37)
    cuts(fixtures.TorchDist(), "megatron-lm", "metadata.json", 5)
    cuts(fixtures.Orbax(), "maxtext", "_CHECKPOINT_METADATA", 5)
    cuts(fixtures.Orbax(), "maxtext", "items/manifest.ocdbt", 7)


@in_directory
def what_each_level_sees(top):
    engine = fixtures.ENGINES["megatron-lm"]
    for damage, marker in (
        (lambda: os.unlink(engine.at(top, 20, "__3_1.distcp")), "torn"),
        (lambda: os.unlink(engine.at(top, 20, "common.pt")), "torn"),
        (lambda: fixtures.zeros(engine.at(top, 20, ".metadata")), "torn"),
        (lambda: fixtures.zeros(engine.at(top, 20, "__3_1.distcp")), "verified"),
    ):
        engine.build(top)
        damage()
        equal(
            [look(top, "megatron-lm", level=x)[1][20]["state"] for x in ("marker", "sizes")],
            [marker, "torn"],
            "levels",
        )
    for kind, gone in (
        ("deepspeed", "bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt"),
        ("deepspeed", "mp_rank_00_model_states.pt"),
        ("megatron-lm legacy", "mp_rank_01_000/distrib_optim.pt"),
    ):
        engine = fixtures.ENGINES[kind]
        engine.build(top + kind)
        os.unlink(engine.at(top + kind, 20, gone))
        equal(
            {i: c["state"] for i, c in look(top + kind, kind, level="marker")[1].items()},
            {10: "verified", 20: "torn"},
            "without markers names tell",
        )


@in_directory
def a_seed_has_no_optimizer(top):
    engine = fixtures.ENGINES["torchtitan"]
    for i in (0, 1):
        engine.save(top, i, 4, ("model.weight",))
    doc, items = look(top, "torchtitan")
    equal(
        [items[i]["state"] for i in (0, 1)],
        ["verified", "torn"],
        "model-only saves of steps 0 and 1",
    )
    equal(doc["resume"], {"iteration": 0}, "what a run begins with")


@suite.test
def random_damage_is_judged():
    """Bytes changed, cut off, zeroed and added anywhere: each directory is judged, nothing crashes,
    and what lies beside it is judged as before."""
    seed = int(os.environ.get("SEED", "20261121"))
    draw = random.Random(seed)
    for kind in sorted(fixtures.ENGINES):
        engine = fixtures.ENGINES[kind]
        with tempfile.TemporaryDirectory() as top:
            for n in range(int(os.environ.get("ROUNDS", "8"))):
                engine.build(top)
                files = sorted(
                    os.path.join(d, f) for d, _, names in os.walk(engine.at(top, 20)) for f in names
                )
                path = draw.choice(files)
                data = bytearray(open(path, "rb").read())
                at, size = draw.randrange(len(data)), draw.randrange(1, 64)
                how = draw.randrange(4)
                if how == 0:
                    data[at : at + size] = draw.randbytes(min(size, len(data) - at))
                elif how == 1:
                    del data[at:]
                elif how == 2:
                    data[at : at + size] = b"\0" * min(size, len(data) - at)
                else:
                    data[at:at] = draw.randbytes(size)
                fixtures.change(path, bytes(data))
                items = look(top, kind)[1]
                need(
                    items[10]["state"] == "verified" and items[20]["state"] in ("verified", "torn"),
                    lambda: "seed %d, %s, round %d, %s: %s" % (seed, kind, n, path, items),
                )


@in_directory
def what_was_not_opened_is_opened_later(top):
    """Before an attempt the newest two whole ones are opened. An older one counts, at level marker,
    until it is among them."""
    engine = fixtures.ENGINES["torchtitan"]
    layout = {
        "entry": r"^step-(?<iteration>\d+)$",
        "markers": [".metadata"],
        "shard": r"\.distcp$",
        "formats": [{"key": r"\.distcp$", "value": "torch"}],
    }
    for i in (10, 20, 30):
        engine.save(top, i, 4)
    fixtures.zeros(engine.at(top, 10, engine.shard))
    found = ask(order(top, layout=layout))
    equal(
        {i: (c["complete"], c["level"], bool(c.get("manifest"))) for i, c in found.items()},
        {30: (True, "sizes", True), 20: (True, "sizes", True), 10: (True, "marker", False)},
        "three",
    )
    fixtures.write(engine.at(top, 20, engine.shard), fixtures.archive())
    known = [
        {"iteration": i, "manifest": c["manifest"]} for i, c in found.items() if c.get("manifest")
    ]
    found = ask(order(top, layout=layout, known=known))
    equal(
        {i: c["complete"] for i, c in found.items()}, {30: True, 20: False, 10: False}, "opened now"
    )


@in_directory
def an_announced_one_needs_no_marker(top):
    """The word of the engine is its marker, before an attempt too, and excuses nothing else: an
    empty marker, a cut file, a directory that holds nothing."""

    def entry(i, **files):
        for name, data in files.items():
            fixtures.write(os.path.join(top, str(i), name), data)

    whole = fixtures.archive()
    entry(10, **{"model.pt": whole})
    entry(20, **{"model.pt": whole, "COMPLETE": b""})
    entry(30, **{"model.pt": whole[:-8]})
    os.makedirs(os.path.join(top, "40"))
    entry(50, **{"model.pt": whole})
    known = [
        {"iteration": i, "complete": True, "path": os.path.join(top, str(i))}
        for i in (10, 20, 30, 40)
    ]
    found = ask(order(top, known=known))
    equal(
        {i: c["reason"] for i, c in found.items() if i != 30},
        {10: None, 20: "COMPLETE is empty", 40: "it holds nothing", 50: "COMPLETE is missing"},
        "announced, all but 50",
    )
    need(not found[30]["complete"] and "model.pt" in found[30]["reason"], found[30])
    found = ask(order(top, known=[{"iteration": 10, "complete": True, "path": top + "/x10"}]))
    equal(found[10]["reason"], "COMPLETE is missing", "another one was announced")


@in_directory
def what_may_be_resumed_from_is_opened(top):
    """An older one, behind two whole ones, of which the order says how closely it is looked at."""
    engine = fixtures.ENGINES["torch"]
    for i in (10, 20, 30):
        engine.save(top, i, 4)
    fixtures.write(engine.at(top, 10, "model.pt"), fixtures.archive()[:-8])
    equal(ask(order(top))[10]["level"], "marker", "not opened")
    found = ask(order(top, known=[{"iteration": 10, "level": "sizes"}]))
    need(not found[10]["complete"] and "model.pt" in found[10]["reason"], found[10])


@in_directory
def shards_must_fit_the_world(top):
    for kind, words in (
        ("deepspeed", "4 ranks wrote it, the job has 8"),
        ("torch", "4 ranks wrote it, the job has 8"),
        ("megatron-lm legacy", "no multiple"),
    ):
        where = top + kind.replace(" ", "-")
        fixtures.ENGINES[kind].build(where)
        need(words in look(where, kind, world=6 if "legacy" in kind else 8)[1][20]["reason"], kind)


@in_directory
def checksums_tell_rot(top):
    engine = fixtures.ENGINES["torch"]
    engine.build(top)
    _, items = look(top, "torch", level="crc")
    equal((items[20]["state"], items[20]["level"]), ("verified", "sizes"), "without checksums")
    need("no checksums" in items[20]["reason"], items[20])
    found = ask(order(top, level="crc", only=20, attempt=-(1 << 57)))
    equal(
        (found[20]["complete"], found[20]["level"], list(found)),
        (True, "crc", [20]),
        "verified after its save",
    )
    _, items = look(top, "torch", level="crc")
    equal(
        (items[20]["state"], items[20]["level"], items[20]["reason"]),
        ("verified", "crc", None),
        "with checksums",
    )
    fixtures.flip(engine.at(top, 20, engine.shard))
    equal(look(top, "torch")[1][20]["state"], "verified", "sizes cannot see rot")
    doc, items = look(top, "torch", level="crc")
    equal((items[20]["state"], doc["resume"]), ("torn", {"iteration": 10}), "rot")
    need(
        "its content is not what was verified" in items[20]["reason"]
        and engine.shard in items[20]["reason"],
        items[20],
    )


def of_archives(top, shard=fixtures.archive(tensor=b"w" * 9_000_000), more=b""):
    """One whole checkpoint, 20: a file of two archives behind each other, and one that carries no
    checksums. Its manifest, and where the larger record's bytes lie."""
    engine = fixtures.ENGINES["torch"]
    engine.build(top)
    for name in ("rank_1.safetensors", "rank_2.safetensors"):
        os.unlink(engine.at(top, 20, name))
    fixtures.write(engine.at(top, 20, "COMPLETE"), "yes")
    path = engine.at(top, 20, "__0_0.distcp")
    fixtures.write(path, more + fixtures.archive() + shard)
    return ask(order(top))[20]["manifest"], path


def rot(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        c = f.read(1)
        f.seek(at)
        f.write(bytes([c[0] ^ 1]))
    os.utime(path, (fixtures.OLD, fixtures.OLD))


def suspected(top, manifest, said="read", **kw):
    known = [{"iteration": 20, "manifest": manifest, "level": said}]
    return ask(order(top, only=20, known=known, **kw))[20]


@in_directory
def what_is_suspected_is_read_whole(top):
    """Without checksums of after the save: those that archives carry, and whether all can be
    read."""
    manifest, path = of_archives(top)
    for level in ("sizes", "marker"):
        f = suspected(top, ask(order(top, level=level))[20]["manifest"], level=level)
        equal(f["manifest"], ask(order(top, level=level))[20]["manifest"], "the same manifest")
        equal((f["complete"], f["level"]), (True, "read"), f)
        need("all of it can be read; 1 of its 4 files carry checksums" in f["reason"], f)
    f = suspected(top, manifest, "crc")
    need("no checksums to compare with: it was not verified at level crc; all" in f["reason"], f)
    parts = [suspected(top, manifest, part=p, parts=2) for p in range(3)]
    equal([(p["complete"], p["level"]) for p in parts], [(True, "read")] * 3, parts)
    need("1 of its 4 files" in parts[2]["reason"] and not parts[0].get("reason"), parts)

    first = len(fixtures.archive())
    for at in (first + 4_200_000, first + 8_999_000, first // 2 - 100):
        manifest, _ = of_archives(top)
        rot(path, at)
        manifest = ask(order(top))[20]["manifest"]
        f = suspected(top, manifest)
        need(not f["complete"] and "__0_0.distcp: the " in f["reason"], (at, f))
        need("are not what was saved (CRC-32 " in f["reason"], f)
        parts = [suspected(top, manifest, part=p, parts=2)["complete"] for p in range(2)]
        equal(sorted(parts), [False, True], "one part has it")
        _, items = look(top, "torch", level="crc")
        need("are not what was saved" in items[20]["reason"], items[20])
        equal(look(top, "torch")[1][20]["state"], "verified", "nobody else sees it")
    # what level marker never looked at
    manifest, path = of_archives(top)
    deep = os.path.join(os.path.dirname(path), "below/__1_0.distcp")
    fixtures.write(deep, fixtures.archive())
    manifest = ask(order(top, level="marker"))[20]["manifest"]
    need(suspected(top, manifest, level="marker")["complete"], "whole")
    rot(deep, first // 2 - 100)
    equal(ask(order(top, level="marker"))[20]["manifest"], manifest, "marker does not see it")
    f = suspected(top, manifest, level="marker")
    need(not f["complete"] and "below/__1_0.distcp: " in f["reason"], f)
    os.unlink(deep)
    # whoever wrote no checksums, or something else in front, is not torn by that
    bare = fixtures.archive()
    for name in ("data.pkl", "byteorder", "data/0", "version"):
        at = bare.rindex(("archive/" + name).encode()) - 46
        bare = bare[: at + 16] + bytes(4) + bare[at + 20 :]
    for shard, more in ((bare, b""), (fixtures.archive(), b"something else")):
        manifest, _ = of_archives(top, shard, more)
        f = suspected(top, manifest)
        equal((f["complete"], f["level"]), (True, "read"), f)
        need("its files carry no checksums, so nothing says" in f["reason"], f)


def crowded(n):
    """An archive whose directory names its one empty record n times."""
    local = b"PK\3\4" + bytes(22) + struct.pack("<HH", 1, 0) + b"x"
    entry = b"PK\1\2" + bytes(24) + struct.pack("<H", 1) + bytes(16) + b"x"
    directory = entry * n
    large = struct.pack("<QQQQ", n, n, len(directory), len(local))
    return (
        local
        + directory
        + (b"PK\6\6" + struct.pack("<Q", 44) + bytes(12) + large)
        + (b"PK\6\7" + bytes(16))
        + (b"PK\5\6" + bytes(4) + b"\xff" * 12 + bytes(2))
    )


@in_directory
def what_is_read_whole_ends(top):
    """A file that grows as fast as it is read, and one of which a directory says what no engine
    writes: neither takes more time or memory than its bytes."""
    manifest, _ = of_archives(top, crowded(70_000))
    need("1 of its 4 files" in suspected(top, manifest)["reason"], "many are no harm")
    manifest, path = of_archives(top, crowded(70_000) * 14, crowded(70_000))
    need("its files carry no checksums" in suspected(top, manifest)["reason"], "too many are")

    manifest, path = of_archives(top)
    known = [{"iteration": 20, "manifest": manifest, "level": "read"}]
    p = subprocess.Popen(
        [os.path.join(BUILD, "moe-ckpt"), "--scan", "-", "--allow-root", "--bandwidth", "2000000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    p.stdin.write(json.dumps(order(top, only=20, known=known)).encode())
    p.stdin.close()
    fds = "/proc/%d/fd/" % p.pid

    def reads():
        found = []
        for fd in os.listdir(fds):
            try:
                found.append(os.readlink(fds + fd))
            except FileNotFoundError:
                pass
        return path in found

    try:
        wait_until(reads, 20, "it reads the file")
        os.truncate(path, 1 << 40)
        out = p.stdout.read()
        equal(p.wait(), 0, "its end")
    finally:
        p.kill()
    need("__0_0.distcp: it changed while it was read" in out.decode(), out)


@in_directory
def checksums_in_parts(top):
    engine = fixtures.ENGINES["megatron-lm"]
    engine.build(top)
    layout = {
        "entry": r"^iter_(?<iteration>\d{7,})$",
        "markers": [".metadata"],
        "shard": r"\.distcp$",
    }
    parts = [
        ask(
            order(top, layout=layout, level="crc", only=20, part=p, parts=3, attempt=-(1 << 57) - p)
        )[20]
        for p in range(3)
    ]
    need(all(p["complete"] for p in parts), parts)
    whole = ask(order(top, layout=layout, level="crc", only=20, part=3, parts=3))[20]
    equal((whole["complete"], whole["level"]), (True, "crc"), "joined")
    with open(os.path.join(top, ".moe-manifests/iter_0000020")) as f:
        lines = f.read().split("\n")
    equal(len(lines), 1 + 8 + 3 + 1 + 1, "lines of the manifest")
    need(all(len(x.split()[3]) == 8 for x in lines[1:-2]), lines)
    equal(os.listdir(os.path.join(top, ".moe-manifests")), ["iter_0000020"], "parts are removed")
    lost = ask(order(top, layout=layout, level="crc", only=10, part=3, parts=3))[10]
    need(not lost["complete"] and "are gone" in lost["reason"], lost)


@in_directory
def manifest_is_compared(top):
    engine = fixtures.ENGINES["torch"]
    engine.build(top)
    first = ask(order(top))
    known = [{"iteration": i, "manifest": c["manifest"]} for i, c in first.items()]
    shard = engine.at(top, 20, engine.shard)
    for change, words in (
        (lambda: fixtures.write(shard, fixtures.safetensors()), "written again"),
        (lambda: os.truncate(shard, 5), "it has 5 bytes"),
        (lambda: os.unlink(shard), "is gone"),
        (lambda: fixtures.write(engine.at(top, 20, "a\nb"), "x"), "appeared"),
        (lambda: os.replace(engine.at(top, 10, engine.shard), shard), "was replaced"),
    ):
        engine.build(top)
        if os.path.exists(engine.at(top, 20, "a\nb")):
            os.unlink(engine.at(top, 20, "a\nb"))
        first = ask(order(top))
        known = [{"iteration": i, "manifest": c["manifest"]} for i, c in first.items()]
        same = ask(order(top, known=known))
        need(
            all(
                c["complete"] and c["level"] is None if "level" in c else c["complete"]
                for c in same.values()
            ),
            same,
        )
        change()
        changed = ask(order(top, known=known))[20]
        need(not changed["complete"] and words in changed["reason"], changed)


@in_directory
def hundred_thousand_files(top):
    engine = fixtures.ENGINES["torch"]
    engine.build(top)
    for i in range(100000):
        open(engine.at(top, 20, "x%d" % i), "wb").close()
    # CPU time, which hardly depends on what else the machine does
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = used()
    equal(ask(order(top))[20]["complete"], True, "a huge directory")
    need(used() - before < 20, "it took %.1f s of CPU" % (used() - before))


@in_directory
def removal_that_was_cut_is_finished(top):
    engine = fixtures.ENGINES["torch"]
    engine.build(top)
    engine.save(top, 30, 4)
    for i in range(20000):
        open(engine.at(top, 10, "x%d" % i), "wb").close()
    p = subprocess.Popen(
        [
            os.path.join(BUILD, "moe-ckpt"),
            "--scan",
            json.dumps(order(top, attempt=-11, prune=[{"iteration": 10}])),
            "--allow-root",
        ],
        stdout=subprocess.DEVNULL,
    )
    going = os.path.join(top, ".moe-removing-step_10")
    while not os.path.exists(going) and p.poll() is None:
        pass
    p.send_signal(signal.SIGKILL)
    p.wait()
    need(not os.path.exists(engine.at(top, 10)), "it has its name still")
    need(os.path.exists(going), "the kill came too late to show anything")
    equal(sorted(ask(order(top))), [20, 30], "what is half removed is no checkpoint")
    need(not os.path.exists(going), "what was left is not removed")
    fixtures.write(os.path.join(os.path.dirname(top), "precious"), "x")
    os.symlink(os.path.dirname(top), os.path.join(top, ".moe-removing-link"))
    os.symlink(os.path.dirname(top), os.path.join(top, "step_40"))
    ask(order(top, attempt=-41, prune=[{"iteration": 40}]))
    need(
        os.path.exists(os.path.join(os.path.dirname(top), "precious"))
        and os.path.islink(os.path.join(top, "step_40")),
        "a link was followed",
    )


@in_directory
def the_last_look_removes_too(top):
    """One order that removes and compares, as a job's end gives it when its node had not removed
    yet."""
    engine = fixtures.ENGINES["torch"]
    engine.build(top)
    known = [
        {"iteration": i, "manifest": c["manifest"]} for i, c in ask(order(top)).items() if i == 20
    ]
    found = ask(
        order(top, attempt=3, known=known, prune=[{"iteration": 10, "path": engine.at(top, 10)}])
    )
    equal({i: c["complete"] for i, c in found.items()}, {20: True}, "what is left")
    need(
        not os.path.exists(engine.at(top, 10))
        and not [x for x in os.listdir(top) if x.startswith(".moe-removing")],
        os.listdir(top),
    )


# ---- a job ----

PROGRAM = """import os, sys, time
sys.path.insert(0, {fixtures!r})
import checkpoints as f
engine, top, out = f.ENGINES[{kind!r}], os.environ["MOE_CHECKPOINT_DIR"], {out!r}
resume, rank = int(os.environ["MOE_RESUME_ITERATION"]), os.environ["RANK"]
if rank == "0":
    with open(out, "a") as o:
        o.write("%d\\n" % resume)
for i in range(max(resume, 0) + 1, 100000):
    print("step %d loss 2.0" % i, flush=True)
    if resume < 0 and i in (10, 20) and rank == "0":
        f.OLD = time.time() - 100
        engine.save(top, i, 4)
        print("saved checkpoint %d %s" % (i, engine.at(top, i)), flush=True)
    time.sleep(0.05)
"""


def engine_file(data, kind):
    """The shipped layout of an engine under a program that plays it."""
    with open(os.path.join(ROOT, "config/engines/command.yaml")) as f:
        text = (
            f.read().split("layout:")[0].replace("kind: command", "kind: fake-" + kind.split()[0])
        )
    shipped = kind.split()[0]
    with open(os.path.join(ROOT, "config/engines/%s.yaml" % shipped)) as f:
        own = f.read()
    if "\nlike: " in own:
        with open(
            os.path.join(ROOT, "config/engines/%s.yaml" % own.split("\nlike: ")[1].split("\n")[0])
        ) as f:
            own = f.read()
    lines = own.split("\nlayout:\n")[1].split("\n")
    layout = [x for n, x in enumerate(lines) if all(y.startswith("  ") for y in lines[: n + 1])]
    with open(os.path.join(data, "engines/fake-%s.yaml" % kind.split()[0]), "w") as f:
        f.write(text + "layout:\n" + "\n".join(layout) + "\n")


@suite.test
def recovery_passes_over_damage():
    """For every engine's layout: a checkpoint is verified while the job runs, damaged afterwards; a
    killed rank is followed by a resume from the one before, and the ledger says why."""
    import shutil
    from lib import command_recipe, wait_until
    from rig import Rig

    with tempfile.TemporaryDirectory() as data:
        shutil.copytree(os.path.join(ROOT, "config"), data, dirs_exist_ok=True)
        kinds = [k for k in sorted(fixtures.ENGINES) if " " not in k]
        for kind in kinds:
            engine_file(data, kind)
        os.environ["TEST_DATA_DIR"] = data
        rig = Rig(nodes=2, gpus_per_node=2)
        try:
            rig.up()
            for kind in kinds:
                engine, top, out = (
                    fixtures.ENGINES[kind],
                    os.path.join(rig.dir, kind),
                    os.path.join(rig.dir, kind + ".resumed"),
                )
                program = PROGRAM.format(
                    fixtures=os.path.join(ROOT, "tests/fixtures"), kind=kind, out=out
                )
                recipe = command_recipe(
                    "r-" + kind,
                    ["/usr/bin/python3", "-c", program],
                    gpus=4,
                    steps=100000,
                    checkpoint={"dir": top, "every": 10, "verify": "crc"},
                )
                job = rig.submit(recipe.replace('"kind": "command"', '"kind": "fake-%s"' % kind))
                wait_until(
                    lambda: {
                        c["iteration"]: (c["state"], c["level"])
                        for c in rig.json("checkpoints", job)["items"]
                    }
                    == {10: ("verified", "crc"), 20: ("verified", "crc")},
                    20,
                    "%s: both are verified while it runs" % kind,
                )
                p = engine.at(top, 20, engine.shard)
                st = os.stat(p)
                fixtures.write(p, b"\0" * st.st_size)
                rank = rig.json("ranks", job)["items"][1]
                os.kill(rank["pid"], signal.SIGKILL)
                wait_until(
                    lambda: os.path.exists(out) and open(out).read().split() == ["-1", "10"],
                    40,
                    "%s: resumed from 10" % kind,
                )
                torn = [c for c in rig.json("checkpoints", job)["items"] if c["iteration"] == 20][0]
                equal(torn["state"], "torn", kind)
                need(
                    "since it was verified" in torn["reason"] and engine.shard in torn["reason"],
                    torn,
                )
                rig.run("cancel", job, "--now")
        finally:
            rig.down(check=False)
            os.environ.pop("TEST_DATA_DIR")


ANNOUNCER = """import os, signal, sys
sys.path.insert(0, {fixtures!r})
import checkpoints as f
engine, top = f.ENGINES["torch"], os.environ["MOE_CHECKPOINT_DIR"]
resume = int(os.environ["MOE_RESUME_ITERATION"])
with open({out!r}, "a") as o:
    o.write("%d\\n" % resume)
for i in (10, 20) if resume < 0 else ():
    engine.save(top, i, 1)
    if i == 20:
        f.write(engine.at(top, 20, "COMPLETE"), "")
    print("step %d loss 2.0\\nsaved checkpoint %d %s" % (i, i, engine.at(top, i)), flush=True)
if resume < 0:
    os.kill(os.getpid(), signal.SIGKILL)
print("step %d loss 2.0" % (resume + 10), flush=True)
"""


@suite.test
def what_was_announced_last_is_looked_at_before_it_is_resumed():
    """The job dies with its announcement, before anybody verified it, and its marker is empty: the
    one before is taken, of the two kinds of engine where the word is the marker."""
    from lib import command_recipe
    from rig import Rig

    rig = Rig(nodes=1, gpus_per_node=1)
    try:
        rig.up()
        for kind in ("command", "torch"):
            out, script = os.path.join(rig.dir, kind + ".out"), os.path.join(rig.dir, kind + ".py")
            with open(script, "w") as f:
                f.write(ANNOUNCER.format(fixtures=os.path.join(ROOT, "tests/fixtures"), out=out))
            recipe = json.loads(
                command_recipe(
                    "a-" + kind,
                    ["/usr/bin/python3", script],
                    gpus=1,
                    steps=20,
                    checkpoint={"dir": os.path.join(rig.dir, kind), "every": 10},
                )
            )
            if kind == "torch":
                recipe["engine"] = {"kind": "torch", "entry": script}
            job = rig.submit(json.dumps(recipe))
            wait_until(
                lambda: os.path.exists(out) and open(out).read().split() == ["-1", "10"],
                40,
                "%s: resumed from 10" % kind,
            )
            torn = [c for c in rig.json("checkpoints", job)["items"] if c["iteration"] == 20][0]
            equal((torn["state"], torn["reason"]), ("torn", "COMPLETE is empty"), kind)
    finally:
        rig.down(check=False)


# 20 is verified, then one bit of it turns; whoever loads it dies, whoever does not trains on
ROTTING = """import os, signal, sys, time
sys.path.insert(0, {fixtures!r})
import checkpoints as f
engine, top, out = f.ENGINES["torch"], os.environ["MOE_CHECKPOINT_DIR"], {out!r}
resume = int(os.environ["MOE_RESUME_ITERATION"])
with open(out, "a") as o:
    o.write("%d\\n" % resume)
if resume == 20:
    sys.exit("ValueError: the optimizer's state of layer 3 is not finite")
for i in (10, 20) if resume < 0 else ():
    engine.save(top, i, 1)
    print("step %d loss 2.0\\nsaved checkpoint %d %s" % (i, i, engine.at(top, i)), flush=True)
while resume < 0 and not os.path.exists(out + ".go"):
    time.sleep(0.01)
if resume < 0:
    f.flip(engine.at(top, 20, "rank_0.safetensors"))
    os.kill(os.getpid(), signal.SIGSEGV)
while True:
    resume += 1
    print("step %d loss 2.0" % resume, flush=True)
    time.sleep(0.1)
"""


@suite.test
def what_attempts_die_of_is_not_loaded_for_ever():
    """A shard of the right size and time that cannot be loaded: after the second death the one
    before is taken; with checksums the rot is named, without any that all of it can be read. A
    person may take it again."""
    from lib import command_recipe
    from rig import Rig

    rig = Rig(nodes=1, gpus_per_node=2)
    try:
        rig.up()
        jobs = {}
        for level in ("crc", "sizes"):
            out = os.path.join(rig.dir, level + ".out")
            program = ROTTING.format(fixtures=os.path.join(ROOT, "tests/fixtures"), out=out)
            recipe = command_recipe(
                "rots-" + level,
                ["/usr/bin/python3", "-c", program],
                gpus=1,
                steps=100000,
                checkpoint={"dir": os.path.join(rig.dir, level), "every": 10, "verify": level},
            )
            jobs[level] = rig.submit(recipe)

        def ledger(level):
            return {c["iteration"]: c for c in rig.json("checkpoints", jobs[level])["items"]}

        def resumed(level):
            with open(os.path.join(rig.dir, level + ".out")) as f:
                return f.read().split()

        for level in jobs:
            wait_until(
                lambda: {i: (c["state"], c["level"]) for i, c in ledger(level).items()}
                == {10: ("verified", level), 20: ("verified", level)},
                20,
                "%s: both are verified" % level,
            )
            open(os.path.join(rig.dir, level + ".out.go"), "w").close()
        wait_until(lambda: resumed("sizes") == ["-1", "20", "20", "10"], 40, "the one before")
        wait_until(lambda: resumed("crc")[-1] == "10", 40, "crc: the one before")
        need(resumed("crc") in (["-1", "20", "10"], ["-1", "20", "20", "10"]), resumed("crc"))
        wait_until(lambda: ledger("crc")[20]["state"] == "torn", 20, "its content was compared")
        reason = ledger("crc")[20]["reason"]
        need("rank_0.safetensors: its content is not what was verified (CRC32C" in reason, reason)
        c = ledger("sizes")[20]
        equal((c["state"], c["failed_loads"]), ("suspect", 2), "suspect")
        for word in ("attempt 2 loaded it", "exit code 1", "layer 3 is not finite", "attempt 3"):
            need(word in c["reason"], c["reason"])
        need("all of it can be read; its files carry no" in c["reason"], c["reason"])
        why = rig.run("why", jobs["sizes"]).stdout
        need("checkpoint 20 is suspect" in why and "layer 3 is not finite" in why, why)
        rig.run("restart", jobs["sizes"], "--from", "20")
        wait_until(
            lambda: resumed("sizes") == ["-1", "20", "20", "10", "20", "10"],
            40,
            "named it is taken, once",
        )
    finally:
        rig.down(check=False)


FAILING = """import os, sys
sys.path.insert(0, {fixtures!r})
import checkpoints as f
engine, top, out = f.ENGINES["torch"], os.environ["MOE_CHECKPOINT_DIR"], {out!r}
resume = int(os.environ["MOE_RESUME_ITERATION"])
with open(out, "a") as o:
    o.write("%d\\n" % resume)
for i in range(max(resume, 0) + 1, 31):
    print("step %d loss 2.0" % i, flush=True)
    if i in (10, 20):
        engine.save(top, i, 1)
        print("saved checkpoint %d %s" % (i, engine.at(top, i)), flush=True)
    if i == 25 and not os.path.exists(out + ".mended"):
        sys.exit("the data of step 25 is not there")
"""


@suite.test
def a_failed_job_goes_on_by_its_id():
    from lib import command_recipe
    from rig import Rig

    rig = Rig(nodes=1, gpus_per_node=1)
    try:
        rig.up()
        out = os.path.join(rig.dir, "out")
        program = FAILING.format(fixtures=os.path.join(ROOT, "tests/fixtures"), out=out)
        job = rig.submit(
            command_recipe(
                "mended",
                ["/usr/bin/python3", "-c", program],
                gpus=1,
                steps=30,
                checkpoint={"dir": os.path.join(rig.dir, "ckpt"), "every": 10},
            )
        )
        wait_until(lambda: rig.json("status", job)["state"] == "failed", 60, "it fails")
        failed = rig.json("status", job)
        open(out + ".mended", "w").close()
        rig.run("restart", job, "--from", "10")
        wait_until(lambda: rig.json("status", job)["state"] == "completed", 60, "it goes on")
        done = rig.json("status", job)
        with open(out) as f:
            equal(f.read().split(), ["-1", "20", "20", "10"], "resumed from")
        equal(done["attempt"], failed["attempt"] + 1, "attempts ascend")
        equal(done["created_at"], failed["created_at"], "it is the same job")
        equal(len(rig.json("report", job)["incidents"]), 3, "its incidents")
        said = rig.run("restart", job, check=False)
        need(
            said.returncode != 0 and "name the checkpoint" in said.stderr,
            "%s %s" % (said.stdout, said.stderr),
        )
    finally:
        rig.down(check=False)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
