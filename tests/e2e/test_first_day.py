#!/usr/bin/python3
"""docs/first-day.md and docs/agent-in-image.md, done: every command as it stands there, and what
it prints. The machine is a set of namespaces (mount, pid, net, ipc, uts), so that its paths, its
port and its processes are its own; docker is tests/fake/docker.py, the image an unpacked
directory, Primus tests/fake/primus, the GPUs are fake slots, and systemctl starts what it is told
to. Needs root.

In the document a line of a block that begins with `$ ` is a command of ada's, one with `# ` root's;
`\\` at its end goes on, and <<END brings lines up to END. What follows is what it prints: runs of
digits are as good as others, blanks as well, `...` in a line stands for anything, and a line `...`
for any lines. <!-- until COMMAND prints PATTERN --> waits. Usage: test_first_day.py [--show]:
prints what each command printed; `agent-in-image` does the other page."""
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from lib import BUILD, ROOT, Failed, Suite, need, wait_until  # noqa: E402

suite = Suite()
# which of both: the name of an argument
NAME = "agent-in-image" if "agent-in-image" in sys.argv else "first-day"
DOC = os.path.join(ROOT, "docs", NAME + ".md")
SHOW = "--show" in sys.argv
INSIDE = "MOE_FIRST_DAY"
PYTHON = os.path.realpath("/usr/bin/python3")
IN_IMAGE = (
    "sh",
    "env",
    "cat",
    "sleep",
    "kill",
    "ls",
    "mkdir",
    "id",
    "bash",
    "tee",
    "make",
    "cp",
    "find",
    "sort",
    "umount",
    "dirname",
    "date",
    "grep",
    "touch",
    "rm",
    "rmdir",
    "flock",
    "mv",
    "mktemp",
    "chmod",
    "printenv",
)
SYSTEMCTL = """#!/bin/sh
# enable --now UNIT: there is no systemd on this machine; what the unit would do
if [ "$*" = "enable --now moe-agent" ]; then
    setsid /usr/local/libexec/moe/moe-agent </dev/null >>/var/log/moe-agent.log 2>&1 &
    exit
fi
[ "$*" = "enable --now moed" ] || { echo "systemctl (a stand-in): $*" >&2; exit 1; }
install -d -o moe -g moe /run/moe
setsid setpriv --reuid moe --regid moe --clear-groups /usr/local/libexec/moe/moed </dev/null\
 >>/var/log/moed.log 2>&1 &
"""


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def libraries(programs):
    text = subprocess.run(
        ["ldd"] + programs, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ).stdout
    return sorted(set(re.findall(r"^\s+(?:\S+ => )?(/\S+) \(", text, re.M)))


