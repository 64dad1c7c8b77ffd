/* The agent's shell as it is, between a controller and supervisors of a few lines each: it starts,
 * is given a launch, hears ranks, reports their end; it is killed, and adopts. No process, socket,
 * disk or clock of this machine. */
#include "tests/unit/seams/agent/bed.h"

#include <errno.h>

#include "agent/manager.h"
#include "agent/core/stepd/spool.h"
#include "lib/base/fd.h"
#include "lib/model/message.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define STATE "/var/lib/moe"
#define RUN "/run/moe"
#define STEP RUN "/steps/j7.a1"
#define BOOT "/proc/sys/kernel/random/boot_id"
#define JOIN_TOKEN "moej_0123456789"
#define OWN_TOKEN "moe_agent_9876543210"
#define N_RANKS 2
#define SLICE_US 100000

void seam_streams_done(void);

static const struct agent_config config = { .controller = (char *)"http://moed",
					    .token_file = (char *)"/etc/moe/token",
					    .node = (char *)"n1",
					    .state_dir = (char *)STATE,
					    .images_dir = (char *)STATE "/images",
					    .runtime_dir = (char *)RUN,
					    .log_bytes = 1 << 20,
					    .logs_kept = 10,
					    .tmpdir = (char *)"/tmp",
					    .use_systemd = (char *)"no",
					    .use_cgroup = (char *)"no",
					    .discover_deadline_us = 10 * S,
					    .probe_host_us = 60 * S,
					    .metrics_port = -1 };
static struct manager *m;

/* ---- the controller: one job, which it wants to run and then to end ---- */

static struct {
	int64_t epoch, command_epoch; /* command: what its orders say */
	int64_t stored;               /* notes that it has on disk */
	bool launch, kill;            /* is wanted */
	size_t hellos, exits, gone, lost, refused, running;
	bool hung;         /* its supervisor does not answer, by the last sync */
	bool told_of_step; /* the last hello or sync named the step */
} moed;

static void take_notes(const struct step_report *r)
{
	assert_int_equal(r->job, 7);
	for (size_t i = 0; i < r->n_notes; i++) {
		const struct note *n = &r->notes[i];

		if (n->n <= moed.stored)
			continue;
		assert_int_equal(n->n, moed.stored + 1); /* none is left out */
		moed.stored = n->n;
		moed.running += n->kind == NOTE_RUNNING;
		moed.exits += n->kind == NOTE_EXIT;
		moed.lost += n->kind == NOTE_LOST;
		moed.refused += n->kind == NOTE_REFUSED;
		moed.gone += n->kind == NOTE_GONE;
		assert_true(moed.gone == 0 || n->kind == NOTE_GONE); /* nothing after it */
	}
}

static void order(struct sync_reply *r, int kind)
{
	struct command *c = MO_ADD(r, commands, &command_desc);

	c->kind = kind;
	c->epoch = moed.command_epoch;
	c->job = 7;
	c->attempt = 1;
	c->node = mo_strdup("n1");
	if (kind != CMD_LAUNCH)
		return;
	struct launch *l = c->launch = mo_desc_new(&launch_desc);
	l->job = 7;
	l->attempt = 1;
	l->first_rank = 0;
	l->world = l->n_local = N_RANKS;
	l->bind.verify = mo_strdup("off");
	mo_strs_add(&l->argv, &l->n_argv, "/bin/train");
}

static void answer_hello(uint64_t id, const char *json)
{
	struct agent_hello h;
	struct agent_welcome w;

	mo_desc_init(&agent_hello_desc, &h);
	mo_desc_init(&agent_welcome_desc, &w);
	assert_int_equal(wire_decode(&agent_hello_desc, json, strlen(json), false, &h, NULL), 0);
	assert_string_equal(h.node, "n1");
	moed.hellos++;
	moed.told_of_step = h.n_steps > 0;
	w.epoch = moed.epoch;
	w.beat_ms = 1000;
	for (size_t i = 0; i < h.n_steps; i++) {
		struct step_ack *a = MO_ADD(&w, steps, &step_ack_desc);

		a->job = h.steps[i].job;
		a->attempt = h.steps[i].attempt;
		a->through = moed.stored;
		a->known = true;
	}
	mo_desc_done(&agent_hello_desc, &h);
	seam_answer(id, 200, &agent_welcome_desc, &w);
	mo_desc_done(&agent_welcome_desc, &w);
}

