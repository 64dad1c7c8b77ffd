/* See incident.h. */
#include "daemon/core/rules/incident.h"

#include <string.h>

#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/device.h"
#include "daemon/core/rules/readings.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/words.h"

/* What the GPUs and cards did before the rest of the ranks is killed. */
void incident_readings(const struct turn *t, const struct job *j, char ***texts, size_t *n_texts)
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

void incident_emit(struct turn *t, const struct job *j, const struct incident_of *of)
{
	const struct verdict *v = of->verdict;
	const struct blame *b = &v->blame;
	bool users = v->class == FAIL_USER_ERROR;
	struct incident *inc;
	struct record r;

	record_init(&r, REC_INCIDENT);
	r.job = j->id;
	r.incident->newest_checkpoint = state_newest_checkpoint(j);
	r.incident->in_a_row = of->in_a_row;
	r.incident->uncounted = of->uncounted;
	r.incident->skip = of->skip ? mo_desc_dup(&skip_desc, of->skip) : NULL;
	r.incident->signature = verdict_signature(v, of->cause);
	inc = &r.incident->details;
	inc->time = j->failure.at;
	inc->attempt = j->attempt;
	inc->class = mo_strdup(failure_class_names[v->class]);
	inc->first_rank = b->rank ? b->rank->rank : MO_NONE;
	inc->gpu = b->rank ? b->rank->gpu : MO_NONE;
	inc->device = mo_strdup(device_of(&t->core->state, b));
	inc->node = mo_strdup(b->step ? b->step->node : j->failure.node);
	inc->cause = mo_strdup(of->cause);
	inc->rule = mo_strdup(v->n_lines ? v->rule : NULL);
	inc->why = mo_strdup(v->n_lines ? v->why : NULL);
	inc->iteration = j->progress.watermark;
	inc->elsewhere = of->elsewhere;
	verdict_evidence(t->core, j, v, &inc->evidence, &inc->n_evidence);
	if (!users)
		health_evidence(&t->core->state, j, &inc->evidence, &inc->n_evidence);
	for (size_t i = 0; i < j->failure.n_evidence && !users; i++)
		if (mo_starts_with(j->failure.evidence[i], READING_PREFIX))
			mo_strs_add(&inc->evidence, &inc->n_evidence, j->failure.evidence[i]);
	inc->action = mo_strdup(of->action);
	if (j->failure.unfinished_us != MO_NONE)
		inc->waterfall.unfinished = j->failure.unfinished_us / 1000;
	inc->waterfall.detect = j->failure.detect_us / 1000;
	inc->waterfall.stop = (t->now - j->failure.at) / 1000;
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

		if (n >= k && !strncmp(line + n - k, ends[i], k) &&
		    (!line[n] || mo_starts_with(line + n, ": ")))
			return true;
	}
	return false;
}

/* What is left on the way out and says nothing: torch's log lines ("[W1121 10:19:17.1
 * file.cpp:1] ...") and native frames. */
static bool says_nothing(const char *line)
{
	return !line[strspn(line, " \t")] ||
	       (line[0] == '[' && line[1] && strchr("IWE", line[1]) && line[2] >= '0' &&
		line[2] <= '9') ||
	       mo_starts_with(line, "frame #") || mo_starts_with(line, "Exception raised from ");
}

/* The line that tells why the rank ended: its last uncaught exception, else its last line that
 * says something. */
char *incident_said(const struct blame *b)
{
	const char *last = NULL;

	for (size_t i = b->rank ? b->rank->n_tail : 0; i-- > 0;) {
		const char *line = without_rank(b->rank->tail[i]);

		if (names_exception(line))
			return mo_printf(SAID "%s", line);
		if (!last && !says_nothing(line))
			last = line;
	}
	return last ? mo_printf(SAID "%s", last) : mo_strdup("");
}

/* What an exit before the first iteration means; 126 and 127 are said by shells and launchers. */
const char *incident_exit_meaning(const struct rank *k)
{
	switch (k->exit->code) {
	case 126:
		return "it could not execute a program that it calls; is it executable, and for "
		       "this machine?";
	case 127:
		return "a program or library that it calls was not found; is it installed there, "
		       "and in PATH or LD_LIBRARY_PATH?";
	default: return "an error of the program or its arguments";
	}
}
