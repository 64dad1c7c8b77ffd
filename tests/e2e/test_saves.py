"""Real saves (tests/fixtures/engines/saves.tar.xz): Megatron-LM's format torch with experts, and
orbax before it marked its steps. Whole ones pass, each damage to each file is refused, and what
the engine itself cannot load, or would mix with another save, is never resumed."""
import functools
import json
import os
import shutil
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "fixtures"))
import checkpoints as fixtures  # noqa: E402
from lib import ROOT, Cluster, Suite, equal, moectl, need, wait_until  # noqa: E402

suite = Suite()
SAVES = os.path.join(ROOT, "tests/fixtures/engines/saves.tar.xz")


def unpack(top, below):
    with tarfile.open(SAVES) as t:
        t.extractall(top, [m for m in t.getmembers() if m.name.startswith("./%s/" % below)])
    return os.path.join(top, below)


def look(top, kind, world, level="sizes"):
    doc = json.loads(
        moectl(
            "checkpoints",
            "--dir",
            top,
            "--engine",
            kind,
            "--world",
            world,
            "--verify",
            level,
            "--json",
        ).stdout
    )
    return doc, {c["iteration"]: c for c in doc["items"]}


def states(top, kind, world, level="sizes"):
    return {i: c["state"] for i, c in look(top, kind, world, level)[1].items()}


def files_of(entry):
    return sorted(os.path.join(d, f) for d, _, names in os.walk(entry) for f in names)


# name: (ranks that wrote it, sizes that a resume needs)
WHOLE = {
    "ep2": (2, "tp 1, pp 1, ep 2"),
    "ep2-distopt": (2, "tp 1, pp 1, ep 2"),
    "pp2": (2, "tp 1, pp 2, ep 1"),
    "tp2-ep2-etp1": (2, "tp 2, pp 1, ep 2, etp 1"),
    "tp2-ep2-etp1-distopt": (2, "tp 2, pp 1, ep 2, etp 1"),
    "tp2-ep4-etp1": (4, "tp 2, pp 1, ep 4, etp 1"),
    "tp2-ep2-distopt": (4, "tp 2, pp 1, ep 2, etp 2"),
    "tp2-pp2-ep2-etp1-distopt": (4, "tp 2, pp 2, ep 2, etp 1"),
    "tp4-ep4-etp2": (8, "tp 4, pp 1, ep 4, etp 2"),
}
# What Megatron wrote and, tried, could not load again, or loaded other numbers from: (ranks, words
# of the reason)
BROKEN = {
    "tp2-etp1": (
        2,
        "some ranks wrote no file, and the engine cannot load it without; take another format",
    ),
    "tp2-etp1-distopt": (2, "some ranks wrote no file"),
    "tp4-ep2-etp1": (
        4,
        "tensor_model_parallel_size 4, expert_tensor_parallel_size 1 and "
        "expert_model_parallel_size 2 some ranks wrote no file",
    ),
    "etp2": (2, "two ranks wrote each file, one over the other"),
}


def extra_name(entry):
    """A part that belongs to no rank of this save: beyond its tensor ranks."""
    first = sorted(d for d in os.listdir(entry))[0]
    return os.path.join(entry, first), os.path.join(
        entry, "mp_rank_07" + first[len("mp_rank_00") :]
    )


