/* Whether nothing moves in an attempt: suspected by what is heard anyway, then its nodes are asked
 * (CMD_MOTION) until it is cleared or confirmed (hang_judge.c). A confirmed hang of which there is
 * evidence ends the attempt (policy.c, by blame.c), unless the recipe only wants to hear of it.
 *
 * Nothing is judged while any of its nodes is silent, and nothing for the time in which this
 * controller did not run, was late, or had its clock set. */
#include "daemon/core/rules/hang.h"

#include "daemon/core/rules/blame.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/hang_judge.h"
#include "daemon/core/rules/hang_recorder.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/heard.h"
#include "lib/base/buf.h"

#define FRESH_BEATS 5
#define CONFIRMED_BEATS 10 /* of one that is confirmed only an iteration is awaited */

/* Did its engine ever tell of what it does? A program that never does may sleep for a day. */
static bool ever_told(const struct job *j)
{
	return j->progress.watermark != MO_NONE || j->progress.phase > PHASE_NONE;
}

static bool judged(const struct job *j)
{
	return (j->state == JOB_STARTING || j->state == JOB_RUNNING ||
		j->state == JOB_RECOVERING) &&
	       !mo_streq(j->spec.recipe.hang, "off") && j->run.n_places > 0 &&
	       !j->failure.decided && !j->failure.waiting_node && j->failure.exit0_at == MO_NONE &&
	       j->counts.started == (int64_t)j->run.n_places && j->counts.dead == 0 &&
	       (j->spec.recipe.steps != MO_NONE || ever_told(j));
}

static bool all_heard(const struct state *s, const struct job *j)
{
	for (size_t i = 0; i < j->run.n_places; i++) {
		const struct node *n = node_find(s, j->run.places[i].node);
		const struct step *st = step_find(j, j->attempt, j->run.places[i].node);

		if (!n || n->state != NODE_UP || !n->agent.reconciled || !st || st->hung)
			return false;
	}
	return true;
}

bool hang_asks(const struct core *c, const struct job *j, const struct step *s)
{
	const struct live *l = live_of(c, s->node);

	return j->hang.stage >= 0 && !j->failure.decided && l && l->tells_motion &&
	       s->attempt == j->attempt && s->accepted && !step_dead(s) && j->run.n_places > 0;
}

bool hang_asks_stands(const struct core *c, const struct job *j, const struct step *s)
{
	const struct live *l = live_of(c, s->node);

	/* an agent that does not know of hangs may be older than the limit on what is dumped */
	return j->failure.decided && blame_by_hang(j) && !j->intent_now && s->accepted && l &&
	       l->tells_motion;
}

/* Who is missing where others wait stands out, unless a rank does by what it is itself. */
static void name_missing(struct hang_verdict *v, const struct recorder_finding *f)
{
	if (v->plain || !f->named)
		return;
	v->missing = f->text;
	v->rank = f->rank;
}

static void tell(struct turn *t, const struct job *j, const struct hang_limits *l,
		 const struct hang_verdict *v)
{
	struct mo_buf b = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf states = { 0 };

	data_int(&b, "overdue_s", v->overdue_us / 1000000);
	if (j->hang.stage == HANG_SUSPECTED) {
		data_int(&b, "limit_s", l->suspect / 1000000);
		event_emit(t, EVENT_HANG_SUSPECTED, j->id, NULL, MO_NONE, j->attempt, data_end(&b),
			   "iteration %lld of %s is overdue: nothing came for %lld s; its nodes "
			   "are asked what moves",
			   (long long)MO_MAX(j->progress.iteration, MO_MAX(j->run.resume, 0)) + 1,
			   j->spec.recipe.name, (long long)(v->overdue_us / 1000000));
		return;
	}
	for (int i = 0; i < _RANK_DOING_N; i++)
		if (v->states[i])
			mo_buf_printf(&states, "%s%zu %s", states.len ? ", " : "", v->states[i],
				      rank_doing_names[i]);
	data_int(&b, "quiet_s", v->quiet_us / 1000000);
	data_int(&b, "limit_s", v->limit_us / 1000000);
	data_int(&b, "rank", j->hang.rank);
	data_str(&b, "states", states.data);
	data_int(&b, "acts", j->hang.acts);
	if (j->hang.recorder)
		data_str(&b, "recorder", j->hang.recorder);
	event_emit(t, EVENT_HANG_CONFIRMED, j->id,
		   j->hang.rank == MO_NONE ? NULL : j->run.ranks[j->hang.rank].node, j->hang.rank,
		   j->attempt, data_end(&b), "%s", j->hang.text);
}

static void record(struct turn *t, const struct job *j, const struct hang_limits *l,
		   struct hang_verdict *v, const struct recorder_finding *f, bool acts)
{
	bool again = v->stage == j->hang.stage && acts == j->hang.acts;
	_cleanup_(mo_freep) char *text = NULL;
	struct record r;

	name_missing(v, f);
	text = hang_text(j, v);

