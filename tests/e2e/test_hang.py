#!/usr/bin/python3
"""Jobs in which nothing moves, and those that only look so: real daemons, ranks that stop, spin and
write. The least times are a hundredth of those of life (hang_percent)."""
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "fixtures")]
import machine  # noqa: E402
from lib import Suite, command_recipe, equal, need, wait_until
from node_rig import SLEEP
from rig import Rig
from test_health import FAST, Machine

suite = Suite()
test = suite.test
# Each iteration all ranks wait for each other, as in a collective: busily. After iteration AT the
# first attempt does what HOW says.
RANK = r"""
import os, socket, sys, time
shared, steps, at, how = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
attempt = int(os.environ["MOE_ATTEMPT"])
told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
told.connect(os.environ["MOE_NOTIFY_SOCKET"])
place = os.path.join(shared, "%d.%%d" % attempt)
done = os.open(place % rank, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

def reached(r):
    return os.path.exists(place % r) and os.path.getsize(place % r)

if how == "record":
    sys.path.insert(0, FAKE)
    import recorder
    reduced, waits = 0, False
    recorder.serve(rank, world, lambda: (reduced, waits), ("/job/train.py", 120))

def write_for(seconds):
    until = time.monotonic() + seconds
    with open(os.path.join(shared, "state.%d" % rank), "wb", buffering=0) as f:
        while time.monotonic() < until:
            f.seek(0)
            f.write(bytes(1 << 20))
            time.sleep(0.1)

for i in range(1, steps + 1):
    if attempt == 1 and i == at + 1:
        if how in ("spin", "record") and rank == 0:
            while True:
                pass
        if how == "write":
            write_for(6)
        if how == "spin until told":
            while not os.path.exists(os.path.join(shared, "go")):
                pass
    time.sleep(0.02)
    os.write(done, b".")
    waits = True
    while any(reached(r) < i for r in range(world)):
        pass
    waits, reduced = False, i
    told.send(b"ITERATION=%d\nSTEP_MS=20" % i)
"""


def line_of(code):
    """Where that line stands in the program of a rank."""
    return [line.strip() for line in RANK.lstrip().splitlines()].index(code) + 2


def submit(rig, name, hang, steps=200, at=0, how="-"):
    shared = tempfile.mkdtemp(prefix=name + "-", dir=rig.dir)
    program = "FAKE = %r\n%s" % (os.path.join(HERE, "..", "fake"), RANK.lstrip())
    argv = [sys.executable, "-c", program, shared, str(steps), str(at), how]
    recipe = command_recipe(name, argv, gpus=2, steps=steps, recovery={"hang": hang})
    recipe = json.loads(recipe)
    recipe["engine"]["workdir"] = shared
    if how == "record":
        recipe["env"] = {"TORCH_FR_BUFFER_SIZE": "2000"}
    return rig.submit(json.dumps(recipe))


def events(rig, job):
    return [e for e in rig.json("events", job)["items"] if e["type"].startswith("hang.")]


def types(rig, job):
    return [e["type"].removeprefix("hang.") for e in events(rig, job)]


def stop_one(rig, job):
    """Rank 1 stands still from now on."""
    rig.wait_iteration(job, 40)
    pid = rig.json("ranks", job)["items"][1]["pid"]
    os.kill(pid, signal.SIGSTOP)
    return pid


def evidence(rig, job):
    why = rig.json("why", job)
    return "\n".join("%s\n%s" % (r["text"], "\n".join(r["evidence"])) for r in why["reasons"])


@test
def a_stopped_rank_is_named_and_its_job_goes_on(rig):
    job = submit(rig, "stopped", "auto", steps=400)
    pid = stop_one(rig, job)
    wait_until(lambda: rig.job(job)["attempt"] == 2, 60, "the next attempt")
    need(not os.path.exists("/proc/%d" % pid), "the stopped rank was not ended")
    [incident] = rig.json("report", job)["incidents"]
    equal((incident["class"], incident["first_rank"]), ("hang", 1), "what it was")
    text = "\n".join(incident["evidence"])
    need("rank 1 on node-0 (dp 1) is stopped by a signal" in text, text)
    need("no rank wrote to its log" in text, text)
    seen = events(rig, job)
    equal([e["type"] for e in seen][-2:], ["hang.suspected", "hang.confirmed"], "events")
    equal((seen[-1]["rank"], seen[-1]["data"]["acts"]), (1, 1), "the last event")
    need("1 host-stuck" in seen[-1]["data"]["states"], seen[-1]["data"])
    equal(rig.wait_state(job, "completed")["restarts"], 1, "restarts")
    need(rig.json("report", job)["gpu_seconds"]["hang"] > 0, "no seconds of hang in the ledger")


