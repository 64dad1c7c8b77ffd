/* Agent decisions: the connection to the controller, and what each message of it carries: notes,
 * progress, scans, questions. */
#include "lib/base/desc_fit.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"
#include "tests/unit/acore/agent_bed.h"

static void test_link(void **state)
{
	struct bed *b = *state;

	simple(b, AE_STARTED, 0, 0);
	said(b);
	simple(b, AE_NO_ANSWER, 0, 0);
	assert_string_equal(said(b), "");
	int64_t first = agent_core_deadline(b->core) - b->now;
	assert_true(first >= 100000 && first < 130000);
	b->now = agent_core_deadline(b->core);
	simple(b, AE_TICK, 0, 0);
	assert_string_equal(said(b), "hello");
	for (int i = 0; i < 10; i++) {
		simple(b, AE_NO_ANSWER, 0, 0);
		assert_true(agent_core_deadline(b->core) <= b->now + 1250000);
		b->now = agent_core_deadline(b->core);
		simple(b, AE_TICK, 0, 0);
		assert_string_equal(said(b), "hello");
	}
	welcome_with(b, 3, 0, 0, 0);
	assert_string_equal(said(b), "fence sync");
	b->now = agent_core_deadline(b->core); /* a sync whose answer never comes */
	simple(b, AE_TICK, 0, 0);
	assert_string_equal(said(b), "");
	b->now = agent_core_deadline(b->core);
	simple(b, AE_TICK, 0, 0);
	assert_string_equal(said(b), "hello");
	welcome_with(b, 4, 0, 0, 0);
	assert_string_equal(said(b), "fence sync");
}

static void test_no_spin_while_commands_stay_due(void **state)
{
	struct bed *b = *state;
	struct order kill = { .kind = CMD_KILL, .job = 7, .attempt = 1 };
	int syncs = 0;

	running(b);
	int64_t end = b->now + 5000000;
	while (b->now < end) {
		reply_full(b, true, 3, 1000, &kill, 1, NULL, 0);
		while (!strstr(said(b), "sync")) {
			b->now = agent_core_deadline(b->core);
			simple(b, AE_TICK, 0, 0);
		}
		syncs++;
	}
	assert_true(syncs < 5 * (64 + 50)); /* 64 without a pause and 50 paced ones a second */
}

static void test_urgent_lost(void **state)
{
	struct bed *b = *state;

	running(b);
	note(b, 7, 1, 4, NOTE_EXIT, 4);
	assert_string_equal(said(b), "news");
	give(b, (struct agent_event){ .type = AE_NO_ANSWER, .ok = false });
	note(b, 7, 1, 5, NOTE_EXIT, 5);
	assert_string_equal(said(b), "news");

	struct agent_sync s;
	mo_desc_init(&agent_sync_desc, &s);
	note(b, 7, 1, 6, NOTE_SAMPLE, 4);
	assert_true(agent_core_urgent(b->core, &s));
	assert_int_equal(s.n_steps, 1);
	assert_int_equal(s.steps[0].n_notes, 5); /* up to the last urgent one */
	mo_desc_done(&agent_sync_desc, &s);
	acks(b, 7, 1, 5);
	mo_desc_init(&agent_sync_desc, &s);
	assert_false(agent_core_urgent(b->core, &s));
	mo_desc_done(&agent_sync_desc, &s);
}

static size_t progress_in_sync(struct bed *b)
{
	struct agent_sync s;
	size_t n = 0;

	mo_desc_init(&agent_sync_desc, &s);
	agent_core_sync(b->core, &s);
	for (size_t i = 0; i < s.n_steps; i++)
		n += s.steps[i].n_progress;
	mo_desc_done(&agent_sync_desc, &s);
	return n;
}

