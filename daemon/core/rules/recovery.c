/* What a failure means. Decided once per attempt at the first evidence (every other rank is then killed: peers of a dead rank cannot save), judged when every step is proved gone
 * (by then all exits are known), and followed by the next attempt or the end. Silence is never evidence here: only notes, a changed boot id, or a fence.
 *
 *   evidence                                              class       what follows
 *   a port of the job is busy, before the launch, or by   -           next attempt on other ports, no restart counted
 *     the last lines of an exit before the first iteration            (the latter PORT_SAID_MAX attempts in a row)
 *   refused: bind, exec, user, workdir, prepare, config               user_error  failed
 *   a node's configuration breaks rules (config.c)        user_error  failed
 *   the first-dead rank exits non-zero by itself before   user_error  failed
 *     the job's first iteration
 *   supervisor lost, signal, an exit of 128 + a signal,   transient   next attempt, unless it failed the same way
 *     later non-zero exit, a rank that does not end after               max_cycles times without a new checkpoint
 *     another ended 0
 *   boot id changed, fence                                node_fault  the same
 *   the engine saved, and not to checkpoint.dir           user_error  failed, at its first save: nothing of it would be resumed
 *   all ranks end 0 before the last iteration             -           failed: ended early
 *   an exit that a planned stop by a machine explains     -           next attempt, no restart counted */
#include "daemon/core/inner.h"

#include <signal.h>
#include <string.h>

#include "lib/base/buf.h"

enum blame_kind { B_NONE, B_LATE, B_ENDED, B_EXIT, B_SIGNAL, B_NODE, B_LOST, B_REFUSED, B_CONFIG, B_ELSEWHERE };
struct blame { int kind; const struct step *step; const struct rank *rank; };

#define PORT_SAID_MAX 5   /* a port that is the program's own is busy every time */
#define CYCLES_FACTOR 3   /* failures in a row without a new checkpoint, each different: at most this times max_cycles */

static bool by_us(const struct rank *k)
{
	return k->exit && (mo_streq(k->exit->cause, "killed") || mo_streq(k->exit->cause, "stopped"));
}

/* The signal that ended the rank, itself or, by the word of a shell that is the rank (128 + n), its child; 0 = it exited by itself. */
static int64_t signal_of(const struct rank *k)
{
	if (k->exit->signal > 0)
		return k->exit->signal;
	return k->exit->code > 128 && k->exit->code <= 128 + 64 ? k->exit->code - 128 : 0;
}

static bool bad(const struct rank *k)
{
	return k->exit && k->exit->code != 0;
}

/* The first bad death of the step: clocks of one node are comparable. An exit without a clock counts as the last. */
static const struct rank *first_death(const struct job *j, const struct step *st, bool also_by_us)
{
	const struct rank *first = NULL;

	for (int64_t r = st->first_rank; r < st->first_rank + st->n_ranks && (uint64_t)r < j->n_ranks; r++) {
		const struct rank *k = &j->ranks[r];

		if (!bad(k) || (!also_by_us && by_us(k)))
			continue;
		if (!first || (k->exit_mono_ns != MO_NONE && (first->exit_mono_ns == MO_NONE || k->exit_mono_ns < first->exit_mono_ns)))
			first = k;
	}
	return first;
}

/* Its node told how it ended. The ranks of a step that is gone are closed without that, also those
 * that never ran. */
static bool end_is_told(const struct rank *k)
{
	return k->exit->code != MO_NONE || k->exit->signal != MO_NONE;
}

static struct blame blame_step(const struct job *j, const struct step *st, bool also_by_us)
{
	struct blame b = { .step = st };

