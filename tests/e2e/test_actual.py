#!/usr/bin/python3
"""Plan against actual: a fake engine tells its step times; status, events and REST show the drift,
and later plans of the controller, of its helpers and of `moectl plan --anchor` follow it. Usage:
test_actual.py [TEST...]"""
import json
import os
import shutil
import signal
import socket
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
import machine  # noqa: E402
from lib import Cluster, Suite, equal, moectl, need, wait_until  # noqa: E402

WORK = tempfile.mkdtemp(prefix="moe-actual-")
suite = Suite()
# Rank 0 tells as many steps as it is given, each as long as it is given; all ranks stay until they
# are ended.
ENGINE = (
    'if [ "$RANK" = 0 ]; then i=1; while [ $i -le $1 ]; do echo "step $i/100000 loss 2.0 step_ms '
    '$2"; i=$((i+1)); sleep 0.01; done; fi; exec sleep 100000'
)


def place(name):
    return os.path.join(WORK, name)


def recipe(name, steps=0, step_ms=0.0, **more):
    doc = {
        "recipe": 1,
        "name": name,
        "engine": {
            "kind": "command",
            "argv": ["sh", "-c", ENGINE, "sh", str(steps), "%.3f" % step_ms],
        },
        "model": "deepseek-v2-lite",
        "cluster": {"gpus": 8, "gpu": "mi355x", "nic_gbps": 400},
        "batch": {"seq": 4096, "micro": 1, "global": 768},
        "precision": "bf16",
        "steps": 100000,
        "env": {"MY_TOKEN": "hush-hush"},
        "parallelism": {"ep": 8},
    }
    return doc | more


class Actual(Cluster):
    def __init__(self):
        machine.make("mi355x", place("root"), faults=[], cores=4)
        super().__init__(
            place("cluster"), nodes=1, gpus_per_node=8, extra=["--topology", place("root")]
        )

    def ask(self, method, path, doc=None):
        """Through the UNIX socket, as an admin of this machine."""
        body = json.dumps(doc).encode() if doc is not None else b""
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(os.path.join(self.dir, "moed.sock"))
        s.sendall(
            (
                "%s %s HTTP/1.1\r\nHost: moe\r\nConnection: close\r\n"
                "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                % (method, path, len(body))
            ).encode()
            + body
        )
        data = b"".join(iter(lambda: s.recv(65536), b""))
        head, _, rest = data.partition(b"\r\n\r\n")
        if b"chunked" in head.lower():
            out, left = b"", rest
            while left:
                size, _, left = left.partition(b"\r\n")
                n = int(size, 16)
                if n == 0:
                    break
                out, left = out + left[:n], left[n + 2 :]
            rest = out
        return int(head.split()[1]), json.loads(rest)

    def plan(self, doc, query=""):
        status, answer = self.ask("POST", "/v1/plan" + query, doc)
        equal(status, 200, "plan: %s" % str(answer)[:500])
        return answer["plans"][0]

    def measured(self, job):
        def there():
            plan = self.job(job)["plan"]
            return plan["within"] is not None and plan

        return wait_until(there, 60, "measured steps of %s" % job)


