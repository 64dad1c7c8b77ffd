"""The dashboard in a real browser (tests/web/bench_page.mjs), signed in, looking at a job on every
GPU of an emulated fleet (12,544 nodes: 100,352 ranks, whose iterations all move each second);
fleet, controller and browser share the machine. FLEET=N: so many nodes instead."""
import json
import os
import subprocess

from fleet import LIMIT_S, Fleet, large_job
from lib import ROOT, Failed, Skipped, wait_until

NODES = int(os.environ.get("FLEET", "12544"))
SOAK_S = 60
UNITS = {"files": "KiB", "heap": "MiB"}
NAMES = {
    "files": "files_over_the_wire",
    "first_paint": "first_contentful_paint",
    "first_jobs": "start_to_jobs_painted",
    "first_ranks": "start_to_ranks_painted",
    "draw_ranks": "ranks_drawn_again",
    "event_to_pixel": "event_to_pixel",
    "heap": "heap_after_gc_over_%d_s" % SOAK_S,
}


def chromium():
    r = subprocess.run([os.path.join(ROOT, "tests/web/browser")], stdout=subprocess.PIPE, text=True)
    if r.returncode:
        raise Skipped(r.stdout.strip())
    return r.stdout.strip()


def bench(report, n):
    browser = chromium()
    with Fleet(nodes=NODES, progress=1) as f:
        f.all_up(LIMIT_S)
        wait_until(lambda: f.moed.get("/v1/cluster")["gpus"]["free"] == 8 * NODES, 30, "free")
        job = f.post("/v1/jobs", large_job(8 * NODES))["id"]
        wait_until(lambda: f.state(job) == "running", 120, "running")
        with open(os.path.join(f.moed.dir, "tokens/admin.token")) as t:
            token = t.read().strip()
        what = {
            "url": "http://%s:%s" % (f.moed.host, f.moed.port),
            "token": token,
            "chromium": browser,
            "job": job,
            "recipe": dict(large_job(1), name="waits"),
            "n": n,
            "soak_s": SOAK_S,
        }
        r = subprocess.run(
            ["node", os.path.join(ROOT, "tests/web/bench_page.mjs")],
            env=dict(os.environ, PAGE_BENCH=json.dumps(what)),
            stdout=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    if r.returncode:
        raise Failed("tests/web/bench_page.mjs: exit status %d" % r.returncode)
    for name, samples in json.loads(r.stdout).items():
        report("page", NAMES[name], samples, UNITS.get(name, "ms"))
