/* Following /v1/events (see stream.h). */
#include "cli/stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/interrupt.h"
#include "cli/sse.h"
#include "lib/base/clock.h"

#define AGAIN_MS 500

struct follow {
	struct sse sse;
	int (*fn)(void *arg, const char *data);
	void *arg;
	bool stopped;
};

static void follow_done(struct follow *f)
{
	sse_done(&f->sse);
}

static int on_bytes(void *arg, const char *data, size_t n)
{
	struct follow *f = arg;
	f->stopped = sse_feed(&f->sse, data, n, f->fn, f->arg) != 0;
	return f->stopped;
}

int stream_events(struct cli *cli, const char *path, int64_t from,
		  int (*fn)(void *arg, const char *data), void *arg)
{
	_cleanup_(follow_done) struct follow f = { .fn = fn, .arg = arg };
	int64_t away_since = 0;
	bool connected = false;
	if (from >= 0)
		snprintf(f.sse.last_id, sizeof(f.sse.last_id), "%lld", (long long)from);
	for (;;) {
		_cleanup_(answer_done) struct answer a = { 0 };
		_cleanup_(mo_freep) char *header =
			f.sse.last_id[0] ? mo_printf("Last-Event-ID: %s", f.sse.last_id) : NULL;
		const char *const headers[] = { header ? header : "Accept: text/event-stream",
						NULL };
		const struct request q = { .path = path,
					   .headers = headers,
					   .timeout_ms = -1,
					   .on_data = on_bytes,
					   .arg = &f };
		int r = client_send(cli, &q, &a);
		if (r || f.stopped)
			return r;
		if (a.status >= 300 && a.status < 500)
			return client_judge(cli, NULL, &a);
		int64_t now = mo_clock_boot_us();
		if (a.error != -ECONNREFUSED) {
			connected = true;
			away_since = now;
			fprintf(stderr,
				"moectl: controller %s: no answer; trying again, it goes on where "
				"it was\n",
				client_url(cli));
		} else if (!connected || now - away_since > FOLLOW_AWAY_US) {
			return client_judge(cli, NULL, &a);
		}
		mo_buf_reset(&f.sse.line);
		mo_buf_reset(&f.sse.data);
		interrupt_wait(AGAIN_MS);
	}
}
