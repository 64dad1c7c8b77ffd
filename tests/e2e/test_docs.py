#!/usr/bin/python3
"""The documents say what the programs do: option tables of docs/operator.md are those of the
programs, docs/rest.md has every route with its role, docs/events.md and the journal's catalogue
have every event, docs/health.md every check, links between documents lead somewhere.
`test_docs.py --write` writes all that is made anew."""
import difflib
import functools
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import urllib.request

import jsonschema

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import Moed  # noqa: E402
from lib import BUILD, ROOT, Skipped, Suite, clean_env, equal, need, wait_until  # noqa: E402
from rig import write_config  # noqa: E402

suite = Suite()
DOCS = os.path.join(ROOT, "docs")


def read(name):
    with open(os.path.join(DOCS, name)) as f:
        return f.read()


def said_by(program, *words):
    """What a program of ours prints; when it refuses, its word is the error."""
    r = subprocess.run(
        [os.path.join(BUILD, program), *words], capture_output=True, text=True, env=clean_env()
    )
    need(r.returncode == 0, "%s %s: %s" % (program, " ".join(words), r.stderr.strip()))
    return r.stdout


def example(program):
    return said_by(program, "--example-config")


def same(have, want, what):
    diff = [
        d
        for d in difflib.unified_diff(have.split("\n"), want.split("\n"), lineterm="", n=0)
        if d[:1] in "+-" and d[:3] not in ("+++", "---")
    ]
    need(
        not diff,
        lambda: "%s: write it anew with tests/e2e/test_docs.py --write:\n%s"
        % (what, "\n".join(diff[:10])),
    )


def options(program):
    """[(name, default, text)] from --example-config: comment lines, then `#name: default`."""
    found, doc = [], []
    for line in example(program).split("\n"):
        m = re.match(r"#([a-z_.]+):(?: (.*))?$", line)
        if m:
            found.append((m.group(1), m.group(2) or "", " ".join(doc)))
        doc = doc + [line[2:]] if line.startswith("# ") else []
    return found


def option_table(program):
    rows = ["| option | default | what |", "|--|--|--|"]
    for name, default, doc in options(program):
        rows.append(
            "| `%s` | %s | %s |"
            % (name, "`%s`" % default if default else "", doc.replace("|", "\\|"))
        )
    return "\n".join(rows)


def routes():
    """[(method, path, role, summary)] from the source of the route table."""
    with open(os.path.join(ROOT, "daemon/api_routes.c")) as f:
        # a formatter breaks lines and texts where it likes
        text = re.sub(r"\s+", " ", re.sub(r'"\s*\n\s*"', "", f.read()))
        found = re.findall(
            r'\{ \{ "(\w+)", "([^"]+)", ROLE_(\w+), \w+, \w+, \w+[^}]* \}, "((?:[^"\\]|\\.)*)"',
            text,
        )
    return [
        (m, p, "-" if r == "NONE" else r.lower(), s.replace('\\"', '"')) for m, p, r, s in found
    ]


def route_table():
    rows = ["| route | role | what |", "|--|--|--|"]
    for method, path, role, summary in routes():
        if summary != "Dashboard file." and role != "agent":
            rows.append("| `%s %s` | %s | %s |" % (method, path, role, summary.replace("|", "\\|")))
    return "\n".join(rows)


@functools.lru_cache(None)
def openapi():
    with Moed() as m:
        return m.get("/openapi.json", token=None)


DOCUMENTS = (
    "Job Rank Sample Curve Matrix Checkpoint Report Why Event Node Drift Cluster EnvItem Bind "
    "PlanDoc Token Submitted Webhook".split()
)


def resolved(schema):
    """What a reference leads to, null left aside."""
    schema = schema.get("anyOf", [schema])[0]
    return (
        openapi()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if "$ref" in schema
        else schema
    )


def kind_of(schema):
    """In a word, or its words."""
    first = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    words = [w for w in schema.get("enum", []) if w]
    return (
        "`%s`" % " ".join(words)
        if words
        else "time"
        if "format" in schema
        else "`%sN`" % schema["pattern"][1:].partition("[")[0]
        if first == "string" and "pattern" in schema
        else first
    )