	if (st->refused && mo_streq(st->refused_cause, "stale") && j->failed && !st->started)
		return b;   /* the answer to our own kill of a launch that never arrived */
	b.rank = first_death(j, st, also_by_us);
	if (st->refused)
		b.kind = B_REFUSED;
	else if (st->lost)
		b.kind = B_LOST;
	else if (st->gone && !st->ended && st->n_exited < st->n_ranks)
		b.kind = B_NODE;
	else if (b.rank)
		b.kind = signal_of(b.rank) ? B_SIGNAL : B_EXIT;
	else if ((st->gone || st->unkillable) && st->n_exited < st->n_ranks && !j->failed)
		b.kind = B_ENDED;
	/* Of a refused launch no rank died first: it was ended because of the refusal. */
	if (b.kind == B_REFUSED || (b.kind >= B_NODE && b.rank && !end_is_told(b.rank)))
		b.rank = NULL;
	return b;
}

/* First evidence, in the order of steps; a late exit when there is none. */
static struct blame find_blame(const struct job *j, int64_t now, int64_t exit_wait_us)
{
	if (j->elsewhere)
		return (struct blame){ .kind = B_ELSEWHERE };
	if (j->config_refused)
		return (struct blame){ .kind = B_CONFIG };
	for (size_t i = 0; j->n_trouble > 0 && i < j->n_steps; i++) {
		struct blame b = { 0 };

		if (j->steps[i].attempt == j->attempt)
			b = blame_step(j, &j->steps[i], true);
		if (b.kind != B_NONE)
			return b;
	}
	if (j->first_exit0_at != MO_NONE && j->n_exited < (int64_t)j->n_ranks && now >= j->first_exit0_at + exit_wait_us)
		return (struct blame){ .kind = B_LATE };
	return (struct blame){ 0 };
}

/* With every exit known: what is found late but explains the rest (refused, supervisor, node) comes first; then the death that was told first, unless its node shows an earlier
 * one, or it is a plain exit and another rank died of a signal that nobody here sent: such an exit may be its echo. */
static struct blame root_blame(const struct job *j)
{
	const struct step *told = step_find(j, j->attempt, j->fail_node);
	struct blame best = { 0 }, first = { 0 };

	if (j->elsewhere)
		return (struct blame){ .kind = B_ELSEWHERE };
	if (j->config_refused)
		return (struct blame){ .kind = B_CONFIG };
	for (size_t i = 0; i < j->n_steps; i++) {
		struct blame b = { 0 };

		if (j->steps[i].attempt == j->attempt)
			b = blame_step(j, &j->steps[i], false);
		if (b.kind == B_NONE)
			continue;
		if (&j->steps[i] == told)
			first = b;
		if (b.kind > best.kind)
			best = b;
	}
	if (best.kind >= B_NODE)
		return best;
	if (best.kind == B_SIGNAL && first.kind == B_EXIT && signal_of(best.rank) != SIGABRT && signal_of(best.rank) != SIGTERM)
		return best;
	return first.kind ? first : best;
}

static char *blame_cause(const struct job *j, const struct blame *b)
{
	const char *name;

	switch (b->kind) {
	case B_REFUSED: return mo_strdup(b->step->refused_cause ? b->step->refused_cause : "refused");
	case B_LOST: return mo_strdup("supervisor-lost");
	case B_NODE: return mo_strdup("node-lost");
	case B_ENDED: return mo_strdup("ended without exit status");
	case B_LATE: return mo_strdup("exit-wait");
	case B_ELSEWHERE: return mo_strdup("saved elsewhere");
	case B_CONFIG: return mo_strdup("config");
	case B_EXIT: case B_SIGNAL: break;
	default: return mo_strdup(j->fail_cause ? j->fail_cause : "unknown");
	}
	if (mo_streq(b->rank->exit->cause, "oom"))
		return mo_strdup("oom");
	if (b->kind == B_EXIT && b->rank->exit->code == MO_NONE)
		return mo_strdup(b->rank->exit->cause ? b->rank->exit->cause : "unknown");
	const char *meaning = engine_exit_meaning(&j->spec.engine, b->rank->exit->code);

	if (b->kind == B_EXIT)
		return mo_printf("exit code %lld%s%s", (long long)b->rank->exit->code, meaning ? ": " : "", meaning ? meaning : "");
	name = sigabbrev_np((int)signal_of(b->rank));
	if (b->rank->exit->signal <= 0)
		return mo_printf("exit code %lld, a shell's word for signal %lld%s%s", (long long)b->rank->exit->code, (long long)signal_of(b->rank), name ? " SIG" : "", name ? name : "");
	return mo_printf("signal %lld%s%s", (long long)b->rank->exit->signal, name ? " SIG" : "", name ? name : "");
}

