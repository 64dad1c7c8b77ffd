/* Readers of formats and what the layout's rules make of them: pickles, archives, OCDBT manifests;
 * grids and needs on listings. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "agent/core/ckpt/archive.h"
#include "agent/core/ckpt/ckpt.h"
#include "lib/base/buf.h"
#include "agent/core/text/pickle.h"
#include "lib/base/crc32c.h"
#include "agent/core/ckpt/ckpt_marker.h"
#include "agent/core/ckpt/ckpt_stated.h"

/* ---- pickles ---- */

struct seen {
	char text[512];
};

static void see(void *arg, const struct pickle_item *item)
{
	struct seen *s = arg;
	size_t n = strlen(s->text);

	if (item->kind == PICKLE_TEXT)
		snprintf(s->text + n, sizeof(s->text) - n, "'%.*s'@%zu ", (int)item->n, item->text,
			 item->at);
	else if (item->kind == PICKLE_INT)
		snprintf(s->text + n, sizeof(s->text) - n, "%lld ", (long long)item->number);
}

/* pickle.dumps() of what is said beside each. */
static const struct {
	const char *data;
	size_t n;
	const char *damage, *seen;
} pickles[] = {
#define P(s) s, sizeof(s) - 1
	/* {"offset": 5, "length": 300}, 4 */
	{ P("\x80\4\x95\x1b\0\0\0\0\0\0\0}\x94(\x8c\6offset\x94K\5\x8c\6length\x94M,\1u."), NULL,
	  "'offset'@16 5 'length'@27 300 " },
	/* [a, a, a], 2 */
	{ P("\x80\2]q\0(X\1\0\0\0aq\1h\1h\1e."), NULL, "'a'@11 'a'@11 'a'@11 " },
	/* the same, 4 */
	{ P("\x80\4\x95\0\0\0\0\0\0\0\0]\x94(\x8c\1a\x94h\1h\1e."), NULL, "'a'@16 'a'@16 'a'@16 " },
	/* ["a", -7, 8], 0 */
	{ P("(lp0\nVa\np1\naI-7\naL8L\na."), NULL, "'a'@6 -7 8 " },
	{ P("\x80\2](J\xff\xff\xff\xff\x8a\1\xfe\x8a\3\x90_\1e."), NULL, "-1 -2 90000 " },
	{ P("\x80\4N."), NULL, "" },
	{ P(""), "it is cut short", "" },
	{ P("\x80\4N"), "it is cut short", "" },
	{ P("\x80\2]q\0(X\1\0\0\0aq\1h\1h\1e"), "it is cut short", NULL },
	{ P("\x80\2X\x05\0\0\0abc."), "it is cut short", "" },
	{ P("\x80\2X\xff\xff\xff\xff"
	    "abc."),
	  "it is cut short", "" },
	{ P("\x80\4\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
	    "abc."),
	  "it is cut short", "" },
	{ P("\x80\4N.N."), "something lies behind its end", "" },
	{ P("\x80\4."), "it is no whole pickle", "" },
	{ P("\x80\4NN."), "it is no whole pickle", "" }, /* two values */
	/* a mark that nobody takes */
	{ P("\x80\4(N."), "it is no whole pickle", "" },
	/* a reference to nothing */
	{ P("\x80\4h\5."), "it is no whole pickle", "" },
	{ P("\x80\4r\xff\xff\xff\x7fN."), "it is no whole pickle", "" },
	{ P("\x80\4a."), "it is no whole pickle", "" },
	{ P("\x80\4\0\0\0\0."), "it is no whole pickle", "" },
	{ P("\0\0\0\0\0\0\0\0"), "it is no whole pickle", "" },
	{ P("optim __0_0.distcp."), "it is no whole pickle", NULL },
#undef P
};

static void test_pickles(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(pickles); i++) {
		struct seen s = { "" };
		const char *damage = pickle_walk(pickles[i].data, pickles[i].n, see, &s);
		if (!mo_streq(damage, pickles[i].damage))
			fail_msg("pickle %zu: %s, not %s", i, damage ? damage : "whole",
				 pickles[i].damage ? pickles[i].damage : "whole");
		if (pickles[i].seen && strcmp(s.text, pickles[i].seen) != 0)
			fail_msg("pickle %zu: saw %s, not %s", i, s.text, pickles[i].seen);
		/* who only asks whether it is whole names nobody to tell */
		assert_ptr_equal(pickle_walk(pickles[i].data, pickles[i].n, NULL, NULL), damage);
	}
}

