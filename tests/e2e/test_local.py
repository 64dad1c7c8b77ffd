#!/usr/bin/python3
"""moectl local: up, again, after kills, down; nothing outside --dir, nothing left behind. Usage:
test_local.py [TEST...]"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import (
    PATIENCE,
    BUILD,
    MOECTL,
    ROOT,
    Cluster,
    Skipped,
    Suite,
    clean_env,
    command_recipe,
    equal,
    moectl,
    need,
    wait_equal,
    wait_until,
)

RANK = os.path.join(BUILD, "tests/fake/rank")
suite = Suite()
WORK = tempfile.mkdtemp(prefix="moe-local-")


def place(name):
    return os.path.join(WORK, name)


def processes_of(path):
    """Living processes whose environment or command line names this path."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = (
                open("/proc/%s/environ" % pid, "rb").read()
                + open("/proc/%s/cmdline" % pid, "rb").read()
            )
            state = open("/proc/%s/stat" % pid).read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if path.encode() in text and state != "Z" and int(pid) != os.getpid():
            found[int(pid)] = text
    return found


def pids(status):
    return [status["moed"]["pid"]] + [a["pid"] for a in status["agents"]]


def kill9(*victims):
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: all(gone(p) for p in victims), 10, "death of %s" % (victims,))


def pending(pid, sig):
    with open("/proc/%d/status" % pid) as f:
        return any(
            int(line.split()[1], 16) >> (sig - 1) & 1
            for line in f
            if line.startswith(("SigPnd:", "ShdPnd:"))
        )


def gone(pid):
    try:
        return open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def training(cluster, name, steps=100000, extra=()):
    truth = place(name + "-truth")
    os.makedirs(truth)
    job = cluster.submit(
        command_recipe(
            name,
            [RANK, "--steps", str(steps), "--step-ms", "20", "--truth", truth, *extra],
            gpus=4,
            steps=steps,
        )
    )
    cluster.wait_state(job, "running", 30)
    cluster.wait_iteration(job, 3)
    return job


@suite.test
def up_answers_when_all_agents_are_up():
    with Cluster(place("up")) as c:
        s = c.status()
        equal(
            sorted(s),
            ["agents", "dir", "moed", "steps", "tcp_url", "token_file", "url"],
            "keys of local status",
        )
        equal(sorted(s["agents"][0]), ["node", "pid"], "keys of an agent")
        equal(
            [s["dir"], s["url"], s["steps"]],
            [c.dir, "unix:%s/moed.sock" % c.dir, []],
            "local status",
        )
        need(all(pids(s)), lambda: "a daemon is missing: %s" % s)
        nodes = c.json("nodes")["items"]
        equal(
            [(n["name"], n["state"], n["gpus"]) for n in nodes],
            [(a["node"], "up", 2) for a in s["agents"]],
            "nodes",
        )


@suite.test
def up_prints_only_the_export_line():
    c = Cluster(place("print"))
    r = c.up()
    c.down()
    equal(r.stdout, "export MOE_URL=unix:%s/moed.sock\n" % c.dir, "stdout of local up")


@suite.test
def another_shell_finds_the_cluster():
    """What stands in the usual place is found without MOE_URL; a link signs a browser in without
    showing the token."""
    home = place("home")
    os.makedirs(home)
    env = clean_env(HOME=home)
    env.pop("XDG_STATE_HOME", None)
    if os.path.exists("/run/moe/moed.sock"):
        raise Skipped("this machine has a controller of its own")
    r = moectl("list", env=env, check=False)
    equal((r.returncode, "unix:/run/moe/moed.sock" in r.stderr), (3, True), "without a cluster")
    try:
        r = moectl("local", "up", "--port", 0, env=env)
        need(
            re.search(r"^dashboard: http://127.0.0.1:\d+/#sign-in=[0-9a-f]{32} ", r.stderr, re.M),
            r.stderr,
        )
        recipe = re.search(r"^next: moectl submit (\S+) --watch$", r.stderr, re.M).group(1)
        moectl("validate", recipe, env=env)
        with open(
            json.loads(moectl("local", "status", "--json", env=env).stdout)["token_file"]
        ) as f:
            need(f.read().strip() not in r.stderr, "the token is shown")
        equal(len(json.loads(moectl("nodes", "--json", env=env).stdout)["items"]), 2, "nodes")
        equal(
            moectl("nodes", env=dict(env, MOE_URL="unix:/nowhere"), check=False).returncode,
            3,
            "MOE_URL counts more",
        )
        links = [
            re.search(r"sign-in=(\w+)", moectl("local", "up", env=env).stderr).group(1)
            for _ in range(2)
        ]
        need(links[0] != links[1], "the same link twice")
    finally:
        moectl("local", "down", env=env)


