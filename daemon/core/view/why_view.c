/* What an answer to "why" consists of, below those who give the reasons. */
#include "daemon/core/view/view.h"
#include "daemon/core/view/why_view.h"

static const struct mo_field why_reason_fields[] = {
	MO_D(why_reason, code, MO_STR, "code of the reason"),
	MO_D(why_reason, text, MO_STR, "the reason in words"),
	MO_D_LIST(why_reason, evidence, MO_STRS, "what it rests on"),
};
const struct mo_desc why_reason_desc = MO_DESC(why_reason, why_reason_fields);
static const struct mo_field why_view_fields[] = {
	MO_D(why_view, verdict, MO_STR, "the answer in one line"),
	MO_D(why_view, since, MO_TIME, "in this state since"),
	MO_D_VEC(why_view, reasons, &why_reason_desc, "the reasons, most important first"),
	MO_D(why_view, next, MO_STR, "what to do"),
};
const struct mo_desc why_view_desc = MO_DESC(why_view, why_view_fields);
