#!/usr/bin/python3
"""Metrics as Debian's Prometheus takes them: pages that promtool finds nothing in, agents that are
found through the controller, alert rules and boards whose expressions know the series that there
are. Skipped by name where there is no prometheus."""
import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from canary_rig import Canaries
from lib import (
    BUILD,
    ROOT,
    Failed,
    Skipped,
    Suite,
    clean_env,
    command_recipe,
    equal,
    need,
    wait_until,
)
from rig import RANK, Rig

suite = Suite()
RULES = os.path.join(ROOT, "config/prometheus/moe.rules.yml")


def program(name):
    """Installed, or unpacked by `make deps-prometheus`."""
    found = shutil.which(name) or os.path.join(BUILD, "prometheus/usr/bin", name)
    if not os.access(found, os.X_OK):
        raise Skipped("there is no %s: run 'make deps-prometheus'" % name)
    return found


def promtool(*words, text=None):
    return subprocess.run(
        [program("promtool"), *words], input=text, capture_output=True, text=True, env=clean_env()
    )


def clean(text, whose):
    r = promtool("check", "metrics", text=text)
    equal((r.returncode, r.stdout + r.stderr), (0, ""), "promtool on the metrics of " + whose)


def page(address):
    c = http.client.HTTPConnection(address, timeout=20)
    with contextlib.closing(c):
        c.request("GET", "/metrics")
        r = c.getresponse()
        equal(r.status, 200, "GET /metrics of an agent")
        return r.read().decode()


def value(text, series):
    """Of the series that is written so; None: it is not there."""
    m = re.search(r"^%s (\S+)$" % re.escape(series), text, re.M)
    return float(m[1]) if m else None


class Scraped(Canaries):
    """Two nodes of eight made GPUs, each with a port for its metrics, and a job on some of them."""

    def __init__(self):
        super().__init__()
        self.agent_options["metrics_port"] = 0

    def up(self):
        super().up()
        truth = os.path.join(self.dir, "truth")
        os.makedirs(truth)
        argv = [RANK, "--steps", "100000", "--step-ms", "50", "--save-every", "20"]
        self.running = self.submit(
            command_recipe(
                "scraped",
                argv + ["--truth", truth],
                gpus=16,
                steps=100000,
                checkpoint={"dir": os.path.join(truth, "ckpt"), "every": 20},
            )
        )
        wait_until(lambda: self.events_of(self.running, "checkpoint.verified"), 60, "a checkpoint")

    def targets(self):
        return self.http("GET", "/v1/sd").json


@suite.test
def pages():
    """what controller and agents say is clean, complete and bounded"""
    with Scraped() as rig:
        text = rig.http("GET", "/metrics").body.decode()
        clean(text, "moed")
        job = rig.job(rig.running)["id"]
        equal(value(text, 'moe_job_state{job="%s"}' % job), 2.0, "state of the job")
        equal(value(text, 'moe_job_gpus{job="%s"}' % job), 16.0, "its GPUs")
        need(value(text, 'moe_job_checkpoint_iteration{job="%s"}' % job) >= 20, text)
        need(value(text, 'moe_job_step_seconds{job="%s",quantile="0.5"}' % job) > 0.01, text)
        ledger = rig.json("report", job)["gpu_seconds"]
        need(
            set(re.findall(r'gpu_seconds_total\{job="%s",category="(\w+)"' % job, text))
            == set(ledger) - {"total"},
            "categories of the ledger",
        )
        need("moe_gpu_" not in text and "rank=" not in text, "series of ranks on the controller")
        groups = rig.targets()
        equal(
            sorted(
                (g["labels"]["__meta_moe_node"], g["labels"]["__meta_moe_state"]) for g in groups
            ),
            [("node-0", "up"), ("node-1", "up")],
            "groups of /v1/sd",
        )
        [address] = groups[0]["targets"]
        node = groups[0]["labels"]["__meta_moe_node"]

        def read():
            seen = page(address)
            return seen if 'moe_gpu_power_watts{node="%s",gpu="7"}' % node in seen else None

        seen = wait_until(read, 60, "sensors of eight GPUs")
        clean(seen, "an agent")
        for slot, bdf in enumerate(rig.gpus):
            need(
                re.search(
                    r'^moe_gpu_assignment_info\{node="%s",gpu="%d",pci="%s",job="%s",'
                    r'rank="\d+"\} 1$' % (node, slot, bdf, job),
                    seen,
                    re.M,
                ),
                "whose GPU %d is: %s" % (slot, seen),
            )
        need('moe_rank_iteration{node="%s",job="%s",rank="' % (node, job) in seen, seen)
        # anything else is refused, whoever asks
        c = http.client.HTTPConnection(address, timeout=20)
        for method, path, status in (("GET", "/", 401), ("POST", "/metrics", 405)):
            c.request(method, path)
            r = c.getresponse()
            r.read()
            equal(r.status, status, "%s %s" % (method, path))
        c.close()


