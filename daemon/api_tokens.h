/* Tokens and the session cookie. */
#pragma once
#include "daemon/manager.h"
#include "lib/base/desc.h"
#include "lib/http/server.h"

extern const struct mo_desc token_body_desc, token_view_desc, revoked_view_desc, session_view_desc;

void api_tokens_create(void *arg, struct http_request *r);
void api_tokens_list(void *arg, struct http_request *r);
void api_tokens_revoke(void *arg, struct http_request *r);
void api_session_create(void *arg, struct http_request *r);
void api_session_delete(void *arg, struct http_request *r);
/* 200 with a cookie for this token. */
void api_session_reply(struct manager *m, struct http_request *r, const char *token_id,
		       const char *user, enum role role);
extern const struct mo_desc whoami_view_desc;
void api_whoami(void *arg, struct http_request *r);
