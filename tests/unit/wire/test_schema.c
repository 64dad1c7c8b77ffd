/* Schemas of described structs: each kind, what is left out, and that a row without a clause has
 * none. */
#include "tests/unit/unit.h"

#include <string.h>

#include "lib/wire/schema.h"

struct part_view {
	int64_t n;
};
static const struct mo_field part_fields[] = { MO_F(part_view, n, MO_INT) };
static const struct mo_desc part_desc = MO_DESC(part_view, part_fields);
struct whole_thing {
	int state;
	int64_t id, time, number;
	double real;
	char *text;
	struct part_view *part;
	char **words;
	size_t n_words;
	struct part_view *parts;
	size_t n_parts;
};
static const char *const states[] = { "up", "down" };
static const char *const prefix[1] = { "x" };
static const struct mo_field whole_fields[] = {
	MO_D_ENUM(whole_thing, state, states, "what it does"),
	MO_D_ID(whole_thing, id, prefix, "its \"id\""),
	MO_D(whole_thing, time, MO_TIME, "when", .omit = true),
	MO_DN(whole_thing, number, "count", MO_INT, "2 digits", .most = 99),
	MO_D(whole_thing, real, MO_REAL, ""),
	MO_F(whole_thing, text, MO_STR),
	MO_D_SUB(whole_thing, part, MO_OPT, &part_desc, "a part"),
	MO_D_LIST(whole_thing, words, MO_STRS, "words"),
	MO_D_VEC(whole_thing, parts, &part_desc, "parts", .omit = true),
};
static const struct mo_desc whole_desc = MO_DESC(whole_thing, whole_fields);

static void test_clauses(void **state)
{
	assert_string_equal(whole_fields[3].name, "count");
	assert_string_equal(mo_field_doc(&whole_fields[3]), "2 digits");
	assert_string_equal(mo_field_doc(&whole_fields[5]), "");
	assert_int_equal(whole_fields[8].count_offset, offsetof(struct whole_thing, n_parts));
	assert_int_equal(whole_fields[3].most, 99);
}

static void test_text(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct wire_schemas all = { 0 };

	wire_schemas_add(&all, &whole_desc);
	wire_schemas_add(&all, &part_desc);
	assert_int_equal(all.n_items, 2);
	wire_schemas_write(&all, &b);
	free(all.items);
	assert_string_equal(b.data,
			    "\"WholeThing\":{\"type\":\"object\",\"required\":[\"state\",\"id\","
			    "\"count\",\"real\",\"text\",\"part\",\"words\"],\"properties\":{"
			    "\"state\":{\"type\":[\"string\",\"null\"],\"enum\":[\"up\",\"down\","
			    "null],\"description\":\"what it does\"},"
			    "\"id\":{\"type\":[\"string\",\"null\"],\"pattern\":\"^x-[0-9]+$\","
			    "\"description\":\"its \\\"id\\\"\"},"
			    "\"time\":{\"type\":\"string\",\"format\":\"date-time\","
			    "\"description\":\"when\"},"
			    "\"count\":{\"type\":[\"integer\",\"null\"],\"description\":\"2 "
			    "digits\"},"
			    "\"real\":{\"type\":[\"number\",\"string\",\"null\"],\"pattern\":\"^("
			    "NaN|-?Infinity)$\",\"description\":\"\"},"
			    "\"text\":{\"type\":[\"string\",\"null\"],\"description\":\"\"},"
			    "\"part\":{\"anyOf\":[{\"$ref\":\"#/components/schemas/"
			    "Part\"},{\"type\":\"null\"}],\"description\":\"a part\"},"
			    "\"words\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},"
			    "\"description\":\"words\"},"
			    "\"parts\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/"
			    "schemas/Part\"},\"description\":\"parts\"}}},"
			    "\"Part\":{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{"
			    "\"n\":{\"type\":[\"integer\",\"null\"],\"description\":\"\"}}}");
}

static void test_body(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct wire_schemas all = { 0 };

	wire_schema_body(&part_desc, &b);
	assert_string_equal(b.data,
			    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
			    "\"n\":{\"type\":[\"integer\",\"null\"],\"description\":\"\"}}}");
	wire_schemas_add_parts(&all, &whole_desc);
	assert_int_equal(all.n_items, 1);
	assert_ptr_equal(all.items[0], &part_desc);
	free(all.items);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_clauses),
					    cmocka_unit_test(test_text),
					    cmocka_unit_test(test_body) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
