#!/usr/bin/python3
"""Machines with systemd: packages installed, the operator guide followed to the letter, a job that
lives through everything a machine does, upgrade and purge. Run by tests/suites.d/68-booted. A
test goes on where the one before it stopped, as an operator would; `test_booted.py DIR NAME...`
runs those named and what they need."""
import calendar
import glob
import json
import os
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from machines import Machine, Network  # noqa: E402
from image_rig import Layout, directory, entry, layer, symlink  # noqa: E402
from lib import BUILD, ROOT, Failed, Suite, equal, need, wait_until  # noqa: E402
from registry_rig import Registry  # noqa: E402

suite = Suite()
DIR = os.path.abspath(sys.argv.pop(1))
HOSTS = (
    ("10.77.0.1", ("head", "moe.example.org")),
    ("10.77.0.2", ("node1",)),
    ("10.77.0.3", ("elder",)),
)
GUIDE = os.path.join(ROOT, "docs/operator.md")
JOB = """recipe: 1
name: %(name)s
engine: {kind: command, argv: [/usr/local/bin/fake-rank, --steps, "1000000", --step-ms, "20",\
 --save-every, "50", --truth, %(dir)s]}
cluster: {gpus: %(gpus)d}
checkpoint: {dir: %(dir)s/ckpt, every: 50}
stop: {grace: 300s}
steps: 1000000
"""

IN_IMAGE = """recipe: 1
name: imaged
engine:
  kind: command
  argv: [fake-rank, --steps, "1000000", --step-ms, "20", --save-every, "50", --truth, /out]
  container: {image: "127.0.0.1:5000/n/a/me:v1", user: root, mounts: ["/usr:ro",\
 "/home/ada/imaged:/out"]}
cluster: {gpus: 4}
checkpoint: {dir: /out/ckpt, every: 50}
recovery: {backoff: 0}
steps: 1000000
"""
IMAGES = "/var/lib/moe-agent/images"


class World:
    """The machines, and what one test leaves for the next."""

    def __init__(self):
        work = os.path.join(DIR, "machines")
        os.makedirs(work, exist_ok=True)
        Network(work)
        self.machines = {
            names[0]: Machine(work, os.path.join(DIR, "base"), names[0], address, HOSTS)
            for address, names in HOSTS
        }
        for m in self.machines.values():
            shutil.copy(os.path.join(BUILD, "tests/fake/rank"), m.root + "/usr/local/bin/fake-rank")
        self.head, self.node, self.elder = self.machines.values()
        self.pids, self.attempt = {}, 0  # of the job that lives through it all

    def boot(self, machine, packages, slots):
        for deb in packages:
            shutil.copy(deb, machine.root + "/root/")
        machine.write("/etc/moe/agent.d/slots.yaml", "gpus: %d\n" % slots)  # no GPUs here
        machine.boot()

    def off(self):
        for m in self.machines.values():
            m.off()


def new_packages():
    return glob.glob(DIR + "/new/*.deb")


def job_of(machine, name):
    return json.loads(machine.out("moectl status %s --json" % name))


def ranks(machine):
    """Pids of the ranks in the machine."""
    return sorted(int(p) for p in machine.out("pgrep -x fake-rank || true").split())


def iteration(machine, name):
    return job_of(machine, name)["iteration"] or 0


def moves(machine, name):
    """The job goes on: its iteration grows from where it is now."""
    at = wait_until(lambda: iteration(machine, name), 30, "%s iterates" % name)
    wait_until(
        lambda: iteration(machine, name) > at + 5, 30, "%s goes on after iteration %d" % (name, at)
    )


def unchanged(w, what):
    """The same processes are still the ranks, and the job goes on with them."""
    need(w.attempt, "there is no job, an earlier test failed")
    moves(w.head, "long")
    for m in (w.head, w.node):
        equal(ranks(m), w.pids[m.name], "ranks on %s after %s" % (m.name, what))
    equal(job_of(w.head, "long")["attempt"], w.attempt, "attempt after %s" % what)


def main_pid(machine, unit):
    return int(machine.out("systemctl show -P MainPID %s" % unit))


def restarted(machine, unit, before):
    wait_until(
        lambda: main_pid(machine, unit) not in (0, before)
        and machine.out("systemctl is-active %s || true" % unit) == "active",
        30,
        "%s on %s is started again" % (unit, machine.name),
    )


def guide_blocks():
    """(machines, user, script) of each block of the guide that says where it is run."""
    with open(GUIDE) as f:
        text = f.read()
    for where, block in re.findall(r"<!-- run (.*?) -->\n\n((?:    .*\n|\n(?=    ))+)", text):
        user = re.match(r"as (\w+) ", where)
        yield re.search(r"on (.*)", where).group(1).split(", "), user and user.group(1), re.sub(
            r"^    ", "", block, flags=re.M
        )


def wait_nodes(machine, n):
    """Up, and their agents have said hello to the controller that runs now."""
    wait_until(
        lambda: [
            (x["state"], x.get("refuses"))
            for x in json.loads(machine.out("moectl nodes --json"))["items"]
        ]
        == [("up", None)] * n,
        30,
        "%d nodes are up" % n,
    )


