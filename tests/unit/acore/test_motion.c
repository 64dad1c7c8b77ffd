/* What moves of a rank, from readings of its processes; nobody looks unless he is asked. */
#include "agent/core/agent/motion.h"
#include "tests/unit/acore/agent_bed.h"

#define SEC 1000000LL
#define MIB (1LL << 20)

static struct motion_reading reading(int64_t log, int64_t io, int64_t cpu)
{
	return (struct motion_reading){ .rank = 4,
					.pid = 100,
					.log_bytes = log,
					.io_bytes = io,
					.cpu_us = cpu,
					.net_at = MO_NONE,
					.work = { MO_NONE, MO_NONE },
					.state = PROCESS_RUNS };
}

static struct rank_motion told(const struct motion_marks *m)
{
	struct rank_motion r;

	assert_true(motion_tell(m, 4, &r));
	assert_int_equal(r.rank, 4);
	return r;
}

static void each_kind_has_its_age(void **state)
{
	struct motion_marks m = { 0 };
	struct rank_motion r;
	int64_t now = 1000 * SEC, cpu = 0;

	assert_false(motion_tell(&m, 4, &r));
	for (int i = 0; i <= 30; i++, now += SEC, cpu += SEC) {
		struct motion_reading k =
			reading(i < 10 ? i : 10, i < 20 ? i * MIB : 20 * MIB, cpu);

		motion_take(&m, &k, now);
	}
	r = told(&m);
	assert_int_equal(r.watched_ms, 30000);
	assert_int_equal(r.log_ms, 20000);
	assert_int_equal(r.io_ms, 10000);
	assert_int_equal(r.cpu_ms, 0);
	assert_int_equal(r.net_ms, MO_NONE);
	assert_int_equal(r.gpu_work_ms, MO_NONE);
	assert_int_equal(r.gpu_spin_ms, MO_NONE);
	assert_int_equal(r.state, PROCESS_RUNS);
}

/* Threads that look each second whether there is something to do, and who looks at /proc beside
 * them. */
static void a_little_is_no_motion(void **state)
{
	struct motion_marks m = { 0 };
	int64_t now = 1000 * SEC;

	for (int64_t i = 0; i <= 30; i++, now += SEC) {
		struct motion_reading k = reading(0, i * 20000, i * 10000);

		motion_take(&m, &k, now);
	}
	assert_int_equal(told(&m).io_ms, 30000);
	assert_int_equal(told(&m).cpu_ms, 30000);
	assert_int_equal(told(&m).log_ms, 30000);
}

/* A child that ended takes its sums along; a log begins anew. */
static void less_than_before_is_motion(void **state)
{
	struct motion_marks m = { 0 };
	int64_t now = 1000 * SEC;
	struct motion_reading k = reading(500, 9 * MIB, 9 * SEC);

	motion_take(&m, &k, now);
	for (int i = 1; i <= 5; i++)
		motion_take(&m, &k, now + i * SEC);
	assert_int_equal(told(&m).log_ms, 5000);
	k = reading(0, 0, 0);
	motion_take(&m, &k, now + 6 * SEC);
	assert_int_equal(told(&m).log_ms, 0);
	assert_int_equal(told(&m).io_ms, 0);
	assert_int_equal(told(&m).cpu_ms, 0);
}

/* What was not looked at may have moved: a suspended machine, an agent that hung. */
static void a_late_reading_begins_anew(void **state)
{
	struct motion_marks m = { 0 };
	struct motion_reading k = reading(500, 500, 500);

	for (int64_t i = 0; i <= 20; i++)
		motion_take(&m, &k, 1000 * SEC + i * SEC);
	assert_int_equal(told(&m).log_ms, 20000);
	motion_take(&m, &k, 1040 * SEC);
	assert_int_equal(told(&m).log_ms, 0);
	assert_int_equal(told(&m).watched_ms, 0);
	motion_take(&m, &k, 900 * SEC); /* no clock goes back; if one does, nothing is known */
	assert_int_equal(told(&m).log_ms, 0);
}