@suite.test
def status_marks_steps_that_the_controller_does_not_know():
    """After a restore: as long as they run, and nothing of the others; where no controller answers,
    nothing is said of any."""
    with Cluster(place("restored"), nodes=1) as c:
        known = c.submit(
            command_recipe(
                "known", [RANK, "--steps", "1000000", "--step-ms", "20"], gpus=1, steps=1000000
            )
        )
        wait_until(lambda: [s["job"] for s in c.status()["steps"]] == [known], 30, "the first step")
        c.run("backup", place("restored.backup"))
        later = c.submit(
            command_recipe(
                "later", [RANK, "--steps", "1000000", "--step-ms", "20"], gpus=1, steps=1000000
            )
        )
        wait_until(lambda: len(c.status()["steps"]) == 2, 30, "the second step")
        kill9(c.status()["moed"]["pid"])
        equal(
            ["unknown" in s for s in c.status()["steps"]],
            [False, False],
            "marks while no controller is there",
        )
        shutil.rmtree(os.path.join(c.dir, "moed"))
        subprocess.run(
            [
                os.path.join(BUILD, "moed"),
                "--config",
                os.path.join(c.dir, "moed.yaml"),
                "--restore",
                place("restored.backup"),
            ],
            env=c.env,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        c.up()
        wait_until(
            lambda: {s["job"]: s.get("unknown") for s in c.status()["steps"]}
            == {known: False, later: True},
            30,
            "the later step is marked",
        )
        lines = moectl("local", "status", "--dir", c.dir, env=c.env).stdout.splitlines()
        marked = [line for line in lines if "unknown to the controller" in line]
        need(
            len(marked) == 1 and "moectl resolve %s.a1 --kill" % later in marked[0],
            "lines: %s" % lines,
        )


@suite.test
def tcp_needs_the_token():
    with Cluster(place("tcp")) as c:
        s = c.status()
        equal(os.stat(s["token_file"]).st_mode & 0o777, 0o600, "mode of the token file")
        token = open(s["token_file"]).read().strip()
        ask = urllib.request.Request(
            s["tcp_url"] + "/v1/cluster", headers={"Authorization": "Bearer " + token}
        )
        equal(
            json.load(urllib.request.urlopen(ask, timeout=PATIENCE * 10))["gpus"],
            {"total": 4, "free": 4},
            "gpus over TCP",
        )
        env = clean_env(MOE_URL=s["tcp_url"], MOE_TOKEN_FILE=s["token_file"])
        equal(
            len(json.loads(moectl("nodes", "--json", env=env).stdout)["items"]), 2, "nodes over TCP"
        )
        r = moectl("nodes", env=clean_env(MOE_URL=s["tcp_url"]), check=False)
        equal(r.returncode, 4, "exit status without a token")
        r = moectl("nodes", env=clean_env(MOE_URL=s["tcp_url"], MOE_TOKEN="wrong"), check=False)
        equal(r.returncode, 4, "exit status with a wrong token")


@suite.test
def second_up_changes_nothing():
    with Cluster(place("twice")) as c:
        before, files = c.status(), inodes(c)
        c.up()
        equal(c.status(), before, "status after a second up")
        equal(inodes(c), files, "files after a second up")
        need("moed.yaml" in files and "nodes/node-1.yaml" in files, lambda: "files %s" % files)


def inodes(c):
    """Every configuration file of the cluster: it is replaced when it is written, so that a full
    disk would fail it."""
    found = [
        os.path.join(top, name)
        for top, _, names in os.walk(c.dir)
        for name in names
        if name.endswith(".yaml")
    ]
    return {os.path.relpath(f, c.dir): os.stat(f).st_ino for f in found}


@suite.test
def port_stays():
    with Cluster(place("port")) as c:
        before = c.status()["tcp_url"]
        c.down()
        c.up()
        equal(c.status()["tcp_url"], before, "tcp_url after down and up")


@suite.test
def killed_daemons_come_back_and_readopt():
    with Cluster(place("adopt")) as c:
        job = training(c, "adopt")
        ranks = {r["rank"]: r["pid"] for r in c.json("ranks", job)["items"]}
        s = c.status()
        equal(
            sorted((x["job"], x["attempt"], x["node"]) for x in s["steps"]),
            [(job, 1, a["node"]) for a in s["agents"]],
            "steps",
        )
        need(all(x["pid"] for x in s["steps"]), lambda: "a step without a supervisor: %s" % s)
        kill9(*pids(s))
        dead = c.status()
        equal(pids(dead), [None, None, None], "pids of killed daemons")
        equal(
            [x["pid"] for x in dead["steps"]],
            [x["pid"] for x in s["steps"]],
            "supervisors after the daemons died",
        )
        c.up()
        before = c.job(job)["iteration"]
        c.wait_iteration(job, before + 5)
        wait_equal(
            lambda: {r["rank"]: r["pid"] for r in c.json("ranks", job)["items"]},
            ranks,
            "pids of ranks",
        )
        equal((c.job(job)["attempt"], c.job(job)["restarts"]), (1, 0), "attempt and restarts")


@suite.test
def down_leaves_no_process():
    c = Cluster(place("down"))
    c.up()
    training(c, "down", extra=["--child"])
    need(len(processes_of(c.dir)) > 4, "the cluster has no processes to begin with")
    c.down()
    equal(processes_of(c.dir), {}, "processes after down")
    equal(pids(c.status()), [None, None, None], "pids after down")
    c.down()


@suite.test
def down_with_dead_daemons_ends_the_ranks():
    c = Cluster(place("orphans"))
    c.up()
    training(c, "orphans", extra=["--child"])
    kill9(*pids(c.status()))
    c.down()
    equal(processes_of(c.dir), {}, "processes after down")


@suite.test
def down_ends_a_supervisor_that_hangs():
    c = Cluster(place("hung"))
    c.up()
    training(c, "hung")
    reserve = wait_until(
        lambda: [
            p
            for p, text in processes_of(c.dir).items()
            if b"--reserve" in text and b"a9223372036854775807" in text
        ],
        20,
        "a supervisor for the next step",
    )
    for pid in reserve + [s["pid"] for s in c.status()["steps"]]:
        os.kill(pid, signal.SIGSTOP)
    c.down()
    equal(processes_of(c.dir), {}, "processes after down")


@suite.test
def down_names_a_daemon_that_crashed():
    """A signal that waits behind SIGSTOP until `down` has asked: whatever ended the daemon, it did
    not stop."""
    for name, sig in (("moed", signal.SIGSEGV), ("node-1", signal.SIGABRT)):
        c = Cluster(place("crashed-" + name))
        c.up()
        s = c.status()
        pid = (
            s["moed"]["pid"]
            if name == "moed"
            else [a["pid"] for a in s["agents"] if a["node"] == name][0]
        )
        os.kill(pid, signal.SIGSTOP)
        down = c.popen("local", "down", "--dir", c.dir)
        wait_until(lambda: pending(pid, signal.SIGTERM), 10, "SIGTERM for " + name)
        os.kill(pid, sig)
        os.kill(pid, signal.SIGCONT)
        said = down.communicate(timeout=PATIENCE * 60)[1]
        equal(down.returncode, 1, "exit status of down (%s)" % said)
        need(said.count("\n") == 1 and "%s (signal %d" % (name, sig) in said, said)
        equal(processes_of(c.dir), {}, "processes after down")
        c.down()


@suite.test
def jobs_go_on_after_down_and_up():
    with Cluster(place("later")) as c:
        truth, checkpoints = place("later-truth"), place("later-ckpt")
        os.makedirs(truth)
        job = c.submit(
            command_recipe(
                "later",
                [RANK, "--steps", "400", "--step-ms", "20", "--save-every", "20", "--truth", truth],
                gpus=4,
                steps=400,
                checkpoint={"dir": checkpoints, "every": 20},
            )
        )
        c.wait_iteration(job, 45)
        # On a slow machine the first rank may be there before a save of all of them is complete.
        wait_until(
            lambda: (c.job(job)["checkpoint"] or {}).get("iteration", 0) >= 20,
            60,
            "a complete checkpoint",
        )
        c.down()
        c.up()
        done = c.wait_state(job, "completed", 60)
        need(done["attempt"] >= 2 and done["resume"] >= 20, lambda: "it did not resume: %s" % done)


@suite.test
def shape_is_kept():
    with Cluster(place("shape"), nodes=1, gpus_per_node=3) as c:
        port = int(c.status()["tcp_url"].rsplit(":", 1)[1])
        for words in (["--nodes", 2], ["--gpus-per-node", 2], ["--port", port - 1]):
            r = moectl("local", "up", "--dir", c.dir, *words, check=False)
            equal(r.returncode, 1, "exit status of another shape")
            need("choose another --dir" in r.stderr and r.stderr.count("\n") == 1, lambda: r.stderr)
        for words in (["--port", port], ["--port", 0]):
            equal(
                moectl("local", "up", "--dir", c.dir, *words).returncode, 0, "its own port, and any"
            )
        equal(moectl("local", "up", "--dir", c.dir).returncode, 0, "up without a shape")
        equal(len(c.status()["agents"]), 1, "agents")


@suite.test
def taken_port_is_named_and_nothing_stays():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port, where = s.getsockname()[1], place("taken")
        r = moectl("local", "up", "--dir", where, "--port", port, check=False)
        equal(r.returncode, 1, "exit status")
        need(
            r.stderr.startswith("moectl: local up: ")
            and str(port) in r.stderr
            and r.stderr.count("\n") == 1,
            lambda: r.stderr,
        )
        equal(processes_of(where), {}, "processes after a failed up")
        moectl("local", "up", "--dir", where, "--port", 0)
        moectl("local", "down", "--dir", where)


@suite.test
def many_slots():
    with Cluster(place("slots"), nodes=1, gpus_per_node=256) as c:
        equal(c.json("top")["gpus"]["total"], 256, "GPU slots")


@suite.test
def simulated_machine():
    xml = os.path.join(ROOT, "../shared/data/hardware/synthetic/hwloc/8x-mi300x-nps1.xml")
    if not os.path.exists(xml):
        raise Skipped("no topology file beside the repository")
    with Cluster(place("simulated"), nodes=2, gpus_per_node=8, extra=["--topology", xml]) as c:
        job = c.submit(command_recipe("sim", ["true"], gpus=16))
        c.wait_state(job, "completed", 30)
        ranks = c.json("ranks", job)["items"]
        equal(
            [r["numa_node"] for r in ranks], [0, 0, 0, 0, 1, 1, 1, 1] * 2, "NUMA nodes of the ranks"
        )
        equal({r["bind_verified"] for r in ranks}, {None}, "bind_verified on a simulated machine")
        need(
            all("simulated topology" in r["bind_note"] for r in ranks),
            lambda: "bind_note: %s" % ranks[0],
        )
        equal(
            len({r["cpus"] for r in ranks if r["node"] == "node-0"}),
            8,
            "different CPU lists on one node",
        )


@suite.test
def bad_words():
    for words, status in (
        (["status", "--dir", place("nothing")], 5),
        (["down", "--dir", place("nothing")], 0),
        (["sideways"], 2),
        (["up", "--nodes", 0], 2),
        (["up", "--gpus-per-node", 257], 2),
        (["up", "--topology", "/nonexistent"], 2),
        (["up", "--dir", place("x" * 100)], 2),
        (["up", "--dir", "/proc/moe"], 1),
    ):
        r = moectl("local", *words, check=False)
        equal(
            r.returncode,
            status,
            "exit status of local %s (%s)"
            % (" ".join(map(str, words))[:60], r.stderr.strip()[:200]),
        )
        need(
            status == 0 or (r.stderr.startswith("moectl: local") and r.stderr.count("\n") == 1),
            lambda: "error line: %r" % r.stderr,
        )
    need(not os.path.exists(place("nothing")), "status or down made the directory")


@suite.test
def two_at_once_do_not_collide():
    c = Cluster(place("race"))
    both = [
        subprocess.Popen(
            [MOECTL, "local", "up", "--dir", c.dir, "--port", "0"],
            env=c.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    ends = [(p.wait(), p.stderr.read()) for p in both]
    codes = sorted(code for code, _ in ends)
    need(codes in ([0, 0], [0, 1]), lambda: "exit statuses: %s" % ends)
    wait_equal(
        lambda: len([p for p, t in processes_of(c.dir).items() if b"moed.yaml" in t]),
        1,
        "controllers",
    )
    c.down()


@suite.test
def without_root():
    if os.geteuid() != 0:
        raise Skipped("the tests run as an ordinary user anyway")
    where = place("user")
    os.makedirs(where)
    os.chown(where, 65534, 65534)
    os.chmod(WORK, 0o755)

    def as_nobody(*words):
        return subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", MOECTL, *words],
            env=clean_env(HOME=where, MOE_URL="unix:%s/c/moed.sock" % where),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE * 60,
        )

    probe = as_nobody("--version")
    if probe.returncode:
        raise Skipped("user 65534 cannot run %s: %s" % (MOECTL, probe.stderr.strip()))
    r = as_nobody("local", "up", "--dir", where + "/c", "--port", "0", "--nodes", "1")
    equal(r.returncode, 0, "exit status of up (%s)" % r.stderr)
    recipe = os.path.join(where, "r.yaml")
    with open(recipe, "w") as f:
        f.write(
            command_recipe("who", ["sh", "-c", "id -u"], gpus=2).replace(
                '"kind"', '"workdir": "/", "kind"'
            )
        )
    r = as_nobody("submit", recipe, "--watch")
    equal(r.returncode, 0, "exit status of the job (%s%s)" % (r.stdout, r.stderr))
    need("65534" in as_nobody("logs", "who").stdout, "the ranks did not run as the user")
    equal(as_nobody("local", "down", "--dir", where + "/c").returncode, 0, "exit status of down")
    equal(processes_of(where), {}, "processes after down")


if __name__ == "__main__":
    failed = suite.main()
    if not failed:
        shutil.rmtree(WORK, ignore_errors=True)
    sys.exit(failed != 0)