@suite.test
def the_controller_is_installed_alone(w):
    """Without the agent's package, with nothing configured: it starts, and says where it
    listens."""
    w.boot(w.elder, new_packages(), 2)
    w.elder.sh(
        "cd && apt-get install -y --no-install-recommends ./moectl_*.deb ./moectl-controller_*.deb"
    )
    need(w.elder.out("systemctl is-enabled moed || true") == "disabled", "installing enabled moed")
    w.elder.sh("rm -r /var/lib/moe && /usr/libexec/moe/moed --init")
    equal(
        w.elder.out("stat -c '%U %a' /var/lib/moe /var/lib/moe/moe.db").splitlines(),
        ["moe 700", "moe 600"],
        "whose the state is that root makes",
    )
    w.elder.sh("systemctl start moed")
    equal(w.elder.read("/var/lib/moe/address").strip(), "http://127.0.0.1:7070", "address")
    need("what an operator" not in w.elder.out("journalctl -x -u moed"), "catalogue")
    need(
        "Jobs that run are taken over" in w.elder.out("journalctl -x -u moed --no-pager"),
        "the catalogue has the text of the entry that moed wrote",
    )
    # a server needs no D-Bus for it, nor for a new certificate
    w.elder.sh("systemctl stop dbus.socket dbus.service")
    w.elder.sh("/usr/libexec/moe/moed --check-config && systemctl reload moed")
    w.elder.sh("systemctl start dbus.socket")
    w.elder.sh("apt-get purge -y moectl-controller moectl")


@suite.test
def the_guide_is_followed(w):
    """Every block of docs/operator.md that says where it is run, in its order."""
    for m in (w.head, w.node):
        w.boot(m, new_packages(), 2)
    blocks = list(guide_blocks())
    need(len(blocks) >= 6, "the guide has %d blocks" % len(blocks))
    for machines, user, script in blocks:
        for name in machines:
            if "moectl nodes" in script:
                wait_nodes(w.head, 2)
            w.machines[name].sh(script if user else "cd\n" + script, user=user, timeout=120)
    equal(w.head.read("/var/lib/moe/address").strip(), "https://0.0.0.0:7070", "address")
    need(
        "serves https://0.0.0.0:7070 and unix:/run/moe/moed.sock"
        in w.head.out("journalctl -u moed -o cat"),
        "moed's log names what it listens on",
    )


@suite.test
def a_configuration_is_checked_as_its_unit_runs_it(w):
    """By root from a shell; each case is one line that names the option. A drop-in of the operator
    counts."""

    def says(text, words, program="moed"):
        name = "/etc/moe/%s.d/zz-tried.yaml" % ("moed" if program == "moed" else "agent")
        w.head.write(name, text)
        r = w.head.sh("/usr/libexec/moe/%s --check-config" % program, check=False)
        os.unlink(w.head.root + name)
        need(
            words in r.stdout
            and len(r.stdout.splitlines()) == 1
            and (r.returncode == 0) == (words == "valid"),
            "%s: %s" % (text, r.stdout),
        )

    w.head.sh(
        "mkdir -p /data/moe /data/agent; chown moe /data/moe; chown ada /data/agent; cp -a "
        "/etc/moe/tls /etc/moe/try; cp -a /etc/moe/tls /root/"
    )
    says("state_dir: /data/moe\n", "ReadWritePaths=/data/moe")
    says("unix_socket: /data/moe/sock\n", "ReadWritePaths=/data/moe")
    says("bootstrap_tokens: /etc/moe/tokens\n", "bootstrap_tokens: moed.service may not write")
    says("unix_socket: /tmp/sock\n", "PrivateTmp=")
    says("tls_cert: /root/tls/cert.pem\n", "ProtectHome=")
    w.head.sh("chown root /etc/moe/try/key.pem; chmod 600 /etc/moe/try/key.pem")
    says("tls_key: /etc/moe/try/key.pem\n", "tls_key")
    w.head.sh("cp /etc/moe/try/ca.key /etc/moe/try/key.pem; chown moe /etc/moe/try/key.pem")
    says("tls_key: /etc/moe/try/key.pem\n", "is not the key of the first certificate")
    w.head.sh("chmod 600 /etc/moe/moed.d/site.yaml")
    says("debug: true\n", "site.yaml: Permission denied")
    w.head.sh("chmod 644 /etc/moe/moed.d/site.yaml")
    says("state_dir: /usr/moe\n", "ProtectSystem=", "moe-agent")
    says("state_dir: /data/agent\n", "root may not write there", "moe-agent")
    w.head.sh(
        "mkdir -p /run/systemd/system/moed.service.d && printf "
        "'[Service]\\nReadWritePaths=/data/moe\\n' >/run/systemd/system/moed.service.d/data.conf "
        "&& systemctl daemon-reload"
    )
    says("state_dir: /data/moe\n", "valid")
    w.head.sh(
        "rm -r /run/systemd/system/moed.service.d /etc/moe/try /root/tls && systemctl daemon-reload"
    )


