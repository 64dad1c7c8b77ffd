/* Description -> JSON schema. A field that is left out while unknown is not required, and never
 * null; any other may be null where its kind can be unknown. */
#include "lib/wire/schema.h"

#include <string.h>

#include "lib/wire/encode.h"

void wire_schemas_add(struct wire_schemas *s, const struct mo_desc *d)
{
	for (size_t i = 0; i < s->n_items; i++)
		if (s->items[i] == d)
			return;
	*MO_GROW(s->items, s->n_items) = d;
	wire_schemas_add_parts(s, d);
}

void wire_schemas_add_parts(struct wire_schemas *s, const struct mo_desc *d)
{
	for (size_t i = 0; i < d->n_fields; i++)
		if (d->fields[i].sub)
			wire_schemas_add(s, d->fields[i].sub);
}

/* job_view -> Job, gpu_slot -> GpuSlot */
static void schema_name(const struct mo_desc *d, struct mo_buf *b)
{
	const char *p = d->name, *end = p + strlen(p);
	bool first = true;

	if (end - p > 5 && strcmp(end - 5, "_view") == 0)
		end -= 5;
	for (; p < end; p++) {
		char c = first && *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p;

		first = *p == '_';
		if (!first)
			mo_buf_add(b, &c, 1);
	}
}

void wire_schema_ref(const struct mo_desc *d, struct mo_buf *b)
{
	mo_buf_str(b, "{\"$ref\":\"#/components/schemas/");
	schema_name(d, b);
	mo_buf_str(b, "\"}");
}

/* "type":NAME, or with null where an unknown one is written as null. */
static void type(const struct mo_field *f, const char *name, struct mo_buf *b)
{
	mo_buf_printf(b, f->omit ? "\"type\":\"%s\"" : "\"type\":[\"%s\",\"null\"]", name);
}

static void enumeration(const struct mo_field *f, struct mo_buf *b)
{
	type(f, "string", b);
	mo_buf_str(b, ",\"enum\":[");
	for (size_t i = 0; i < f->n_names; i++) {
		mo_buf_str(b, i ? "," : "");
		wire_string(f->names[i], b);
	}
	mo_buf_str(b, f->omit ? "]" : ",null]");
}

/* A sub object, NULL allowed unless it is in place or left out. */
static void object(const struct mo_field *f, struct mo_buf *b)
{
	mo_buf_str(b, "\"anyOf\":[");
	wire_schema_ref(f->sub, b);
	mo_buf_str(b, f->kind == MO_STRUCT || f->omit ? "]" : ",{\"type\":\"null\"}]");
}

/* The pattern is for texts alone. */
static void real(bool may_be_null, struct mo_buf *b)
{
	mo_buf_printf(b,
		      "\"type\":[\"number\",\"string\"%s],"
		      "\"pattern\":\"^(NaN|-?Infinity)$\"",
		      may_be_null ? ",\"null\"" : "");
}

static void list(const struct mo_field *f, struct mo_buf *b)
{
	mo_buf_str(b, "\"type\":\"array\",\"items\":");
	switch (f->kind) {
	case MO_VEC: wire_schema_ref(f->sub, b); break;
	case MO_STRS: mo_buf_str(b, "{\"type\":\"string\"}"); break;
	case MO_REALS:
		mo_buf_str(b, "{");
		real(true, b);
		mo_buf_str(b, "}");
		break;
	default: mo_buf_str(b, "{\"type\":[\"integer\",\"null\"]}");
	}
}

static void value(const struct mo_field *f, struct mo_buf *b)
{
	switch (f->kind) {
	case MO_BOOL: mo_buf_str(b, "\"type\":\"boolean\""); break;
	case MO_TRI: type(f, "boolean", b); break;
	case MO_INT: type(f, "integer", b); break;
	case MO_ID:
		type(f, "string", b);
		mo_buf_printf(b, ",\"pattern\":\"^%s-[0-9]+$\"", f->names[0]);
		break;
	case MO_TIME:
		type(f, "string", b);
		mo_buf_str(b, ",\"format\":\"date-time\"");
		break;
	case MO_REAL: real(!f->omit, b); break;
	case MO_STR: type(f, "string", b); break;
	case MO_ENUM: enumeration(f, b); break;
	case MO_STRUCT:
	case MO_OPT: object(f, b); break;
	case MO_VEC:
	case MO_STRS:
	case MO_INTS:
	case MO_REALS: list(f, b); break;
	case MO_RAWJSON: mo_buf_str(b, "\"type\":[\"object\",\"null\"]"); break;
	}
}

/* A struct in place is always written (encode.c). */
static bool required(const struct mo_field *f)
{
	return !f->omit || f->kind == MO_STRUCT;
}

static void properties(const struct mo_desc *d, struct mo_buf *b)
{
	mo_buf_str(b, "\"properties\":{");
	for (size_t i = 0; i < d->n_fields; i++) {
		const struct mo_field *f = &d->fields[i];

		mo_buf_printf(b, "%s\"%s\":{", i ? "," : "", f->name);
		value(f, b);
		mo_buf_str(b, ",\"description\":");
		wire_string(mo_field_doc(f), b);
		mo_buf_str(b, "}");
	}
	mo_buf_str(b, "}");
}

void wire_schema_body(const struct mo_desc *d, struct mo_buf *b)
{
	mo_buf_str(b, "{\"type\":\"object\",\"additionalProperties\":false,");
	properties(d, b);
	mo_buf_str(b, "}");
}

static void written(const struct mo_desc *d, struct mo_buf *b)
{
	const char *separator = "";

	mo_buf_str(b, "\"type\":\"object\",\"required\":[");
	for (size_t i = 0; i < d->n_fields; i++)
		if (required(&d->fields[i])) {
			mo_buf_printf(b, "%s\"%s\"", separator, d->fields[i].name);
			separator = ",";
		}
	mo_buf_str(b, "],");
	properties(d, b);
}

void wire_schemas_write(const struct wire_schemas *s, struct mo_buf *b)
{
	for (size_t i = 0; i < s->n_items; i++) {
		mo_buf_str(b, i ? ",\"" : "\"");
		schema_name(s->items[i], b);
		mo_buf_str(b, "\":{");
		written(s->items[i], b);
		mo_buf_str(b, "}");
	}
}