static void answer_sync(uint64_t id, const char *json)
{
	struct agent_sync s;
	struct sync_reply r;

	mo_desc_init(&agent_sync_desc, &s);
	mo_desc_init(&sync_reply_desc, &r);
	assert_int_equal(wire_decode(&agent_sync_desc, json, strlen(json), false, &s, NULL), 0);
	r.epoch = moed.epoch;
	moed.told_of_step = s.n_steps > 0;
	for (size_t i = 0; i < s.n_steps; i++) {
		struct step_ack *a = MO_ADD(&r, acks, &step_ack_desc);

		take_notes(&s.steps[i]);
		moed.hung = s.steps[i].state == STEP_HUNG;
		a->job = 7;
		a->attempt = 1;
		a->through = moed.stored;
		a->known = true;
	}
	if (moed.launch && !moed.stored)
		order(&r, CMD_LAUNCH);
	if (moed.kill && !moed.gone)
		order(&r, CMD_KILL);
	if (moed.gone)
		order(&r, CMD_FORGET);
	mo_desc_done(&agent_sync_desc, &s);
	seam_answer(id, 200, &sync_reply_desc, &r);
	mo_desc_done(&sync_reply_desc, &r);
}

static void answer_trade(uint64_t id)
{
	seam_answer(id, 201, &token_traded_desc,
		    &(struct token_traded){ .token = (char *)OWN_TOKEN, .expires_at = MO_NONE });
}

/* ---- a supervisor ---- */

static struct {
	size_t starts;
	bool lives;
	int listener, link; /* -1: nobody is connected */
	int64_t n_notes;
	int pids[N_RANKS];
	bool ordered; /* to kill */
} stepd;

static void say(const char *words)
{
	if (stepd.link >= 0 && !seam_send(stepd.link, words)) {
		seam_close(stepd.link);
		stepd.link = -1;
	}
}

static void note(int kind, int64_t rank)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct note n;

	mo_desc_init(&note_desc, &n);
	n.n = ++stepd.n_notes;
	n.kind = kind;
	n.rank = rank;
	n.mono_ns = n.n;
	n.time = seam_now();
	if (kind == NOTE_EXIT)
		n.cause = mo_strdup("killed");
	wire_encode(&note_desc, &n, &b);
	mo_buf_str(&b, "\n");
	seam_append(STEP "/notes.1", b.data);
	mo_desc_done(&note_desc, &n);
	_cleanup_(mo_freep) char *written =
		mo_printf("{\"written\":%lld,\"urgent\":true}\n", (long long)stepd.n_notes);
	say(written);
}

/* The attempt is on disk before anything is started. */
static bool is_fenced(void)
{
	const char *log = seam_text(STATE "/fence.log"), *file = seam_text(STATE "/fence.json");

	return (log && strstr(log, "7 1\n")) || (file && strstr(file, "{\"job\":7,\"attempt\":1}"));
}

static void stepd_start(const char *dir, int64_t job, int64_t attempt)
{
	struct spool p;
	const char *text = seam_text(STEP "/launch.json");

	assert_string_equal(dir, STEP);
	assert_int_equal(++stepd.starts, 1); /* an attempt never runs twice */
	assert_non_null(text);
	assert_true(is_fenced());
	mo_desc_init(&spool_desc, &p);
	assert_int_equal(wire_decode(&spool_desc, text, strlen(text), false, &p, NULL), 0);
	_cleanup_(mo_freep) char *mark = mo_printf("MOE_STEP=%s", p.step_id);
	seam_put(STEP "/step_id", p.step_id);
	mo_desc_done(&spool_desc, &p);
	seam_lock(STEP "/lock", true);
	stepd.lives = true;
	stepd.listener = seam_listen(STEP "/sock");
	for (int i = 0; i < N_RANKS; i++) {
		stepd.pids[i] = seam_process_new(1, mark)->pid;
		note(NOTE_STARTED, i);
	}
	note(NOTE_RUNNING, MO_NONE);
}