@suite.test
def certificates_are_reloaded(w):
    """systemctl reload: new connections get the new certificate, agents and jobs notice nothing; a
    pair that is none is refused by the command itself."""
    served = (
        "openssl s_client -connect head:7070 </dev/null 2>/dev/null | openssl x509 -noout -serial"
    )
    before, pid = w.node.out(served), main_pid(w.head, "moed")
    renew = (
        "cd /etc/moe/tls && openssl x509 -req -in cert.csr -CA ca.pem -CAkey ca.key "
        "-CAcreateserial -days 365 -copy_extensions copy -out cert.pem 2>/dev/null"
    )
    w.head.sh(renew + " && systemctl reload moed")
    wait_until(lambda: w.node.out(served) not in ("", before), 30, "another certificate is served")
    equal(main_pid(w.head, "moed"), pid, "moed")
    now = w.node.out(served)
    w.head.sh("cp /etc/moe/tls/key.pem /root/ && cp /etc/moe/tls/ca.key /etc/moe/tls/key.pem")
    need(
        w.head.sh("systemctl reload moed", check=False).returncode != 0,
        "a pair that is none was taken",
    )
    equal((w.node.out(served), main_pid(w.head, "moed")), (now, pid), "what is served, by whom")
    w.head.sh("cp /root/key.pem /etc/moe/tls/key.pem && systemctl reload moed")
    wait_nodes(w.head, 2)


@suite.test
def a_user_trains_on_both(w):
    w.head.write("/home/ada/long.yaml", JOB % {"name": "long", "dir": "/home/ada/long", "gpus": 4})
    for m in (w.head, w.node):
        m.sh("mkdir -p ~/long", user="ada")
    w.head.sh("moectl submit long.yaml", user="ada")
    moves(w.head, "long")
    for m in (w.head, w.node):
        w.pids[m.name] = ranks(m)
        equal(len(w.pids[m.name]), 2, "ranks on %s" % m.name)
        need(
            m.sh("systemctl restart moe.slice", check=False).returncode != 0,
            "the slice of all steps can be stopped by accident",
        )
        equal(m.out("ps -o user= -C fake-rank").split(), ["ada", "ada"], "whose ranks they are")
        need(
            "moe-step-" in m.out("cat /proc/%d/cgroup" % w.pids[m.name][0]),
            "a step is a unit of its own",
        )
        files, most = (
            m.out("awk '/^Max open files/ { print $5 }' /proc/%d/limits" % p).strip()
            for p in (w.pids[m.name][0], 1)
        )
        # no more than systemd may give
        need(
            files in ("1048576", most),
            "a rank may open %s files, and systemd itself %s" % (files, most),
        )
    w.attempt = 1
    equal(job_of(w.head, "long")["user"], "ada", "whose job it is")
    need(
        "completed" in w.node.out("moectl list --all", user="ada"),
        "over TLS by a name of host_names, ada sees her jobs",
    )


@suite.test
def restarts_touch_no_rank(w):
    for m, unit in ((w.head, "moed"), (w.head, "moe-agent"), (w.node, "moe-agent")):
        m.sh("systemctl restart %s" % unit)
        unchanged(w, "restart of %s on %s" % (unit, m.name))


@suite.test
def kills_touch_no_rank(w):
    """Killed more often than systemd's usual patience (5 in 10 s)."""
    for m, unit in ((w.head, "moed"), (w.node, "moe-agent")):
        for _ in range(6):
            before = main_pid(m, unit)
            m.sh("kill -9 %d" % before)
            restarted(m, unit, before)
        unchanged(w, "kill -9 of %s" % unit)


@suite.test
def the_watchdog_touches_no_rank(w):
    for m, unit in ((w.head, "moed"), (w.node, "moe-agent")):
        drop_in = "/run/systemd/system/%s.service.d" % unit
        m.sh(
            "mkdir -p %s && printf '[Service]\\nWatchdogSec=2\\n' >%s/quick.conf && systemctl "
            "daemon-reload && systemctl restart %s" % (drop_in, drop_in, unit)
        )
        before = main_pid(m, unit)
        m.sh("kill -STOP %d" % before)
        restarted(m, unit, before)
        m.sh("rm -r %s && systemctl daemon-reload && systemctl restart %s" % (drop_in, unit))
    unchanged(w, "the watchdog")


@suite.test
def systemd_itself_is_executed_anew(w):
    for m in (w.head, w.node):
        m.sh("systemctl daemon-reexec")
    unchanged(w, "daemon-reexec")


def seconds(text):
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))


def messages(machine, kind):
    """What events of this type said, oldest first."""
    return [
        e["message"]
        for e in json.loads(machine.out("moectl events --json"))["items"]
        if e["type"] == kind
    ]


