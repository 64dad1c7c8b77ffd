#!/usr/bin/python3
"""Tests of config/engines/tiny_moe/train.py with real process groups of up to 4 ranks on this
machine: `ok NAME` or `FAIL NAME: why` per test, `N passed, N failed` at the end.

  test_tiny_moe.py [-v] [NAME ...]      -v shows what the ranks print
"""
import functools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TRAIN = os.path.join(
    os.path.dirname(os.path.abspath(__file__)),
    "..",
    "..",
    "config",
    "engines",
    "tiny_moe",
    "train.py",
)
STEP = re.compile(
    r"step (\d+)/(\d+) loss (\S+) grad_norm (\S+) lr (\S+) step_ms (\S+)"
    r" tokens (\d+) tokens_per_s (\d+)"
)
SAVED = re.compile(r"saved checkpoint (\d+) (/\S+)")
FINAL = re.compile(r"final loss (\d+\.\d{6}) unigram baseline (\d+\.\d{4})")
REPR = re.compile(r"final loss repr (\S+)")
EXPERTS = re.compile(r"tokens per expert: (\[.*\])")
PATIENCE = 60  # seconds any single condition may take, on a busy machine
verbose = False
jobs = []  # all jobs ever started; none may outlive the tests
base = None  # the directory that holds all that the tests write


def free_port():
    """Below those that the kernel gives to connections: the ranks' own take none before the first
    of them listens there."""
    while True:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", random.randrange(30000, 32000)))
                return s.getsockname()[1]
            except OSError:
                continue


