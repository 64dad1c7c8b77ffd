#!/usr/bin/python3
"""What keeps a step or an agent from starting, and how it is reported: ports, programs, users,
homes, environment files, spool, logs, configuration. And how long a start takes."""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, PATIENCE, ROOT, Skipped, Suite, equal, need, wait_until
from node_rig import FAKE_RANK, PORT, SLEEP, Node, alive

suite = Suite()


@suite.test
def log_that_cannot_be_opened():
    with Node() as n:
        log = n.dir + "/state/logs/j1/a1/rank-1.log"
        os.makedirs(log)
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20"], n=2, wait="refused")
        note = n.moed.note_list(1, 1, "refused")[0]
        equal((note["rank"], note["cause"]), (1, "exec"), "rank and cause")
        need(log in note["text"], note["text"])
        wait_until(lambda: not n.stepd_pid(), 10, "the supervisor ends")


@suite.test
def busy_port():
    with Node() as n:
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", PORT[0] + 4 + 2))
        s.listen(1)
        n.launch(SLEEP, wait="refused")
        r = n.moed.note_list(1, 1, "refused")[0]
        equal(r["cause"], "port-busy", "cause")
        need(str(PORT[0] + 2) in r["text"], r["text"])
        n.moed.wait_note(1, 1, "gone")
        s.close()
        # a rank can listen on the port that was held for it
        code = (
            "import os,socket\ns=socket.socket()\n"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
            "s.bind(('', int(os.environ['MASTER_PORT'])))\ns.listen(1)\n"
            "print('listening', flush=True)"
        )
        n.launch([sys.executable, "-c", code], attempt=2, wait="gone")
        equal(n.moed.note_list(1, 2, "exit")[0].get("code"), 0, "exit of the listener")


@suite.test
def ports_of_another_cluster():
    """Agents of two clusters on one host: a port is one step's until it is gone, also when nobody
    listens there; then it can be had at once."""
    with Node() as a, Node() as b:
        port = a.launch(SLEEP)
        for other in (port, port - 3, port + 3):
            b.launch(SLEEP, attempt=len(b.attempts) + 1, master_port=other, wait="refused")
            refused = b.moed.note_list(1, len(b.attempts), "refused")[0]
            equal(refused["cause"], "port-busy", "cause")
            need("port %d " % max(port, other) in refused["text"], refused["text"])
        os.kill(a.stepd_pid(), signal.SIGKILL)
        a.moed.wait_note(1, 1, "gone", deadline=20)
        b.launch(SLEEP, attempt=len(b.attempts) + 1, master_port=port)
        b.moed.order("kill", 1, len(b.attempts))
        b.moed.wait_note(1, len(b.attempts), "gone")
        a.launch(SLEEP, attempt=2, master_port=port)
        PORT[0] += 8


@suite.test
def exec_failures():
    with Node() as n:
        n.launch(["/no/such/program"], n=2, wait="refused")
        r = n.moed.note_list(1, 1, "refused")[0]
        equal((r["cause"], r["code"]), ("exec", 2), "cause, errno")
        need("/no/such/program" in r["text"] and "n0" in r["text"], r["text"])
        n.moed.wait_note(1, 1, "gone")
        n.launch(SLEEP, attempt=2, workdir="/no/such/dir", wait="refused")
        equal(n.moed.note_list(1, 2, "refused")[0]["cause"], "workdir", "cause")
        n.moed.wait_note(1, 2, "gone")
        n.launch(["nonesuch-program"], attempt=3, wait="refused")
        equal(n.moed.note_list(1, 3, "refused")[0]["cause"], "exec", "cause")
        n.launch(["echo-me"], attempt=4, env=[("PATH", n.dir + "/bin:/bin")], wait="refused")
        os.mkdir(n.dir + "/bin")
        with open(n.dir + "/bin/echo-me", "w") as f:
            f.write("#!/bin/sh\necho $0 found\n")
        os.chmod(n.dir + "/bin/echo-me", 0o755)
        n.launch(["echo-me"], attempt=5, env=[("PATH", n.dir + "/bin:/bin")], wait="gone")
        equal(
            n.moed.note_list(1, 5, "exit")[0]["tail"],
            [n.dir + "/bin/echo-me found"],
            "program of the rank's own PATH",
        )
        n.launch(
            SLEEP,
            attempt=6,
            env=[],
            bind={
                "cpu": "numa",
                "memory": "preferred",
                "nic": "nearest",
                "smt": "auto",
                "verify": "strict",
                "reserve_cores": 0,
            },
            gpus=[77],
            wait="refused",
        )
        equal(n.moed.note_list(1, 6, "refused")[0]["cause"], "bind", "cause")