def copy(path, root):
    """The file that a name leads to, under that name."""
    to = root + path
    if not os.path.exists(to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(os.path.realpath(path), to)


def make_image(root):
    """A root directory with a shell, a few tools and python, and no library of ours."""
    for d in (
        "usr/bin",
        "usr/sbin",
        "usr/lib",
        "usr/lib64",
        "etc",
        "tmp",
        "run",
        "var/tmp",
        "root",
    ):
        os.makedirs(os.path.join(root, d))
    os.chmod(os.path.join(root, "tmp"), 0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink("usr/" + name, os.path.join(root, name))
    standard = os.path.dirname(os.__file__)
    programs = [PYTHON] + [p for p in ("/usr/bin/" + n for n in IN_IMAGE) if os.path.exists(p)]
    modules = [
        os.path.join(standard, "lib-dynload", n)
        for n in os.listdir(os.path.join(standard, "lib-dynload"))
    ]
    for path in programs + libraries(programs + modules):
        copy("/usr" + path if path.startswith(("/lib", "/bin")) else path, root)
    os.symlink(os.path.basename(PYTHON), os.path.join(root, "usr/bin/python3"))
    shutil.copytree(
        standard,
        root + standard,
        symlinks=True,
        ignore=shutil.ignore_patterns(
            "test",
            "tests",
            "idlelib",
            "tkinter",
            "lib2to3",
            "config-*",
            "dist-packages",
            "site-packages",
            "ensurepip",
        ),
    )
    write(os.path.join(root, "etc/hosts"), "127.0.0.1 localhost\n")
    write(os.path.join(root, "etc/nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files\n")
    write(os.path.join(root, "etc/ld.so.conf"), "")


def tree(root):
    """What stands for a checkout of Primus: the trainer, an experiment and its presets."""
    sys.path.insert(0, HERE)
    from test_experiments import OWN

    for path, text in OWN.items():
        if path.startswith("primus/"):
            write(os.path.join(root, path), text)
    write(
        os.path.join(root, "primus/configs/models/megatron/qwen3_30B_A3B.yaml"),
        OWN["primus/configs/models/megatron/small.yaml"],
    )
    write(
        os.path.join(root, "examples/megatron/configs/MI300X/qwen3_30B_A3B-BF16-pretrain.yaml"),
        "work_group: ${PRIMUS_TEAM:amd}\nuser_name: ${PRIMUS_USER:root}\n"
        "exp_name: ${PRIMUS_EXP_NAME:qwen3_30B_A3B-pretrain}\n"
        "workspace: ${PRIMUS_WORKSPACE:./output}\n"
        "modules:\n  pre_trainer:\n    framework: megatron\n    config: pre.yaml\n"
        "    model: qwen3_30B_A3B.yaml\n    overrides:\n      expert_model_parallel_size: 8\n"
        "      micro_batch_size: 2\n      global_batch_size: 128\n      train_iters: 50\n"
        "      save: null\n      disable_last_saving: true\n      mock_data: true\n",
    )
    stand_in = os.path.join(ROOT, "tests/fake/primus")
    for part in ("runner", "third_party"):
        shutil.copytree(os.path.join(stand_in, part), os.path.join(root, part))
    write(os.path.join(root, "primus/cli/main.py"), open(os.path.join(stand_in, "main.py")).read())
    write(
        os.path.join(root, "primus/cli/checkpoints.py"),
        open(os.path.join(ROOT, "tests/fixtures/checkpoints.py")).read(),
    )


def lo_up():
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        # SIOCSIFFLAGS: up, running
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14s", b"lo", 0x1 | 0x40, b""))


def run_as(user, command, check=True):
    argv = ["setpriv", "--reuid", "ada", "--regid", "ada", "--init-groups"] if user == "ada" else []
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin",
        "HOME": "/home/ada" if user == "ada" else "/root",
        "USER": user,
        "LANG": "C.UTF-8",
        "COLUMNS": "160",
    }
    r = subprocess.run(
        argv + ["/bin/bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
        timeout=600,
        cwd="/home/ada" if user == "ada" else "/root",
    )
    return r.returncode, r.stdout


def machine():
    """The machine of the document, as root in namespaces of its own."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
    socket.sethostname("gpu-01")
    lo_up()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/mnt"], check=True)
    subprocess.run(["cp", "-a", "/etc", "/mnt/etc"], check=True)
    subprocess.run(["mount", "--bind", "/mnt/etc", "/etc"], check=True)
    for d in ("/run", "/opt", "/srv", "/home", "/var/lib", "/var/log", "/usr/local"):
        if (
            os.path.isdir(d)
            and not ROOT.startswith(d + "/")
            and not BUILD.startswith(d + "/")
            and not PYTHON.startswith(d + "/")
        ):
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", d], check=True)
    for name, text in (
        (
            "passwd",
            "ada:x:4242:4242:Ada:/home/ada:/bin/sh\n"
            "moe:x:4243:4243::/var/lib/moe:/usr/sbin/nologin\n",
        ),
        ("group", "ada:x:4242:\nmoe:x:4243:ada\n"),
        ("hosts", "127.0.0.1 gpu-01 localhost\n"),
    ):
        with open("/etc/" + name, "a") as f:
            f.write(text)
    shutil.rmtree("/etc/moe", ignore_errors=True)
    os.makedirs("/etc/moe")
    for name in ["moed"] + [n for n in os.listdir(BUILD) if re.fullmatch(r"moe-[a-z]+", n)]:
        copy_to("/usr/local/libexec/moe/" + name, os.path.join(BUILD, name))
    copy_to("/usr/local/bin/moectl", os.path.join(BUILD, "moectl"))
    os.makedirs("/usr/local/share", exist_ok=True)
    shutil.copytree(os.path.join(ROOT, "config"), "/usr/local/share/moe")
    write("/usr/local/bin/systemctl", SYSTEMCTL, 0o755)
    copy_to("/usr/local/bin/docker", os.path.join(ROOT, "tests/fake/docker.py"))
    make_image("/var/lib/docker/images/rocm/primus:v26.5")
    tree("/srv/Primus")
    tree("/var/lib/docker/images/rocm/primus:v26.5/workspace/Primus")
    for d in ("/home/ada", "/srv/ckpt"):
        os.makedirs(d, exist_ok=True)
        os.chown(d, 4242, 4242)
    os.makedirs("/root", exist_ok=True)
    os.makedirs("/var/lib/moe")
    os.chown("/var/lib/moe", 4243, 4243)
    subprocess.run(
        [
            "setpriv",
            "--reuid",
            "moe",
            "--regid",
            "moe",
            "--clear-groups",
            "/usr/local/libexec/moe/moed",
            "--init",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def copy_to(to, path):
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copy2(path, to)


def steps(text):
    """("run", user, command, output lines) and ("until", user, command, pattern), in the document's
    order."""
    found, lines, i = [], text.split("\n"), 0
    while i < len(lines):
        m = re.match(r"<!-- until (.*) prints (.*) -->$", lines[i])
        if m:
            found.append(("until", "ada", m.group(1), m.group(2)))
        m = re.match(r"    ([$#]) (.*)$", lines[i])
        i += 1
        if not m:
            continue
        command, out = m.group(2), []
        while command.endswith("\\") and i < len(lines):
            command, i = command + "\n" + lines[i][4:], i + 1
        if re.search("<<'?END'?", command):
            while not command.endswith("\nEND"):
                command, i = command + "\n" + lines[i][4:], i + 1
        while (
            i < len(lines) and lines[i].startswith("    ") and not re.match(r"    [$#] ", lines[i])
        ):
            out.append(lines[i][4:])
            i += 1
        found.append(("run", "ada" if m.group(1) == "$" else "root", command, out))
    return found


def line_pattern(line):
    text = (
        re.escape(re.sub(r"[ \t]+", " ", line.strip()))
        .replace(r"\.\.\.", ".*")
        .replace(r"\ ", r"\s+")
    )
    return re.sub(r"\d+", r"\\d+", text)


def is_output(printed, wanted):
    """Is this what the document says? A command of which it shows nothing may print nothing."""
    pattern = "".join(
        r"(?:.*\n)*?" if w.strip() == "..." else line_pattern(w) + r"\s*?\n"
        for w in wanted
        if w.strip()
    )
    have = "".join(line.strip() + "\n" for line in printed.split("\n") if line.strip())
    return re.fullmatch(pattern, have) is not None


@suite.test
def as_it_stands_there():
    machine()
    with open(DOC) as f:
        todo = steps(f.read())
    need(
        len([s for s in todo if s[0] == "run"]) > 20, "only %d commands are understood" % len(todo)
    )
    for kind, user, command, wanted in todo:
        begin = time.monotonic()
        if kind == "until":
            last = [""]

            def there():
                last[0] = run_as(user, command)[1]
                return re.search(wanted, last[0])

            try:
                wait_until(there, 40, "%s prints %s" % (command, wanted))
            except Failed as e:
                raise Failed(
                    "%s; it printed:\n%s\n%s"
                    % (
                        e,
                        last[0],
                        run_as("root", "moectl why first; moectl logs first -n 9; docker logs moe")[
                            1
                        ],
                    )
                )
            continue
        status, out = run_as(user, command)
        if SHOW:
            print(
                "%s %s\n%s[%d, %.2f s]"
                % ("$" if user == "ada" else "#", command, out, status, time.monotonic() - begin),
                flush=True,
            )
        m = re.match(r"cat >(/\S+/agent.yaml) ", command)
        if m:
            with open(m.group(1), "a") as f:  # the machine of the test has no GPU
                f.write("gpus: 8\nonly_fake_gpus: true\n")
        if is_output(out, wanted):
            continue
        text = "%s: the document says:\n%s\nprinted (status %d):\n%s" % (
            command,
            "\n".join(wanted),
            status,
            out,
        )
        if not SHOW:
            raise Failed(text)
        print("!! " + text, flush=True)


if __name__ == "__main__":
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "true"],
            stderr=subprocess.DEVNULL,
        ).returncode
        != 0
    ):
        print(
            "SKIP as_it_stands_there: needs root and namespaces of its own (mount, pid, net, ipc, "
            "uts)\n0 passed, 0 failed, 1 skipped"
        )
        sys.exit(0)
    if os.environ.get(INSIDE) != "1":
        # The shell is the machine's first process: it takes in what others leave, and with its end
        # everything of the machine is gone.
        sys.exit(
            subprocess.run(
                [
                    "unshare",
                    "--mount",
                    "--pid",
                    "--net",
                    "--ipc",
                    "--uts",
                    "--fork",
                    "/bin/sh",
                    "-c",
                    '"$@"; exit $?',
                    "machine",
                    sys.executable,
                ]
                + sys.argv,
                env=dict(os.environ, **{INSIDE: "1"}),
            ).returncode
        )
    sys.argv = [a for a in sys.argv if a not in ("--show", NAME)]
    sys.exit(1 if suite.main() else 0)
