/* See blame.h. */
#include "daemon/core/rules/blame.h"

#include <signal.h>
#include <string.h>

#include "daemon/core/rules/numbers.h"
#include "daemon/core/rules/stands.h"
#include "daemon/core/rules/words.h"
#include "daemon/core/state/heard.h"
#include "lib/base/buf.h"

bool blame_by_us(const struct rank *k)
{
	return k->exit &&
	       (mo_streq(k->exit->cause, "killed") || mo_streq(k->exit->cause, "stopped"));
}

/* The signal that ended the rank, itself or, by the word of a shell that is the rank (128 + n),
 * its child; 0 = it exited by itself. */
static int64_t signal_of(const struct rank *k)
{
	if (k->exit->signal > 0)
		return k->exit->signal;
	return k->exit->code > 128 && k->exit->code <= 128 + 64 ? k->exit->code - 128 : 0;
}

bool blame_bad(const struct rank *k)
{
	return k->exit && k->exit->code != 0;
}

/* The first bad death of the step: clocks of one node are comparable. An exit without a clock
 * counts as the last. */
static const struct rank *first_death(const struct job *j, const struct step *st, bool also_by_us)
{
	const struct rank *first = NULL;

	for (int64_t r = st->first_rank;
	     r < st->first_rank + st->n_ranks && (uint64_t)r < j->run.n_ranks; r++) {
		const struct rank *k = &j->run.ranks[r];

		if (!blame_bad(k) || (!also_by_us && blame_by_us(k)))
			continue;
		if (!first ||
		    (k->exit_mono_ns != MO_NONE &&
		     (first->exit_mono_ns == MO_NONE || k->exit_mono_ns < first->exit_mono_ns)))
			first = k;
	}
	return first;
}

const struct rank *blame_first(const struct job *j, const struct step *st)
{
	return first_death(j, st, false);
}

/* Its node reported how it ended. The ranks of a step that is gone are closed without that, also
 * those that never ran. */
static bool end_is_reported(const struct rank *k)
{
	return k->exit->code != MO_NONE || k->exit->signal != MO_NONE;
}

static struct blame blame_step(const struct job *j, const struct step *st, bool also_by_us)
{
	struct blame b = { .step = st };

	if (st->refused && mo_streq(st->refused_cause, "stale") && j->failure.decided &&
	    !st->started)
		return b; /* the answer to our own kill of a launch that never arrived */
	b.rank = first_death(j, st, also_by_us);
	if (st->refused)
		b.kind = B_REFUSED;
	else if (st->lost)
		b.kind = B_LOST;
	else if (st->gone && !st->ended && st->n_exited < st->n_ranks)
		b.kind = B_NODE;
	else if (b.rank)
		b.kind = signal_of(b.rank) ? B_SIGNAL : B_EXIT;
	else if ((st->gone || st->unkillable) && st->n_exited < st->n_ranks && !j->failure.decided)
		b.kind = B_ENDED;
	/* Of a refused launch no rank died first: it was ended because of the refusal. */
	if (b.kind == B_REFUSED || (b.kind >= B_NODE && b.rank && !end_is_reported(b.rank)))
		b.rank = NULL;
	return b;
}

/* The verdict that ended the attempt, and who stood out. */
static struct blame blame_hang(const struct job *j)
{
	struct blame b = { .kind = B_HANG };

	if (j->hang.rank != MO_NONE) {
		b.rank = &j->run.ranks[j->hang.rank];
		b.step = step_find(j, j->attempt, b.rank->node);
	}
	return b;
}

bool blame_by_hang(const struct job *j)
{
	return j->hang.stage == HANG_CONFIRMED && j->hang.acts;
}

/* First evidence, in the order of steps; a late exit when there is none. */
struct blame blame_find(const struct job *j, int64_t now, int64_t exit_wait_us)
{
	if (j->saves.elsewhere)
		return (struct blame){ .kind = B_ELSEWHERE };
	if (j->config.refused)
		return (struct blame){ .kind = B_CONFIG };
	if (numbers_fault(j))
		return (struct blame){ .kind = B_NUMBERS };
	for (size_t i = 0; j->counts.trouble > 0 && i < j->n_steps; i++) {
		struct blame b = { 0 };

		if (j->steps[i].attempt == j->attempt)
			b = blame_step(j, &j->steps[i], true);
		if (b.kind != B_NONE)
			return b;
	}
	if (j->failure.exit0_at != MO_NONE && j->counts.exited < (int64_t)j->run.n_ranks &&
	    now >= j->failure.exit0_at + exit_wait_us)
		return (struct blame){ .kind = B_LATE };
	return blame_by_hang(j) ? blame_hang(j) : (struct blame){ 0 };
}