static bool refused_by_user_error(const struct step *st)
{
	static const char *const causes[] = { "bind", "exec", "user", "workdir", "prepare", "config" };

	return mo_enum_parse(causes, ELEMENTSOF(causes), st->refused_cause) >= 0;
}

/* The program could not bind: its port was taken between the look at it and the bind. Only while nothing was trained yet. */
static bool said_port_busy(const struct job *j, const struct blame *b)
{
	if (b->kind != B_EXIT || j->watermark != MO_NONE)
		return false;
	for (size_t i = 0; i < b->rank->n_tail; i++)
		if (strcasestr(b->rank->tail[i], "address already in use") || strstr(b->rank->tail[i], "EADDRINUSE"))
			return true;
	return false;
}

static const char *blame_class(const struct job *j, const struct blame *b)
{
	if (b->kind == B_ELSEWHERE || b->kind == B_CONFIG || (b->kind == B_REFUSED && b->step && refused_by_user_error(b->step)))
		return "user_error";
	if (b->kind == B_NODE)
		return "node_fault";
	if (b->kind == B_EXIT && b->rank && j->watermark == MO_NONE && b->rank->exit->code > 0 && !mo_streq(b->rank->exit->cause, "oom"))
		return "user_error";
	return "transient";
}

/* Both places, and the ways on. Caller frees. */
static char *elsewhere_text(const struct job *j)
{
	return mo_printf("the engine saved to %s, and not to checkpoint.dir %s: nothing there would be "
			 "resumed; a new submit with --set checkpoint.dir of the place where it saves "
			 "goes on from there",
			 j->elsewhere, j->spec.recipe.checkpoint.dir);
}

static char *config_text(const struct job *j)
{
	return mo_printf("the engine's configuration on %s" SAID "%s", j->config_node, j->config_refused);
}

static void blame_evidence(const struct job *j, const struct blame *b, char ***texts, size_t *n)
{
	_cleanup_(mo_freep) char *place = b->kind == B_ELSEWHERE ? elsewhere_text(j)
					  : b->kind == B_CONFIG  ? config_text(j)
								 : NULL;

	if (place)
		mo_strs_add(texts, n, place);
	if (b->kind == B_REFUSED && b->step && b->step->refused_text)
		mo_strs_add(texts, n, b->step->refused_text);
	if (b->kind == B_NODE && b->step && b->step->gone_how)
		mo_strs_add(texts, n, b->step->gone_how);
	for (size_t i = 0; b->rank && i < b->rank->n_tail; i++)
		mo_strs_add(texts, n, b->rank->tail[i]);
}

/* What the GPUs and cards did before the rest of the ranks is killed. */
static void reading_evidence(const struct turn *t, const struct job *j, char ***texts, size_t *n_texts)
{
	char **lines = NULL;
	size_t n = 0;

	core_readings(t->core, j, t->now, &lines, &n);
	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *line = mo_printf(READING_PREFIX "%s", lines[i]);

		mo_strs_add(texts, n_texts, line);
		free(lines[i]);
	}
	free(lines);
}

bool recovery_all_dead(const struct job *j)
{
	return j->n_places > 0 && j->n_dead == (int64_t)j->n_places;
}

