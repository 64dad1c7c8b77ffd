#!/usr/bin/python3
"""Benchmarks: one JSON line per figure
{bench,metric,value,unit,n,min,max,peer,peer_value,ratio,raw}, medians; all samples in
build/bench/*.txt. Peers are run in the same run on the same machine with the same rank
(tests/fake/tiny.c) when they are installed; the floor is posix_spawn of the same program. Usage:
bench.py [NAME ...] [--n SAMPLES]."""
import argparse
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import container
import fleet
import lib
import page
import start
import wide
from image_rig import entry
from lib import BUILD, Failed, Skipped, command_recipe, wait_until
from rig import Rig
from runtime_rig import Docker, Podman

TINY = os.path.join(BUILD, "tests/fake/tiny")
LOAD = os.path.join(BUILD, "tests/bench/load")
OUT = os.path.join(BUILD, "bench")


def report(bench, metric, samples, unit, peer=None, peer_samples=None):
    if len(samples) < 5:
        raise Failed("%s %s: %d samples, at least 5 are needed" % (bench, metric, len(samples)))
    raw = os.path.join(OUT, "%s-%s.txt" % (bench, metric))
    with open(raw, "w") as f:
        f.write("".join("%r\n" % s for s in samples))
    value, peer_value = (
        statistics.median(samples),
        statistics.median(peer_samples) if peer_samples else None,
    )
    print(
        json.dumps(
            {
                "bench": bench,
                "metric": metric,
                "value": round(value, 4),
                "unit": unit,
                "n": len(samples),
                "min": round(min(samples), 4),
                "max": round(max(samples), 4),
                "peer": peer,
                "peer_value": peer_value and round(peer_value, 4),
                "ratio": peer_value and round(value / peer_value, 4),
                "raw": os.path.relpath(raw),
            }
        ),
        flush=True,
    )


class Cluster(lib.Cluster):
    """Step directories on tmpfs where there is one, as /run of a node is; all else (records, fence,
    logs) on the disk of the build directory."""

    def __enter__(self):
        os.makedirs(self.dir)
        self.run_dir = (
            tempfile.mkdtemp(prefix="moe-bench-", dir="/dev/shm")
            if os.access("/dev/shm", os.W_OK)
            else None
        )
        if self.run_dir:
            os.symlink(self.run_dir, os.path.join(self.dir, "run"))
        return super().__enter__()

    def __exit__(self, *exc):
        super().__exit__(*exc)
        if self.run_dir:
            shutil.rmtree(self.run_dir)


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.unix = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.unix)


class Api:
    """One kept-alive connection to the UNIX socket, so that the client costs little."""

    def __init__(self, cluster):
        self.c = Unix(os.path.join(cluster.dir, "moed.sock"))

    def call(self, method, path, body=None):
        self.c.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        r = self.c.getresponse()
        text = r.read()
        if r.status >= 300:
            raise Failed("%s %s: %d %s" % (method, path, r.status, text[:300]))
        return json.loads(text) if text else None

    def submit(self, recipe):
        return self.call("POST", "/v1/jobs", recipe)["id"]

    def state(self, job, states, deadline=30):
        return wait_until(
            lambda: self.call("GET", "/v1/jobs/" + job)["state"] in states,
            deadline,
            job + " in " + "/".join(states),
        )

    def end(self, job):
        self.call("POST", "/v1/jobs/%s/cancel" % job, json.dumps({"now": True}))
        self.state(job, ["cancelled", "failed", "completed"])


def starts(path, attempt, n):
    """ns of main() of each rank once all n of the attempt are there; None before."""
    try:
        rows = [line.split() for line in open(path)]
    except FileNotFoundError:
        return None
    rows = [r for r in rows if len(r) == 4 and r[1] == str(attempt)]
    return [int(r[3]) for r in rows] if len(rows) >= n else None


def recipe(name, path, gpus=8, extra=()):
    return command_recipe(name, [TINY, path] + list(extra), gpus)


def fresh(name):
    path = os.path.join(OUT, "run-" + name)
    if os.path.exists(path):
        os.unlink(path)
    return path