static bool of_itself(const struct blame *b)
{
	return b->kind == B_EXIT || b->kind == B_SIGNAL;
}

/* Core time; at is MO_NONE where it is not known. */
struct death {
	int64_t at, error;
};

static struct death death_of(const struct state *s, const struct blame *b)
{
	struct death d = { .at = MO_NONE };

	if (of_itself(b))
		d.at = node_clock_time(s, b->rank->node, b->rank->exit_mono_ns, &d.error);
	return d;
}

/* Whatever the error of both. */
static bool before(const struct death *a, const struct death *b)
{
	return a->at != MO_NONE && b->at != MO_NONE && a->at + a->error < b->at - b->error;
}

/* With every exit known: what is found late but explains the rest (refused, supervisor, node)
 * comes first; then the death that was reported first, unless its node shows an earlier one, or
 * the clock of another node one that is clearly earlier, or it is a plain exit and another rank
 * died of a signal that nobody here sent: such an exit may be its echo. */
struct blame blame_root(const struct state *s, const struct job *j)
{
	const struct step *reported = step_find(j, j->attempt, j->failure.node);
	struct blame best = { 0 }, first = { 0 }, earliest = { 0 };
	struct death first_died = { .at = MO_NONE }, earliest_died = { .at = MO_NONE };

	if (j->saves.elsewhere)
		return (struct blame){ .kind = B_ELSEWHERE };
	if (j->config.refused)
		return (struct blame){ .kind = B_CONFIG };
	if (numbers_fault(j))
		return (struct blame){ .kind = B_NUMBERS };
	for (size_t i = 0; i < j->n_steps; i++) {
		struct blame b = { 0 };

		if (j->steps[i].attempt == j->attempt)
			b = blame_step(j, &j->steps[i], false);
		if (b.kind == B_NONE)
			continue;
		struct death d = death_of(s, &b);

		if (d.at != MO_NONE && (earliest_died.at == MO_NONE || d.at < earliest_died.at)) {
			earliest = b;
			earliest_died = d;
		}
		if (&j->steps[i] == reported) {
			first = b;
			first_died = d;
		}
		if (b.kind > best.kind)
			best = b;
	}
	if (best.kind >= B_NODE)
		return best;
	if (blame_by_hang(j)) /* what ends then ends because its peers are ended */
		return blame_hang(j);
	if (!first.kind) { /* our own doing, of before the state was restored */
		first = best;
		first_died = death_of(s, &best);
	}
	if (before(&earliest_died, &first_died))
		first = earliest;
	if (best.kind == B_SIGNAL && first.kind == B_EXIT && signal_of(best.rank) != SIGABRT &&
	    signal_of(best.rank) != SIGTERM)
		return best;
	return first;
}

char *blame_cause(const struct job *j, const struct blame *b)
{
	const char *name;

	switch (b->kind) {
	case B_REFUSED:
		return mo_strdup(b->step->refused_cause ? b->step->refused_cause : "refused");
	case B_LOST: return mo_strdup("supervisor-lost");
	case B_NODE: return mo_strdup("node-lost");
	case B_ENDED: return mo_strdup("ended without exit status");
	case B_LATE: return mo_strdup("exit-wait");
	case B_HANG: return mo_strdup("hang");
	case B_ELSEWHERE: return mo_strdup("saved elsewhere");
	case B_CONFIG: return mo_strdup("config");
	case B_NUMBERS: return numbers_cause(j);
	case B_EXIT:
	case B_SIGNAL: break;
	default: return mo_strdup(j->failure.cause ? j->failure.cause : "unknown");
	}
	if (mo_streq(b->rank->exit->cause, "oom"))
		return mo_strdup("oom");
	if (b->kind == B_EXIT && b->rank->exit->code == MO_NONE)
		return mo_strdup(b->rank->exit->cause ? b->rank->exit->cause : "unknown");
	const char *meaning = engine_exit_meaning(&j->spec.engine, b->rank->exit->code);

	if (b->kind == B_EXIT)
		return mo_printf("exit code %lld%s%s", (long long)b->rank->exit->code,
				 meaning ? ": " : "", meaning ? meaning : "");
	name = sigabbrev_np((int)signal_of(b->rank));
	if (b->rank->exit->signal <= 0)
		return mo_printf("exit code %lld, a shell's word for signal %lld%s%s",
				 (long long)b->rank->exit->code, (long long)signal_of(b->rank),
				 name ? " SIG" : "", name ? name : "");
	return mo_printf("signal %lld%s%s", (long long)b->rank->exit->signal, name ? " SIG" : "",
			 name ? name : "");
}