/* How long ago the death was when its news left the node: the node's clock at both moments. */
static int64_t age_us(const struct turn *t, const struct blame *b)
{
	const struct agent_sync *s = t->event ? t->event->sync : NULL;

	if (!s || !b->rank || !mo_streq(s->node, b->rank->node) || s->mono_ns == MO_NONE || b->rank->exit_mono_ns == MO_NONE)
		return 0;
	return MO_MAX(0, s->mono_ns - b->rank->exit_mono_ns) / 1000;
}

bool recovery_fail(struct turn *t, int64_t id)
{
	struct job *j = job_find(&t->core->state, id);
	int64_t wait = t->core->config.exit_wait_us;
	_cleanup_(mo_freep) char *cause = NULL, *reason = NULL;
	struct blame b;
	struct record r;

	if (j->failed || j->n_places == 0 || (j->state != JOB_STARTING && j->state != JOB_RUNNING && j->state != JOB_RECOVERING))
		return false;
	b = find_blame(j, t->now, wait);
	if (b.kind == B_NONE) {
		if (j->first_exit0_at != MO_NONE)
			turn_deadline(t, j->first_exit0_at + wait);
		return false;
	}
	cause = blame_cause(j, &b);
	record_init(&r, REC_FAIL);
	r.job = id;
	r.attempt = j->attempt;
	r.rank = b.rank ? b.rank->rank : MO_NONE;
	r.node = mo_strdup(b.step ? b.step->node : NULL);
	r.text = mo_strdup(blame_class(j, &b));
	r.cause = mo_strdup(cause);
	r.value = age_us(t, &b);
	blame_evidence(j, &b, &r.texts, &r.n_texts);
	reading_evidence(t, j, &r.texts, &r.n_texts);
	if (b.rank && b.step)
		reason = mo_printf("rank %lld on %s died: %s", (long long)b.rank->rank, b.step->node, cause);
	else if (b.kind == B_ELSEWHERE)
		reason = elsewhere_text(j);
	else if (b.kind == B_CONFIG)
		reason = config_text(j);
	else
		reason = mo_printf("%s%s%s", cause, b.step ? " on " : ": some ranks did not end after another one ended", b.step ? b.step->node : "");
	turn_emit(t, &r);
	job_move(t, id, T_FAILED, false, 0, reason);
	return true;
}

/* ---- when every step is dead ---- */

static int64_t last_iteration(const struct job *j)
{
	int64_t n = MO_MAX(j->iteration, j->resume), newest = checkpoint_newest_at_most(j, INT64_MAX, true);

	return MO_MAX(MO_MAX(n, newest), 0);
}

static bool all_exited_0(const struct job *j)
{
	int64_t n = 0;

	for (size_t i = 0; i < j->n_steps; i++)
		if (j->steps[i].attempt == j->attempt) {
			if (j->steps[i].n_bad)
				return false;
			n += j->steps[i].n_exited;
		}
	return n == (int64_t)j->n_ranks;
}

static bool reached(const struct job *j)
{
	return j->spec.recipe.steps == MO_NONE || last_iteration(j) >= j->spec.recipe.steps;
}

static void emit_incident(struct turn *t, const struct job *j, const struct blame *b, const char *cause, const char *class, const char *action)
{
	_cleanup_(mo_freep) char *signature = mo_printf("%s: %s", class, cause);
	int64_t newest = state_newest_checkpoint(j);
	struct incident *inc;
	struct record r;

	record_init(&r, REC_INCIDENT);
	r.job = j->id;
	r.iteration = newest;
	r.value = mo_streq(signature, j->last_signature) && newest == j->last_signature_checkpoint ? j->same_failures + 1 : 1;
	r.text = mo_strdup(signature);
	inc = r.incident = mo_desc_new(&incident_desc);
	inc->time = j->failed_at;
	inc->attempt = j->attempt;
	inc->class = mo_strdup(class);
	inc->first_rank = b->rank ? b->rank->rank : MO_NONE;
	inc->node = mo_strdup(b->step ? b->step->node : j->fail_node);
	inc->cause = mo_strdup(cause);
	blame_evidence(j, b, &inc->evidence, &inc->n_evidence);
	if (!mo_streq(class, "user_error"))
		health_evidence(&t->core->state, j, &inc->evidence, &inc->n_evidence);
	for (size_t i = 0; i < j->n_fail_evidence && !mo_streq(class, "user_error"); i++)
		if (mo_starts_with(j->fail_evidence[i], READING_PREFIX))
			mo_strs_add(&inc->evidence, &inc->n_evidence, j->fail_evidence[i]);
	inc->action = mo_strdup(action);
	inc->waterfall.detect = j->detect_us / 1000;
	inc->waterfall.stop = (t->now - j->failed_at) / 1000;
	turn_emit(t, &r);
}

