/* In place of daemon/agent_answer.c: what goes back to agents is kept. */
#include "tests/unit/seams/bed.h"

#include <stdarg.h>
#include <stdlib.h>

#include "daemon/agent_answer.h"
#include "lib/wire/encode.h"

static struct seam_answer answers[64];
static int64_t n_messages;
static char *token;

const struct seam_answer *seam_answer(int64_t request)
{
	return answers[request].status ? &answers[request] : NULL;
}

void seam_token(const char *id)
{
	mo_str_set(&token, id);
}

int64_t seam_request(void)
{
	assert_true((size_t)n_messages + 1 < ELEMENTSOF(answers));
	return ++n_messages;
}

int64_t seam_say(struct manager *m, enum agent_word word, const struct mo_desc *d, const void *obj)
{
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	struct agent_message msg = { .token_id = token, .user = "agent", .address = "" };

	wire_encode(d, obj, &body);
	msg.request = seam_request();
	msg.body = body.data;
	msg.n = body.len;
	agent_message(m, word, &msg);
	return msg.request;
}

static void take(int64_t request, int status, const char *text, size_t n)
{
	assert_int_equal(answers[request].status, 0); /* once */
	answers[request].status = status;
	answers[request].text = mo_strndup(text, n);
}

void agent_answer(struct manager *m, int64_t request, int status, const struct mo_buf *json)
{
	take(request, status, json->data, json->len);
}

void agent_refuse(struct manager *m, int64_t request, int status, int64_t after_s, const char *fmt,
		  ...)
{
	va_list ap;

	va_start(ap, fmt);
	_cleanup_(mo_freep) char *text = mo_vprintf(fmt, ap);
	va_end(ap);
	take(request, status, text, strlen(text));
}

const char *agent_waits(struct manager *m, int64_t request)
{
	return answers[request].status ? NULL : token;
}

void seam_done(void)
{
	for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
		free(answers[i].text);
		answers[i] = (struct seam_answer){ 0 };
	}
	mo_str_set(&token, NULL);
	n_messages = 0;
	seam_disk_done();
}
