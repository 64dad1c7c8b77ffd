#!/usr/bin/python3
"""What a page asks for, of a real cluster: the curve of a run with a restart, its ranks as a
matrix, progress beside events, and answers that need not travel twice. Usage: test_seen.py
[TEST...]"""
import gzip
import http.client
import json
import os
import re
import select
import shutil
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, Cluster, Suite, command_recipe, equal, need, wait_until  # noqa: E402
from schemas import Watch  # noqa: E402

WORK = tempfile.mkdtemp(prefix="moe-seen-")
RANK = os.path.join(BUILD, "tests/fake/rank")
suite = Suite()
test = suite.test


class Seen(Cluster):
    """A job of 4 ranks that lost one at iteration 30, went on from 20, and trains."""

    def up(self):
        super().up()
        status = self.status()
        self.host = status["tcp_url"].partition("//")[2].strip("/")
        with open(status["token_file"]) as f:
            self.token = f.read().strip()
        Watch.learn(lambda: self.ask("/openapi.json")[2])
        argv = [RANK, "--steps", "100000", "--step-ms", "40", "--save-every", "20"]
        self.train = self.submit(
            command_recipe(
                "train",
                argv + ["--exit", "30:134:1"],
                gpus=4,
                steps=100000,
                checkpoint={"dir": os.path.join(WORK, "ckpt"), "every": 20},
            )
        )
        wait_until(
            lambda: self.job(self.train)["attempt"] == 2
            and (self.job(self.train)["iteration"] or 0) > 60,
            60,
            "the second attempt",
        )

    def connect(self):
        return http.client.HTTPConnection(self.host, timeout=30)

    def ask(self, path, **headers):
        """(status, headers, document) of a GET."""
        c = self.connect()
        c.request("GET", path, headers={"Authorization": "Bearer " + self.token} | headers)
        r = c.getresponse()
        body = r.read()
        told = {k.lower(): v for k, v in r.getheaders()}
        if told.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        r.body, r.headers = body, told
        Watch.show("GET", path, r)
        json_body = told.get("content-type", "").startswith("application/json")
        return r.status, told, json.loads(body) if body and json_body else body

    def curve(self, query):
        return self.ask("/v1/jobs/%s/metrics?%s" % (self.train, query))[2]


@test
def a_curve_has_all_attempts(c):
    v = c.curve("points=10")
    need(v["decimated"] and 10 <= len(v["iteration"]) <= 14, "buckets: %s" % v["iteration"])
    equal([a["attempt"] for a in v["attempts"]], [1, 2], "attempts")
    first = v["attempts"][0]
    need(first["counted"] == 20 and first["last"] >= 25, "the first attempt: %s" % first)
    need(20 in v["iteration"], "no bucket has what counts and what does not: %s" % v["iteration"])
    for s in v["series"]:
        for k in ("last", "min", "max"):
            equal(len(s[k]), len(v["iteration"]), "%s of %s" % (k, s["name"]))
    equal([s["name"] for s in v["series"]][:1], ["loss"], "series")
    only = c.curve("points=2000&names=step_ms")
    equal([s["name"] for s in only["series"]], ["step_ms"], "what was asked for")
    need(not only["decimated"] and "min" not in only["series"][0], "every sample")


@test
def what_is_newer_travels_alone(c):
    v = c.curve("points=2000&names=loss")
    place = v["next"]
    wait_until(lambda: c.curve("points=2000&after=" + place)["iteration"], 20, "newer ones")
    newer = c.curve("points=2000&names=loss&after=" + place)
    both = v["iteration"] + newer["iteration"]
    whole = c.curve("points=2000&names=loss")
    equal(whole["iteration"][: len(both)], both, "neither gap nor repetition")