static void test_numbers(void **state)
{
	static const char whole[] =
		"\x80\2}q\0(X\2\0\0\0tpq\1K\4X\2\0\0\0ppq\2K\2X\2\0\0\0epq\3NX\2\0\0\0tpq\4K\7u.";
	char tp[] = "tp", pp[] = "pp", ep[] = "ep", *names[] = { tp, pp, ep };
	int64_t numbers[3];

	assert_true(pickle_numbers(whole, sizeof(whole) - 1, names, 3, numbers));
	/* the first of each counts */
	assert_true(numbers[0] == 4 && numbers[1] == 2 && numbers[2] == -1);
	assert_false(pickle_numbers(whole, sizeof(whole) - 2, names, 3, numbers));
	assert_false(pickle_numbers("", 0, names, 3, numbers));
	assert_true(pickle_numbers("\x80\2}q\0(X\2\0\0\0tp\x88X\2\0\0\0pp\x89u.", 24, names, 2,
				   numbers));
	assert_true(numbers[0] == 1 && numbers[1] == 0);
}

/* The first iteration is of the arguments with which the run began; only what stands behind the
 * version is the save's. */
static void test_number_behind_words(void **state)
{
	static const char whole[] =
		"\x80\2}q\0(X\4\0\0\0iterq\1K\4X\3\0\0\0verq\2K\3h\1K\x14X\4\0\0\0lastq\3h\1K\7u.";
	size_t n = sizeof(whole) - 1;

	assert_int_equal(pickle_number_behind(whole, n, "iter"), 4);
	assert_int_equal(pickle_number_behind(whole, n, "ver iter"), 20);
	assert_int_equal(pickle_number_behind(whole, n, "ver"), 3);
	assert_int_equal(pickle_number_behind(whole, n, "iter none"), -1);
	assert_int_equal(pickle_number_behind(whole, n, "none iter"), -1);
	assert_int_equal(pickle_number_behind(whole, n, ""), -1);
	assert_int_equal(pickle_number_behind(whole, n - 1, "iter"), -1);
}

/* A list of one pickle, a number, nothing: only what stands before the next text counts. */
static void test_sum_behind(void **state)
{
	static const char list[] =
		"\x80\2}q\0(X\1\0\0\0nq\1](K\2K\4M\0\1eX\1\0\0\0mq\2K\7X\1\0\0\0oq\3Nu.";
	size_t n = sizeof(list) - 1;

	assert_int_equal(pickle_sum_behind(list, n, "n"), 262);
	assert_int_equal(pickle_sum_behind(list, n, "m"), 7);
	assert_int_equal(pickle_sum_behind(list, n, "o"), -1);
	assert_int_equal(pickle_sum_behind(list, n, "none"), -1);
	assert_int_equal(pickle_sum_behind(list, n - 1, "n"), -1);
}

/* ---- archives ---- */