/* Told when to come again, it comes then, within a second more, and not with all others. */
static void test_asked_to_wait(void **state)
{
	struct bed *b = *state;
	int64_t waited[8], same = 0;

	simple(b, AE_STARTED, 0, 0);
	for (size_t i = 0; i < ELEMENTSOF(waited); i++) {
		said(b);
		give(b,
		     (struct agent_event){ .type = AE_NO_ANSWER, .ok = true, .after_us = 3000000 });
		waited[i] = agent_core_deadline(b->core) - b->now;
		assert_true(waited[i] >= 3000000 && waited[i] < 4000000);
		same += i > 0 && waited[i] == waited[0];
		b->now = agent_core_deadline(b->core);
		simple(b, AE_TICK, 0, 0);
		assert_string_equal(said(b), "hello");
	}
	assert_int_equal(same, 0);
	/* never longer than it waits for an answer, and afterwards as at first */
	give(b, (struct agent_event){
			.type = AE_NO_ANSWER, .ok = true, .after_us = 3600LL * 1000000 });
	assert_true(agent_core_deadline(b->core) - b->now < 11000000);
	b->now = agent_core_deadline(b->core);
	simple(b, AE_TICK, 0, 0);
	simple(b, AE_NO_ANSWER, 0, 0);
	assert_true(agent_core_deadline(b->core) - b->now < 130000);
}

static void test_progress(void **state)
{
	struct bed *b = *state;
	struct rank_progress p = {
		.rank = 5, .iteration = 12, .step_ms = 3.0, .phase = PHASE_TRAIN
	};

	running(b);
	assert_int_equal(progress_in_sync(b), 0);
	give(b,
	     (struct agent_event){ .type = AE_PROGRESS, .job = 7, .attempt = 1, .progress = &p });
	assert_int_equal(progress_in_sync(b), 1);
	assert_int_equal(progress_in_sync(b), 1); /* until it is acknowledged */
	reply_full(b, true, 3, 500000, NULL, 0, NULL, 0);
	assert_int_equal(progress_in_sync(b), 0);
	simple(b, AE_NO_ANSWER, 0, 0);
	b->now = agent_core_deadline(b->core);
	simple(b, AE_TICK, 0, 0);
	welcome_with(b, 3, 7, 1, 3);
	/* a restarted controller hears all of it again */
	assert_int_equal(progress_in_sync(b), 1);
}

static size_t scans_in_sync(struct bed *b)
{
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	agent_core_sync(b->core, &s);
	size_t n = s.n_scans;
	mo_desc_done(&agent_sync_desc, &s);
	return n;
}

static size_t scans_in_urgent(struct bed *b)
{
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	bool any = agent_core_urgent(b->core, &s);
	size_t n = s.n_scans;
	assert_int_equal(any, n > 0 || s.n_steps > 0);
	mo_desc_done(&agent_sync_desc, &s);
	return n;
}

static void test_scan(void **state)
{
	struct bed *b = *state;
	struct scan_result r;

	up(b);
	mo_desc_init(&scan_result_desc, &r);
	r.job = 7;
	r.attempt = r.id = 2;
	r.order = ORDER_SCAN;
	orders(b, CMD_SCAN, 7, 2);
	orders(b, CMD_SCAN, 7, 2);
	assert_string_equal(said(b), "scan:7.2 sync sync");
	assert_int_equal(scans_in_sync(b), 0);
	assert_int_equal(scans_in_urgent(b), 0);
	give(b, (struct agent_event){ .type = AE_SCANNED, .scan = &r });
	assert_string_equal(said(b), "news"); /* an attempt waits for it */
	assert_int_equal(scans_in_urgent(b), 1);
	assert_int_equal(scans_in_urgent(b), 0);
	assert_int_equal(scans_in_sync(b), 1); /* until it is acknowledged */
	orders(b, CMD_SCAN, 7, 2);
	assert_int_equal(scans_in_sync(b), 1);
	reply_full(b, true, 3, 500000, NULL, 0, NULL, 0);
	assert_int_equal(scans_in_sync(b), 0);
	said(b);
	orders(b, CMD_SCAN, 7, 2);
	assert_string_equal(said(b), "scan:7.2 sync");
	reply_full(b, true, 3, 500000, NULL, 0, NULL, 0); /* not wanted any more */
	give(b, (struct agent_event){ .type = AE_SCANNED, .scan = &r });
	assert_int_equal(scans_in_sync(b), 0);
	mo_desc_done(&scan_result_desc, &r);
}

