/* JSON schema of described structs: what wire_encode() writes of them. OpenAPI 3.1 takes it. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/desc.h"

/* Descriptions that documents need, each once. Borrowed; free items. */
struct wire_schemas {
	const struct mo_desc **items;
	size_t n_items;
};
/* d and all that stand in it. */
void wire_schemas_add(struct wire_schemas *s, const struct mo_desc *d);
/* Those alone. */
void wire_schemas_add_parts(struct wire_schemas *s, const struct mo_desc *d);
/* "NAME":{...},... of all, as components/schemas has them. */
void wire_schemas_write(const struct wire_schemas *s, struct mo_buf *b);
/* {"$ref":...} */
void wire_schema_ref(const struct mo_desc *d, struct mo_buf *b);
/* {...} of what wire_decode() takes, strict: a key may be missing, and none may be added. Its parts
 * must be among the schemas that are written. */
void wire_schema_body(const struct mo_desc *d, struct mo_buf *b);