@test
def incidents_have_their_evidence_and_parts(c):
    path = "/v1/jobs/%s/incidents" % c.train
    one = c.ask(path)[2]["items"]
    equal(one, c.ask("/v1/jobs/%s/report" % c.train)[2]["incidents"], "the report's")
    equal([(i["attempt"], i["first_rank"]) for i in one], [(1, 1)], "who failed first")
    need(one[0]["evidence"] and one[0]["cause"] and one[0]["action"], one)
    need(one[0]["waterfall_ms"]["launch"] is not None, "parts of the restart: %s" % one)
    equal(c.ask(path + "?after=0&limit=1")[2]["items"], one, "behind none")
    equal(c.ask(path + "?after=1")[2]["items"], [], "behind it")
    equal(c.ask(path + "?last=1&limit=1")[2]["earlier"], 0, "how many stand before the newest")


@test
def a_window_is_a_part_of_the_ledger(c):
    path = "/v1/jobs/%s/ledger" % c.train
    whole, hour = c.ask(path)[2], c.ask(path + "?window=1h")[2]
    report = c.ask("/v1/jobs/%s/report" % c.train)[2]
    for doc in (whole, hour):
        seconds = doc["gpu_seconds"]
        parts = sum(v for k, v in seconds.items() if k not in ("total", "queue"))
        need(abs(parts - seconds["total"]) < 1e-6, "it closes: %s" % seconds)
    equal(whole["from"], c.ask("/v1/jobs/%s" % c.train)[2]["created_at"], "from the submit")
    need(
        whole["gpu_seconds"]["total"] <= report["gpu_seconds"]["total"], "the report's, or earlier"
    )
    for bad in ("", "0", "soon", "-1h", "99999999d"):
        status, _, doc = c.ask(path + "?window=" + bad)
        need(status == 400 and b"such as 30m, 1h or 7d" in doc, (bad, status, doc))
    text = c.run("report", c.train, "--window", "1h").stdout
    need("GPU time" in text and "productive" in text and "incident" not in text, text)
    need(text.startswith("%s  from 20" % c.train), text)
    need("gpu_seconds,,total," in c.run("report", c.train, "--window", "1h", "--csv").stdout, "csv")
    equal(set(c.json("report", c.train, "--window", "1h")), set(whole), "the route's document")
    for words, why in (("soon",), "such as 30m"), (("1h", "--md"), "exclude each other"):
        r = c.run("report", c.train, "--window", *words, check=False)
        need(r.returncode == 2 or "400" not in r.stderr, r.stderr)
        need(r.returncode and why in r.stderr and r.stderr.count("\n") == 1, r.stderr)


@test
def the_topology_has_every_rank(c):
    path = "/v1/cluster/topology"
    nodes, after = [], ""
    while after is not None:
        page = c.ask(path + "?limit=1" + (after and "&after=" + after))[2]
        equal(len(page["items"]), 1, "items of a page")
        nodes, after = nodes + page["items"], page["next"]
    equal(nodes, c.ask(path)[2]["items"], "page by page")
    told = {
        (n["name"], g["slot"]): g["rank"] for n in nodes for g in n["gpus"] if g["job"] == c.train
    }
    ranks = c.ask("/v1/jobs/%s/ranks" % c.train)[2]["items"]
    equal(told, {(k["node"], k["gpu"]): k["rank"] for k in ranks}, "ranks and their GPUs")
    for n in nodes:
        equal(n["state"], "up", n["name"])
        need({g["numa_node"] for g in n["gpus"]} <= {m["id"] for m in n["numa"]}, n)
    equal(c.ask(path + "?after=zzz")[2], {"items": [], "next": None}, "behind all")


