/* Dumps of PyTorch's flight recorder: real ones (tests/fixtures/recorder), and some that are none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "agent/core/text/recorder.h"
#include "lib/base/buf.h"
#include "lib/base/fd.h"

/* of the day of the fixtures, an hour later than some */
#define NOW_NS 1795878000000000000LL

static void load(const char *name, struct mo_buf *ret)
{
	_cleanup_(mo_freep) char *path =
		mo_printf(MO_SOURCE_DIR "/tests/fixtures/recorder/%s", name);

	assert_int_equal(mo_read_file(path, 1 << 20, ret), 0);
}

/* "op seq of group[members] sizes at", a line each, then what is enqueued. */
static void said(const char *name, struct mo_buf *ret)
{
	_cleanup_(mo_buf_done) struct mo_buf dump = { 0 };
	struct rank_recorder k;

	mo_buf_reset(ret);
	mo_desc_init(&rank_recorder_desc, &k);
	load(name, &dump);
	assert_null(recorder_read(dump.data, dump.len, NOW_NS, &k));
	for (size_t i = 0; i < k.n_waits; i++) {
		const struct recorder_wait *w = &k.waits[i];

		mo_buf_printf(ret, "%s%s #%lld of %s %s[%s] %s at %s%s, ", w->p2p ? "p2p " : "",
			      w->op, (long long)w->seq, w->group, w->desc, w->members, w->sizes,
			      w->at, w->started ? " started" : "");
		assert_in_range(w->age_ms, 60000, 3600000);
	}
	mo_buf_printf(ret, "%s", k.enqueued);
	assert_null(k.silent);
	mo_desc_done(&rank_recorder_desc, &k);
}

static void real_dumps_say_what_is_not_over(void **state)
{
	static const struct {
		const char *name, *said;
	} dumps[] = {
		{ "host.0", "all_reduce #781 of 0 default_pg[0-1] 4096x4096 Float at <module> "
			    "(fr_rank.py:52), 0=781 1=260" },
		{ "host.1", "0=780 1=260" },
		{ "gpu.0", "all_reduce #862 of 0 default_pg[0-1] 4096x4096 Float at <module> "
			   "(fr_rank.py:52), 0=862 1=287" },
		{ "gpu.1", "all_reduce #862 of 0 default_pg[0-1] 4096x4096 Float at <module> "
			   "(fr_rank.py:34), 0=862 1=287" },
		{ "mismatch.1", "all_to_all #282 of 1 EXPERT_MODEL_PARALLEL_GROUP[0-1] 1048576 "
				"Float at <module> (fr_rank.py:38), 0=843 1=282" },
		/* its state is completed, and it is not */
		{ "p2p.0", "p2p recv 0<-1 #269 of 0 default_pg[0-1] 1048576 Float at <module> "
			   "(fr_rank.py:47), 0=804 1=268" },
		{ "p2p.1", "0=804 1=268" },
		{ "timing.0", "all_reduce #844 of 0 default_pg[0-1] 4096x4096 Float at <module> "
			      "(fr_rank.py:52) started, 0=844 1=281" },
		{ "stop.0", "all_reduce #826 of 0 default_pg[0-1] 4096x4096 Float at <module> "
			    "(fr_rank.py:52), 0=826 1=275" },
		{ "evalcompute.0", "0=852 1=284" },
		{ "evalcompute.1", "0=852 1=284" },
	};
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(dumps); i++) {
		said(dumps[i].name, &b);
		if (strcmp(b.data, dumps[i].said) != 0)
			fail_msg("%s: %s\nnot %s", dumps[i].name, b.data, dumps[i].said);
	}
}

