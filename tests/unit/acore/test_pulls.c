/* Images that a node is to have: which tries are made, and what is said of them to whom. */
#include "agent/core/agent/images.h"
#include "tests/unit/acore/agent_bed.h"

#include "lib/model/image.h"

#define S 1000000LL

static void want(struct bed *b, int64_t job)
{
	struct command c;

	mo_desc_init(&command_desc, &c);
	c.kind = CMD_IMAGE;
	c.job = job;
	c.epoch = b->core->epoch;
	c.image = mo_desc_new(&image_order_desc);
	c.image->image = mo_strdup("oci:/nfs/x");
	c.image->pull = PULL_MISSING;
	agent_core_image(b->core, &c, b->now, &b->out);
	agent_core_images_tick(b->core, b->now, &b->out);
	mo_desc_done(&command_desc, &c);
}

static void refused(struct bed *b)
{
	struct image_report r;
	struct agent_event e = { .type = AE_IMAGE, .image = 1, .ok = true, .report = &r };

	mo_desc_init(&image_report_desc, &r);
	r.error = mo_strdup("the password is wrong");
	r.refused = true;
	agent_core_image_news(b->core, &e, b->now, &b->out);
	mo_desc_done(&image_report_desc, &r);
}

/* "job error refused" of what the next sync says. */
static const char *told(struct bed *b)
{
	static char text[128];
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	agent_core_images_report(b->core, &s);
	assert_int_equal(s.n_images, 1);
	snprintf(text, sizeof(text), "%lld %s%s", (long long)s.images[0].job,
		 s.images[0].error ? s.images[0].error : "-",
		 s.images[0].refused ? " refused" : "");
	mo_desc_done(&agent_sync_desc, &s);
	return text;
}

/* What one job was refused is no word about the next one's try, before it has ended. */
static void a_later_job_is_not_refused_before_its_try(void **state)
{
	struct bed *b = *state;

	want(b, 7);
	assert_string_equal(said(b), "image");
	assert_string_equal(told(b), "7 -");
	refused(b);
	said(b);
	assert_string_equal(told(b), "7 the password is wrong refused");
	want(b, 7);
	assert_string_equal(said(b), "");
	want(b, 8);
	assert_string_equal(said(b), "image");
	assert_string_equal(told(b), "8 -");
	refused(b);
	assert_string_equal(told(b), "8 the password is wrong refused");
}

/* Who waits for a node that failed sees why, also while it is tried again. */
static void the_same_job_keeps_the_reason(void **state)
{
	struct bed *b = *state;

	want(b, 7);
	refused(b);
	said(b);
	b->now = agent_core_images_deadline(b->core);
	agent_core_images_tick(b->core, b->now, &b->out);
	assert_string_equal(said(b), "image");
	assert_string_equal(told(b), "7 the password is wrong refused");
}

static void moves(struct bed *b, int64_t done, bool unpacking)
{
	struct image_report r;
	struct agent_event e = { .type = AE_IMAGE, .image = 1, .report = &r };

	mo_desc_init(&image_report_desc, &r);
	r.done = done;
	r.total = 100 * 1000000;
	r.unpacking = unpacking;
	agent_core_image_news(b->core, &e, b->now, &b->out);
	mo_desc_done(&image_report_desc, &r);
}

static void pass(struct bed *b, int64_t minutes)
{
	b->now += minutes * 60 * S;
	agent_core_images_tick(b->core, b->now, &b->out);
}

/* What moves may take long; what trickles is a failed try, and another one follows. */
static void a_try_that_stands_still_has_failed(void **state)
{
	struct bed *b = *state;

	want(b, 7);
	said(b);
	for (int i = 1; i <= 4; i++) {
		pass(b, 29);
		moves(b, i * 17 * 1000000, false);
	}
	pass(b, 29);
	moves(b, 0, true); /* it counts anew */
	pass(b, 29);
	moves(b, 15 * 1000000, true);
	assert_string_equal(said(b), "");
	assert_string_equal(told(b), "7 -");
	assert_int_equal(agent_core_images_deadline(b->core), b->now + 60 * S);
	pass(b, 1);
	assert_string_equal(said(b), "image_stop");
	assert_string_equal(told(b),
			    "7 less than 16 MB of it were unpacked in 30 min: that try was ended");
	moves(b, 99 * 1000000, true); /* of the one that was ended */
	assert_string_equal(said(b), "");
	pass(b, 1);
	assert_string_equal(said(b), "image");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_later_job_is_not_refused_before_its_try),
		T(the_same_job_keeps_the_reason),
		T(a_try_that_stands_still_has_failed),
	};

	return cmocka_run_group_tests_name("acore/pulls", tests, NULL, NULL);
}