static void put(unsigned char *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

#define NAME "a/data.pkl"
#define RECORD (30 + sizeof(NAME) - 1 + 8) /* one record of eight bytes */
#define ENTRY (46 + sizeof(NAME) - 1)
#define WHOLE (RECORD + ENTRY + ARCHIVE_TAIL)

/* One record, closed by the records of 64 bits. */
static void make_archive(unsigned char *p)
{
	unsigned char *entry = p + RECORD, *end64 = entry + ENTRY, *end = end64 + 76;

	memset(p, 0, WHOLE);
	memcpy(p, "PK\3\4", 4);
	put(p + 18, 8, 4);
	put(p + 22, 8, 4);
	put(p + 26, sizeof(NAME) - 1, 2);
	memcpy(p + 30, NAME, sizeof(NAME) - 1);
	memcpy(entry, "PK\1\2", 4);
	put(entry + 20, 8, 4);
	put(entry + 24, 8, 4);
	put(entry + 28, sizeof(NAME) - 1, 2);
	memcpy(entry + 46, NAME, sizeof(NAME) - 1);
	memcpy(end64, "PK\6\6", 4);
	put(end64 + 32, 1, 8);
	put(end64 + 40, ENTRY, 8);
	put(end64 + 48, RECORD, 8);
	memcpy(end64 + 56, "PK\6\7", 4);
	memcpy(end, "PK\5\6", 4);
	put(end + 8, 1, 2);
	put(end + 10, 1, 2);
	put(end + 12, ENTRY, 4);
	put(end + 16, RECORD, 4);
}

/* As moe-ckpt reads it. NULL or the damage. */
static const char *read_archive(const unsigned char *p, size_t n)
{
	struct archive a;
	struct archive_record r;
	size_t tail = MO_MIN(n, (size_t)ARCHIVE_TAIL), at = 0;
	int64_t content = 0;
	bool done = false;
	const char *why = archive_end(p + n - tail, tail, (int64_t)n, &a);

	while (!why && !done) {
		why = archive_next(&a, p + a.directory, &at, &r, &done);
		if (!why && !done)
			why = archive_local(&a, &r, p + r.at, &content);
		if (!why && !done)
			assert_true(content + r.stored <= a.directory);
	}
	return why;
}

static void test_archives(void **state)
{
	unsigned char p[3 * WHOLE];
	static const struct {
		size_t at, n;
		uint64_t value;
		const char *damage;
	} cases[] = {
		{ WHOLE - 22, 4, 0, "without its end" },
		{ WHOLE - 12, 2, 2, "makes no sense" },
		{ WHOLE - 10, 4, 0xfffffff0, "makes no sense" },
		{ WHOLE - 6, 4, 1 << 20, "makes no sense" },
		{ WHOLE - 98 + 48, 8, UINT64_MAX, "makes no sense" },
		{ WHOLE - 98 + 40, 8, 1 << 30, "makes no sense" },
		{ WHOLE - 98 + 32, 8, 0, "makes no sense" },
		{ WHOLE - 98, 4, 0, "makes no sense" },
		{ WHOLE - 2, 2, 5, "makes no sense" },
		{ RECORD, 4, 0, "makes no sense" },
		{ RECORD + 20, 4, 9999, "outside the file" },
		{ RECORD + 42, 4, 500, "outside the file" },
		{ RECORD + 28, 2, 500, "makes no sense" },
		{ 0, 4, 0, "does not begin where" },
		{ 26, 2, 3, "not what the directory says" },
		{ 28, 2, 60000, "not what the directory says" },
		{ RECORD + 24, 4, 0xffffffff, "makes no sense" },
		{ RECORD + 42, 4, 4, "does not begin where" },
	};

	make_archive(p);
	assert_null(read_archive(p, WHOLE));
	/* archives behind each other, as in .distcp */
	make_archive(p + WHOLE);
	make_archive(p + 2 * WHOLE);
	assert_null(read_archive(p, 3 * WHOLE));
	for (size_t n = 0; n < WHOLE; n++)
		assert_non_null(read_archive(p, n));
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		make_archive(p);
		put(p + cases[i].at, cases[i].value, cases[i].n);
		const char *damage = read_archive(p, WHOLE);
		if (!damage || !strstr(damage, cases[i].damage))
			fail_msg("archive %zu: %s, not %s", i, damage ? damage : "whole",
				 cases[i].damage);
	}
	memset(p, 0, sizeof(p));
	assert_non_null(read_archive(p, sizeof(p)));
	assert_true(only_zeros(p, sizeof(p)));
	p[5] = 1;
	assert_false(only_zeros(p, sizeof(p)) || only_zeros(p, 0));
}

static void test_manifests(void **state)
{
	unsigned char p[40] = { 0x0c, 0xdb, 0x3a, 0x2a, 40 };

	put(p + 36, mo_crc32c(0, p, 36), 4);
	assert_null(ocdbt_manifest(p, 40));
	for (size_t n = 0; n < 40; n++)
		assert_non_null(ocdbt_manifest(p, n));
	for (size_t i = 0; i < 40 * 8; i++) {
		p[i / 8] ^= (unsigned char)(1 << i % 8);
		assert_non_null(ocdbt_manifest(p, 40));
		p[i / 8] ^= (unsigned char)(1 << i % 8);
	}
}

