/* moe-webhook: posts one delivery of a webhook and says what came of it. moed starts it, gives the
 * order on standard input (struct webhook_order) and reads the answer (struct webhook_answer): name
 * look-ups, TLS and whatever a receiver does are a process's that may be killed.
 *
 * X-Moe-Signature is "v1=" and the HMAC-SHA256, in hex, of X-Moe-Timestamp (seconds since the
 * epoch), a point and the body. No redirect is followed, of an answer only its status is read. */
#include <errno.h>
#include <gnutls/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/loop/http_fetch.h"
#include "lib/model/webhook.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define ORDER_MAX (4u << 20)
#define MAC_BYTES 32

MO_DEFINE_DONE(webhook_order)

static char *signature(const struct webhook_order *o, int64_t now)
{
	_cleanup_(mo_freep) char *text = mo_printf("%lld.%s", (long long)now, o->body);
	unsigned char mac[MAC_BYTES];
	char hex[2 * MAC_BYTES + 1];

	if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, o->secret, strlen(o->secret), text, strlen(text),
			     mac) < 0)
		return NULL;
	mo_hex(mac, sizeof(mac), hex);
	return mo_printf("X-Moe-Signature: v1=%s", hex);
}

/* That there is a body is all that is wanted of it. */
static int no_more(void *arg, const char *data, size_t n)
{
	return 1;
}

static void post(const struct webhook_order *o, struct webhook_answer *ret)
{
	assert(o->url && o->body);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_freep) char *host = webhook_host(o->url);
	int64_t now = mo_clock_wall_us() / 1000000;
	_cleanup_(mo_freep) char *time = mo_printf("X-Moe-Timestamp: %lld", (long long)now),
				 *mac = o->secret ? signature(o, now) : NULL;
	const char *path = o->url + strlen(host);
	const char *const headers[] = { time, mac, NULL };
	const struct mo_http_call call = { .url = host,
					   .path = path && *path ? path : "/",
					   .method = "POST",
					   .body = o->body,
					   .body_len = strlen(o->body),
					   .content_type = "application/json",
					   .timeout_ms = o->timeout_ms,
					   .max_body = 65536,
					   .headers = headers,
					   .ca_file = o->ca_file };
	int status = 0;

	if (o->secret && !mac) {
		ret->error = mo_strdup("it could not be signed");
		return;
	}
	int r = mo_http_fetch(&call, no_more, NULL, &status, NULL, &err);

	if (r < 0)
		ret->error = mo_strdup(mo_error_text(&err, r));
	else
		ret->status = status;
}

int main(int argc, char **argv)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 }, out = { 0 };
	_cleanup_(webhook_order_done) struct webhook_order order;
	_cleanup_(webhook_answer_done) struct webhook_answer answer;

	mo_desc_init(&webhook_order_desc, &order);
	mo_desc_init(&webhook_answer_desc, &answer);
	if (argc > 1 && mo_streq(argv[1], "--version")) {
		printf("moe-webhook %s\n", MO_VERSION);
		return 0;
	}
	if (argc > 1) {
		fputs("usage: moe-webhook <ORDER\n", stderr);
		return 2;
	}
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	int r = mo_read_fd(STDIN_FILENO, ORDER_MAX, &text);
	if (r >= 0)
		r = wire_decode(&webhook_order_desc, text.len ? text.data : "", text.len, true,
				&order, &err);
	if (r >= 0 && (!order.url || !order.body || order.timeout_ms <= 0))
		r = mo_error_set(&err, -EINVAL, "url, body and timeout_ms are needed");
	if (r < 0) {
		fprintf(stderr, "moe-webhook: the order: %s\n", mo_error_text(&err, r));
		return 2;
	}
	post(&order, &answer);
	wire_encode(&webhook_answer_desc, &answer, &out);
	puts(out.data);
	return 0;
}
