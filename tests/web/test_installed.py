#!/usr/bin/python3
"""What `make install DESTDIR=ROOT` put there, used from there: ROOT/usr/local stands for /usr/local
in a mount namespace of its own, and nothing of the source tree is asked for. Usage: ROOT=DIR
[CHROMIUM=PROGRAM] test_installed.py [TEST...]"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))
from lib import Failed, Skipped, Suite, clean_env, need  # noqa: E402

suite = Suite()
ROOT, CHROMIUM, INSIDE = os.environ["ROOT"], os.environ.get("CHROMIUM"), "MOE_TEST_INSIDE"
work = tempfile.mkdtemp(prefix="moe-installed-")
env = clean_env(HOME=work, PATH="/usr/local/bin:/usr/bin:/bin")
env.pop("MOE_DATA_DIR")
env.pop("XDG_STATE_HOME", None)


def run(*argv, timeout=120, **more):
    r = subprocess.run(
        argv,
        env=dict(env, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=timeout,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if r.returncode:
        raise Failed(
            "%s: exit status %d\n%s%s"
            % (" ".join(argv), r.returncode, r.stdout[-1500:], r.stderr[-1500:])
        )
    return r.stdout


@suite.test
def a_cluster_of_the_installed_programs_completes_a_job():
    url = re.match(r"export MOE_URL=(.*)", run("moectl", "local", "up", "--port", "0")).group(1)
    env["MOE_URL"] = url
    status = json.loads(run("moectl", "local", "status", "--json"))
    for pid in [status["moed"]["pid"]] + [a["pid"] for a in status["agents"]]:
        program = os.readlink("/proc/%d/exe" % pid)
        need(program.startswith("/usr/local/libexec/moe/"), "a daemon runs %s" % program)
    out = run("moectl", "submit", "/usr/local/share/moe/recipes/command-hello.yaml", "--watch")
    need("completed" in out, out)
    need("hello from rank 1 of 2" in run("moectl", "logs", "hello"), "no output")


@suite.test
def the_page_opens_and_shows_the_job():
    if not CHROMIUM:
        raise Skipped("no browser")
    told = subprocess.run(
        ["moectl", "local", "up"],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=60,
        text=True,
    ).stderr
    link = re.search(r"^dashboard: (\S+)", told, re.M)
    need(link, told)
    run(
        "node",
        os.path.join(HERE, "test_installed.mjs"),
        PAGE_TEST=json.dumps({"link": link.group(1), "job": "j-1", "chromium": CHROMIUM}),
    )


@suite.test
def a_manual_page_is_found_by_its_name():
    if not shutil.which("man"):
        raise Skipped("no man (apt-get install man-db)")
    text = run("man", "-P", "cat", "moectl", MANWIDTH="100", MANPATH="/usr/local/share/man")
    need("moectl submit RECIPE" in text, text[:300])


def main():
    if INSIDE not in os.environ:  # once more, where ROOT/usr/local is /usr/local
        unshare, oneself = ["unshare", "-m"], ""
        if os.geteuid():  # root there to mount, and oneself again below it
            unshare, oneself = ["unshare", "-rm"], "unshare -U --map-user=%d --map-group=%d" % (
                os.geteuid(),
                os.getegid(),
            )
        if subprocess.run(unshare + ["true"], stderr=subprocess.DEVNULL).returncode:
            print(
                "SKIP installed: no mount namespace to be had here\n0 passed, 0 failed, 1 skipped"
            )
            return 0
        script = 'mount --bind "$ROOT/usr/local" /usr/local && exec %s "$@"' % oneself
        os.execvpe(
            unshare[0],
            unshare + ["sh", "-c", script, "sh", sys.executable] + sys.argv,
            dict(os.environ, **{INSIDE: "1"}),
        )
    try:
        return suite.main()
    finally:
        subprocess.run(
            ["/usr/local/bin/moectl", "local", "down"],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