static void what_can_be_read_again_begins_to_count(void **state)
{
	struct motion_marks m = { 0 };
	struct motion_reading none = reading(MO_NONE, MO_NONE, MO_NONE), k = reading(5, 5, 5);

	for (int64_t i = 0; i <= 20; i++)
		motion_take(&m, &none, 1000 * SEC + i * SEC);
	assert_int_equal(told(&m).log_ms, MO_NONE);
	motion_take(&m, &k, 1021 * SEC);
	motion_take(&m, &k, 1023 * SEC);
	assert_int_equal(told(&m).log_ms, 2000);
}

/* It is told how long ago a card moved, also where that was before anybody asked. */
static void cards_are_known_before(void **state)
{
	struct motion_marks m = { 0 };
	struct motion_reading k = reading(0, 0, 0);

	k.net_at = 900 * SEC;
	motion_take(&m, &k, 1000 * SEC);
	assert_int_equal(told(&m).net_ms, 100000);
	assert_int_equal(told(&m).watched_ms, 0);
	k.net_at = 1003 * SEC; /* read in between */
	motion_take(&m, &k, 1002 * SEC);
	assert_int_equal(told(&m).net_ms, 0);
}

static void gpus_are_known_before(void **state)
{
	struct motion_marks m = { 0 };
	struct motion_reading k = reading(0, 0, 0);

	k.work = (struct motion_work){ 900 * SEC, 905 * SEC };
	motion_take(&m, &k, 1000 * SEC);
	assert_int_equal(told(&m).gpu_work_ms, 100000);
	assert_int_equal(told(&m).gpu_spin_ms, 95000);
}

/* It computes when one of its GPUs does, and spins when all do; one of which not all is known says
 * nothing of the rank. */
static void a_rank_of_several_gpus(void **state)
{
	const int64_t now = 1000 * SEC;
	struct motion_gpu a = { now - SEC, now - 100 * SEC, now - 95 * SEC, false },
			  b = { now - SEC, now - 50 * SEC, now - 45 * SEC, false };

#define WORK() motion_work((struct motion_gpu[]){ a, b }, 2, now)
	assert_int_equal(motion_work(NULL, 0, now).worked_at, MO_NONE);
	assert_int_equal(motion_work(NULL, 0, now).spins_since, MO_NONE);
	assert_int_equal(WORK().worked_at, b.worked_at);
	assert_int_equal(WORK().spins_since, b.spins_since);
	b.spins_since = MO_NONE; /* idle */
	assert_int_equal(WORK().worked_at, b.worked_at);
	assert_int_equal(WORK().spins_since, MO_NONE);
	b.spins_since = now - 45 * SEC;
	b.shared = true; /* who computes on it? */
	assert_int_equal(WORK().worked_at, MO_NONE);
	assert_int_equal(WORK().spins_since, MO_NONE);
	b.shared = false;
	b.worked_at = MO_NONE; /* it never did */
	assert_int_equal(WORK().spins_since, MO_NONE);
	b.worked_at = now - 50 * SEC;
	b.read_at = now - 20 * SEC; /* nobody can read it any more */
	assert_int_equal(WORK().spins_since, MO_NONE);
	b.read_at = MO_NONE;
	assert_int_equal(WORK().worked_at, MO_NONE);
#undef WORK
}

static void a_rank_moves_when_one_of_its_cards_does(void **state)
{
	const int64_t now = 1000 * SEC, early = 600 * SEC;
	struct motion_card links = { now - SEC, early, false }, nic = { now - SEC, early, false };

#define NET() motion_net((struct motion_card[]){ links, nic }, 2, now)
	assert_int_equal(motion_net(NULL, 0, now), MO_NONE);
	assert_int_equal(NET(), early);
	links.moved_at = MO_NONE; /* it never used them */
	assert_int_equal(NET(), early);
	nic.moved_at = MO_NONE;
	assert_int_equal(NET(), MO_NONE);
	nic.moved_at = early;
	links.read_at = MO_NONE; /* it may move by what cannot be read */
	assert_int_equal(NET(), MO_NONE);
	links.read_at = now - 20 * SEC; /* or is not any more: its firmware hangs */
	assert_int_equal(NET(), MO_NONE);
	nic.moved_at = now - 3 * SEC; /* but it moves by the other */
	assert_int_equal(NET(), now - 3 * SEC);
	links.read_at = now;
	nic.shared = true; /* who moves it? */
	assert_int_equal(NET(), MO_NONE);
	links.moved_at = now - 2 * SEC;
	assert_int_equal(NET(), now - 2 * SEC);
	links.moved_at = nic.moved_at = early; /* none of both does */
	assert_int_equal(NET(), early);
#undef NET
}