def key_rows(schema, prefix=""):
    for name, field in schema["properties"].items():
        value = resolved(field)
        array = value.get("type") == "array"
        item = resolved(value["items"]) if array else value
        key = prefix + name + ("[]" if array else "")
        yield "| `%s` | %s%s | %s |" % (
            key,
            kind_of(item),
            "" if name in schema["required"] else ", if any",
            field["description"].replace("|", "\\|"),
        )
        if "properties" in item:
            yield from key_rows(item, key + ".")


def key_tables():
    text = []
    for name in DOCUMENTS:
        text += (
            ["### %s" % name, "| key | kind | what |", "|--|--|--|"]
            + list(key_rows(openapi()["components"]["schemas"][name]))
            + [""]
        )
    return "\n".join(text).strip()


def events():
    """The registry, lib/model/event_types.def, as moectl knows it."""
    return json.loads(said_by("moectl", "--json", "explain", "event"))["items"]


def event_table():
    rows = ["| type | level | data | what it tells | what to do |", "|--|--|--|--|--|"]
    for e in events():
        data = " ".join("`%s`" % key for key in e["data"].split())
        tells = "%s. %s" % (e["subject"], e["means"])
        rows.append(
            "| `%s` | %s | %s | %s | %s |"
            % (
                e["type"],
                e["level"],
                data,
                tells.strip().replace("|", "\\|"),
                e["next"].replace("|", "\\|"),
            )
        )
    return "\n".join(rows)


CATALOG = os.path.join(ROOT, "units/moe.catalog")
CATALOG_HEAD = "# Events: made from lib/model/event_types.def by tests/e2e/test_docs.py --write.\n"


def catalog_entry(e):
    """One entry of the journal's catalogue; what stands for the event's job, node or rank becomes
    the field of the entry."""
    body = re.sub(r"\b(JOB|NODE|RANK)\b", r"@MOE_\1@", "%s\n%s" % (e["means"], e["next"])).strip()
    return "-- %s\nSubject: %s\nDefined-By: moectl\n\n%s\n" % (e["message_id"], e["subject"], body)


def catalog_events():
    return (
        CATALOG_HEAD
        + "\n"
        + "\n".join(
            catalog_entry(e)
            for e in sorted((e for e in events() if e["message_id"]), key=lambda e: e["message_id"])
        )
    )


def catalog():
    """(what the daemons log beside events, written by hand; the entries of events)"""
    with open(CATALOG) as f:
        hand, head, made = f.read().partition(CATALOG_HEAD)
    need(head, "units/moe.catalog has lost the line that stands before the entries of events")
    return hand, head + made


FLOW = re.compile(r'(\w+): ("[^"]*"|[^",{}]+)')
BLOCK = re.compile(r'^ *(\w+): (.*)$', re.M)


def profile(name):
    """(when, [{name, value, reason, alternatives, source}]) of config/env/NAME.yaml; these files
    keep to one key per line, or one item per line."""
    with open(os.path.join(ROOT, "config/env", name + ".yaml")) as f:
        head, _, items = f.read().partition("\nitems:\n")
    head, _, limits = head.partition("\nlimits:\n")
    keys = dict(re.findall(r"^(layer|order|when): (.*)$", head, re.M))
    found = [
        {k: v.strip().strip('"') for k, v in (FLOW if item[0] == "{" else BLOCK).findall(item)}
        for item in re.split(r"^  - ", items, flags=re.M)[1:]
    ]
    return (
        keys,
        found,
        [dict(FLOW.findall(limit)) for limit in re.split(r"^  - ", limits, flags=re.M)[1:]],
    )


def profile_tables():
    layers = "base profile engine feature".split()
    names = [n[:-5] for n in os.listdir(os.path.join(ROOT, "config/env")) if n.endswith(".yaml")]
    text = []
    for name in sorted(
        names,
        key=lambda n: (layers.index(profile(n)[0]["layer"]), int(profile(n)[0].get("order", 0)), n),
    ):
        keys, items, limits = profile(name)
        if limits:
            text += [
                "### %s" % name,
                "Values that a variable can have; a recipe with another is refused.",
                "",
                "| variable | from | to | why |",
                "|--|--|--|--|",
            ]
            text += [
                "| `%s` | %s | %s | %s |" % (i["name"], i["min"], i["max"], i["reason"].strip('"'))
                for i in limits
            ] + [""]
            continue
        text += [
            "### %s" % name,
            "Layer %s%s, for %s."
            % (
                keys["layer"],
                ", order " + keys["order"] if "order" in keys else "",
                "`%s`" % keys["when"] if "when" in keys else "every rank",
            ),
            "",
            "| variable | value | why | what others do | source |",
            "|--|--|--|--|--|",
        ]
        text += [
            "| `%s` | %s | %s | %s | %s |"
            % (
                i["name"],
                "`%s`" % i["value"] if "value" in i else "not set",
                i["reason"],
                i.get("alternatives", ""),
                i.get("source", ""),
            )
            for i in items
        ] + [""]
    return "\n".join(text).strip()


