/* lib/wire/direct.c against the tree: what it takes the tree takes too, as the same struct; and it
 * takes what wire_encode() writes of a beat. */
#include "tests/unit/unit.h"

#include <json-c/json.h>
#include <string.h>

#include "lib/model/recipe.h"
#include "lib/model/launch.h"
#include "lib/model/message.h"
#include "lib/wire/decode.h"
#include "lib/wire/direct.h"
#include "lib/wire/encode.h"
#include "lib/wire/parse.h"

#define AT(type, obj, f) ((type *)((char *)(obj) + (f)->offset))

static void fill(const struct mo_desc *d, void *obj, int depth);

static void fill_list(const struct mo_field *f, void *obj, int depth)
{
	size_t *n = (size_t *)((char *)obj + f->count_offset);

	for (int64_t i = 0; i < 2; i++) {
		if (f->kind == MO_VEC)
			fill(f->sub, mo_vec_append(f, obj), depth - 1);
		else if (f->kind == MO_INTS)
			mo_ints_add(AT(int64_t *, obj, f), n, i * 1000);
		else if (f->kind == MO_REALS)
			mo_reals_add(AT(double *, obj, f), n, i ? 0.5 : MO_NONE_F);
		else
			mo_strs_add(AT(char **, obj, f), n, i ? "a\t\"b\"\\\n" : NULL);
	}
}

/* Something in each field. */
static void fill(const struct mo_desc *d, void *obj, int depth)
{
	for (size_t i = 0; i < d->n_fields && depth > 0; i++) {
		const struct mo_field *f = &d->fields[i];
		int64_t number = f->least ? f->least : (int64_t)i * 12345 + 1;

		switch (f->kind) {
		case MO_BOOL: *AT(bool, obj, f) = i % 2; break;
		case MO_TRI: *AT(int8_t, obj, f) = (int8_t)(i % 2); break;
		case MO_INT:
		case MO_ID: *AT(int64_t, obj, f) = number; break;
		case MO_TIME: *AT(int64_t, obj, f) = INT64_C(1795249850123456); break;
		case MO_REAL: *AT(double, obj, f) = 1.0 / (double)(i + 3); break;
		case MO_STR: mo_str_set(AT(char *, obj, f), "text, t\xc3\xa9xt"); break;
		case MO_ENUM: *AT(int, obj, f) = f->n_names - 1; break;
		case MO_STRUCT: fill(f->sub, AT(void, obj, f), depth - 1); break;
		case MO_OPT:
			*AT(void *, obj, f) = mo_desc_new(f->sub);
			fill(f->sub, *AT(void *, obj, f), depth - 1);
			break;
		case MO_VEC:
		case MO_STRS:
		case MO_INTS:
		case MO_REALS: fill_list(f, obj, depth); break;
		case MO_RAWJSON: break;
		}
	}
}

static bool by_tree(const struct mo_desc *d, const char *text, size_t n, bool strict, void *obj)
{
	struct json_object *json = NULL;
	int r = wire_parse(text, n, &json, NULL);

	if (r == 0)
		r = wire_from_json(d, json, strict, obj, NULL);
	json_object_put(json);
	return r == 0;
}

/* Whether it was taken directly. */
static bool agree(const struct mo_desc *d, const char *text, size_t n, bool strict)
{
	void *a = mo_desc_new(d), *b = mo_desc_new(d);
	bool taken = wire_direct(d, text, n, strict, a);

	if (taken && (!by_tree(d, text, n, strict, b) || !mo_desc_equal(d, a, b)))
		fail_msg("of %s: %.*s", d->name, (int)n, text);
	mo_desc_free(d, a);
	mo_desc_free(d, b);
	return taken;
}

static void text_of(const struct mo_desc *d, int depth, struct mo_buf *ret)
{
	void *obj = mo_desc_new(d);

	fill(d, obj, depth);
	wire_encode(d, obj, ret);
	mo_desc_free(d, obj);
}

static const struct mo_desc *const descs[] = { &agent_sync_desc, &agent_hello_desc, &note_desc,
					       &sync_reply_desc, &launch_desc,      &recipe_desc };

static void what_is_written_is_taken(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(descs); i++)
		for (int depth = 0; depth < 5; depth++) {
			_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

			text_of(descs[i], depth, &b);
			if (!agree(descs[i], b.data, b.len, i % 2))
				fail_msg("%s is not taken: %s", descs[i]->name, b.data);
		}
}

/* One byte is another one, is left out, or is there in addition. */
static void agree_changed(const struct mo_desc *d, const struct mo_buf *b, size_t at, char c)
{
	_cleanup_(mo_freep) char *copy = mo_alloc(b->len + 1);
	bool strict = at % 2;

	memcpy(copy, b->data, b->len);
	copy[at] = c;
	agree(d, copy, b->len, strict);
	memmove(copy + at + 1, b->data + at, b->len - at);
	agree(d, copy, b->len + 1, strict);
	memcpy(copy + at, b->data + at + 1, b->len - at - 1);
	agree(d, copy, b->len - 1, strict);
	agree(d, b->data, at, strict);
}

