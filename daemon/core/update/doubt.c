/* A save that goes, by the text of its path, not to checkpoint.dir. The text is no proof: the same
 * directory may have another name on the node (a link, a second mount). So a node that runs the job
 * is asked, with an order of verification, whether the two are one. Its word that they are two ends
 * the job (B_ELSEWHERE); that they are one is remembered, and the save is taken; no word, or one of
 * an agent that does not know the question, ends nothing: the save stays refused, which is
 * reported. */
#include "daemon/core/update/doubt.h"

#include <string.h>

#include "daemon/core/state/checkpoint.h"
#include "daemon/core/update/checkpoints.h"
#include "daemon/core/update/verify.h"

/* Its lines say of each save that it ended, and where. */
static bool says_saved(const struct engine *e)
{
	for (size_t i = 0; i < e->n_rules; i++)
		if (e->rules[i].kind == LINE_SAVED && e->rules[i].pattern &&
		    strstr(e->rules[i].pattern, "(?<path>"))
			return true;
	return false;
}

void doubt_begin(struct job *j, const char *path, int64_t iteration)
{
	if (j->saves.doubt || j->saves.elsewhere || j->run.n_places == 0)
		return;
	mo_str_set(&j->saves.doubt, path);
	j->saves.doubt_at = MO_MAX(iteration, 0);
	verify_end(j);
	verify_begin(j);
}

/* Of an engine that says no end of a save, the first one is over when it goes on to iterate, or
 * ends. */
void doubt_begun(struct job *j)
{
	_cleanup_(mo_freep) char *path = NULL;

	if (!j->saves.began || says_saved(&j->spec.engine) ||
	    (j->progress.iteration <= j->saves.began_at && j->counts.exited == 0))
		return;
	path = TAKE_PTR(j->saves.began);
	doubt_begin(j, path, j->saves.began_at);
}

void doubt_drop(struct job *j)
{
	mo_str_set(&j->saves.doubt, NULL);
}

bool doubt_awaited(const struct state *s, const struct job *j)
{
	if (!j->saves.doubt || j->failure.decided || j->state == JOB_STOPPING)
		return false;
	for (size_t i = 0; i < j->run.n_places; i++)
		if (verify_next(s, j, j->run.places[i].node, 0) >= 0)
			return true;
	return false;
}

void doubt_answer(struct job *j, const struct scan_result *r, int64_t time)
{
	_cleanup_(mo_freep) char *path = TAKE_PTR(j->saves.doubt);
	struct note n;

	if (!r->error && mo_streq(r->place, "other")) {
		mo_str_set(&j->saves.elsewhere, path);
		checkpoint_withdraw(j, j->saves.doubt_at);
	}
	if (r->error || !mo_streq(r->place, "same"))
		return;
	if (r->alias)
		mo_str_set(&j->saves.real, r->alias);
	mo_str_set(&j->saves.refused, NULL);
	mo_desc_init(&note_desc, &n);
	n.kind = NOTE_CHECKPOINT;
	n.iteration = j->saves.doubt_at;
	checkpoint_note(j, &n, time);
	mo_desc_done(&note_desc, &n);
}
