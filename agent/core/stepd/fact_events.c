/* See fact_events.h. */
#include "agent/core/stepd/fact_events.h"

size_t fact_events_of_line(const struct line_fact *f, int ret[static FACT_EVENTS_MAX])
{
	static const int event_of[_LINE_KIND_N] = {
		[LINE_SAMPLE] = SE_SAMPLE,    [LINE_PHASE] = SE_PHASE,
		[LINE_SAVED] = SE_CHECKPOINT, [LINE_SAVING] = SE_SAVING,
		[LINE_RESUMED] = SE_RESUMED,  [LINE_ENDED] = -1,
	};

	if (f->kind < 0 || f->kind >= _LINE_KIND_N || event_of[f->kind] < 0)
		return 0;
	ret[0] = event_of[f->kind];
	return 1;
}

size_t fact_events_of_datagram(const struct line_fact *f, int ret[static FACT_EVENTS_MAX])
{
	size_t n = 0;

	if (f->ready || f->phase > PHASE_NONE)
		ret[n++] = f->ready ? SE_READY : SE_PHASE;
	if (f->kind == LINE_SAMPLE)
		ret[n++] = SE_SAMPLE;
	if (f->checkpoint)
		ret[n++] = SE_CHECKPOINT;
	return n;
}

void fact_note(int event, const struct line_fact *f, int64_t rank, int64_t attempt, int64_t wall_us,
	       struct note *ret)
{
	mo_desc_init(&note_desc, ret);
	ret->rank = rank;
	if (event == SE_PHASE || event == SE_READY) {
		ret->phase = f->phase;
		ret->iteration = f->iteration;
	}
	if (event == SE_SAMPLE) {
		ret->sample = mo_alloc(sizeof(*ret->sample));
		*ret->sample = f->sample;
		ret->sample->time = wall_us / 1000 * 1000; /* times are told in ms */
		ret->sample->attempt = attempt;
	}
	if (event == SE_CHECKPOINT || event == SE_SAVING || event == SE_RESUMED) {
		ret->iteration = f->iteration;
		ret->path = f->path[0] ? mo_strdup(f->path) : NULL;
		ret->text = event == SE_CHECKPOINT && f->status[0] ? mo_strdup(f->status) : NULL;
	}
}
