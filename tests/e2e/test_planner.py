#!/usr/bin/python3
"""The planner as users meet it: moectl plan, POST /v1/plan, and jobs that leave their sizes to it.
Usage: test_planner.py [TEST...]"""
import json
import os
import random
import shutil
import socket
import sys
import tempfile

import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
import machine  # noqa: E402
from lib import ROOT, Cluster, Suite, clean_env, equal, moectl, need, wait_until  # noqa: E402

WORK = tempfile.mkdtemp(prefix="moe-planner-")
suite = Suite()
# A rank that tells the command that it got; the last one prints iterations as Megatron-LM does; all stay.
PYTHON = """#!/bin/sh
echo "$@" >"%s/argv.$RANK.new"
mv "%s/argv.$RANK.new" "%s/argv.$RANK"
i=0
while [ $RANK = 7 ] && [ $i -lt 80 ]; do
	i=$((i + 1))
	echo " [2026-08-22 10:00:00.123456] iteration $i/ 1000 | consumed samples: 192 | elapsed time per iteration (ms): 400.0 | lm loss: 2.3E+00 |"
done
exec sleep 100000
""" % (WORK, WORK, WORK)
DATA = os.path.join(ROOT, "config")
SEVEN = {"layers": 7, "hidden": 2048, "heads": 16, "kv_heads": 4, "ffn": 8192, "vocab": 32000}


def place(name):
    return os.path.join(WORK, name)


def recipe(**more):
    doc = {"recipe": 1, "name": "planned", "engine": {"kind": "megatron-lm", "workdir": WORK, "python": place("python"), "args": {"mock-data": True}}, "model": SEVEN,
           "cluster": {"gpus": 8, "gpu": "mi355x", "nic_gbps": 400}, "batch": {"seq": 4096, "global": 64}, "precision": "bf16", "steps": 1000, "parallelism": "auto"}
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
        super().__init__(place("cluster"), nodes=1, gpus_per_node=8, extra=["--topology", place("root")])

    def ask(self, path, body):
        """POST through the UNIX socket: status and body."""
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(120)
        s.connect(os.path.join(self.dir, "moed.sock"))
        s.sendall(("POST %s HTTP/1.0\r\nHost: moe\r\nContent-Type: application/yaml\r\nContent-Length: %d\r\n\r\n" % (path, len(body.encode()))).encode() + body.encode())
        head, _, rest = b"".join(iter(lambda: s.recv(65536), b"")).partition(b"\r\n\r\n")
        need(b"chunked" not in head.lower(), head)
        return int(head.split()[1]), rest.decode()


@suite.test
def chosen_sizes_reach_the_ranks(c):
    """7 layers on two stages: the search keeps the stages that engine.args fix, the job gets their layout, and every rank's command has what status shows. So has a dry run, with and without a controller."""
    doc = recipe()
    doc["engine"]["args"] = {"mock-data": True, "pipeline-model-parallel-size": 2, "recompute-granularity": "selective"}
    text = json.dumps(doc)
    dry = json.loads(c.run("submit", "-", "--dry-run", "--json", stdin=text).stdout)["ranks"][0]["argv"]
    alone = json.loads(moectl("submit", "-", "--dry-run", "--json", env=clean_env(MOE_URL="unix:" + place("nobody")), stdin=text).stdout)["ranks"][0]["argv"]
    job = c.submit(text)
    chosen = c.job(job)["plan"]["chosen"]
    equal((chosen["pp"], chosen["vpp"], chosen["pipeline_layout"], chosen["recompute"]), (2, 1, "Et*4|t*3,L", None), "sizes of the job")
    need("pipeline_layout Et*4|t*3,L; chosen by the planner" in c.run("status", job).stdout, "status names what was chosen")
    c.wait_state(job, "running")
    for rank in range(8):
        wait_until(lambda: os.path.exists(place("argv.%d" % rank)), 60, "command of rank %d" % rank)
    with open(place("argv.7")) as f:
        run = f.read().split()
    for argv in (run, dry[1:], alone[1:]):
        equal([value(argv, "--" + f) for f in ("pipeline-model-parallel-layout", "pipeline-model-parallel-size", "tensor-model-parallel-size", "micro-batch-size")],
              ["Et*4|t*3,L", "2", str(chosen["tp"]), str(chosen["micro"])], "flags")
        equal([argv.count("--recompute-granularity"), value(argv, "--recompute-granularity")], [1, "selective"], "recomputation stays as engine.args say")
    wait_until(lambda: c.job(job)["plan"]["within"] is not None, 60, "measured steps")
    with open(place("anchor"), "w") as f:
        f.write(c.run("report", job, "--anchor").stdout)
    with open(place("anchor")) as f:
        equal(json.load(f)["runs"][0]["recipe"]["features"], {"pipeline_layout": "Et*4|t*3,L"}, "what the run is kept with")
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
    """Whatever the order of keys in recipe and catalogue, of files in its directories, locale, time zone and terminal; on a command line, from another directory, and by the controller."""
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
                f.write(yaml.safe_dump(shuffled(yaml.safe_load(text), r), sort_keys=False, width=100000) if directory in ("models", "gpus") else text)
    for doc in (recipe(model="mixtral-8x7b", cluster={"gpus": 64, "gpu": "mi300x"}, batch={"seq": 4096, "global": 512}, features={"a2a": "deepep", "overlap_a2a": True}),
                recipe(model="deepseek-v3", cluster={"gpus": 256, "gpu": "mi355x"}, batch={"seq": 4096, "micro": 1, "global": 2048}, parallelism={"pp": 8, "ep": 8},
                       features={"pipeline_layout": "Et*8|(t*8|)*6t*5,m,L"})):
        words = ("plan", "-", "--json", "--top", "20", "--scale", "64,128,256", "--tokens", "15T")
        first = moectl(*words, stdin=json.dumps(doc)).stdout
        need(len(json.loads(first)["plans"]) == (20 if doc["parallelism"] == "auto" else 1), "plans of %s" % first[:200])
        for n, (data, extra) in enumerate(((DATA, {}), (catalogue, {}), (catalogue, {"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati", "COLUMNS": "20", "TERM": "xterm"}))):
            text = yaml.safe_dump(shuffled(doc, r), sort_keys=False) if n else json.dumps(shuffled(doc, r))
            equal(moectl(*words, stdin=text, env=clean_env(**extra) | {"MOE_DATA_DIR": data}).stdout, first, "run %d" % n)
        status, body = c.ask("/v1/plan?top=20&scale=64,128,256&tokens=15T", json.dumps(shuffled(doc, r)))
        equal((status, body.rstrip("\n")), (200, first.rstrip("\n")), "POST /v1/plan")


@suite.test
def nothing_to_choose(c):
    """A recipe that leaves no sharding is refused alike by plan, a dry run without a controller, and the controller."""
    doc = recipe()
    doc["engine"]["args"]["micro-batch-size"] = 3
    why = "no sharding that parallelism: auto may choose passes the recipe's checks: engine.args: micro-batch-size 3 contradicts batch.micro 1: change that, or give the sizes"
    text, nobody = json.dumps(doc), clean_env(MOE_URL="unix:" + place("nobody"))
    for r in (c.run("plan", "-", stdin=text, check=False), moectl("submit", "-", "--dry-run", env=nobody, stdin=text, check=False), c.run("submit", "-", "--dry-run", stdin=text, check=False),
              c.run("submit", "-", stdin=text, check=False)):
        need(r.returncode == 2 and why in r.stderr and r.stderr.count("\n") == 1, "exit %d: %s" % (r.returncode, r.stderr))


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
