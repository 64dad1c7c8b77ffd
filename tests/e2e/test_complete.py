#!/usr/bin/python3
"""What moectl offers to a line that is being typed, by itself and in real shells. Usage:
test_complete.py [TEST...]"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import (
    MOECTL,
    PATIENCE,
    ROOT,
    Cluster,
    Skipped,
    Suite,
    clean_env,
    command_recipe,
    equal,
    moectl,
    need,
)

suite = Suite()
SCRIPTS = os.path.join(ROOT, "cli/completion")
COMMON = ["--json", "--help", "--url", "--token-file", "--raw"]


def offered(*words, env=None):
    """Candidate -> what it means."""
    r = moectl("complete", "--", *words, env=env or clean_env(MOE_URL="unix:/nowhere"))
    return dict(line.partition("\t")[::2] for line in r.stdout.splitlines())


def verbs():
    return re.findall(r"^  ([a-z]+)  +\S", moectl("--help").stdout, re.M)


def ways(verb):
    """The first words of a verb's ways; [] where there is one way."""
    usage = moectl("help", verb).stdout.splitlines()[0][len("usage: moectl ") :].split(" | ")
    if len(usage) == 1:
        return []
    first = [w[len(verb) + 1 :] if w.startswith(verb + " ") else w for w in usage]
    return [x for w in first for x in w.split()[0].split("|") if re.fullmatch("[a-z]+", x)]


@suite.test
def words_come_from_the_usage(_):
    equal(set(verbs()) - set(offered("")), set(), "verbs that are not offered")
    equal(list(offered("wat")), ["watch"], "of wat")
    equal(list(offered("help", "wat")), ["watch"], "of help wat")
    equal(list(offered("--url", "unix:/x", "wat")), ["watch"], "behind --url")
    equal(offered("nonsense", ""), {}, "of an unknown verb")
    equal(offered(), {}, "of nothing")
    for verb in verbs():
        equal(set(ways(verb)) - set(offered(verb, "")), set(), "ways of %s" % verb)
    equal(list(offered("explain", "b")), ["bind"], "of explain b")
    equal(list(offered("drain", "n1", "--when", "")), ["idle", "checkpoint", "now"], "of --when")
    equal(offered("submit", ""), {}, "a file is for the shell to find")
    equal(offered("exec", "j", "--", ""), {}, "words of somebody else")


@suite.test
def options_are_those_of_the_verb(_):
    """Each that a verb knows, and what its help says of it; nothing is done."""
    for verb in verbs():
        help = moectl("help", verb).stdout
        for way in ways(verb) or [None]:
            line = [verb] + ([way] if way else [])
            got = offered(*line, "--")
            equal(set(COMMON) - set(got), set(), "options of %s" % " ".join(line))
            for option, about in got.items():
                if option == "--help":
                    continue
                need(about, lambda: "the help of %s says nothing of %s" % (verb, option))
                need(about in help, lambda: "%s %s: %r" % (verb, option, about))
    need(offered("logs", "j", "--fol"), "--follow of logs")
    equal(offered("logs", "j", "--lines", "--fol"), {}, "a value, not an option")
    need(offered("logs", "j", "--lines=3", "--fol"), "an option behind --lines=3")
    equal(offered("logs", "j", "-n", "--fol"), {}, "a value behind -n")
    need("--role" in offered("token", "create", "--r"), "--role of token create")


@suite.test
def examples_can_be_typed(_):
    """Each verb has one at least, with words and options that it knows."""
    for verb in verbs():
        help = moectl("help", verb).stdout
        lines = help.split("\nExamples:\n")[1].split("\n\n")[0].splitlines()
        own = [x for line in lines for x in re.findall(r"\bmoectl (%s\b[^;|)]*)" % verb, line)]
        need(own, "no example of %s" % verb)
        for line in own:
            words = re.split(" -- |  +", line)[0].split()
            way = words[1] if words[1:2] and words[1] in ways(verb) else None
            known = offered(verb, *([way] if way else []), "--")
            for option in re.findall(r" (--[a-z-]+)", " ".join([""] + words)):
                need(option in known, "%s: there is no %s" % (line, option))