def check_table():
    """Every shipped check; those of the kernel's log are the rules of klog.yaml."""
    out = said_by("moe-probe", "checks")
    moments = ("preflight", "periodic", "failure", "epilog", "doubt")
    return "\n".join(
        ["| check | when | finding | action |", "|--|--|--|--|"]
        + [
            "| `%s` | %s | %s | %s |"
            % (
                c["id"],
                " ".join(w for i, w in enumerate(moments) if c["when"] >> i & 1),
                c["what"],
                c["action"],
            )
            for c in json.loads(out)["checks"]
            if c["id"] == "klog.read" or not c["id"].startswith("klog.")
        ]
    )


def metric_table(text):
    helps = re.findall(r"^# HELP (\S+) (.*)$", text, re.M)
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    rows = ["| metric | kind | what |", "|--|--|--|"]
    return "\n".join(rows + ["| `%s` | %s | %s |" % (n, kinds[n], h) for n, h in helps])


def metrics_of_moed():
    with Moed() as m:
        return metric_table(m.ask("GET", "/metrics").body.decode())


def metrics_of_agent():
    """It listens before it knows a controller."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as dir:
        options = {
            "controller": "unix:%s/none" % dir,
            "state_dir": dir + "/state",
            "runtime_dir": dir + "/run",
            "node": "n0",
            "use_systemd": "no",
            "only_fake_gpus": True,
            "metrics_port": port,
        }
        agent = subprocess.Popen(
            [os.path.join(BUILD, "moe-agent"), "--config", write_config(dir + "/yaml", options)],
            stderr=subprocess.DEVNULL,
            env=clean_env(),
        )
        try:
            return metric_table(
                wait_until(
                    lambda: urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port).read(),
                    20,
                    "the agent's metrics",
                ).decode()
            )
        finally:
            agent.terminate()
            agent.wait()


TABLES = (
    ("environment.md", "profiles", profile_tables),
    ("health.md", "checks", check_table),
    ("operator.md", "options of moed", lambda: option_table("moed")),
    ("operator.md", "options of moe-agent", lambda: option_table("moe-agent")),
    ("rest.md", "routes", route_table),
    ("rest.md", "keys", key_tables),
    ("events.md", "events", event_table),
    ("metrics.md", "metrics of moed", metrics_of_moed),
    ("metrics.md", "metrics of moe-agent", metrics_of_agent),
)

EXAMPLES = (("moed", "config/moed.yaml"), ("moe-agent", "config/agent.yaml"))


def section(text, title):
    m = re.search(r"<!-- %s: [^\n]* -->\n(.*?)<!-- end -->" % re.escape(title), text, re.S)
    need(m, "no table %s" % title)
    return m


@suite.test
def tables_are_those_of_the_programs():
    for name, title, make in TABLES:
        same(section(read(name), title).group(1).strip(), make(), "%s in docs/%s" % (title, name))


@suite.test
def the_catalogue_has_every_event():
    same(catalog()[1], catalog_events(), "units/moe.catalog")


@suite.test
def example_configurations_are_those_of_the_programs():
    for program, name in EXAMPLES:
        with open(os.path.join(ROOT, name)) as f:
            same(f.read().strip(), example(program).strip(), name)


@suite.test
def openapi_has_the_same_routes():
    with open(os.path.join(ROOT, "daemon/api_routes.c")) as f:
        n = len(re.findall(r"^\t\{ \{ \"", f.read(), re.M))
    equal(len(routes()), n, "routes understood by this test")


# JSON that no struct is: made of the engine's files, of kept texts; nothing; made of the routes
UNDESCRIBED = {
    "/v1/jobs/{id}/config",
    "/v1/anchors",
    "/v1/session",
    "/v1/agent/answer",
    "/v1/agent/road",
    "/openapi.json",
    "/v1/sd",
}


@suite.test
def the_description_is_openapi():
    """As OpenAPI says what a document of it is, and JSON Schema what a schema."""
    for schema in openapi()["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    web = os.path.join(ROOT, "tests/web")
    modules = subprocess.run([os.path.join(web, "modules")], stdout=subprocess.PIPE, text=True)
    if modules.returncode:
        raise Skipped(modules.stdout.strip())
    for document, valid in ((openapi(), True), (dict(openapi(), paths={"jobs": {}}), False)):
        r = subprocess.run(
            ["node", os.path.join(web, "openapi.mjs")],
            input=json.dumps(document),
            stdout=subprocess.PIPE,
            text=True,
        )
        equal((r.returncode == 0, r.stdout == "3.1\n"), (valid, valid), r.stdout[:2000])


@suite.test
def answers_are_described():
    """Every route says what it answers, every member of it what it means."""
    for path, ops in openapi()["paths"].items():
        for method, op in ops.items():
            ((kind, content),) = op["responses"]["2XX"]["content"].items()
            need(
                kind != "application/json"
                or "schema" in content
                or path in UNDESCRIBED
                or op["tags"] == ["page"],
                "%s %s does not say what it answers" % (method, path),
            )
            body = op.get("requestBody", {"content": {}})["content"].get(
                "application/json", {"schema": {}}
            )["schema"]
            need(
                all(p["description"] for p in body.get("properties", {}).values()),
                "%s %s does not say what it takes" % (method, path),
            )
    for name, schema in openapi()["components"]["schemas"].items():
        for key, field in schema["properties"].items():
            need(
                name == "Problem" or field["description"],
                "%s.%s: its row says not what it means: MO_D instead of MO_F (lib/base/desc.h)"
                % (name, key),
            )


@suite.test
def links_lead_somewhere():
    def anchors(text):
        return {
            re.sub(r"[^a-z0-9 _-]", "", t.lower()).replace(" ", "-")
            for t in re.findall(r"^#+ (.*)$", text, re.M)
        }

    for base, _, names in os.walk(DOCS):
        for name in (n for n in names if n.endswith(".md")):
            with open(os.path.join(base, name)) as f:
                text = f.read()
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                full = (
                    os.path.normpath(os.path.join(base, path)) if path else os.path.join(base, name)
                )
                need(os.path.exists(full), "%s: %s leads nowhere" % (name, target))
                if anchor:
                    with open(full) as f:
                        need(
                            anchor in anchors(f.read()), "%s: %s: no such heading" % (name, target)
                        )


@suite.test
def the_first_recipe_of_the_readme_is_valid():
    """And nothing has to be said of it."""
    block = re.search(r"^```yaml\n(.*?)^```", read("../README.md"), re.S | re.M).group(1)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(block)
        f.flush()
        r = subprocess.run(
            [os.path.join(BUILD, "moectl"), "validate", f.name],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=clean_env(),
        )
    equal(r.stdout, f.name + ": valid: my-job, 16 ranks, engine torch\n", "moectl validate")


@suite.test
def verbs_in_the_documents_exist():
    """Every `moectl VERB` that a document names."""
    text = said_by("moectl", "help")
    verbs = set(re.findall(r"^  ([a-z]+) ", text, re.M)) | {"help", "version"}
    for name in sorted(os.listdir(DOCS)) + ["../README.md"]:
        if name.endswith(".md"):
            for verb in re.findall(r"(?:`|^    )(?:build/)?moectl ([a-z]+)", read(name), re.M):
                need(verb in verbs, "%s: there is no verb %s" % (name, verb))


def written():
    """{path: text} of everything that is generated."""
    texts = {}
    for name, title, make in TABLES:
        path = os.path.join(DOCS, name)
        text = texts.get(path) or read(name)
        m = section(text, title)
        texts[path] = text[: m.start(1)] + make() + "\n" + text[m.end(1) :]
    texts[CATALOG] = catalog()[0] + catalog_events()
    for program, name in EXAMPLES:
        texts[os.path.join(ROOT, name)] = example(program)
    return texts


if "--write" in sys.argv:
    for path, text in written().items():  # all of it is made before the first is overwritten
        with open(path, "w") as f:
            f.write(text)
    sys.exit(0)
sys.exit(1 if suite.main() else 0)