static void what_is_cut_or_damaged_is_none(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf dump = { 0 };
	struct rank_recorder k;

	mo_desc_init(&rank_recorder_desc, &k);
	load("p2p.0", &dump);
	for (size_t n = 0; n < dump.len; n++) {
		char *cut = malloc(n + 1); /* so that a byte too far is found */

		memcpy(cut, dump.data, n);
		assert_string_equal(recorder_read(cut, n, NOW_NS, &k), "it is cut short");
		free(cut);
	}
	/* whole pickles that are something else */
	assert_string_equal(recorder_read("\x80\2}.", 4, NOW_NS, &k),
			    "it is no dump of a flight recorder");
	assert_string_equal(recorder_read("\x80\2(K\1K\2u.", 9, NOW_NS, &k),
			    "it is no whole pickle");
	assert_string_equal(recorder_read("\x80\2}(K\1K\2u.", 10, NOW_NS, &k),
			    "it is no dump of a flight recorder");
	assert_int_equal(k.n_waits, 0);
	mo_desc_done(&rank_recorder_desc, &k);
}

/* ---- as PyTorch writes, but what it never would ---- */

static void text(struct mo_buf *b, const char *s)
{
	uint32_t n = (uint32_t)strlen(s);

	mo_buf_str(b, "X");
	mo_buf_add(b, &n, sizeof(n));
	mo_buf_str(b, s);
}

static void number(struct mo_buf *b, const char *key, int32_t v)
{
	text(b, key);
	mo_buf_str(b, "J");
	mo_buf_add(b, &v, sizeof(v));
}

static void entry(struct mo_buf *b, const char *op, int32_t seq, int32_t p2p_seq, bool retired)
{
	mo_buf_str(b, "}(");
	text(b, "process_group");
	text(b, "g");
	text(b, "pipeline");
	mo_buf_str(b, "\x86");
	number(b, "collective_seq_id", seq);
	number(b, "p2p_seq_id", p2p_seq);
	number(b, "is_p2p", p2p_seq > 0);
	number(b, "retired", retired);
	text(b, "profiling_name");
	text(b, op);
	mo_buf_str(b, "u");
}

static void begin(struct mo_buf *b)
{
	mo_buf_add(b, "\x80\2}(", 4);
	text(b, "entries");
	mo_buf_str(b, "](");
}

static void end(struct mo_buf *b, struct rank_recorder *ret)
{
	mo_buf_str(b, "eu.");
	mo_desc_init(&rank_recorder_desc, ret);
	assert_null(recorder_read(b->data, b->len, NOW_NS, ret));
}

/* The parts of a batch are never retired, only its last entry is. */
static void a_batch_that_is_over_is_over(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct rank_recorder k;

	begin(&b);
	entry(&b, "nccl:send 0->1", 0, 1, false);
	entry(&b, "nccl:recv 0<-1", 0, 1, false);
	entry(&b, "nccl:coalesced", 0, 1, true);
	entry(&b, "nccl:send 0->1", 0, 2, false);
	entry(&b, "nccl:coalesced", 0, 2, false);
	end(&b, &k);
	assert_int_equal(k.n_waits, 2);
	assert_string_equal(k.waits[0].op, "send 0->1");
	assert_int_equal(k.waits[0].seq, 2);
	assert_null(k.waits[0].members);
	assert_null(k.waits[0].at);
	assert_int_equal(k.waits[0].age_ms, MO_NONE);
	mo_desc_done(&rank_recorder_desc, &k);
}

static void what_may_be_told_is_limited(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct rank_recorder k;
	char longer[300];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	longer[0] = '\n';
	begin(&b);
	for (int i = 0; i < 40; i++)
		entry(&b, i ? "nccl:send 0->1" : longer, 0, i + 1, false);
	end(&b, &k);
	assert_in_range(k.n_waits, 1, RECORDER_WAITS_MAX);
	assert_int_equal(strlen(k.waits[0].op), 128);
	assert_int_equal(k.waits[0].op[0], '?');
	mo_desc_done(&rank_recorder_desc, &k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_dumps_say_what_is_not_over),
		cmocka_unit_test(what_is_cut_or_damaged_is_none),
		cmocka_unit_test(a_batch_that_is_over_is_over),
		cmocka_unit_test(what_may_be_told_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