@suite.test
def bad_users():
    with Node(options=["allow_root=false"] if os.geteuid() == 0 else []) as n:
        n.launch(SLEEP, user="nonesuch-user", wait="refused")
        r = n.moed.note_list(1, 1, "refused")[0]
        equal(r["cause"], "user", "cause")
        need("nonesuch-user" in r["text"], r["text"])
        if os.geteuid() == 0:
            n.launch(SLEEP, attempt=2, wait="refused")
            r = n.moed.note_list(1, 2, "refused")[0]
            equal(r["cause"], "user", "cause")
            need("allow_root" in r["text"], r["text"])
    if os.geteuid() != 0:
        return
    with Node() as n:
        n.launch(SLEEP, allow_root=False, wait="refused")
        r = n.moed.note_list(1, 1, "refused")[0]
        need("as root" in r["text"], "a job that may not runs as root: %s" % r["text"])
        # system accounts: by number, and by a shell that nobody logs in with
        for attempt, user, words in ((2, "daemon", "below min_uid 1000"), (3, "nobody", "nologin")):
            n.launch(SLEEP, attempt=attempt, user=user, allow_root=False, wait="refused")
            r = n.moed.note_list(1, attempt, "refused")[0]
            equal(r["cause"], "user", "cause")
            need(words in r["text"] and user in r["text"], r["text"])
        n.moed.order(
            "scan",
            9,
            1,
            dir=n.dir,
            layout={"entry": "x", "markers": []},
            level="sizes",
            world=1,
            user="daemon",
            allow_root=False,
        )
        result = n.moed.wait(lambda: n.moed.scans and n.moed.scans[-1], 10, "scan result")
        need("system account" in result["error"], "a scan as a system account: %s" % result)
        image = {"image": "oci:/nowhere", "user": "daemon", "auth_file": n.dir + "/none"}
        n.moed.order("image", 1, None, image=image)
        report = n.moed.wait(
            lambda: [i for i in n.moed.images if i.get("error")], 10, "report of an image"
        )[0]
        need("'daemon' is a system account" in report["error"], "an image as such: %s" % report)
        equal(report["refused"], True, "it will be refused again")
    with Node(options=["min_uid=0"]) as n:
        os.chmod(n.dir, 0o777)
        n.launch(["/usr/bin/id", "-un"], user="daemon", allow_root=False, wait="gone")
        equal(n.moed.note_list(1, 1, "exit")[0]["tail"], ["daemon"], "where the site says so")


@suite.test
def another_user():
    if os.geteuid() != 0:
        raise Skipped("only root can start ranks of others")
    with Node() as n:
        for path in (n.dir,):
            os.chmod(path, 0o777)
        n.launch(
            [
                "/bin/sh",
                "-c",
                "id -u; id -G; echo $HOME $USER; touch $TORCHELASTIC_ERROR_FILE && echo wrote; ls "
                "-d %s/run/steps/* 2>&1 | head -1; cat %s/launch.json 2>&1; "
                "python3 -c 'import socket,os; s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); "
                "s.sendto(b\"ITERATION=5\\nLOSS=1.5\", os.environ[\"MOE_NOTIFY_SOCKET\"])' && "
                "echo notified" % (n.dir, n.step_dir()),
            ],
            user="daemon",
            env=[("PATH", "/usr/bin:/bin")],
            wait="gone",
        )
        tail = n.moed.note_list(1, 1, "exit")[0]["tail"]
        equal(tail[0], "1", "uid")
        need("daemon" in tail[2] and "wrote" in tail and "notified" in tail, tail)
        need(
            sum("Permission denied" in t or "cannot access" in t for t in tail) >= 1,
            "launch.json must not be readable: %s" % tail,
        )
        equal(
            [s["sample"]["iteration"] for s in n.moed.note_list(1, 1, "sample")],
            [5],
            "iteration by notify",
        )