@suite.test
def a_port_that_is_taken_and_a_long_queue():
    """the node works on without metrics; whoever queues many jobs makes no scrape large"""
    with socket.create_server(("127.0.0.1", 0)) as s:
        with Rig(nodes=1, agent={"metrics_port": s.getsockname()[1]}) as rig:
            with open(os.path.join(rig.dir, "log/node-0.log")) as f:
                said = [line for line in f if "metrics_port" in line]
            equal(len(said), 1, "lines about the port: %s" % said)
            equal(rig.http("GET", "/v1/sd").json, [], "targets")
            recipe = command_recipe("waits", ["sleep", "600"], gpus=2)
            jobs = [rig.submit(recipe) for _ in range(103)]
            rig.wait_state(jobs[0], "running")
            text = rig.http("GET", "/metrics").body.decode()
            equal(value(text, "moe_jobs_left_out"), 3.0, "jobs that are left out")
            equal(len(re.findall(r"^moe_job_info\{", text, re.M)), 100, "jobs that are listed")
            need('moe_job_info{job="%s",' % rig.job(jobs[0])["id"] in text, "the one that runs")


@suite.test
def rules():
    """each alert is tested, and fires on what it is for"""
    r = promtool("check", "rules", RULES)
    equal(r.returncode, 0, r.stdout + r.stderr)
    r = promtool(
        "check", "config", "--syntax-only", os.path.join(os.path.dirname(RULES), "prometheus.yml")
    )
    equal(r.returncode, 0, r.stdout + r.stderr)
    r = promtool("test", "rules", os.path.join(ROOT, "tests/prometheus/rules_test.yml"))
    equal(r.returncode, 0, r.stdout + r.stderr)
    with open(RULES) as f, open(os.path.join(ROOT, "tests/prometheus/rules_test.yml")) as g:
        named, tested = re.findall(r"alert: (\w+)", f.read()), g.read()
    equal([n for n in named if "alertname: %s\n" % n not in tested], [], "alerts without a test")


@suite.test
def boards():
    """what is committed is what the table says"""
    sys.path.insert(0, os.path.join(ROOT, "tests/prometheus"))
    import boards as made

    equal(
        sorted(os.listdir(os.path.join(ROOT, "config/grafana"))),
        sorted(uid + ".json" for uid in made.BOARDS),
        "boards",
    )
    for uid in made.BOARDS:
        with open(os.path.join(ROOT, "config/grafana", uid + ".json")) as f:
            equal(f.read(), made.text(uid), uid + ": make it anew with tests/prometheus/boards.py")


def expressions():
    """{where: expression} of alerts and boards; the variables of a board mean everything."""
    import yaml

    found = {}
    with open(RULES) as f:
        for group in yaml.safe_load(f)["groups"]:
            found.update(("alert " + r["alert"], r["expr"]) for r in group["rules"])
    for path in glob.glob(os.path.join(ROOT, "config/grafana/*.json")):
        with open(path) as f:
            board = json.load(f)
        for panel in board["panels"]:
            for i, target in enumerate(panel.get("targets", [])):
                where = "%s, %s, %d" % (board["title"], panel["title"], i)
                found[where] = re.sub(r"\$(job|node)\b", ".*", target["expr"]).replace(
                    "$__rate_interval", "1m"
                )
    return found


