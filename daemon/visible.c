/* See visible.h. Lines of the ranks' output, and what is read in files of the user, come into
 * documents at two places: as evidence of incidents, and behind SAID in the reason of a job that
 * failed and in messages of events, whose data may have it once more as its last member `text`. The
 * command of a job.exec is kept likewise: behind COMMAND_IS, and as the last member `command`. */
#include "daemon/visible.h"
#include <stdio.h>
#include <string.h>
#include "daemon/core/rules/words.h"
#include "daemon/core/view/report.h"
#include "daemon/core/view/why_view.h"
#include "lib/base/parse.h"
#include "lib/model/mask.h"

void viewer_of(const struct manager *m, const struct http_request *r, struct viewer *ret)
{
	const struct http_caller *c = http_caller(r);

	*ret = (struct viewer){ .sees_all = mo_streq(m->options->visibility, "all") ||
					    (c->role >= ROLE_OPERATOR && c->role != ROLE_AGENT) };
	if (c->user)
		snprintf(ret->user, sizeof(ret->user), "%s", c->user);
}

bool viewer_sees(const struct viewer *v, const struct job *j)
{
	return v->sees_all || (j && *v->user && mo_streq(j->spec.user, v->user));
}

bool visible_to(struct manager *m, struct http_request *r, const struct job *j, const char *what)
{
	struct viewer v;

	viewer_of(m, r, &v);
	if (viewer_sees(&v, j))
		return true;
	http_problem(r, 403,
		     "job j-%lld: its %s are for its owner %s and for operators (visibility in "
		     "moed.yaml)",
		     (long long)j->id, what, j->spec.user ? j->spec.user : "?");
	return false;
}

/* Where a line of output begins, or a user's command; NULL: nowhere. */
static char *others_words(char *text)
{
	char *said = text ? strstr(text, SAID) : NULL, *is = text ? strstr(text, COMMAND_IS) : NULL;

	return said && is ? MO_MIN(said, is) : said ? said : is;
}

static void cut_said(char *text)
{
	char *said = others_words(text);

	if (said)
		*said = 0;
}

static void mask(char **text)
{
	char *masked = *text ? mo_mask_text(*text) : NULL;

	free(*text);
	*text = masked;
}

static void reason(bool sees, char **text)
{
	if (!sees)
		cut_said(*text);
	mask(text);
}

void visible_job(const struct viewer *v, const struct job *j, struct job_view *doc)
{
	reason(viewer_sees(v, j), &doc->reason);
	if (doc->waiting) {
		reason(viewer_sees(v, j), &doc->waiting->text);
		mask(&doc->waiting->dir);
	}
}

static bool is_output(const struct job *j, const char *text)
{
	for (size_t i = 0; i < j->n_incidents; i++)
		if (mo_enum_parse((const char *const *)j->incidents[i].evidence,
				  j->incidents[i].n_evidence, text) >= 0)
			return true;
	return false;
}

static void evidence(bool sees, const struct job *j, char **texts, size_t *n)
{
	size_t retained = 0;

	for (size_t i = 0; i < *n; i++) {
		if (!sees && !mo_starts_with(texts[i], READING_PREFIX) && is_output(j, texts[i])) {
			free(texts[i]);
			continue;
		}
		mask(&texts[i]);
		texts[retained++] = texts[i];
	}
	*n = retained;
}

void visible_why(const struct viewer *v, const struct job *j, struct why_view *doc)
{
	bool sees = viewer_sees(v, j);

	reason(sees, &doc->verdict);
	for (size_t i = 0; i < doc->n_reasons; i++) {
		reason(sees, &doc->reasons[i].text);
		evidence(sees, j, doc->reasons[i].evidence, &doc->reasons[i].n_evidence);
	}
}

void visible_report(const struct viewer *v, const struct job *j, struct report_view *doc)
{
	for (size_t i = 0; i < doc->n_incidents; i++)
		evidence(viewer_sees(v, j), j, doc->incidents[i].evidence,
			 &doc->incidents[i].n_evidence);
}

bool visible_event(const struct viewer *v, const struct state *s, const struct event *e)
{
	return e->job == MO_NONE || viewer_sees(v, NULL) || !e->message ||
	       !others_words(e->message) || viewer_sees(v, job_find(s, e->job));
}

struct event *visible_event_cut(const struct event *e)
{
	struct event *cut = mo_desc_dup(&event_desc, e);
	bool is_exec = mo_streq(e->type, event_registry[EVENT_JOB_EXEC].type);
	const char *last = is_exec ? "\"command\":" : "\"text\":";
	char *data = cut->data && !is_exec ? strstr(cut->data, SAID) : NULL;

	cut_said(cut->message);
	if (data)
		memcpy(data, "\"}", 3); /* the reason is the last member (job_move) */
	char *text = !data && cut->data && strlen(cut->message) < strlen(e->message)
			     ? strstr(cut->data, last)
			     : NULL;
	if (text) {
		*text = 0;
		text = mo_printf("%s%snull}", cut->data, last);
		free(cut->data);
		cut->data = text;
	}
	return cut;
}
