/* Described struct <-> JSON: round trips without loss, the exact text, and hostile input refused
 * with its place named. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/model/job.h"
#include "lib/model/launch.h"
#include "lib/model/limits.h"
#include "lib/model/message.h"
#include "lib/model/recipe.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"
#include "lib/wire/parse.h"

static void json_putp(struct json_object **json)
{
	json_object_put(*json);
}

static int parse(const char *text, size_t n, char **ret_error)
{
	_cleanup_(json_putp) struct json_object *json = NULL;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int r = wire_parse(text, n, &json, &err);

	if (ret_error)
		*ret_error = TAKE_PTR(err.text);
	return r;
}

static void test_parse_good(void **state)
{
	/* clang-format off */
	static const char *const good[] = {
		"{}", " {} \r\n\t", "[]", "0", "-0", "-1.5e+10", "1E5", "0.5", "true", "false",
		"null", "[null]", "\"\"", "\"\\u00e9\\n\\/\\\\\\\"\"", "\"\\ud83d\\ude00\"",
		"\"\xf0\x9f\x98\x80\"", "{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":2}]}",
		"{\"\":1}", "{\":\":1,\"a:b\":\"c:d\"}", "{\"\\\"\":1,\"\\\\\":2}",
		"9223372036854775807", "-9223372036854775808",
	};
	/* clang-format on */

	for (size_t i = 0; i < ELEMENTSOF(good); i++) {
		if (parse(good[i], strlen(good[i]), NULL) != 0)
			print_error("refused: %s\n", good[i]);
		assert_int_equal(parse(good[i], strlen(good[i]), NULL), 0);
	}
	/* the text need not end with NUL */
	assert_int_equal(parse("12345", 2, NULL), 0);
	assert_int_equal(parse("[1][2]", 3, NULL), 0);
}

static void test_parse_bad(void **state)
{
	/* clang-format off */
	static const char *const bad[] = {
		"", " ", "{", "}", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{\"a\"}",
		"{\"a\":}", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "{'a':1}", "{1:1}",
		"{\"a\":1 \"b\":2}", "{\"a\"::1}",
		"tru", "TRUE", "True", "truee", "nul", "nulll", "None", "undefined", "NaN", "nan",
		"Infinity", "-Infinity", "inf", "01", "-01", "00", "1.", ".5", "+1", "-", "--1",
		"1e", "1e+",
		"1.e5", "0x10", "1_000", "1-2", "1.2.3", "\"", "\"a", "\"\\\"", "\"\\x41\"",
		"\"\\u00\"", "\"\\u00zz\"", "\"\\u0000\"", "{\"a\\u0000b\":1}", "\"a\nb\"",
		"\"\t\"", "\"\x01\"",
		"[1]x", "[1]]", "[1][2]", "1 2", "{} {}", "// c\n1", "/* c */1", "1#", "\"\xff\"",
		"\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xe2\x82\"", "\xef\xbb\xbf{}", ":", ",",
		"[1:2]",
		"{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":2}",
		"[{\"x\":{\"b\":1,\"c\":2,\"b\":3}}]", "{\"\":1,\"\":2}",
	};
	/* clang-format on */

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_freep) char *error = NULL;
		int r = parse(bad[i], strlen(bad[i]), &error);

		if (r != -EINVAL)
			print_error("taken: %s\n", bad[i]);
		assert_int_equal(r, -EINVAL);
		assert_true(mo_starts_with(error, "JSON: "));
	}
	assert_int_equal(parse("[1\0]", 4, NULL), -EINVAL);
	assert_int_equal(parse("\"a\0b\"", 5, NULL), -EINVAL);
	assert_int_equal(parse("{}\0", 3, NULL), -EINVAL);
}

