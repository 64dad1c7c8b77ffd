/* Talks to the controller for the verbs: where it is, with which token, and what its errors mean
 * as exit statuses. Blocking; one request at a time.
 *
 * Most verbs call client_get() or client_get_all() and print the document (output.h); one that
 * changes something calls client_call(). Errors are printed here, once, so that verbs only pass the
 * exit status on (enum in cli.h).
 *
 * What never happens: a token is printed; a submit that is sent again makes a second job (its
 * Idempotency-Key: submit.c); an answer that is no JSON is taken for one. */
#pragma once
#include <json-c/json.h>
#include "cli/cli.h"
#include "lib/base/buf.h"
#include "lib/base/error.h"

struct answer {
	int status; /* HTTP; 0 = no answer */
	int error;  /* negative errno when status is 0 */
	struct mo_buf body;
	struct json_object *doc; /* parsed body, NULL when it is no JSON */
	struct mo_error err;     /* why there was no answer */
};
void answer_done(struct answer *a);

struct request {
	const char *method, *path; /* path with query, quoted; NULL method = GET */
	const char *body;
	size_t n;
	const char *content_type;
	const char *const *headers; /* "Name: value", NULL-terminated */
	int64_t timeout_ms;         /* 0 = 30 s, -1 = none */
	/* streams: pieces of a 2xx body as they come; non-zero ends it */
	int (*on_data)(void *arg, const char *data, size_t n);
	void *arg;
};

struct client *client_free(struct client *c);
/* The controller's URL (option, MOE_URL, configuration file, default). 0 or an exit status,
 * printed. */
int client_open(struct cli *cli);
const char *client_url(const struct cli *cli);
/* Sends without printing anything: the answer, or status 0. Returns 0, or an exit status when
 * the client itself is misconfigured (printed). */
int client_send(struct cli *cli, const struct request *r, struct answer *ret);
/* Exit status of an answer (0 for 2xx); prints the one error line, and with --json the problem
 * document on stdout. what: subject such as "j-7" or a file name, may be NULL. Recipe errors are
 * printed as FILE:LINE:COL lines with what as FILE. */
int client_judge(struct cli *cli, const char *what, const struct answer *a);
/* client_send + client_judge; ret->doc is set on success (a 2xx body that is no JSON is an
 * error). */
int client_call(struct cli *cli, const char *method, const char *what, const char *body,
		struct answer *ret, const char *path_fmt, ...) _printf_(6, 7);
int client_get(struct cli *cli, const char *what, struct answer *ret, const char *path_fmt, ...)
	_printf_(4, 5);
/* Who follows something waits so long for a controller that is away. */
#define FOLLOW_AWAY_US (120 * 1000000LL)

/* Page by page behind the key `from` (NULL: from the first): fn gets each (and may take its
 * content); non-zero ends it and is returned. */
int client_pages(struct cli *cli, const char *what, const char *path, const char *from,
		 int (*fn)(void *arg, struct answer *page), void *arg);
/* All pages of a list (`items`, `next`) as one document of the same shape. path has no
 * limit/after yet and may have a query. */
int client_get_all(struct cli *cli, const char *what, struct answer *ret, const char *path_fmt, ...)
	_printf_(4, 5);
/* Prints the same as it comes, for --json of lists that may be very long: only a page is held. A
 * page that cannot be had leaves the document unfinished, which no reader takes for whole. */
int client_print_all(struct cli *cli, const char *what, const char *path);
/* There was no answer, as what listens there understands the other of http and https. */
bool client_wrong_scheme(const struct cli *cli, const struct answer *a);
#define JOBS_UNFINISHED "queued,starting,running,recovering,stopping,paused"
/* Prints "name:line:col: message; hint" for each of the problem document's errors[]. False when
 * it has none. */
bool problem_print_recipe(struct json_object *doc, const char *file);
/* Percent-encodes for one path segment or query value. Caller frees. */
char *url_quote(const char *s);
/* --json: the body as one line. */
int print_answer(const struct answer *a);