class Job:
    """The ranks of one run. All lines of all ranks are kept in the order they were read."""

    def __init__(self, world, *args, **env):
        port = free_port()
        clean = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("MOE_", "MASTER_"))
            and k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        }
        clean.update(OMP_NUM_THREADS="1", **env)
        self.lines, self.changed, self.ranks, self.readers = [], threading.Condition(), [], []
        jobs.append(self)
        for rank in range(world):
            place = (
                dict(
                    RANK=str(rank),
                    LOCAL_RANK=str(rank),
                    WORLD_SIZE=str(world),
                    MASTER_ADDR="127.0.0.1",
                    MASTER_PORT=str(port),
                )
                if world > 1
                else {}
            )
            p = subprocess.Popen(
                ["/usr/bin/python3", TRAIN, *map(str, args)],
                env=dict(clean, **place),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            self.ranks.append(p)
            self.readers.append(threading.Thread(target=self.read, args=(rank, p), daemon=True))
            self.readers[-1].start()

    def read(self, rank, process):
        for line in process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
            if verbose:
                print("    [%d] %s" % (rank, line), end="", flush=True)
        with self.changed:
            self.changed.notify_all()

    def wait_line(self, pattern, test=lambda match: True):
        """Until a line matches. -> the match"""
        end, seen = time.monotonic() + PATIENCE, 0
        with self.changed:
            while True:
                for line in self.lines[seen:]:
                    match = re.match(pattern, line)
                    if match and test(match):
                        return match
                seen = len(self.lines)
                assert (
                    any(t.is_alive() for t in self.readers) and time.monotonic() < end
                ), "no line %s; the last ones: %s" % (pattern, self.lines[-3:])
                self.changed.wait(1)

    def wait_step(self, n):
        self.wait_line(STEP, lambda m: int(m[1]) >= n)

    def finish(self):
        """Until all ranks have exited. -> their exit codes"""
        codes = [p.wait(PATIENCE) for p in self.ranks]
        for reader in self.readers:
            reader.join(PATIENCE)
        return codes

    def succeed(self):
        codes = self.finish()
        assert set(codes) == {0}, "exit codes %s: %s" % (codes, self.lines[-5:])
        return self

    def kill(self):
        for p in self.ranks:
            if p.poll() is None:
                p.kill()

    def found(self, pattern):
        return [m for m in (re.match(pattern, line) for line in self.lines) if m]

    def one(self, pattern):
        matches = self.found(pattern)
        assert len(matches) == 1, "%d lines match %s: %s" % (len(matches), pattern, self.lines[-5:])
        return matches[0]

    def steps(self):
        return [int(m[1]) for m in self.found(STEP)]


class Listener:
    """A notify socket, and the datagrams that came, each as a dict."""

    def __init__(self, path):
        self.path, self.got = path, []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        while True:
            data = self.socket.recv(65536)
            if data == b"end":
                return
            self.got.append(dict(line.split("=", 1) for line in data.decode().split("\n")))

    def end(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(b"end", self.path)  # blocks until there is room: all before it were read
        self.thread.join(PATIENCE)
        return self.got


def iteration_dir(top, n):
    return os.path.join(top, "iter_%07d" % n)


def check_complete(top, n, world):
    with open(os.path.join(iteration_dir(top, n), "COMPLETE")) as f:
        meta = json.load(f)
    assert (meta["iteration"], meta["world"]) == (n, world), meta
    assert sorted(meta["files"]) == ["rank_%d.pt" % r for r in range(world)], meta
    for name, size in meta["files"].items():
        assert os.path.getsize(os.path.join(iteration_dir(top, n), name)) == size, name
    left = [f for f in os.listdir(iteration_dir(top, n)) if f.endswith(".tmp")]
    assert not left, left


# ---------------------------------------------------------------- the tests


@functools.lru_cache(None)
def default_run():
    """-> the job of the default flags, its checkpoint directory, the datagrams it sent"""
    listener = Listener(os.path.join(base, "notify"))
    top = os.path.join(base, "default")
    job = Job(4, "--dir", top, MOE_NOTIFY_SOCKET=listener.path).succeed()
    return job, top, listener.end()


SHORT = ("--steps", 24, "--save-every", 6)


def result(job):
    return job.one(REPR)[1], job.one(EXPERTS)[1]


@functools.lru_cache(None)
def undisturbed():
    """-> the result that disturbed runs are compared with, and the checkpoint directory"""
    top = os.path.join(base, "undisturbed")
    job = Job(4, *SHORT, "--dir", top).succeed()
    assert job.steps() == list(range(1, 25)), job.steps()
    assert [m[2] for m in job.found(SAVED)] == [iteration_dir(top, n) for n in (6, 12, 18, 24)]
    return result(job), top


def test_killed_twice_ends_with_the_same_digits(tmp):
    run = SHORT + ("--dir", tmp)
    first = Job(4, *run)
    first.wait_step(8)
    first.ranks[2].send_signal(signal.SIGKILL)
    codes = first.finish()  # the peers must notice by themselves
    assert codes[2] == -signal.SIGKILL and 0 not in codes, codes
    second = Job(4, *run)
    assert int(second.wait_line(r"resumed from iteration (\d+)")[1]) == 6
    second.wait_step(15)
    second.kill()
    second.finish()
    third = Job(4, *run).succeed()
    assert third.one(r"resumed from iteration (\d+)")[1] == "12", third.lines
    assert third.steps() == list(range(13, 25)), third.steps()
    for n in (6, 12, 18, 24):
        check_complete(tmp, n, 4)
    assert result(third) == undisturbed()[0], "%s, undisturbed %s" % (result(third), undisturbed())


def test_torn_checkpoints_are_skipped(tmp):
    """The newest has an empty COMPLETE, the next one none, the one before a short file."""
    expected, top = undisturbed()
    shutil.copytree(top, tmp, dirs_exist_ok=True)
    os.makedirs(iteration_dir(tmp, 99))
    open(os.path.join(iteration_dir(tmp, 99), "COMPLETE"), "w").close()
    os.unlink(os.path.join(iteration_dir(tmp, 24), "COMPLETE"))
    os.truncate(os.path.join(iteration_dir(tmp, 18), "rank_2.pt"), 1000)
    job = Job(4, *SHORT, "--dir", tmp).succeed()
    ignored = [m[1] for m in job.found(r"ignored checkpoint (\S+): ")]
    assert ignored == [iteration_dir(tmp, n) for n in (99, 24, 18)], job.lines
    assert job.one(r"resumed from iteration (\d+)")[1] == "12"
    assert result(job) == expected
    check_complete(tmp, 18, 4)
    check_complete(tmp, 24, 4)


def test_default_run_learns_and_spreads_tokens(_tmp):
    job = default_run()[0]
    loss, baseline = map(float, job.one(FINAL).groups())
    assert 2.5 < baseline < 3.5, baseline
    assert loss < baseline - 0.4, "loss %s, baseline %s" % (loss, baseline)
    assert "%.6f" % float(job.one(REPR)[1]) == job.one(FINAL)[1]
    tokens = json.loads(job.one(EXPERTS)[1])
    total = 120 * int(job.found(STEP)[0][7]) * 2 * 2  # layers, top-k
    assert len(tokens) == 8 and sum(tokens) == total, tokens
    assert min(tokens) > total / 8 / 3, "not spread: %s" % tokens
    assert [int(m[1]) for m in job.found(SAVED)] == [20, 40, 60, 80, 100, 120]


def test_notify_datagrams(_tmp):
    job, top, got = default_run()
    known = {
        "READY",
        "ITERATION",
        "LOSS",
        "STEP_MS",
        "TOKENS",
        "TFLOPS",
        "PHASE",
        "CHECKPOINT",
        "STATUS",
        "GRAD_NORM",
        "LR",
    }
    strange = {key for d in got for key in d} - known
    assert not strange, strange
    assert {d["PHASE"] for d in got if "PHASE" in d} <= {"init", "load", "train", "save", "eval"}
    assert sum(d.get("READY") == "1" for d in got) == 4, "READY=1 from each rank"
    train = [d for d in got if "LOSS" in d]
    # A spectator may lose datagrams; here one reads all the time and loses few.
    assert len(train) > 0.9 * 4 * 120, len(train)
    for d in train:
        assert d["PHASE"] == "train" and 1 <= int(d["ITERATION"]) <= 120, d
        for key in ("LOSS", "STEP_MS", "TOKENS", "TFLOPS", "GRAD_NORM", "LR"):
            assert float(d[key]) > 0, d
    printed = {int(m[1]): m[3] for m in job.found(STEP)}
    for d in train:  # the mean over all ranks, the same from each
        assert abs(float(d["LOSS"]) - float(printed[int(d["ITERATION"])])) < 1e-4, d
    saves = [d for d in got if "CHECKPOINT" in d]
    assert [(d["ITERATION"], d["CHECKPOINT"]) for d in saves] == [
        (str(n), iteration_dir(top, n)) for n in (20, 40, 60, 80, 100, 120)
    ], saves
    assert any(d.get("PHASE") == "save" for d in got)


def test_expert_parallelism_changes_only_rounding(_tmp):
    """EP 1, 2 and 4 on 4 ranks, and one process doing the work of 4 in 4 micro-batches, are the
    same computation: what differs is who multiplies, so losses and gradients agree but for
    rounding. (The optimizer hides a wrong scale of the gradients, their norm does not.)"""
    curves = {}
    for name, world, args in (
        ("world 4 ep 1", 4, ("--ep", 1)),
        ("world 4 ep 2", 4, ("--ep", 2)),
        ("world 4 ep 4", 4, ("--ep", 4)),
        ("world 1", 1, ("--global-batch", 16)),
    ):
        job = Job(world, "--steps", 8, *args).succeed()
        job.one(r"training %d ranks, ep %s" % (world, args[1] if world > 1 else 1))
        curves[name] = [(float(m[3]), float(m[4])) for m in job.found(STEP)]
        assert len(curves[name]) == 8, job.lines
    for name, curve in curves.items():
        for (loss, norm), (right_loss, right_norm) in zip(curve, curves["world 1"]):
            assert (
                abs(loss - right_loss) < 2e-3 and abs(norm - right_norm) < 0.021
            ), "%s: loss %g, not %g; norm %g, not %g; %s" % (
                name,
                loss,
                right_loss,
                norm,
                right_norm,
                curves,
            )


def test_ranks_without_tokens(_tmp):
    """So few tokens that most experts, and often a whole rank, get none."""
    job = Job(2, "--steps", 6, "--experts", 16, "--topk", 1, "--seq", 2, "--micro", 1).succeed()
    assert job.steps() == [1, 2, 3, 4, 5, 6]


def test_explicit_resume(tmp):
    args = ("--steps", 6, "--save-every", 2, "--dir", tmp)
    Job(1, *args).succeed()
    for world, extra, env in ((2, ("--resume", 5), {}), (1, (), {"MOE_RESUME_ITERATION": "5"})):
        job = Job(world, *args, *extra, **env)
        assert set(job.finish()) == {1}, job.lines
        job.one(
            r"error: cannot resume from iteration 5: no complete checkpoint %s"
            % iteration_dir(tmp, 5)
        )
        assert not job.steps()
    job = Job(1, "--steps", 6, MOE_CHECKPOINT_DIR=tmp, MOE_RESUME_ITERATION="4").succeed()
    assert job.one(r"resumed from iteration (\d+)")[1] == "4" and job.steps() == [5, 6], job.lines
    job = Job(
        1, "--steps", 2, "--save-every", 0, MOE_CHECKPOINT_DIR=tmp, MOE_RESUME_ITERATION="-1"
    ).succeed()
    assert job.steps() == [1, 2] and not job.found("resumed"), job.lines
    job = Job(1, *args).succeed()  # nothing left to do: the result is said again
    assert not job.steps() and job.one(FINAL) and job.one(EXPERTS)


def test_other_world_size_is_refused(tmp):
    Job(1, "--steps", 2, "--save-every", 2, "--dir", tmp).succeed()
    job = Job(2, "--steps", 4, "--dir", tmp)
    assert set(job.finish()) == {1}, job.lines
    job.one(
        r"error: checkpoint %s was written with world 1 \(this run has 2\)" % iteration_dir(tmp, 2)
    )


def test_sigterm_to_one_rank_saves_and_stops_all(tmp):
    job = Job(4, "--steps", 100000, "--save-every", 0, "--dir", tmp)
    job.wait_step(3)
    job.ranks[3].send_signal(signal.SIGTERM)
    job.succeed()
    last = job.steps()[-1]
    assert job.one(r"SIGTERM: stopped after iteration (\d+)")[1] == str(last), job.lines
    assert job.one(SAVED).groups() == (str(last), iteration_dir(tmp, last)), job.lines
    check_complete(tmp, last, 4)
    job = Job(1, "--steps", 100000, "--step-delay-ms", 1)
    job.wait_step(2)
    job.ranks[0].send_signal(signal.SIGTERM)
    job.succeed().one(r"SIGTERM: stopped after iteration \d+, without a checkpoint directory")


def test_broken_notify_socket_disturbs_nothing(tmp):
    deaf = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    deaf.bind(os.path.join(tmp, "deaf"))  # never read: its queue is full after a few datagrams
    plain = Job(1, "--steps", 25).succeed()
    for path in (os.path.join(tmp, "deaf"), os.path.join(tmp, "missing")):
        job = Job(1, "--steps", 25, MOE_NOTIFY_SOCKET=path).succeed()
        assert job.one(REPR)[1] == plain.one(REPR)[1]


def test_checkpoint_that_cannot_be_written(tmp):
    """A file where iter_2 should go: that checkpoint is lost, the training and iter_4 are not."""
    open(iteration_dir(tmp, 2), "w").close()
    job = Job(2, "--steps", 4, "--save-every", 2, "--dir", tmp).succeed()
    job.one(r"failed to save checkpoint 2 ")
    assert job.one(SAVED)[1] == "4"
    check_complete(tmp, 4, 2)


def main():
    global verbose, base
    verbose = "-v" in sys.argv
    names = [a for a in sys.argv[1:] if a != "-v"]
    tests = [(n[5:], f) for n, f in globals().items() if n.startswith("test_")]
    passed = failed = 0
    base = os.path.realpath(tempfile.mkdtemp(prefix="tiny_moe."))
    for name, test in tests:
        if names and name not in names:
            continue
        tmp = os.path.join(base, "t%d" % (passed + failed))  # short: socket paths have to be
        os.mkdir(tmp)
        began = time.monotonic()
        try:
            test(tmp)
            passed += 1
            print("ok", name, flush=True)
        except Exception as e:
            failed += 1
            why = " ".join(str(e).split())  # on one line
            print("FAIL %s: %s: %s" % (name, type(e).__name__, why), flush=True)
        finally:
            for job in jobs:
                job.kill()
            if verbose:
                print("    %.1f s" % (time.monotonic() - began))
    shutil.rmtree(base, ignore_errors=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
