"""Answers of the REST interface against the schemas of /openapi.json: as much of JSON schema as
those use, and stricter in one thing: a member that no schema names is wrong."""
import json
import re
from datetime import datetime

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def is_time(text):
    try:
        return text.endswith("Z") and bool(datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ"))
    except ValueError:
        return False


class Schemas:
    """Of one controller's description."""

    KEYWORDS = {
        "type",
        "enum",
        "pattern",
        "format",
        "items",
        "properties",
        "required",
        "anyOf",
        "allOf",
        "description",
        "$ref",
    }

    def __init__(self, openapi):
        self.named = openapi["components"]["schemas"]
        self.routes = [
            (method.upper(), re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "$"), path, op)
            for path, ops in openapi["paths"].items()
            for method, op in ops.items()
        ]

    def resolve(self, schema):
        while "$ref" in schema:
            schema = self.named[schema["$ref"].rpartition("/")[2]]
        if "allOf" not in schema:
            return schema
        parts = [self.resolve(s) for s in schema["allOf"]]
        return {
            "type": "object",
            "required": sum((p["required"] for p in parts), []),
            "properties": {k: v for p in parts for k, v in p["properties"].items()},
        }

    def wrong(self, value, schema, where="answer"):
        """What is wrong with it, None = nothing."""
        schema = self.resolve(schema)
        unknown = set(schema) - self.KEYWORDS
        if unknown:
            return "%s: keyword %s is not understood by this test" % (where, unknown)
        if "anyOf" in schema:
            found = [self.wrong(value, s, where) for s in schema["anyOf"]]
            return None if None in found else found[0]
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        if types and not any(is_type(value, t) for t in types):
            return "%s: %r is none of %s" % (where, value, " ".join(types))
        if "enum" in schema and value not in schema["enum"]:
            return "%s: %r is none of %s" % (where, value, schema["enum"])
        if isinstance(value, str):
            if not re.search(schema.get("pattern", ""), value):
                return "%s: %r does not match %s" % (where, value, schema["pattern"])
            if schema.get("format") == "date-time" and not is_time(value):
                return "%s: %r is no time" % (where, value)
        if isinstance(value, list):
            return next(
                (
                    w
                    for i, v in enumerate(value)
                    if (w := self.wrong(v, schema.get("items", {}), "%s[%d]" % (where, i)))
                ),
                None,
            )
        return (
            self.wrong_object(value, schema, where)
            if isinstance(value, dict) and "properties" in schema
            else None
        )

    def wrong_object(self, value, schema, where):
        missing = set(schema.get("required", [])) - set(value)
        more = set(value) - set(schema["properties"])
        if missing or more:
            return "%s: %s" % (
                where,
                ", ".join(
                    ["%s is missing" % k for k in sorted(missing)]
                    + ["no schema names %s" % k for k in sorted(more)]
                ),
            )
        return next(
            (
                w
                for k, v in value.items()
                if (w := self.wrong(v, schema["properties"][k], "%s.%s" % (where, k)))
            ),
            None,
        )

    def check(self, method, url, answer):
        """(route, what is wrong, None = nothing) of an answer that has a schema; (None, None) of
        any other."""
        path, _, query = url.partition("?")
        found = [
            (route, op)
            for m, pattern, route, op in self.routes
            if m == method and pattern.match(path)
        ]
        kind = answer.headers.get("content-type", "").partition(";")[0]
        if not found or not 200 <= answer.status < 600:
            return None, None
        route, op = found[0]
        told = op["responses"]["2XX" if answer.status < 300 else "default"]["content"]
        schema = told.get(kind, {}).get("schema")
        if schema is None:
            return None, None
        if answer.status < 300 and "anyOf" in schema:
            other = schema["anyOf"][1]["description"].partition(" ")[2].partition("=")[0]
            schema = schema["anyOf"][other + "=" in query]
        wrong = self.wrong(json.loads(answer.body), schema)
        return (
            method,
            route,
        ) if answer.status < 300 else None, wrong and "%s %s answers %d: %s" % (
            method,
            url,
            answer.status,
            wrong,
        )
