/* See moed.h: the process, its directory, the way of messages. One controller at a time. */
#include "tests/sim/moed.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/agent_answer.h"
#include "daemon/agent_message.h"
#include "daemon/auth.h"
#include "daemon/begin.h"
#include "daemon/core/state/incarnation.h"
#include "daemon/journal.h"
#include "daemon/journal_replay.h"
#include "daemon/turn.h"
#include "tests/unit/seams/world.h"

#define JOIN_US (3600 * S) /* api_tokens.c's */

static struct sim *sim;
static struct manager manager;
static bool is_open;
static struct said *said;
static size_t n_said;
static struct options options;

struct manager *moed(void)
{
	return is_open ? &manager : NULL;
}

/* ---- the way of messages ---- */

static void say(int64_t request, int status, int64_t after_s, const char *text, size_t n)
{
	if (!seam_acts())
		return;
	*MO_GROW(said, n_said) = (struct said){ request, status, after_s, mo_strndup(text, n), n };
}

void agent_answer(struct manager *m, int64_t request, int status, const struct mo_buf *json)
{
	say(request, status, MO_NONE, json->data, json->len);
}

void agent_refuse(struct manager *m, int64_t request, int status, int64_t after_s, const char *fmt,
		  ...)
{
	va_list ap;

	va_start(ap, fmt);
	_cleanup_(mo_freep) char *text = mo_vprintf(fmt, ap);
	va_end(ap);
	say(request, status, after_s, text, strlen(text));
}

const char *agent_waits(struct manager *m, int64_t request)
{
	return control_asked(sim, request);
}

size_t moed_said(struct said **ret)
{
	size_t n = n_said;

	*ret = TAKE_PTR(said);
	n_said = 0;
	return n;
}

/* Known by its token, as by the HTTP server. */
static void from_agent(struct sim *s, struct message *m)
{
	static const enum agent_word words[] = { [M_HELLO] = AGENT_HELLO,
						 [M_SYNC] = AGENT_SYNC,
						 [M_URGENT] = AGENT_URGENT,
						 [M_TRADE] = AGENT_TRADE };
	struct http_caller who;

	if (!m->token || !auth_secret(&manager, m->token, false, &who)) {
		agent_refuse(&manager, m->request, 401, MO_NONE, "unknown token");
		return;
	}
	_cleanup_(mo_freep) char *id = mo_strdup(who.token_id);

	if (!token_find(core_state(s->ctl.shadow), id))
		sim_violation(s, "%s is let in with a token that was revoked",
			      s->nodes[m->node].name);
	struct agent_message msg = { .request = m->request,
				     .token_id = id,
				     .user = "agent",
				     .address = "",
				     .body = m->text,
				     .n = m->n };

	control_came_with(s, m->request, id);
	agent_message(&manager, words[m->kind], &msg);
}

/* As api_tokens_create() does: another one at each try. */
static void new_token(struct sim *s, struct op *op, struct core_input *in)
{
	bool join = mo_streq(op->when, "join");

	free(op->secret);
	in->token = auth_token_new(&manager, op->when, join ? NULL : s->nodes[op->node].name,
				   join ? JOIN_US : sim_between(s, 20 * S, 200 * S), &op->secret);
	if (join)
		in->token->nodes = op->node < 0 ? NODES : 1;
}

/* As the REST shell hands it in; who asked is answered as an agent is. */
static void from_person(struct sim *s, const struct message *m)
{
	struct input *in = input_new(0, NULL);

	in->of_agent = true;
	request_input(s, m->op, &in->core);
	if (m->op->type == IN_TOKEN)
		new_token(s, m->op, &in->core);
	in->core.request = m->request;
	input_push(&manager, in);
}

void moed_message(struct sim *s, struct message *m)
{
	if (m->kind == M_USER)
		from_person(s, m);
	else
		from_agent(s, m);
}

/* ---- its process and its directory ---- */

