/* moe-ckpt: scans a checkpoint directory and prints what is complete (struct scan_result, one
 * line of JSON). A program of its own, started by the agent with a deadline, because shared file
 * systems hang, and because it reads with the rights of the job's user. Exit 0 with a result, 1
 * with one line on stderr, 2 for bad usage.
 *   moe-ckpt --scan ORDER [--bandwidth BYTES_PER_S] [--min-uid UID] [--allow-root]
 *   moe-ckpt --keep ORDER [--resumed]       started by moe-stepd beside the ranks, as their
 *                                           user: keeps copies (keep.h) until its standard input
 *                                           ends
 * ORDER: a scan command as JSON (lib/model/message.h), "-" = from standard input. With `only`
 * one checkpoint is verified, at the lowest priority; checksums are read at the bandwidth. With
 * a job the directory is also probed for writing (and made); without one nothing is changed. Run
 * by root it becomes `user`; root itself only with --allow-root. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/ckpt/keep.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define ORDER_BYTES_MAX (1024 * 1024)
/* Files of users are read: 64 MiB of JSON may become 3 GB. Ranks of everybody need the memory of
 * the node; the largest marker that is read has 512 MiB. */
#define MEMORY_MAX (4LL << 30)
#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_IDLE (3 << 13)

static const char usage[] = "usage: moe-ckpt --scan ORDER|- [--bandwidth BYTES_PER_S] [--min-uid "
			    "UID] [--allow-root] | --keep ORDER [--resumed] | --version\n";

static int become(const char *user, const struct mo_identity_rule *rule, struct mo_error *err)
{
	_cleanup_(mo_identity_done) struct mo_identity who = { 0 };
	int r = mo_identity_resolve(user, rule, &who, err);

	if (r < 0)
		return r;
	r = mo_identity_become(&who);
	return r < 0 ? mo_error_set(err, r, "cannot become user %s: %s", who.user, strerror(-r))
		     : 0;
}

static int read_order(const char *arg, struct command *ret, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	if (mo_streq(arg, "-")) {
		char piece[4096];
		ssize_t n;
		while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0 &&
		       text.len <= ORDER_BYTES_MAX)
			mo_buf_add(&text, piece, (size_t)n);
	} else {
		mo_buf_str(&text, arg);
	}
	if (text.len > ORDER_BYTES_MAX)
		return mo_error_set(err, -E2BIG, "order: it has more than %d bytes",
				    ORDER_BYTES_MAX);
	int r = wire_decode(&command_desc, text.data ? text.data : "", text.len, false, ret, err);
	if (r < 0)
		return r;
	if (!ret->dir || !*ret->dir || !ret->layout)
		return mo_error_set(err, -EINVAL, "order: it needs a dir and a layout");
	return 0;
}

static int level_of(const char *text, enum ckpt_level *ret, struct mo_error *err)
{
	int level = text ? mo_enum_parse(ckpt_level_names, ELEMENTSOF(ckpt_level_names), text)
			 : LEVEL_SIZES;

	if (level < 0)
		return mo_error_set(err, -EINVAL, "level '%s' is unknown: use marker, sizes or crc",
				    text);
	*ret = (enum ckpt_level)level;
	return 0;
}

/* Ranks on this node come first: verification takes what they leave of CPU and of the disk. */
static void be_modest(void)
{
	setpriority(PRIO_PROCESS, 0, 19);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
}

static void be_bounded(void)
{
	mo_proc_go_first();
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory is larger */
	setrlimit(RLIMIT_DATA, &(struct rlimit){ MEMORY_MAX, MEMORY_MAX });
#endif
}

static bool means_unwritable(int r)
{
	return r == -EACCES || r == -EPERM || r == -EROFS;
}

/* The directory without links in its path: an engine may print it so. */
static char *real_directory(const char *dir)
{
	_cleanup_(mo_freep) char *clean = mo_path_clean(dir), *real = realpath(dir, NULL);

	return real && !mo_streq(real, clean) ? TAKE_PTR(real) : NULL;
}

/* For this user, in its file system: MO_NONE where that does not say. */
static int64_t free_bytes(const char *dir)
{
	struct statvfs s;

	if (statvfs(dir, &s) < 0 || s.f_blocks == 0 || s.f_frsize == 0)
		return MO_NONE;
	return s.f_bavail > INT64_MAX / s.f_frsize ? INT64_MAX : (int64_t)(s.f_bavail * s.f_frsize);
}

