/* Who has a plan search run: nobody keeps the others from theirs, viewers least of all. */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "daemon/core/rules/searches.h"
#include "lib/base/util.h"

struct bed {
	struct search all[128];
	size_t n;
	uint64_t last;
	char names[128][16];
};

static bool ask(struct bed *b, const char *user, enum search_kind kind)
{
	if (!search_admit(b->all, b->n, user, kind))
		return false;
	snprintf(b->names[b->n], sizeof(b->names[0]), "%s", user);
	b->all[b->n] = (struct search){ ++b->last, b->names[b->n], kind, false };
	b->n++;
	return true;
}

/* Starts all that may start; how many. */
static size_t start(struct bed *b)
{
	size_t n = 0;

	for (const struct search *s; (s = search_next(b->all, b->n)); n++)
		b->all[s - b->all].runs = true;
	return n;
}

static bool runs(const struct bed *b, uint64_t number)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->all[i].number == number)
			return b->all[i].runs;
	return false;
}

static void end(struct bed *b, uint64_t number)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->all[i].number == number) {
			b->all[i] = b->all[--b->n];
			return;
		}
	fail();
}

static void viewers_share_one(void **state)
{
	struct bed b = { 0 };

	assert_true(ask(&b, "v1", SEARCH_VIEWER) && ask(&b, "v2", SEARCH_VIEWER) &&
		    ask(&b, "v3", SEARCH_VIEWER));
	assert_int_equal(start(&b), 1);
	assert_true(runs(&b, 1));
	assert_true(ask(&b, "ann", SEARCH_SUBMIT));
	assert_int_equal(start(&b), 1);
	assert_true(runs(&b, 4));
}

static void submits_come_first_and_viewers_last(void **state)
{
	struct bed b = { 0 };

	assert_true(ask(&b, "x", SEARCH_PLAN) && ask(&b, "y", SEARCH_PLAN));
	assert_int_equal(start(&b), 2);
	assert_true(ask(&b, "v", SEARCH_VIEWER) && ask(&b, "p", SEARCH_PLAN) &&
		    ask(&b, "s", SEARCH_SUBMIT) && ask(&b, "t", SEARCH_SUBMIT));
	assert_int_equal(start(&b), 0);
	static const uint64_t order[] = { 5, 6, 4, 3 };
	uint64_t over = 1;

	for (size_t i = 0; i < ELEMENTSOF(order); i++) {
		end(&b, over);
		const struct search *next = search_next(b.all, b.n);

		assert_non_null(next);
		assert_int_equal(next->number, order[i]);
		b.all[next - b.all].runs = true;
		assert_null(search_next(b.all, b.n));
		over = order[i];
	}
}

static void one_of_each_user_runs(void **state)
{
	struct bed b = { 0 };

	for (int i = 0; i < 3; i++)
		assert_true(ask(&b, "ann", SEARCH_SUBMIT));
	assert_int_equal(start(&b), 1);
	assert_true(ask(&b, "bob", SEARCH_PLAN));
	assert_int_equal(start(&b), 1);
	assert_true(runs(&b, 1) && runs(&b, 4));
	end(&b, 1);
	assert_int_equal(search_next(b.all, b.n)->number, 2);
}

static void who_waits_is_bounded(void **state)
{
	struct bed b = { 0 };
	char name[16];
	size_t n = 0;

	/* one user */
	while (n < 100 && ask(&b, "greedy", SEARCH_PLAN)) {
		n++;
		start(&b);
	}
	assert_int_equal(n, 1 + SEARCHES_WAITING_OF_USER);
	/* viewers, as many as there are */
	for (n = 0; n < 100; n++) {
		snprintf(name, sizeof(name), "v%zu", n);
		if (!ask(&b, name, SEARCH_VIEWER))
			break;
		start(&b);
	}
	assert_int_equal(n, 1 + SEARCHES_WAITING_OF_VIEWERS);
	/* users still find a place, until there is none */
	for (n = 0; n < 100; n++) {
		snprintf(name, sizeof(name), "u%zu", n);
		if (!ask(&b, name, SEARCH_SUBMIT))
			break;
		start(&b);
	}
	assert_int_equal(n,
			 SEARCHES_WAITING - SEARCHES_WAITING_OF_USER - SEARCHES_WAITING_OF_VIEWERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(viewers_share_one),
		cmocka_unit_test(submits_come_first_and_viewers_last),
		cmocka_unit_test(one_of_each_user_runs),
		cmocka_unit_test(who_waits_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