@test
def spinning_is_suspected_and_ends_late(rig):
    """It may be an evaluation that nobody announced: only its output says anything."""
    job = submit(rig, "spins", "auto", at=60, how="spin")
    wait_until(lambda: "suspected" in types(rig, job), 30, "the suspicion")
    wait_until(lambda: "collective-stuck" in evidence(rig, job), 30, "that it spins")
    doing = [r["doing"] for r in rig.json("ranks", job)["items"]]
    equal(doing, ["collective-stuck", "collective-stuck"], "what each rank does")
    need("collective-stuck" in rig.run("ranks", job).stdout, "the table of ranks")
    wait_until(lambda: rig.job(job)["attempt"] == 2, 60, "the next attempt")
    confirmed = [e for e in events(rig, job) if e["type"] == "hang.confirmed"]
    equal(len(confirmed), 1, "verdicts")
    need(confirmed[0]["data"]["limit_s"] >= 9, confirmed[0]["data"])
    rig.wait_state(job, "completed")
    [incident] = rig.json("report", job)["incidents"]
    equal((incident["class"], incident["cause"]), ("hang", "hang"), "what it was")
    text = "\n".join(incident["evidence"])
    need("rank 0 stood in <module> (<string>:%d)" % line_of("pass"), text)
    need("rank 1 stood in " in text, text)
    [shared] = [d for d in os.listdir(rig.dir) if d.startswith("spins-")]
    left = os.listdir(os.path.join(rig.dir, shared))
    need(left and not [f for f in left if f.startswith("core")], "memory was dumped: %s" % left)
    need("Aborted" in rig.run("logs", job, "--rank", "1", "--attempt", "1").stdout, "rank 1's log")


@test
def flight_recorders_say_who_has_not_joined(rig):
    job = submit(rig, "records", "auto", at=60, how="record")
    missing = "rank 0 on node-0 (dp 0) has not joined all_reduce #61 of default_pg"
    wait_until(lambda: missing in evidence(rig, job), 30, "what recorders say")
    waits = missing + ", in which rank 1 waits for "
    need("flight recorders: " + waits in evidence(rig, job), evidence(rig, job))
    need(", at train_step (train.py:120)" in evidence(rig, job), evidence(rig, job))
    equal(types(rig, job)[-1], "suspected", "what follows from that alone")
    wait_until(lambda: rig.job(job)["attempt"] == 2, 60, "the next attempt")
    confirmed = [e for e in events(rig, job) if e["type"] == "hang.confirmed"]
    equal([(e["rank"], e["data"]["recorder"]) for e in confirmed], [(0, missing)], "the verdict")
    [incident] = rig.json("report", job)["incidents"]
    equal((incident["class"], incident["first_rank"]), ("hang", 0), "what it was")
    need(missing in "\n".join(incident["evidence"]), incident["evidence"])
    rig.wait_state(job, "completed")
    shown = {i["name"]: i for i in rig.json("explain", "env", job, "--rank", "1")["items"]}
    stem = shown["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"]
    equal((stem["source"], os.path.basename(stem["value"])), ("node", "rank"), "where it is asked")


@test
def a_slow_save_is_no_hang(rig):
    job = submit(rig, "saves", "auto", at=60, how="write")
    wait_until(lambda: "suspected" in types(rig, job), 30, "the suspicion")
    equal(rig.wait_state(job, "completed")["attempt"], 1, "attempts")
    need("cleared" in types(rig, job), types(rig, job))
    need("confirmed" not in types(rig, job), types(rig, job))


@test
def report_tells_and_off_says_nothing(rig):
    told, silent = (submit(rig, name, name, steps=400) for name in ("report", "off"))
    pids = [stop_one(rig, job) for job in (told, silent)]
    try:
        wait_until(lambda: "confirmed" in types(rig, told), 60, "the verdict")
        need("recovery.hang is report" in evidence(rig, told), evidence(rig, told))
        for pid in pids:
            need(os.path.exists("/proc/%d" % pid), "a rank was ended")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    for job in (told, silent):
        equal(rig.wait_state(job, "completed")["attempt"], 1, "attempts")
    wrong = [e["data"]["wrong"] for e in events(rig, told) if e["data"].get("was") == "confirmed"]
    equal(wrong, [1], "wrong verdicts")
    equal(types(rig, silent), [], "events of a job that asks for none")


# as two H200 looked (docs/measured.md)
WORKS = dict(gfx_activity=92, umc_activity=27, socket_power=700, gfxclk=[2100] * 8)
SPINS = dict(WORKS, gfx_activity=100, umc_activity=0, socket_power=119)
IDLE = {}


