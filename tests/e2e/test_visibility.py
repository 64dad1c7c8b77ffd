"""Who sees what of a job: with visibility: owner logs, environment, arguments and lines of output
are for its owner and operators; names, states and numbers for everybody. What looks like a
credential is shown to nobody. Ranks of system accounts are refused."""
import json
import os
import subprocess
import sys

from controller import RECIPE as RECIPE_JSON, FakeAgent, Moed, Stream
from lib import Skipped, Suite, command_recipe, equal, need, wait_until
from rig import RANK, Rig

suite = Suite()
SAYS = "RuntimeError: the reactor is lost"
SECRETS = ("s3cr3t", "t0ken-of-ada", "h00k")
RECIPE = dict(
    env={
        "PROXY": "http://ada:s3cr3t@proxy:3128",
        "TEAMS_WEBHOOK": "https://hooks/h00k",
        "GIT_CREDENTIAL": "t0ken-of-ada",
        "WORD": "harmless",
    }
)
ARGV = [
    "/bin/sh",
    "-c",
    "echo %s >&2; exit 3" % SAYS,
    "--hub-token",
    "t0ken-of-ada",
    "--data=s3://me:s3cr3t@bucket/x",
]


class World:
    def __init__(self, **moed):
        self.rig = Rig(nodes=1, moed=moed)

    def __enter__(self):
        rig = self.rig
        rig.up()
        self.tokens = {
            u: rig.json("token", "create", "--role", role, "--user", u)["token"]
            for u, role in (
                ("root", "admin"),
                ("ada", "user"),
                ("eve", "user"),
                ("vic", "viewer"),
                ("oda", "operator"),
            )
        }
        self.stream = Stream(self, token=self.tokens["eve"])
        self.owner = "root" if os.geteuid() == 0 else "ada"
        a = self.ask(
            self.owner,
            "POST",
            "/v1/jobs",
            command_recipe("secretive", ARGV, **RECIPE),
            content_type="application/yaml",
        )
        equal(a.status, 201, "submit: %s" % a.body)
        self.job = a.json["id"]
        rig.wait_state(self.job, "failed", 30)
        return self

    def __exit__(self, *exc):
        self.stream.connection.sock and self.stream.connection.sock.close()
        self.rig.down(check=exc[0] is None)

    # for Stream
    def connect(self, timeout):
        import http.client

        return http.client.HTTPConnection("127.0.0.1", self.rig.port, timeout=timeout)

    def ask(self, user, method, path, body=None, **headers):
        return self.rig.http(method, path, body, token=self.tokens[user], tcp=True, **headers)

    def get(self, user, path):
        return self.ask(user, "GET", path)


def seen_by(w, user):
    """What a caller learns: (status of logs, status of env, all documents as one text)."""
    job = "/v1/jobs/" + w.job
    logs, env = w.get(user, job + "/logs"), w.get(user, job + "/env")
    text = ""
    for path in (
        job,
        "/v1/jobs",
        job + "/why",
        job + "/report",
        job + "/events",
        "/v1/events",
        job + "/ranks",
        job + "/bind",
        "/v1/anchors",
        job + "/metrics",
    ):
        a = w.get(user, path)
        need(a.status in (200, 409), "%s as %s: %d %s" % (path, user, a.status, a.body[:200]))
        text += a.body.decode()
    for a in (logs, env):
        text += a.body.decode() if a.status == 200 and a is env else ""
    return logs.status, env.status, text


@suite.test
def others_see_names_states_and_numbers():
    with World() as w:
        for user in ("eve", "vic"):
            logs, env, text = seen_by(w, user)
            equal((logs, env), (403, 403), "logs and env as %s" % user)
            equal(w.get(user, "/v1/jobs/%s/records" % w.job).status, 403, "records as %s" % user)
            need(
                "reactor" not in text,
                lambda: "%s reads a line of output: %s"
                % (user, text[max(0, text.index("reactor") - 300) : text.index("reactor") + 60]),
            )
            need(
                '"secretive"' in text and '"failed"' in text and "ended with exit code 3" in text,
                "names and states: %s" % text[:500],
            )
            detail = w.get(user, "/v1/jobs/%s/logs" % w.job).detail
            need(w.owner in detail and "visibility" in detail, detail)
            equal(
                w.get(user, "/v1/jobs/%s/report?anchor=1" % w.job).status,
                403,
                "the anchor's arguments",
            )
        for user in (w.owner, "oda"):
            logs, env, text = seen_by(w, user)
            equal((logs, env), (200, 200), "logs and env as %s" % user)
            need("reactor" in text, "%s reads what it said" % user)
        refused = [e for e in w.rig.json("events")["items"] if e["type"] == "audit.refused"]
        need(any("eve" in e["message"] and "/logs" in e["message"] for e in refused), refused)
        # a stream of somebody else's events
        wait_until(
            lambda: any(e["data"]["type"] == "job.failed" for e in w.stream.events),
            10,
            "the stream tells of the end",
        )
        failed = [e["data"] for e in w.stream.events if e["data"]["type"] == "job.failed"][0]
        need("reactor" not in json.dumps(failed) and failed["data"]["to"] == "failed", failed)


