/* The kernel's log: /dev/kmsg of this machine, or a file below a root; judged by
 * agent/core/health/klog.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/health/klog.h"
#include "agent/core/health/reading.h"
#include "agent/probe/probe_pass.h"
#include "lib/base/fd.h"
#include "lib/recipe/klog_file.h"

#define LOG_BYTES_MAX (64 * 1024 * 1024)
#define RECORD_BYTES_MAX 8192 /* CONSOLE_EXT_LOG_MAX: a smaller buffer gets EINVAL */

/* Every read is one record; EPIPE: the kernel overwrote the next ones and goes on with the
 * oldest it has. */
static int read_device(int fd, struct klog *k)
{
	char record[RECORD_BYTES_MAX];
	size_t bytes = 0;

	while (bytes < LOG_BYTES_MAX) {
		ssize_t n = read(fd, record, sizeof(record));
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n == 0)
			return 0;
		klog_feed(k, record, (size_t)n - (record[n - 1] == '\n'));
		bytes += (size_t)n;
	}
	return 0;
}

/* Lines of text, none longer than a record: a file that was overwritten with something else
 * would say that nothing happened. */
static bool is_log(const struct mo_buf *b)
{
	size_t run = 0;

	for (size_t i = 0; b->data && i < b->len; i++) {
		run = b->data[i] == '\n' ? 0 : run + 1;
		if (run > RECORD_BYTES_MAX ||
		    ((unsigned char)b->data[i] < ' ' && !strchr("\t\n\r\033", b->data[i])) ||
		    !b->data[i])
			return false;
	}
	return b->len > 0;
}

static int read_file(struct probe_pass *l, struct klog *k)
{
	static const char *const paths[] = { "dev/kmsg", "var/log/kmsg" };
	const char *path = paths[0];
	int r = -ENOENT;

	for (size_t i = 0; i < ELEMENTSOF(paths) && r == -ENOENT; i++) {
		path = paths[i];
		mo_buf_reset(&l->text);
		r = mo_read_file_at(l->top, path, LOG_BYTES_MAX, &l->text);
	}
	l->files++;
	if (r < 0)
		return r;
	klog_feed_text(k, l->text.data ? l->text.data : "", l->text.len);
	if (!is_log(&l->text))
		pass_bad(l, path, "a part of it is no log of a kernel");
	return 0;
}

/* Numbers begin anew at each boot: a log whose newest record is older than `since` is another
 * boot's, and all of it is new. */
static int read_log(struct probe_pass *l, const struct klog_rules *rules, int64_t since,
		    struct klog **ret, struct mo_error *err)
{
	_cleanup_(klog_freep) struct klog *k = NULL;
	_cleanup_(mo_closep) int fd = -1;
	int r = klog_new(rules, &k, err);

	if (r < 0)
		return r;
	klog_since(k, since);
	if (*l->root) {
		r = read_file(l, k);
	} else {
		fd = openat(l->top, "dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		l->files++;
		r = fd < 0 ? -errno : read_device(fd, k);
	}
	/* a recorded machine without its log */
	if (r == -ENOENT && *l->root)
		return 0;
	if (r < 0) {
		l->problems++;
		probe_problem(l->probe, "kernel log (dev/kmsg): %s", strerror(-r));
		return 0;
	}
	*ret = TAKE_PTR(k);
	return 0;
}

int probe_klog(struct probe_pass *l, int64_t since, struct mo_error *err)
{
	_cleanup_(klog_freep) struct klog *k = NULL;
	struct klog_rules rules;

	mo_desc_init(&klog_rules_desc, &rules);
	int r = klog_rules_load(&rules, err);
	if (r == 0)
		r = read_log(l, &rules, since, &k, err);
	if (r == 0 && k && since >= 0 && klog_last(k) < since) {
		k = klog_free(k);
		r = read_log(l, &rules, -1, &k, err);
	}
	if (r == 0 && k)
		klog_readings(k, l->probe);
	mo_desc_done(&klog_rules_desc, &rules);
	return r;
}