@suite.test
def a_clock_that_was_ahead_is_put_right(w):
    """The wall clock that moed sees is 13 hours ahead: at first no time service vouches for it, and
    as the unit knows its boot, it is not believed. Then one does, and is right in the end. (It
    is moed's alone: machines here share one kernel.)"""
    need(w.attempt, "there is no job, an earlier test failed")

    def says(offset, synced):
        w.head.write("/etc/moe/clock.new", "%d %d\n" % (offset, synced))
        os.rename(w.head.root + "/etc/moe/clock.new", w.head.root + "/etc/moe/clock")

    def lives(user):
        """For how long the 12 h token of this user is good."""
        return [
            seconds(t["expires_at"]) - time.time()
            for t in json.loads(w.head.out("moectl token list --json"))["items"]
            if t["user"] == user
        ][0]

    shutil.copy(
        os.path.join(BUILD, "tests/fake/preload/wallclock.so"), w.head.root + "/usr/local/lib/"
    )
    created, began = job_of(w.head, "long")["created_at"], time.monotonic()
    says(13 * 3600, 0)
    w.head.write(
        "/etc/systemd/system/moed.service.d/clock.conf",
        "[Service]\nEnvironment=LD_PRELOAD=/usr/local/lib/wallclock.so FAKE_CLOCK=/etc/moe/clock\n",
    )
    w.head.sh("systemctl daemon-reload && systemctl restart moed")
    need(
        re.search(
            r"is not synchronised and 1[23]:\d\d:\d\d h ahead",
            messages(w.head, "controller.clock")[-1],
        ),
        "what is said of it: %s" % messages(w.head, "controller.clock"),
    )
    unchanged(w, "a clock that is ahead")
    w.head.sh("moectl token create --role viewer --user held --ttl 12h --out /root/held.token")
    need(abs(lives("held") - 12 * 3600) < 60, "a token made now ends in %g s" % lives("held"))
    says(13 * 3600, 1)
    wait_until(
        lambda: "time goes on from" in messages(w.head, "controller.clock")[-1]
        and "behind the synchronised wall clock" in messages(w.head, "controller.clock")[-1],
        30,
        "time is ahead",
    )
    w.head.sh(
        "moectl token create --role viewer --user tomorrow --ttl 12h --out /root/tomorrow.token"
    )
    says(0, 1)
    wait_until(
        lambda: "ahead of the synchronised wall clock" in messages(w.head, "controller.clock")[-1],
        30,
        "time is right again",
    )
    for user in ("held", "tomorrow"):
        need(
            abs(lives(user) - 12 * 3600) < 120, "the token of %s ends in %g s" % (user, lives(user))
        )
    w.head.sh(
        "rm -r /etc/systemd/system/moed.service.d /etc/moe/clock /root/*.token && systemctl "
        "daemon-reload && systemctl restart moed"
    )
    wait_nodes(w.head, 2)
    unchanged(w, "a clock that was ahead")
    need(
        abs(seconds(job_of(w.head, "long")["created_at"]) - seconds(created)) < 60,
        "when it was created",
    )
    charged = json.loads(w.head.out("moectl report long --json"))["gpu_seconds"]["total"]
    need(charged < 4 * (time.monotonic() - began + 600), "%g GPU seconds are charged" % charged)


def saved_iteration(w, name="long"):
    return wait_until(
        lambda: max(
            [
                c["iteration"]
                for c in json.loads(w.head.out("moectl checkpoints %s --json" % name))["items"]
                if c["state"] in ("complete", "verified")
            ]
            or [0]
        ),
        30,
        "a checkpoint",
    )


def runs_again(w, saved):
    """In another attempt, from a checkpoint."""
    wait_until(
        lambda: job_of(w.head, "long")["attempt"] > w.attempt
        and job_of(w.head, "long")["state"] == "running",
        60,
        "the job runs again",
    )
    w.attempt = job_of(w.head, "long")["attempt"]
    moves(w.head, "long")
    need(iteration(w.head, "long") > saved, "it began again before iteration %d" % saved)
    for m in (w.head, w.node):
        w.pids[m.name] = ranks(m)
        equal(len(w.pids[m.name]), 2, "ranks on %s" % m.name)


def faults(w):
    """What is counted of failures: incidents and restarts of the job, the score of node1."""
    score = [
        n["lemon_score"]
        for n in json.loads(w.head.out("moectl nodes --json"))["items"]
        if n["name"] == "node1"
    ]
    return (
        len(json.loads(w.head.out("moectl report long --json"))["incidents"]),
        job_of(w.head, "long")["restarts"],
        round(score[0], 1),
    )


