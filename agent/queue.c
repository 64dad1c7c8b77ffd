/* See queue.h. */
#include "agent/queue.h"

#include "lib/loop/loop.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

void queue_event_done(struct agent_event *e)
{
	mo_desc_free(&launch_desc, (void *)(uintptr_t)e->launch);
	mo_desc_free(&note_desc, (void *)(uintptr_t)e->note);
	mo_desc_free(&rank_progress_desc, (void *)(uintptr_t)e->progress);
	mo_desc_free(&agent_welcome_desc, (void *)(uintptr_t)e->welcome);
	mo_desc_free(&sync_reply_desc, (void *)(uintptr_t)e->reply);
	mo_desc_free(&scan_result_desc, (void *)(uintptr_t)e->scan);
	mo_desc_free(&image_report_desc, (void *)(uintptr_t)e->report);
	mo_desc_free(&recorder_answer_desc, (void *)(uintptr_t)e->recorder);
	free((void *)(uintptr_t)e->readings);
	free((void *)(uintptr_t)e->activities);
	free((void *)(uintptr_t)e->text);
}

void queue_event(struct manager *m, struct agent_event *e)
{
	*MO_GROW(m->queue, m->n_queue) = *e;
	mo_turn_arm(m->turn);
}

void queue_events_done(struct manager *m)
{
	free(m->queue); /* MO_GROW's storage rule: a counter set back needs fresh storage */
	m->queue = NULL;
	m->n_queue = 0;
}
