#!/usr/bin/python3
"""moectl image: images are brought before a job needs them, seen, and removed where nobody uses
them, by real controllers, agents and moe-image."""
import base64
import fcntl
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Suite, equal, need, wait_until
from registry_rig import Registry
from test_pulls import World

suite = Suite()


class Site(World):
    def image_of(self, *words, code=0):
        p = self.run("image", *words, check=False)
        equal(p.returncode, code, "image %s: %s" % (" ".join(words), p.stderr))
        return p

    def listed(self, *nodes):
        return self.json("image", "list", *nodes)

    def stored(self):
        return {(i["node"], i["digest"]): i for i in self.listed()["items"]}

    def name(self):
        return self.first["digest"].replace(":", "-")


@suite.test
def brought_before_a_job_and_removed():
    w = Site()
    with w, Registry(w.layout, w.first) as r:
        image = r.host + "/n/a/me:v1"
        done = w.json("image", "pull", image, "--wait")
        equal([n["state"] for n in done["nodes"]], ["ready", "ready"], "the nodes")
        equal(done["digest"], w.first["digest"], "digest")
        equal([e["type"] for e in events(w)], ["image.pulling", "image.ready"], "events")
        for i in range(2):
            wait_until(lambda: w.images(i) == [w.name()], 10, "only the image is left")
        have = w.stored()
        equal(sorted(n for n, _ in have), ["node-0", "node-1"], "who has it")
        for i in have.values():
            equal((i["names"], i["in_use"], i["user"], i["jobs"]), ([image], False, None, []), "it")
            need(i["bytes"] > 1000 and i["used_at"], "bytes and time of %s" % i)
        # the job finds it
        blobs = len(r.paths("blobs"))
        job = w.submit(w.recipe(image), "--set", "engine.args=[--wait]")
        wait_until(lambda: len(w.said()) == 4, 30, "all ranks run")
        equal(len(r.paths("blobs")), blobs, "nothing was fetched again")
        # what a step holds stays
        p = w.image_of("rm", image, code=1)
        need("stays: it is in use by " + job in p.stderr, p.stderr)
        equal(w.images(0) + w.images(1), [w.name()] * 2, "all of it is there")
        for i in w.stored().values():
            equal((i["in_use"], i["jobs"]), (True, [job]), "who uses it")
        w.run("cancel", job, "--now")
        w.wait_state(job, "cancelled")
        wait_until(lambda: not w.stored()[("node-1", w.first["digest"])]["in_use"], 20, "free")
        w.image_of("rm", w.first["digest"], "--nodes", "node-1")
        equal((w.images(0), w.images(1)), ([w.name()], []), "one node")
        w.image_of("rm", image)
        equal(w.images(0), [], "both")
        need("no node has it" in w.image_of("rm", image, code=5).stderr, "nowhere")
        need("audit.images_removed" in w.run("events").stdout, "audit")
        # a job that needs what went brings it again
        job = w.submit(w.recipe(image), "--set", "checkpoint.dir=%s/ckpt2" % w.dir)
        equal(w.wait_state(job, ["completed", "failed"])["state"], "completed", w.reason(job))


def events(w):
    return [e for e in w.json("events")["items"] if e["type"] in KINDS]


KINDS = ("image.pulling", "image.ready", "image.failed")


@suite.test
def what_somebody_locks_stays():
    """Whoever he is: a job of another controller, or a person."""
    w = Site(nodes=1)
    with w:
        w.image_of("pull", "oci:%s/shared:v1" % w.dir, "--wait")
        path = "%s/state/node-0/images/shared/%s" % (w.dir, w.name())
        fd = os.open(path, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_SH)
        p = w.image_of("rm", w.first["digest"], code=1)
        need("it is in use" in p.stderr, p.stderr)
        os.close(fd)
        w.image_of("rm", w.first["digest"])
        need(not os.path.exists(path), "it is gone")


@suite.test
def what_a_job_waits_for_stays():
    """The other node still fetches: nobody has locked it yet."""
    w = Site(moed={"pull_parallel": 1})
    with w, Registry(w.layout, w.first) as r:
        image = r.host + "/n/a/me:v1"
        w.image_of("pull", image, "--nodes", "node-0", "--wait")
        r.silent.set()
        job = w.submit(w.recipe(image + "@" + w.first["digest"]))
        wait_until(lambda: " GB on node-1" in w.reason(job), 30, w.reason(job))
        (i,) = w.listed("node-0")["items"]
        equal((i["in_use"], i["jobs"]), (False, [job]), "who is about to")
        p = w.image_of("rm", w.first["digest"], "--nodes", "node-0", code=1)
        need("in use by " + job in p.stderr, p.stderr)
        equal(w.images(0), [w.name()], "it is there")
        r.silent.clear()
        r.end.set()
        equal(w.wait_state(job, ["completed", "failed"])["state"], "completed", w.reason(job))


