"""Runtimes of containers that are peers of engine.container: how each is asked for one rank in an
unpacked image that shares pids, network and ipc with the node, as ours do."""
import json
import os
import shutil
import subprocess

CLIENTS = ("runc", "crun", "bwrap", "podman")


def image(path, program):
    """An unpacked image of one static program, /rank."""
    for d in ("dev", "etc", "proc", "run", "sys", "tmp"):
        os.makedirs(os.path.join(path, d))
    shutil.copy(program, path + "/rank")
    return path


def bundle(path, root, out, argv, env):
    """What runc and crun read."""
    os.makedirs(path, exist_ok=True)
    bind = {"type": "bind", "options": ["rbind"]}
    document = {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": argv,
            "env": ["%s=%s" % item for item in env.items()],
            "cwd": "/",
        },
        "root": {"path": root, "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
            dict(bind, destination=out, source=out),
        ],
        "linux": {"namespaces": [{"type": "mount"}]},
    }
    with open(path + "/config.json", "w") as f:
        json.dump(document, f)
    return path


def command(client, name, root, out, argv, rank):
    """The command line of one rank."""
    env = {"RANK": str(rank), "MOE_ATTEMPT": "1"}
    if client in ("runc", "crun"):
        b = bundle("%s/bundle-%d" % (out, rank), root, out, argv, env)
        return [client, "run", "--bundle", b, "%s-%d" % (name, rank)]
    if client == "bwrap":
        words = [client, "--ro-bind", root, "/", "--dev", "/dev", "--proc", "/proc"]
        words += ["--bind", out, out]
        for item in env.items():
            words += ["--setenv", *item]
        return words + argv
    words = ["podman", "run", "--rm", "--network", "host", "--pid", "host", "--ipc", "host"]
    words += ["--ulimit", "nofile=1024", "--ulimit", "nproc=1000", "-v", "%s:%s" % (out, out)]
    for item in env.items():
        words += ["-e", "%s=%s" % item]
    return words + ["--rootfs", root] + argv


def start(client, name, root, out, argv, ranks):
    """All of them at once: the processes of the client."""
    commands = [command(client, name, root, out, argv, r) for r in range(ranks)]
    return [
        subprocess.Popen(
            c, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for c in commands
    ]


def absent(client, name, root, out):
    """Why it cannot be measured here; None: it can."""
    if not shutil.which(client):
        return "it is not installed"
    words = command(client, name, root, out, ["/rank", out + "/absent", "exit"], 0)
    r = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return (
        (r.stderr.strip().splitlines() or ["status %d" % r.returncode])[-1]
        if r.returncode
        else None
    )