@suite.test
def a_refusal_names_no_program_of_another():
    with World() as w:
        a = w.ask(
            w.owner,
            "POST",
            "/v1/jobs",
            command_recipe("gone", ["/opt/of-ada/secret-program"]),
            content_type="application/yaml",
        )
        w.job = a.json["id"]
        w.rig.wait_state(w.job, "failed", 30)
        for user in ("eve", "vic"):
            text = seen_by(w, user)[2]
            need(
                "secret-program" not in text,
                "%s sees: %s" % (user, text[max(text.find("secret-program") - 200, 0) :][:300]),
            )
            need("refused the launch" in text, "%s sees that it was refused" % user)
        for user in (w.owner, "oda"):
            text = seen_by(w, user)[2]
            need(text.count("secret-program") >= 3, "%s does not see it: %s" % (user, text[-500:]))
        need(not [e for e in w.stream.events if "secret-program" in json.dumps(e)], "eve's stream")


CALL = """
import http.client, os, socket, sys
os.setgroups([]); os.setgid(1); os.setuid(1)
c = http.client.HTTPConnection("localhost")
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect(sys.argv[1])
c.request("POST", "/v1/jobs", sys.argv[2], {"Content-Type": "application/json"})
r = c.getresponse()
print(r.status, r.read().decode())
"""


@suite.test
def a_system_account_is_refused_at_the_submit_where_all_nodes_say_so():
    if os.geteuid() != 0:
        raise Skipped("only root can be another account")
    with Moed() as m:
        os.chmod(m.dir, 0o711)
        os.chmod(m.options["unix_socket"], 0o666)

        def submit():
            r = subprocess.run(
                [sys.executable, "-c", CALL, m.options["unix_socket"], RECIPE_JSON],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            return r.stdout

        need(submit().startswith("201 "), "no node has said anything: %s" % submit())
        a, b = FakeAgent(m, "n1"), FakeAgent(m, "n2")
        equal(a.hello(min_uid=1000).status, 200, "hello")
        text = submit()
        need(
            text.startswith("403 ")
            and "'daemon' is a system account here (uid 1, below min_uid 1000" in text,
            text,
        )
        equal(m.submit(unix=True, token=None).status, 201, "root, as before")
        equal(b.hello().status, 200, "an agent that does not say")
        need(submit().startswith("201 "), "left to the node: %s" % submit())
        equal(b.hello(min_uid=1, instance="i2").status, 200, "hello")
        equal(b.sync(instance="i2").status, 200, "its first word")
        text = submit()
        need(text.startswith("403 ") and "may not log in here" in text, text)
        m.stop()
        m.start()
        os.chmod(m.options["unix_socket"], 0o666)
        need(submit().startswith("403 "), "after a restart")


@suite.test
def what_looks_like_a_credential_is_shown_to_nobody():
    with World() as w:
        for user in (w.owner, "oda", "eve"):
            _, _, text = seen_by(w, user)
            for secret in SECRETS:
                need(
                    secret not in text,
                    lambda: "%s sees %s: %s"
                    % (
                        user,
                        secret,
                        text[max(0, text.index(secret) - 200) : text.index(secret) + 50],
                    ),
                )
        dry = w.ask(
            w.owner,
            "POST",
            "/v1/jobs?dry_run=1",
            command_recipe("dry", ARGV, **RECIPE),
            content_type="application/yaml",
        )
        equal(dry.status, 200, "dry run")
        text = dry.body.decode()
        need(not any(s in text for s in SECRETS), text)
        rank = dry.json["ranks"][0]
        equal(rank["argv"][3:], ["--hub-token", "***", "--data=s3://me:***@bucket/x"], "argv")
        env = {
            i["name"]: i["value"] for i in w.get(w.owner, "/v1/jobs/%s/env" % w.job).json["items"]
        }
        equal(
            [env[k] for k in ("PROXY", "TEAMS_WEBHOOK", "GIT_CREDENTIAL", "WORD")],
            ["http://ada:***@proxy:3128", "***", "***", "harmless"],
            "env",
        )
        # a measured run, as plans are calibrated by
        line = "exec %s --truth %s --steps 8 --step-ms 5" % (RANK, w.rig.dir)
        a = w.ask(
            w.owner,
            "POST",
            "/v1/jobs",
            command_recipe(
                "run",
                ["/bin/sh", "-c", line, "x", "--hub-token", "t0ken-of-ada"],
                steps=8,
                **RECIPE,
            ),
            content_type="application/yaml",
        )
        w.rig.wait_state(a.json["id"], "completed", 30)
        a = w.get(w.owner, "/v1/jobs/%s/report?anchor=1" % a.json["id"])
        need(
            a.status == 200
            and "***" in a.body.decode()
            and not any(s in a.body.decode() for s in SECRETS),
            a.body,
        )
        # the ranks themselves have what was asked for
        equal(
            w.rig.run(
                "submit",
                "-",
                "--watch",
                stdin=command_recipe(
                    "has",
                    [
                        "/bin/sh",
                        "-c",
                        "test $GIT_CREDENTIAL = t0ken-of-ada && test $PROXY = "
                        "http://ada:s3cr3t@proxy:3128",
                    ],
                    **RECIPE,
                ),
            ).returncode,
            0,
            "what ranks get",
        )


@suite.test
def all_see_all_where_the_site_says_so():
    with World(visibility="all") as w:
        logs, env, text = seen_by(w, "vic")
        equal((logs, env), (200, 200), "logs and env")
        need("reactor" in text, "what it said")
        need(not any(s in text for s in SECRETS), "credentials are masked all the same")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