@suite.test
def a_step_that_somebody_stops_ends_as_planned(w):
    """systemctl stop of its unit: systemd waits for as long as the recipe says, the job learns at
    once and says why, and starts again; nobody's fault. One rank on the other node holds the
    stop up, so that it can be looked at."""
    need(w.attempt, "there is no job, an earlier test failed")
    unit = w.node.out("systemctl list-units --plain --no-legend 'moe-step-*'").split()[0]
    equal(
        w.node.out("systemctl show -P TimeoutStopUSec %s" % unit),
        "5min 30s",
        "how long systemd waits: stop.grace and 30 s",
    )
    before, saved = faults(w), saved_iteration(w)
    w.head.sh("kill -STOP %d" % w.pids["head"][0])
    try:
        w.node.sh("systemctl stop %s" % unit)
        wait_until(
            lambda: "the step on node1 was stopped there, not by moectl"
            in w.head.out("moectl why long"),
            30,
            "why says who stopped it",
        )
        need(
            any("node1" in m for m in messages(w.head, "step.stopped_outside")),
            "no event says that it was stopped",
        )
    finally:
        # a rank that is held stops every test behind this one
        w.head.sh("kill -CONT %d" % w.pids["head"][0])
    runs_again(w, saved)
    equal(faults(w), before, "incidents, restarts, score")


@suite.test
def a_planned_reboot_is_no_fault(w):
    """systemctl reboot: the controller hears that the machine goes down before its ranks do, and
    holds nothing against it."""
    need(w.attempt, "there is no job, an earlier test failed")
    before, saved = faults(w), saved_iteration(w)
    w.node.reboot()
    runs_again(w, saved)
    need(
        any(
            "the machine of node node1 is going down" in m for m in messages(w.head, "node.leaving")
        ),
        "nobody said that it goes down",
    )
    equal(faults(w), before, "incidents, restarts, score")


@suite.test
def a_node_loses_its_power(w):
    """Its ranks are proved dead by the next boot; the job goes on from a checkpoint, without
    anybody's help. That is the node's fault."""
    need(w.attempt, "there is no job, an earlier test failed")
    before, saved = faults(w), saved_iteration(w)
    w.node.off()
    w.node.boot()
    runs_again(w, saved)
    need(faults(w)[0] == before[0] + 1, "%s incidents, then %s" % (before, faults(w)))


@suite.test
def a_lost_state_is_restored_under_the_job(w):
    """Without its state moed starts nothing of its own accord, however often it is tried; from a
    backup it takes the running job over."""
    w.head.sh(
        "moectl backup /root/moe.backup && systemctl stop moed && mv /var/lib/moe /root/moe.lost "
        "&& systemctl start --no-block moed"
    )
    wait_until(lambda: int(w.head.out("systemctl show -P NRestarts moed")) >= 2, 30, "two tries")
    need("--init" in w.head.out("journalctl -u moed -o cat -n 20"), "the log says what is missing")
    w.head.sh(
        "systemctl stop moed && [ ! -e /var/lib/moe/moe.db ] && rm -rf /var/lib/moe && "
        "/usr/libexec/moe/moed --restore /root/moe.backup && systemctl start moed"
    )
    wait_nodes(w.head, 2)
    unchanged(w, "a restore")
    # to another place, which systemd does not make for the unit
    w.head.write("/etc/moe/moed.d/place.yaml", "state_dir: /srv/site/moe\n")
    w.head.sh(
        "mkdir -p /etc/systemd/system/moed.service.d && printf '[Service]\n"
        "ReadWritePaths=/srv/site/moe\n"
        "' >/etc/systemd/system/moed.service.d/place.conf && systemctl daemon-reload"
    )
    w.head.sh(
        "moectl backup /root/again.backup && systemctl stop moed && /usr/libexec/moe/moed "
        "--restore /root/again.backup"
    )
    equal(
        w.head.out("stat -c '%U %a' /srv/site /srv/site/moe /srv/site/moe/moe.db").splitlines(),
        ["root 755", "moe 700", "moe 600"],
        "whose the state is that root restores",
    )
    w.head.sh("systemctl start moed")
    wait_nodes(w.head, 2)
    unchanged(w, "a restore to another place")
    w.head.sh("moectl cancel long")
    wait_until(
        lambda: job_of(w.head, "long")["state"] == "cancelled"
        and not ranks(w.head) + ranks(w.node),
        60,
        "no rank is left",
    )


def image_for_ranks(path):
    """A layout with what lets the programs of a node run that are mounted into it."""
    layout = Layout(path)
    dirs = [directory(d) for d in ("etc", "usr", "out", "proc", "sys", "dev", "run", "tmp")]
    links = [symlink(d, "usr/" + d) for d in ("bin", "sbin", "lib", "lib64")]
    files = [entry("etc/of_image", "brought\n", mode=0o600)]
    env = {"Env": ["PATH=/usr/local/bin:/usr/bin"]}
    return layout, layout.manifest([layer(*dirs, *links, *files)], config=env)


