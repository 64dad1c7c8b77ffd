#!/usr/bin/python3
"""What ranks say, and where it goes: notify datagrams, lines, floods, pipes that stay open, logs
that rotate, the journal, full disks."""
import errno
import os
import signal
import subprocess
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Skipped, Suite, equal, need, wait_until
from node_rig import FAKE_RANK, SLEEP, alive, Node

suite = Suite()


@suite.test
def journal_segments():
    rules = [
        {
            "kind": "sample",
            "pattern": r"step (?<iteration>\d+) loss (?<loss>\S+)",
            "phase": None,
            "missing_loss_is_nan": False,
        }
    ]
    code = (
        "import time\nfor i in range(1, 12001):\n"
        "  print('step %d loss %.3f' % (i, 1 / i), flush=i % 400 == 0)\n"
        "  if i % 400 == 0: time.sleep(0.02)\ntime.sleep(1000)"
    )
    with Node() as n:
        n.moed.forget_notes = True
        n.launch([sys.executable, "-c", code], rules=rules, env=[("PYTHONUNBUFFERED", "")])
        n.moed.wait(
            lambda: n.moed.steps.get((1, 1), {}).get("written", 0) > 12000, 60, "12,000 notes"
        )
        need(
            len([f for f in os.listdir(n.step_dir()) if f.startswith("notes.")]) > 2,
            "several segments",
        )
        n.stop_agent(signal.SIGKILL)
        n.moed.forget_notes = False
        n.start()
        n.moed.wait(
            lambda: len(n.moed.note_list(1, 1, "sample")) >= 11999,
            60,
            "all samples after the restart",
        )
        seen = [s["sample"]["iteration"] for s in n.moed.note_list(1, 1, "sample")]
        equal(seen, list(range(1, len(seen) + 1)), "iterations: none missing, none twice")
        wait_until(
            lambda: len([f for f in os.listdir(n.step_dir()) if f.startswith("notes.")]) == 2,
            20,
            "acknowledged segments are deleted but for the first, which tells of the ranks",
        )
        n.stop_agent(signal.SIGKILL)
        n.start()
        n.moed.order("kill", 1, 1)
        n.moed.wait_note(1, 1, "exit")


@suite.test
def notify_and_rules():
    rules = [
        {
            "kind": "sample",
            "pattern": r"step (?<iteration>\d+) loss (?<loss>\S+)",
            "phase": None,
            "missing_loss_is_nan": False,
        }
    ]
    code = """
import fcntl, os, socket, struct, termios, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def say(t): s.sendto(t.encode(), os.environ["MOE_NOTIFY_SOCKET"])
say("READY=1\\nPHASE=load")
print("step 1 loss 2.5", flush=True)
while struct.unpack("i", fcntl.ioctl(1, termios.FIONREAD, b"1234"))[0]: time.sleep(0.01)
say("ITERATION=2\\nLOSS=2.25\\nSTEP_MS=171.2")
say("X" * 9000)
say("nonsense")
say("CHECKPOINT=/ckpt/iter_2\\nITERATION=2\\nPHASE=train")
""".replace(
        "\\\\", "\\"
    )
    with Node() as n:
        n.launch([sys.executable, "-c", code], rules=rules, wait="gone")
        samples = [x["sample"] for x in n.moed.note_list(1, 1, "sample")]
        equal([(x["iteration"], x["loss"]) for x in samples], [(1, 2.5), (2, 2.25)], "samples")
        equal(samples[1]["step_ms"], 171.2, "step_ms")
        c = n.moed.note_list(1, 1, "checkpoint")[0]
        equal((c["iteration"], c["path"]), (2, "/ckpt/iter_2"), "checkpoint")
        equal([x["phase"] for x in n.moed.note_list(1, 1, "phase")], ["load", "train"], "phases")