bool blame_refused_user(const struct step *st)
{
	static const char *const causes[] = { "bind",    "exec",   "user", "workdir",
					      "prepare", "config", "image" };

	return mo_enum_parse(causes, ELEMENTSOF(causes), st->refused_cause) >= 0;
}

bool blame_gpu_held(const struct blame *b)
{
	return b->kind == B_REFUSED && b->step && mo_streq(b->step->refused_cause, LAUNCH_GPU_HELD);
}

const char *blame_class(const struct job *j, const struct blame *b)
{
	if (b->kind == B_ELSEWHERE || b->kind == B_CONFIG ||
	    (b->kind == B_REFUSED && b->step && blame_refused_user(b->step)))
		return "user_error";
	if (b->kind == B_NODE || blame_gpu_held(b))
		return "node_fault";
	if (b->kind == B_NUMBERS)
		return "numerical";
	if (b->kind == B_HANG)
		return "hang";
	if (b->kind == B_EXIT && b->rank && j->progress.watermark == MO_NONE &&
	    b->rank->exit->code > 0 && !mo_streq(b->rank->exit->cause, "oom"))
		return "user_error";
	return "transient";
}

/* In no mount of its image. */
static bool saved_in_layer(const struct job *j)
{
	const struct recipe_container *c = j->spec.recipe.engine.container;
	_cleanup_(mo_freep) char *path = c ? mo_path_clean(j->saves.elsewhere) : NULL;

	return path && !container_mount_of(c, path) &&
	       !path_lies_in(path, j->spec.recipe.checkpoint.dir);
}

/* Both places, and the ways on. Caller frees. */
char *blame_elsewhere(const struct job *j)
{
	if (saved_in_layer(j))
		return mo_printf("the engine saved to %s, and not to checkpoint.dir %s: it lies in "
				 "the image's scratch layer, which is gone with the attempt; let "
				 "the engine save to checkpoint.dir, or mount %s "
				 "(engine.container.mounts) and name it as checkpoint.dir",
				 j->saves.elsewhere, j->spec.recipe.checkpoint.dir,
				 j->saves.elsewhere);
	return mo_printf("the engine saved to %s, and not to checkpoint.dir %s: nothing there "
			 "would be resumed; a new submit with --set checkpoint.dir of the place "
			 "where it saves goes on from there",
			 j->saves.elsewhere, j->spec.recipe.checkpoint.dir);
}

char *blame_config(const struct job *j)
{
	return mo_printf("the engine's configuration on %s" SAID "%s", j->config.node,
			 j->config.refused);
}

void blame_evidence(const struct job *j, const struct blame *b, char ***texts, size_t *n)
{
	_cleanup_(mo_freep) char *place = b->kind == B_ELSEWHERE ? blame_elsewhere(j)
					  : b->kind == B_CONFIG  ? blame_config(j)
								 : NULL;

	if (place)
		mo_strs_add(texts, n, place);
	if (b->kind == B_REFUSED && b->step && b->step->refused_text)
		mo_strs_add(texts, n, b->step->refused_text);
	for (size_t i = 0; b->kind == B_HANG && i < j->hang.n_evidence; i++)
		mo_strs_add(texts, n, j->hang.evidence[i]);
	if (b->kind == B_HANG)
		stands_evidence(j, texts, n);
	if (b->kind == B_NODE && b->step && b->step->gone_how)
		mo_strs_add(texts, n, b->step->gone_how);
	if (b->kind == B_NUMBERS)
		numbers_evidence(j, texts, n);
}

/* The step that was stopped on its machine, when that explains the end: peers of stopped ranks
 * end too, and their word may come first. NULL = it does not. */
const struct step *blame_outside(const struct job *j, const struct blame *b)
{
	int64_t signal = b->kind == B_SIGNAL ? signal_of(b->rank) : 0;

	if (b->kind > B_SIGNAL || (signal && signal != SIGABRT && signal != SIGTERM))
		return NULL;
	for (size_t i = 0; i < j->n_steps; i++)
		if (j->steps[i].attempt == j->attempt && j->steps[i].outside)
			return &j->steps[i];
	return NULL;
}