@test
def a_bundle_has_what_a_report_needs_and_no_secret(c):
    """Planted in the environment, in words, in what a rank prints and dies of."""
    script = (
        "echo WANDB_API_KEY=hush3 https://ada:hush4@git.site/x; echo rank here;"
        " echo RuntimeError: --api-key=hush5 >&2; exit 3"
    )
    job = c.submit(
        command_recipe(
            "leaky", ["/bin/sh", "-c", script, "--api-key", "hush1"], env={"HF_TOKEN": "hush2"}
        )
    )
    c.wait_state(job, "failed")
    file = os.path.join(WORK, "leaky.tar")
    r = c.run("debug", "bundle", job, "--out", file)
    equal(r.stdout, "", "what goes to stdout")
    need("credentials are ***" in r.stderr, r.stderr)
    equal(os.stat(file).st_mode & 0o777, 0o600, "who may read it")
    with open(file, "rb") as f:
        need(b"hush" not in f.read(), "a secret is in the bundle")
    with tarfile.open(file) as tar:
        docs = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
    for name, text in docs.items():
        need(not name.endswith(".json") or json.loads(text) is not None, name)
    equal(json.loads(docs["job.json"])["state"], "failed", "the job")
    need(json.loads(docs["records.json"])["items"], "records")
    need(b"rank here" in docs["log-of-rank-0.txt"], docs["log-of-rank-0.txt"])
    need(b"config.json: not here: 409 " in docs["bundle.txt"], docs["bundle.txt"])
    names = "job why report ranks events checkpoints metrics env bind records nodes drift cluster"
    equal({n + ".json" for n in names.split()} - set(docs), set(), "what is not in it")
    again = c.run("debug", "bundle", job, "--out", file, check=False)
    equal((again.returncode, "is there already" in again.stderr), (1, True), again.stderr)
    for words, code in ((["j-999"], 5), ([], 2), ([job, "--json"], 2), ([job, "-o", "/proc/x"], 1)):
        r = c.run("debug", "bundle", *words, check=False)
        equal((r.returncode, len(r.stderr.splitlines())), (code, 1), "%s: %s" % (words, r.stderr))


@test
def a_report_can_be_pasted_into_an_issue(c):
    """Markdown with what the routes say, and none of what looks like a credential."""
    text = c.run("report", c.train, "--md").stdout
    job = c.job(c.train)
    report = c.json("report", c.train)
    need(text.startswith("| job | %s (train), by %s |\n|--|--|\n" % (c.train, job["user"])), text)
    need("| attempts | 2, 1 of them after failures |" in text, text)
    one = report["incidents"][0]
    need(
        "## Incidents: 1\n\n### 1. %s, first rank 1 on %s" % (one["class"], one["node"]) in text,
        text,
    )
    need("```text\n%s\n```" % "\n".join(one["evidence"]) in text, text)
    for name in ("productive", "launch", "total"):
        need(re.search(r"\n\| %s \| [\d.]+ \| [\d.]+ %% \|\n" % name, text), text)
    saved = re.findall(r"\n\| (\d+) \| (?:complete|verified) \| .* \|", text)
    need(0 < len(saved) <= 10 and saved == sorted(saved, key=int), "checkpoints: %s" % text)
    script = "echo RuntimeError: HF_TOKEN=hush8 is refused >&2; exit 3"
    leaky = c.submit(command_recipe("told", ["/bin/sh", "-c", script]))
    c.wait_state(leaky, "failed")
    text = c.run("report", leaky, "--md").stdout
    need("HF_TOKEN=***" in text and "hush8" not in text, text)
    for words in (["--csv"], ["--anchor"], ["--json"]):
        r = c.run("report", leaky, "--md", *words, check=False)
        equal((r.returncode, len(r.stderr.splitlines())), (2, 1), "%s: %s" % (words, r.stderr))


@test
def a_matrix_has_every_rank(c):
    path = "/v1/jobs/%s/matrix" % c.train
    v = c.ask(path + "?metric=doing")[2]
    equal(len(v["letters"]), 4, "a letter each")
    legend = {k["letter"]: k["name"] for k in v["legend"]}
    need(legend[v["letters"][0]] in ("stepping", "saving"), "what rank 0 does: %s" % v)
    equal(c.ask(path)[2]["letters"], "rrrr", "states, without a metric")
    v = c.ask(path + "?metric=iteration")[2]
    need(v["values"][0] > 20 and v["ranks"] == 4 and v["next"] is None, "iterations: %s" % v)
    v = c.ask(path + "?metric=state&limit=3")[2]
    equal((v["letters"], v["next"]), ("rrr", 2), "the first page")
    equal(c.ask(path + "?metric=state&after=2")[2]["letters"], "r", "the second one")