/* ---- layouts ---- */

struct bed {
	struct ckpt_layout layout;
	struct ckpt_entry e;
};

static struct ckpt_grid *add_grid(struct bed *b, const char *files, int count)
{
	struct ckpt_grid *g = MO_ADD(&b->layout, grids, &ckpt_grid_desc);

	mo_str_set(&g->files, files);
	g->count = count;
	return g;
}

static void add_need(struct bed *b, const char *file, const char *each, const char *unless)
{
	struct ckpt_need *n = MO_ADD(&b->layout, needs, &ckpt_need_desc);

	mo_str_set(&n->file, file);
	mo_str_set(&n->each, each);
	mo_str_set(&n->unless, unless);
}

static void bed_new(struct bed *b)
{
	*b = (struct bed){ 0 };
	mo_desc_init(&ckpt_layout_desc, &b->layout);
	b->e.directory = b->e.asked = true;
}

/* names: between blanks; "NAME=0" is empty. Judges, frees the entry's files, keeps the layout. */
static void judge(struct bed *b, const char *names, int64_t world, const char *words)
{
	_cleanup_(ckpt_rules_freep) struct ckpt_rules *rules = NULL;
	_cleanup_(mo_freep) char *reason = NULL;

	assert_int_equal(ckpt_rules_new(&b->layout, &rules, NULL), 0);
	for (const char *name = names; *name; name += strspn(name, " ")) {
		struct ckpt_file *f = MO_GROW(b->e.files, b->e.n_files);
		size_t n = strcspn(name, " ");
		bool empty = n > 2 && strncmp(name + n - 2, "=0", 2) == 0;
		*f = (struct ckpt_file){ .name = mo_strndup(name, empty ? n - 2 : n),
					 .bytes = empty ? 0 : 5 };
		name += n;
	}
	reason = ckpt_judge(rules, &b->e,
			    &(struct ckpt_question){ .level = LEVEL_SIZES, .world = world });
	if (!words != !reason || (words && !strstr(reason, words)))
		fail_msg("%s: said '%s', wanted '%s'", names, reason ? reason : "complete",
			 words ? words : "complete");
	ckpt_files_done(b->e.files, b->e.n_files);
	b->e.files = NULL;
	b->e.n_files = 0;
}

static void test_grids(void **state)
{
	struct bed b;

	bed_new(&b);
	add_grid(&b, "^(?<variant>[ab])_(\\d+)_(\\d+)$", COUNT_DIVIDES)->required = true;
	judge(&b, "a_0_0 a_0_1 a_1_0 a_1_1", 8, NULL);
	judge(&b, "a_0_0 a_0_1 a_1_0 a_1_1 b_00_00 b_00_01 b_01_00 b_01_01 c", MO_NONE, NULL);
	judge(&b, "c", 8, "none of the files");
	judge(&b, "a_0_0 a_0_1 a_1_1", 8,
	      "a_1_0 is missing: by the numbers in their names there are 4");
	judge(&b, "a_00_01 a_01_00 a_01_01", 8, "a_00_00 is missing");
	judge(&b, "a_0_0 b_0_0 b_0_1", 8, "1 files like a_0_0, but 2 like b_0_0");
	judge(&b, "a_0_0 a_0_1 a_0_2", 8, "3 parts, which 8 ranks are no multiple of");
	judge(&b, "a_0_0 a_00_0", 8, "are the same part");
	judge(&b, "a_0_99999999999999999999", 8, "make no sense");
	judge(&b, "a_0_0 a_0_1=0", 8, "is empty");
	judge(&b, "a_999999_999999", 8, "is missing");
	b.layout.grids[0].count = COUNT_WORLD;
	judge(&b, "a_0_0 a_0_1", 2, NULL);
	judge(&b, "a_0_0 a_0_1", 4, "2 ranks wrote it, the job has 4");
	mo_strs_add(&b.layout.grids[0].says, &b.layout.grids[0].n_says, "tp");
	judge(&b, "a_0_0 a_0_1", 2, "no file of its 2 parts tells");
	b.e.parts[0] = 4;
	judge(&b, "a_0_0 a_0_1", 2, "it has 2 parts of 4");
	b.e.parts[0] = 2;
	judge(&b, "a_0_0 a_0_1", 2, NULL);
	struct kv *v = MO_ADD(&b.layout.grids[0], variants, &kv_desc);
	mo_str_set(&v->key, "b");
	mo_str_set(&v->value, "sharded");
	judge(&b, "a_0_0 a_0_1", 2, NULL);
	b.e.due[0] = 1;
	judge(&b, "a_0_0 a_0_1", 2, "the files of b are missing, which sharded says there are");
	judge(&b, "a_0_0 a_0_1 b_0_0 b_0_1", 2, NULL);
	b.e.due[0] = 0;
	b.e.asked = false;
	b.e.parts[0] = 0;
	judge(&b, "a_0_0 a_0_1", 2, NULL);
	mo_desc_done(&ckpt_layout_desc, &b.layout);
}

