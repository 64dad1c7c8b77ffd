/* The registry of events: every entry is whole and its own, and what released versions stored, sent
 * and logged is what it was. That each emitted type has an entry is the compiler's business. */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/model/event_type.h"

#define ID "6d6f65000000000000000000000002"

static const char *level_of(int level)
{
	return mo_enum_name(event_level_names, _EVENT_LEVEL_N, level);
}

static void test_entries_are_whole(void **state)
{
	for (size_t i = 0; i < _EVENT_TYPE_N; i++) {
		const struct event_about *a = &event_registry[i];

		assert_non_null(a->type);
		assert_true(strlen(a->type) < 64); /* struct stream_filter */
		assert_ptr_equal(event_about(a->type), a);
		assert_true(a->level >= EVENT_ERROR && a->level <= EVENT_INFO);
		assert_true(a->data && a->means);
		assert_true(a->subject && isupper((unsigned char)a->subject[0]));
		assert_true(a->subject[strlen(a->subject) - 1] != '.');
		assert_true(a->next && a->next[0] && a->next[strlen(a->next) - 1] == '.');
		assert_true(!*a->means || a->means[strlen(a->means) - 1] == '.');
	}
}

static void test_message_ids_are_distinct(void **state)
{
	for (size_t i = 0; i < _EVENT_TYPE_N; i++) {
		const char *id = event_registry[i].message_id;

		if (!id)
			continue;
		assert_int_equal(strlen(id), 32);
		if (strncmp(id, ID, strlen(ID)) != 0)
			fail_msg("%s: MESSAGE_ID %s: those of the controller begin with %s",
				 event_registry[i].type, id, ID);
		assert_int_equal(strspn(id, "0123456789abcdef"), 32);
		for (size_t k = 0; k < i; k++)
			assert_false(mo_streq(event_registry[k].message_id, id));
	}
}

/* As version d8a7f6f emitted them: a rule of somebody's log reads them. All others are notices. */
static void test_released_types(void **state)
{
	static const struct {
		const char *types, *level;
	} released[] = {
		{ "step.unknown step.hung step.missing checkpoint.elsewhere controller.stale",
		  "error" },
		{ "job.failed job.recovering node.down node.suspect node.token_expired "
		  "audit.refused "
		  "checkpoint.torn checkpoint.unread checkpoint.unkept controller.clock "
		  "controller.restored health.crit health.cordon_capped health.would_cordon",
		  "warning" },
		{ "node.token_renewed health.ok rank.exited checkpoint.saved checkpoint.verified "
		  "job.started",
		  "info" },
		{ "audit.drained audit.fenced audit.token_created audit.token_joined "
		  "audit.token_revoked "
		  "audit.undrained checkpoint.refused config.differs config.read config.warning "
		  "controller.started events.gone health.acked health.learned health.more "
		  "health.unknown "
		  "health.warn job.cancelled job.completed job.paused job.queued job.resumed "
		  "job.running "
		  "job.stopping job.submitted node.drained node.draining node.fenced node.leaving "
		  "node.noisy node.token_good node.undrained node.up plan.drift step.lost "
		  "step.refused "
		  "step.resolved step.stopped_outside step.unkillable store.full store.ok "
		  "store.put_back "
		  "store.quarantine store.slow store.snapshot",
		  "notice" },
	};

	for (size_t i = 0; i < ELEMENTSOF(released); i++)
		for (const char *p = released[i].types; *p; p += strspn(p, " ")) {
			_cleanup_(mo_freep) char *type = mo_strndup(p, strcspn(p, " "));
			const struct event_about *a = event_about(type);

			if (!a)
				fail_msg("%s is gone: stores have events of it", type);
			assert_string_equal(level_of(a->level), released[i].level);
			p += strlen(type);
		}
}

static void test_released_message_ids(void **state)
{
	static const char *const types[] = {
		"job.failed",       "job.recovering",      "node.suspect",
		"node.down",        "checkpoint.torn",     "step.unknown",
		"step.hung",        "step.unkillable",     "step.lost",
		"rank.exited",      "controller.started",  "store.slow",
		"store.snapshot",   "step.missing",        "controller.clock",
		"controller.stale", "controller.restored", "node.token_expired",
	};
	char id[33];

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		snprintf(id, sizeof(id), ID "%02zx", i + 1);
		assert_string_equal(event_about(types[i])->message_id, id);
	}
	assert_null(event_about("job.started")->message_id);
}

static void test_another_version(void **state)
{
	assert_null(event_about("job.exploded"));
	assert_null(event_about("job"));
	assert_null(event_about("job.failed "));
	assert_null(event_about(""));
	assert_null(event_about(NULL));
}

static void test_keys(void **state)
{
	const struct event_about *a = event_about("job.started");

	assert_true(event_has_key(a, "resume", 6));
	assert_true(event_has_key(a, "port", 4));
	assert_false(event_has_key(a, "nod", 3));
	assert_false(event_has_key(a, "nodes port", 10));
	assert_false(event_has_key(a, "", 0));
	assert_false(event_has_key(event_about("job.submitted"), "", 0));
	assert_false(event_has_key(event_about("job.submitted"), "x", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries_are_whole),
		cmocka_unit_test(test_message_ids_are_distinct),
		cmocka_unit_test(test_released_types),
		cmocka_unit_test(test_released_message_ids),
		cmocka_unit_test(test_another_version),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