class Cards(Rig):
    """A node of eight GPUs and cards: the counters move by `rate` bytes a second, and GPUs look as
    `gpu` says. The least times are a fiftieth: 1.2 seconds by GPUs, 12 by cards, 18 by what is
    written."""

    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="moe-root-")
        self.machine = machine.make("mi300x", self.top + "/root", (), cores=4)
        looks = dict(probe_device="2s", probe_host="2s", probe_klog="2s", probe_sensors="1s")
        super().__init__(
            nodes=1,
            gpus_per_node=0,
            moed={"hang_percent": 2},
            agent=dict(looks, topology=self.machine.root, core="1G"),
        )
        self.agent_options["only_fake_gpus"] = False
        self.rate, self.gpu, self.over = 0, IDLE, threading.Event()
        self.mover = threading.Thread(target=self.move)
        self.mover.start()

    def move(self):
        moved = 0
        while not self.over.wait(0.5):
            moved += self.rate // 2
            for i in range(2 if self.rate else 0):
                self.machine.traffic(i, moved, **self.gpu)

    def down(self, check=True):
        self.over.set()
        self.mover.join()
        super().down(check)
        shutil.rmtree(self.top, ignore_errors=True)


WORK, POLLS = 10**9, 10**5


@test
def cards_that_move_are_no_hang_and_those_that_stand_are_evidence(_):
    with Cards() as rig:
        rig.rate, rig.gpu = WORK, WORKS
        # a silent evaluation that nobody announced, longer than what is written alone is given
        job = submit(rig, "computes", "auto", at=60, how="spin until told")
        rig.wait_iteration(job, 60)
        wait_until(lambda: types(rig, job)[-1:] == ["suspected"], 60, "the suspicion")
        since = time.monotonic()
        wait_until(lambda: time.monotonic() - since > 25, 60, "a long evaluation")
        equal(types(rig, job)[-1], "suspected", "what is said while cards move")
        need("confirmed" not in types(rig, job), types(rig, job))
        [shared] = [d for d in os.listdir(rig.dir) if d.startswith("computes-")]
        open(os.path.join(rig.dir, shared, "go"), "w").close()
        equal(rig.wait_state(job, "completed")["attempt"], 1, "attempts")
        # processors are busy, and no GPU is: it may compile
        text = ends(rig, "compiles", IDLE)
        need("RDMA and XGMI: no card of a rank moved anything for 1" in text, text)
        need("computes nothing" not in text, text)
        # a collective that waits
        text = ends(rig, "spins", SPINS)
        need("RDMA and XGMI: no card of a rank moved anything for " in text, text)
        need("GPUs: each is busy and computes nothing for " in text, text)
        need("ranks: 2 collective-stuck" in text, text)


def ends(rig, name, gpu):
    """A job whose GPUs look so once its cards stand still; the evidence that ends it."""
    rig.rate, rig.gpu = WORK, WORKS
    job = submit(rig, name, "auto", at=60, how="spin")
    rig.wait_iteration(job, 60)
    since = time.monotonic()
    wait_until(lambda: time.monotonic() - since > 3, 60, "that its GPUs are seen to work")
    rig.rate, rig.gpu = POLLS, gpu
    wait_until(lambda: rig.job(job)["attempt"] == 2, 60, "the next attempt")
    [incident] = rig.json("report", job)["incidents"]
    rig.wait_state(job, "completed")
    return "\n".join(incident["evidence"])


@test
def a_controller_of_before_is_not_told_of_gpus(_):
    for gpus in (True, False):
        with Machine("mi300x", options=FAST) as n:
            n.stop_agent(signal.SIGTERM)
            n.moed.reads = {"motion": True, "gpus": gpus}
            n.start()
            n.launch(SLEEP)
            n.moed.order("motion", 1, 1)

            def reads(key, value):
                return n.moed.sensors.get("n0", {}).get(0, {}).get(key) == value

            def told():
                [of_rank] = n.moed.steps[(1, 1)].get("motion") or [{}]
                return {k for k in ("gpu_work_ms", "gpu_spin_ms") if k in of_rank}

            n.machine.metrics(0, **WORKS)
            n.moed.wait(lambda: reads("power_w", 700), 60, "that its GPU is seen to work")
            n.machine.metrics(0, **SPINS)
            n.moed.wait(lambda: reads("power_w", 119), 60, "that it is seen to spin")
            if gpus:
                n.moed.wait(lambda: len(told()) == 2, 60, "that it tells")
                continue
            syncs = n.moed.syncs
            n.moed.wait(lambda: n.moed.syncs > syncs + 5, 60, "that it tells of the rest")
            equal(told(), set(), "keys")


if __name__ == "__main__":
    with Rig(nodes=1, gpus_per_node=4, moed={"hang_percent": 1}, agent={"core": "1G"}) as world:
        sys.exit(suite.main(world))