static void test_msgpack(void **state)
{
	/* {"a": [1, -1, nil, true], "b": bin 3, "c": 2.5, "d": ext 2, 300: "xyz", "e": str8, "f":
	 * array16, "g": map16} */
	static const unsigned char whole[] = "\x88\xa1"
					     "a\x94\1\xff\xc0\xc3\xa1"
					     "b\xc4\3abc\xa1"
					     "c\xcb\x40\4\0\0\0\0\0\0\xa1"
					     "d\xd5\1xy\xcd\1\x2c\xa3xyz\xa1"
					     "e\xd9\2hi\xa1"
					     "f\xdc\0\1\5\xa1"
					     "g\xde\0\1\1\2";
	static const unsigned char huge[] = "\xdd\xff\xff\xff\xff\1\2", never[] = "\x91\xc1",
				   empty_map[] = "\x80";
	size_t n = sizeof(whole) - 1;

	(void)state;
	assert_null(msgpack_damage(whole, n));
	for (size_t i = 0; i < n; i++)
		assert_string_equal(msgpack_damage(whole, i), "it is cut short");
	assert_string_equal(msgpack_damage(whole, n + 1), "something lies behind its end");
	assert_string_equal(msgpack_damage(huge, sizeof(huge) - 1), "it is cut short");
	assert_string_equal(msgpack_damage(never, 2), "it is no MessagePack");
	assert_null(msgpack_damage(empty_map, 1));
}

/* ---- Megatron's format torch, by the arithmetic of its groups of ranks ---- */

struct split {
	int64_t tp, pp, ep, etp, cp, dp;
};
#define SPLIT_PARTS 64
struct parts {
	char names[SPLIT_PARTS][24];
	size_t n;
	bool twice;
};

static bool part_add(struct parts *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (mo_streq(p->names[i], name))
			return false;
	assert_true(p->n < SPLIT_PARTS);
	snprintf(p->names[p->n++], sizeof(p->names[0]), "%s", name);
	return true;
}

/* What each rank would load, and what those write whose experts are the first copy. */
static void parts_of_ranks(const struct split *s, struct parts *loaded, struct parts *written)
{
	int64_t stage = s->tp * s->cp * s->dp;

	*loaded = *written = (struct parts){ 0 };
	for (int64_t rank = 0; rank < stage * s->pp; rank++) {
		int64_t local = rank % stage;
		_cleanup_(mo_buf_done) struct mo_buf name = { 0 };

		mo_buf_printf(&name, "m_%lld", (long long)(local % s->tp));
		if (s->pp > 1)
			mo_buf_printf(&name, "_%lld", (long long)(rank / stage));
		if (s->ep > 1)
			mo_buf_printf(&name, "_%lld", (long long)(local / s->etp % s->ep));
		part_add(loaded, name.data);
		if (local / (s->etp * s->ep) == 0 && !part_add(written, name.data))
			written->twice = true;
	}
}

