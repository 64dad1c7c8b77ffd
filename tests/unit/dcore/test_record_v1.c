/* What a record of version 1 says, said as one of now; and that a moed which knows version 1 only
 * reads one of now far enough to refuse it by its version. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/state/record_v1.h"
#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

/* Behind {"v":N,"type": and its end. */
static const struct {
	const char *v1, *now;
} pairs[] = {
	{ "\"controller\",\"t\":5,\"value\":7",
	  "\"controller\",\"t\":5,\"controller\":{\"epoch\":7}" },
	{ "\"controller\",\"t\":5,\"value\":7,\"iteration\":1000000",
	  "\"controller\",\"t\":5,\"controller\":{\"epoch\":7,\"restored_wait\":\"1970-01-01T00:00:"
	  "01.000Z\"}" },
	{ "\"submit\",\"t\":5,\"job\":3", "\"submit\",\"t\":5,\"job\":3" },
	{ "\"job\",\"t\":5,\"job\":3,\"value\":0,\"state\":\"running\"",
	  "\"job\",\"t\":5,\"job\":3,\"transition\":{\"state\":\"running\",\"follows\":"
	  "\"nothing\"}" },
	{ "\"job\",\"t\":5,\"job\":3,\"value\":1,\"state\":\"queued\",\"flag\":true,\"text\":"
	  "\"why\"",
	  "\"job\",\"t\":5,\"job\":3,\"transition\":{\"state\":\"queued\",\"reason\":\"why\","
	  "\"attempt_over\":true,\"follows\":\"failure\"}" },
	{ "\"job\",\"t\":5,\"job\":3,\"value\":2,\"state\":\"queued\"",
	  "\"job\",\"t\":5,\"job\":3,\"transition\":{\"state\":\"queued\",\"follows\":\"busy_"
	  "ports\"}" },
	{ "\"job\",\"t\":5,\"job\":3,\"value\":9",
	  "\"job\",\"t\":5,\"job\":3,\"transition\":{\"state\":null}" },
	{ "\"intent\",\"t\":5,\"job\":3,\"value\":1,\"iteration\":40,\"flag\":true",
	  "\"intent\",\"t\":5,\"job\":3,\"intent\":{\"intent\":\"cancel\",\"now\":true,\"restart_"
	  "from\":40}" },
	{ "\"intent\",\"t\":5,\"job\":3,\"value\":99",
	  "\"intent\",\"t\":5,\"job\":3,\"intent\":{\"intent\":null}" },
	{ "\"scan\",\"t\":5,\"job\":3,\"attempt\":2,\"flag\":true",
	  "\"scan\",\"t\":5,\"job\":3,\"attempt\":2" },
	{ "\"place\",\"t\":5,\"job\":3,\"attempt\":2,\"value\":29400,\"iteration\":-1,\"flag\":"
	  "true,\"texts\":[\"b-1\"]",
	  "\"place\",\"t\":5,\"job\":3,\"attempt\":2,\"place\":{\"port\":29400,\"resume\":-1,\"is_"
	  "restart\":true,\"places\":[],\"boot_ids\":[\"b-1\"]}" },
	{ "\"accept\",\"t\":5,\"job\":3,\"attempt\":2,\"flag\":true,\"node\":\"n1\"",
	  "\"accept\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\",\"accept\":{\"acts\":true}" },
	{ "\"accept\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\"",
	  "\"accept\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\",\"accept\":{\"acts\":"
	  "false}" },
	{ "\"notes\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\"",
	  "\"notes\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\"" },
	{ "\"fail\",\"t\":5,\"job\":3,\"attempt\":2,\"rank\":4,\"value\":90,\"node\":\"n1\","
	  "\"text\":\"hardware\",\"cause\":\"exit 1\",\"texts\":[\"a\",\"b\"]",
	  "\"fail\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\",\"fail\":{\"first_rank\":4,"
	  "\"class\":\"hardware\",\"cause\":\"exit "
	  "1\",\"evidence\":[\"a\",\"b\"],\"told_after_us\":90}" },
	{ "\"fail\",\"t\":5,\"job\":3,\"attempt\":2",
	  "\"fail\",\"t\":5,\"job\":3,\"attempt\":2,\"fail\":{}" },
	{ "\"gone\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\",\"text\":\"fenced\"",
	  "\"gone\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\",\"gone\":{\"how\":"
	  "\"fenced\"}" },
	{ "\"forgotten\",\"t\":5,\"job\":3,\"attempt\":2,\"flag\":true,\"node\":\"n1\"",
	  "\"forgotten\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\"" },
	{ "\"node_state\",\"t\":5,\"value\":2,\"node\":\"n1\",\"text\":\"silent\"",
	  "\"node_state\",\"t\":5,\"node\":\"n1\",\"node_state\":{\"state\":\"down\",\"reason\":"
	  "\"silent\"}" },
	{ "\"node_state\",\"t\":5,\"value\":77,\"node\":\"n1\"",
	  "\"node_state\",\"t\":5,\"node\":\"n1\",\"node_state\":{\"state\":null}" },
	{ "\"drain\",\"t\":5,\"flag\":true,\"node\":\"n1\",\"text\":\"bad\",\"cause\":\"idle\","
	  "\"texts\":[\"gpu.ecc\",\"hardware\"]",
	  "\"drain\",\"t\":5,\"node\":\"n1\",\"drain\":{\"step\":\"on\",\"reason\":\"bad\","
	  "\"when\":\"idle\",\"finding\":\"gpu.ecc\",\"broken_hardware\":true}" },
	{ "\"drain\",\"t\":5,\"flag\":true,\"node\":\"n1\",\"cause\":\"now\"",
	  "\"drain\",\"t\":5,\"node\":\"n1\",\"drain\":{\"step\":\"on\",\"when\":\"now\"}" },
	{ "\"drain\",\"t\":5,\"node\":\"n1\"",
	  "\"drain\",\"t\":5,\"node\":\"n1\",\"drain\":{\"step\":\"off\"}" },
	{ "\"drain\",\"t\":5,\"value\":1,\"node\":\"n1\"",
	  "\"drain\",\"t\":5,\"node\":\"n1\",\"drain\":{\"step\":\"done\"}" },
	{ "\"wait_node\",\"t\":5,\"job\":3,\"flag\":true",
	  "\"wait_node\",\"t\":5,\"job\":3,\"wait_node\":{\"waits\":true}" },
	{ "\"strange\",\"t\":5,\"flag\":true,\"node\":\"n1\",\"texts\":[\"j-9.a1\"]",
	  "\"strange\",\"t\":5,\"node\":\"n1\",\"strange\":{\"holds_unknown\":true,\"living\":[\"j-"
	  "9.a1\"]}" },
	{ "\"strange\",\"t\":5,\"value\":1,\"node\":\"n1\"",
	  "\"strange\",\"t\":5,\"node\":\"n1\",\"strange\":{\"holds_unknown\":false,\"fenced\":"
	  "true}" },
	{ "\"hung\",\"t\":5,\"job\":3,\"attempt\":2,\"value\":0,\"flag\":true,\"node\":\"n1\"",
	  "\"hung\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\",\"hung\":{\"reach\":"
	  "\"hung\"}" },
	{ "\"hung\",\"t\":5,\"job\":3,\"attempt\":2,\"value\":1,\"flag\":true,\"node\":\"n1\"",
	  "\"hung\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\",\"hung\":{\"reach\":"
	  "\"missing\"}" },
	{ "\"hung\",\"t\":5,\"job\":3,\"attempt\":2,\"value\":1,\"node\":\"n1\"",
	  "\"hung\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\",\"hung\":{\"reach\":"
	  "\"answers\"}" },
	{ "\"incident\",\"t\":5,\"job\":3,\"text\":\"x: y\"", "\"incident\",\"t\":5,\"job\":3" },
	{ "\"checkpoint\",\"t\":5,\"job\":3", "\"checkpoint\",\"t\":5,\"job\":3" },
	{ "\"token\",\"t\":5", "\"token\",\"t\":5" },
	{ "\"token_revoked\",\"t\":5,\"text\":\"1f2e\",\"flag\":true",
	  "\"token_revoked\",\"t\":5,\"token_revoked\":{\"id\":\"1f2e\",\"put_out\":true}" },
	{ "\"event\",\"t\":5", "\"event\",\"t\":5" },
	{ "\"health\",\"t\":5,\"node\":\"n1\"", "\"health\",\"t\":5,\"node\":\"n1\"" },
	{ "\"check\",\"t\":5,\"job\":3,\"attempt\":2,\"value\":2000000,\"flag\":true,\"texts\":["
	  "\"n1\"]",
	  "\"check\",\"t\":5,\"job\":3,\"attempt\":2,\"check\":{\"waits\":true,\"nodes\":[\"n1\"],"
	  "\"until\":\"1970-01-01T00:00:02.000Z\"}" },
	{ "\"check\",\"t\":5,\"job\":3,\"attempt\":2,\"texts\":[\"n1: bad\"]",
	  "\"check\",\"t\":5,\"job\":3,\"attempt\":2,\"check\":{\"waits\":false,\"findings\":[\"n1:"
	  " bad\"]}" },
	{ "\"measured\",\"t\":5,\"job\":3,\"flag\":true", "\"measured\",\"t\":5,\"job\":3" },
	{ "\"clock\",\"t\":5,\"value\":-8,\"iteration\":60,\"flag\":true,\"text\":\"b-1\"",
	  "\"clock\",\"t\":5,\"clock\":{\"boot_id\":\"b-1\",\"boottime_us\":60,\"shift_us\":-8,"
	  "\"synchronised\":true}" },
	{ "\"token_used\",\"t\":5,\"text\":\"1f2e\"",
	  "\"token_used\",\"t\":5,\"token_used\":{\"id\":\"1f2e\"}" },
	{ "\"node_token\",\"t\":5,\"flag\":true,\"node\":\"n1\"",
	  "\"node_token\",\"t\":5,\"node\":\"n1\",\"node_token\":{\"expired\":true}" },
	{ "\"ack\",\"t\":5,\"node\":\"n1\",\"cause\":\"ann\",\"texts\":[\"gpu.ecc\"]",
	  "\"ack\",\"t\":5,\"node\":\"n1\",\"ack\":{\"findings\":[\"gpu.ecc\"],\"by\":\"ann\"}" },
	{ "\"ack\",\"t\":5,\"flag\":true,\"node\":\"n1\"",
	  "\"ack\",\"t\":5,\"node\":\"n1\",\"ack\":{\"learning_over\":true}" },
	{ "\"restored\",\"t\":5,\"value\":70,\"iteration\":3000000,\"flag\":true",
	  "\"restored\",\"t\":5,\"restored\":{\"epoch\":70,\"backup_at\":\"1970-01-01T00:00:03."
	  "000Z\",\"from_backup\":true}" },
	{ "\"obeys\",\"t\":5,\"value\":70,\"node\":\"n1\"",
	  "\"obeys\",\"t\":5,\"node\":\"n1\",\"obeys\":{\"epoch\":70}" },
	{ "\"discard\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\"",
	  "\"discard\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\"" },
	{ "\"leaving\",\"t\":5,\"flag\":true,\"node\":\"n1\"",
	  "\"leaving\",\"t\":5,\"node\":\"n1\",\"leaving\":{\"leaving\":true}" },
	{ "\"config\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\"",
	  "\"config\",\"t\":5,\"job\":3,\"attempt\":2,\"node\":\"n1\"" },
};

