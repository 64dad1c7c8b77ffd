/* moe-recorder: asks PyTorch's flight recorders of ranks what they wait in, and prints what their
 * dumps say (struct recorder_answer, one line of JSON).
 *   moe-recorder [--user USER] [--min-uid UID] [--allow-root] DIR RANK...
 * A program of its own, started by the agent with a deadline, that becomes the job's user: all in
 * DIR is the user's, and may be anything. It writes a byte to `rankRANK.pipe` only where that is a
 * FIFO that somebody reads, removes the dump of before, and reads `dumpRANK` when it is there and
 * whole. No link is followed and nothing waited for but the dump. A rank without such a FIFO has no
 * recorder, and is left out. Exit 0 with an answer, 1 with one line on stderr, 2 for bad usage. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/core/text/recorder.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"
#include "lib/model/limits.h"
#include "lib/wire/encode.h"

#define WAIT_US (15 * 1000000LL)
#define LOOK_MS 100
#define DUMP_BYTES_MAX (16 * 1024 * 1024) /* of 100,000 entries: the default are 2,000 */
#define MEMORY_MAX (1LL << 30)            /* what one of them may become */

static const char usage[] = "usage: moe-recorder [--user USER] [--min-uid UID] [--allow-root] DIR "
			    "RANK... | --version\n";

struct asked {
	int64_t rank;
	struct stat seen; /* of the dump, when it was read last */
	const char *why;  /* it is none so far */
	bool done;
	struct rank_recorder said;
};

/* What the name is there, if it is of that kind, opened anew: what it was a moment before cannot
 * be another thing now. -1: it is not, or it would have to be waited for. */
static int open_kind(int dir, const char *name, mode_t kind, int flags, struct stat *ret)
{
	_cleanup_(mo_closep) int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char path[48];

	if (fd < 0 || fstat(fd, ret) < 0 || (ret->st_mode & S_IFMT) != kind)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* True: its recorder was asked. */
static bool ask(int dir, int64_t rank)
{
	_cleanup_(mo_freep) char *pipe =
		mo_printf(RECORDER_PIPE "%lld" RECORDER_PIPE_END, (long long)rank);
	_cleanup_(mo_freep) char *dump = mo_printf(RECORDER_DUMP "%lld", (long long)rank);
	struct stat st;
	/* without a reader it cannot be opened so */
	_cleanup_(mo_closep) int fd = open_kind(dir, pipe, S_IFIFO, O_WRONLY, &st);

	if (fd < 0)
		return false;
	unlinkat(dir, dump, 0);
	/* a full one holds a question that nobody has taken yet */
	return write(fd, "1", 1) == 1 || errno == EAGAIN;
}

static bool changed(const struct stat *a, const struct stat *b)
{
	return a->st_ino != b->st_ino || a->st_size != b->st_size ||
	       a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

static void look(int dir, struct asked *k)
{
	_cleanup_(mo_freep) char *name = mo_printf(RECORDER_DUMP "%lld", (long long)k->rank);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct stat st;
	_cleanup_(mo_closep) int fd = open_kind(dir, name, S_IFREG, O_RDONLY, &st);

	if (fd < 0 || !changed(&st, &k->seen))
		return;
	k->seen = st;
	int r = mo_read_fd(fd, DUMP_BYTES_MAX, &b);

	k->why = r == -EFBIG ? "it is larger than 16 MiB"
		 : r < 0     ? strerror(-r)
			     : recorder_read(b.data ? b.data : "", b.len, mo_clock_wall_us() * 1000,
					 &k->said);
	k->done = !k->why;
}

static bool look_all(int dir, struct asked *all, size_t n)
{
	bool done = true;

	for (size_t i = 0; i < n; i++) {
		if (!all[i].done)
			look(dir, &all[i]);
		done &= all[i].done;
	}
	return done;
}

static int answer(const struct asked *all, size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	struct recorder_answer a = { .ranks = NULL };

	for (size_t i = 0; i < n; i++) {
		struct rank_recorder *k = MO_ADD(&a, ranks, &rank_recorder_desc);

		if (all[i].done)
			mo_desc_copy(&rank_recorder_desc, k, &all[i].said);
		else
			k->silent = all[i].why
					    ? mo_printf("its dump: %s", all[i].why)
					    : mo_printf("no dump within %lld s", WAIT_US / 1000000);
		k->rank = all[i].rank;
	}
	wire_encode(&recorder_answer_desc, &a, &text);
	mo_buf_str(&text, "\n");
	mo_desc_done(&recorder_answer_desc, &a);
	return mo_write_all(STDOUT_FILENO, text.data, text.len);
}

static int run(const char *path, const int64_t *ranks, size_t n_ranks, struct mo_error *err)
{
	_cleanup_(mo_closep) int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct asked *all = mo_alloc_array(n_ranks + 1, sizeof(*all));
	int64_t until = mo_clock_boot_us() + WAIT_US;
	size_t n = 0;

	/* an older supervisor made none: nobody has a recorder */
	if (dir < 0 && errno != ENOENT) {
		free(all);
		return mo_error_set(err, -errno, "%s: %s", path, strerror(errno));
	}
	for (size_t i = 0; dir >= 0 && i < n_ranks; i++)
		if (ask(dir, ranks[i])) {
			all[n].rank = ranks[i];
			mo_desc_init(&rank_recorder_desc, &all[n++].said);
		}
	while (!look_all(dir, all, n) && mo_clock_boot_us() < until)
		poll(NULL, 0, LOOK_MS);
	int r = answer(all, n);

	for (size_t i = 0; i < n; i++)
		mo_desc_done(&rank_recorder_desc, &all[i].said);
	free(all);
	return r;
}

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

static void be_bounded(void)
{
	mo_proc_go_first();
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory is larger */
	setrlimit(RLIMIT_DATA, &(struct rlimit){ MEMORY_MAX, MEMORY_MAX });
#endif
}

int main(int argc, char **argv)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct mo_identity_rule rule = { false, 0 };
	const char *user = NULL, *dir = NULL;
	int64_t ranks[MO_GPUS_PER_NODE_MAX];
	size_t n = 0;

	for (int i = 1; i < argc; i++) {
		if (mo_streq(argv[i], "--version")) {
			printf("moe-recorder %s\n", MO_VERSION);
			return 0;
		}
		if (!dir && mo_streq(argv[i], "--allow-root")) {
			rule.allow_root = true;
		} else if (!dir && mo_streq(argv[i], "--user") && i + 1 < argc) {
			user = argv[++i];
		} else if (!dir && mo_streq(argv[i], "--min-uid") && i + 1 < argc &&
			   mo_parse_i64(argv[i + 1], 0, UINT32_MAX, &rule.min_uid) == 0) {
			i++;
		} else if (!dir && argv[i][0] == '/') {
			dir = argv[i];
		} else if (dir && n < ELEMENTSOF(ranks) &&
			   mo_parse_i64(argv[i], 0, MO_RANKS_MAX, &ranks[n]) == 0) {
			n++;
		} else {
			fprintf(stderr, "moe-recorder: %s: unexpected argument\n%s", argv[i],
				usage);
			return 2;
		}
	}
	if (n == 0) {
		fputs(usage, stderr);
		return 2;
	}
	be_bounded();
	int r = become(user, &rule, &err);

	if (r == 0)
		r = run(dir, ranks, n, &err);
	if (r < 0)
		fprintf(stderr, "moe-recorder: %s\n", mo_error_text(&err, r));
	return r < 0 ? 1 : 0;
}