@suite.test
def jobs_and_nodes_are_asked_for(_):
    with Cluster(nodes=2) as c:
        for name in ("alpha", "beta", "alpha"):
            c.submit(command_recipe(name, ["sleep", "1000"]))
        equal(sorted(offered("logs", "", env=c.env)), ["alpha", "beta"], "names")
        equal(list(offered("logs", "be", env=c.env)), ["beta"], "of be")
        equal(sorted(offered("logs", "j-", env=c.env)), ["j-1", "j-2", "j-3"], "ids")
        need(offered("logs", "j-1", env=c.env)["j-1"] in ("running", "starting"), "its state")
        equal(sorted(offered("node", "", env=c.env)), ["node-0", "node-1"], "nodes")
        equal(
            sorted(offered("why", "", env=c.env)), ["alpha", "beta", "node-0", "node-1"], "of why"
        )
        equal(offered("logs", "alpha", "", env=c.env), {}, "logs has one word")
        equal(offered("ack", "node-0", "", env=c.env), {}, "a check is no node")
    equal(offered("logs", "", env=c.env), {}, "where no controller answers")


@suite.test
def bash(_):
    script = """source %s/moectl.bash; COMP_WORDS=(%s "$@"); COMP_CWORD=$#; _moectl
        printf '%%s\\n' "${COMPREPLY[@]}" """ % (
        SCRIPTS,
        MOECTL,
    )

    def ask(*words):
        return subprocess.run(
            ["bash", "-c", script, "bash", *words],
            env=clean_env(MOE_URL="unix:/nowhere"),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.split()

    equal(ask("wat"), ["watch"], "of wat")
    equal(ask("logs", "--ra"), ["--rank", "--raw"], "of logs --ra")
    equal(ask("submit", ""), [], "of submit")


def needs(shell):
    if not shutil.which(shell):
        raise Skipped("there is no %s" % shell)


@suite.test
def fish(_):
    needs("fish")
    env = clean_env(
        MOE_URL="unix:/nowhere", PATH=os.path.dirname(MOECTL) + ":" + os.environ["PATH"]
    )

    def ask(line):
        r = subprocess.run(
            [
                "fish",
                "--no-config",
                "-c",
                "source %s/moectl.fish; complete -C '%s'" % (SCRIPTS, line),
            ],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return [x.split("\t")[0] for x in r.stdout.splitlines()]

    equal(ask("moectl wat"), ["watch"], "of wat")
    equal(sorted(ask("moectl logs --ra")), ["--rank", "--raw"], "of logs --ra")


def typed(master, keys, until):
    """What the terminal shows behind these keys, until it holds the text."""
    os.write(master, keys.encode())
    text, end = "", time.monotonic() + PATIENCE * 20
    while until not in text:
        need(time.monotonic() < end, lambda: "%r shows %r, not %r" % (keys, text, until))
        if select.select([master], [], [], 0.2)[0]:
            text += os.read(master, 65536).decode(errors="replace")
    return text


@suite.test
def zsh(_):
    needs("zsh")
    pid, master = pty.fork()
    if pid == 0:
        os.execvpe(
            "zsh",
            ["zsh", "-f", "-i"],
            clean_env(
                MOE_URL="unix:/nowhere",
                PATH=os.path.dirname(MOECTL) + ":" + os.environ["PATH"],
                TERM="dumb",
                PS1="$ ",
            ),
        )
    try:
        typed(
            master,
            "fpath=(%s $fpath); autoload -U compinit; compinit -D -u; echo re''ady\n" % SCRIPTS,
            "ready",
        )
        typed(master, "moectl wat\t", "watch ")
        typed(master, "\x15moectl logs --ran\t", "--rank")
        typed(master, "\x15moectl token \t\t", "revoke")
    finally:
        os.close(master)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    sys.exit(1 if suite.main(None) else 0)
