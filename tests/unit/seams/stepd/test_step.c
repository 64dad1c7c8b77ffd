/* The supervisor's shell as it is, from launch.json to the note that everything is gone, without a
 * process, a socket, a disk or a clock of this machine. */
#include "tests/unit/seams/stepd/bed.h"

#include <errno.h>
#include <signal.h>

#include "agent/stepd/begin.h"
#include "agent/stepd/child.h"
#include "agent/stepd/loop.h"
#include "lib/base/desc.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define DIR "/run/moe/steps/j7.a1"
#define LOGS "/var/lib/moe/logs/j7/a1"
#define N_RANKS 2

void seam_streams_done(void);

/* As of moe-stepd, a supervisor's memory goes with its process: here, with the program. */
static struct stepd all[100];
static size_t n_all;
static struct stepd *s;
static int agent;    /* its end of the socket, -1 none */
static int64_t told; /* the highest note that the agent was told of */
static bool told_iteration;

static void spool(void)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct spool p;

	mo_desc_init(&spool_desc, &p);
	p.step_id = mo_strdup("j7.a1.n0.x");
	p.boot_id = mo_strdup("boot");
	p.node = mo_strdup("n0");
	p.log_dir = mo_strdup(LOGS);
	p.log_bytes = 1 << 20;
	p.launch.job = 7;
	p.launch.attempt = 1;
	p.launch.first_rank = 0;
	p.launch.world = p.launch.n_local = N_RANKS;
	mo_strs_add(&p.launch.argv, &p.launch.n_argv, "/bin/train");
	p.launch.bind.verify = mo_strdup("off");
	for (int i = 0; i < N_RANKS; i++)
		mo_desc_init(&rank_bind_desc, MO_ADD(&p, binds, &rank_bind_desc));
	wire_encode(&spool_desc, &p, &b);
	mo_desc_done(&spool_desc, &p);
	seam_put(DIR "/launch.json", b.data);
}

static int begin(void)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	assert_true(n_all < ELEMENTSOF(all));
	s = &all[n_all++];
	stepd_init(s);
	s->dir = (char *)DIR;
	s->dir_fd = mo_open_at(AT_FDCWD, DIR, O_RDONLY | O_DIRECTORY, 0);
	return stepd_open(s, &err);
}

static int setup(void **state)
{
	spool();
	agent = -1;
	told = 0;
	told_iteration = false;
	return 0;
}

static int teardown(void **state)
{
	seam_ranks_done();
	seam_people_done();
	seam_disk_done();
	seam_streams_done();
	return 0;
}

/* What the supervisor said to the agent so far. */
static void listen_to_it(void)
{
	if (agent < 0)
		agent = seam_connect(DIR "/sock");
	_cleanup_(mo_freep) char *words = agent >= 0 ? seam_received(agent) : mo_strdup("");
	for (char *line = words, *end; (end = strchr(line, '\n')); line = end + 1) {
		struct stepd_word w;

		mo_desc_init(&stepd_word_desc, &w);
		assert_int_equal(wire_decode(&stepd_word_desc, line, (size_t)(end - line), false,
					     &w, NULL),
				 0);
		told = MO_MAX(told, w.written);
		for (size_t i = 0; i < w.n_progress; i++)
			told_iteration |= w.progress[i].rank == 0 && w.progress[i].iteration == 7;
		mo_desc_done(&stepd_word_desc, &w);
	}
}

static void run(int64_t us)
{
	seam_step(s, us);
	listen_to_it();
	if (!seam_dead() && !stepd_is_over(s))
		seam_step(s, 0);
	listen_to_it();
}

/* What the journal says: whole notes, numbered without a gap. */
struct journal_read {
	size_t n, started, running, exits, refused, gone;
	int64_t code, killed;
	bool torn, tail;
};

static struct journal_read notes(void)
{
	struct journal_read r = { .code = MO_NONE };
	const char *text = seam_text(DIR "/notes.1");

	for (const char *line = text ? text : "", *end; *line; line = end + 1) {
		struct note n;

		end = strchr(line, '\n');
		r.torn = !end;
		if (!end)
			break;
		mo_desc_init(&note_desc, &n);
		assert_int_equal(wire_decode(&note_desc, line, (size_t)(end - line), false, &n,
					     NULL),
				 0);
		assert_int_equal(n.n, ++r.n);
		r.started += n.kind == NOTE_STARTED;
		r.running += n.kind == NOTE_RUNNING;
		r.refused += n.kind == NOTE_REFUSED;
		r.gone += n.kind == NOTE_GONE;
		r.exits += n.kind == NOTE_EXIT;
		r.killed += n.kind == NOTE_EXIT && mo_streq(n.cause, "killed");
		if (n.kind == NOTE_EXIT && n.code != MO_NONE) {
			r.code = n.code;
			r.tail = n.n_tail == 1 && mo_streq(n.tail[0], "out of words");
		}
		mo_desc_done(&note_desc, &n);
	}
	return r;
}

