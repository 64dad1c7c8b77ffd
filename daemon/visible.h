/* Who sees what of a job (visibility in moed.yaml): with `owner` logs, environment, arguments
 * and lines of output are for its owner and operators; names, states and numbers for everybody.
 * Nobody is shown what looks like a credential (lib/model/mask.h). */
#pragma once
#include "daemon/core/view/view.h"
#include "daemon/core/view/report.h"
#include "daemon/core/view/why_view.h"
#include "daemon/manager.h"
#include "lib/model/limits.h"

/* A caller as a stream must remember him. */
struct viewer {
	bool sees_all;
	char user[MO_LONGEST_NAME + 1];
};
void viewer_of(const struct manager *m, const struct http_request *r, struct viewer *ret);
/* j NULL: a job that is forgotten */
bool viewer_sees(const struct viewer *v, const struct job *j);
/* false after 403 was sent; what: "logs". */
bool visible_to(struct manager *m, struct http_request *r, const struct job *j, const char *what);
/* Documents without what the viewer may not see, in place. */
void visible_job(const struct viewer *v, const struct job *j, struct job_view *doc);
void visible_why(const struct viewer *v, const struct job *j, struct why_view *doc);
void visible_report(const struct viewer *v, const struct job *j, struct report_view *doc);
/* Whether the viewer gets the event as it is. */
bool visible_event(const struct viewer *v, const struct state *s, const struct event *e);
/* The event without lines of output; caller frees with mo_desc_free(). */
struct event *visible_event_cut(const struct event *e);