/* Of the real disk, to where a site has its own. */
static void put_signatures(void)
{
	char text[65536];
	int fd = open(MO_SOURCE_DIR "/config/failures/signatures.yaml", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		abort();
	close(fd);
	text[n] = '\0';
	seam_put(MO_SYSCONFDIR "/moe/failures/signatures.yaml", text);
}

static void set_options(const struct sim *s)
{
	const struct core_config *c = &core_config_default;

	options = (struct options){ .state_dir = (char *)MOED_DIR,
				    .samples_max = 1 << 20,
				    .bootstrap_tokens = (char *)MOED_DIR,
				    .port_min = c->port_min,
				    .port_max = c->port_max,
				    .beat_ms = c->beat_us / 1000,
				    .pull_parallel = c->pull_parallel,
				    .suspect_ms = c->suspect_us / 1000,
				    .down_ms = c->down_us / 1000,
				    .hang_percent = SIM_HANG_PERCENT,
				    .exit_wait_us = c->exit_wait_us,
				    .learn_us = c->learn_us,
				    .history_us = sim_history(s) };
}

static void must(int r, const char *what, const struct mo_error *err)
{
	if (r < 0)
		sim_violation(sim, "%s: %s", what, mo_error_text(err, r));
}

void moed_begin(struct sim *s, const struct core *restored)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(core_freep) struct core *empty = core_new(&core_config_default);
	struct journal *journal = journal_new();
	struct store *store = NULL;
	int64_t bytes;

	sim = s;
	seams_begin(s);
	seam_remove(MOED_DIR);
	seam_vfs();
	sqlite3_randomness(0, NULL);
	put_signatures();
	must(store_open(MOED_DIR, &store, &err), "a new state", &err);
	struct record r = begin_incarnation(core_state(restored ? restored : empty), MO_NONE);
	_cleanup_(mo_freep) char *text = journal_record_text(journal, &r);
	must(store_append(store, &text, 1, &err), "a new state", &err);
	mo_desc_done(&record_desc, &r);
	if (restored) {
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

		journal_snapshot_text(journal, core_state(restored), &b);
		must(store_write_snapshot(store, 1, b.data, b.len), "a restored state", &err);
		must(store_adopt_snapshot(store, 1, &bytes, &err), "a restored state", &err);
		/* what records refer to from here on is what stands in it */
		s->ctl.journal = journal_free(s->ctl.journal);
		s->ctl.journal = journal_new();
		must(journal_load(s->ctl.journal, empty, b.data, b.len, &err), "a restored state",
		     &err);
	}
	store_free(store);
	journal_free(journal);
}

bool moed_open(struct sim *s)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	sim = s;
	seams_begin(s);
	set_options(s);
	_cleanup_(mo_freep) char *boot =
		mo_printf("controller-boot-%lld\n", (long long)s->ctl.boot);
	seam_put("/proc/sys/kernel/random/boot_id", boot);
	int r = manager_open(&manager, NULL, &options, &err);
	is_open = true;
	if (r < 0 && !seam_dead() && !s->ctl.flipped)
		sim_violation(s, "the controller does not start: %s", mo_error_text(&err, r));
	if (r < 0)
		sim_trace(s, "the controller does not start: %s", mo_error_text(&err, r));
	if (r >= 0)
		turn_pulse(&manager);
	return r >= 0;
}

void moed_close(struct sim *s, bool power)
{
	if (!is_open)
		return;
	if (!seam_dead())
		seam_crash_after(1);
	manager_done(&manager);
	is_open = false;
	seam_alive();
	if (power)
		seam_power_loss_of(MOED_HOST, 1 + sim_random(s) % 1000000);
}

bool moed_flip(struct sim *s)
{
	_cleanup_(mo_freep) char *where = seam_rot(MOED_DIR, sim_random(s));

	sim_trace(s, "a bit flips in %s", where ? where : "nothing");
	return where != NULL;
}

bool moed_ended(void)
{
	return seams_ended() || seam_dead();
}

void moed_done(void)
{
	struct said *rest;
	size_t n = moed_said(&rest);

	for (size_t i = 0; i < n; i++)
		free(rest[i].text);
	free(rest);
	seam_disk_done();
	seam_people_done();
}
