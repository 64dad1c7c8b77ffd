/* Where events are sent to: what the site's file says of each receiver, and what moed and
 * moe-webhook, which sends one delivery, say to each other. lib/recipe/webhooks_file.h reads it. */
#pragma once
#include "lib/base/desc.h"

#define WEBHOOKS_MAX 16
/* What is posted. events: a document of the events. text, content: for chat systems, their lines as
 * the value of that one key. */
enum webhook_format { WEBHOOK_EVENTS, WEBHOOK_TEXT, WEBHOOK_CONTENT, _WEBHOOK_FORMAT_N };
extern const char *const webhook_format_names[_WEBHOOK_FORMAT_N];

struct webhook {
	char *name;
	char *url;     /* holds a secret of many chat systems: never shown, but for its host */
	char *secret;  /* key of the signature; NULL: not signed */
	char *ca_file; /* certificates that its server's is checked by; NULL: the system's */
	char **types;  /* patterns of event types; none: all */
	size_t n_types;
	char **jobs; /* patterns of names of jobs; none: all events, of no job too */
	size_t n_jobs;
	int format; /* enum webhook_format */
};
struct webhooks_file {
	struct webhook *webhooks;
	size_t n_webhooks;
};
extern const struct mo_desc webhook_desc, webhooks_file_desc;
MO_DEFINE_DONE(webhooks_file)

/* To moe-webhook, on its standard input. */
struct webhook_order {
	char *url, *secret, *ca_file, *body;
	int64_t timeout_ms;
};
/* What it prints. */
struct webhook_answer {
	int64_t status; /* of HTTP; MO_NONE: there was no answer, and why: */
	char *error;
};
extern const struct mo_desc webhook_order_desc, webhook_answer_desc;
MO_DEFINE_DONE(webhook_answer)

/* "https://host:port" of the URL: what may be shown of it. Caller frees. */
char *webhook_host(const char *url);