static void judge_parts(struct bed *b, const struct parts *p, size_t without, const char *more,
			const struct split *s, bool whole)
{
	_cleanup_(ckpt_rules_freep) struct ckpt_rules *rules = NULL;
	_cleanup_(mo_freep) char *reason = NULL;

	assert_int_equal(ckpt_rules_new(&b->layout, &rules, NULL), 0);
	for (size_t i = 0; i < p->n + !!more; i++)
		if (i != without)
			*(struct ckpt_file *)MO_GROW(b->e.files, b->e.n_files) = (struct ckpt_file){
				.name = mo_strdup(i < p->n ? p->names[i] : more), .bytes = 5
			};
	reason = ckpt_judge(rules, &b->e,
			    &(struct ckpt_question){ .level = LEVEL_SIZES,
						     .world = s->tp * s->pp * s->cp * s->dp });
	if (whole != !reason)
		fail_msg("tp %lld pp %lld ep %lld etp %lld cp %lld dp %lld without %zu: said '%s'",
			 (long long)s->tp, (long long)s->pp, (long long)s->ep, (long long)s->etp,
			 (long long)s->cp, (long long)s->dp, without, reason ? reason : "complete");
	ckpt_files_done(b->e.files, b->e.n_files);
	b->e.files = NULL;
	b->e.n_files = 0;
}

static void say(struct mo_buf *pickle, const char *name, int64_t number)
{
	const char head[] = { 'X', (char)strlen(name), 0, 0, 0 }, value[] = { 'K', (char)number };

	mo_buf_add(pickle, head, sizeof(head));
	mo_buf_str(pickle, name);
	mo_buf_add(pickle, value, sizeof(value));
}

/* A save is complete when each rank finds its file and none was written twice; and then no file may
 * be gone, and none be more. */
static void judge_split(struct bed *b, const struct split *s)
{
	struct parts loaded, written;
	_cleanup_(mo_buf_done) struct mo_buf pickle = { 0 };
	_cleanup_(ckpt_rules_freep) struct ckpt_rules *rules = NULL;

	mo_buf_add(&pickle, "\x80\2}(", 4);
	say(&pickle, "tp", s->tp);
	say(&pickle, "pp", s->pp);
	say(&pickle, "ep", s->ep);
	say(&pickle, "etp", s->etp);
	mo_buf_add(&pickle, "u.", 2);
	parts_of_ranks(s, &loaded, &written);
	ckpt_entry_done(&b->e);
	b->e.directory = b->e.asked = true;
	assert_int_equal(ckpt_rules_new(&b->layout, &rules, NULL), 0);
	ckpt_parts_stated(rules, 0, pickle.data, pickle.len, &b->e);
	bool whole = loaded.n == written.n && !written.twice;
	judge_parts(b, &written, SIZE_MAX, NULL, s, whole);
	for (size_t i = 0; whole && i < written.n; i++)
		judge_parts(b, &written, i, NULL, s, false);
	if (whole)
		judge_parts(b, &written, SIZE_MAX, "m_63", s, false);
}

static void test_tied(void **state)
{
	static const int64_t sizes[] = { 1, 2, 4 };
	struct bed b;
	size_t tried = 0;

	bed_new(&b);
	struct ckpt_grid *g = add_grid(&b, "^m_(\\d+)(?:_(\\d+))?(?:_(\\d+))?$", COUNT_DIVIDES);
	mo_strs_add(&g->says, &g->n_says, "tp");
	mo_strs_add(&g->says, &g->n_says, "pp");
	mo_strs_add(&g->says, &g->n_says, "ep");
	mo_str_set(&g->tied, "etp");
	g->required = true;
	for (size_t i = 0; i < 729; i++) {
		const struct split s = { .tp = sizes[i % 3],
					 .pp = sizes[i / 3 % 3],
					 .ep = sizes[i / 9 % 3],
					 .etp = sizes[i / 27 % 3],
					 .cp = sizes[i / 81 % 3],
					 .dp = sizes[i / 243] };

		/* Megatron does not start */
		if (s.tp * s.cp * s.dp % (s.etp * s.ep) != 0)
			continue;
		judge_split(&b, &s);
		tried++;
	}
	assert_true(tried > 300);
	ckpt_entry_done(&b.e);
	mo_desc_done(&ckpt_layout_desc, &b.layout);
}