@suite.test
def many_lines():
    code = (
        "import sys\nfor i in range(40000): sys.stdout.write('line %d of the flood\\n' % i)\n"
        "sys.stdout.flush()"
    )
    with Node() as n:
        n.launch([sys.executable, "-c", code], n=2, wait="gone", deadline=60)
        for rank in range(2):
            with open(n.dir + "/state/logs/j1/a1/rank-%d.log" % rank) as f:
                lines = f.read().splitlines()
            equal(len(lines), 40000, "lines of rank %d" % rank)
            equal(lines[-1], "line 39999 of the flood", "last line")
        equal(n.moed.note_list(1, 1, "exit")[0]["tail"][-1], "line 39999 of the flood", "tail")


# ORIGIN: as torch 1.13's @record writes it of an exception that leaves main()
ERROR_FILE = """{"message": {"message": "RuntimeError: expert 3 got no tokens",
"extraInfo": {"py_callstack": "Traceback ...", "timestamp": "1795223064"}}}"""


@suite.test
def the_exception_of_an_error_file():
    """What torch's @record writes is evidence where the last lines do not have it, and whatever
    else a rank makes of that file is none."""
    begin = """
import os, sys
path = os.environ["TORCHELASTIC_ERROR_FILE"]
def write(text): open(path, "w").write(text)
print("begins", flush=True)
"""
    end = "\nfor i in range(30): print('noise', flush=True)\nsys.exit(1)"
    seen = "RuntimeError: expert 3 got no tokens"
    files = [
        ("write(%r)" % ERROR_FILE, seen),
        ("write(%r)" % '{"message": "RuntimeError: of a word"}', "RuntimeError: of a word"),
        ("write(%r)" % ERROR_FILE[:-2], "noise"),
        ("write('{\"message\": \"' + 'x' * 70000 + '\"}')", "noise"),
        ("write('{\"message\": [1]}'); os.chmod(path, 0)", "noise"),
        ("os.remove(path); os.symlink(path + '2', path); write(%r)" % ERROR_FILE, "noise"),
        ("os.remove(path); os.mkfifo(path)", "noise"),
        ("os.remove(path)", "noise"),
    ]
    with Node() as n:
        for job, (deed, last) in enumerate(files, 1):
            n.launch([sys.executable, "-c", begin + deed + end], job=job, wait="gone")
            tail = n.moed.note_list(job, 1, "exit")[0]["tail"]
            equal(tail[-1], last, "last line of a rank that does: " + deed[:60])
            equal(len(tail), 20, "lines")


@suite.test
def flood_without_newline():
    code = (
        "import os\nb = b'x' * 65536\nfor i in range(200): os.write(1, b)\n"
        "os.write(1, b'\\nthe end\\n')"
    )
    with Node() as n:
        n.launch([sys.executable, "-c", code], wait="gone", deadline=60)
        with open(n.dir + "/state/logs/j1/a1/rank-0.log", "rb") as f:
            data = f.read()
        equal(len(data), 65536 * 200 + 9, "bytes of the log")
        equal(n.moed.note_list(1, 1, "exit")[0]["tail"][-1], "the end", "tail after the flood")


@suite.test
def grandchild_holds_the_pipe():
    with Node() as n:
        n.launch(
            ["/bin/sh", "-c", "(sleep 1003; echo late) & echo $! > child; echo last words; exit 4"],
            wait="gone",
            deadline=5,
        )
        e = n.moed.note_list(1, 1, "exit")[0]
        equal((e["code"], e["tail"]), (4, ["last words"]), "exit")
        need(not alive(int(n.file("child"))), "what the rank left behind lives")


