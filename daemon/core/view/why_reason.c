/* One reason of an answer to why, and evidence for it. */
#include "daemon/core/view/why_reason.h"
#include "daemon/core/view/why_view.h"

#include <stdarg.h>
#include <stdio.h>

/* the last words of a rank, what checks found and sensors read, and what is said of all that */
#define EVIDENCE_MAX 64

struct why_reason *why_reason(struct why_view *w, const char *code, const char *fmt, ...)
{
	struct why_reason *r = MO_ADD(w, reasons, &why_reason_desc);
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->code = mo_strdup(code);
	r->text = mo_strdup(text);
	return r;
}

void why_evidence(struct why_reason *r, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (r->n_evidence >= EVIDENCE_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mo_strs_add(&r->evidence, &r->n_evidence, text);
}