@contextlib.contextmanager
def prometheus(rig):
    """A real one that scrapes this cluster as config/prometheus/prometheus.yml would."""
    dir = tempfile.mkdtemp(prefix="moe-prometheus-")
    moed = urllib.parse.urlsplit(open(os.path.join(rig.state_dir, "address")).read().strip()).netloc
    token = os.path.join(rig.tokens, "admin.token")
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [RULES],
        "scrape_configs": [
            {
                "job_name": "moed",
                "honor_labels": True,
                "authorization": {"credentials_file": token},
                "static_configs": [{"targets": [moed]}],
            },
            {
                "job_name": "moe-agent",
                "honor_labels": True,
                "http_sd_configs": [
                    {
                        "url": "http://%s/v1/sd" % moed,
                        "refresh_interval": "1s",
                        "authorization": {"type": "Bearer", "credentials_file": token},
                    }
                ],
            },
        ],
    }
    with open(os.path.join(dir, "prometheus.yml"), "w") as f:
        json.dump(config, f)
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    with open(os.path.join(dir, "log"), "w") as log:
        p = subprocess.Popen(
            [
                program("prometheus"),
                "--config.file=" + os.path.join(dir, "prometheus.yml"),
                "--storage.tsdb.path=" + os.path.join(dir, "data"),
                "--web.listen-address=127.0.0.1:%d" % port,
            ],
            stdout=log,
            stderr=log,
            env=clean_env(),
        )

    def ask(expr):
        c = http.client.HTTPConnection("127.0.0.1:%d" % port, timeout=20)
        with contextlib.closing(c):
            c.request("GET", "/api/v1/query?" + urllib.parse.urlencode({"query": expr}))
            answer = json.loads(c.getresponse().read())
        if answer["status"] != "success":
            raise Failed("%s: %s" % (expr, answer["error"]))
        return answer["data"]["result"]

    try:
        yield ask
    finally:
        p.terminate()
        p.wait()
        shutil.rmtree(dir, ignore_errors=True)


@suite.test
def scraped():
    """a real Prometheus finds controller and agents; what rules and boards name exists"""
    program("prometheus")
    with Scraped() as rig, prometheus(rig) as ask:
        wait_until(
            lambda: sorted(r["metric"]["job"] for r in ask("up == 1"))
            == ["moe-agent", "moe-agent", "moed"],
            60,
            "three targets that are up",
        )
        wait_until(lambda: ask("moe_gpu_power_watts"), 60, "sensors")
        names = {m["metric"]["__name__"] for m in ask('{__name__=~"moe_.+|process_.+"}')}
        told = set(re.findall(r"^# TYPE (\S+)", rig.http("GET", "/metrics").body.decode(), re.M))
        for group in rig.targets():
            told |= set(re.findall(r"^# TYPE (\S+)", page(group["targets"][0]), re.M))
        for where, expr in expressions().items():
            for name in re.findall(r"\b(?:moe|process)_\w+", expr):
                base = re.sub(r"_(bucket|sum|count)$", "", name)
                need(base in told or name in told, "%s: nobody tells %s" % (where, name))
            if where.startswith("alert"):
                ask(expr)
        boards = {w: e for w, e in expressions().items() if not w.startswith("alert")}
        need(boards, "no board")
        for where, expr in boards.items():
            # what is there only while something is wrong has no data here
            if not re.search(
                r"straggler|slower|moe_node_state|check_state|moe_nic|ecc|vram|mfu|flops|tokens|"
                r"throttle|replay",
                expr,
            ):
                wait_until(lambda: ask(expr), 60, "data of %s: %s" % (where, expr))
        need("moe_job_iteration" in names, names)


sys.exit(1 if suite.main() else 0)
