/* See story.h: four nodes, of which one has a finding; the job waits behind another one for the
 * nodes that a third one keeps busy; it finds checkpoints of before, trains and saves, becomes
 * slow by one rank, stands, its loss goes bad, and then it only dies. */
#include "tests/unit/cli/story.h"

#include <math.h>
#include <signal.h>

#include "tests/unit/dcore/world.h"

/* Of classes that are given up by their number; of one kind twice, or the code were to blame. */
static const struct {
	int64_t code, signal;
} deaths[] = { { MO_NONE, SIGSEGV },
	       { MO_NONE, SIGSEGV },
	       { MO_NONE, SIGABRT },
	       { MO_NONE, SIGBUS },
	       { MO_NONE, SIGFPE },
	       { MO_NONE, SIGILL },
	       { 16, 0 },
	       { 17, 0 },
	       { 132, 0 } };

static size_t node_of(const struct world *w, int64_t id)
{
	const struct job *j = world_job(w, id);

	for (size_t i = 0; i < w->n_toys; i++)
		if (j->run.n_places && mo_streq(j->run.places[0].node, w->toys[i].name))
			return i;
	return SIZE_MAX;
}

static bool lives(struct world *w, int64_t id)
{
	size_t toy = node_of(w, id);
	const struct toy_step *s = toy == SIZE_MAX ? NULL : world_toy_step(w, toy, id);

	return s && !s->gone;
}

static void found(struct world *w, int64_t iteration)
{
	world_found(w, iteration, true);
	mo_str_set(&w->scan.items[w->scan.n_items - 1].path, NULL);
	w->scan.items[w->scan.n_items - 1].path = mo_printf("/c/%lld", (long long)iteration);
}

static void save(struct world *w, int64_t id, int64_t iteration)
{
	size_t toy = node_of(w, id);
	struct note *n;

	if (!lives(w, id))
		return;
	world_iteration(w, toy, id, iteration);
	n = world_note(w, toy, id, NOTE_SAVING);
	n->iteration = iteration;
	n = world_note(w, toy, id, NOTE_CHECKPOINT);
	n->iteration = iteration;
	n->path = mo_printf("/c/%lld", (long long)iteration);
	found(w, iteration);
	world_run(w, 2 * S);
}

static void said_losses(struct world *w, int64_t id, int64_t from, int64_t to, double loss)
{
	for (int64_t i = from; i < to && lives(w, id); i++) {
		struct note *n = world_note(w, node_of(w, id), id, NOTE_SAMPLE);

		n->sample = mo_desc_new(&sample_desc);
		n->sample->iteration = i;
		n->sample->loss = loss;
	}
	world_run(w, 2 * S);
}

/* The last of its ranks takes ten times as long as the others, until a restart is worth it. */
static void slows(struct world *w, int64_t id, int64_t from, int64_t to)
{
	size_t toy = lives(w, id) ? node_of(w, id) : SIZE_MAX;

	if (toy == SIZE_MAX)
		return;
	w->core->config.hang_percent = 100;
	w->toys[toy].n_progress = ELEMENTSOF(w->toys[toy].progress);
	for (int64_t i = from; i < to && lives(w, id); i++) {
		for (size_t k = 0; k < w->toys[toy].n_progress; k++)
			w->toys[toy].progress[k] =
				(struct rank_progress){ .rank = (int64_t)k,
							.iteration = i,
							.step_ms = k == 7 ? 2000 : 200,
							.busy_ms = MO_NONE_F,
							.phase = PHASE_TRAIN };
		world_iteration(w, toy, id, i);
		world_run(w, S);
	}
	save(w, id, to);
	w->toys[toy].n_progress = 0;
	world_run(w, 10 * S);
	w->core->config.hang_percent = 1;
}

/* One that is twice as high and comes back, one that stays high, and one that is no number. */
static void loses(struct world *w, int64_t id)
{
	said_losses(w, id, 36, 60, 1.0);
	said_losses(w, id, 60, 61, 2.5);
	said_losses(w, id, 61, 90, 1.0);
	said_losses(w, id, 90, 110, 9.0);
	world_run(w, 10 * S);
	said_losses(w, id, 110, 120, NAN);
	world_run(w, 10 * S);
}