@suite.test
def a_user_without_home_begins_in_the_root():
    if os.geteuid() != 0:
        raise Skipped("only root can start ranks of others")
    with Node() as n:
        n.launch(
            ["/bin/pwd"], user="nobody", workdir=None, env=[("PATH", "/usr/bin:/bin")], wait="gone"
        )
        equal(
            n.moed.note_list(1, 1, "exit")[0]["tail"],
            ["/"],
            "directory of nobody, whose home is /nonexistent",
        )


@suite.test
def env_from_file():
    with Node() as n:
        with open(n.dir + "/secret", "w") as f:
            f.write("s3cr3t\n")
        item = {
            "name": "API_KEY",
            "value": None,
            "file": n.dir + "/secret",
            "reason": "r",
            "source": "s",
            "overrides": None,
            "layer": "recipe",
        }
        n.launch(["/bin/sh", "-c", "echo [$API_KEY]"], items=[item], wait="gone")
        equal(n.moed.note_list(1, 1, "exit")[0]["tail"], ["[s3cr3t]"], "value read on the node")
        need(
            "s3cr3t" not in json.dumps(n.moed.hellos) and "s3cr3t" not in n.log(),
            "the value must stay on the node",
        )
        n.launch(SLEEP, attempt=2, items=[dict(item, file=n.dir + "/missing")], wait="refused")
        r = n.moed.note_list(1, 2, "refused")[0]
        need("API_KEY" in r["text"] and "missing" in r["text"], r["text"])
        os.mkfifo(n.dir + "/fifo")
        n.launch(SLEEP, attempt=3, items=[dict(item, file=n.dir + "/fifo")], wait="refused")
        need(
            "/fifo on n0 is no plain file: name one that holds the value"
            in n.moed.note_list(1, 3, "refused")[0]["text"],
            n.moed.note_list(1, 3, "refused"),
        )


def while_it_is_read(n, attempt, **order):
    """Orders that while moe-config hangs. None: the supervisor had given moe-config up before the
    order came, and the rank was started; else the texts of its gone note."""
    path = "%s/asked.%d" % (n.dir, attempt)
    n.launch(SLEEP, attempt=attempt, config="primus", env=[("ASKED", path)], wait=None)
    wait_until(lambda: os.path.exists(path), 30, "moe-config is asked")
    done = n.moed.order(job=1, attempt=attempt, **order)
    gone = n.moed.wait_note(1, attempt, "gone", deadline=60)
    done()
    return None if n.moed.note_list(1, attempt, "started") else [g["text"] for g in gone]


@suite.test
def nothing_waits_for_a_configuration_that_is_read():
    """A stop with any grace and a kill are obeyed before moe-config's own deadline: no rank was
    started yet. On a machine so slow that the order comes behind it nothing is shown, and it is
    tried again."""
    with Node() as n:
        n.stop_agent()
        n.own_helpers(**{"moe-config": "#!/bin/sh\n: >$ASKED\nexec sleep 1000\n"})
        n.start()
        attempt = 0
        for order in ({"kind": "stop", "signal": 15, "grace_us": 3600000000}, {"kind": "kill"}):
            for _ in range(3):
                attempt += 1
                texts = while_it_is_read(n, attempt, **order)
                if texts:
                    break
            equal(texts, ["no rank was started"], "%s while moe-config hangs" % order["kind"])


