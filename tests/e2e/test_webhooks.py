#!/usr/bin/python3
"""Events posted to receivers of the site: what they get, that it is signed and comes once and in
order, and that one which is slow, away or hostile harms nothing. Usage: test_webhooks.py
[TEST...]"""
import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import MOED, RECIPE, Moed  # noqa: E402
from lib import PATIENCE, Suite, clean_env, equal, moectl, need, wait_until  # noqa: E402
from rig import processes_with  # noqa: E402

SECRET = "a-secret-of-the-test"
WORK = tempfile.mkdtemp(prefix="moe-webhooks-")
suite = Suite()


class Receiver(ThreadingHTTPServer):
    """Keeps what it gets. answer(n) -> status of the n-th request, or a function that is given the
    handler."""

    daemon_threads = True

    def __init__(self, answer=lambda n: 200, port=0):
        self.got, self.answer = [], answer

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.server.got.append((self.path, dict(self.headers), body))
                status = self.server.answer(len(self.server.got) - 1)
                if callable(status):
                    status(self)
                    return
                self.send_response(status)
                self.send_header("Location", "http://127.0.0.1:%d/other" % self.server.server_port)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", port), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def documents(self):
        return [json.loads(body) for _, _, body in self.got]

    def events(self):
        return [e for d in self.documents() for e in d["events"]]

    def stop(self):
        self.shutdown()
        self.server_close()


def hook(name, port, **more):
    return dict({"name": name, "url": "http://127.0.0.1:%d/T0/hush" % port}, **more)


def write_file(path, *hooks):
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as f:
        json.dump({"webhooks": hooks}, f)


def controller(*hooks):
    path = os.path.join(tempfile.mkdtemp(dir=WORK), "webhooks.yaml")
    write_file(path, *hooks)
    return Moed(webhooks=path)


def submit(m, name="train"):
    a = m.ask("POST", "/v1/jobs", dict(json.loads(RECIPE), name=name))
    equal(a.status, 201, "submit: %s" % a.body)
    return a.json["id"]


def shown(m, i=0):
    return m.get("/v1/webhooks")["items"][i]


def log_of(m):
    with open(os.path.join(m.dir, "log")) as f:
        return f.read()


@suite.test
def what_is_asked_for_comes_signed_and_once():
    r = Receiver()
    one = hook("one", r.server_port, secret=SECRET, types=["job.submitted"], jobs=["train*"])
    with controller(one) as m:
        jobs = [submit(m), submit(m, "train-2")]
        submit(m, "eval")
        last = submit(m, "train-3")
        wait_until(lambda: r.events() and r.events()[-1]["job"] == last, 20, "the last event")
        time.sleep(1.5)  # beyond the pace of deliveries: nothing comes twice
        equal([e["job"] for e in r.events()], jobs + [last], "jobs whose events came")
        kept = {e["seq"]: e for e in m.get("/v1/events?limit=1000")["items"]}
        for e in r.events():
            equal(e, kept[e["seq"]], "an event that came")
        for path, headers, body in r.got:
            equal(path, "/T0/hush", "path")
            stamp = headers["X-Moe-Timestamp"]
            need(abs(time.time() - int(stamp)) < 600, "timestamp %s" % stamp)
            mac = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, hashlib.sha256)
            equal(headers["X-Moe-Signature"], "v1=" + mac.hexdigest(), "signature")
        for d in r.documents():
            equal((d["webhook"], d["missed"]), ("one", 0), "what stands beside the events")
        view = shown(m)
        equal((view["delivered"], view["failed"], view["waiting"]), (len(r.got), 0, 0), "counts")
        metrics = m.ask("GET", "/metrics").body.decode()
        line = 'moe_webhook_deliveries_total{result="delivered"} %d' % len(r.got)
        need(line in metrics, "no line %s" % line)
    r.stop()


@suite.test
def one_that_fails_is_tried_again_and_misses_nothing():
    """500, a redirect (which nobody follows), an answer that is no HTTP, then well."""

    def garbage(handler):
        handler.wfile.write(b"\0\1\2 nonsense\r\n\r\n")

    bad = [500, 302, garbage]
    r = Receiver(lambda n: bad[n] if n < len(bad) else 204)
    with controller(hook("one", r.server_port, types=["job.submitted"])) as m:
        first = submit(m)
        wait_until(lambda: shown(m)["failed"] == 1, 20, "the first try")
        view = shown(m)
        equal(view["deliveries"][-1]["status"], 500, "what it was answered")
        equal((view["failures"], view["waiting"]), (1, 1), "what it waits for")
        need(view["due_at"], "no time of the next try")
        second = submit(m)
        wait_until(lambda: shown(m)["delivered"] == 1, 60, "the delivery")
        view = shown(m)
        equal([d["status"] for d in view["deliveries"]], [500, 302, None, 204], "answers")
        need(view["deliveries"][2].get("error"), "it does not say why there was no answer")
        equal([p for p, _, _ in r.got], ["/T0/hush"] * 4, "nobody followed the redirect")
        equal([e["job"] for e in r.documents()[-1]["events"]], [first, second], "the last one")
        equal(log_of(m).count("webhook one"), 2, "lines of the log: it fails, it is well again")
    r.stop()