static void link_is_back(struct bed *b)
{
	simple(b, AE_NO_ANSWER, 0, 0);
	b->now = agent_core_deadline(b->core);
	simple(b, AE_TICK, 0, 0);
	welcome_with(b, 3, 7, 1, 3);
	said(b);
}

/* Nobody could be told for so long: it is looked at again. What ends checks of a save is not. */
static void test_scan_of_before(void **state)
{
	static const struct {
		int order;
		int64_t us;
		size_t sent;
	} cases[] = {
		{ ORDER_SCAN, 11000000, 0 },
		{ ORDER_SCAN, 5000000, 1 },
		{ ORDER_VERIFY, 11000000, 1 },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) void *own = NULL;
		struct bed *b;
		struct scan_result r;
		struct sync_reply reply;
		struct command *c;

		bed_setup(&own);
		b = own;
		up(b);
		mo_desc_init(&scan_result_desc, &r);
		mo_desc_init(&sync_reply_desc, &reply);
		reply.epoch = 3;
		c = MO_ADD(&reply, commands, &command_desc);
		c->epoch = 3;
		c->kind = CMD_SCAN;
		c->job = r.job = 7;
		c->id = r.id = 2;
		c->order = r.order = cases[i].order;
		c->node = mo_strdup("n1");
		c->dir = mo_strdup("/ckpt");
		give(b, (struct agent_event){ .type = AE_REPLY, .ok = true, .reply = &reply });
		give(b, (struct agent_event){ .type = AE_SCANNED, .scan = &r });
		b->now += cases[i].us;
		link_is_back(b);
		assert_int_equal(scans_in_sync(b), cases[i].sent);
		said(b);
		give(b, (struct agent_event){ .type = AE_REPLY, .ok = true, .reply = &reply });
		assert_int_equal(strstr(said(b), "scan:") != NULL, !cases[i].sent);
		mo_desc_done(&sync_reply_desc, &reply);
		mo_desc_done(&scan_result_desc, &r);
		agent_out_done(&b->out);
		agent_core_free(b->core);
	}
}

/* What the checks found is sent at once too; the shell adds it to the urgent message. */
static void test_checked(void **state)
{
	struct bed *b = *state;

	up(b);
	simple(b, AE_CHECKED, 0, 0);
	assert_string_equal(said(b), "news");
	/* while the urgent message is under way: once more behind it */
	simple(b, AE_CHECKED, 0, 0);
	assert_string_equal(said(b), "");
	struct agent_sync s;
	mo_desc_init(&agent_sync_desc, &s);
	assert_true(agent_core_urgent(b->core, &s));
	assert_false(agent_core_urgent(b->core, &s));
	mo_desc_done(&agent_sync_desc, &s);
	simple(b, AE_CHECKED, 0, 0);
	reply_full(b, false, 3, 0, NULL, 0, NULL, 0);
	assert_string_equal(said(b), "news");
}

/* Said while there was no connection: the first sync carries it, and an agent that ends waits for
 * nothing else. */
static void test_checked_before_the_welcome(void **state)
{
	struct bed *b = *state;
	struct agent_sync sync;

	simple(b, AE_STARTED, 0, 0);
	simple(b, AE_CHECKED, 0, 0);
	assert_true(agent_core_has_urgent(b->core));
	welcome_with(b, 3, 0, 0, 0);
	assert_string_equal(said(b), "hello fence sync");
	mo_desc_init(&agent_sync_desc, &sync);
	agent_core_sync(b->core, &sync);
	mo_desc_done(&agent_sync_desc, &sync);
	assert_false(agent_core_has_urgent(b->core));
}

static void test_query_once(void **state)
{
	struct bed *b = *state;

	up(b);
	orders(b, CMD_QUERY, 7, 1);
	orders(b, CMD_QUERY, 7, 1);
	assert_string_equal(said(b), "query:7.1 sync sync");
	b->now += 5000000;
	orders(b, CMD_QUERY, 7, 1);
	assert_string_equal(said(b), "query:7.1 sync");
}

