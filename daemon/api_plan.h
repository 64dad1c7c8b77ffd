/* Plans and the checks of a recipe, without a job. */
#pragma once
#include "lib/base/desc.h"
#include "lib/http/server.h"

extern const struct mo_desc valid_view_desc;

void api_plan(void *arg, struct http_request *r);
void api_anchors(void *arg, struct http_request *r);
void api_validate(void *arg, struct http_request *r);
void plan_refuse(struct http_request *r, int e); /* helper_plan() failed with e */