static void test_parse_depth(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *error = NULL;

	for (int i = 0; i < 31; i++)
		mo_buf_str(&b, "[");
	for (int i = 0; i < 31; i++)
		mo_buf_str(&b, "]");
	assert_int_equal(parse(b.data, b.len, NULL), 0);
	mo_buf_reset(&b);
	for (int i = 0; i < 100000; i++)
		mo_buf_str(&b, i % 2 ? "{\"a\":" : "[");
	assert_int_equal(parse(b.data, b.len, &error), -EINVAL);
	assert_non_null(strstr(error, "nested deeper than 32"));
}

static void test_parse_wide(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	/* 100,000 keys: neither slow nor refused; one more duplicate is found */
	mo_buf_str(&b, "{");
	for (int i = 0; i < 100000; i++)
		mo_buf_printf(&b, "\"k%d\":%d,", i, i);
	mo_buf_str(&b, "\"last\":0}");
	assert_int_equal(parse(b.data, b.len, NULL), 0);
	b.len -= strlen("\"last\":0}");
	mo_buf_str(&b, "\"k500\":0}");
	assert_int_equal(parse(b.data, b.len, NULL), -EINVAL);
}

static void test_parse_names_what_is_given_twice(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "{\"a\":1,\"a\":1}",
		  "JSON: key 'a' is given twice in one object, the second time at byte 7" },
		{ "{\"b\":{\"a\":[{\"x\":\"a\"}, {\"x\":2}],\n \"c\":\"\\\":\\\"\"},\"a\":1, \"b\" "
		  ": 2}",
		  "JSON: key 'b' is given twice in one object, the second time at byte 53" },
		{ "{\"a\":1,\"\\u0061\":2}", "JSON: a key is given twice in one object" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *error = NULL;

		assert_int_equal(parse(cases[i].text, strlen(cases[i].text), &error), -EINVAL);
		assert_string_equal(error, cases[i].error);
	}
}

static void assert_string(const char *in, const char *expect)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	wire_string(in, &b);
	assert_string_equal(b.data, expect);
	assert_int_equal(parse(b.data, b.len, NULL), 0);
}