static void cards_are_shared_by_slots(void **state)
{
	static char a[] = "0000:01:00.0", b[] = "0000:02:00.0", c[] = "0000:03:00.0",
		    nic0[] = "mlx5_0", nic1[] = "mlx5_1";
	struct gpu_slot gpus[] = {
		{ .index = 0, .bdf = a, .nic = nic0 },
		{ .index = 1, .bdf = b, .nic = nic0 },
		{ .index = 2, .bdf = b, .nic = nic0 }, /* a partition of the same GPU */
		{ .index = 3, .bdf = c, .nic = nic1 },
	};
	struct nodeinfo info = { .gpus = gpus, .n_gpus = ELEMENTSOF(gpus) };

	assert_true(motion_shared(&info, &gpus[0], true, (int64_t[]){ 3, 1 }, 2));
	assert_false(motion_shared(&info, &gpus[0], false, (int64_t[]){ 3, 1 }, 2));
	assert_true(motion_shared(&info, &gpus[1], false, (int64_t[]){ 2 }, 1));
	assert_false(motion_shared(&info, &gpus[3], true, (int64_t[]){ 0, 1, 2 }, 3));
	assert_false(motion_shared(&info, &gpus[3], true, NULL, 0));
}

static void descendants_belong_to_their_rank(void **state)
{
	struct motion_process all[] = {
		{ .pid = 300, .ppid = 200 }, { .pid = 1, .ppid = 0 },    { .pid = 100, .ppid = 50 },
		{ .pid = 200, .ppid = 100 }, { .pid = 101, .ppid = 50 }, { .pid = 50, .ppid = 1 },
		{ .pid = 400, .ppid = 50 },  { .pid = 7, .ppid = 8 },    { .pid = 8, .ppid = 7 },
	};
	struct motion_reading ranks[] = { { .pid = 100 }, { .pid = 101 } };
	int64_t root[512] = { 0 };

	motion_trees(all, ELEMENTSOF(all), ranks, ELEMENTSOF(ranks));
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		root[all[i].pid] = all[i].root;
	assert_int_equal(root[100], 100);
	assert_int_equal(root[200], 100);
	assert_int_equal(root[300], 100);
	assert_int_equal(root[101], 101);
	assert_int_equal(root[400], 0); /* of the supervisor */
	assert_int_equal(root[50], 0);
	assert_int_equal(root[7], 0); /* a circle ends */
	assert_int_equal(motion_state('T'), PROCESS_STOPPED);
	assert_int_equal(motion_state('t'), PROCESS_RUNS); /* a debugger holds it */
	assert_int_equal(motion_state('D'), PROCESS_WAITS);
	assert_int_equal(motion_state('S'), PROCESS_RUNS);
}

static size_t synced_motion(struct bed *b, struct rank_motion *ret)
{
	struct agent_sync s;
	size_t n;

	mo_desc_init(&agent_sync_desc, &s);
	agent_core_sync(b->core, &s);
	n = s.steps[0].n_motion;
	if (n)
		*ret = s.steps[0].motion[0];
	mo_desc_done(&agent_sync_desc, &s);
	return n;
}

static void it_looks_while_it_is_asked(void **state)
{
	struct bed *b = *state;
	struct motion_reading *ranks;
	struct rank_motion m;
	size_t n;

	running(b);
	ranks = agent_core_ranks(b->core, 7, 1, &n);
	assert_int_equal(n, 2);
	assert_int_equal(ranks[0].rank, 4);
	assert_int_equal(ranks[0].pid, 104);
	said(b);
	orders(b, CMD_MOTION, 7, 1);
	assert_non_null(strstr(said(b), "motion:7.1"));
	reply_full(b, true, 3, 0, &(struct order){ CMD_MOTION, 7, 1, 0 }, 1, NULL, 0); /* again */
	assert_null(strstr(said(b), "motion"));
	give(b, (struct agent_event){ .type = AE_MOTION,
				      .job = 7,
				      .attempt = 1,
				      .readings = ranks,
				      .n_readings = n });
	assert_int_equal(synced_motion(b, &m), 2);
	assert_int_equal(m.rank, 4);
	assert_int_equal(m.log_ms, MO_NONE);
	b->now += SEC;
	orders(b, CMD_MOTION, 7, 1);
	assert_non_null(strstr(said(b), "motion:7.1"));
	reply_full(b, true, 3, 0, NULL, 0, NULL, 0); /* nobody asks any more */
	assert_int_equal(synced_motion(b, &m), 0);
	orders(b, CMD_MOTION, 7, 2); /* it has no such step */
	assert_null(strstr(said(b), "motion"));
	note(b, 7, 1, 4, NOTE_EXIT, 4);
	free(ranks);
	ranks = agent_core_ranks(b->core, 7, 1, &n);
	assert_int_equal(n, 1);
	assert_int_equal(ranks[0].rank, 5);
	free(ranks);
}