def floor_spawn(n, ranks):
    """posix_spawn of the ranks by this process: first spawn -> last main()."""
    samples = []
    for i in range(n):
        path = fresh("floor")
        t0 = time.time_ns()
        pids = [
            os.posix_spawn(TINY, [TINY, path], dict(os.environ, RANK=str(r), MOE_ATTEMPT="1"))
            for r in range(ranks)
        ]
        got = wait_until(lambda: starts(path, 1, ranks), 10, "ranks of the floor")
        samples.append((max(got) - t0) / 1e6)
        for p in pids:
            os.kill(p, signal.SIGKILL)
            os.waitpid(p, 0)
    return samples


def peer_launch(n, ranks):
    """The fastest peer that is installed: (name, samples) of command -> all ranks in main()."""
    commands = [
        ("srun", ["srun", "-n%d" % ranks, "--overcommit"]),
        (
            "mpirun",
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "-x", "RANK=0"],
        ),
        (
            "torchrun",
            [
                "/usr/bin/python3",
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "torchrun.py"),
                "--nnodes=1",
                "--nproc_per_node=%d" % ranks,
                "--master_port=29777",
                "--no_python",
            ],
        ),
    ]
    for name, argv in commands:
        if not shutil.which(argv[0]) or (
            name == "torchrun"
            and subprocess.run(
                [argv[0], "-c", "import torch"], stderr=subprocess.DEVNULL
            ).returncode
        ):
            continue
        samples = []
        for i in range(n):
            path = fresh("peer")
            t0 = time.time_ns()
            p = subprocess.Popen(
                argv + [TINY, path, "exit"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            got = wait_until(lambda: starts(path, 1, ranks), 60, "ranks of " + name)
            samples.append((max(got) - t0) / 1e6)
            p.wait()
        return name, samples
    return None, None


def bench_launch(n):
    """Row 1: submit -> all 8 ranks in main(), one node, idle cluster, bind and read-back
    included."""
    with Cluster(os.path.join(OUT, "c1"), nodes=1, gpus_per_node=8) as c:
        api, cli, post, verified, file = Api(c), [], [], 0, os.path.join(OUT, "launch.yaml")
        for i in range(2 * n):
            path = fresh("launch")
            text = recipe("launch-%d" % i, path)
            with open(file, "w") as f:
                f.write(text)
            t0 = time.time_ns()
            if i % 2:
                job = api.submit(text)
            else:
                # as the floor starts its programs; Python's subprocess would cost half a
                # millisecond of its own
                pid = os.posix_spawn(
                    lib.MOECTL,
                    [lib.MOECTL, "submit", file],
                    c.env,
                    file_actions=[
                        (
                            os.POSIX_SPAWN_OPEN,
                            1,
                            file + ".out",
                            os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
                            0o644,
                        )
                    ],
                )
            got = wait_until(lambda: starts(path, 1, 8), 20, "8 ranks")
            (post if i % 2 else cli).append((max(got) - t0) / 1e6)
            if i % 2 == 0:
                os.waitpid(pid, 0)
                with open(file + ".out") as f:
                    job = f.read().split()[0]
            api.state(job, ["running"])
            verified += all(
                r["bind_verified"] is not False
                for r in api.call("GET", "/v1/jobs/%s/ranks" % job)["items"]
            )
            api.end(job)
        if verified != 2 * n:
            raise Failed("binding was not verified in every run")
    peer, peer_samples = peer_launch(5, 8)
    floor = floor_spawn(n, 8)
    report("launch", "post_to_8_ranks", post, "ms", peer, peer_samples)
    report("launch", "post_to_8_ranks_over_floor", post, "ms", "posix_spawn of 8", floor)
    report("launch", "moectl_submit_to_8_ranks", cli, "ms", peer, peer_samples)
    report("launch", "moectl_submit_to_8_ranks_over_floor", cli, "ms", "posix_spawn of 8", floor)
    report("launch", "floor_posix_spawn_8", floor, "ms")


def bench_wide(n):
    for ranks in wide.SIZES:
        each = ranks // wide.AGENTS
        with Cluster(os.path.join(OUT, "c%d" % ranks), wide.AGENTS, each) as c:
            wide.of_size(report, c, Api(c), OUT, ranks, n)


def launch_ms(api, text, path):
    """From the POST to the last of 8 ranks in main(); then the job is ended."""
    t0 = time.time_ns()
    job = api.submit(text)
    got = wait_until(lambda: starts(path, 1, 8), 20, "8 ranks")
    api.state(job, ["running"])
    api.end(job)
    return (max(got) - t0) / 1e6


def container_peer(client, root, n):
    """From the start of 8 clients to the last rank in main()."""
    samples = []
    for i in range(n):
        path, t0 = fresh("container/start"), time.time_ns()
        name = "moe-bench-%d-%d" % (os.getpid(), i)
        out = os.path.dirname(path)
        clients = container.start(client, name, root, out, ["/rank", path, "exit"], 8)
        got = wait_until(lambda: starts(path, 1, 8), 60, "ranks of " + client)
        samples.append((max(got) - t0) / 1e6)
        for p in clients:
            p.wait()
    return samples


def bench_container(n):
    """Submit -> all 8 ranks in main() with an image and without one, in turn; the pair's difference
    is what the image adds. Beside it 8 clients of each runtime that starts here."""
    if os.getuid() != 0:
        raise Failed("only root gives a job an image")
    root = container.image(os.path.join(OUT, "image"), TINY)
    out = os.path.join(OUT, "run-container")
    os.mkdir(out)
    inside, outside = [], []
    with Cluster(os.path.join(OUT, "c8"), nodes=1, gpus_per_node=8) as c:
        api = Api(c)
        for i in range(2 * n + 2):
            path = fresh("container/start")
            doc = json.loads(recipe("container-%d" % i, path))
            if i % 2:
                doc["engine"]["argv"][0] = "/rank"
                doc["engine"]["container"] = {"image": "dir:" + root, "mounts": [out]}
            ms = launch_ms(api, json.dumps(doc), path)
            if i >= 2:  # the first of each reads programs from the disk
                (inside if i % 2 else outside).append(ms)
    added = [a - b for a, b in zip(inside, outside)]
    report("container", "post_to_8_ranks_in_an_image", inside, "ms", "without an image", outside)
    report("container", "added_by_the_image", added, "ms")
    for client in container.CLIENTS:
        why = container.absent(client, "moe-bench-%d" % os.getpid(), root, out)
        if why:
            print("SKIP %s: %s" % (client, why), flush=True)
            continue
        peer = container_peer(client, root, max(5, n // 6))
        report(
            "container", "8_ranks_by_" + client, peer, "ms", "post_to_8_ranks_in_an_image", inside
        )


def held_ms(rig, runtime, out, n):
    """Three of each in turn: without an image, of the runtime's store, in a container that it
    starts. The one before is given up meanwhile."""
    api, ms = Api(rig), ([], [], [])
    for i in range(3 * (n + 1)):
        path, kind = fresh("held/start"), i % 3
        doc = json.loads(recipe("held-%d" % i, path))
        if kind:
            image = "%s:%s" % (runtime.name, runtime.image)
            doc["engine"]["argv"][0] = "/rank"
            doc["engine"]["container"] = {"image": image, "mounts": [out]}
        if kind == 2:
            doc["engine"]["container"]["runtime"] = runtime.name
        took = launch_ms(api, json.dumps(doc), path)
        if i >= 3:
            ms[kind].append(took)
        wait_until(lambda: not runtime.containers(), 30, "the container is given up")
    return ms


def bare_ms(runtime, n):
    """The floor of a container: the two commands of the runtime's file that moectl runs for one
    (`image`, `start`), bare, one after another."""
    with open("%s/data/runtimes/%s.yaml" % (runtime.dir, runtime.name)) as f:
        commands = yaml.safe_load(f)
    words = {"image": runtime.image, "step": "bare", "hold": os.path.join(BUILD, "moe-hold")}
    words["dir"] = os.path.join(runtime.dir, "bare")
    os.mkdir(words["dir"])
    os.mkfifo(words["dir"] + "/life")
    with open(words["dir"] + "/step_id", "w") as f:
        f.write("bare\n")

    def ask(name):
        argv = [re.sub(r"(?<!{){(\w+)}(?!})", lambda m: words[m[1]], w) for w in commands[name]]
        r = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True)
        return r.stdout

    both = []
    for i in range(n + 1):
        life = os.open(words["dir"] + "/life", os.O_RDWR)
        t0 = time.monotonic_ns()
        words["id"] = ask("image").split("\n")[0].split()[-1]
        ask("start")
        if i > 0:
            both.append((time.monotonic_ns() - t0) / 1e6)
        os.close(life)
        ask("release")
    return both


def bench_holder(n):
    """Submit -> all 8 ranks in main() in a container that docker or podman starts, where these
    start here. Beside it the runtime's own two commands: what is above them is moectl's."""
    if os.getuid() != 0:
        raise Failed("only root gives a job an image")
    out = os.path.join(OUT, "run-held")
    os.mkdir(out)
    with open(TINY, "rb") as f:
        program = entry("rank", f.read(), mode=0o755)
    for kind in (Docker, Podman):
        rig = Rig(nodes=1, gpus_per_node=8, agent={"runtimes": kind.name})
        runtime = None
        try:
            runtime = kind(rig.dir)
            runtime.write()
            runtime.up()
            runtime.load([program])
            rig.agent_env = runtime.env()
            with rig:
                without, stored, held = held_ms(rig, runtime, out, max(5, n // 3))
                bare = bare_ms(runtime, max(5, n // 3))
        except Skipped as e:
            print("SKIP %s: %s" % (kind.name, e), flush=True)
            continue
        finally:
            if runtime:
                runtime.down()
        name = "post_to_8_ranks_held_by_" + kind.name
        report("holder", name, held, "ms", "without an image", without)
        report("holder", "post_to_8_ranks_in_the_store_of_" + kind.name, stored, "ms")
        added = [a - b for a, b in zip(held, without)]
        floor = "%s image inspect, %s run" % (kind.name, kind.name)
        report("holder", "added_by_the_container_of_" + kind.name, added, "ms", floor, bare)


def bench_restart(n):
    """Rows 6 and 7: kill -9 of one rank -> every other rank gone, and -> all 8 ranks of the next
    attempt in main()."""
    gone, again = [], []
    with Cluster(os.path.join(OUT, "c2"), nodes=1, gpus_per_node=8) as c:
        api = Api(c)
        for i in range(n):
            path = fresh("restart")
            job = api.submit(recipe("restart-%d" % i, path))
            wait_until(lambda: starts(path, 1, 8), 20, "8 ranks")
            api.state(job, ["running"])
            pids = [r["pid"] for r in api.call("GET", "/v1/jobs/%s/ranks" % job)["items"]]
            fds = [os.pidfd_open(p) for p in pids]
            poll = select.poll()
            for f in fds[1:]:
                poll.register(f, select.POLLIN)
            t0, m0, left = time.time_ns(), time.monotonic_ns(), set(fds[1:])
            os.kill(pids[0], signal.SIGKILL)
            while left:
                for f, _ in poll.poll(20000) or [(None, 0)]:
                    if f is None:
                        raise Failed("the other ranks were not gone within 20 s")
                    poll.unregister(f)
                    left.discard(f)
            gone.append((time.monotonic_ns() - m0) / 1e6)
            got = wait_until(lambda: starts(path, 2, 8), 20, "8 ranks of attempt 2")
            again.append((max(got) - t0) / 1e6)
            for f in fds:
                os.close(f)
            api.end(job)
    report("restart", "rank_death_to_others_gone", gone, "ms")
    report(
        "restart",
        "kill_to_8_ranks_of_next_attempt",
        again,
        "ms",
        "posix_spawn of 8",
        floor_spawn(n, 8),
    )
    restart_with_checks(n)


def real_gpus():
    r = subprocess.run([os.path.join(BUILD, "moe-discover")], stdout=subprocess.PIPE, check=True)
    return len(json.loads(r.stdout)["gpus"])


def restart_with_checks(n):
    """Where a node has GPUs to check and a job has checkpoints to look for: what passes from submit
    to placed (queue) and, after the failure, from stopped to placed again (place)."""
    gpus, queue, place, again = real_gpus(), [], [], []
    kind, root, extra = "real", tempfile.mkdtemp(prefix="moe-bench-"), []
    if not gpus:
        kind, gpus, extra = "simulated", 8, ["--topology", root + "/m"]
        subprocess.run(
            [os.path.join(lib.ROOT, "tests/fixtures/machine.py"), "mi300x", root + "/m"], check=True
        )
    saved = os.path.join(root, "ckpt")
    for i in (10, 20, 30):
        os.makedirs("%s/iter_%07d" % (saved, i))
        with open("%s/iter_%07d/shard" % (saved, i), "wb") as f:
            f.write(os.urandom(32 << 20))
        with open("%s/iter_%07d/COMPLETE" % (saved, i), "w") as f:
            f.write("%d\n" % i)
    try:
        with Cluster(
            os.path.join(OUT, "c2-" + kind), nodes=1, gpus_per_node=gpus, extra=extra
        ) as c:
            api = Api(c)
            for i in range(n):
                path = fresh("checked")
                job = api.submit(
                    command_recipe("checked-%d" % i, [TINY, path], gpus, checkpoint={"dir": saved})
                )
                wait_until(lambda: starts(path, 1, gpus), 20, "the ranks")
                api.state(job, ["running"])
                t0 = time.time_ns()
                os.kill(
                    api.call("GET", "/v1/jobs/%s/ranks" % job)["items"][0]["pid"], signal.SIGKILL
                )
                again.append(
                    (
                        max(wait_until(lambda: starts(path, 2, gpus), 20, "the ranks of attempt 2"))
                        - t0
                    )
                    / 1e6
                )
                doc = api.call("GET", "/v1/jobs/%s/report" % job)
                queue.append(1000 * doc["gpu_seconds"]["queue"] / gpus)
                place.append(doc["incidents"][0]["waterfall_ms"]["place"])
                api.end(job)
    finally:
        shutil.rmtree(root)
    report("restart", kind + "_gpus_queue", queue, "ms")
    report("restart", kind + "_gpus_place", place, "ms")
    report(
        "restart",
        "kill_to_%d_ranks_on_%s_gpus" % (gpus, kind),
        again,
        "ms",
        "posix_spawn of %d" % gpus,
        floor_spawn(n, gpus),
    )


def pss_kib(pid):
    for line in open("/proc/%d/smaps_rollup" % pid):
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def cpu_s(pid):
    f = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")


def bench_footprint(n):
    """Row 12: agent + step supervisor of an idle 8-rank job: PSS, CPU share; and the supervisor's
    CPU share when a rank prints 10,000 lines/s, of text and of iterations in two grammars."""
    with Cluster(os.path.join(OUT, "c3"), nodes=1, gpus_per_node=8) as c:
        api, pss, idle = Api(c), [], []
        job = api.submit(recipe("idle", fresh("idle")))
        api.state(job, ["running"])
        s = c.status()
        pids = [s["agents"][0]["pid"], s["steps"][0]["pid"]]
        for i in range(max(5, n // 2)):
            before, t = sum(map(cpu_s, pids)), time.monotonic()
            time.sleep(3)
            idle.append(100 * (sum(map(cpu_s, pids)) - before) / (time.monotonic() - t))
            pss.append(sum(map(pss_kib, pids)) / 1024)
        api.end(job)
        text, samples = (
            lines_cpu(c, api, recipe(kind, fresh(kind), 1, [kind, "10000", "60"]))
            for kind in ("text", "lines")
        )
        fields = lines_cpu(
            c,
            api,
            {
                "recipe": 1,
                "name": "primus",
                "engine": {"kind": "primus-megatron", "python": TINY, "entry": "x", "workdir": OUT},
                "cluster": {"gpus": 1},
                "steps": 999999999,
                "env": {"TINY_PRIMUS": "10000"},
            },
        )
    report("footprint", "agent_and_stepd_pss", pss, "MiB")
    report("footprint", "agent_and_stepd_idle_cpu", idle, "% of a core")
    report("footprint", "stepd_cpu_10000_lines_per_s", text, "% of a core")
    report("footprint", "stepd_cpu_10000_iterations_per_s", samples, "% of a core")
    report("footprint", "stepd_cpu_10000_primus_iterations_per_s", fields, "% of a core")


def bench_lines(n):
    """Row 12: processor time per line that the rules of every engine file cost: plain text, the
    recorded log of the engine, its iteration line. 10,000 lines/s at 1 us are 1 % of a core."""
    kinds = sorted(
        f[: -len(".yaml")]
        for f in os.listdir(os.path.join(lib.ROOT, "config/engines"))
        if f.endswith(".yaml")
    )
    samples = {}
    for i in range(max(5, n // 6)):
        r = subprocess.run(
            [
                os.path.join(BUILD, "tests/bench/lines"),
                os.path.join(lib.ROOT, "tests/fixtures/engines"),
            ]
            + kinds,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=dict(os.environ, MOE_DATA_DIR=os.path.join(lib.ROOT, "config")),
        )
        for line in r.stdout.splitlines():
            name, us = line.split()
            samples.setdefault(name, []).append(float(us))
    for name, us in samples.items():
        report("lines", name.replace("/", "_") + "_us", us, "us")


def lines_cpu(c, api, doc):
    """CPU share of the supervisor of one rank that prints 10,000 lines/s: text, or a new iteration
    with all its metrics in each line."""
    job, busy = api.submit(doc if isinstance(doc, str) else json.dumps(doc)), []
    api.state(job, ["running"])
    stepd = wait_until(
        lambda: [x["pid"] for x in c.status()["steps"] if x["job"] == job], 10, "the step"
    )[0]
    for i in range(5):
        before, t = cpu_s(stepd), time.monotonic()
        time.sleep(2)
        busy.append(100 * (cpu_s(stepd) - before) / (time.monotonic() - t))
    api.end(job)
    return busy


def load(sock, clients, seconds, method, path, body=None):
    """{n,errors,seconds,p50_ms,p99_ms} of that many clients, each with one request under way."""
    r = subprocess.run(
        [LOAD, sock, str(clients), str(seconds), method, path] + ([body] if body else []),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if r.returncode != 0:
        raise Failed("load %s %s: %s%s" % (method, path, r.stderr[-500:], r.stdout))
    return json.loads(r.stdout)


def sqlite_rate(dir, seconds=1):
    """The floor of durable submits: single-row commits/s of SQLite, WAL and synchronous=FULL, on
    the file system of the controller's state."""
    path = os.path.join(dir, "floor.db")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, text TEXT)")
    n, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        db.execute("INSERT INTO t (text) VALUES (?)", ("x" * 200,))
        n += 1
    db.close()
    return n / seconds


def bench_submit(n):
    """Row 4: durable submissions/s over REST with 32 clients, each answered after its records were
    synced; they queue behind a job that has all GPUs. Of one recipe, which is read once, and of
    recipes that each have another name."""
    kinds = {"": "queued", "_of_other_recipes": "queued-#######"}
    rates, p99, floor = ({k: [] for k in kinds} for _ in range(3))
    body = os.path.join(OUT, "submit.json")
    for i in range(7):
        # a controller of its own: 10,000 unfinished jobs are the limit, and clients that are ended
        # leave up to 32 more behind than were counted
        with Cluster(os.path.join(OUT, "c4-%d" % i), nodes=1, gpus_per_node=8) as c:
            api = Api(c)
            api.state(api.submit(recipe("all", fresh("all"))), ["running"])
            for kind, name in kinds.items():
                with open(body, "w") as f:
                    f.write(recipe(name, fresh("queued"), 1))
                r = load(os.path.join(c.dir, "moed.sock"), 32, "10:1400", "POST", "/v1/jobs", body)
                rates[kind].append(r["n"] / r["seconds"])
                p99[kind].append(r["p99_ms"])
                floor[kind].append(sqlite_rate(c.dir))
    for kind in kinds:
        name, peer = "durable_submits_32_clients" + kind, "SQLite FULL, single-row commits"
        report("submit", name, rates[kind], "1/s", peer, floor[kind])
        report("submit", name + "_p99", p99[kind], "ms")


def bench_snapshot(n):
    """The longest that a client waits while the whole state of 8,000 unfinished jobs is written
    down; the peer is the longest of as many requests just before, on the same disk."""
    worst, before = [], []
    with Cluster(os.path.join(OUT, "c7"), nodes=1, gpus_per_node=8) as c:
        api, moed, body = Api(c), c.status()["moed"]["pid"], os.path.join(OUT, "submit.json")
        api.state(api.submit(recipe("all", fresh("all"))), ["running"])
        with open(body, "w") as f:
            f.write(recipe("queued", fresh("queued"), 1))
        # as many bytes as the last snapshot had must come before the next: long records
        text = json.dumps(
            dict(
                json.loads(recipe("queued", fresh("queued"), 1)),
                env={"LONG_%d" % i: 3000 * "x" for i in range(3)},
            )
        )
        load(os.path.join(c.dir, "moed.sock"), 32, "60:8000", "POST", "/v1/jobs", body)

        def request(call):
            t = time.monotonic()
            result = call()
            return (
                result,
                1000 * (time.monotonic() - t),
                open("/proc/%d/task/%d/children" % (moed, moed)).read() != "",
            )

        for i in range(5):
            idle, during = [], []
            while not during or busy:
                job, first, busy1 = request(lambda: api.submit(text))
                _, second, busy = request(
                    lambda: api.call("POST", "/v1/jobs/%s/cancel" % job, json.dumps({"now": True}))
                )
                for ms, seen in ((first, busy1), (second, busy)):
                    (during if seen or during else idle).append(ms)
            worst.append(max(during))
            before.append(max(idle[-len(during) :]))
    report("snapshot", "longest_wait_8000_jobs", worst, "ms", "the same without a snapshot", before)


def bench_status(n):
    """Row 11: reads of a running 8-rank job with 32 clients, against a bare libmicrohttpd that
    answers the same bytes."""
    rates, floor, p99, floor_p99 = [], [], [], []
    with Cluster(os.path.join(OUT, "c5"), nodes=1, gpus_per_node=8) as c:
        api, same, sock = Api(c), os.path.join(OUT, "status.json"), os.path.join(OUT, "floor.sock")
        job = api.submit(recipe("read", fresh("read")))
        api.state(job, ["running"])
        with open(same, "w") as f:
            f.write(json.dumps(api.call("GET", "/v1/jobs/" + job), separators=(",", ":")))
        bare = subprocess.Popen([LOAD, sock, "serve", same])
        try:
            wait_until(lambda: os.path.exists(sock), 5, "the floor's socket")
            for i in range(max(5, n // 2)):
                r = load(os.path.join(c.dir, "moed.sock"), 32, 1, "GET", "/v1/jobs/" + job)
                rates.append(r["n"] / r["seconds"])
                p99.append(r["p99_ms"])
                r = load(sock, 32, 1, "GET", "/v1/jobs/" + job)
                floor.append(r["n"] / r["seconds"])
                floor_p99.append(r["p99_ms"])
        finally:
            bare.kill()
            bare.wait()
    report("status", "reads_32_clients", rates, "1/s", "bare libmicrohttpd, same bytes", floor)
    report("status", "reads_32_clients_p99", p99, "ms", "bare libmicrohttpd, same bytes", floor_p99)


def reads_beside(prefix, sock, paths):
    """REST's p99 with 4 clients while a fleet is served, each path beside a bare libmicrohttpd that
    answers the same bytes at the same time of the same machine."""
    same, floor = os.path.join(OUT, "fleet.json"), os.path.join(OUT, "fleet.sock")
    for path in paths:
        c = Unix(sock)
        c.request("GET", path)
        with open(same, "wb") as f:
            f.write(c.getresponse().read())
        bare = subprocess.Popen([LOAD, floor, "serve", same])
        try:
            wait_until(lambda: os.path.exists(floor), 5, "the floor's socket")
            pairs = [
                [load(s, 4, 1, "GET", path)["p99_ms"] for s in (sock, floor)] for _ in range(5)
            ]
        finally:
            bare.kill()
            bare.wait()
            os.unlink(floor)
        name = prefix + "_p99" + path.split("?")[0].replace("/", "_")
        ours, bares = zip(*pairs)
        report("fleet", name, ours, "ms", "bare libmicrohttpd, same bytes", bares)


def bench_fleet(n):
    """Rows 9, 10 and 15: 12,500 emulated agents."""
    fleet.bench(report, n, reads_beside)


def bench_page(n):
    """Rows 9 and 11: the dashboard in a browser, looking at 100,352 emulated ranks."""
    try:
        page.bench(report, n)
    except Skipped as e:
        print("page: %s" % e, file=sys.stderr)


def bench_streams(n):
    """Row 11: CPU share of the controller that feeds 10,000 followers of its events while one event
    comes each second."""
    followers, busy = 10000, []
    with Cluster(os.path.join(OUT, "c6"), nodes=1, gpus_per_node=8) as c:
        api, moed = Api(c), c.status()["moed"]["pid"]
        api.state(api.submit(recipe("all", fresh("all"))), ["running"])
        last = api.call("GET", "/v1/events?limit=1000")["items"][-1]["seq"]
        p = subprocess.Popen(
            [
                LOAD,
                os.path.join(c.dir, "moed.sock"),
                str(followers),
                "12",
                "stream",
                "/v1/events?follow=1&after=%d" % last,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        if p.stdout.readline() != "open\n":
            raise Failed("not all followers were let in")
        for i in range(10):
            before, t = cpu_s(moed), time.monotonic()
            api.submit(recipe("queued", fresh("queued"), 1))
            time.sleep(max(0, t + 1 - time.monotonic()))
            busy.append(100 * (cpu_s(moed) - before) / (time.monotonic() - t))
        delivered = json.loads(p.communicate()[0])["events"]
    if delivered < 10 * followers:
        raise Failed("%d events arrived, not 10 at each of %d followers" % (delivered, followers))
    report("streams", "moed_cpu_10000_followers_1_event_per_s", busy, "% of a core")


def bench_discover(n):
    """Start to end of moe-discover on a made machine of 8 MI300X and 384 CPUs, on tmpfs as sysfs
    is; the peer reads the same root and knows neither KFD nor RDMA ports."""
    root = tempfile.mkdtemp(
        prefix="moe-bench-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    )
    try:
        subprocess.run(
            [os.path.join(lib.ROOT, "tests/fixtures/machine.py"), "mi300x", root + "/m"], check=True
        )
        commands = [[os.path.join(BUILD, "moe-discover"), "--root", root + "/m"]] + [
            ["lstopo-no-graphics", "--whole-io", "--of", "xml", "-f", "-"]
        ] * (shutil.which("lstopo-no-graphics") is not None)
        samples = [[], []]
        for i in range(n):
            for k, argv in enumerate(commands):
                t0 = time.time_ns()
                subprocess.run(
                    argv,
                    check=True,
                    stdout=subprocess.DEVNULL,
                    env=dict(os.environ, HWLOC_FSROOT=root + "/m", HWLOC_THISSYSTEM="0")
                    if k
                    else None,
                )
                samples[k].append((time.time_ns() - t0) / 1e6)
        report(
            "discover",
            "mi300x_x8_ms",
            samples[0],
            "ms",
            "lstopo" if samples[1] else None,
            samples[1] or None,
        )
    finally:
        shutil.rmtree(root)


def bench_plan_binding(n):
    """bind_plan() alone: 8 ranks on a made machine of 8 MI300X and 384 CPUs."""
    root = tempfile.mkdtemp(prefix="moe-bench-")
    try:
        subprocess.run(
            [os.path.join(lib.ROOT, "tests/fixtures/machine.py"), "mi300x", root + "/m"], check=True
        )
        doc = subprocess.run(
            [os.path.join(BUILD, "moe-discover"), "--root", root + "/m"],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        r = subprocess.run(
            [os.path.join(BUILD, "tests/bench/plan"), "--times", str(10 * n)],
            check=True,
            input=doc,
            stdout=subprocess.PIPE,
        )
        report("plan_binding", "mi300x_x8_384_cpus_us", json.loads(r.stdout)["us"], "us")
    finally:
        shutil.rmtree(root)


def bench_core(n):
    """What one input costs the controller's core alone, with few nodes and with many."""
    for nodes in (1000, 12500):
        subprocess.run([os.path.join(BUILD, "tests/bench/core"), str(nodes)], check=True)


def bench_start(n):
    start.bench(report)


BENCHES = {
    "launch": bench_launch,
    "wide": bench_wide,
    "container": bench_container,
    "holder": bench_holder,
    "restart": bench_restart,
    "footprint": bench_footprint,
    "lines": bench_lines,
    "submit": bench_submit,
    "snapshot": bench_snapshot,
    "status": bench_status,
    "streams": bench_streams,
    "discover": bench_discover,
    "core": bench_core,
    "fleet": bench_fleet,
    "page": bench_page,
    "start": bench_start,
    "plan_binding": bench_plan_binding,
}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*", choices=[[]] + list(BENCHES), default=[])
    p.add_argument("--n", type=int, default=15)
    a = p.parse_args()
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    for name in a.names or BENCHES:
        BENCHES[name](a.n)


if __name__ == "__main__":
    main()
