/* The controller's shell in a world of its own: turn, links, tokens, journal and replay as they
 * are, without a socket, a disk or a clock. That this links at all shows that nothing asks the
 * world beside the seams. */
#include "tests/unit/seams/bed.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/auth.h"
#include "daemon/begin.h"
#include "daemon/core/state/state.h"
#include "daemon/journal.h"
#include "daemon/turn.h"
#include "lib/base/fd.h"
#include "lib/model/message.h"
#include "lib/wire/decode.h"
#include "tests/unit/dcore/world.h"

#define DIR "/state"
#define BEAT_MS 1000

static struct options options = { .state_dir = (char *)DIR,
				  .bootstrap_tokens = (char *)DIR "/tokens",
				  .port_min = 40000,
				  .port_max = 50000,
				  .beat_ms = BEAT_MS,
				  .suspect_ms = 2000,
				  .down_ms = 10000,
				  .exit_wait_us = 10 * S,
				  .learn_us = 3600 * S,
				  .history_us = 90 * 24 * 3600 * S };
static struct manager m;
static int64_t beat;

static void start(void)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	seam_new_process();
	if (manager_open(&m, NULL, &options, &err) < 0)
		fail_msg("%s", mo_error_text(&err, -EIO));
	turn_pulse(&m);
	seam_run(0);
}

/* As --init does: a state begins with a record. */
static void begin(void)
{
	_cleanup_(core_freep) struct core *core = core_new(&core_config_default);
	struct journal *journal = journal_new();
	struct record r = begin_incarnation(core_state(core), MO_NONE);
	_cleanup_(mo_freep) char *text = journal_record_text(journal, &r);
	struct store *store;

	assert_int_equal(store_open(DIR, &store, NULL), 0);
	assert_int_equal(store_append(store, &text, 1, NULL), 0);
	mo_desc_done(&record_desc, &r);
	journal_free(journal);
	store_free(store);
}

