/* Admission: may this recipe run, as far as memory tells? */
#pragma once
#include "lib/plan/plan.h"

/* Refused is only what exceeds memory by its states alone; what does not fit
 * otherwise is a warning with the table and the nearest plan that fits. *ret_text: NULL when it
 * fits. */
enum plan_verdict { PLAN_ADMIT, PLAN_WARN, PLAN_REFUSE };
enum plan_verdict plan_admit(const struct recipe *r, const struct plan_doc *doc, char **ret_text);