/* What the next sync says of the first rank's recorder; caller frees. */
static char *synced_recorder(struct bed *b)
{
	struct agent_sync s;
	char *ret = NULL;

	mo_desc_init(&agent_sync_desc, &s);
	agent_core_sync(b->core, &s);
	if (s.n_steps && s.steps[0].n_recorder)
		ret = mo_strdup(s.steps[0].recorder[0].enqueued);
	mo_desc_done(&agent_sync_desc, &s);
	return ret;
}

static void says_recorder(struct bed *b, const char *text)
{
	_cleanup_(mo_freep) char *said = synced_recorder(b);

	if (!mo_streq(said, text))
		fail_msg("%s, not %s", said ? said : "-", text ? text : "-");
}

/* A dump moves something: who asked again and again would never see a hang. */
static void recorders_are_asked_once_and_told_until_taken(void **state)
{
	struct bed *b = *state;
	struct rank_recorder k = { .rank = 4, .enqueued = (char *)"0=781" };
	const struct recorder_answer answer = { .ranks = &k, .n_ranks = 1 };
	const struct agent_event e = {
		.type = AE_RECORDER, .job = 7, .attempt = 1, .recorder = &answer
	};
	const struct agent_welcome w = { .epoch = 3, .beat_ms = 1000, .recorder = true };
	const struct order due = { .kind = CMD_MOTION, .job = 7, .attempt = 1 };

	running(b);
	orders(b, CMD_MOTION, 7, 1);
	assert_null(strstr(said(b), "recorder")); /* an older controller */
	simple(b, AE_NO_ANSWER, 0, 0);
	give(b, (struct agent_event){ .type = AE_NO_ANSWER, .ok = true });
	b->now += 10 * SEC;
	give(b, (struct agent_event){ .type = AE_TICK });
	give(b, (struct agent_event){ .type = AE_WELCOME, .welcome = &w });
	said(b);
	orders(b, CMD_MOTION, 7, 1);
	assert_non_null(strstr(said(b), "recorder:7.1"));
	b->now += SEC;
	orders(b, CMD_MOTION, 7, 1);
	assert_null(strstr(said(b), "recorder"));
	says_recorder(b, NULL);
	give(b, e); /* while that sync is under way */
	reply_full(b, true, 3, 0, &due, 1, NULL, 0);
	says_recorder(b, "0=781");
	says_recorder(b, "0=781"); /* the first was lost */
	reply_full(b, true, 3, 0, &due, 1, NULL, 0);
	says_recorder(b, NULL);
	reply_full(b, true, 3, 0, NULL, 0, NULL, 0); /* it moved on */
	b->now += SEC;
	orders(b, CMD_MOTION, 7, 1);
	assert_non_null(strstr(said(b), "recorder:7.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_has_its_age),
		cmocka_unit_test(a_little_is_no_motion),
		cmocka_unit_test(less_than_before_is_motion),
		cmocka_unit_test(a_late_reading_begins_anew),
		cmocka_unit_test(what_can_be_read_again_begins_to_count),
		cmocka_unit_test(cards_are_known_before),
		cmocka_unit_test(gpus_are_known_before),
		cmocka_unit_test(a_rank_of_several_gpus),
		cmocka_unit_test(a_rank_moves_when_one_of_its_cards_does),
		cmocka_unit_test(cards_are_shared_by_slots),
		cmocka_unit_test(descendants_belong_to_their_rank),
		T(it_looks_while_it_is_asked),
		T(recorders_are_asked_once_and_told_until_taken),
	};

	return cmocka_run_group_tests_name("acore/motion", tests, NULL, NULL);
}