/* Of the real disk, to where a site has its own. */
static void put_shipped(const char *name)
{
	_cleanup_(mo_freep) char *path = mo_path(MO_SOURCE_DIR "/config", "%s", name);
	char text[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	assert_true(n > 0);
	close(fd);
	text[n] = '\0';
	_cleanup_(mo_freep) char *site = mo_path(MO_SYSCONFDIR "/moe", "%s", name);

	seam_put(site, text);
}

static int setup(void **state)
{
	put_shipped("failures/signatures.yaml");
	seam_put("/proc/sys/kernel/random/boot_id", "0123-4567\n");
	beat = 0;
	seam_vfs();
	begin();
	start();
	/* the bootstrap's, of no node: it is taken from this machine */
	for (size_t i = 0; i < manager_state(&m)->n_tokens; i++)
		if (mo_streq(manager_state(&m)->tokens[i].role, "agent"))
			seam_token(manager_state(&m)->tokens[i].id);
	return 0;
}

static int teardown(void **state)
{
	seam_fail_after(0, 0);
	seam_wall_ahead(0);
	manager_done(&m);
	seam_done();
	return 0;
}

static int64_t hello_of(const char *boot, const char *instance)
{
	struct agent_hello h;

	mo_desc_init(&agent_hello_desc, &h);
	h.node = mo_strdup("n1");
	h.boot_id = mo_strdup(boot);
	h.instance = mo_strdup(instance);
	h.protocol = MO_PROTOCOL;
	for (int64_t i = 0; i < 2; i++) {
		struct gpu_slot *g = MO_ADD(&h.info, gpus, &gpu_slot_desc);

		g->index = i;
		g->vendor = mo_strdup("amd");
		g->model = mo_strdup("mi300x");
	}
	int64_t request = seam_say(&m, AGENT_HELLO, &agent_hello_desc, &h);
	mo_desc_done(&agent_hello_desc, &h);
	return request;
}

static int64_t hello(void)
{
	return hello_of("boot", "i1");
}

/* A sync of the agent, or an urgent message; running: with the notes that say that both ranks of
 * this attempt run. */
static int64_t report(enum agent_word word, const struct command *running)
{
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	s.node = mo_strdup("n1");
	s.boot_id = mo_strdup("boot");
	s.instance = mo_strdup("i1");
	s.epoch = manager_state(&m)->epoch;
	s.beat = beat += word == AGENT_SYNC;
	if (running) {
		struct step_report *r = MO_ADD(&s, steps, &step_report_desc);

		r->job = running->job;
		r->attempt = running->attempt;
		r->state = STEP_RUNNING;
		for (int64_t n = 1; n <= 3; n++) {
			struct note *note = MO_ADD(r, notes, &note_desc);

			note->n = r->written = n;
			note->kind = n == 3 ? NOTE_RUNNING : NOTE_STARTED;
			note->rank = n == 3 ? MO_NONE : n - 1;
			note->pid = n == 3 ? MO_NONE : 1000 + n;
			note->mono_ns = n;
		}
	}
	int64_t request = seam_say(&m, word, &agent_sync_desc, &s);
	mo_desc_done(&agent_sync_desc, &s);
	return request;
}

static int64_t sync_node(const struct command *running)
{
	return report(AGENT_SYNC, running);
}

static void read_reply(int64_t request, struct sync_reply *ret)
{
	const struct seam_answer *a = seam_answer(request);

	assert_non_null(a);
	if (a->status != 200)
		fail_msg("%d: %s", a->status, a->text);
	mo_desc_init(&sync_reply_desc, ret);
	assert_int_equal(wire_decode(&sync_reply_desc, a->text, strlen(a->text), false, ret, NULL),
			 0);
}

/* Whoever submits is answered as an agent is. */
static int64_t submit(void)
{
	struct submit spec;
	struct input *in = input_new(IN_SUBMIT, NULL);

	in->of_agent = true;
	in->core.request = seam_request();
	int64_t request = in->core.request;

	world_recipe(&spec, 2);
	in->core.submit = mo_desc_dup(&submit_desc, &spec);
	in->core.by.user = mo_strdup("ann");
	mo_desc_done(&submit_desc, &spec);
	input_push(&m, in);
	return request;
}

/* A node that said hello, and whose sync is held. */
static int64_t join(void)
{
	int64_t request = hello();

	assert_null(seam_answer(request)); /* not before the turn has stored it */
	seam_run(0);
	assert_non_null(seam_answer(request));
	assert_int_equal(seam_answer(request)->status, 200);
	request = sync_node(NULL);
	seam_run(0);
	return request;
}

static void test_round(void **state)
{
	struct sync_reply reply;
	int64_t held = join(), reported;

	assert_null(seam_answer(held)); /* nothing is due */
	submit();
	seam_run(0);
	read_reply(held, &reply); /* the launch, at once */
	assert_int_equal(reply.n_commands, 1);
	assert_int_equal(reply.commands[0].kind, CMD_LAUNCH);
	assert_int_equal(reply.commands[0].launch->n_local, 2);
	int64_t records = m.n_records;
	reported = sync_node(&reply.commands[0]);
	mo_desc_done(&sync_reply_desc, &reply);
	seam_run(BEAT_MS * 1000);
	assert_true(m.n_records > records);
	read_reply(reported, &reply);
	assert_int_equal(reply.n_acks, 1);
	assert_int_equal(reply.acks[0].through, 3);
	mo_desc_done(&sync_reply_desc, &reply);
	assert_int_equal(job_find(manager_state(&m), 1)->state, JOB_RUNNING);
	/* another process reads what this one stored */
	manager_done(&m);
	start();
	assert_int_equal(job_find(manager_state(&m), 1)->state, JOB_RUNNING);
}

static void test_beat(void **state)
{
	int64_t held = join();

	seam_run(BEAT_MS * 1000 - 1);
	assert_null(seam_answer(held));
	seam_run(1);
	assert_non_null(seam_answer(held));
	assert_int_equal(node_find(manager_state(&m), "n1")->state, NODE_UP);
	seam_run(60 * S); /* a minute of silence takes no time */
	assert_int_equal(node_find(manager_state(&m), "n1")->state, NODE_DOWN);
}

/* An urgent message is answered by the turn that stores it: its notes are acknowledged, and beside
 * that nothing is said. */
static void test_urgent(void **state)
{
	struct sync_reply launch, reply;
	int64_t held = join(), urgent;

	submit();
	seam_run(0);
	read_reply(held, &launch);
	held = sync_node(NULL);
	urgent = report(AGENT_URGENT, &launch.commands[0]);
	assert_null(seam_answer(urgent));
	seam_run(0);
	read_reply(urgent, &reply);
	assert_int_equal(reply.n_acks, 1);
	assert_int_equal(reply.acks[0].through, 3);
	assert_int_equal(reply.n_commands, 0);
	assert_int_equal(job_find(manager_state(&m), 1)->state, JOB_RUNNING);
	mo_desc_done(&sync_reply_desc, &reply);
	mo_desc_done(&sync_reply_desc, &launch);
}

/* The wall clock is set while a message waits for its turn, which learns of that after it: the
 * message is of the time from then on, all the same. */
static void test_clock_comes_first(void **state)
{
	for (int hours = -2; hours <= 2; hours += 4) {
		int64_t held = join();

		assert_null(seam_answer(held));
		seam_wall_ahead(hours * 3600 * S);
		sync_node(NULL);
		seam_time_at(m.pulse_due);
		seam_run(1500000);
		assert_int_equal(node_find(manager_state(&m), "n1")->state, NODE_UP);
		seam_run(60 * S);
		assert_int_equal(node_find(manager_state(&m), "n1")->state, NODE_DOWN);
		teardown(state);
		setup(state);
	}
}

/* The process stood still, and what another machine of that name has said meanwhile is read with
 * the first turn: nobody was silent for that time. */
static void test_lateness_comes_first(void **state)
{
	join();
	seam_time_at(seam_now() + 5 * S);
	int64_t request = hello_of("another", "i2");

	seam_run(0);
	assert_non_null(seam_answer(request));
	assert_int_equal(seam_answer(request)->status, 409);
	seam_run(5 * S);
	request = hello_of("another", "i2");
	seam_run(0);
	assert_int_equal(seam_answer(request)->status, 200);
}

/* Nothing that is not stored is said. */
static void test_store_fails(void **state)
{
	int64_t request = hello();

	seam_fail_after(1, EIO);
	seam_run(0);
	assert_true(seam_ended());
	assert_null(seam_answer(request));
}

/* The process dies with any change of the disk, and its machine loses its power: what was said is
 * known afterwards, and it starts by itself. */
static void test_power_loss(void **state)
{
	bool died = true;
	size_t n_said = 0, n_unsaid = 0;

	for (size_t n = 1; died; n++) {
		join();
		seam_crash_after(n);
		int64_t request = submit();
		seam_run(5 * S);
		died = seam_dead();
		bool said = seam_answer(request) && seam_answer(request)->status < 300;
		n_said += said;
		n_unsaid += !said;
		manager_done(&m);
		seam_alive();
		seam_power_loss(n);
		start();
		assert_non_null(node_find(manager_state(&m), "n1"));
		if (said && !job_find(manager_state(&m), 1))
			fail_msg("lost after change %zu", n);
		teardown(state);
		setup(state);
	}
	assert_true(n_said > 1 && n_unsaid > 1);
}

static void test_refused(void **state)
{
	seam_token("nobody's");
	int64_t request = hello();

	assert_non_null(seam_answer(request));
	assert_int_equal(seam_answer(request)->status, 401);
	/* the session key and the tokens: temporary file, sync, rename */
	assert_true(seam_syncs() > 0);
}

/* Whether moed accepts what the file of the bootstrap's administrator holds; that is kept. */
static bool file_is_good(char **ret)
{
	struct http_caller caller;

	free(*ret);
	*ret = mo_strdup(seam_text(DIR "/tokens/admin.token"));
	(*ret)[strcspn(*ret, "\n")] = '\0';
	return auth_secret(&m, *ret, false, &caller) && caller.role == ROLE_ADMIN;
}

/* The bootstrap's tokens are made anew while others read them: never one that is not stored. */
static void test_tokens_made_anew(void **state)
{
	_cleanup_(mo_freep) char *first = NULL, *later = NULL;

	assert_true(file_is_good(&first));
	seam_time_at(seam_now() + 16 * 24 * 3600 * S);
	auth_bootstrap_renew(&m);
	assert_true(file_is_good(&later));
	assert_string_equal(later, first);
	seam_run(0);
	auth_bootstrap_renew(&m);
	assert_true(file_is_good(&later));
	assert_string_not_equal(later, first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round, setup, teardown),
		cmocka_unit_test_setup_teardown(test_beat, setup, teardown),
		cmocka_unit_test_setup_teardown(test_urgent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clock_comes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lateness_comes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_store_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_power_loss, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tokens_made_anew, setup, teardown),
	};

	return cmocka_run_group_tests_name("turn", tests, NULL, NULL);
}
