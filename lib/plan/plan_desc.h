/* Descriptions of the plan document (plan.h). */
#pragma once
#include "lib/base/desc.h"

extern const struct mo_desc plan_stage_desc, plan_desc, plan_reliability_desc, plan_doc_desc;