@suite.test
def nothing_waits_for_a_file_that_is_read():
    """A variable's file lies on a file system that does not answer: a stop and a kill are obeyed
    meanwhile, also before engine.prepare, which gets the variable too; without an order it is
    refused by its name."""
    with Node() as n:
        n.stop_agent()
        n.own_helpers(
            **{
                "moe-stepd": "#!/bin/sh\nLD_PRELOAD=%s exec %s \"$@\"\n"
                % (
                    os.path.abspath(BUILD + "/tests/fake/preload/hangs.so"),
                    os.path.abspath(BUILD + "/moe-stepd"),
                )
            }
        )
        n.start()
        for name in ("good", "dead.hangs"):
            with open(n.dir + "/" + name, "w") as f:
                f.write("value\n")
        asked = n.dir + "/dead.hangs.asked"
        items = [
            {
                "name": name.upper(),
                "value": None,
                "file": n.dir + "/" + file,
                "reason": "r",
                "source": "s",
                "overrides": None,
                "layer": "recipe",
            }
            for name, file in (("a", "good"), ("b", "dead.hangs"))
        ]
        orders = ({"kind": "stop", "signal": 15, "grace_us": 3600000000}, {"kind": "kill"})
        for attempt, (order, prepare) in enumerate(
            [(o, p) for o in orders for p in ([], ["/bin/true"])], 1
        ):
            n.launch(SLEEP, attempt=attempt, items=items, prepare=prepare, wait=None)
            wait_until(lambda: os.path.exists(asked), 30, "the file is read")
            done = n.moed.order(job=1, attempt=attempt, **order)
            gone = n.moed.wait_note(1, attempt, "gone", deadline=60)
            done()
            equal(
                n.moed.note_list(1, attempt, "refused"),
                [],
                "%s with prepare %s: given up before the order came" % (order["kind"], prepare),
            )
            equal(
                [g["text"] for g in gone],
                ["no rank was started"],
                "%s with prepare %s" % (order["kind"], prepare),
            )
            os.unlink(asked)
        n.launch(SLEEP, attempt=9, items=items, wait="refused", deadline=60)
        need(
            "env.B: file %s/dead.hangs on n0 was not read within 10 s" % n.dir
            in n.moed.note_list(1, 9, "refused")[0]["text"],
            n.moed.note_list(1, 9, "refused"),
        )
        n.launch(
            ["/bin/sh", "-c", "echo [$A]"],
            attempt=10,
            items=items[:1],
            prepare=["/bin/sh", "-c", "echo prepared $A"],
            wait="gone",
        )
        equal(n.moed.note_list(1, 10, "exit")[0]["tail"], ["[value]"], "after all of it")


@suite.test
def unwritable_spool():
    if os.geteuid() == 0:
        raise Skipped("permissions do not stop root")
    with Node() as n:
        os.chmod(n.dir + "/run/steps", 0o500)
        n.launch(SLEEP, wait="refused")
        equal(n.moed.note_list(1, 1, "refused")[0]["cause"], "spool", "cause")
        os.chmod(n.dir + "/run/steps", 0o700)


def agent_error(*args):
    r = subprocess.run(
        [os.path.join(BUILD, "moe-agent")] + list(args),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 20,
    )
    return r.returncode, r.stdout, r.stderr


@suite.test
def configuration():
    with tempfile.TemporaryDirectory() as d:
        path = d + "/agent.yaml"

        def check(text):
            with open(path, "w") as f:
                f.write(text)
            return agent_error("--config", path, "--check-config")

        equal(
            check(
                "---\n# a comment\nnode: 'n1'   # the name\ncontroller: \"https://h:7070\"\n"
                "log_bytes: 1M\n"
            )[0],
            0,
            "a good file",
        )
        code, _, err = check("node: n1\nlog_byte: 5\n")
        equal(
            (code, err),
            (2, "moe-agent: %s:2:1: unknown key 'log_byte'; did you mean 'log_bytes'?\n" % path),
            "unknown key",
        )
        code, _, err = check("node: n1\nnode: n2\n")
        need(code == 2 and "2:1: duplicate key" in err, err)
        code, _, err = check("gpus: many\n")
        need(code == 2 and "1:7: gpus: 'many' is not a whole number" in err, err)
        code, _, err = check("gpus:\n  a: 1\n")
        need(code == 2 and "2:3: a key must begin in column 1" in err, err)
        code, _, err = check("controller: ftp://x\n")
        need(code == 2 and "controller: 'ftp://x'" in err, err)
        code, _, err = agent_error("--config", d + "/missing.yaml")
        need(code != 0 and "missing.yaml" in err, err)
        need("moe-agent" in agent_error("--version")[1], "version")
        equal(
            agent_error("--example-config")[1],
            open(ROOT + "/config/agent.yaml").read(),
            "config/agent.yaml is what --example-config prints",
        )