/* Two ranks run and say something, one fails, the agent has the rest killed. */
static void whole_step(void)
{
	if (begin() < 0)
		return;
	run(0);
	if (seam_rank(0) && seam_exists(DIR "/notify.0"))
		seam_datagram(DIR "/notify.0", "PHASE=train\nITERATION=7\n");
	struct seam_rank *r = seam_rank(1);
	if (r && seam_process(r->pid) && !seam_process(r->pid)->dead)
		mo_write(r->err, "out of words\n", 13);
	run(S);
	if (r)
		seam_process_ends(r->pid, 3 << 8);
	run(S);
	if (agent >= 0)
		seam_send(agent, "{\"cmd\":\"kill\"}\n");
	run(S);
}

static void test_round(void **state)
{
	whole_step();
	assert_true(stepd_is_over(s));
	struct journal_read r = notes();
	assert_int_equal(r.started, N_RANKS);
	assert_int_equal(r.running, 1);
	assert_int_equal(r.exits, N_RANKS);
	assert_int_equal(r.code, 3);
	assert_true(r.tail);
	assert_int_equal(r.killed, 1);
	assert_int_equal(r.gone, 1);
	assert_int_equal(told, r.n);
	assert_true(told_iteration);
	assert_string_equal(seam_text(LOGS "/rank-1.log"), "out of words\n");
	assert_int_equal(seam_killed(), 1);
	assert_int_equal(seam_processes(), 0);
	assert_true(begin() < 0); /* a step never runs twice */
}

static void test_exec_fails(void **state)
{
	seam_exec_fails(CHILD_EXEC, ENOENT);
	assert_int_equal(begin(), 0);
	run(S);
	struct journal_read r = notes();
	assert_true(stepd_is_over(s));
	assert_true(r.refused >= 1);
	assert_int_equal(r.started + r.exits, 0);
	assert_int_equal(r.gone, 1);
	assert_int_equal(seam_processes(), 0);
}

/* The machine ends the supervisor: its ranks get their grace, then the kill. */
static void test_grace(void **state)
{
	assert_int_equal(begin(), 0);
	seam_ranks_ignore(true);
	s->spool.launch.stop_grace_us = 5 * S;
	run(0);
	seam_signal_self(s);
	run(5 * S - 1);
	assert_int_equal(seam_process(seam_rank(0)->pid)->signalled, SIGTERM);
	assert_int_equal(seam_killed(), 0);
	run(S);
	assert_int_equal(seam_killed(), N_RANKS);
	assert_int_equal(notes().gone, 1);
	assert_true(stepd_is_over(s));
}

/* A full disk: ranks run on, nothing is told that cannot be read, and later all of it is there. */
static void test_disk_full(void **state)
{
	assert_int_equal(begin(), 0);
	run(0);
	int64_t before = told;
	assert_int_equal(before, 3);
	seam_fail_after(1, ENOSPC);
	seam_process_ends(seam_rank(1)->pid, 3 << 8);
	run(S);
	assert_int_equal(told, before);
	assert_int_equal(seam_processes(), 1);
	seam_fail_after(0, 0);
	run(S);
	assert_int_equal(told, before + 1);
	assert_false(notes().torn); /* the half that was written first is cut off again */
	assert_int_equal(notes().code, 3);
}

/* What rank 0 writes, until the supervisor has read it. */
static void say(const char *line)
{
	mo_write(seam_rank(0)->out, line, strlen(line));
	run(S);
}

/* A disk that is full from some change of a rotation on: once there is space the log goes on, by
 * one rotation, and says what it lacks. */
static void test_rotation_on_full_disk(void **state)
{
	bool lacks = true;
	size_t n = 0;

	while (lacks && n < 20) {
		assert_int_equal(begin(), 0);
		s->spool.log_bytes = 10;
		run(0);
		say("0123456789\n");
		seam_fail_after(++n, ENOSPC);
		say("now or never\n");
		seam_fail_after(0, 0);
		say("space again\n");
		const char *log = seam_text(LOGS "/rank-0.log");
		const char *old = seam_text(LOGS "/rank-0.log.1");
		lacks = mo_streq(old, "0123456789\n");
		if (lacks) {
			assert_non_null(strstr(log, "are missing here: disk full]\nspace again\n"));
			assert_string_equal(seam_text(LOGS "/rank-0.base"), "11\n");
		} else {
			assert_string_equal(old, "now or never\n");
			assert_string_equal(log, "space again\n");
			assert_string_equal(seam_text(LOGS "/rank-0.base"), "24\n");
		}
		teardown(state);
		setup(state);
	}
	assert_false(lacks);
	assert_true(n > 6);
}

/* It dies at each change of the world in turn: what it told is there, and none runs it again. */
static void test_crash(void **state)
{
	size_t n = 0;
	bool died = true;

	for (; died && n < 90; n++) {
		seam_crash_after(n + 1);
		whole_step();
		died = seam_dead();
		struct journal_read r = notes();
		assert_true(told <= (int64_t)r.n);
		assert_true(r.gone == 0 || seam_processes() == 0);
		seam_alive();
		size_t forked = 0;
		while (seam_rank(forked))
			forked++;
		assert_true(forked <= N_RANKS);
		if (r.n > 0)
			assert_true(begin() < 0);
		teardown(state);
		setup(state);
	}
	assert_false(died);
	assert_true(n > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_grace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rotation_on_full_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crash, setup, teardown),
	};

	return cmocka_run_group_tests_name("step", tests, NULL, NULL);
}
