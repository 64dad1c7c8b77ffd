/* Guards of the reader: size, encoding, depth, keys, aliases. Each limit is hit, and the last
 * allowed value passes where that is cheap to show. */
#include <string.h>

#include "lib/base/buf.h"
#include "lib/model/limits.h"
#include "lib/recipe/yaml.h"
#include "tests/unit/recipe/read.h"

static void expect(const char *text, size_t n, const char *expected)
{
	_cleanup_(parsed_done) struct parsed p = parse_n(text, n, NULL);
	_cleanup_(mo_freep) char *errors = errors_text(&p.errors);

	if (*expected ? !strstr(errors, expected) : *errors)
		fail_msg("expected: %s\n     got: %.500s", expected, errors);
}

static void test_size(void **state)
{
	_cleanup_(mo_freep) char *text = mo_alloc(MO_RECIPE_BYTES_MAX + 1);

	memset(text, '#', MO_RECIPE_BYTES_MAX + 1);
	expect(text, MO_RECIPE_BYTES_MAX + 1, "1:1 the recipe is larger than 262144 bytes");
	expect(text, MO_RECIPE_BYTES_MAX, "1:1 this is no recipe: it is empty");
}

static void test_encoding(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		const char *expected;
	} cases[] = {
		{ "recipe: 1\nname: a\xff\n", 20, "2:8 byte 0xff is not UTF-8 text" },
		{ "a: \xc3\xa9\xe9\n", 7, "1:5 byte 0xe9 is not UTF-8 text" },
		/* a surrogate */
		{ "a: \xed\xa0\x80\n", 7, "1:4 byte 0xed is not UTF-8 text" },
		/* an overlong slash */
		{ "a: \xc0\xaf\n", 6, "1:4 byte 0xc0 is not UTF-8 text" },
		/* cut short */
		{ "a: \xf0\x9f\x98", 6, "1:4 byte 0xf0 is not UTF-8 text" },
		{ "a: b\0c\n", 7, "1:5 byte 0x00 is not UTF-8 text" },
		{ "name: \"a\\0b\"\n", 13, "1:7 a text with a NUL byte" },
		/* a byte order mark is fine */
		{ "\xef\xbb\xbfrecipe: 2\n", 13, "1:9 recipe: this version reads format 1" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		expect(cases[i].text, cases[i].n, cases[i].expected);
}

static void test_depth(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (int i = 0; i < 1000; i++)
		mo_buf_str(&b, "[");
	expect(b.data, b.len, "nested deeper than 32 levels");
	mo_buf_reset(&b);
	for (int i = 0; i < 1000; i++)
		mo_buf_str(&b, "{a: ");
	expect(b.data, b.len, "nested deeper than 32 levels");
	mo_buf_reset(&b);
	for (int i = 0; i < 60000; i++)
		mo_buf_str(&b, "- ");
	expect(b.data, b.len, "nested deeper than 32 levels");
}

/* What libfyaml takes seconds for, or dies of, is refused by its first bytes; what only looks like
 * it passes. */
static void test_costly(void **state)
{
	static const struct {
		const char *head, *unit, *expected;
	} cases[] = {
		{ "", "%", "1:1 a directive (a line that begins with %)" },
		{ "\xef\xbb\xbf", "% a", "1:1 a directive" },
		{ "a: b\n", "%\n", "2:1 a directive" },
		{ "a: !b", "%20", "1:102 tags (!name)" },
		{ "{\"a\":!", "%20", "tags (!name)" },
		{ "{'a':'b'!", "%20", "tags (!name)" },
		{ "{b: ", "\n", "more than 512 blanks and empty lines in a row" },
		{ "- ", " \t", "more than 512 blanks and empty lines in a row" },
		{ "", "[{", "more than 1024 brackets are open" },
		{ "? a:\t|\n", "- ", "1:1 a '?' by itself" },
		{ "a:\n  - ? b\n", ":\t>\n", "2:5 a '?' by itself" },
		{ "{? a", ": b,", "1:2 a '?' by itself" },
	};
	_cleanup_(mo_freep) char *good =
		recipe_with("# why ? % 5\nenv: {A: \"5 %\", B: what?, C: a ?b, D: \"!5 %\"}\n");
	_cleanup_(parsed_done) struct parsed p = parse(good, NULL);

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

		for (mo_buf_str(&b, cases[i].head); b.len < 60000;)
			mo_buf_str(&b, cases[i].unit);
		expect(b.data, b.len, cases[i].expected);
	}
	assert_int_equal(p.errors.n, 0);
}

/* One mapping of n keys below env, which takes any. */
static void env_of(struct mo_buf *b, size_t n)
{
	_cleanup_(mo_freep) char *head = recipe_with("env:\n");

	mo_buf_reset(b);
	mo_buf_str(b, head);
	for (size_t i = 0; i < n; i++)
		mo_buf_printf(b, "  K%zu: v\n", i);
}