static void test_string(void **state)
{
	assert_string(NULL, "null");
	assert_string("", "\"\"");
	assert_string("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
	assert_string("\n\t\r\x01\x1b\x7f", "\"\\n\\t\\u000d\\u0001\\u001b\x7f\"");
	assert_string("\xe2\x82\xac", "\"\xe2\x82\xac\"");
	assert_string("a\xff"
		      "b",
		      "\"a\xef\xbf\xbd"
		      "b\"");
	assert_string("\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_string("\xc0\xaf\xed\xa0\x80",
		      "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void test_exact_text(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct event e;
	struct sample s;

	mo_desc_init(&event_desc, &e);
	e.seq = 12;
	e.time = INT64_C(1795249850123000);
	mo_str_set(&e.type, "rank.exited");
	e.job = 7;
	e.rank = 0;
	mo_str_set(&e.data, "{ \"code\": 1,\n \"signal\": null, \"path\": \"a/b\" }");
	wire_encode(&event_desc, &e, &b);
	assert_string_equal(b.data, "{\"seq\":12,\"time\":\"2026-11-21T08:30:50.123Z\",\"type\":"
				    "\"rank.exited\",\"job\":\"j-7\",\"node\":null,\"rank\":0,"
				    "\"attempt\":null,\"message\":null,"
				    "\"data\":{\"code\":1,\"signal\":null,\"path\":\"a/b\"}}");
	mo_str_set(&e.data, "not json");
	mo_buf_reset(&b);
	wire_encode(&event_desc, &e, &b);
	assert_non_null(strstr(b.data, "\"data\":null}"));
	mo_desc_done(&event_desc, &e);

	mo_desc_init(&sample_desc, &s);
	s.loss = 2.31;
	s.grad_norm = NAN;
	s.lr = -INFINITY;
	s.step_ms = 1e300;
	s.mfu = 0.1 + 0.2;
	s.tokens = -5;
	s.phase = PHASE_TRAIN;
	mo_buf_reset(&b);
	wire_encode(&sample_desc, &s, &b);
	assert_string_equal(b.data,
			    "{\"iteration\":null,\"time\":null,\"loss\":2.31,\"grad_norm\":\"NaN\","
			    "\"lr\":\"-Infinity\",\"step_ms\":1e+300,\"tokens\":-5,\"tokens_per_s_"
			    "per_gpu\":null,"
			    "\"tflops_per_gpu\":null,\"mfu\":0.30000000000000004,\"mem_gb\":null,"
			    "\"skipped\":null,\"nan\":null,\"phase\":\"train\",\"attempt\":null}");
}

/* Numbers are the shortest of 15 to 17 digits that reads back, in printf's shape, whichever way
 * they are written. */
static void test_reals(void **state)
{
	/* clang-format off */
	static const double fixed[] = {
		0.0, -0.0, 1, -1, 10, 1e14, 999999999999999, 1e15, 1e16, 123456789012345678.0, 0.1,
		1e-4, 1e-5, 0.00012, 1.2e-5, 1e-22, 1e-23, 5e-324, 1.7976931348623157e308, 12000,
		2.345678, 0.30000000000000004, 100.5, 9007199254740993.0, 999999999999999.9,
	};
	/* clang-format on */
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	uint64_t seed = 88172645463325252u;

	for (size_t i = 0; i < 200000 + ELEMENTSOF(fixed); i++) {
		struct rank_progress p;
		char expect[40];
		double v, back;
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		if (i < ELEMENTSOF(fixed))
			v = fixed[i];
		else if (i % 3 == 0)
			memcpy(&v, &seed, sizeof(v));
		else
			v = (double)(int64_t)(seed >> (12 + seed % 50)) /
			    pow(10, (double)(seed >> 8 & 31)) * (i % 2 ? 1 : -1);
		if (!isfinite(v) || v == MO_NONE_F)
			continue;
		for (int digits = 15; digits <= 17; digits++) {
			snprintf(expect, sizeof(expect), "%.*g", digits, v);
			if (sscanf(expect, "%lf", &back) == 1 && back == v)
				break;
		}
		mo_desc_init(&rank_progress_desc, &p);
		p.step_ms = v;
		mo_buf_reset(&b);
		wire_encode(&rank_progress_desc, &p, &b);
		const char *seen = strstr(b.data, "\"step_ms\":");
		assert_non_null(seen);
		assert_memory_equal(seen + 10, expect, strlen(expect));
		assert_true(strchr(",}", seen[10 + strlen(expect)]));
	}
}

static void assert_round_trip(const struct mo_desc *d, const void *obj)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(json_putp) struct json_object *json = NULL;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_freep) char *path = NULL;
	void *back = mo_desc_new(d);

	wire_encode(d, obj, &b);
	assert_null(strchr(b.data, '\n'));
	assert_int_equal(wire_decode(d, b.data, b.len, true, back, &err), 0);
	path = mo_desc_diff(d, obj, back);
	if (path)
		print_error("%s differs after %s\n", path, b.data);
	assert_null(path);
	json = wire_to_json(d, obj);
	assert_int_equal(wire_from_json(d, json, true, back, &err), 0);
	assert_true(mo_desc_equal(d, obj, back));
	mo_desc_done(d, back);
	assert_int_equal(wire_decode_large(d, b.data, b.len, back, &err), 0);
	assert_true(mo_desc_equal(d, obj, back));
	mo_desc_free(d, back);
}