@suite.test
def what_is_refused_keeps_nothing_back():
    r = Receiver(lambda n: 400 if n == 0 else 200)
    with controller(hook("one", r.server_port, types=["job.submitted"])) as m:
        submit(m)
        wait_until(lambda: shown(m)["refused"] == 1, 20, "the refusal")
        second = submit(m)
        wait_until(lambda: shown(m)["delivered"] == 1, 20, "the next one")
        equal([e["job"] for e in r.documents()[-1]["events"]], [second], "what came behind it")
    r.stop()


@suite.test
def a_dead_and_a_slow_one_harm_nobody():
    """One port that nobody listens on, one that takes connections and says nothing, one that sends
    its answer for ever: the third one and all requests are served meanwhile, with a helper each."""
    silent = socket.create_server(("127.0.0.1", 0))
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()

    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            pass

    r, flood = Receiver(), Receiver(lambda n: endless)
    hooks = [
        hook("dead", port),
        hook("silent", silent.getsockname()[1]),
        hook("flood", flood.server_port),
        hook("well", r.server_port),
    ]
    with controller(*hooks) as m:
        begin = time.monotonic()
        for _ in range(20):
            submit(m)
        wait_until(lambda: len({e["job"] for e in r.events()} - {None}) == 20, 20, "all events")
        wait_until(lambda: shown(m, 0)["failed"] >= 1, 20, "the dead one")
        wait_until(lambda: shown(m, 2)["delivered"] >= 1, 20, "the endless answer")
        need("onnect" in shown(m, 0)["deliveries"][0]["error"], shown(m, 0)["deliveries"][0])
        took = max(timed(lambda: m.get("/v1/jobs")) for _ in range(50))
        need(took < 1 * PATIENCE, "a request took %.3f s" % took)
        wait_until(lambda: shown(m, 1)["failed"] >= 1, 30, "the silent one")
        need(shown(m, 1)["deliveries"][0]["ms"] >= 9000, "the silent one was not waited for")
        need(time.monotonic() - begin < 60 * PATIENCE, "it took too long")
    equal(processes_with(m.dir), [], "processes that are left")
    for s in (r, flood):
        s.stop()
    silent.close()


def timed(fn):
    begin = time.monotonic()
    fn()
    return time.monotonic() - begin


@suite.test
def a_kill_of_moed_loses_nothing():
    """What happened while the receiver was away comes after the next start, and what had come does
    not come again."""
    r = Receiver()
    port = r.server_port
    with controller(hook("one", port, types=["job.submitted"])) as m:
        first = submit(m)
        wait_until(lambda: shown(m)["delivered"] == 1, 20, "the first one")
        r.stop()
        missed = submit(m)
        wait_until(lambda: shown(m)["failed"] >= 1, 20, "a try that fails")
        m.stop(signal.SIGKILL)
        again = Receiver(port=port)
        m.start()
        wait_until(lambda: again.got, 20, "the delivery of the next controller")
        equal([e["job"] for e in r.events()], [first], "before")
        equal([e["job"] for e in again.events()], [missed], "after")
        again.stop()


@suite.test
def lines_for_chats_are_plain():
    """Words of a rank or a job's name are no mark-up, link or call of people, and fit."""
    text, content = Receiver(), Receiver()
    kinds = {"types": ["job.submitted"]}
    with controller(
        hook("slack", text.server_port, format="text", **kinds),
        hook("discord", content.server_port, format="content", **kinds),
    ) as m:
        for _ in range(60):
            submit(m)
        wait_until(lambda: shown(m, 0)["waiting"] == 0 and text.got, 30, "all of them")
        wait_until(lambda: shown(m, 1)["waiting"] == 0 and content.got, 30, "all of them")
        for d in text.documents():
            equal(list(d), ["text"], "keys for Slack")
            need(d["text"].startswith("job.submitted: j-") and "train: " in d["text"], d)
        for d in content.documents():
            equal(d["allowed_mentions"], {"parse": []}, "who may be called")
            need(len(d["content"]) <= 2000, "%d characters" % len(d["content"]))
        need(any(" more" in d["content"] for d in content.documents()), "nothing was cut")
    text.stop()
    content.stop()