/* What is wrong with the directory is part of the result; what is wrong with the order or the
 * user is not. */
static int scan(const struct command *order, const struct mo_identity_rule *rule, int64_t bandwidth,
		struct scan_result *ret, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error problem = { 0 };
	enum ckpt_level level = LEVEL_SIZES;
	bool forbidden = false;
	int r = level_of(order->level, &level, err);

	if (r == 0)
		r = become(order->user, rule, err);
	if (r < 0)
		return r;
	ret->job = order->job;
	ret->attempt = order->attempt;
	ret->order = order->order;
	ret->id = order->id;
	if (order->only != MO_NONE) {
		be_modest();
		ret->writable = true; /* the job writes there */
	} else if (order->job != MO_NONE) {
		r = scan_probe(order->dir, &problem);
		ret->writable = r == 0;
		forbidden = means_unwritable(r);
	}
	if (r == 0 || forbidden) {
		mo_error_done(&problem);
		ret->real = real_directory(order->dir);
		ret->free_bytes = free_bytes(order->dir);
		r = scan_directory(order, level, bandwidth, ret, &problem);
		if (r == 0 && order->only == MO_NONE)
			unread_find(order, ret);
		if (r == 0 && order->doubt)
			place_compare(order, ret);
	}
	if (r < 0 && !(forbidden && means_unwritable(r))) /* `writable` says that already */
		mo_str_set(&ret->error, mo_error_text(&problem, r));
	return 0;
}

static int run(const char *arg, const struct mo_identity_rule *rule, int64_t bandwidth,
	       struct mo_error *err)
{
	struct command order;
	struct scan_result result;
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	mo_desc_init(&command_desc, &order);
	mo_desc_init(&scan_result_desc, &result);
	int r = read_order(arg, &order, err);
	if (r == 0)
		r = scan(&order, rule, bandwidth, &result, err);
	if (r == 0) {
		wire_encode(&scan_result_desc, &result, &text);
		mo_buf_str(&text, "\n");
		r = mo_write_all(STDOUT_FILENO, text.data, text.len);
	}
	mo_desc_done(&command_desc, &order);
	mo_desc_done(&scan_result_desc, &result);
	return r;
}

static int keep(const char *arg, bool resumed, struct mo_error *err)
{
	struct command order;

	mo_desc_init(&command_desc, &order);
	int r = read_order(arg, &order, err);
	if (r == 0) {
		be_modest();
		keep_until_end(&order, resumed);
	}
	mo_desc_done(&command_desc, &order);
	return r;
}

int main(int argc, char **argv)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const char *order = NULL, *keep_order = NULL;
	bool resumed = false;
	struct mo_identity_rule rule = { false, 0 };
	int64_t bandwidth = 0;

	for (int i = 1; i < argc; i++) {
		if (mo_streq(argv[i], "--version")) {
			printf("moe-ckpt %s\n", MO_VERSION);
			return 0;
		}
		if (mo_streq(argv[i], "--allow-root")) {
			rule.allow_root = true;
		} else if (mo_streq(argv[i], "--scan") && i + 1 < argc) {
			order = argv[++i];
		} else if (mo_streq(argv[i], "--keep") && i + 1 < argc) {
			keep_order = argv[++i];
		} else if (mo_streq(argv[i], "--resumed")) {
			resumed = true;
		} else if (mo_streq(argv[i], "--bandwidth") && i + 1 < argc &&
			   mo_parse_i64(argv[i + 1], 0, INT64_MAX, &bandwidth) == 0) {
			i++;
		} else if (mo_streq(argv[i], "--min-uid") && i + 1 < argc &&
			   mo_parse_i64(argv[i + 1], 0, UINT32_MAX, &rule.min_uid) == 0) {
			i++;
		} else {
			fprintf(stderr, "moe-ckpt: %s: unexpected argument\n%s", argv[i], usage);
			return 2;
		}
	}
	if (!order == !keep_order) {
		fputs(usage, stderr);
		return 2;
	}
	be_bounded();
	/* a directory it makes looks as if the ranks had made it */
	umask(022);
	int r = order ? run(order, &rule, bandwidth, &err) : keep(keep_order, resumed, &err);
	if (r < 0)
		fprintf(stderr, "moe-ckpt: %s\n", mo_error_text(&err, r));
	return r < 0 ? 1 : 0;
}