static void what_is_changed_is_the_same_to_both(void **state)
{
	static const char bytes[] = "\"\\{}[]:,-+.eE019 \n\x01\x7f\x80nutfaNI";
	uint32_t chance = 1;

	for (size_t i = 0; i < ELEMENTSOF(descs); i++) {
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

		text_of(descs[i], 3, &b);
		for (int k = 0; k < 1000; k++) {
			chance = chance * 1664525 + 1013904223;
			size_t at = (chance >> 8) % b.len;
			chance = chance * 1664525 + 1013904223;
			agree_changed(descs[i], &b, at, bytes[(chance >> 8) % (sizeof(bytes) - 1)]);
		}
	}
}

static void what_is_odd_is_left_to_the_tree(void **state)
{
	static const char *const odd[] = {
		"",
		"{",
		"{}{}",
		"{} ",
		" {}",
		"{\"beat\":1,}",
		"{\"beat\": 1}",
		"{\"beat\":1,\"beat\":1}",
		"{\"beat\":1,\"beats\":1}",
		"{\"bea\":1}",
		"{\"beat\":-0}",
		"{\"beat\":01}",
		"{\"beat\":-}",
		"{\"beat\":+1}",
		"{\"beat\":1.0}",
		"{\"beat\":1e3}",
		"{\"beat\":1234567890123456789}",
		"{\"beat\":\"1\"}",
		"{\"node\":\"a\\u0062\"}",
		"{\"node\":\"a\xc3\"}",
		"{\"node\":\"a\xc3\xa9",
		"{\"node\":\"a\\x\"}",
		"{\"node\":\"a\\\"}",
		"{\"node\":\"a\\",
		"{\"node\":\"a\n\"}",
		"{\"node\":1}",
		"{\"motion\":1}",
		"{\"steps\":[{}]",
		"{\"steps\":[{},]}",
		"{\"steps\":[null]}",
		"{\"steps\":{}}",
		"{\"steps\":[{\"state\":\"flying\"}]}",
		"{\"steps\":[{\"notes\":[{\"sample\":{\"loss\":\"NaN\"}}]}]}",
		"{\"steps\":[{\"notes\":[{\"sample\":{\"loss\":-0.0}}]}]}",
		"{\"steps\":[{\"notes\":[{\"sample\":{\"loss\":1e999}}]}]}",
	};

	for (size_t i = 0; i < ELEMENTSOF(odd); i++)
		assert_false(agree(&agent_sync_desc, odd[i], strlen(odd[i]), i % 2));
	assert_true(agree(&agent_sync_desc, "{\"beat\":-1,\"node\":null}", 23, true));
}

static void strings_are_read_as_the_tree_does(void **state)
{
	static const char text[] =
		"{\"node\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t \xc3\xa9 \xe2\x82\xac\",\"boot_id\":\"\"}";
	struct agent_sync s;

	assert_true(agree(&agent_sync_desc, text, strlen(text), true));
	mo_desc_init(&agent_sync_desc, &s);
	assert_true(wire_direct(&agent_sync_desc, text, strlen(text), true, &s));
	assert_string_equal(s.node, "\"\\/\b\f\n\r\t \xc3\xa9 \xe2\x82\xac");
	assert_string_equal(s.boot_id, "");
	mo_desc_done(&agent_sync_desc, &s);
}

static void one_is_read_of_several(void **state)
{
	static const char text[] = "{\"beat\":7},{\"beat\":8}]";
	struct agent_sync s;
	size_t n = 0;

	mo_desc_init(&agent_sync_desc, &s);
	assert_true(wire_direct_next(&agent_sync_desc, text, strlen(text), &s, &n));
	assert_int_equal(s.beat, 7);
	assert_int_equal(n, 10);
	assert_false(wire_direct_next(&agent_sync_desc, text, 9, &s, &n));
	mo_desc_done(&agent_sync_desc, &s);
}

/* Of strict input no more than its row allows. */
static void what_is_too_much_is_left_to_the_tree(void **state)
{
	static const struct mo_field fields[] = {
		{ .name = "s", .kind = MO_STR, .max = 3 },
		{ .name = "l", .kind = MO_INTS, .max = 3, .offset = 8, .count_offset = 16 },
	};
	static const struct mo_desc d = {
		.name = "small", .size = 24, .fields = fields, .n_fields = 2
	};
	static const struct {
		const char *text;
		bool strict, taken;
	} cases[] = {
		{ "{\"s\":\"abc\",\"l\":[1,2,3]}", true, true },
		{ "{\"s\":\"abcd\"}", true, false },
		{ "{\"s\":\"abcd\"}", false, true },
		{ "{\"l\":[1,2,3,4]}", true, false },
		{ "{\"l\":[1,2,3,4]}", false, true },
		{ "{\"l\":[1,null]}", false, true },
		{ "{\"l\":[1,null]}", true, false },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		assert_int_equal(agree(&d, cases[i].text, strlen(cases[i].text), cases[i].strict),
				 cases[i].taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_taken),
		cmocka_unit_test(what_is_changed_is_the_same_to_both),
		cmocka_unit_test(what_is_odd_is_left_to_the_tree),
		cmocka_unit_test(strings_are_read_as_the_tree_does),
		cmocka_unit_test(one_is_read_of_several),
		cmocka_unit_test(what_is_too_much_is_left_to_the_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