static void test_keys(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	env_of(&b, MO_RECIPE_KEYS_MAX);
	_cleanup_(parsed_done) struct parsed p = parse(b.data, NULL);

	assert_int_equal(p.errors.n, 0);
	assert_int_equal(p.recipe.n_env, MO_RECIPE_KEYS_MAX);
	env_of(&b, MO_RECIPE_KEYS_MAX + 1);
	expect(b.data, b.len, "518:3 more than 512 keys in one mapping");
	env_of(&b, 10000);
	expect(b.data, b.len, "518:3 more than 512 keys in one mapping");
	mo_buf_reset(&b);
	/* too large as a file: the size is checked first */
	for (int i = 0; i < 100000; i++)
		mo_buf_printf(&b, "k%d: v\n", i);
	expect(b.data, b.len, "larger than 262144 bytes");
	mo_buf_reset(&b);
	mo_buf_str(&b, "{");
	for (int i = 0; i < 12000; i++)
		mo_buf_printf(&b, "k%d: v,", i);
	expect(b.data, b.len, "more than 512 keys in one mapping");
}

static void test_alias_bomb(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_str(&b, "a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 10; i++)
		mo_buf_printf(&b,
			      "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
			      i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	expect(b.data, b.len,
	       "more than 20000 values after expanding aliases [an alias that contains aliases "
	       "multiplies]");
	mo_buf_reset(&b);
	mo_buf_str(&b, "m0: &m0 {a: 1, b: 2}\n");
	for (int i = 1; i < 40; i++)
		mo_buf_printf(&b, "m%d: &m%d {x: *m%d, y: *m%d, <<: *m%d}\n", i, i, i - 1, i - 1,
			      i - 1);
	expect(b.data, b.len, "more than 20000 values after expanding aliases");
}

static void test_merge_keeps_the_limit(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_str(&b, "x: &x {");
	for (int i = 0; i < 400; i++)
		mo_buf_printf(&b, "a%d: 1,", i);
	mo_buf_str(&b, "}\ny: &y {");
	for (int i = 0; i < 400; i++)
		mo_buf_printf(&b, "b%d: 1,", i);
	mo_buf_str(&b, "}\nz: {<<: [*x, *y]}\n");
	expect(b.data, b.len, "more than 512 keys in one mapping");
}

static void test_many_values(void **state)
{
	_cleanup_(mo_freep) char *head = recipe_with("cluster2: [");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_str(&b, head);
	for (int i = 0; i < 30000; i++)
		mo_buf_str(&b, "a,");
	mo_buf_str(&b, "]\n");
	expect(b.data, b.len, "more than 1024 values in one list");
	mo_buf_reset(&b);
	for (int list = 0; list < 40; list++) {
		mo_buf_str(&b, "- [a");
		for (int i = 0; i < 1000; i++)
			mo_buf_str(&b, ",a");
		mo_buf_str(&b, "]\n");
	}
	expect(b.data, b.len, "more than 20000 values");
}

static void test_many_anchors_and_texts(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (int i = 0; i <= MO_RECIPE_ANCHORS_MAX; i++)
		mo_buf_printf(&b, "- &a%d x\n", i);
	expect(b.data, b.len, "257:9 more than 256 anchors");
	mo_buf_reset(&b);
	mo_buf_str(&b, "- &a ");
	for (int i = 0; i < 20000; i++)
		mo_buf_str(&b, "x");
	mo_buf_str(&b, "\n");
	for (int i = 0; i < 1000; i++)
		mo_buf_str(&b, "- *a\n");
	expect(b.data, b.len,
	       "1048576 bytes of texts after expanding aliases [an alias repeats its text]");
}

static void test_long_text(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *head = recipe_with("env:\n  A: ");

	mo_buf_str(&b, head);
	for (int i = 0; i < 5000; i++)
		mo_buf_str(&b, "x");
	mo_buf_str(&b, "\n");
	expect(b.data, b.len, "6:6 env.A: longer than 4096 bytes");
}

/* Texts of many pieces: quotes, escapes, folded lines. (libfyaml leaks some of them when asked in
 * the wrong way: the sanitizers see it here.) */
static void test_texts_of_many_pieces(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *head = recipe_with("env:\n  A: '");

	mo_buf_str(&b, head);
	for (int i = 0; i < 500; i++)
		mo_buf_str(&b, "''");
	mo_buf_str(&b, "'\n  B: \"");
	for (int i = 0; i < 500; i++)
		mo_buf_str(&b, "\\n\\u00e9");
	mo_buf_str(&b, "\"\n  C: >-\n");
	for (int i = 0; i < 500; i++)
		mo_buf_str(&b, "    x\n");
	_cleanup_(parsed_done) struct parsed p = parse(b.data, NULL);

	assert_int_equal(p.errors.n, 0);
	assert_int_equal(strspn(p.recipe.env[0].value, "'"), 500);
	assert_int_equal(strlen(p.recipe.env[1].value), 1500);
	assert_int_equal(strlen(p.recipe.env[2].value), 999);
	assert_memory_equal(p.recipe.env[1].value, "\n\xc3\xa9\n", 4);
}

/* Every prefix of a real recipe is read without a crash, and with an error or a result. */
static void test_prefixes(void **state)
{
	static const char text[] =
		"recipe: 1\nname: \"t\\u00e9\"\nengine: {kind: torch, entry: &e /x, args: ['a', "
		"\"b\", |\n c\n]}\ncluster:\n  gpus: 8\nenv: {A: *e, <<: {B: 1}}\n# \xc3\xa9\n";

	for (size_t n = 0; n <= sizeof(text) - 1; n++) {
		struct parsed p = parse_n(text, n, NULL);

		parsed_done(&p);
	}
}

static void test_emit_reads_back(void **state)
{
	static const char text[] =
		"a: 1\nb: 'x: \"y\" \\ \xc3\xa9 '\nc: [1, {d: e}, [], {}]\nf: |\n  two\n  "
		"lines\n\"g h\": {i: ~, j: }\nk:\n- l\n- m: n\n  o: p\n";
	struct recipe_errors errors = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf one = { 0 }, two = { 0 };
	struct ynode *a = yaml_load(text, sizeof(text) - 1, "text", &errors), *b;

	assert_non_null(a);
	ynode_emit(a, &one);
	b = yaml_load(one.data, one.len, "text", &errors);
	if (!b)
		fail_msg("%s\n%s", errors.items[0].text, one.data);
	ynode_emit(b, &two);
	assert_string_equal(one.data, two.data);
	assert_string_equal(ynode_find(b, "f")->text, "two\nlines\n");
	assert_string_equal(ynode_find(b, "b")->text, "x: \"y\" \\ \xc3\xa9 ");
	assert_true(ynode_is_null(ynode_find(b, "g h.i")));
	assert_true(ynode_is_empty(ynode_find(b, "g h.j")));
	ynode_free(a);
	ynode_free(b);
}

/* What n words come to that name a value of 4,000 bytes so many times. */
static void expect_words(const char *where, const char *mark, int n, int times,
			 const char *expected)
{
	_cleanup_(mo_buf_done) struct mo_buf words = { 0 };
	bool resume = mo_streq(where, "resume_args");
	char dir[4001] = "";

	memset(dir, 'x', sizeof(dir) - 1);
	for (int i = 0; i < n; i++) {
		mo_buf_str(&words, i ? ", '" : "'");
		for (int k = 0; k < times; k++)
			mo_buf_str(&words, mark);
		mo_buf_str(&words, "'");
	}
	_cleanup_(mo_freep) char *list = mo_printf(", %s: [%s]", where, words.data);
	_cleanup_(mo_freep) char *text = mo_printf("recipe: 1\nname: a\ncluster: {gpus: "
						   "1}\nengine: {kind: torch, entry: /t.py%s}\n"
						   "checkpoint: {dir: /%s, layout: c.pt%s}\n",
						   resume ? "" : list, dir, resume ? list : "");

	expect(text, strlen(text), expected);
}

/* A value that many words name makes no command of many MB of a small recipe. */
static void test_words_that_grow(void **state)
{
	static const struct {
		const char *where, *mark;
	} t[] = {
		{ "args", "{checkpoint.dir}" },
		{ "prepare", "{checkpoint.dir}" },
		{ "resume_args", "{checkpoint.dir}" },
		{ "resume_args", "{dir}" },
	};

	for (size_t i = 0; i < ELEMENTSOF(t); i++) {
		expect_words(t[i].where, t[i].mark, 1, 16, "");
		expect_words(t[i].where, t[i].mark, 1, 17,
			     "is longer than 65536 bytes when its placeholders");
		expect_words(t[i].where, t[i].mark, 130, 1, "");
		expect_words(t[i].where, t[i].mark, 132, 1,
			     "are more than 524288 bytes when their placeholders");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),        cmocka_unit_test(test_words_that_grow),
		cmocka_unit_test(test_encoding),    cmocka_unit_test(test_depth),
		cmocka_unit_test(test_costly),      cmocka_unit_test(test_keys),
		cmocka_unit_test(test_alias_bomb),  cmocka_unit_test(test_merge_keeps_the_limit),
		cmocka_unit_test(test_many_values), cmocka_unit_test(test_many_anchors_and_texts),
		cmocka_unit_test(test_long_text),   cmocka_unit_test(test_texts_of_many_pieces),
		cmocka_unit_test(test_prefixes),    cmocka_unit_test(test_emit_reads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