static void stepd_dies(void)
{
	stepd.lives = false;
	seam_lock(STEP "/lock", false);
	seam_close(stepd.listener);
	if (stepd.link >= 0)
		seam_close(stepd.link);
	stepd.link = -1;
}

static void stepd_turns(void)
{
	if (!stepd.lives)
		return;
	for (int fd; (fd = seam_accept(stepd.listener)) >= 0; stepd.link = fd) {
		if (stepd.link >= 0)
			seam_close(stepd.link);
		_cleanup_(mo_freep) char *up =
			mo_printf("{\"up\":4000,\"written\":%lld}\n", (long long)stepd.n_notes);
		seam_send(fd, up);
	}
	_cleanup_(mo_freep) char *orders = stepd.link >= 0 ? seam_received(stepd.link) : NULL;
	if (!orders || !strstr(orders, "\"kill\""))
		return;
	assert_true(moed.kill); /* nobody else may order it */
	for (int i = 0; i < N_RANKS; i++) {
		seam_process_ends(stepd.pids[i], 9);
		note(NOTE_EXIT, i);
	}
	note(NOTE_GONE, MO_NONE);
	stepd_dies();
}

/* ---- */

static int start(void)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	seam_new_process();
	seam_machine_done();
	seam_controller_done();
	seam_alive();
	return manager_new(&config, NULL, &m, &err);
}

/* Also of a dead one: its memory goes, and nothing that this does reaches the world. */
static void end(void)
{
	m = manager_free(m);
}

/* While a supervisor lives, nobody but it kills. */
static void check_ranks(void)
{
	assert_true(!stepd.lives || seam_processes() == N_RANKS);
}

static void run(int64_t us)
{
	const char *path, *json;

	for (int64_t until = seam_now() + us; seam_now() < until && !seam_dead();) {
		seam_machine_answers();
		seam_run(SLICE_US);
		check_ranks();
		stepd_turns();
		for (uint64_t id; !seam_dead() && (id = seam_message(&path, &json));) {
			if (strstr(path, "/hello"))
				answer_hello(id, json);
			else if (strstr(path, "/token"))
				answer_trade(id);
			else
				answer_sync(id, json);
		}
	}
}

static int setup(void **state)
{
	memset(&moed, 0, sizeof(moed));
	memset(&stepd, 0, sizeof(stepd));
	stepd.link = -1;
	moed.epoch = moed.command_epoch = 3;
	seam_found = "{\"hostname\":\"n1\",\"cpus\":8,\"gpus\":[]}";
	seam_on_start = stepd_start;
	seam_put(BOOT, "boot-1\n");
	seam_put("/etc/moe/token", "moe_agent_0123456789\n");
	const char *const helpers[] = { "moe-stepd", "moe-discover", "moe-ckpt",
					"moe-probe", "moe-image",    "moe-recorder" };
	for (size_t i = 0; i < ELEMENTSOF(helpers); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("/usr/lib/moe/%s", helpers[i]);
		seam_put(path, "");
	}
	return 0;
}

static int teardown(void **state)
{
	if (m && m->draining) /* a failed assertion left its turn */
		m = NULL;
	end();
	seam_controller_done();
	seam_machine_done();
	seam_people_done();
	seam_disk_done();
	seam_streams_done();
	return 0;
}