@suite.test
def logs_rotate_and_follow():
    code = (
        "import time\nfor i in range(1, 3001):\n  print('line', i, flush=True)\n"
        "  if i % 500 == 0: time.sleep(0.05)\ntime.sleep(0.5)\n"
        "print('end \\xff\\0 \\u00e9', flush=True)"
    )
    with Node(options=["log_bytes=16k"]) as n:
        n.launch([sys.executable, "-c", code], wait="running", env=[("PYTHONIOENCODING", "utf-8")])
        text, offset, end = "", 0, False
        while not end:
            a = n.moed.query(1, 1, 0, offset=offset, wait_ms=2000)
            need(not a["error"], a["error"])
            text, offset, end = text + a["text"], a["offset"], a["end"]
        n.moed.wait_note(1, 1, "gone")
        files = sorted(os.listdir(n.dir + "/state/logs/j1/a1"))
        times = ["rank-0.times", "rank-0.times.1"]
        equal(files, ["env.json", "rank-0.base", "rank-0.log", "rank-0.log.1", *times], "files")
        lines = text.splitlines()
        need(lines[-1].startswith("end ") and lines[-1].endswith("\u00e9"), lines[-1])
        numbers = [
            int(line.split()[1])
            for line in lines[:-1]
            if line.startswith("line ") and len(line.split()) == 2
        ]
        equal(numbers, sorted(numbers), "order")
        equal(numbers[-1], 3000, "last number")
        last = n.moed.query(1, 1, 0, offset=-1, lines=3)
        equal(last["text"].splitlines()[:2], ["line 2999", "line 3000"], "last lines")
        equal(last["end"], True, "end")
        need(
            "no log of rank 9" in n.moed.query(1, 1, 9, offset=0)["error"],
            "error of a rank that is not there",
        )