def megatron_whole(name, world, fixed):
    def run():
        with tempfile.TemporaryDirectory() as box:
            top = unpack(box, "megatron/" + name)
            by_primus = os.path.join(box, "checkpoints")  # where Primus looks for them
            os.symlink(top, by_primus)
            for level in ("marker", "sizes"):
                for kind, ranks in (
                    ("megatron-lm", world),
                    ("primus-megatron", world),
                    ("megatron-lm", 2 * world),
                ):
                    doc, items = look(
                        by_primus if kind == "primus-megatron" else top, kind, ranks, level
                    )
                    equal(
                        {
                            i: (c["state"], c["reason"], c["fixed"], c.get("held"))
                            for i, c in items.items()
                        },
                        {4: ("verified", None, fixed, None)},
                        "%s, %s, %d ranks" % (kind, level, ranks),
                    )
                    equal(doc["resume"], {"iteration": 4}, "resume")
            entry = os.path.join(top, "iter_0000004")
            for path in files_of(entry):
                was = path + ".was"
                for how, damage in (
                    ("missing", os.unlink),
                    ("empty", lambda p: fixtures.cut(p, 0)),
                    ("cut", fixtures.cut),
                    ("half", lambda p: fixtures.cut(p, os.stat(p).st_size // 2)),
                    ("zeros", fixtures.zeros),
                ):
                    shutil.copy2(path, top + ".was")
                    damage(path)
                    doc, items = look(top, "megatron-lm", world)
                    need(
                        items[4]["state"] == "torn" and doc["resume"] is None,
                        lambda: "%s: %s %s passes: %s"
                        % (name, os.path.relpath(path, entry), how, items),
                    )
                    need(
                        os.path.relpath(path, entry) in items[4]["reason"]
                        or "missing" in items[4]["reason"],
                        items[4],
                    )
                    if how == "missing":
                        equal(
                            states(top, "megatron-lm", world, "marker"),
                            {4: "torn"},
                            "%s without %s, by its names" % (name, path),
                        )
                    shutil.copy2(top + ".was", path)
                need(not os.path.exists(was), was)
            for part in sorted(os.listdir(entry)):
                os.rename(os.path.join(entry, part), top + ".part")
                need(
                    states(top, "megatron-lm", world)[4] == "torn",
                    lambda: "%s without %s passes" % (name, part),
                )
                os.rename(top + ".part", os.path.join(entry, part))
            shutil.copytree(*extra_name(entry))
            equal(states(top, "megatron-lm", world), {4: "torn"}, "a part that no rank has")

    run.__name__ = "megatron_" + name.replace("-", "_")
    suite.test(run)


for n in WHOLE:
    megatron_whole(n, *WHOLE[n])


@suite.test
def what_megatron_cannot_load_is_refused():
    with tempfile.TemporaryDirectory() as box:
        for name, (world, words) in BROKEN.items():
            top = unpack(box, "megatron/" + name)
            for level in ("marker", "sizes"):
                doc, items = look(top, "megatron-lm", world, level)
                need(
                    items[4]["state"] == "torn" and words in items[4]["reason"],
                    lambda: "%s, %s: %s" % (name, level, items),
                )
                equal(doc["resume"], None, name)


@suite.test
def other_sizes_are_no_resume():
    """What the plan says of a recipe with experts split otherwise than those of the save."""
    with tempfile.TemporaryDirectory() as box:
        top = unpack(box, "megatron/tp2-ep2-etp1")
        recipe = os.path.join(box, "r.yaml")
        with open(recipe, "w") as f:
            f.write(
                "recipe: 1\nname: r\nengine: {kind: megatron-lm, workdir: /w}\n"
                "model: qwen3-30b-a3b\ncluster: {gpus: 32, gpu: mi355x}\nsteps: 60\n"
                "precision: bf16\n"
                "parallelism: {tp: 2, pp: 1, ep: 2, etp: 1}\n"
                "batch: {seq: 4096, micro: 1, global: 64}\ncheckpoint: {dir: %s, every: 20}\n" % top
            )
        said = (
            "checkpoint 4 in %s does not reshard: a resume from it needs tp 2, pp 1, ep 2, etp 1, "
            "and this plan has " % top
        )
        for change, has in (
            ("parallelism.etp=1", None),
            ("parallelism.etp=2", "etp 2"),
            ("parallelism.ep=4", "ep 4"),
        ):
            notes = json.loads(moectl("plan", recipe, "--json", "--set", change).stdout)["plans"][
                0
            ]["notes"]
            equal(
                [x for x in notes if "does not reshard" in x], [said + has] if has else [], change
            )


@suite.test
def no_recipe_asks_for_what_cannot_be_loaded():
    """A model without experts gets no word of how they are split; with experts the splits of which
    some rank never writes are refused."""
    dense = {"layers": 8, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 32000}
    moe = dict(dense, moe={"experts": 8, "topk": 2, "ffn": 512})
    with tempfile.TemporaryDirectory() as box:
        path = os.path.join(box, "r.json")
        for model, parallelism, etp, refused in (
            (dense, {"tp": 2}, None, False),
            (dense, {"tp": 2, "etp": 1}, None, False),
            (moe, {"tp": 2, "ep": 4}, "1", False),
            (moe, {"tp": 2, "etp": 2}, "2", False),
            (moe, {"tp": 2}, "1", True),
            (moe, {"tp": 4, "ep": 2}, "1", True),
            ("", {"tp": 2}, "1", True),
        ):
            recipe = {
                "recipe": 1,
                "name": "r",
                "engine": {
                    "kind": "megatron-lm",
                    "workdir": "/w",
                    "args": {"ckpt-format": "torch"},
                },
                "cluster": {"gpus": 8, "gpu": "mi300x"},
                "steps": 60,
                "model": model,
                "parallelism": parallelism,
                "batch": {"seq": 1024, "micro": 1, "global": 16},
                "checkpoint": {"dir": "/ckpt", "every": 20},
            }
            if not model:
                del recipe["model"]
            with open(path, "w") as f:
                json.dump(recipe, f)
            r = moectl("submit", "--dry-run", path, "--json", check=False)
            need(
                ("does not go with" in r.stdout + r.stderr) == refused,
                lambda: "%s %s: %s"
                % (parallelism, model and "moe" in model, r.stdout[:600] + r.stderr),
            )
            if not refused:
                words = json.loads(r.stdout)["ranks"][0]["argv"]
                equal(
                    words[words.index("--expert-tensor-parallel-size") + 1]
                    if "--expert-tensor-parallel-size" in words
                    else None,
                    etp,
                    "%s %s" % (parallelism, "moe" in model),
                )


HELD = (
    "the engine would load distrib_optim.pt of iteration 4, which the tracker file "
    "latest_checkpointed_iteration.txt names, whatever step it is told: write 2 into it"
)


@suite.test
def one_that_the_tracker_does_not_name_is_not_mixed():
    """Tried with Megatron-LM: of --ckpt-step 2 beside a tracker that says 4 it loads the weights of
    2, the optimizer of 4, and goes on from 4."""
    with tempfile.TemporaryDirectory() as box:
        top = unpack(box, "megatron/ep2-distopt-two")
        doc, items = look(top, "megatron-lm", 2)
        equal(
            {i: (c["state"], c.get("held")) for i, c in items.items()},
            {2: ("verified", HELD), 4: ("verified", None)},
            "both whole",
        )
        equal(doc["resume"], {"iteration": 4}, "the newest")
        fixtures.zeros(os.path.join(top, "iter_0000004/mp_rank_00_001/distrib_optim.pt"))
        doc, items = look(top, "megatron-lm", 2)
        equal(
            ({i: c["state"] for i, c in items.items()}, doc["resume"]),
            ({2: "verified", 4: "torn"}, None),
            "the newest is damaged",
        )
        text = moectl("checkpoints", "--dir", top, "--engine", "megatron-lm", "--world", 2).stdout
        need(
            "a run would wait: checkpoint 2 in %s: %s" % (top, HELD) in text
            and "not to be resumed as it is: the engine would load" in text,
            text,
        )
        with open(os.path.join(top, "latest_checkpointed_iteration.txt"), "w") as f:
            f.write("2")
        doc, items = look(top, "megatron-lm", 2)
        equal(
            ({i: (c["state"], c.get("held")) for i, c in items.items()}, doc["resume"]),
            ({2: ("verified", None), 4: ("torn", None)}, {"iteration": 2}),
            "the tracker names it",
        )
        top = unpack(box, "megatron/ep2")
        shutil.copytree(os.path.join(top, "iter_0000004"), os.path.join(top, "iter_0000008"))
        with open(os.path.join(top, "latest_checkpointed_iteration.txt"), "w") as f:
            f.write("8")
        items = look(top, "megatron-lm", 2)[1]
        equal(
            (items[4]["state"], items[4].get("held"), items[8]["state"]),
            ("verified", None, "torn"),
            "without those files any step can be loaded",
        )
        need("it is of iteration 4" in items[8]["reason"], items[8])


@suite.test
def a_job_waits_for_the_tracker():
    with tempfile.TemporaryDirectory() as box, Cluster(nodes=1, gpus_per_node=2) as c:
        top = unpack(box, "megatron/ep2-distopt-two")
        os.unlink(os.path.join(top, "iter_0000004/mp_rank_00_001/distrib_optim.pt"))
        program = os.path.join(box, "program")
        with open(program, "w") as f:
            f.write("#!/bin/sh\necho \"$@\" > %s/words\nexec sleep 1000\n" % box)
        os.chmod(program, 0o755)
        recipe = json.dumps(
            {
                "recipe": 1,
                "name": "held",
                "engine": {"kind": "megatron-lm", "python": program, "workdir": box},
                "cluster": {"gpus": 2},
                "parallelism": {"ep": 2},
                "steps": 60,
                "checkpoint": {"dir": top, "every": 20},
            }
        )
        job = c.submit(recipe)
        said = "checkpoint 2 in %s: %s (looked at again every 30 s)" % (top, HELD)
        wait_until(
            lambda: said in (c.json("status", job).get("reason") or ""),
            60,
            "it says what it waits for",
        )
        equal(
            {
                x["iteration"]: (x["state"], x.get("held"))
                for x in c.json("checkpoints", job)["items"]
            },
            {2: ("verified", HELD), 4: ("torn", None)},
            "its ledger",
        )
        need(HELD in c.run("checkpoints", job).stdout, "people's text")
        need(not os.path.exists(box + "/words"), "a rank was started")
        c.run("cancel", job, "--now")
        with open(os.path.join(top, "latest_checkpointed_iteration.txt"), "w") as f:
            f.write("2")
        job = c.submit(recipe)
        wait_until(
            lambda: os.path.exists(box + "/words")
            and "--ckpt-step 2" in open(box + "/words").read(),
            60,
            "a resume from 2",
        )
        c.run("cancel", job, "--now")


# ---- orbax 0.5.3 and 0.5.10, which marked no step ----

ORBAX = {
    "0.5.3-ocdbt-items": "items",
    "0.5.3-zarr-items": "items",
    "0.5.3-ocdbt-default": "default",
    "0.5.10-ocdbt-items": "items",
    "0.5.10-zarr-items": "items",
    "0.5.10-ocdbt-default": "default",
}


@suite.test
def orbax_before_its_steps_were_marked():
    """orbax 0.12.4 restores each of them; what it cannot restore is torn."""
    with tempfile.TemporaryDirectory() as box:
        for name, item in ORBAX.items():
            top = unpack(box, "orbax/" + name)
            entry = os.path.join(top, "moe/checkpoints/20")
            for level in ("marker", "sizes"):
                for kind in ("maxtext", "maxtext-multiprocess"):
                    equal(
                        {
                            i: (c["state"], c["reason"])
                            for i, c in look(top, kind, 1, level)[1].items()
                        },
                        {10: ("verified", None), 20: ("verified", None)},
                        "%s, %s, %s" % (name, kind, level),
                    )

            def torn(what, words, damage):
                shutil.copytree(entry, top + ".was")
                damage()
                doc, items = look(top, "maxtext", 1)
                need(
                    items[20]["state"] == "torn"
                    and words in items[20]["reason"]
                    and doc["resume"] == {"iteration": 10},
                    lambda: "%s, %s: %s" % (name, what, items),
                )
                shutil.rmtree(entry)
                os.rename(top + ".was", entry)

            inside = functools.partial(os.path.join, entry, item)
            index = inside("_METADATA")
            torn("index", "_METADATA is missing", lambda: os.unlink(index))
            torn("index empty", "_METADATA is empty", lambda: fixtures.cut(index, 0))
            torn("index cut", "no whole JSON", lambda: fixtures.cut(index))
            torn("index zeros", "it holds zeros", lambda: fixtures.zeros(index))
            torn(
                "mark of its time",
                "_CHECKPOINT_METADATA|commit_success.txt|",
                lambda: os.unlink(inside("checkpoint")),
            )
            torn("that empty", "checkpoint is empty", lambda: fixtures.cut(inside("checkpoint"), 0))
            size = os.stat(inside("checkpoint")).st_size
            for n in (1, size // 3, size - 1):
                # orbax: "Unpack failed: incomplete input"
                torn(
                    "that cut to %d" % n,
                    "checkpoint: it is cut short",
                    lambda: fixtures.cut(inside("checkpoint"), n),
                )
            torn("that zeros", "it holds zeros", lambda: fixtures.zeros(inside("checkpoint")))
            if "ocdbt" not in name:
                continue
            torn(
                "manifest", "manifest.ocdbt is missing", lambda: os.unlink(inside("manifest.ocdbt"))
            )
            torn(
                "manifest cut",
                "manifest.ocdbt: it is cut short",
                lambda: fixtures.cut(inside("manifest.ocdbt")),
            )
            torn(
                "manifest flipped", "its checksum", lambda: fixtures.flip(inside("manifest.ocdbt"))
            )
            torn("data", "d/ is missing or empty", lambda: shutil.rmtree(inside("d")))
            for path in files_of(entry):
                if "/d/" in path:
                    torn("data empty", "empty", lambda: fixtures.cut(path, 0))
                    torn("data zeros", "it holds zeros", lambda: fixtures.zeros(path))


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