static void test_round(void **state)
{
	assert_int_equal(start(), 0);
	run(S);
	assert_int_equal(moed.hellos, 1);
	moed.launch = true;
	run(2 * S);
	assert_int_equal(stepd.starts, 1);
	assert_int_equal(moed.running, 1);
	moed.kill = true;
	run(2 * S);
	assert_int_equal(moed.exits, N_RANKS);
	assert_int_equal(moed.gone, 1);
	run(2 * S);
	assert_false(seam_exists(STEP)); /* what was acknowledged is tidied away */
	assert_int_equal(seam_killed(), 0);
	size_t world = seam_open_files();
	end();
	assert_true(seam_open_files() < world);
	assert_int_equal(seam_open_files(), 0);
}

/* An agent ends, its step runs on, and the next one has it. */
static void test_adopts(void **state)
{
	moed.launch = true;
	assert_int_equal(start(), 0);
	run(2 * S);
	assert_int_equal(moed.running, 1);
	end();
	note(NOTE_PHASE, 0); /* meanwhile */
	assert_int_equal(start(), 0);
	run(2 * S);
	assert_int_equal(moed.hellos, 2);
	assert_int_equal(moed.stored, stepd.n_notes);
	assert_true(stepd.lives);
	assert_int_equal(stepd.starts, 1);
	moed.kill = true;
	run(2 * S);
	assert_int_equal(moed.gone, 1);
}

/* Only the lock proves a supervisor dead: then its ranks are found by their environment, and the
 * controller hears both. */
static void test_supervisor_dies(void **state)
{
	moed.launch = true;
	assert_int_equal(start(), 0);
	run(2 * S);
	struct seam_process *other = seam_process_new(1, "MOE_STEP=j8.a1.n1.x");
	stepd_dies();
	run(2 * S);
	assert_int_equal(moed.lost, 1);
	assert_int_equal(moed.gone, 1);
	assert_int_equal(seam_killed(), N_RANKS);
	assert_false(other->dead);
}

/* A supervisor that holds its lock and says nothing is left alone. */
static void test_supervisor_hangs(void **state)
{
	moed.launch = true;
	assert_int_equal(start(), 0);
	run(2 * S);
	run(2 * S);
	assert_false(moed.hung);
	run(3 * S); /* since its last word: two more than that were heard */
	assert_true(moed.hung);
	seam_close(stepd.link);
	seam_close(stepd.listener);
	stepd.link = -1;
	for (int i = 0; i < 100; i++) {
		seam_run(S);
		check_ranks();
	}
	assert_int_equal(seam_killed() + (int)moed.gone, 0);
	stepd.listener = -1;
	seam_remove(STEP "/sock");
	stepd.listener = seam_listen(STEP "/sock");
	run(3 * S);
	moed.kill = true;
	run(3 * S);
	assert_int_equal(moed.gone, 1);
}

/* The disk of the spool or of the fence fails: nothing is started, the controller hears why. */
static void test_disk_full(void **state)
{
	assert_int_equal(start(), 0);
	run(S);
	seam_fail_after(1, ENOSPC);
	moed.launch = true;
	run(2 * S);
	assert_int_equal(stepd.starts, 0);
	seam_fail_after(0, 0);
	run(10 * S);
	assert_true(stepd.starts == 1 || moed.refused + moed.lost == 1);
}

/* It dies at each change of the world in turn, and another starts. The attempt runs once or not
 * at all; what the controller stored has no gap; it hears of the end. */
static void test_crash(void **state)
{
	size_t n = 0;
	bool died = true;

	for (; died && n < 400; n++) {
		moed.launch = true;
		seam_crash_after(n + 1);
		struct mo_error err = { 0 };
		seam_new_process();
		if (manager_new(&config, NULL, &m, &err) == 0)
			run(2 * S);
		mo_error_done(&err);
		moed.kill = moed.running > 0;
		run(2 * S);
		died = seam_dead();
		end();
		assert_int_equal(seam_open_files(), stepd.lives + (stepd.link >= 0));
		assert_int_equal(start(), 0);
		run(2 * S);
		moed.kill = true;
		run(8 * S);
		assert_int_equal(moed.gone, 1);
		assert_int_equal(seam_killed(), 0);
		assert_int_equal(seam_processes(), 0);
		assert_true(stepd.starts == 1 || moed.running == 0);
		teardown(state);
		setup(state);
	}
	assert_false(died);
	assert_true(n > 20);
}