@suite.test
def a_job_runs_in_an_image(w):
    """Brought from a registry on the loopback of each machine by the agent of the packages, whose
    unit has few rights; as root inside. A supervisor is killed, and in the end nothing is left."""
    layout, manifest = image_for_ranks(os.path.join(w.head.work, "registry"))
    nodes, registries, mounts = (w.head, w.node), [], {}
    where = "cat /proc/1/mountinfo /proc/$(systemctl show -P MainPID moe-agent)/mountinfo"
    for m in nodes:
        # of their own, as on iron: the root of these machines is an overlay itself
        for d in ("images", "layers"):
            m.sh("mkdir -p {0} && mount -t tmpfs none {0}".format("/var/lib/moe-agent/" + d))
        m.sh("mkdir ~/imaged", user="ada")
        mounts[m.name] = m.out(where)
        with m.network():
            registries.append(Registry(layout, manifest, 5000).__enter__())
    w.head.write("/home/ada/imaged.yaml", IN_IMAGE)
    w.head.sh("moectl submit imaged.yaml", user="ada")
    moves(w.head, "imaged")
    need(manifest["digest"] in job_of(w.head, "imaged")["image"], "the image of the job")
    for m in nodes:
        equal(m.out("ps -o user= -C fake-rank").split(), ["ada", "ada"], "whose ranks they are")
        root = "/proc/%d/root/etc/of_image" % ranks(m)[0]
        equal(m.out("cat " + root), "brought", "their image")
        equal(
            m.out("stat -c '%%U %%a' %s/shared" % IMAGES), "moe-image 700", "who enters the images"
        )
        need("moe-step-" in m.out("cat /proc/%d/cgroup" % ranks(m)[0]), "a unit of its own")
    saw = w.head.out("moectl exec imaged 3 -- sh -c 'id -u; cat /etc/of_image'", user="ada")
    equal(saw.split()[:2], ["0", "brought"], "who is root inside, and sees what only root may")
    saved = saved_iteration(w, "imaged")
    w.node.sh("kill -9 $(ps -o ppid= -p %d)" % ranks(w.node)[0])
    wait_until(
        lambda: job_of(w.head, "imaged")["attempt"] == 2
        and job_of(w.head, "imaged")["state"] == "running",
        60,
        "it runs again",
    )
    moves(w.head, "imaged")
    need(iteration(w.head, "imaged") > saved, "it began again before iteration %d" % saved)
    used = [line.split()[-1] for line in w.head.out("moectl image list").splitlines()[1:]]
    equal(used, [job_of(w.head, "imaged")["id"]] * 2, "who uses the images of both")
    fits = w.head.sh("moectl doctor node1 --image dir:/ --user ada", check=False).stdout
    need(re.search(r"image.python +ok", fits), "the agent looks into an image: %s" % fits)
    w.head.sh("moectl cancel imaged", user="ada")
    wait_until(lambda: not ranks(w.head) + ranks(w.node), 60, "no rank is left")
    for m in nodes:
        wait_until(lambda: not m.out("ls -A /var/lib/moe-agent/layers"), 30, "no layer is left")
        equal(m.out(where), mounts[m.name], "mounts of %s" % m.name)
        need("moe" not in m.out("systemctl list-units --failed --plain"), "no unit has failed")
    for r in registries:
        r.__exit__()
    # by the agent, and by hand
    w.node.write("/etc/moe/agent.d/images.yaml", "images_max: 1\n")
    w.node.sh("touch -d @1 %s/shared/sha256-* && systemctl restart moe-agent" % IMAGES)
    wait_until(lambda: not w.node.out("ls %s/shared" % IMAGES), 30, "the agent prunes")
    said = w.head.out("/usr/libexec/moe/moe-image prune %s/shared --max-bytes 0" % IMAGES)
    need("removed" in said and "0 images with 0 bytes" in said, said)
    for m in nodes:
        m.sh("umount -l /var/lib/moe-agent/images /var/lib/moe-agent/layers")
    os.unlink(w.node.root + "/etc/moe/agent.d/images.yaml")


@suite.test
def a_taken_port_is_waited_for(w):
    """As long as it takes."""
    program = (
        "import socket, time; s = socket.socket(); s.setsockopt(1, 2, 1); s.bind((\'0.0.0.0\', "
        "7070)); s.listen(); time.sleep(1000)"
    )
    w.head.sh("systemctl stop moed && systemd-run -q --unit=holder python3 -c \"%s\"" % program)
    wait_until(lambda: ":7070" in w.head.out("ss -ltn"), 30, "the port is taken")
    w.head.sh("systemctl start moed", check=False)
    wait_until(lambda: int(w.head.out("systemctl show -P NRestarts moed")) >= 6, 60, "six tries")
    need(
        "port 7070 of 0.0.0.0 is in use" in w.head.out("journalctl -u moed -o cat"),
        "the log says why",
    )
    w.head.sh("systemctl stop holder")
    wait_until(lambda: w.head.out("systemctl is-active moed || true") == "active", 30, "moed is up")
    wait_nodes(w.head, 2)


