/* What an answer to "why" consists of, below those who give the reasons. */
#include "daemon/core/view/view.h"

static const struct mo_field why_reason_fields[] = {
	MO_F(why_reason, code, MO_STR),
	MO_F(why_reason, text, MO_STR),
	MO_F_LIST(why_reason, evidence, MO_STRS),
};
const struct mo_desc why_reason_desc = MO_DESC(why_reason, why_reason_fields);
static const struct mo_field why_view_fields[] = {
	MO_F(why_view, verdict, MO_STR),
	MO_F(why_view, since, MO_TIME),
	MO_F_VEC(why_view, reasons, &why_reason_desc),
	MO_F(why_view, next, MO_STR),
};
const struct mo_desc why_view_desc = MO_DESC(why_view, why_view_fields);