/* "[rank0]: text", as torch begins the lines of a traceback and its own warnings -> text. */
static const char *without_rank(const char *line)
{
	const char *end = mo_starts_with(line, "[rank") ? strstr(line, "]:") : NULL;

	return end ? end + 2 + strspn(end + 2, " ") : line;
}

/* "TypeError: ...", "torch.OutOfMemoryError: ..." */
static bool names_exception(const char *line)
{
	static const char *const ends[] = { "Error", "Exception", "Interrupt", "Exit" };
	size_t n = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");

	for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
		size_t k = strlen(ends[i]);

		if (n >= k && !strncmp(line + n - k, ends[i], k) && (!line[n] || mo_starts_with(line + n, ": ")))
			return true;
	}
	return false;
}

/* What is left on the way out and says nothing: torch's log lines ("[W1121 10:19:17.1 file.cpp:1] ...") and native frames. */
static bool says_nothing(const char *line)
{
	return !line[strspn(line, " \t")] || (line[0] == '[' && line[1] && strchr("IWE", line[1]) && line[2] >= '0' && line[2] <= '9') || mo_starts_with(line, "frame #") ||
	       mo_starts_with(line, "Exception raised from ");
}

/* The line that tells why the rank ended: its last uncaught exception, else its last line that says something. */
static char *telling_line(const struct blame *b)
{
	const char *last = NULL;

	for (size_t i = b->rank ? b->rank->n_tail : 0; i-- > 0; ) {
		const char *line = without_rank(b->rank->tail[i]);

		if (names_exception(line))
			return mo_printf(SAID "%s", line);
		if (!last && !says_nothing(line))
			last = line;
	}
	return last ? mo_printf(SAID "%s", last) : mo_strdup("");
}

/* What an exit before the first iteration means; 126 and 127 are said by shells and launchers. */
static const char *exit_meaning(const struct rank *k)
{
	switch (k->exit->code) {
	case 126: return "it could not execute a program that it calls; is it executable, and for this machine?";
	case 127: return "a program or library that it calls was not found; is it installed there, and in PATH or LD_LIBRARY_PATH?";
	default: return "an error of the program or its arguments";
	}
}

/* The step that was stopped on its machine, when that explains the end: peers of stopped ranks end too, and their word may come first. NULL = it does not. */
static const struct step *stopped_outside(const struct job *j, const struct blame *b)
{
	int64_t signal = b->kind == B_SIGNAL ? signal_of(b->rank) : 0;

	if (b->kind > B_SIGNAL || (signal && signal != SIGABRT && signal != SIGTERM))
		return NULL;
	for (size_t i = 0; i < j->n_steps; i++)
		if (j->steps[i].attempt == j->attempt && j->steps[i].outside)
			return &j->steps[i];
	return NULL;
}