@suite.test
def a_trouble_that_changes_is_said(w):
    """By the agent, once for each kind: nobody answers, then somebody whom it has no reason to
    trust."""
    log = "journalctl -u moe-agent -o cat --no-pager --after-cursor=\"$(cat /root/cursor)\""
    w.node.sh(
        "journalctl -u moe-agent -n 0 --show-cursor | sed -n 's/^-- cursor: //p' >/root/cursor"
    )

    def told(text):
        return sum(text in line for line in w.node.out(log).splitlines())

    w.head.sh("systemctl stop moed")
    wait_until(lambda: told("does not answer"), 30, "nobody answers")
    w.node.sh(
        "mv /etc/moe/ca.pem /root/ && openssl req -x509 -newkey ec -pkeyopt "
        "ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=another -keyout /dev/null -out "
        "/etc/moe/ca.pem 2>/dev/null && chmod 644 /etc/moe/ca.pem"
    )
    w.head.sh("systemctl start moed")
    wait_until(lambda: told("certificate"), 30, "the certificate is not trusted")
    w.node.sh("mv /root/ca.pem /etc/moe/ca.pem")
    wait_nodes(w.head, 2)
    lines = [line for line in w.node.out(log).splitlines() if "trying again" in line]
    equal(len(lines), len(set(lines)), "each once: %s" % lines)


def refusals(w):
    program = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/moe/moed.sock'); "
        "s.sendall(b'GET /metrics HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n'); "
        "print(s.makefile().read())"
    )
    return int(
        re.search(
            r'^moe_http_requests_total{class="4xx"} (\d+)',
            w.head.out("python3 -c \"%s\"" % program),
            re.M,
        ).group(1)
    )


@suite.test
def a_token_file_that_is_not_there_is_said(w):
    """By --check-config, and once by the agent: it starts all the same, for what runs there is
    looked after."""
    w.node.sh(
        "systemctl stop moe-agent && mv /var/lib/moe-agent/agent.token* /root/ && mv "
        "/etc/moe/join.token /root/"
    )
    r = w.node.sh("/usr/libexec/moe/moe-agent --check-config", check=False)
    need(
        r.returncode != 0
        and "token_file: /etc/moe/join.token" in r.stdout
        and "No such file" in r.stdout,
        "--check-config: %s" % r.stdout,
    )
    w.node.sh(
        "journalctl -u moe-agent -n 0 --show-cursor | sed -n 's/^-- cursor: //p' >/root/cursor && "
        "systemctl start moe-agent"
    )
    log = "journalctl -u moe-agent -o cat --no-pager --after-cursor=\"$(cat /root/cursor)\""
    refused, before = "does not know this node's token (there is none)", refusals(w)
    wait_until(lambda: refusals(w) >= before + 3, 30, "the agent was refused three times")
    w.node.sh("mv /root/join.token /etc/moe/ && mv /root/agent.token* /var/lib/moe-agent/")
    wait_nodes(w.head, 2)
    lines = w.node.out(log).splitlines()
    equal(
        [sum(t in line for line in lines) for t in ("token_file /etc/moe/join.token: ", refused)],
        [1, 1],
        "it says so once: %s" % lines,
    )


@suite.test
def a_container_begins_anew_with_the_boot_id_of_its_host(w):
    """As LXC and Docker have it: the agent says so at its start. Nothing proves that the steps are
    gone which ran before, until somebody says it as docs/failures.md has it."""
    drop_in = "/etc/systemd/system/moe-agent.service.d/zz-host.conf"
    w.node.write(drop_in, "[Service]\nEnvironmentFile=\n")
    w.node.sh("systemctl daemon-reload && systemctl restart moe-agent")
    wait_until(
        lambda: "this node is a container (systemd-nspawn) whose boot id is its host's"
        in w.node.out("journalctl -u moe-agent -o cat --no-pager"),
        30,
        "the agent says it",
    )
    wait_nodes(w.head, 2)
    w.head.sh("moectl drain head --reason 'the other one is looked at'")
    w.head.write(
        "/home/ada/boxed.yaml", JOB % {"name": "boxed", "dir": "/home/ada/boxed", "gpus": 2}
    )
    w.node.sh("mkdir -p ~/boxed", user="ada")
    w.head.sh("moectl submit boxed.yaml", user="ada")
    moves(w.head, "boxed")
    job = job_of(w.head, "boxed")
    w.node.off()
    w.node.boot()
    wait_until(lambda: messages(w.head, "step.missing"), 60, "the step is missing")
    step = "%s.a1" % job["id"]
    need(
        "moectl resolve %s --gone" % step in w.head.out("moectl why boxed"),
        "why: %s" % w.head.out("moectl why boxed"),
    )
    need(step in w.head.out("moectl why node1"), "why: %s" % w.head.out("moectl why node1"))
    equal(
        (job_of(w.head, "boxed")["attempt"], ranks(w.node)),
        (1, []),
        "attempt and ranks before anybody said anything",
    )
    w.head.sh("moectl resolve %s --gone" % step)
    wait_until(lambda: job_of(w.head, "boxed")["attempt"] == 2, 60, "the second attempt")
    moves(w.head, "boxed")
    w.head.sh("moectl cancel boxed && moectl undrain head")
    wait_until(lambda: not ranks(w.node), 60, "no rank is left")
    os.unlink(w.node.root + drop_in)


def kept(w, pids, what):
    moves(w.elder, "kept")
    equal(
        (ranks(w.elder), job_of(w.elder, "kept")["attempt"]),
        (pids, 1),
        "ranks and attempt after %s" % what,
    )