static void test_notes_are_bounded(void **state)
{
	struct bed *b = *state;
	struct agent_sync s;

	running(b);
	for (int64_t n = 4; n <= STEP_NOTES_MAX + 100; n++)
		note(b, 7, 1, n, NOTE_SAMPLE, 4);
	note(b, 7, 1, STEP_NOTES_MAX + 101, NOTE_EXIT, 4);
	for (int round = 0;; round++) {
		int64_t last = 0;

		assert_true(round < 100);
		mo_desc_init(&agent_sync_desc, &s);
		agent_core_sync(b->core, &s);
		assert_true(s.steps[0].n_notes <= MO_NOTES_PER_SYNC);
		for (size_t i = 0; i < s.steps[0].n_notes; i++) {
			assert_true(s.steps[0].notes[i].n > last);
			last = s.steps[0].notes[i].n;
		}
		if (round == 0)
			assert_int_equal(s.steps[0].notes[0].kind, NOTE_STARTED);
		bool end = s.steps[0].n_notes &&
			   s.steps[0].notes[s.steps[0].n_notes - 1].kind == NOTE_EXIT;
		mo_desc_done(&agent_sync_desc, &s);
		if (end)
			break;
		acks(b, 7, 1, last);
		agent_out_done(&b->out);
	}
}

static void test_big_notes_fit_a_message(void **state)
{
	struct bed *b = *state;
	struct note big;
	struct agent_sync s;

	running(b);
	mo_desc_init(&note_desc, &big);
	big.kind = NOTE_EXIT;
	char *line = mo_alloc(MO_LINE_MAX + 1);
	memset(line, 'x', MO_LINE_MAX);
	for (int i = 0; i < MO_TAIL_LINES; i++)
		mo_strs_add(&big.tail, &big.n_tail, line);
	for (int64_t n = 4; n < 104; n++) {
		big.n = n;
		give(b,
		     (struct agent_event){ .type = AE_NOTE, .job = 7, .attempt = 1, .note = &big });
	}
	mo_desc_init(&agent_sync_desc, &s);
	agent_core_sync(b->core, &s);
	assert_true(s.steps[0].n_notes > 3 && s.steps[0].n_notes < 40);
	mo_desc_done(&agent_sync_desc, &s);
	mo_desc_done(&note_desc, &big);
	free(line);
}

/* Notes of one form as the step's next ones: what a sync of them costs the controller to read,
 * which it must not refuse. */
static size_t sent_and_read(struct bed *b, struct note *form, int64_t from, int64_t to)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	struct agent_sync s, got;

	for (form->n = from; form->n <= to; form->n++)
		give(b,
		     (struct agent_event){ .type = AE_NOTE, .job = 7, .attempt = 1, .note = form });
	mo_desc_init(&agent_sync_desc, &s);
	mo_desc_init(&agent_sync_desc, &got);
	agent_core_sync(b->core, &s);
	wire_encode(&agent_sync_desc, &s, &text);
	assert_int_equal(wire_affordable(text.data, text.len, &err), 0);
	assert_int_equal(wire_decode(&agent_sync_desc, text.data, text.len, true, &got, &err), 0);
	size_t n = got.steps[0].n_notes, bytes = 0;
	for (size_t i = 0; i < n; i++)
		bytes += 512 + mo_desc_text_bytes(&note_desc, &got.steps[0].notes[i]);
	/* else the controller drops its end, each time */
	assert_true(bytes <= MO_PORTION_BYTES);
	mo_desc_done(&agent_sync_desc, &s);
	mo_desc_done(&agent_sync_desc, &got);
	mo_desc_done(&note_desc, form);
	return n;
}

static char *filled(size_t n, char c)
{
	char *s = mo_alloc(n + 1);

	memset(s, c, n);
	return s;
}