static void test_round_trip(void **state)
{
	struct agent_sync s;
	struct step_report *r;
	struct note *n;
	struct rank_progress *p;
	struct rank k;
	struct event e;

	mo_desc_init(&agent_sync_desc, &s);
	assert_round_trip(&agent_sync_desc, &s);
	mo_str_set(&s.node, "n\"1\xc3\xa9");
	s.epoch = INT64_MAX;
	s.beat = -INT64_MAX;
	s.mono_ns = 0;
	r = MO_ADD(&s, steps, &step_report_desc);
	r->state = STEP_RUNNING;
	n = MO_ADD(r, notes, &note_desc);
	n->kind = NOTE_EXIT;
	n->time = INT64_C(1795249850123456); /* microseconds survive */
	n->code = 0;                         /* 0 is not "unknown" */
	n->rank = 0;
	n->bind_verified = 0;
	mo_str_set(&n->text, "");
	mo_strs_add(&n->tail, &n->n_tail, "line 1\tx");
	mo_strs_add(&n->tail, &n->n_tail, NULL);
	mo_strs_add(&n->tail, &n->n_tail, "");
	n = MO_ADD(r, notes, &note_desc);
	n->time = -1;
	n->sample = mo_desc_new(&sample_desc);
	n->sample->loss = NAN;
	n->sample->lr = 5e-324;
	n->sample->grad_norm = 1.7976931348623157e308;
	n->sample->mfu = 1.0 / 3;
	n->sample->mem_gb = INFINITY;
	p = MO_ADD(r, progress, &rank_progress_desc);
	p->phase = PHASE_INIT;
	p->step_ms = 3;
	assert_round_trip(&agent_sync_desc, &s);
	mo_desc_done(&agent_sync_desc, &s);

	mo_desc_init(&rank_desc, &k);
	k.coords = mo_desc_new(&rank_coords_desc);
	k.coords->tp = 1;
	k.bind_verified = 1;
	assert_round_trip(&rank_desc, &k);
	mo_desc_done(&rank_desc, &k);

	mo_desc_init(&event_desc, &e);
	e.job = 0;
	mo_str_set(&e.data, "[1,2.50,\"x\",{\"a\":null}]");
	assert_round_trip(&event_desc, &e);
	mo_desc_done(&event_desc, &e);
}

static int decode(const struct mo_desc *d, const char *text, bool strict, char **ret_error)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	void *obj = mo_desc_new(d);
	int r = wire_decode(d, text, strlen(text), strict, obj, &err);

	*ret_error = TAKE_PTR(err.text);
	mo_desc_free(d, obj);
	return r;
}

/* Whatever the text is, it says the same as the way by one tree. */
static void test_in_pieces(void **state)
{
	static const char good[] =
		"{\"node\":\"a]}\\\"\",\"steps\":[{\"notes\":[{\"text\":\"[{,\\\\\"},{}]},{}],"
		"\"later\":[{\"a\":{}}],\"nodes\":{},\"epoch\":7}";
	/* clang-format off */
	static const char *const odd[] = {
		"{}", "{ }", " {\"epoch\":1}", "{\"epoch\":1,}", "{\"steps\":[]}",
		"{\"steps\":[],\"steps\":[]}", "{\"steps\":[{},{}],\"steps\":[{}]}",
		"{\"steps\":[{},]}", "{\"steps\":[,{}]}", "{\"steps\":[{}}}", "{\"steps\":[{}{}]}",
		"{\"steps\":null,\"epoch\":2}", "{\"steps\":[null]}", "{\"epoch\":1,\"epoch\":2}",
		"{\"steps\" :[{}]}", "{\"steps\": [{}]}", "{\"steps\":[{}] ,\"epoch\":3}",
		"{\"steps\":[ {} , {} ]}", "{\"steps\":[{}]}x",
		"{\"steps\":[{\"state\":\"flying\"}]}", "{,\"epoch\":1}", "{\"epoch\"}", "[{}]",
		"{\"steps\":[[{}]]}",
	};
	/* clang-format on */
	const size_t n = strlen(good);

	for (size_t i = 0; i <= n + ELEMENTSOF(odd); i++) {
		_cleanup_(mo_error_done) struct mo_error err = { 0 }, err_large = { 0 };
		const char *text = i <= n ? good : odd[i - n - 1];
		size_t bytes = i <= n ? i : strlen(text);
		struct agent_sync a, b;

		mo_desc_init(&agent_sync_desc, &a);
		mo_desc_init(&agent_sync_desc, &b);
		assert_int_equal(wire_decode_large(&agent_sync_desc, text, bytes, &b, &err_large),
				 wire_decode(&agent_sync_desc, text, bytes, false, &a, &err));
		assert_true(mo_desc_equal(&agent_sync_desc, &a, &b));
		assert_true(mo_streq(err.text, err_large.text));
		if (i == n)
			assert_true(b.n_steps == 2 && b.epoch == 7 && b.steps[0].n_notes == 2);
		mo_desc_done(&agent_sync_desc, &a);
		mo_desc_done(&agent_sync_desc, &b);
	}
}

