/* GET /openapi.json: made from the route table, so it cannot differ from what is served. x-role
 * is the least role of a route; "none" needs no credential. */
#include "daemon/api_openapi.h"

#include <stdlib.h>
#include <string.h>
#include "daemon/api_routes.h"
#include "daemon/manager.h"
#include "lib/recipe/recipe_schema.h"
#include "lib/wire/encode.h"
#include "lib/wire/schema.h"

/* Query values that are numbers; all others are texts. */
static bool is_number(const char *name, size_t n)
{
	static const char *const numbers[] = {
		"limit", "last", "since", "rank",   "attempt",
		"lines", "gpus", "top",   "points", "Last-Event-ID"
	};

	for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
		if (strlen(numbers[i]) == n && memcmp(numbers[i], name, n) == 0)
			return true;
	return false;
}

/* "{id}" and "{name}" of the path, then the query string and headers. */
static void parameters(const struct api_route *a, struct mo_buf *b)
{
	const char *separator = "";

	mo_buf_str(b, ",\"parameters\":[");
	for (const char *p = a->route.path; (p = strchr(p, '{')); p++) {
		mo_buf_printf(b,
			      "%s{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":{"
			      "\"type\":\"string\"}}",
			      separator, (int)strcspn(p + 1, "}"), p + 1);
		separator = ",";
	}
	for (const char *p = a->query; p && *p;) {
		size_t n = strcspn(p, " ");
		mo_buf_printf(b, "%s{\"name\":\"%.*s\",\"in\":\"%s\",\"schema\":{\"type\":\"%s\"}}",
			      separator, (int)n, p, *p >= 'A' && *p <= 'Z' ? "header" : "query",
			      is_number(p, n) ? "integer" : "string");
		separator = ",";
		p += n + strspn(p + n, " ");
	}
	mo_buf_str(b, "]");
}

/* A list document: items, next, and what is said beside them. */
static void list_schema(const struct api_route *a, struct mo_buf *b)
{
	mo_buf_str(b, "{\"type\":\"object\",\"required\":[\"items\",\"next\"],\"properties\":{"
		      "\"items\":{\"type\":\"array\",\"items\":");
	wire_schema_ref(a->answer, b);
	mo_buf_str(b, "},\"next\":{\"type\":[\"string\",\"integer\",\"null\"],\"description\":"
		      "\"`after` of the next question; null at the end\"},\"earlier\":{\"type\":"
		      "\"integer\",\"description\":\"with last=: how many stand before them\"}}}");
}

/* What a success answers. */
static void answer(const struct api_route *a, struct mo_buf *b)
{
	mo_buf_printf(b, "\"2XX\":{\"description\":\"done\",\"content\":{\"%s\":{",
		      a->media ? a->media : "application/json");
	if (!a->answer) {
		mo_buf_str(b, "}}}");
		return;
	}
	mo_buf_str(b, "\"schema\":");
	if (a->other)
		mo_buf_str(b, "{\"anyOf\":[");
	if (a->beside)
		mo_buf_str(b, "{\"allOf\":[");
	if (a->list)
		list_schema(a, b);
	else
		wire_schema_ref(a->answer, b);
	if (a->beside) {
		mo_buf_str(b, ",");
		wire_schema_ref(a->beside, b);
		mo_buf_str(b, "]}");
	}
	if (a->other_answer) {
		mo_buf_str(b, ",{\"allOf\":[");
		wire_schema_ref(a->other_answer, b);
		mo_buf_printf(b, "],\"description\":\"with %s=N\"}]}", a->other);
	} else if (a->other)
		mo_buf_printf(b, ",{\"type\":\"object\",\"description\":\"with %s=1\"}]}",
			      a->other);
	mo_buf_str(b, "}}}");
}

static void schemas(struct mo_buf *b)
{
	struct wire_schemas all = { 0 };

	for (size_t i = 0; i < n_api_routes; i++) {
		if (api_routes[i].body)
			wire_schemas_add_parts(&all, api_routes[i].body);
		if (api_routes[i].answer)
			wire_schemas_add(&all, api_routes[i].answer);
		if (api_routes[i].beside)
			wire_schemas_add(&all, api_routes[i].beside);
		if (api_routes[i].other_answer)
			wire_schemas_add(&all, api_routes[i].other_answer);
	}
	wire_schemas_write(&all, b);
	free(all.items);
}

static void request_body(const struct api_route *a, struct mo_buf *b)
{
	mo_buf_str(b, ",\"requestBody\":{\"content\":{\"application/json\":{\"schema\":");
	if (a->body)
		wire_schema_body(a->body, b);
	else
		mo_buf_str(b, "{\"type\":\"object\"}");
	mo_buf_str(b, a->route.yaml ? "},\"application/yaml\":{\"schema\":{\"type\":\"object\"}}}}"
				    : "}}}");
}

static void operation(const struct api_route *a, struct mo_buf *b)
{
	const struct http_route *route = &a->route;
	_cleanup_(mo_freep) char *method = mo_strdup(route->method);

	for (char *p = method; *p; p++)
		*p = (char)(*p | 32);
	mo_buf_printf(b, "\"%s\":{\"summary\":", method);
	wire_string(a->summary, b);
	mo_buf_printf(b, ",\"tags\":[\"%s\"],\"x-role\":\"%s\",\"x-max-body\":%zu", a->tag,
		      role_names[route->role], route->max_body);
	if (route->role == ROLE_NONE)
		mo_buf_str(b, ",\"security\":[]");
	parameters(a, b);
	if (route->max_body)
		request_body(a, b);
	mo_buf_str(b, ",\"responses\":{");
	answer(a, b);
	mo_buf_str(b, ",\"default\":{\"description\":\"what, why, what to "
		      "do\",\"content\":{\"application/problem+json\":{\"schema\":{\"$ref\":\"#/"
		      "components/schemas/Problem\"}}}}}}");
}

static void paths(struct mo_buf *b)
{
	for (size_t i = 0; i < n_api_routes; i++) {
		const char *path = api_routes[i].route.path;
		bool seen = false;
		for (size_t k = 0; k < i; k++)
			seen |= strcmp(api_routes[k].route.path, path) == 0;
		if (seen)
			continue;
		mo_buf_printf(b, "%s\"%s\":{", i ? "," : "", path);
		bool first = true;
		for (size_t k = i; k < n_api_routes; k++)
			if (strcmp(api_routes[k].route.path, path) == 0) {
				mo_buf_str(b, first ? "" : ",");
				first = false;
				operation(&api_routes[k], b);
			}
		mo_buf_str(b, "}");
	}
}

static void document(struct mo_buf *b)
{
	mo_buf_str(b,
		   "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"moectl\",\"version\":\"" MO_VERSION
		   "\",\"description\":\"Controller of large Mixture-of-Experts training. Lists: "
		   "items and next; limit up to 1000; after = next. Unknown values are null, times "
		   "RFC 3339 UTC.\"},\"security\":[{\"bearer\":[]},{\"session\":[]}],\"paths\":{");
	paths(b);
	mo_buf_str(b, "},\"components\":{\"securitySchemes\":{\"bearer\":{\"type\":\"http\","
		      "\"scheme\":\"bearer\"},\"session\":{\"type\":\"apiKey\",\"in\":\"cookie\","
		      "\"name\":\"moe_session\"}},\"schemas\":{");
	schemas(b);
	mo_buf_str(b, ",\"Problem\":{\"type\":\"object\","
		      "\"required\":[\"type\",\"title\",\"status\"],\"properties\":{\"type\":{"
		      "\"type\":\"string\"},\"title\":{\"type\":\"string\"},\"status\":{\"type\":"
		      "\"integer\"},\"detail\":{\"type\":\"string\"},\"errors\":{\"type\":"
		      "\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"line\":{"
		      "\"type\":\"integer\"},\"column\":{\"type\":\"integer\"},\"message\":{"
		      "\"type\":\"string\"},\"hint\":{\"type\":[\"string\",\"null\"]}}}}}}}}}");
}

/* Written once: whoever has no credential may ask as often as he likes. */
void api_openapi(void *arg, struct http_request *r)
{
	struct mo_buf *b = &((struct manager *)arg)->openapi;

	if (!b->len)
		document(b);
	http_reply(r, 200, "application/json", b->data, b->len,
		   (const char *const[]){ "Cache-Control: no-cache", NULL });
}

void api_schema_recipe(void *arg, struct http_request *r)
{
	struct mo_buf *b = &((struct manager *)arg)->recipe_schema;

	if (!b->len)
		recipe_schema(b);
	http_reply(r, 200, "application/json", b->data, b->len,
		   (const char *const[]){ "Cache-Control: no-cache", NULL });
}