/* Long enough for the shortest lease; nobody answers for fence_command. */
static void fall_silent(struct world *w, int64_t id)
{
	size_t toy = lives(w, id) ? node_of(w, id) : 0;

	w->toys[toy].deaf = true;
	world_run(w, 16 * S);
	w->toys[toy].deaf = false;
	world_run(w, 3 * S);
}

static void live(struct world *w, int64_t blocker, int64_t rival, int64_t id)
{
	world_run(w, 2 * S);
	world_verb(w, IN_CANCEL, blocker);
	world_run(w, 5 * S);
	world_verb(w, IN_CANCEL, rival);
	world_run(w, 5 * S);
	for (int64_t i = 1; i <= 5; i++)
		save(w, id, 10 + 5 * i);
	/* worth a restart only where that is cheap, and elsewhere a minute for nothing */
	if (world_job(w, id)->spec.recipe.stop_grace_us < 10 * S)
		slows(w, id, 36, 95);
	fall_silent(w, id);
	world_run(w, 12 * S); /* an iteration is overdue */
	loses(w, id);
	for (size_t i = 0; i < ELEMENTSOF(deaths); i++) {
		if (lives(w, id)) {
			world_iteration(w, node_of(w, id), id, 36);
			world_run(w, S);
		}
		if (lives(w, id))
			world_exit(w, node_of(w, id), id, 0, deaths[i].code, deaths[i].signal);
		world_run(w, 15 * S);
	}
}

static void say_command(const struct command *c, struct mo_buf *b)
{
	mo_buf_printf(b, "%s %s a%lld resume %lld level %s only %lld grace %lld", c->node,
		      command_kind_names[c->kind], (long long)c->attempt,
		      (long long)(c->launch ? c->launch->resume : -1), c->level ? c->level : "-",
		      (long long)c->only, (long long)c->grace_us);
	for (size_t i = 0; i < c->n_prune; i++)
		mo_buf_printf(b, " prune %lld", (long long)c->prune[i].iteration);
	mo_buf_str(b, "\n");
}

/* They decide nothing: people find the job by what its document says. */
static void say_labels(const struct world *w, int64_t id, struct mo_buf *b)
{
	struct job_view v;

	mo_desc_init(&job_view_desc, &v);
	job_view(core_state(w->core), world_job(w, id), w->now, &v);
	for (size_t i = 0; i < v.n_labels; i++)
		mo_buf_printf(b, "%s=%s\n", v.labels[i].key, v.labels[i].value);
	mo_desc_done(&job_view_desc, &v);
}

static char *said(const struct world *w, int64_t id)
{
	const struct state *s = core_state(w->core);
	struct mo_buf b = { 0 };

	mo_buf_str(&b, "");
	say_labels(w, id, &b);
	for (size_t i = 0; i < s->n_events; i++) {
		const struct event *e = &s->events[i];

		mo_buf_printf(&b, "%lld %s %s: %s\n", (long long)(e->time / 1000), e->type,
			      e->node ? e->node : "-", e->message);
	}
	for (size_t i = 0; i < w->n_toys; i++)
		for (size_t k = 0; k < w->toys[i].n_log; k++)
			if (w->toys[i].log[k].job == id)
				say_command(&w->toys[i].log[k], &b);
	return mo_buf_take(&b);
}

char *story_of(const struct submit *spec)
{
	struct submit mine;
	int64_t blocker, rival, id;
	struct world w;
	char *text;

	world_init_telling(&w, 4, 8);
	w.core->config.hang_percent = 1;
	w.verify = w.unwatched = true;
	w.core->config.powers_off = true;
	found(&w, 5);
	found(&w, 10);
	world_finding(&w, 3, "gpu.ras_ue", CHECK_CRIT, ACTION_WARN);
	world_run(&w, S);
	blocker = world_submit_gpus(&w, 24);
	rival = world_submit_gpus(&w, 24);
	mo_desc_init(&submit_desc, &mine);
	mo_desc_copy(&submit_desc, &mine, spec);
	mo_str_set(&mine.user, "ann");
	id = world_submit(&w, &mine);
	assert_true(blocker > 0 && rival > 0 && id > 0);
	live(&w, blocker, rival, id);
	text = said(&w, id);
	mo_desc_done(&submit_desc, &mine);
	world_done(&w);
	return text;
}