#ifndef __SANITIZE_ADDRESS__ /* it keeps what is freed */
static int by_tree(const struct mo_buf *text, struct agent_sync *ret)
{
	_cleanup_(json_putp) struct json_object *json = NULL;
	int r = wire_parse(text->data, text->len, &json, NULL);

	return r < 0 ? r : wire_from_json(&agent_sync_desc, json, false, ret, NULL);
}

/* kB by which reading the text lets a process grow at most. */
static long growth(const struct mo_buf *text, bool large)
{
	struct rusage before, after;
	struct agent_sync s;
	long kb = 0;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		mo_desc_init(&agent_sync_desc, &s);
		getrusage(RUSAGE_SELF, &before);
		int r = large ? wire_decode_large(&agent_sync_desc, text->data, text->len, &s, NULL)
			      : by_tree(text, &s);
		getrusage(RUSAGE_SELF, &after);
		kb = after.ru_maxrss - before.ru_maxrss;
		_exit(r < 0 || write(fds[1], &kb, sizeof(kb)) != sizeof(kb));
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &kb, sizeof(kb)), sizeof(kb));
	close(fds[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return kb;
}

/* The structs themselves are part of it both times. */
static void test_no_tree_of_a_large_text(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	for (int i = 0; i < 20000; i++) {
		struct step_report *r = MO_ADD(&s, steps, &step_report_desc);

		for (int k = 0; k < 10; k++)
			MO_ADD(r, progress, &rank_progress_desc)->rank = k;
	}
	wire_encode(&agent_sync_desc, &s, &b);
	mo_desc_done(&agent_sync_desc, &s);
	assert_true(growth(&b, true) * 2 < growth(&b, false));
}
#endif

static void test_refusals(void **state)
{
	static const struct {
		const struct mo_desc *d;
		const char *text, *error;
	} t[] = {
		{ &agent_sync_desc, "[]", "JSON: expected an object" },
		{ &agent_sync_desc, "null", "JSON: expected an object" },
		{ &agent_sync_desc, "{\"nodes\":1}", "nodes: unknown key" },
		{ &agent_sync_desc, "{\"node\":1}", "node: expected a string" },
		{ &agent_sync_desc, "{\"epoch\":\"1\"}", "epoch: expected an integer" },
		{ &agent_sync_desc, "{\"epoch\":1.0}", "epoch: expected an integer" },
		{ &agent_sync_desc, "{\"epoch\":1e3}", "epoch: expected an integer" },
		{ &agent_sync_desc, "{\"epoch\":9223372036854775808}",
		  "epoch: the integer is out of range" },
		{ &agent_sync_desc, "{\"epoch\":99999999999999999999999}",
		  "epoch: the integer is out of range" },
		{ &agent_sync_desc, "{\"epoch\":-9223372036854775808}",
		  "epoch: the integer is out of range" },
		{ &agent_sync_desc, "{\"steps\":{}}", "steps: expected a list" },
		{ &agent_sync_desc, "{\"steps\":[{},1]}", "steps[1]: expected an object" },
		{ &agent_sync_desc,
		  "{\"steps\":[{\"notes\":[{},{},{\"kind\":\"started\",\"tail\":[\"x\",7]}]}]}",
		  "steps[0].notes[2].tail[1]: expected a string" },
		{ &agent_sync_desc, "{\"steps\":[{\"notes\":[{\"sample\":{\"loss\":\"nan\"}}]}]}",
		  "steps[0].notes[0].sample.loss: expected a number" },
		{ &agent_sync_desc, "{\"steps\":[{\"notes\":[{\"sample\":{\"loss\":1e999}}]}]}",
		  "steps[0].notes[0].sample.loss: the number is out of range" },
		{ &agent_sync_desc, "{\"steps\":[{\"notes\":[{\"time\":\"yesterday\"}]}]}",
		  "steps[0].notes[0].time: expected a time such as 2026-11-21T08:30:50.123Z" },
		{ &agent_sync_desc, "{\"steps\":[{\"notes\":[{\"bind_verified\":1}]}]}",
		  "steps[0].notes[0].bind_verified: expected true or false" },
		{ &agent_sync_desc, "{\"steps\":[{\"state\":\"flying\"}]}",
		  "steps[0].state: expected one of spooled, starting, running, stopping, gone, "
		  "hung" },
		{ &agent_sync_desc, "{\"steps\":[{\"extra\":{\"x\":1}}]}",
		  "steps[0].extra: unknown key" },
		{ &event_desc, "{\"job\":7}", "job: expected an id such as j-7" },
		{ &event_desc, "{\"job\":\"j7\"}", "job: expected an id such as j-7" },
		{ &event_desc, "{\"job\":\"j-\"}", "job: expected an id such as j-7" },
		{ &event_desc, "{\"job\":\"j--1\"}", "job: expected an id such as j-7" },
		{ &event_desc, "{\"job\":\"x-1\"}", "job: expected an id such as j-7" },
		{ &launch_desc, "{\"gpus\":[1,null]}", "gpus[1]: expected an integer" },
		{ &launch_desc, "{\"hold_ports\":\"true\"}", "hold_ports: expected true or false" },
		{ &launch_desc, "{\"bind\":[]}", "bind: expected an object" },
	};

	for (size_t i = 0; i < ELEMENTSOF(t); i++) {
		_cleanup_(mo_freep) char *error = NULL;

		assert_int_equal(decode(t[i].d, t[i].text, true, &error), -EINVAL);
		assert_string_equal(error, t[i].error);
	}
}

static void test_lenient(void **state)
{
	_cleanup_(mo_freep) char *error = NULL;
	static const char wrong[] = "{\"node\":\"new\",\"beat\":\"x\"}",
			  newer[] = "{\"node\":\"new\",\"later\":[{}],\"boot_id\":null}";
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	mo_str_set(&s.node, "old");
	s.beat = 5;
	/* refused: untouched */
	assert_int_equal(wire_decode(&agent_sync_desc, wrong, strlen(wrong), false, &s, NULL),
			 -EINVAL);
	assert_string_equal(s.node, "old");
	assert_true(s.beat == 5);
	/* unknown keys are ignored, absent and null are unknown */
	assert_int_equal(wire_decode(&agent_sync_desc, newer, strlen(newer), false, &s, NULL), 0);
	assert_string_equal(s.node, "new");
	assert_null(s.boot_id);
	assert_true(s.beat == MO_NONE);
	mo_desc_done(&agent_sync_desc, &s);
	assert_int_equal(decode(&agent_sync_desc, "{\"epoch\":\"x\",\"later\":1}", false, &error),
			 -EINVAL);
}

static void repeat(struct mo_buf *b, const char *before, const char *element, size_t n,
		   const char *after)
{
	mo_buf_reset(b);
	mo_buf_str(b, before);
	for (size_t i = 0; i < n; i++) {
		if (i)
			mo_buf_str(b, ",");
		mo_buf_str(b, element);
	}
	mo_buf_str(b, after);
}

static void test_limits(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *error = NULL, *total = NULL, *text = NULL, *other = NULL,
				 *none = NULL;

	repeat(&b, "{\"steps\":[{\"notes\":[", "{}", MO_NOTES_PER_SYNC, "]}]}");
	assert_int_equal(decode(&agent_sync_desc, b.data, true, &none), 0);
	repeat(&b, "{\"steps\":[{\"notes\":[", "{}", MO_NOTES_PER_SYNC + 1, "]}]}");
	assert_int_equal(decode(&agent_sync_desc, b.data, true, &error), -E2BIG);
	assert_string_equal(error, "steps[0].notes: too many elements");
	assert_int_equal(decode(&agent_sync_desc, b.data, false, &none), 0);
	repeat(&b, "{\"gpus\":[", "1", MO_GPUS_PER_NODE_MAX + 1, "]}");
	assert_int_equal(decode(&launch_desc, b.data, true, &other), -E2BIG);
	/* many lists that are each small enough */
	{
		_cleanup_(mo_buf_done) struct mo_buf list = { 0 };

		repeat(&list, "{\"argv\":[", "\"\"", 131072, "]}");
		repeat(&b, "{\"commands\":[{\"launch\":", list.data, 1, "}]}");
		assert_int_equal(decode(&sync_reply_desc, b.data, true, &none), 0);
		mo_buf_reset(&b);
		mo_buf_str(&b, "{\"commands\":[");
		for (int i = 0; i < 4; i++)
			mo_buf_printf(&b, "%s{\"launch\":%s}", i ? "," : "", list.data);
		mo_buf_str(&b, "]}");
		assert_int_equal(decode(&sync_reply_desc, b.data, true, &total), -E2BIG);
		assert_non_null(strstr(total, "too many elements"));
	}
	mo_buf_reset(&b);
	mo_buf_str(&b, "{\"node\":\"");
	for (int i = 0; i <= MO_LONGEST_NAME; i++)
		mo_buf_str(&b, "n");
	mo_buf_str(&b, "\"}");
	assert_int_equal(decode(&agent_sync_desc, b.data, true, &text), -E2BIG);
	assert_string_equal(text, "node: the string is too long");
}

static void test_problem(void **state)
{
	static const int sent[] = { 400, 401, 403, 404, 405, 408, 409, 411, 413, 415,
				    421, 422, 426, 429, 431, 500, 502, 503, 504, 507 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	wire_problem(409, "job j-7: is \"done\"", &b);
	assert_string_equal(b.data, "{\"type\":\"about:blank\",\"title\":\"Conflict\",\"status\":"
				    "409,\"detail\":\"job j-7: is \\\"done\\\"\"}");
	for (size_t i = 0; i < ELEMENTSOF(sent); i++) {
		mo_buf_reset(&b);
		wire_problem(sent[i], NULL, &b);
		assert_null(strstr(b.data, " Error\",\"status\":4"));
		assert_null(strstr(b.data, "\"Server Error"));
	}
	mo_buf_reset(&b);
	wire_problem(421, "x", &b);
	assert_string_equal(b.data, "{\"type\":\"about:blank\",\"title\":\"Misdirected "
				    "Request\",\"status\":421,\"detail\":\"x\"}");
	mo_buf_reset(&b);
	wire_problem(418, NULL, &b);
	assert_string_equal(b.data, "{\"type\":\"about:blank\",\"title\":\"Client "
				    "Error\",\"status\":418,\"detail\":\"Client Error\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_good),
		cmocka_unit_test(test_parse_bad),
		cmocka_unit_test(test_parse_depth),
		cmocka_unit_test(test_parse_wide),
		cmocka_unit_test(test_parse_names_what_is_given_twice),
		cmocka_unit_test(test_string),
		cmocka_unit_test(test_exact_text),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_in_pieces),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_no_tree_of_a_large_text),
#endif
		cmocka_unit_test(test_lenient),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_problem),
		cmocka_unit_test(test_reals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