static void test_texts_are_counted_as_they_are_written(void **state)
{
	static const char hostile[] = { 1, '"', '\\', '\n', 'x' };
	struct bed *b = *state;
	struct note form;
	int64_t from = 4;

	running(b);
	for (size_t i = 0; i < sizeof(hostile); i++, from += 30) {
		mo_desc_init(&note_desc, &form);
		form.kind = NOTE_STARTED;
		form.config = filled(MO_CONFIG_BYTES_MAX, hostile[i]);
		assert_in_range(sent_and_read(b, &form, from, from + 9), 1, 9);
		acks(b, 7, 1, from + 9);
		mo_desc_init(&note_desc, &form); /* the largest of the others */
		form.kind = NOTE_EXIT;
		form.text = filled(MO_LINE_MAX, hostile[i]);
		form.cause = filled(256, hostile[i]);
		form.cpus = filled(MO_TEXT_MAX, hostile[i]);
		form.bind_note = filled(MO_TEXT_MAX, hostile[i]);
		form.path = filled(MO_TEXT_MAX, hostile[i]);
		for (int k = 0; k < MO_TAIL_LINES; k++) {
			_cleanup_(mo_freep) char *line = filled(MO_LINE_MAX, hostile[i]);
			mo_strs_add(&form.tail, &form.n_tail, line);
		}
		assert_in_range(sent_and_read(b, &form, from + 10, from + 29), 1, 19);
		acks(b, 7, 1, from + 29);
	}
}

/* As a stepd before this one left it in a journal: bytes that are no text, each of them three when
 * it was written. */
static void test_a_journal_of_bad_bytes_is_taken(void **state)
{
	struct bed *b = *state;
	_cleanup_(mo_buf_done) struct mo_buf written = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct note bad, read;

	running(b);
	mo_desc_init(&note_desc, &bad);
	mo_desc_init(&note_desc, &read);
	bad.n = 4;
	bad.kind = NOTE_STARTED;
	bad.config = filled(MO_CONFIG_BYTES_MAX, (char)0xff);
	wire_encode(&note_desc, &bad, &written);
	assert_int_equal(wire_decode(&note_desc, written.data, written.len, false, &read, &err), 0);
	assert_int_equal(strlen(read.config), 3 * MO_CONFIG_BYTES_MAX);
	assert_int_equal(sent_and_read(b, &read, 4, 4), 4); /* with those before it */
	mo_desc_done(&note_desc, &bad);
}

/* 1000 saves below a directory whose name is all quotes; which of the scans a message brings. */
static unsigned scans_read(struct bed *b, bool urgent)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	struct agent_sync s;
	unsigned seen = 0;

	mo_desc_init(&agent_sync_desc, &s);
	if (urgent)
		agent_core_urgent(b->core, &s);
	else
		agent_core_sync(b->core, &s);
	wire_encode(&agent_sync_desc, &s, &text);
	assert_int_equal(wire_affordable(text.data, text.len, &err), 0);
	for (size_t i = 0; i < s.n_scans; i++) {
		seen |= 1u << s.scans[i].job;
		assert_true(!s.scans[i].n_items ==
			    (s.scans[i].error && strstr(s.scans[i].error, "longer than 1.5 MiB")));
	}
	mo_desc_done(&agent_sync_desc, &s);
	return seen;
}

static void test_scans_fit_a_message(void **state)
{
	struct bed *b = *state;
	struct order wanted[8];
	struct scan_result r;
	unsigned urgent = 0, syncs = 0;

	up(b);
	for (int job = 1; job <= 8; job++)
		wanted[job - 1] = (struct order){ .kind = CMD_SCAN, .job = job, .attempt = 1 };
	reply_full(b, true, 3, 500000, wanted, 8, NULL, 0);
	for (int job = 1; job <= 8; job++) {
		_cleanup_(mo_freep) char *path = filled(job == 8 ? MO_TEXT_MAX : 600, '"');

		mo_desc_init(&scan_result_desc, &r);
		r.job = job;
		r.attempt = r.id = 1;
		r.order = ORDER_SCAN;
		for (int i = 0; i < MO_CHECKPOINTS_MAX; i++) {
			struct found_checkpoint *f = MO_ADD(&r, items, &found_checkpoint_desc);
			f->iteration = i;
			f->path = mo_strdup(path);
		}
		give(b, (struct agent_event){ .type = AE_SCANNED, .scan = &r });
		mo_desc_done(&scan_result_desc, &r);
	}
	for (int i = 0; i < 8; i++) {
		urgent |= scans_read(b, true);
		syncs |= scans_read(b, false);
	}
	assert_int_equal(urgent, 0x1fe); /* each of them is sent once, and again */
	assert_int_equal(syncs, 0x1fe);
}

