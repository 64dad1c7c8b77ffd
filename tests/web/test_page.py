#!/usr/bin/python3
"""Makes the cluster that test_page.mjs looks at: a training job that lost a rank once and goes on,
and one that failed with markup in its last lines."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))
from lib import BUILD, MOECTL, Cluster, command_recipe, wait_until  # noqa: E402

RANK = os.path.join(BUILD, "tests/fake/rank")


def train_recipe(work):
    """4 ranks; rank 1 leaves at iteration 30 of the first attempt, with a signal's exit code, after
    the checkpoint of 20."""
    argv = [
        RANK,
        "--steps",
        "100000",
        "--step-ms",
        "40",
        "--save-every",
        "20",
        "--exit",
        "30:134:1",
    ]
    return command_recipe(
        "train",
        argv,
        gpus=4,
        steps=100000,
        checkpoint={"dir": os.path.join(work, "ckpt"), "every": 20},
    )


def main():
    work = tempfile.mkdtemp(prefix="moe-page-")
    shots = os.path.join(BUILD, "check/page")
    shutil.rmtree(shots, ignore_errors=True)
    try:
        with Cluster(dir=os.path.join(work, "cluster"), nodes=2, gpus_per_node=3) as c:
            train = c.submit(train_recipe(work))
            markup = c.submit(
                command_recipe(
                    "markup",
                    ["/bin/sh", "-c", "echo '<img src=x onerror=\"window.harmed=1\">' >&2; exit 1"],
                )
            )
            # both labels of them, so that one filters by a label that others have too
            label = command_recipe("sweep", ["/bin/true"], labels={"team": "vision", "study": "lr"})
            sweep = c.submit(label)
            c.wait_state(markup, "failed")
            c.wait_state(sweep, "completed")
            wait_until(
                lambda: c.job(train)["attempt"] == 2 and (c.job(train)["iteration"] or 0) > 25,
                60,
                "the second attempt of the training job",
            )
            short = os.path.join(work, "short.yaml")
            with open(short, "w") as f:
                f.write(command_recipe("short", ["/bin/true"]))
            s = c.status()
            with open(s["token_file"]) as f:
                token = f.read().strip()
            test = {
                "url": s["tcp_url"].rstrip("/"),
                "token": token,
                "dir": c.dir,
                "moectl": MOECTL,
                "nodes": 2,
                "gpus": 6,
                "train_ranks": 4,
                "jobs": {"train": train, "markup": markup, "sweep": sweep},
                "short_recipe": short,
                "shots": shots,
                "chromium": sys.argv[1],
            }
            return subprocess.run(
                ["node", os.path.join(HERE, "test_page.mjs")],
                env=dict(c.env, PAGE_TEST=json.dumps(test)),
                timeout=600,
            ).returncode
    finally:
        shutil.rmtree(work, ignore_errors=True)


sys.exit(main())