@suite.test
def few_at_once_and_a_restart():
    """Within pull_parallel; a start of the controller ends the order, and what came stays."""
    w = Site(moed={"pull_parallel": 1})
    with w, Registry(w.layout, w.first) as r:
        r.silent.set()
        pull = w.json("image", "pull", r.host + "/n/a/me:v1")

        def states():
            return [
                n["state"] for n in w.http("GET", "/v1/images/pull/%d" % pull["id"]).json["nodes"]
            ]

        wait_until(lambda: w.pulling(), 30, "one pulls")
        w.quiet(1, lambda: sorted(states()) == ["bringing", "waiting"], "one node pulls")
        need(" bringing " in w.image_of("list").stdout, "the list shows it")
        w.kill(w.moed)
        w.start_moed()
        wait_until(lambda: not w.pulling(), 30, "nobody pulls any more")
        equal(w.http("GET", "/v1/images/pull/%d" % pull["id"]).status, 404, "it is forgotten")
        r.silent.clear()
        r.end.set()
        done = w.json("image", "pull", r.host + "/n/a/me:v1", "--wait")
        equal([n["state"] for n in done["nodes"]], ["ready", "ready"], "asked again")


@suite.test
def what_fails_is_told_by_node():
    w = Site(moed={"suspect_ms": 2500, "down_ms": 5000})
    with w, Registry(w.layout, w.first) as r:
        p = w.image_of("pull", r.host + "/n/a/me:none", "--wait", code=1)
        need("failed" in p.stdout and "has no n/a/me none" in p.stdout, p.stdout)
        equal([e["type"] for e in events(w)], ["image.pulling", "image.failed"], "events")
        for words, said in (
            (("pull", "dir:/x"), "nothing is brought"),
            (("pull", "docker:x"), "nothing is brought"),
            (("pull", "oci:x"), "must begin with /"),
            (("pull", "a b"), "image"),
            (("pull", "x", "--auth", "rel"), "auth: must be the whole path"),
            (("rm", ""), "image: must be"),
        ):
            p = w.image_of(*words, code=2)
            need(said in p.stderr and p.stderr.count("\n") == 1, p.stderr)
        for words in (
            ("pull", "x", "--nodes", "none"),
            ("rm", "x", "--nodes", "none"),
            ("list", "none"),
        ):
            need("no such node" in w.image_of(*words, code=5).stderr, str(words))
        w.kill(w.agents["node-1"])
        wait_until(lambda: w.json("node", "node-1")["state"] == "down", 40, "it is down")
        p = w.image_of("list", code=1)
        need("node node-1: it is down" in p.stderr, p.stderr)


@suite.test
def who_may():
    w = Site(nodes=1)
    with w:
        for role, path in (("viewer", "pull"), ("user", "rm")):
            token = w.token(role)
            equal(w.http("GET", "/v1/images", token=token).status, 200, "all may look")
            if path == "pull":
                s = w.http("POST", "/v1/images/pull", '{"image": "x"}', token=token).status
            else:
                s = w.http("DELETE", "/v1/images?image=x", token=token).status
            equal(s, 403, "%s may not %s" % (role, path))
        oci = json.dumps({"image": "oci:%s/shared:v1" % w.dir})
        equal(w.http("POST", "/v1/images/pull", oci, token=w.token("user")).status, 202, "user")
        wait_until(lambda: w.images(0) == [w.name()], 20, "it is there")
        wait_until(lambda: w.listed()["pulls"][0]["ended_at"], 20, "it is over")
        equal(w.http("DELETE", "/v1/images?image=x", token=w.token("operator")).status, 404, "rm")


@suite.test
def of_one_user_alone():
    """With his file it is his, and the list says whose."""
    w = Site(nodes=1)
    auth = w.dir + "/auth.json"
    with w, Registry(w.layout, w.first) as r:
        r.user = "me:word"
        with open(auth, "w") as f:
            secret = base64.b64encode(r.user.encode()).decode()
            json.dump({"auths": {r.host: {"auth": secret}}}, f)
        os.chmod(auth, 0o600)
        image = r.host + "/n/a/me:v1"
        w.image_of("pull", image, "--wait", code=1)
        w.image_of("pull", image, "--auth", auth, "--wait")
        # root, of this cluster: others are numbers
        equal(w.images(0), [], "nothing of it is shared")
        own = "%s/state/node-0/images" % w.dir
        os.rename(own + "/0", own + "/12345")
        for at, dirs, names in os.walk(own + "/12345"):
            os.chown(at, 12345, 12345)
            for name in names:
                os.lchown(os.path.join(at, name), 12345, 12345)
        (i,) = w.listed()["items"]
        equal((i["user"], i["names"]), ("12345", [image]), "whose it is")
        # one whose directory nobody can read hides no other
        w.image_of("pull", "oci:%s/shared:v1" % w.dir, "--wait")
        os.chmod(own + "/12345", 0)
        equal([i["user"] for i in w.listed()["items"]], [None], "not as root")
        os.chmod(own + "/12345", 0o700)
        w.image_of("rm", w.first["digest"])
        equal(w.listed()["items"], [], "both are gone")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