static size_t notes_in_sync(struct bed *b)
{
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	agent_core_sync(b->core, &s);
	size_t n = s.n_steps ? s.steps[0].n_notes : 0;
	mo_desc_done(&agent_sync_desc, &s);
	return n;
}

static void again(struct bed *b, int64_t epoch, int64_t through)
{
	simple(b, AE_NO_ANSWER, 0, 0);
	b->now = agent_core_deadline(b->core);
	simple(b, AE_TICK, 0, 0);
	said(b);
	welcome_with(b, epoch, 7, 1, through);
}

/* It knows less than the lost one acknowledged: it hears that again, out of the journal. */
static void test_a_restored_controller(void **state)
{
	struct bed *b = *state;

	running(b);
	acks(b, 7, 1, 3);
	said(b);
	again(b, 4, 1); /* of the same incarnation: an old answer */
	assert_null(strstr(said(b), "reread"));
	assert_int_equal(agent_core_through(b->core, 7, 1), 3);
	again(b, MO_EPOCH_STARTS + 1, 1);
	assert_string_equal(said(b), "reread:7.1 fence sync");
	assert_int_equal(notes_in_sync(b), 0);
	note(b, 7, 1, 4, NOTE_EXIT, 4); /* read before: it will come once more, in its turn */
	assert_int_equal(notes_in_sync(b), 0);
	simple(b, AE_REREAD, 7, 1);
	note(b, 7, 1, 1, NOTE_STARTED, 4);
	note(b, 7, 1, 2, NOTE_STARTED, 5);
	note(b, 7, 1, 3, NOTE_RUNNING, MO_NONE);
	note(b, 7, 1, 4, NOTE_EXIT, 4);
	assert_int_equal(notes_in_sync(b), 3);
	again(b, MO_EPOCH_STARTS + 2, 1); /* its restarts are nothing special */
	assert_null(strstr(said(b), "reread"));
}

/* The same while what is left of the step is being killed, and while its end is written. */
static void test_restored_at_the_end_of_a_step(void **state)
{
	struct bed *b = *state;

	running(b);
	acks(b, 7, 1, 3);
	simple(b, AE_STEPD_LOST, 7, 1);
	said(b);
	again(b, MO_EPOCH_STARTS + 1, 1);
	assert_string_equal(said(b), "reread:7.1 fence sync");
	simple(b, AE_SWEPT, 7, 1); /* the last notes go behind those that were ever read */
	assert_string_equal(said(b), "write:7.1:lost#4 write:7.1:exit#5@4 "
				     "write:7.1:exit#6@5 write:7.1:gone#7");
	again(b, 2 * MO_EPOCH_STARTS + 1, 1); /* nothing was sent, nothing is to be heard again */
	assert_null(strstr(said(b), "reread"));
	simple(b, AE_REREAD, 7, 1);
	note(b, 7, 1, 1, NOTE_STARTED, 4);
	note(b, 7, 1, 2, NOTE_STARTED, 5);
	note(b, 7, 1, 3, NOTE_RUNNING, MO_NONE);
	note(b, 7, 1, 4, NOTE_LOST, MO_NONE);
	assert_int_equal(notes_in_sync(b), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_link),
		T(test_asked_to_wait),
		T(test_no_spin_while_commands_stay_due),
		T(test_urgent_lost),
		T(test_progress),
		T(test_scan),
		T(test_scan_of_before),
		T(test_checked),
		T(test_checked_before_the_welcome),
		T(test_restored_at_the_end_of_a_step),
		T(test_query_once),
		T(test_notes_are_bounded),
		T(test_big_notes_fit_a_message),
		T(test_texts_are_counted_as_they_are_written),
		T(test_a_journal_of_bad_bytes_is_taken),
		T(test_scans_fit_a_message),
		T(test_a_restored_controller),
	};
	return cmocka_run_group_tests_name("acore/steps_link", tests, NULL, NULL);
}
