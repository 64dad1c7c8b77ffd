/* The log of the daemons. When stderr is the journal's stream (the service manager sets
 * JOURNAL_STREAM and the device and inode agree), entries go to the journal's native socket with
 * their fields; otherwise, or when that fails, one "<level>text" line goes to stderr, so a
 * daemon of `moectl local up` writes into its log file. */
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/fd.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define TEXT_MAX 8192 /* a datagram must fit the socket's buffer */

static struct {
	char *identifier;
	enum mo_level max;
	int journal;
	struct sockaddr_un address;
} state = { NULL, MO_INFO, -1, { 0 } };

static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char expect[64];
	struct stat st;

	if (!stream || mo_stat_fd(STDERR_FILENO, &st) < 0)
		return false;
	snprintf(expect, sizeof(expect), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return strcmp(stream, expect) == 0;
}

void mo_log_open(const char *identifier, enum mo_level max_level)
{
	const char *path = getenv("MOE_JOURNAL_SOCKET"); /* tests listen there */

	state.address.sun_family = AF_UNIX;
	snprintf(state.address.sun_path, sizeof(state.address.sun_path), "%s",
		 path && *path ? path : JOURNAL_SOCKET);
	mo_str_set(&state.identifier, identifier);
	state.max = max_level;
	state.journal = mo_close(state.journal);
	if (stderr_is_journal())
		state.journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* One field of the native protocol. The value with its length, since it may hold newlines. */
static void field(struct mo_buf *b, const char *name, const char *value)
{
	size_t n = strlen(value);
	unsigned char size[8];

	for (size_t i = 0; i < sizeof(size); i++)
		size[i] = (unsigned char)((uint64_t)n >> (8 * i));
	mo_buf_str(b, name);
	mo_buf_str(b, "\n");
	mo_buf_add(b, size, sizeof(size));
	mo_buf_add(b, value, n);
	mo_buf_str(b, "\n");
}

static void number_field(struct mo_buf *b, const char *name, const char *prefix, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%lld", prefix, (long long)value);
	field(b, name, text);
}

static bool to_journal(enum mo_level level, const char *message_id, const struct mo_log_where *w,
		       const char *text)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (state.journal < 0)
		return false;
	field(&b, "MESSAGE", text);
	number_field(&b, "PRIORITY", "", level);
	if (state.identifier)
		field(&b, "SYSLOG_IDENTIFIER", state.identifier);
	if (message_id)
		field(&b, "MESSAGE_ID", message_id);
	if (w && w->job > 0) {
		number_field(&b, "MOE_JOB", "j-", w->job);
		if (w->attempt > 0)
			number_field(&b, "MOE_ATTEMPT", "", w->attempt);
		if (w->rank >= 0)
			number_field(&b, "MOE_RANK", "", w->rank);
	}
	if (w && w->node)
		field(&b, "MOE_NODE", w->node);
	if (w && w->cause)
		field(&b, "MOE_CAUSE", w->cause);
	return sendto(state.journal, b.data, b.len, MSG_NOSIGNAL, (struct sockaddr *)&state.address,
		      sizeof(state.address)) == (ssize_t)b.len;
}

static void to_stderr(enum mo_level level, const struct mo_log_where *w, const char *text)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_printf(&b, "<%d>%s", (int)level, text);
	for (size_t i = 0; i < b.len; i++)
		if (b.data[i] == '\n')
			b.data[i] = ' ';
	if (w && w->job > 0)
		mo_buf_printf(&b, " job=j-%lld", (long long)w->job);
	if (w && w->job > 0 && w->attempt > 0)
		mo_buf_printf(&b, " attempt=%lld", (long long)w->attempt);
	if (w && w->job > 0 && w->rank >= 0)
		mo_buf_printf(&b, " rank=%lld", (long long)w->rank);
	if (w && w->node)
		mo_buf_printf(&b, " node=%s", w->node);
	if (w && w->cause)
		mo_buf_printf(&b, " cause=%s", w->cause);
	mo_buf_str(&b, "\n");
	mo_write_all(STDERR_FILENO, b.data, b.len);
}

void mo_log(enum mo_level level, const char *message_id, const struct mo_log_where *where,
	    const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	if (level > state.max)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!to_journal(level, message_id, where, text))
		to_stderr(level, where, text);
}