	record_init(&r, REC_HANG);
	r.job = j->id;
	r.attempt = j->attempt;
	r.hang->stage = v->stage;
	r.hang->since = t->now - v->quiet_us;
	r.hang->rank = v->rank;
	r.hang->acts = acts;
	if (v->stage == HANG_CONFIRMED && !acts)
		r.hang->text = mo_printf("%s; nothing follows: %s", text,
					 v->sure ? "recovery.hang is report"
						 : "nothing shows it beside the iterations");
	else
		r.hang->text = mo_strdup(text);
	r.hang->recorder = mo_strdup(f->text);
	hang_evidence(j, l, v, &r.hang->evidence, &r.hang->n_evidence);
	for (size_t i = 0; i < f->n_lines; i++)
		mo_strs_add(&r.hang->evidence, &r.hang->n_evidence, f->lines[i]);
	turn_emit(t, &r);
	if (!again)
		tell(t, job_find(&t->core->state, j->id), l, v);
}

/* For who asks why: what is so now, and when it is taken for a hang. The record has what was so
 * when it was suspected. */
static void see(struct turn *t, const struct job *j, const struct hang_limits *l,
		const struct hang_verdict *v)
{
	_cleanup_(mo_freep) char *text = hang_text(j, v);
	char **evidence = NULL, *seen = NULL;
	size_t n = 0;

	if (v->stage == HANG_SUSPECTED) {
		seen = mo_printf("%s; at %lld s it is taken for a hang", text,
				 (long long)(v->limit_us / 1000000));
		hang_evidence(j, l, v, &evidence, &n);
	}
	core_hang_seen(t->core, j, seen, evidence, n);
}

static void clear(struct turn *t, const struct job *j)
{
	struct mo_buf b = { 0 };
	bool was_confirmed = j->hang.stage == HANG_CONFIRMED;
	struct record r;

	record_init(&r, REC_HANG);
	r.job = j->id;
	r.attempt = j->attempt;
	turn_emit(t, &r);
	j = job_find(&t->core->state, j->id);
	data_str(&b, "was", hang_stage_names[was_confirmed ? HANG_CONFIRMED : HANG_SUSPECTED]);
	data_int(&b, "wrong", MO_MAX(j->hang.n_wrong, 0));
	event_emit(t, EVENT_HANG_CLEARED, j->id, NULL, MO_NONE, j->attempt, data_end(&b),
		   was_confirmed ? "%s moves on: the verdict that it hangs was wrong"
				 : "%s moves on",
		   j->spec.recipe.name);
}

static void again_at(struct turn *t, int64_t at)
{
	t->core->hangs_at = MO_MIN(t->core->hangs_at, MO_MAX(at, t->now + t->core->config.beat_us));
}

void hang_judge_all(struct core *c)
{
	c->hangs_at = INT64_MAX;
	for (size_t i = 0; i < c->n_unfinished; i++)
		if (job_find(&c->state, c->unfinished[i])->run.n_places > 0)
			core_touch(c, c->unfinished[i]);
}

/* While it is suspected, what flight recorders say is shown as it comes. */
static bool is_news(const struct core *c, const struct job *j, int64_t since, int64_t now)
{
	int64_t at = job_recorder_at(&c->state, j);

	return j->hang.stage == HANG_SUSPECTED && at > since && at > j->hang.at &&
	       now - at <= FRESH_BEATS * c->config.beat_us;
}

bool hang_act(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct core_config *config = &t->core->config;
	int64_t percent = config->hang_percent, since;
	struct hang_limits l;
	struct recorder_finding f;
	struct hang_verdict v;
	_cleanup_(mo_freep) int *doing = NULL;
	bool acts, same;

	if (!judged(j))
		return false;
	since = MO_MAX(MO_MAX(job_progress_at(&t->core->state, j), job_word_at(&t->core->state, j)),
		       t->core->heard_from);
	if (j->hang.stage < 0 && t->now - since < HANG_SUSPECT_US / 100 * percent) {
		again_at(t, since + HANG_SUSPECT_US / 100 * percent);
		return false;
	}
	l = hang_limits_of(j, percent);
	if (j->hang.stage < 0 && t->now - since < l.suspect) {
		again_at(t, since + l.suspect);
		return false;
	}
	again_at(t, t->now + (j->hang.stage == HANG_CONFIRMED ? CONFIRMED_BEATS : 1) *
				     config->beat_us);
	if (!all_heard(&t->core->state, j) || !core_judge(t->core, j, t->now, config->beat_us / 2))
		return false;
	doing = mo_alloc_array(j->run.n_ranks + 1, sizeof(*doing));
	v = hang_judge(&t->core->state, j, &l, since, t->now, FRESH_BEATS * config->beat_us, doing);
	core_doing(t->core, j, doing, t->now + (CONFIRMED_BEATS + FRESH_BEATS) * config->beat_us);
	if (v.stage == HANG_NONE) {
		if (j->hang.stage < 0)
			return false;
		clear(t, j);
		return true;
	}
	if (j->hang.stage < 0)
		v.stage = HANG_SUSPECTED; /* nobody was asked yet */
	see(t, j, &l, &v);
	acts = v.stage == HANG_CONFIRMED && v.sure && v.unseen == 0 && ever_told(j) &&
	       mo_streq(j->spec.recipe.hang, "auto");
	same = v.stage == j->hang.stage && acts == j->hang.acts;
	if (v.stage < j->hang.stage || (same && !is_news(t->core, j, since, t->now)))
		return false;
	recorder_judge(&t->core->state, j, since, t->now, &f);
	if (!same || (f.n_lines && !mo_streq(f.text, j->hang.recorder)))
		record(t, j, &l, &v, &f, acts);
	recorder_finding_done(&f);
	return !same;
}
