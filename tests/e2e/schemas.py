"""Answers of the REST interface against the schemas of /openapi.json, in all end-to-end tests: the
rigs show each answer here, and a suite fails with the test that got a wrong one. Stricter than the
schemas in one thing: a member that none of them names is wrong."""
import json
import re
from datetime import datetime
from types import SimpleNamespace

try:
    import jsonschema
except ModuleNotFoundError:  # in tests/numavm, whose machine has python's own modules alone
    jsonschema = None


def is_time(text):
    """RFC 3339 with milliseconds, in UTC: as all of ours are."""
    return not isinstance(text, str) or bool(datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ"))


if jsonschema:
    FORMATS = jsonschema.FormatChecker(formats=())
    FORMATS.checks("date-time", raises=ValueError)(is_time)


class Schemas:
    """Of one controller's description."""

    def __init__(self, openapi):
        self.named, self.validators = openapi["components"]["schemas"], {}
        for schema in self.named.values():
            self.close(schema)
        self.routes = [
            (method.upper(), re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "$"), path, op)
            for path, ops in openapi["paths"].items()
            for method, op in ops.items()
        ]

    def close(self, schema):
        """References become what they lead to, parts of a whole one object, and objects of which
        the members are told have no others."""
        for key, value in schema.items():
            if isinstance(value, dict):
                schema[key] = self.closed(value)
            elif key in ("anyOf", "allOf"):
                schema[key] = [self.closed(s) for s in value]
        if "allOf" in schema:
            for part in schema.pop("allOf"):
                schema.setdefault("required", []).extend(part.get("required", []))
                schema.setdefault("properties", {}).update(part["properties"])
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)

    def closed(self, schema):
        if "$ref" in schema:
            return self.named[schema["$ref"].rpartition("/")[2]]
        self.close(schema)
        return schema

    def validator(self, op, status, kind, query):
        """Of what the route answers so; None: it does not say."""
        told = "2XX" if status < 300 else "default"
        schema = op["responses"][told]["content"].get(kind, {}).get("schema")
        if schema is None:
            return None
        if status < 300 and "anyOf" in schema:
            other = schema["anyOf"][1]["description"].partition(" ")[2].partition("=")[0]
            schema = schema["anyOf"][other + "=" in query]
        if id(schema) not in self.validators:
            self.validators[id(schema)] = jsonschema.Draft202012Validator(
                self.closed(schema), format_checker=FORMATS
            )
        return self.validators[id(schema)]

    def check(self, method, url, answer):
        """(route, what is wrong, None = nothing) of an answer that has a schema; (None, None) of
        any other."""
        path, _, query = url.partition("?")
        found = [(route, op) for m, p, route, op in self.routes if m == method and p.match(path)]
        if not found or not 200 <= answer.status < 600:
            served = path.startswith("/v1/") and answer.status < 400 and method != "HEAD"
            return None, "%s %s answers, and is not described" % (method, path) if served else None
        route, op = found[0]
        kind = answer.headers.get("content-type", "").partition(";")[0]
        validator = self.validator(op, answer.status, kind, query)
        if validator is None:
            return None, None
        wrong = jsonschema.exceptions.best_match(validator.iter_errors(json.loads(answer.body)))
        return (method, route) if answer.status < 300 else None, wrong and (
            "%s %s answers %d: %s: %s"
            % (method, url, answer.status, wrong.json_path, wrong.message[:1000])
        )


class Watch:
    """What the controllers of a test program answered. They are of one build: one description."""

    schemas, wrong = None, []

    @classmethod
    def learn(cls, ask):
        """ask() is the description; asked for once."""
        if jsonschema:
            cls.schemas = cls.schemas or Schemas(ask())

    @classmethod
    def show(cls, method, url, answer):
        found = cls.schemas and cls.schemas.check(method, url, answer)[1]
        if found:
            cls.wrong.append(found)

    @classmethod
    def show_document(cls, path, document):
        """What a program printed of a GET of path."""
        told = {"content-type": "application/json"}
        answer = SimpleNamespace(status=200, headers=told, body=json.dumps(document))
        cls.show("GET", path, answer)

    @classmethod
    def take(cls):
        """What was wrong since the last call."""
        wrong, cls.wrong = cls.wrong, []
        return wrong