/* NULL = another attempt follows. */
static char *give_up_reason(const struct job *j, const struct blame *b, const char *cause, const char *class)
{
	int64_t limit = j->spec.recipe.max_cycles > 0 ? j->spec.recipe.max_cycles : 3;
	_cleanup_(mo_freep) char *line = telling_line(b);

	if (b->kind == B_ELSEWHERE || b->kind == B_CONFIG)
		return b->kind == B_CONFIG ? config_text(j) : elsewhere_text(j);
	if (b->kind == B_REFUSED && refused_by_user_error(b->step))
		return b->step->refused_text ? mo_printf("%s on %s" SAID "%s", cause, b->step->node, b->step->refused_text) :
					       mo_printf("%s on %s: the launch was refused", cause, b->step->node);
	if (mo_streq(class, "user_error") && b->rank)
		return mo_printf("rank %lld ended with %s before the first iteration, which means: %s%s", (long long)b->rank->rank, cause, exit_meaning(b->rank), line);
	if (j->same_failures >= limit)
		return mo_printf("failed the same way %lld times without a new checkpoint: %s%s", (long long)j->same_failures, cause, line);
	if (j->cycles >= limit * CYCLES_FACTOR)
		return mo_printf("failed %lld times without a new checkpoint, the last time: %s%s", (long long)j->cycles, cause, line);
	return NULL;
}

static void after_failure(struct turn *t, int64_t id)
{
	struct job *j = job_find(&t->core->state, id);
	struct blame b = root_blame(j);
	_cleanup_(mo_freep) char *cause = blame_cause(j, &b), *class = mo_strdup(b.kind ? blame_class(j, &b) : j->fail_class), *reason = NULL;
	const struct step *outside = stopped_outside(j, &b);
	int64_t tries = 0;

	if (outside) {
		reason = mo_printf("the step on %s was stopped there, not by moectl; the next attempt is prepared", outside->node);
		job_move(t, id, T_RETRY, true, 0, reason);
		return;
	}
	if (b.kind == B_REFUSED && mo_streq(cause, "port-busy"))
		tries = PORT_TRIES_MAX;
	else if (said_port_busy(j, &b))
		tries = PORT_SAID_MAX;
	if (b.step && j->port_tries + 1 < tries) {
		reason = mo_printf("ports from %lld on %s were busy; the next ones are tried", (long long)j->port, b.step->node);
		job_move(t, id, T_RETRY, true, 2, reason);
		return;
	}
	emit_incident(t, j, &b, cause, class, "stop");
	j = job_find(&t->core->state, id);
	b = root_blame(j);
	reason = give_up_reason(j, &b, cause, class);
	if (reason) {
		job_move(t, id, T_GIVE_UP, true, 0, reason);
		return;
	}
	if (b.rank)
		reason = mo_printf("rank %lld on %s died: %s; the next attempt is prepared", (long long)b.rank->rank, b.step->node, cause);
	else
		reason = mo_printf("%s%s%s; the next attempt is prepared", cause, b.step ? " on " : "", b.step ? b.step->node : "");
	health_check_begin(t, id);
	job_move(t, id, T_RETRY, true, 1, reason);
}

static void after_stop(struct turn *t, int64_t id)
{
	struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_freep) char *reason = mo_strdup(j->reason);

	_cleanup_(mo_freep) char *beyond = job_beyond_steps(j); /* then steps is not where its program ends */

	if (!j->failed && all_exited_0(j) && reached(j) && !beyond && j->spec.recipe.steps != MO_NONE && j->intent != INTENT_CANCEL) {
		job_move(t, id, T_COMPLETED, true, 0, NULL);
		return;
	}
	if (j->failed) {
		struct blame b = root_blame(j);
		_cleanup_(mo_freep) char *cause = blame_cause(j, &b);

		if (!stopped_outside(j, &b))
			emit_incident(t, j, &b, cause, b.kind ? blame_class(j, &b) : j->fail_class, intent_names[j->intent]);
	}
	job_move(t, id, T_STOPPED, true, 0, reason);
}

void recovery_conclude(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_freep) char *reason = NULL;

	if (j->state == JOB_STOPPING) {
		after_stop(t, id);
	} else if (j->failed) {
		after_failure(t, id);
	} else if (reached(j)) {
		reason = checkpoint_nothing_left(&t->core->state, j);
		reason = reason ? reason : job_beyond_steps(j);
		job_move(t, id, T_COMPLETED, true, 0, reason);
	} else {
		reason = mo_printf(ENDED_EARLY "%lld of %lld", (long long)last_iteration(j), (long long)j->spec.recipe.steps);
		job_move(t, id, T_GIVE_UP, true, 0, reason);
	}
}