static void read_v1(const char *text, struct record *ret)
{
	struct record_v1 old;
	struct mo_error err = { 0 };

	mo_desc_init(&record_v1_desc, &old);
	if (wire_decode(&record_v1_desc, text, strlen(text), false, &old, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	record_from_v1(&old, ret);
}

static char *text_of(const struct record *r)
{
	struct mo_buf b = { 0 };

	wire_encode(&record_desc, r, &b);
	return mo_buf_take(&b);
}

static void each_type_says_the_same(void **state)
{
	bool seen[_REC_N] = { false };

	for (size_t i = 0; i < ELEMENTSOF(pairs); i++) {
		_cleanup_(mo_freep) char *v1 = mo_printf("{\"v\":1,\"type\":%s}", pairs[i].v1),
					 *now = mo_printf("{\"v\":2,\"type\":%s}", pairs[i].now);
		struct record r;

		read_v1(v1, &r);
		_cleanup_(mo_freep) char *text = text_of(&r);
		assert_string_equal(text, now);
		seen[r.type] = true;
		mo_desc_done(&record_desc, &r);
	}
	seen[REC_NODE] = true; /* too long for a line: each_text_of_the_store */
	/* of version 2 alone */
	seen[REC_IMAGE] = seen[REC_HANG] = seen[REC_POWER] = seen[REC_STRAGGLER] =
		seen[REC_HISTORY] = seen[REC_SPARE] = seen[REC_FABRIC] = true;
	for (int type = 0; type < _REC_N; type++)
		if (!seen[type])
			fail_msg("no record %s", record_type_names[type]);
}

/* What is written now reads back as it was, and as version 2 by what knows version 1 only. */
static void check_text(const struct record *r)
{
	_cleanup_(mo_freep) char *text = text_of(r);
	struct mo_error err = { 0 };
	struct record_v1 old;
	struct record back;

	mo_desc_init(&record_desc, &back);
	if (wire_decode(&record_desc, text, strlen(text), false, &back, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	_cleanup_(mo_freep) char *diff = mo_desc_diff(&record_desc, r, &back);
	if (diff)
		fail_msg("%s: differs at %s", text, diff);
	mo_desc_done(&record_desc, &back);
	mo_desc_init(&record_v1_desc, &old);
	if (wire_decode(&record_v1_desc, text, strlen(text), false, &old, &err) < 0)
		fail_msg("an earlier moed calls it damaged: %s: %s", text, err.text);
	assert_int_equal(old.version, 2);
	assert_int_equal(old.type, r->type);
	assert_int_equal(old.job, r->job);
	mo_desc_done(&record_v1_desc, &old);
}

static void each_text_of_the_store(void **state)
{
	struct mo_buf all = { 0 };
	bool seen[_REC_N] = { false };

	assert_int_equal(mo_read_file(MO_SOURCE_DIR "/tests/fixtures/store-v1/log.txt", 10 << 20,
				      &all),
			 0);
	for (char *line = all.data, *end; (end = strchr(line, '\n')); line = end + 1) {
		struct record r;

		*end = 0;
		if (*line != '{')
			continue;
		read_v1(line, &r);
		if (!record_whole(&r))
			fail_msg("%s", line);
		check_text(&r);
		seen[r.type] = true;
		mo_desc_done(&record_desc, &r);
	}
	mo_buf_done(&all);
	/* of version 2 alone */
	seen[REC_IMAGE] = seen[REC_HANG] = seen[REC_POWER] = seen[REC_STRAGGLER] =
		seen[REC_HISTORY] = seen[REC_SPARE] = seen[REC_FABRIC] = true;
	for (int type = 0; type < _REC_N; type++)
		if (!seen[type])
			fail_msg("no record %s", record_type_names[type]);
}

/* It is refused by core_update(), and costs nothing to free. */
static void what_lacks_its_content_is_not_whole(void **state)
{
	static const char *const types[] = { "submit", "scan",   "incident", "checkpoint", "token",
					     "event",  "health", "measured", "config" };

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("{\"v\":1,\"type\":\"%s\",\"t\":5,\"job\":3,\"text\":\"x\"}",
				  types[i]);
		struct record r;

		read_v1(text, &r);
		assert_false(record_whole(&r));
		mo_desc_done(&record_desc, &r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_says_the_same),
		cmocka_unit_test(each_text_of_the_store),
		cmocka_unit_test(what_lacks_its_content_is_not_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