/* After a loss of power /run is empty and what was not synced is gone, or some of it; the epoch is
 * not. */
static void test_power_loss(void **state)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		moed.launch = true;
		assert_int_equal(start(), 0);
		run(2 * S);
		assert_int_equal(stepd.starts, 1);
		stepd_dies();
		for (int i = 0; i < N_RANKS; i++)
			seam_process_ends(stepd.pids[i], 9);
		end();
		seam_power_loss(seed);
		setup(state);
		seam_remove(BOOT);
		seam_put(BOOT, "boot-2\n");
		moed.launch = true;
		/* a controller before the one that it obeyed */
		moed.epoch = moed.command_epoch = 2;
		assert_int_equal(start(), 0);
		run(3 * S);
		assert_int_equal(moed.hellos, 1);
		assert_int_equal(stepd.starts, 0);
		teardown(state);
		setup(state);
	}
}

/* A runtime directory that is no memory outlives a loss of power: by the boot that an entry names
 * its step is proved over, so the entry is whole. */
static void test_power_loss_of_steps(void **state)
{
	for (uint64_t seed = 1; seed < 40; seed++) {
		moed.launch = true;
		assert_int_equal(start(), 0);
		run(2 * S);
		assert_int_equal(stepd.starts, 1);
		stepd_dies();
		for (int i = 0; i < N_RANKS; i++)
			seam_process_ends(stepd.pids[i], 9);
		end();
		seam_power_loss_of("/", seed);
		assert_true(seam_exists(STEP));
		setup(state);
		seam_remove(BOOT);
		seam_put(BOOT, "boot-2\n");
		assert_int_equal(start(), 0);
		run(3 * S);
		assert_int_equal(moed.hellos, 1);
		assert_false(moed.told_of_step);
		assert_false(seam_exists(STEP));
		teardown(state);
		setup(state);
	}
}

/* It dies at each change within the removal of a step that is over: to the next one there is no
 * step, and nothing is left of it. */
static void test_crash_forgetting(void **state)
{
	bool died = true;
	size_t n = 0;

	for (; died; n++) {
		moed.launch = true;
		assert_int_equal(start(), 0);
		run(2 * S);
		moed.kill = true;
		for (int i = 0; i < 100 && !moed.gone; i++)
			run(SLICE_US);
		seam_crash_after(n + 1);
		run(2 * S);
		died = seam_dead();
		end();
		assert_int_equal(start(), 0);
		run(3 * S);
		if (seam_exists(STEP)) /* it died before it began */
			run(3 * S);
		assert_int_equal(moed.lost, 0);
		assert_int_equal(moed.gone, 1);
		assert_false(seam_exists(STEP));
		assert_false(seam_exists(RUN "/steps/gone.j7.a1"));
		teardown(state);
		setup(state);
	}
	assert_true(n > 4);
}

/* What was said to the controller before the agent died, and nobody answered yet. */
static bool has_said(const char *word)
{
	const char *path, *json;

	return seam_message(&path, &json) && strstr(json, word);
}

/* No entry can be written, so the launch is refused, and the agent dies at each change within that:
 * what the controller heard of has been put away, and the next agent has no step. */
static void test_crash_refusing(void **state)
{
	bool died = true;
	size_t n = 0, heard = 0;

	for (; died; n++) {
		assert_int_equal(start(), 0);
		run(S);
		assert_int_equal(mo_mkdir(STEP, 0700), 0);
		assert_int_equal(mo_mkdir(STEP "/launch.json", 0700), 0);
		moed.launch = true;
		seam_crash_after(n + 1);
		run(2 * S);
		died = seam_dead();
		if (died && has_said("refused")) {
			assert_false(seam_exists(STEP));
			heard++;
		}
		assert_true(died || moed.refused == 1);
		end();
		moed.launch = false;
		assert_int_equal(start(), 0);
		run(3 * S);
		assert_int_equal(stepd.starts, 0);
		assert_false(seam_exists(STEP));
		assert_false(seam_exists(RUN "/steps/gone.j7.a1"));
		teardown(state);
		setup(state);
	}
	assert_true(heard > 0 && n > 4);
}

