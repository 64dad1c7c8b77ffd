/* moe-ckpt: looks at a checkpoint directory and prints what is complete (struct scan_result, one line of JSON). A program of its own, started by the agent with a deadline,
 * because shared file systems hang, and because it looks with the rights of the job's user. Exit 0 with a result, 1 with one line on stderr, 2 for bad usage.
 *   moe-ckpt --scan ORDER [--allow-root]     ORDER: a scan command as JSON, "-" = from standard input: {dir, layout, world, level, user, job, attempt}
 * With a job the directory is also probed for writing (and made); without one nothing is changed. Run by root it becomes `user`; root itself only with --allow-root. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ckpt/scan.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/wire/json.h"

#define ORDER_BYTES_MAX (1024 * 1024)

static const char usage[] = "usage: moe-ckpt --scan ORDER|- [--allow-root] | --version\n";

static int become(const char *user, bool allow_root, struct mo_error *err) {
	_cleanup_(mo_identity_done) struct mo_identity who = { 0 };
	int r = mo_identity_resolve(user, allow_root, &who, err);

	if (r < 0)
		return r;
	r = mo_identity_become(&who);
	return r < 0 ? mo_error_set(err, r, "cannot become user %s: %s", who.user, strerror(-r)) : 0;
}

static int read_order(const char *arg, struct command *ret, struct mo_error *err) {
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	if (mo_streq(arg, "-")) {
		char piece[4096];
		ssize_t n;
		while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0 && text.len <= ORDER_BYTES_MAX)
			mo_buf_add(&text, piece, (size_t)n);
	} else {
		mo_buf_str(&text, arg);
	}
	if (text.len > ORDER_BYTES_MAX)
		return mo_error_set(err, -E2BIG, "order: it has more than %d bytes", ORDER_BYTES_MAX);
	int r = wire_decode(&command_desc, text.data ? text.data : "", text.len, false, ret, err);
	if (r < 0)
		return r;
	if (!ret->dir || !*ret->dir || !ret->layout)
		return mo_error_set(err, -EINVAL, "order: it needs a dir and a layout");
	return 0;
}

static int level_of(const char *text, enum ckpt_level *ret, struct mo_error *err) {
	if (mo_streq(text, "crc"))
		return mo_error_set(err, -ENOTSUP, "level crc is not supported by this version, which writes no checksums: use sizes");
	if (text && !mo_streq(text, "marker") && !mo_streq(text, "sizes"))
		return mo_error_set(err, -EINVAL, "level '%s' is unknown: use marker or sizes", text);
	*ret = mo_streq(text, "marker") ? LEVEL_MARKER : LEVEL_SIZES;
	return 0;
}

static bool means_unwritable(int r) {
	return r == -EACCES || r == -EPERM || r == -EROFS;
}

/* What is wrong with the directory is part of the result; what is wrong with the order or the user is not. */
static int scan(const struct command *order, bool allow_root, struct scan_result *ret, struct mo_error *err) {
	_cleanup_(mo_error_done) struct mo_error problem = { 0 };
	enum ckpt_level level = LEVEL_SIZES;
	bool forbidden = false;
	int r = level_of(order->level, &level, err);

	if (r == 0)
		r = become(order->user, allow_root, err);
	if (r < 0)
		return r;
	ret->job = order->job;
	ret->attempt = order->attempt;
	if (order->job != MO_NONE) {
		r = scan_probe(order->dir, &problem);
		ret->writable = r == 0;
		forbidden = means_unwritable(r);
	}
	if (r == 0 || forbidden) {
		mo_error_done(&problem);
		r = scan_directory(order, level, ret, &problem);
	}
	if (r < 0 && !(forbidden && means_unwritable(r)))      /* `writable` says that already */
		mo_str_set(&ret->error, mo_error_text(&problem, r));
	return 0;
}

static int run(const char *arg, bool allow_root, struct mo_error *err) {
	struct command order;
	struct scan_result result;
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	mo_desc_init(&command_desc, &order);
	mo_desc_init(&scan_result_desc, &result);
	int r = read_order(arg, &order, err);
	if (r == 0)
		r = scan(&order, allow_root, &result, err);
	if (r == 0) {
		wire_encode(&scan_result_desc, &result, &text);
		mo_buf_str(&text, "\n");
		r = mo_write_all(STDOUT_FILENO, text.data, text.len);
	}
	mo_desc_done(&command_desc, &order);
	mo_desc_done(&scan_result_desc, &result);
	return r;
}

int main(int argc, char **argv) {
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const char *order = NULL;
	bool allow_root = false;

	for (int i = 1; i < argc; i++) {
		if (mo_streq(argv[i], "--version")) {
			printf("moe-ckpt %s\n", MO_VERSION);
			return 0;
		}
		if (mo_streq(argv[i], "--allow-root")) {
			allow_root = true;
		} else if (mo_streq(argv[i], "--scan") && i + 1 < argc) {
			order = argv[++i];
		} else {
			fprintf(stderr, "moe-ckpt: %s: unexpected argument\n%s", argv[i], usage);
			return 2;
		}
	}
	if (!order) {
		fputs(usage, stderr);
		return 2;
	}
	umask(022);                            /* a directory it makes looks as if the ranks had made it */
	int r = run(order, allow_root, &err);
	if (r < 0)
		fprintf(stderr, "moe-ckpt: %s\n", mo_error_text(&err, r));
	return r < 0 ? 1 : 0;
}
