/* Sign-in links: a code that signs a browser in once. */
#pragma once
#include "daemon/manager.h"
#include "lib/base/desc.h"
#include "lib/http/server.h"

extern const struct mo_desc use_body_desc, signin_view_desc;

void api_signin_create(void *arg, struct http_request *r);
void api_signin_use(void *arg, struct http_request *r);
struct signins;
void signins_new(struct manager *m);
struct signins *signins_free(struct signins *s);