@suite.test
def an_upgrade_of_the_released_version_touches_no_rank(w):
    """Set up as that version's guide said, with options in what were its packages' own files:
    nobody is asked about them, and they count on. Then the job dies, and resumes from its
    checkpoint."""
    m = w.elder
    for deb in glob.glob(DIR + "/old/build-deb/*.deb"):
        shutil.copy(deb, m.root + "/home/")
    m.sh("apt-get install -y --no-install-recommends /home/*.deb")
    m.sh(
        "usermod -a -G moe ada && echo 'beat_ms: 500' >>/etc/moe/moed.yaml && systemctl enable "
        "--now moed && moectl token create --role agent >/etc/moe/agent.token && chmod 600 "
        "/etc/moe/agent.token"
    )
    m.sh(
        "printf 'controller: http://127.0.0.1:7070\\ntoken_file: /etc/moe/agent.token\\ngpus: "
        "2\\n' >>/etc/moe/agent.yaml && systemctl enable --now moe-agent"
    )
    wait_nodes(m, 1)
    m.write("/home/ada/kept.yaml", JOB % {"name": "kept", "dir": "/home/ada/kept", "gpus": 2})
    m.sh("mkdir -p ~/kept && moectl submit kept.yaml", user="ada")
    moves(m, "kept")
    pids = ranks(m)
    equal(len(pids), 2, "ranks")
    equal(m.out("/usr/libexec/moe/moed --version"), "moed 0.1.0", "before")
    daemons = [main_pid(m, u) for u in ("moed", "moe-agent")]
    out = m.sh("cd && apt-get install -y --no-install-recommends ./moectl*.deb </dev/null").stdout
    need("onfiguration file" not in out, "a question was asked: %s" % out)
    for unit, before in zip(("moed", "moe-agent"), daemons):
        restarted(m, unit, before)
    wait_nodes(m, 1)
    equal(
        json.loads(m.out("moectl nodes --json"))["items"][0]["version"],
        m.out("moectl --version").split()[1],
        "version of the agent",
    )
    need(
        "beat_ms: 500" in m.read("/etc/moe/moed.yaml")
        and "gpus: 2" in m.read("/etc/moe/agent.yaml"),
        "the site's options",
    )
    kept(w, pids, "the upgrade")
    saved = max(
        c["iteration"] for c in json.loads(m.out("moectl checkpoints kept --json"))["items"]
    )
    m.sh("kill -9 %d" % pids[0])
    wait_until(
        lambda: job_of(m, "kept")["attempt"] == 2 and job_of(m, "kept")["state"] == "running",
        60,
        "the second attempt",
    )
    wait_until(
        lambda: (job_of(m, "kept")["iteration"] or 0) > saved,
        60,
        "it resumed at %d or later" % saved,
    )


@suite.test
def purge_leaves_nothing_but_what_runs(w):
    """The agent's package is purged under a running job and installed again: the job goes on. When
    all is purged, nothing of ours is left."""
    m, attempt = w.elder, job_of(w.elder, "kept")["attempt"]
    need(attempt == 2, "there is no job, an earlier test failed")
    pids = ranks(m)
    m.sh("cp /etc/moe/agent.yaml /root/")
    out = m.sh("apt-get purge -y moectl-agent").stdout
    need("steps of jobs still run here" in out, out)
    equal(ranks(m), pids, "ranks after the purge")
    m.sh(
        "cd && cp agent.yaml /etc/moe/ && apt-get install -y --no-install-recommends "
        "./moectl-agent_*.deb && systemctl enable --now moe-agent"
    )
    wait_nodes(m, 1)
    moves(m, "kept")
    equal(
        (ranks(m), job_of(m, "kept")["attempt"]),
        (pids, 2),
        "ranks and attempt after it was installed again",
    )
    m.sh("moectl cancel kept")
    wait_until(lambda: not ranks(m), 60, "the ranks have ended")
    m.sh(
        "rm -r /root/*.deb /root/agent.yaml /home/*.deb /usr/local/bin/fake-rank "
        "/etc/systemd/system/moe-agent.service.d"
    )
    m.sh("apt-get purge -y 'moectl*'")
    left = m.out(
        "find / -xdev -path /proc -prune -o -path /machines -prune -o -path /home -prune -o -path "
        "/usr/share/doc -prune -o '(' -name '*moe*' -o -name '*moectl*' ')' -print; "
        "find /run /var/log/journal -name '*moe*' 2>/dev/null || true"
    )
    equal([f for f in left.split() if "/journal/" not in f], [], "left")


def main():
    w = World()
    try:
        failed = suite.main(w)
        for m in w.machines.values() if failed else ():
            if m.process and m.init():
                print(
                    "--- the last of the journal of %s\n%s"
                    % (
                        m.name,
                        m.sh(
                            "journalctl --no-pager -u moed -u moe-agent -n 25 -o short-monotonic",
                            check=False,
                        ).stdout,
                    ),
                    flush=True,
                )
    finally:
        w.off()
    sys.exit(1 if failed else 0)


main()