@test
def progress_comes_beside_events(c):
    s = c.connect()
    s.request(
        "GET",
        "/v1/events?follow=1&last=1&progress=" + c.train,
        headers={"Authorization": "Bearer " + c.token},
    )
    r, seen, events, kind = s.getresponse(), [], 0, None
    while len(seen) < 3:
        key, _, value = r.readline().decode().rstrip("\n").partition(": ")
        if key == "event":
            kind = value
        elif key == "id":
            events += 1
            need(kind is None, "progress has no id: it is not resumed")
        elif key == "data" and kind == "progress":
            seen.append(json.loads(value))
        elif not key:
            kind = None
    s.close()
    need(events >= 1, "the event before it came too")
    equal({(p["job"], p["state"], p["attempt"]) for p in seen}, {(c.train, "running", 2)}, "of it")
    need(seen[0]["iteration"] < seen[1]["iteration"] < seen[2]["iteration"], "it moves: %s" % seen)
    equal(seen[2]["sample"]["iteration"], seen[2]["iteration"], "with the newest sample")
    equal(c.ask("/v1/events?follow=1&progress=7")[0], 400, "no id")
    equal(c.ask("/v1/events?progress=" + c.train)[0], 400, "without a stream")


@test
def who_comes_and_goes_takes_nobodys_progress(c):
    def follow():
        s = c.connect()
        s.request(
            "GET",
            "/v1/events?follow=1&progress=" + c.train,
            headers={"Authorization": "Bearer " + c.token},
        )
        return s, s.getresponse()

    first, r = follow()
    seen, others, end = 0, [], time.monotonic() + 20
    while seen < 4 and time.monotonic() < end:
        others.append(follow())  # several a second, as pages that are loaded again and again
        while select.select([r.fp.raw._sock], [], [], 0.2)[0] and seen < 4:
            while (line := r.readline()).strip():
                seen += line == b"event: progress\n"
        for s, _ in others[:-4]:
            s.close()
        del others[:-4]
    for s in [first] + [s for s, _ in others]:
        s.close()
    equal(seen, 4, "how often it was told how far the job is, in twenty seconds")


@test
def of_a_job_that_does_not_move_it_comes_once(c):
    job = c.submit(command_recipe("short", ["/bin/true"]))
    c.wait_state(job, "completed")
    s = http.client.HTTPConnection(c.host, timeout=2.5)
    s.request(
        "GET",
        "/v1/jobs/%s/events?follow=1&progress=%s" % (job, job),
        headers={"Authorization": "Bearer " + c.token},
    )
    r, seen = s.getresponse(), 0
    try:
        while seen < 2 and (line := r.readline()):
            seen += line.startswith(b"event: progress")
    except TimeoutError:
        pass
    s.close()
    equal(seen, 1, "of a job that ended")


@test
def what_one_has_does_not_travel(c):
    for path in ("/", "/app.js", "/v1/nodes/node-1/topology", "/v1/jobs/%s/checkpoints" % c.train):
        status, told, body = c.ask(path, **{"Accept-Encoding": "gzip"})
        equal(status, 200, path)
        if len(body) > 2000 and not isinstance(body, dict):
            equal(told.get("content-encoding"), "gzip", path)
            plain = c.ask(path)
            equal((plain[1].get("content-encoding"), plain[2]), (None, body), "the same, plain")
    status, told, body = c.ask("/app.js")
    again = c.ask("/app.js", **{"If-None-Match": told["etag"]})
    equal((again[0], again[2]), (304, b""), "one has it")
    equal(c.ask("/app.js", **{"If-None-Match": '"x"'})[0], 200, "another one")
    path = "/v1/jobs/%s" % c.train
    tag = c.ask(path)[1]["etag"]
    wait_until(
        lambda: c.ask(path, **{"If-None-Match": tag})[0] == 200, 20, "a job that moves has changed"
    )


def main():
    c = Seen(os.path.join(WORK, "cluster"), nodes=2, gpus_per_node=3)
    try:
        c.up()
        return suite.main(c)
    finally:
        c.down(check=False)
        shutil.rmtree(WORK, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