@suite.test
def a_test_says_what_came_of_it():
    r = Receiver(lambda n: 200 if n == 0 else 503)
    with controller(hook("one", r.server_port, secret=SECRET, types=["job.failed"])) as m:
        a = m.ask("POST", "/v1/webhooks/one/test")
        equal((a.status, a.json["result"], a.json["test"]), (200, "delivered", True), "the test")
        equal(r.events()[0]["type"], "webhook.test", "what came")
        a = m.ask("POST", "/v1/webhooks/one/test")
        equal((a.json["result"], a.json["status"]), ("failed", 503), "one that fails")
        equal(shown(m)["failures"], 0, "a test changes nothing for events")
        a = m.ask("POST", "/v1/webhooks/two/test")
        equal(a.status, 404, "of one that is not there")
        for role, status in (("operator", 403), ("viewer", 403)):
            token = m.token(role)["token"]
            equal(m.ask("POST", "/v1/webhooks/one/test", token=token).status, status, role)
        token = m.token("viewer")["token"]
        equal(m.ask("GET", "/v1/webhooks", token=token).status, 403, "the list, for a viewer")
        env = clean_env(MOE_URL="unix:" + m.options["unix_socket"])
        said = moectl("webhooks", "test", "one", env=env, check=False)
        equal(said.returncode, 1, "exit status of a test that fails")
        need("answered 503" in said.stderr, said.stderr)
        said = moectl("webhooks", env=env).stdout
        need("http://127.0.0.1:%d" % r.server_port in said and "one" in said, said)
        # neither the secret nor the path of the URL is anywhere
        for what in (said, m.ask("GET", "/v1/webhooks").body.decode(), log_of(m)):
            need(SECRET not in what and "hush" not in what, what)
    r.stop()


@suite.test
def a_reload_reads_the_file_anew():
    """A repaired receiver gets what waited, at once; one that stays misses and repeats nothing; a
    new one begins with what happens then; a wrong file changes nothing."""
    away, stays, new = Receiver(lambda n: 503), Receiver(), Receiver()
    types = {"types": ["job.submitted"]}
    one, two = hook("one", away.server_port, **types), hook("two", stays.server_port, **types)
    with controller(one, two) as m:
        path = m.options["webhooks"]

        def reload(said):
            before = log_of(m).count(said)
            os.kill(m.process.pid, signal.SIGHUP)
            wait_until(lambda: log_of(m).count(said) > before, PATIENCE, said)

        jobs = [submit(m, "train-0")]
        wait_until(lambda: shown(m)["failed"] and shown(m, 1)["delivered"], PATIENCE, "both tried")
        write_file(path, one, {"name": "two", "url": "ftp://example.com"})
        reload("those of before are sent events")
        equal([w["name"] for w in m.get("/v1/webhooks")["items"]], ["one", "two"], "as before")
        three = hook("three", new.server_port, **types)
        write_file(path, hook("one", stays.server_port, **types), two, three)
        reload("3 webhooks are sent events")
        wait_until(lambda: shown(m)["delivered"], PATIENCE, "what waited goes to the new place")
        equal(shown(m)["failed"], 1, "it goes on where it was")
        equal(shown(m, 1)["delivered"], 1, "and so does who stays")
        jobs.append(submit(m, "train-1"))
        wait_until(lambda: new.events(), PATIENCE, "the new one")
        equal([e["job"] for e in new.events()], jobs[1:], "what happened since")
        wait_until(lambda: len(stays.events()) >= 4, PATIENCE, "one and two")
        equal(sorted(e["job"] for e in stays.events()), sorted(jobs * 2), "each once")
        write_file(path, three)
        reload("1 webhooks are sent events")
        equal([w["name"] for w in m.get("/v1/webhooks")["items"]], ["three"], "who is left")
        env = clean_env(MOE_URL="unix:" + m.options["unix_socket"])
        offered = moectl("complete", "--", "webhooks", "test", "", env=env).stdout
        equal(offered.split("\t")[0], "three", "what shells complete")
        submitted = [
            line
            for line in m.ask("GET", "/metrics").body.decode().splitlines()
            if line.startswith("moe_webhook") and "failed" in line
        ]
        need(submitted and submitted[0].endswith(" 1"), "a counter never falls: %s" % submitted)
    for r in (away, stays, new):
        r.stop()


@suite.test
def a_wrong_file_stops_nothing_and_is_said():
    path = os.path.join(WORK, "wrong.yaml")
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
        f.write("webhooks:\n- name: one\n  url: https://example.com/hush\n  types: [job.faild]\n")
    with Moed(webhooks=path) as m:
        equal(m.get("/v1/webhooks")["items"], [], "webhooks of a wrong file")
        said = log_of(m)
        need("%s:4:" % path in said and "job.failed" in said and "hush" not in said, said)
    os.chmod(path, 0o644)
    r = subprocess.run(
        [MOED, "--config", "/dev/null", "--set", "webhooks=" + path, "--check-config"],
        env=clean_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    need(r.returncode == 1 and path in r.stderr and r.stderr.count("\n") == 1, r.stderr)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