static void test_needs(void **state)
{
	struct bed b;

	bed_new(&b);
	add_need(&b, "x", NULL, "^y$");
	add_need(&b, "$1/m", "^(i|j)/", "\\.z$");
	add_need(&b, "$1/d/", "^(i|j)/", NULL);
	judge(&b, "x", MO_NONE, NULL);
	judge(&b, "y", MO_NONE, NULL);
	judge(&b, "w", MO_NONE, "x is missing");
	judge(&b, "x=0", MO_NONE, "x is empty");
	judge(&b, "x i/m i/d/1", MO_NONE, NULL);
	judge(&b, "x i/m i/d/1 j/d/1", MO_NONE, "j/m is missing");
	judge(&b, "x i/m i/d", MO_NONE, "i/d/ is missing or empty");
	judge(&b, "x i/m i/d/1=0 i/d/2=0", MO_NONE, "i/d/ is missing or empty");
	judge(&b, "x i/d/1 i/a.z", MO_NONE, NULL);
	mo_desc_done(&ckpt_layout_desc, &b.layout);
}

/* What a marker's content makes of an entry: shards that are listed, not listed, shorter than
 * listed. */
static void test_lists(void **state)
{
	static const char index[] =
		"\x80\4\x95\0\0\0\0\0\0\0\0](\x8c\3s_"
		"0\x94\x8c\6offset\x94K\2\x8c\6length\x94K\3\x8c\3s_1h\1K\0h\2K\4h\0h\1K\1h\2K\2e.";
	struct bed b;

	bed_new(&b);
	mo_str_set(&b.layout.listed, "^s_\\d$");
	mo_str_set(&b.layout.shard, "^s_");
	mo_strs_add(&b.layout.markers, &b.layout.n_markers, "m");
	struct kv *pickle = MO_ADD(&b.layout, formats, &kv_desc);
	mo_str_set(&pickle->key, "^m$");
	mo_str_set(&pickle->value, "pickle");
	mo_strs_add(&b.layout.listed_bytes, &b.layout.n_listed_bytes, "offset");
	mo_strs_add(&b.layout.listed_bytes, &b.layout.n_listed_bytes, "length");
	static const struct {
		size_t n;
		const char *names, *words;
	} cases[] = {
		{ sizeof(index) - 1, "m s_0 s_1", NULL },
		{ sizeof(index) - 1, "m s_0 s_1 s_2=0", NULL },
		{ sizeof(index) - 1, "m s_0", "s_1, which m lists, is missing" },
		{ sizeof(index) - 1, "m s_0 s_1 s_2", "s_2 is not what m lists" },
		{ sizeof(index) - 1, "m s_0 s_1=0", "s_1 is empty" },
		{ sizeof(index) - 2, "m s_0 s_1", "m: it is cut short" },
	};
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(ckpt_rules_freep) struct ckpt_rules *rules = NULL;
		assert_int_equal(ckpt_rules_new(&b.layout, &rules, NULL), 0);
		assert_true(ckpt_reads_marker(rules, "m"));
		struct ckpt_marker *m = MO_GROW(b.e.markers, b.e.n_markers);
		*m = (struct ckpt_marker){ .name = mo_strdup("m"),
					   .present = true,
					   .bytes = 9,
					   .iteration = MO_NONE,
					   .world = MO_NONE };
		ckpt_marker_content(rules, index, cases[i].n, m);
		if (i == 0) {
			assert_int_equal(m->n_files, 2);
			assert_true(mo_streq(m->files[0].name, "s_0") && m->files[0].least == 5 &&
				    m->files[1].least == 4);
			m->files[1].least = 5;
		}
		judge(&b, cases[i].names, MO_NONE, cases[i].words);
		if (i == 0) {
			m->files[1].least = 6;
			judge(&b, cases[i].names, MO_NONE, "s_1 has 5 bytes of 6");
		}
		ckpt_entry_done(&b.e);
		b.e.directory = b.e.asked = true;
	}
	mo_desc_done(&ckpt_layout_desc, &b.layout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pickles),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_number_behind_words),
		cmocka_unit_test(test_sum_behind),
		cmocka_unit_test(test_archives),
		cmocka_unit_test(test_manifests),
		cmocka_unit_test(test_grids),
		cmocka_unit_test(test_tied),
		cmocka_unit_test(test_msgpack),
		cmocka_unit_test(test_needs),
		cmocka_unit_test(test_lists),
	};
	return cmocka_run_group_tests_name("acore/ckpt_formats", tests, NULL, NULL);
}