/* ---- the waterfall of the last incident: place, launch, init, load, recompute, one after the other ---- */

/* What told of a change: a sample says that the iterations from+1 .. j->iteration were done until `time`, each in step_us (MO_NONE = unknown); anything else has from MO_NONE. */
struct seen { int64_t time, from, step_us; };

static bool stage_over(const struct job *j)
{
	switch (j->waterfall_stage) {
	case 1: return j->n_places > 0;
	case 2: return (j->n_places > 0 && j->n_started == (int64_t)j->n_places) || j->iteration != MO_NONE;
	case 3: return (j->phase != PHASE_NONE && j->phase != PHASE_INIT) || j->iteration != MO_NONE;
	case 4: return j->phase == PHASE_TRAIN || j->iteration != MO_NONE;
	case 5: return j->lost_mark == MO_NONE || MO_MAX(j->iteration, MO_MAX(j->resume, 0)) >= j->lost_mark;
	default: return false;
	}
}

/* When iteration i ended, told by the sample of a later one (or by its own): they took equally long. */
static int64_t ended(const struct job *j, const struct seen *s, int64_t i)
{
	double back = s->step_us == MO_NONE || i >= j->iteration ? 0 : (double)s->step_us * (double)(j->iteration - i);

	return back < (double)s->time ? s->time - (int64_t)back : 0;
}

/* first: the sample is the first word of this attempt's training. When all lost iterations were over by then, only their step time says how long they took: without it MO_NONE. */
static int64_t stage_end(const struct job *j, const struct seen *s, bool first)
{
	if (s->from == MO_NONE)
		return s->time;
	if (j->waterfall_stage < 5)
		return ended(j, s, s->from);
	return first && s->step_us == MO_NONE && s->from < j->lost_mark ? MO_NONE : ended(j, s, MO_MAX(s->from, j->lost_mark));
}

static void measure(struct job *j, const struct seen *s)
{
	bool first = j->waterfall_stage < 5;
	struct waterfall *w;
	int64_t *slot[6];

	if (j->waterfall_stage < 1 || j->waterfall_stage > 5 || j->n_incidents == 0)
		return;
	if (j->state == JOB_QUEUED || j->state == JOB_PAUSED || job_state_final(j->state)) {
		j->waterfall_stage = 0;
		return;
	}
	w = &j->incidents[j->n_incidents - 1].waterfall;
	slot[1] = &w->place, slot[2] = &w->launch, slot[3] = &w->init, slot[4] = &w->load, slot[5] = &w->recompute;
	while (j->waterfall_stage <= 5 && stage_over(j)) {
		int64_t end = stage_end(j, s, first);
		if (end != MO_NONE) {
			end = MO_MAX(end, j->waterfall_at);
			*slot[j->waterfall_stage] = (end - j->waterfall_at) / 1000;
			j->waterfall_at = end;
		}
		j->waterfall_stage++;
	}
	if (j->waterfall_stage > 5)
		j->waterfall_stage = 0;
}

void recovery_waterfall(struct job *j, int64_t time)
{
	measure(j, &(struct seen){ .time = time, .from = MO_NONE });
}

void recovery_waterfall_trained(struct job *j, int64_t at, int64_t from, double step_ms)
{
	bool known = step_ms != MO_NONE_F && step_ms >= 0 && step_ms < 1e12;

	if (j->waterfall_stage < 1 || j->iteration <= from)
		return;
	int64_t most = MO_MAX(at - j->waterfall_at, 0) / (j->iteration - from);   /* they cannot have taken longer than there was time */
	measure(j, &(struct seen){ .time = at, .from = from, .step_us = known ? MO_MIN((int64_t)(step_ms * 1000), most) : MO_NONE });
}