@suite.test
def files_that_were_cut():
    """A full disk or a lost power leaves any part of a file: what protects is refused by name, what
    can be made anew is, and the ranks of a step live on whatever is missing of its own files."""
    with Node() as n:
        n.launch(SLEEP)
        rank = n.moed.note_list(1, 1, "started")[0]["pid"]
        step, state = n.step_dir() + "/", n.dir + "/state/"
        files = (
            step + "launch.json",
            step + "notes.1",
            state + "health.json",
            state + "nodeinfo.json",
        )
        for path in files:
            wait_until(lambda: os.path.exists(path), 20, path)
        n.stop_agent()
        for path in files:
            with open(path, "rb") as f:
                whole = f.read()
            borders = [i + d for i, c in enumerate(whole) if c == 10 for d in (0, 1)]
            for cut in sorted(
                {0, 1, len(whole) - 1}
                | {len(whole) * i // 64 for i in range(64)}
                | set(borders[:8])
            ):
                with open(path, "wb") as f:
                    f.write(whole[:cut])
                n.start()
                steps = [(s["job"], s["attempt"]) for s in n.moed.hellos[-1]["steps"]]
                equal(steps, [(1, 1)], "steps of the agent with %d bytes of %s" % (cut, path))
                need(alive(rank), "the rank ended with %d bytes of %s" % (cut, path))
                n.stop_agent()
                with open(path, "wb") as f:
                    f.write(whole)
        with open(state + "fence.json", "rb") as f:
            whole = f.read()
        args, env = n.command()
        for cut in range(len(whole)):
            with open(state + "fence.json", "wb") as f:
                f.write(whole[:cut])
            r = subprocess.run(
                args,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE * 60,
            )
            need(r.returncode == 1 or r.returncode == 2, "status %d: %s" % (r.returncode, r.stdout))
            need("fence.json" in r.stdout and "stale commands: restore it" in r.stdout, r.stdout)
        with open(state + "fence.json", "wb") as f:
            f.write(whole)
        n.start()
        need(alive(rank), "the rank")


@suite.test
def one_agent_per_directory():
    with Node() as n:
        code, _, err = agent_error(
            "--config",
            "/dev/null",
            "--set",
            "controller=unix:" + n.dir + "/moed.sock",
            "--set",
            "node=n1",
            "--set",
            "state_dir=" + n.dir + "/state2",
            "--set",
            "runtime_dir=" + n.dir + "/run",
        )
        need(code == 1 and "belongs to another agent" in err, err)


@suite.test
def long_runtime_path():
    with Node(options=[]) as n:
        n.stop_agent(signal.SIGTERM)
        deep = n.dir + "/" + "d" * 100
        n.options.append("runtime_dir=" + deep)
        n.start()
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20"], n=1)
        n.moed.wait(
            lambda: len(n.moed.note_list(1, 1, "sample")) > 3,
            10,
            "samples through the notify socket",
        )


@suite.test
def launch_to_main():
    """Prints how long it takes from the command to 8 ranks in main(); asserts nothing about
    time."""
    figures = []
    with Node() as n:
        for attempt in range(1, 12):
            stamps = n.dir + "/stamps-%d" % attempt
            n.launch(
                [os.path.join(BUILD, "tests/fake/tiny"), stamps],
                n=8,
                attempt=attempt,
                wait="running",
            )
            lines = wait_until(
                lambda: n.file(stamps).splitlines()
                if len(n.file(stamps).splitlines()) == 8
                else None,
                10,
            )
            figures.append(
                max(int(line.split()[3]) for line in lines) / 1e6 - n.launched_wall * 1000
            )
            n.moed.order("kill", 1, attempt)
            n.moed.wait_note(1, attempt, "gone")
            n.moed.due.clear()
    print(
        "     command -> 8 ranks in main(): median %.1f ms, min %.1f, max %.1f"
        % (sorted(figures)[len(figures) // 2], min(figures), max(figures))
    )


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