@suite.test
def drift_is_shown_and_calibrates(c):
    first = c.plan(recipe("first"))
    planned = first["step_time_s"]["total"]
    need(
        not any("calibrated by" in n for n in first["notes"]),
        "calibrated by nothing: %s" % first["notes"],
    )
    job = c.submit(json.dumps(recipe("slow", 200, planned * 1600)))
    need(
        "after 50 steady steps" in c.job(job)["plan"]["text"] or c.job(job)["plan"]["steps"],
        "before it is measured: %s" % c.job(job)["plan"],
    )
    plan = c.measured(job)
    need(
        abs(plan["drift"]["step_time_s"] - 0.6) < 0.01
        and abs(plan["planned"]["step_time_s"] / planned - 1) < 1e-6,
        "drift: %s" % plan,
    )
    need(
        plan["within"] is False
        and plan["steps"] >= 50
        and plan["planned"]["bubble"] == 0
        and plan["actual"]["bubble"] is None
        and plan["actual"]["memory_gb"] is None,
        "plan: %s" % plan,
    )
    text = c.run("status", job).stdout
    need("plan         step " in text and "(+60 %, beyond the " in text, "status: %s" % text)
    events = [e for e in c.json("events", job)["items"] if e["type"] == "plan.drift"]
    need(
        len(events) == 1 and "+60 %" in events[0]["message"] and events[0]["data"]["planned_s"],
        "events: %s" % events,
    )
    status, anchors = c.ask("GET", "/v1/anchors")
    need(
        status == 200
        and len(anchors["runs"]) == 1
        and anchors["runs"][0]["stack"]["job"] == job
        and "hush-hush" not in json.dumps(anchors),
        "anchors: %s" % anchors,
    )

    after = c.plan(recipe("after"))
    ratio = after["step_time_s"]["total"] / planned
    need(
        1.2 < ratio < 1.6
        and any("calibrated by 1 measured runs of this stack" in n for n in after["notes"]),
        "calibrated: x %.3f, %s" % (ratio, after["notes"]),
    )
    need(
        after["error_pct"] < first["error_pct"],
        "error of %s %% becomes %s %%" % (first["error_pct"], after["error_pct"]),
    )
    auto = c.plan(recipe("auto", parallelism="auto"))
    need(
        any("calibrated by 1 measured" in n for n in auto["notes"]), "a search: %s" % auto["notes"]
    )
    dry = c.ask("POST", "/v1/jobs?dry_run=1", recipe("dry"))[1]["plan"]["plans"][0]
    need(
        abs(dry["step_time_s"]["total"] / after["step_time_s"]["total"] - 1) < 1e-6,
        "dry run: %s" % dry["step_time_s"],
    )
    file, out = place("recipe.json"), place("anchors.json")
    with open(file, "w") as f:
        json.dump(recipe("offline"), f)
    with open(out, "w") as f:
        f.write(c.run("report", "--anchor").stdout)
    offline = json.loads(moectl("plan", file, "--anchor", out, "--json").stdout)["plans"][0]
    need(
        abs(offline["step_time_s"]["total"] / after["step_time_s"]["total"] - 1) < 1e-6,
        "offline: %s" % offline["step_time_s"],
    )
    other = c.plan(recipe("other", model="mixtral-8x22b", cluster={"gpus": 64, "gpu": "mi300x"}))
    need(not any("calibrated by" in n for n in other["notes"]), "another GPU: %s" % other["notes"])
    c.run("cancel", job)
    c.wait_state(job, "cancelled")


@suite.test
def the_next_job_is_promised_what_was_measured(c):
    """Also by a controller that was killed; a job whose sharding the planner chose is measured and
    can be planned again from what it wrote."""
    os.kill(c.status()["moed"]["pid"], signal.SIGKILL)
    c.up()
    before = c.ask("GET", "/v1/anchors")[1]
    equal(len(before["runs"]), 1, "runs after a restart")
    auto = recipe(
        "auto", 200, 0, parallelism="auto", checkpoint={"dir": place("ckpt"), "every": "auto"}
    )
    auto["batch"].pop("micro")
    promised = c.plan(auto, "?top=1")
    auto["engine"]["argv"][-1] = "%.3f" % (promised["step_time_s"]["total"] * 1050)
    job = c.submit(json.dumps(auto))
    plan = c.job(job)["plan"]
    need(
        plan["anchors"] == 1
        and abs(plan["planned"]["step_time_s"] / promised["step_time_s"]["total"] - 1) < 1e-6,
        "promise: %s" % plan,
    )
    plan = c.measured(job)
    need(
        plan["within"] is True and abs(plan["drift"]["step_time_s"] - 0.05) < 0.01,
        "plan: %s" % plan,
    )
    equal(
        [e for e in c.json("events", job)["items"] if e["type"] == "plan.drift"],
        [],
        "events inside the error bar",
    )
    runs = c.ask("GET", "/v1/anchors")[1]["runs"]
    equal(len(runs), 2, "runs")
    chosen = runs[1]["recipe"]["parallelism"]
    equal(
        {k: chosen[k] for k in ("tp", "pp", "ep", "cp", "sharding")},
        {k: promised["parallelism"][k] for k in ("tp", "pp", "ep", "cp", "sharding")},
        "sharding of the run",
    )
    need(any("calibrated by 2 measured" in n for n in c.plan(recipe("after"))["notes"]), "two runs")
    c.run("cancel", job)
    c.wait_state(job, "cancelled")


@suite.test
def a_run_far_off_calibrates_nothing(c):
    job = c.submit(json.dumps(recipe("far", 120, 5.0)))
    plan = c.measured(job)
    need(plan["within"] is False and plan["drift"]["step_time_s"] < -0.75, "plan: %s" % plan)
    equal(len(c.ask("GET", "/v1/anchors")[1]["runs"]), 2, "runs")
    c.run("cancel", job)
    c.wait_state(job, "cancelled")


def main():
    c = Actual()
    try:
        c.up()
        return suite.main(c)
    finally:
        c.down(check=False)
        shutil.rmtree(WORK, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