/* A join token was traded: its node speaks with what it got, and has that after a loss of power. */
static void test_power_loss_of_token(void **state)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		seam_remove("/etc/moe/token");
		seam_put("/etc/moe/token", JOIN_TOKEN "\n");
		assert_int_equal(start(), 0);
		run(2 * S);
		assert_int_equal(moed.hellos, 1);
		end();
		seam_power_loss(seed);
		const char *kept = seam_text(STATE "/agent.token");
		assert_non_null(kept);
		assert_string_equal(kept, OWN_TOKEN "\n");
		teardown(state);
		setup(state);
	}
}

/* It dies at each change on the way to its first epoch, another goes on with what it left, and then
 * power is lost, with all that was not synced: the epoch is not. */
static void test_power_loss_after_a_crash(void **state)
{
	bool died = true;

	for (size_t n = 0; died && n < 400; n++) {
		struct mo_error err = { 0 };

		seam_crash_after(n + 1);
		seam_new_process();
		if (manager_new(&config, NULL, &m, &err) == 0)
			run(2 * S);
		mo_error_done(&err);
		died = seam_dead();
		end();
		assert_int_equal(start(), 0);
		run(2 * S);
		end();
		seam_power_loss(0);
		setup(state);
		seam_remove(BOOT);
		seam_put(BOOT, "boot-2\n");
		moed.launch = true;
		moed.epoch = moed.command_epoch = 2;
		assert_int_equal(start(), 0);
		run(3 * S);
		assert_int_equal(moed.hellos, 1);
		assert_int_equal(stepd.starts, 0);
		teardown(state);
		setup(state);
	}
	assert_false(died);
}

/* What protects was emptied, by whatever: on the boot that wrote it that is refused in one line; a
 * new boot proves that nothing of before is under way, and the epoch is still known. */
static void test_emptied_fence(void **state)
{
	static const char *const emptied[] = { STATE "/fence.json", STATE "/fence.log" };

	for (size_t i = 0; i < ELEMENTSOF(emptied); i++) {
		moed.launch = true;
		assert_int_equal(start(), 0);
		run(2 * S);
		stepd_dies();
		for (int rank = 0; rank < N_RANKS; rank++)
			seam_process_ends(stepd.pids[rank], 9);
		end();
		seam_put(emptied[i], i ? "7 1\n\001\n" : "");
		assert_true(start() < 0);
		end();
		seam_remove("/run");
		setup(state);
		seam_remove(BOOT);
		seam_put(BOOT, "boot-2\n");
		moed.epoch = moed.command_epoch = 2; /* before the one that it obeyed */
		moed.launch = true;
		assert_int_equal(start(), 0);
		run(3 * S);
		assert_int_equal(stepd.starts, 0);
		assert_int_equal(moed.refused, 1);
		end();
		seam_put(emptied[i], i ? "\001\n" : ""); /* it is of this boot by now */
		assert_true(start() < 0);
		end();
		teardown(state);
		setup(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round, setup, teardown),
		cmocka_unit_test_setup_teardown(test_adopts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_supervisor_dies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_supervisor_hangs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(test_power_loss, setup, teardown),
		cmocka_unit_test_setup_teardown(test_power_loss_of_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crash_forgetting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crash_refusing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_power_loss_of_token, setup, teardown),
		cmocka_unit_test_setup_teardown(test_power_loss_after_a_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(test_emptied_fence, setup, teardown),
	};

	unsetenv("MOE_BOOT_ID");
	return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
