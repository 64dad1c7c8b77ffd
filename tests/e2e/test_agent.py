#!/usr/bin/python3
"""moe-agent and moe-stepd against a scripted controller (fake_moed.py): launch, binding, notes,
adoption, the three nets, stops, orders that come too late, scans and discovery that hang."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Suite, equal, need, wait_equal, wait_until
from node_rig import FAKE_RANK, SLEEP, alive, children_of, Node, processes

suite = Suite()


@suite.test
def launch_eight_ranks():
    with Node() as n:
        n.launch(
            [
                "/bin/sh",
                "-c",
                "env > env.$RANK; grep -i cpus_allowed_list /proc/self/status > cpus.$RANK; ls -l "
                "/proc/self/fd > fds.$RANK; ulimit -c > core.$RANK; umask > umask.$RANK; "
                "cat /proc/$PPID/cmdline > parent.$RANK; echo hello $RANK; exec sleep 1000",
            ],
            n=8,
        )
        started = n.moed.note_list(1, 1, "started")
        equal(sorted(s["rank"] for s in started), list(range(8)), "started ranks")
        for s in started:
            need(alive(s["pid"]), "rank %d is not alive" % s["rank"])
            equal(
                s["bind_verified"],
                True,
                "bind_verified of rank %d (%s)" % (s["rank"], s.get("bind_note")),
            )
            wait_until(lambda: os.path.getsize("%s/parent.%d" % (n.dir, s["rank"])), 10)
            with open("/proc/%d/status" % s["pid"]) as f:
                cpus = [line.split()[1] for line in f if line.startswith("Cpus_allowed_list")][0]
            equal(cpus, s["cpus"], "cpus of rank %d" % s["rank"])
            with open("/proc/%d/stat" % s["pid"]) as f:
                equal(int(f.read().rsplit(")", 1)[1].split()[19]), s["start_time"], "start time")
        env = dict(line.split("=", 1) for line in n.file("env.3").splitlines() if "=" in line)
        wanted = {
            "RANK": "3",
            "WORLD_SIZE": "8",
            "LOCAL_RANK": "3",
            "LOCAL_WORLD_SIZE": "8",
            "NODE_RANK": "0",
            "NNODES": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MOE_JOB": "j-1",
            "MOE_ATTEMPT": "1",
            "MOE_RESUME_ITERATION": "-1",
            "TORCHELASTIC_RESTART_COUNT": "0",
            "MOE_CHECKPOINT_DIR": n.dir + "/ckpt",
            "LANG": "C.UTF-8",
        }
        for k, v in wanted.items():
            equal(env.get(k), v, k)
        for k in (
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "PATH",
            "TMPDIR",
            "MOE_STEP",
            "MOE_NOTIFY_SOCKET",
            "TORCHELASTIC_ERROR_FILE",
            "OMP_NUM_THREADS",
        ):
            need(env.get(k), "%s is missing" % k)
        for k in ("LEAKED", "SLURM_JOB_ID", "http_proxy", "NOTIFY_SOCKET", "MOE_DATA_DIR"):
            need(k not in env, "%s leaked" % k)
        fds = [line.split()[8:] for line in n.file("fds.3").splitlines() if "->" in line]
        equal(
            sorted(f[0] for f in fds if "/proc/" not in f[2] and "fds.3" not in f[2]),
            ["0", "2"],
            "descriptors beside stdout (%s)" % fds,
        )
        equal(n.file("core.3").strip(), "0", "core limit")
        need(n.file("umask.3").strip() in ("0022", "022"), "umask")
        need("moe-stepd" in n.file("parent.3"), "the parent is stepd")
        wait_until(lambda: n.moed.query(1, 1, 5)["text"] == "hello 5\n", 10, "log of rank 5")


@suite.test
def notes_and_exit_codes():
    with Node() as n:
        n.launch(
            [
                "/bin/sh",
                "-c",
                "echo out; echo err >&2; printf 'no newline'; [ $RANK = 1 ] && kill -SEGV $$; "
                "exit 3",
            ],
            n=2,
            wait="gone",
        )
        exits = {e["rank"]: e for e in n.moed.note_list(1, 1, "exit")}
        equal((exits[0]["code"], exits[0].get("signal")), (3, None), "rank 0")
        equal((exits[1].get("code"), exits[1]["signal"]), (None, 11), "rank 1")
        for e in exits.values():
            equal(sorted(e["tail"]), ["err", "no newline", "out"], "last lines")
            need(e["mono_ns"] > 0 and e["pid"] > 0, "mono_ns, pid")
        numbers = sorted(n.moed.notes[(1, 1)])
        equal(numbers, list(range(1, len(numbers) + 1)), "note numbers")
        equal(n.moed.note_list(1, 1)[-1]["kind"], "gone", "last note")
        wait_until(lambda: not n.stepd_pid(), 30, "stepd ends by itself")
        log = n.file("state/logs/j1/a1/rank-0.log")
        equal(sorted(log.splitlines()), ["err", "no newline", "out"], "log file")
        done = n.moed.order("forget", 1, 1)
        wait_until(lambda: not os.path.exists(n.step_dir()), 10, "forgotten step directory")
        done()
        need(os.path.exists(n.dir + "/state/logs/j1/a1/rank-0.log"), "logs stay after forget")
        n.attempts.clear()


@suite.test
def agent_killed_and_back():
    with Node() as n:
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir], n=4)
        pids = {s["rank"]: s["pid"] for s in n.moed.note_list(1, 1, "started")}
        stepd = n.stepd_pid()
        for round in range(2):
            n.stop_agent(signal.SIGKILL)
            before = len(n.moed.note_list(1, 1, "sample"))
            for pid in list(pids.values()) + [stepd]:
                need(alive(pid), "pid %d died with the agent" % pid)
            n.start()
            hello = n.moed.hellos[-1]
            equal(
                [(s["job"], s["attempt"]) for s in hello["steps"]], [(1, 1)], "steps of the hello"
            )
            n.moed.wait(
                lambda: len(n.moed.note_list(1, 1, "sample")) > before + 5,
                10,
                "samples after the agent came back",
            )
        seen = [s["sample"]["iteration"] for s in n.moed.note_list(1, 1, "sample")]
        equal(seen, list(range(1, len(seen) + 1)), "iterations: none missing, none twice")
        equal(n.stepd_pid(), stepd, "stepd's pid")
        n.moed.wait(
            lambda: n.moed.progress.get((1, 1), {}).get(3, {}).get("iteration"),
            10,
            "progress of rank 3",
        )
        need(not os.path.exists(n.dir + "/duplicates"), "a rank ran twice")
        wait_equal(lambda: len(n.file("starts").splitlines()), 4, "starts")


@suite.test
def stepd_killed():
    with Node() as n:
        n.launch(
            [FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir, "--child"], n=3
        )
        pids = [s["pid"] for s in n.moed.note_list(1, 1, "started")]
        wait_until(lambda: len(children_of(n)) == 3, 10, "children")
        os.kill(n.stepd_pid(), signal.SIGKILL)
        n.moed.wait_note(1, 1, "gone")
        for pid in pids + children_of(n):
            need(not alive(pid), "pid %d lives" % pid)
        equal(n.moed.note_list(1, 1, "lost")[0]["cause"], "supervisor-lost", "cause")
        equal(
            sorted(e["rank"] for e in n.moed.note_list(1, 1, "exit")),
            [0, 1, 2],
            "exits of all ranks",
        )
        numbers = [x["n"] for x in n.moed.note_list(1, 1)]
        equal(numbers, list(range(1, len(numbers) + 1)), "note numbers")


def in_reserve(n):
    """pid of the supervisor that waits for the next step."""
    found = [
        p
        for p, cmd in processes()
        if "moe-stepd" in cmd and "--reserve" in cmd and n.step_dir(2**63 - 1, 2**63 - 1) in cmd
    ]
    return found[0] if found else None


@suite.test
def supervisor_in_reserve():
    """It becomes the step's, is found by the step's name, is replaced, is done without when it is
    dead, and never outlives its agent unused."""
    with Node() as n:
        first = wait_until(lambda: in_reserve(n), 10, "the first in reserve")
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20"])
        equal(n.stepd_pid(), first, "supervisor of the step")
        second = wait_until(lambda: in_reserve(n), 10, "the second in reserve")
        os.kill(second, signal.SIGKILL)
        wait_until(lambda: not alive(second), 10, "the second ends")
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20"], job=2)
        need(n.stepd_pid(2) not in (None, second), "job 2 has a supervisor of its own")
        n.stop_agent()
        wait_until(lambda: not in_reserve(n), 10, "none in reserve without an agent")
        equal(n.stepd_pid(), first, "supervisor of the step that runs on")


@suite.test
def stepd_and_agent_killed():
    with Node() as n:
        n.launch(
            [FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir, "--child"], n=2
        )
        pids = [s["pid"] for s in n.moed.note_list(1, 1, "started")]
        wait_until(lambda: len(children_of(n)) == 2, 10, "children")
        stepd = n.stepd_pid()
        n.stop_agent(signal.SIGKILL)
        os.kill(stepd, signal.SIGKILL)
        wait_until(lambda: not any(alive(p) for p in pids), 30, "PDEATHSIG")
        n.start()
        n.moed.wait_note(1, 1, "gone")
        for pid in children_of(n):
            need(not alive(pid), "child %d lives" % pid)
        equal(n.moed.note_list(1, 1, "lost")[0]["cause"], "supervisor-lost", "cause")


@suite.test
def stop_with_grace():
    with Node() as n:
        n.launch(
            [
                sys.executable,
                "-c",
                "import signal,sys,time\nsignal.signal(15, lambda *a: (print('saving', "
                "flush=True), time.sleep(0.3), sys.exit(7)))\nprint('up', flush=True)\n"
                "time.sleep(1000)",
            ],
            n=2,
        )
        wait_until(
            lambda: n.moed.query(1, 1, 1)["text"] == "up\n"
            and n.moed.query(1, 1, 0)["text"] == "up\n",
            20,
            "both ranks are up",
        )
        n.moed.order("stop", 1, 1, signal=15, grace_us=10000000)
        n.moed.wait_note(1, 1, "gone")
        for e in n.moed.note_list(1, 1, "exit"):
            equal((e["code"], e["cause"], e["tail"]), (7, "stopped", ["up", "saving"]), "exit")


@suite.test
def stop_ends_in_kill():
    with Node() as n:
        n.launch(
            [
                "/bin/sh",
                "-c",
                "trap '' TERM; (trap '' TERM; exec setsid sleep 1001) & echo $! > child; while :; "
                "do sleep 0.1; done",
            ],
            n=1,
        )
        wait_until(lambda: os.path.exists(n.dir + "/child") and n.file("child"), 5)
        begin = time.monotonic()
        n.moed.order("stop", 1, 1, signal=15, grace_us=500000)
        n.moed.wait_note(1, 1, "gone")
        took = time.monotonic() - begin
        need(took >= 0.5, "killed after %.3f s, before the grace ended" % took)
        equal(n.moed.note_list(1, 1, "exit")[0]["signal"], 9, "signal")
        need(not alive(int(n.file("child"))), "the child that ignores TERM lives")


@suite.test
def kill_at_once():
    with Node() as n:
        n.launch(
            [
                "/bin/sh",
                "-c",
                "trap '' TERM; (setsid sh -c \"trap '' TERM; sleep 1002 & wait\" &) ; echo up; "
                "while :; do sleep 0.1; done",
            ],
            n=4,
        )
        wait_until(lambda: n.moed.query(1, 1, 3)["text"] == "up\n", 10)
        n.moed.order("kill", 1, 1)
        n.moed.wait_note(1, 1, "gone")
        equal([e["signal"] for e in n.moed.note_list(1, 1, "exit")], [9] * 4, "signals")
        need(not [p for p in processes() if "sleep 1002" in p[1]], "children live")


@suite.test
def supervisor_told_to_end():
    with Node() as n:
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir], n=2)
        n.moed.wait(
            lambda: all(
                n.moed.progress.get((1, 1), {}).get(r, {}).get("iteration") for r in range(2)
            ),
            20,
            "both ranks iterate",
        )
        os.kill(n.stepd_pid(), signal.SIGTERM)
        n.moed.wait_note(1, 1, "gone")
        equal(
            [(e["code"], e["cause"]) for e in n.moed.note_list(1, 1, "exit")],
            [(0, "stopped")] * 2,
            "ranks got their planned stop",
        )


@suite.test
def peer_death_is_told_at_once():
    with Node(beat_ms=600000) as n:
        n.launch(SLEEP, n=4)
        victim = [s for s in n.moed.note_list(1, 1, "started") if s["rank"] == 2][0]
        os.kill(victim["pid"], signal.SIGKILL)
        exits = n.moed.wait_note(1, 1, "exit", deadline=60)  # long before the next beat
        equal(
            (exits[0]["rank"], exits[0]["signal"], exits[0]["pid"]), (2, 9, victim["pid"]), "exit"
        )


@suite.test
def controller_away():
    with Node() as n:
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir], n=2)
        n.moed.wait(lambda: len(n.moed.note_list(1, 1, "sample")) > 3, 10, "samples")
        n.moed.refuse = 500
        wait_until(lambda: len(n.file("run/steps/j1.a1/notes.1").splitlines()) > 30, 20)
        n.moed.refuse = None
        last = n.moed.note_list(1, 1)[-1]["n"]
        n.moed.wait(
            lambda: n.moed.note_list(1, 1)[-1]["n"] > last + 10, 20, "notes after the absence"
        )
        seen = [s["sample"]["iteration"] for s in n.moed.note_list(1, 1, "sample")]
        equal(seen, list(range(1, len(seen) + 1)), "iterations: none missing, none twice")


@suite.test
def hung_supervisor_is_reported_not_killed():
    with Node() as n:
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir], n=1)
        stepd = n.stepd_pid()
        os.kill(stepd, signal.SIGSTOP)
        try:
            n.stop_agent(signal.SIGKILL)
            n.start()
            n.moed.wait(
                lambda: n.moed.steps.get((1, 1), {}).get("state") == "hung", 20, "state hung"
            )
            need(alive(n.moed.note_list(1, 1, "started")[0]["pid"]), "the rank was killed")
        finally:
            os.kill(stepd, signal.SIGCONT)
        n.moed.wait(
            lambda: n.moed.steps.get((1, 1), {}).get("state") == "running",
            20,
            "state running again",
        )


@suite.test
def stale_orders():
    with Node() as n:
        n.launch(["/bin/true"], attempt=2, wait="gone")
        done = n.moed.order("forget", 1, 2)
        wait_until(lambda: not os.path.exists(n.step_dir(1, 2)), 10)
        done()
        n.attempts.clear()
        n.stop_agent(signal.SIGKILL)
        n.start()
        n.launch(SLEEP, attempt=1, wait="gone")
        equal(
            n.moed.note_list(1, 1, "refused")[0]["cause"],
            "stale",
            "an older attempt after a restart",
        )
        need(not os.path.exists(n.step_dir(1, 1)), "a refused attempt leaves no directory")
        n.attempts.clear()
        n.moed.due.clear()
        n.moed.epoch = 0
        n.launch(SLEEP, job=2, attempt=1, wait="gone")
        equal(n.moed.note_list(2, 1, "refused")[0]["cause"], "stale", "an older epoch")
        n.moed.epoch = 1
        n.attempts.clear()


@suite.test
def the_fence_is_appended_to_and_a_cut_line_never_counted():
    with Node() as n:
        for attempt in (2, 3):
            n.launch(["/bin/true"], attempt=attempt, wait="gone")
            done = n.moed.order("forget", 1, attempt)
            wait_until(lambda: not os.path.exists(n.step_dir(1, attempt)), 10)
            done()
            n.attempts.clear()
        equal(n.file("state/fence.log"), "1 2\n1 3\n", "one line a launch")
        n.stop_agent(signal.SIGKILL)
        with open(n.dir + "/state/fence.log", "a") as log:
            # the power went in the middle of a line
            log.write("1 9")
        n.start()
        equal(
            (
                n.file("state/fence.log"),
                '"attempt":3' in n.file("state/fence.json").replace(" ", ""),
            ),
            ("", True),
            "folded into fence.json",
        )
        n.launch(SLEEP, attempt=1, wait="gone")
        equal(
            n.moed.note_list(1, 1, "refused")[0]["cause"],
            "stale",
            "an attempt that only the log knew",
        )
        n.attempts.clear()
        n.moed.due.clear()
        n.launch(["/bin/true"], attempt=4, wait="gone")
        equal(n.moed.note_list(1, 4, "exit")[0]["code"], 0, "exit")


@suite.test
def other_boot():
    with Node(env={"MOE_BOOT_ID": "boot-one"}) as n:
        n.launch(["/bin/true"], wait="gone")
        n.stop_agent(signal.SIGKILL)
        n.moed.due.clear()
        n.env["MOE_BOOT_ID"] = "boot-two"
        n.start()
        equal(
            (n.moed.hellos[-1]["boot_id"], n.moed.hellos[-1]["steps"]),
            ("boot-two", []),
            "hello after a reboot",
        )
        wait_until(lambda: not os.path.exists(n.step_dir()), 10, "the old step's directory goes")
        n.attempts.clear()


@suite.test
def scan_of_checkpoints():
    layout = {
        "entry": "(?<iteration>\\d+)$",
        "subdir": None,
        "tracker": None,
        "markers": ["COMPLETE"],
        "shard": None,
        "marker_last": False,
        "announced_is_complete": True,
    }
    with Node() as n:
        ckpt = n.dir + "/ckpt"
        for name, marker in (("iter_0000010", b"{}\n"), ("iter_0000020", b"")):
            os.makedirs("%s/%s" % (ckpt, name))
            with open("%s/%s/rank_0.pt" % (ckpt, name), "wb") as f:
                f.write(b"data")
            with open("%s/%s/COMPLETE" % (ckpt, name), "wb") as f:
                f.write(marker)
        done = n.moed.order(
            "scan", 1, 1, dir=ckpt, layout=layout, level="sizes", world=1, allow_root=True
        )
        result = n.moed.wait(lambda: n.moed.scans and n.moed.scans[-1], 10, "scan result")
        equal(
            (result["job"], result["attempt"], result["error"], result["writable"]),
            (1, 1, None, True),
            "result",
        )
        equal(
            sorted((i["iteration"], i["complete"]) for i in result["items"]),
            [(10, True), (20, False)],
            "items",
        )
        done()
        # an account with uid 0 that is not called root is one too: only what the launch may, the
        # scan may
        if os.geteuid() == 0:
            n.moed.order("scan", 3, 1, dir=ckpt, layout=layout, level="sizes", world=1, user="root")
            result = n.moed.wait(
                lambda: [r for r in n.moed.scans if r["job"] == 3][-1:], 10, "scan result"
            )[0]
            need(result["error"] and "as root" in result["error"], result)
        n.moed.order(
            "scan",
            2,
            1,
            dir=n.dir + "/agent.log/x",
            layout=layout,
            level="sizes",
            world=1,
            allow_root=True,
        )
        result = n.moed.wait(
            lambda: [r for r in n.moed.scans if r["job"] == 2][-1:], 10, "scan result"
        )[0]
        need(result["error"] or not result["writable"], result)


@suite.test
def hung_scan():
    with Node(options=["scan_deadline=300ms"]) as n:
        n.stop_agent(signal.SIGTERM)
        n.own_helpers(**{"moe-ckpt": "#!/bin/sh\nexec sleep 1000\n"})
        n.start()
        n.moed.order(
            "scan",
            1,
            1,
            dir=n.dir,
            layout={"entry": "x", "markers": []},
            level="sizes",
            world=1,
            allow_root=True,
        )
        result = n.moed.wait(lambda: n.moed.scans and n.moed.scans[-1], 10, "scan result")
        need("did not finish in time" in result["error"], result)


@suite.test
def hung_discovery():
    with Node() as n:
        n.stop_agent(signal.SIGTERM)
        n.own_helpers(**{"moe-discover": "#!/bin/sh\nexec sleep 1000\n"})
        n.options.append("discover_deadline=300ms")
        n.start()
        equal(
            len(n.moed.hellos[-1]["info"]["gpus"]), 8, "GPUs that were found earlier in this boot"
        )
        n.stop_agent(signal.SIGTERM)
        os.unlink(n.dir + "/state/nodeinfo.json")
        n.start()
        equal(n.moed.hellos[-1]["info"]["gpus"], [], "GPUs of a node that could not be looked at")
        need("did not finish in time" in n.log(), n.log())


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