class Tmpfs:
    """A small file system of its own (root only)."""

    def __init__(self, path, kilobytes):
        self.path, self.kilobytes = path, kilobytes

    def __enter__(self):
        os.makedirs(self.path, exist_ok=True)
        r = subprocess.run(
            [
                "mount",
                "-t",
                "tmpfs",
                "-o",
                "size=%dk,mode=755" % self.kilobytes,
                "tmpfs",
                self.path,
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        if r.returncode:
            raise Skipped("no tmpfs can be mounted: " + r.stderr.strip())
        return self

    def __exit__(self, *exc):
        subprocess.run(["umount", "-l", self.path], check=True)

    def fill(self):
        with open(self.path + "/filler", "wb", buffering=0) as f:
            try:
                while f.write(b"x" * 4096):
                    pass
            except OSError as e:
                equal(e.errno, errno.ENOSPC, "errno of the filler")

    def free(self):
        os.unlink(self.path + "/filler")


@suite.test
def logs_from_a_time_on():
    """The place of a time is found in what the supervisor noted, across a rotation, and begins a
    line; what nobody noted is said."""
    code = (
        "import time\nfor i in range(3000):\n  print('line %04d' % i, flush=True)\n"
        "  if i % 500 == 0: time.sleep(0.05)"
    )
    with Node(options=["log_bytes=16k"]) as n:
        began = time.time()
        n.launch([sys.executable, "-c", code], wait="running")
        n.moed.wait_note(1, 1, "gone")

        def since(seconds, **more):
            ask = {"what": "log_since", "since_ms": int(seconds * 1000), "offset": 0} | more
            a = n.moed.query(1, 1, 0, **ask)
            text = a["text"]
            while a["more"]:
                a = n.moed.query(1, 1, 0, offset=a["offset"])
                text += a["text"]
            return a["error"] or [int(x.split()[1]) for x in text.splitlines()]

        logs = n.dir + "/state/logs/j1/a1/rank-0"
        with open(logs + ".times", "rb") as f:
            at, byte = struct.unpack("<qq", f.read(16))
        base = int(open(logs + ".base").read())
        equal(byte, base, "the first byte of the newer file")
        need(began * 1e6 < at < time.time() * 1e6, "%d is when it was written" % at)
        equal(since(3600)[-1], 2999, "all of it")
        first = since(3600)[0]
        now = time.time() * 1e6

        def note(name, *entries):
            with open(logs + name, "wb") as f:
                for ago, byte in entries:
                    f.write(struct.pack("<qq", int(now - ago * 1e6), byte))

        # each line has 10 bytes
        note(".times.1", (7200, 0), (3600, 10 * (first + 10)), (1800, 10 * (first + 20) + 3))
        note(".times", (900, base), (600, 29900))
        equal(since(7300)[0], first, "before all that is kept")
        equal(since(3605)[0], first + 10, "the older file")
        equal(since(1805)[0], first + 21, "where a line begins")
        equal(since(605), list(range(2990, 3000)), "the newer file")
        equal(since(605, offset=-1, lines=3), [2997, 2998, 2999], "the last lines of those")
        equal(since(605, offset=-1, lines=50), list(range(2990, 3000)), "not more than those")
        equal(since(500), [], "nothing was written since")
        os.unlink(logs + ".times")
        os.unlink(logs + ".times.1")
        need("it is not known when" in since(605), since(605))


@suite.test
def full_disk_of_logs():
    code = """
import fcntl, os, struct, termios, time
for i in range(400): print('x' * 4000, flush=True)
print('mid', flush=True)
while struct.unpack('i', fcntl.ioctl(1, termios.FIONREAD, b'1234'))[0]: time.sleep(0.01)
open('read', 'w').close()
while not os.path.exists('go'): time.sleep(0.01)
print('after', flush=True)
"""
    with Node() as n:
        n.stop_agent(signal.SIGTERM)
        with Tmpfs(n.dir + "/small", 512) as small:
            n.options.append("state_dir=" + small.path)
            n.start()
            n.launch([sys.executable, "-c", code])
            wait_until(
                lambda: "output is dropped" in n.log(),
                10,
                "the supervisor says that the log cannot be written",
            )
            wait_until(lambda: os.path.exists(n.dir + "/read"), 10, "all of it is read")
            os.truncate(small.path + "/logs/j1/a1/rank-0.log", 0)
            open(n.dir + "/go", "w").close()
            n.moed.wait_note(1, 1, "gone")
            equal(n.moed.note_list(1, 1, "exit")[0]["code"], 0, "the rank is not hurt")
            equal(n.moed.note_list(1, 1, "exit")[0]["tail"][-2:], ["mid", "after"], "last lines")
            text = n.file("small/logs/j1/a1/rank-0.log")
            need(
                "bytes of output are missing here" in text and text.endswith("after\n"), text[-300:]
            )
            with open(small.path + "/fence.log", "a") as log:
                # what is left of its page would take the next line
                log.write("1 1\n" * ((4096 - log.tell()) // 4))
            small.fill()
            n.launch(SLEEP, attempt=2, wait="refused")
            r = n.moed.note_list(1, 2, "refused")[0]
            equal(r["cause"], "spool", "cause on a full state disk")
            need("/fence." in r["text"] and "No space" in r["text"], r["text"])
            n.moed.due.clear()
            small.free()
            n.launch(["/bin/true"], attempt=3, wait="gone")
            equal(n.moed.note_list(1, 3, "exit")[0]["code"], 0, "exit")
            n.stop_agent(signal.SIGTERM)
            n.options.pop()


@suite.test
def full_disk_of_the_journal():
    with Node() as n:
        n.stop_agent(signal.SIGTERM)
        with Tmpfs(n.dir + "/small", 512) as small:
            n.options.append("runtime_dir=" + small.path)
            n.start()
            n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "10", "--truth", n.dir], n=1)
            n.moed.wait(lambda: len(n.moed.note_list(1, 1, "sample")) > 3, 10, "samples")
            small.fill()
            with open(small.path + "/steps/j1.a1/stepd.log") as log:
                wait_until(
                    lambda: "the journal cannot be written" in log.read(),
                    30,
                    "the supervisor says that the journal cannot be written",
                )
            last = n.moed.note_list(1, 1, "sample")[-1]["sample"]["iteration"]
            small.free()
            n.moed.wait(
                lambda: n.moed.note_list(1, 1, "sample")[-1]["sample"]["iteration"] > last + 100,
                20,
                "samples after there is space again",
            )
            seen = [s["sample"]["iteration"] for s in n.moed.note_list(1, 1, "sample")]
            equal(seen, list(range(1, len(seen) + 1)), "iterations: none missing, none twice")
            n.moed.order("kill", 1, 1)
            n.moed.wait_note(1, 1, "gone")
            n.stop_agent(signal.SIGTERM)
            n.options.pop()
            n.attempts.clear()
            n.moed.due.clear()


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
