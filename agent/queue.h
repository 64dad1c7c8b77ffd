/* Events that wait for the turn. Every source queues, and decides nothing. */
#pragma once
#include "agent/manager.h"

/* What e points to is taken over (heap objects made by mo_desc_dup, text by mo_strdup). */
void queue_event(struct manager *m, struct agent_event *e);
void queue_event_done(struct agent_event *e);
void queue_events_done(struct manager *m); /* all of them were dealt with */
