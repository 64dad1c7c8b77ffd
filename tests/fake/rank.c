/* A rank that trains nothing: the engine of the fault tests. It iterates at a given pace, tells the
 * notify socket, prints a line that the torch rules read, saves checkpoints, and keeps a record of
 * its own life outside the system under test: TRUTH/rank-R.lock is held by flock for life (a second
 * live process of the rank writes DUPLICATE), TRUTH/starts gets one line per start. Options:
 * --steps N --step-ms M --save-every K --save-bytes B (of each save; they are read again by who
 * resumes from it, and code 94 says that they are others) --truth DIR --child (a child that ignores
 * SIGTERM and calls setsid) --exit ITER:CODE:RANK (exit by itself, first attempt only) --hold-start
 * FILE (waits until FILE exists before the first iteration) --stay ITER (the first attempt goes no
 * further: on however slow a machine it is killed there) --loss FROM:TO:VALUE:ATTEMPTS (the loss
 * from one iteration to another in the first attempts) --slow RANK:FROM:TO:TIMES (that rank takes
 * so many times as long from one iteration to another, in the first attempt; the others wait for
 * it, and each tells what was its own of the step) --data kept|anew (it tells how many samples it
 * consumed, and a resume goes on with them, or begins at the first one). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Under AddressSanitizer too, a signal that a test sends ends it as it ends any rank. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "handle_segv=0";
}

#define BATCH 8 /* samples of an iteration */

struct options {
	long steps, step_ms, save_every, save_bytes, exit_iter, exit_code, exit_rank, stay;
	long loss_from, loss_to, loss_attempts;
	long slow_rank, slow_from, slow_to, slow_times;
	double loss;
	const char *truth, *hold, *data;
	bool child;
};

static volatile sig_atomic_t terminated;

static void on_term(int signal_number)
{
	(void)signal_number;
	terminated = 1;
}

static long env_long(const char *name, long fallback)
{
	const char *s = getenv(name);
	return s && *s ? strtol(s, NULL, 10) : fallback;
}

static void append(const char *dir, const char *name, const char *line)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, line, strlen(line)) != (ssize_t)strlen(line))
		_exit(97);
	close(fd);
}

static void record_start(const struct options *o, long rank)
{
	char path[4096], line[256];
	snprintf(path, sizeof path, "%s/rank-%ld.lock", o->truth, rank);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		_exit(98);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		snprintf(line, sizeof line, "DUPLICATE rank %ld pid %d attempt %ld\n", rank,
			 getpid(), env_long("MOE_ATTEMPT", 0));
		append(o->truth, "duplicates", line);
	}
	snprintf(line, sizeof line, "%ld %d %ld %ld\n", rank, getpid(), env_long("MOE_ATTEMPT", 0),
		 env_long("MOE_RESUME_ITERATION", -1));
	append(o->truth, "starts", line);
}

static void notify(const char *text)
{
	static int fd = -1;
	const char *path = getenv("MOE_NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	if (!path || strlen(path) >= sizeof a.sun_path)
		return;
	if (fd < 0) {
		/* the kernel holds about ten: a supervisor that a busy machine makes wait for
		 * longer than ten iterations would miss some */
		fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ .tv_sec = 5 },
				 sizeof(struct timeval));
	}
	memcpy(a.sun_path, path, strlen(path) + 1);
	(void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&a, sizeof a);
}

static void start_child(const struct options *o)
{
	char line[64];
	if (fork() != 0)
		return;
	signal(SIGTERM, SIG_IGN);
	setsid();
	snprintf(line, sizeof line, "%d\n", getpid());
	append(o->truth, "children", line);
	for (;;)
		pause();
}

/* What a save of this iteration holds, all of it. */
static int byte_of(long iteration)
{
	return (int)(iteration % 251) + 1;
}

static void fill(const char *path, long bytes, long iteration)
{
	char block[65536];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	memset(block, byte_of(iteration), sizeof block);
	for (long n; fd >= 0 && bytes > 0; bytes -= n) {
		n = bytes < (long)sizeof block ? bytes : (long)sizeof block;
		if (write(fd, block, (size_t)n) != n)
			break;
	}
	if (fd < 0 || bytes > 0)
		_exit(95);
	close(fd);
}

/* As an engine does, it ends by itself when what it loads is not what was saved. */
static void load(const struct options *o, long iteration)
{
	const char *dir = getenv("MOE_CHECKPOINT_DIR");
	unsigned char block[65536];
	char path[4200];
	long seen = 0;
	bool right = true;

	if (!dir || iteration <= 0 || !o->save_bytes)
		return;
	snprintf(path, sizeof path, "%s/iter_%07ld/state", dir, iteration);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	for (ssize_t n; fd >= 0 && (n = read(fd, block, sizeof block)) > 0; seen += n)
		for (ssize_t i = 0; i < n; i++)
			right = right && block[i] == byte_of(iteration);
	if (!right || seen != o->save_bytes) {
		fprintf(stderr, "RuntimeError: checkpoint %ld is not what was saved\n", iteration);
		_exit(94);
	}
	close(fd);
}

/* Marker last, as the torch layout demands. */
static void save(const struct options *o, long iteration)
{
	const char *dir = getenv("MOE_CHECKPOINT_DIR");
	char path[4096], file[4200], text[4400];
	if (!dir || !o->save_every || iteration % o->save_every)
		return;
	snprintf(text, sizeof text, "PHASE=save\nITERATION=%ld", iteration);
	notify(text);
	mkdir(dir, 0755);
	snprintf(path, sizeof path, "%s/iter_%07ld", dir, iteration);
	mkdir(path, 0755);
	snprintf(file, sizeof file, "%s/COMPLETE", path);
	(void)unlink(file); /* of an attempt that came here before */
	if (o->save_bytes) {
		snprintf(file, sizeof file, "%s/state", path);
		fill(file, o->save_bytes, iteration);
	}
	snprintf(file, sizeof file, "%s/COMPLETE", path);
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, "{}\n", 3) != 3)
		_exit(96);
	close(fd);
	snprintf(text, sizeof text, "CHECKPOINT=%s\nITERATION=%ld\nPHASE=train", path, iteration);
	notify(text);
}

static void wait_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	while (nanosleep(&t, &t) < 0 && errno == EINTR && !terminated)
		;
}

static int parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		const char *v = i + 1 < argc ? argv[i + 1] : "";
		if (!strcmp(argv[i], "--child")) {
			o->child = true;
			continue;
		}
		if (!strcmp(argv[i], "--steps"))
			o->steps = strtol(v, NULL, 10);
		else if (!strcmp(argv[i], "--step-ms"))
			o->step_ms = strtol(v, NULL, 10);
		else if (!strcmp(argv[i], "--save-every"))
			o->save_every = strtol(v, NULL, 10);
		else if (!strcmp(argv[i], "--save-bytes"))
			o->save_bytes = strtol(v, NULL, 10);
		else if (!strcmp(argv[i], "--truth"))
			o->truth = v;
		else if (!strcmp(argv[i], "--data"))
			o->data = v;
		else if (!strcmp(argv[i], "--stay"))
			o->stay = strtol(v, NULL, 10);
		else if (!strcmp(argv[i], "--hold-start"))
			o->hold = v;
		else if (!strcmp(argv[i], "--exit")) {
			if (sscanf(v, "%ld:%ld:%ld", &o->exit_iter, &o->exit_code, &o->exit_rank) !=
			    3)
				return -1;
		} else if (!strcmp(argv[i], "--loss")) {
			if (sscanf(v, "%ld:%ld:%lf:%ld", &o->loss_from, &o->loss_to, &o->loss,
				   &o->loss_attempts) != 4)
				return -1;
		} else if (!strcmp(argv[i], "--slow")) {
			if (sscanf(v, "%ld:%ld:%ld:%ld", &o->slow_rank, &o->slow_from, &o->slow_to,
				   &o->slow_times) != 4)
				return -1;
		} else
			return -1;
		i++;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { .steps = 50, .step_ms = 20, .exit_iter = -1, .data = "" };
	long rank = env_long("RANK", 0), resume = env_long("MOE_RESUME_ITERATION", -1),
	     first = env_long("MOE_ATTEMPT", 1) == 1;
	char text[512];
	if (parse(argc, argv, &o) < 0) {
		fprintf(stderr, "usage: rank [--steps N] [--step-ms M] [--save-every K] "
				"[--save-bytes B] [--truth DIR] [--child] [--exit ITER:CODE:RANK] "
				"[--hold-start FILE] [--stay ITER] "
				"[--loss FROM:TO:VALUE:ATTEMPTS] [--slow RANK:FROM:TO:TIMES] "
				"[--data kept|anew]\n");
		return 2;
	}
	signal(SIGTERM, on_term);
	if (o.truth)
		record_start(&o, rank);
	if (o.child && o.truth)
		start_child(&o);
	load(&o, resume);
	notify("READY=1\nPHASE=train");
	while (o.hold && access(o.hold, F_OK) < 0 && !terminated)
		wait_ms(5);
	for (long i = resume > 0 ? resume + 1 : 1; i <= o.steps && !terminated; i++) {
		if (first && i == o.exit_iter && rank == o.exit_rank) {
			fprintf(stderr, "rank %ld leaves at iteration %ld with code %ld\n", rank, i,
				o.exit_code);
			return (int)o.exit_code;
		}
		bool slow = first && i >= o.slow_from && i <= o.slow_to;
		long step = o.step_ms * (slow ? o.slow_times : 1);

		wait_ms(step);
		double loss = 1.0 + 4.0 / (1.0 + (double)i / 10.0);
		if (i >= o.loss_from && i <= o.loss_to &&
		    env_long("MOE_ATTEMPT", 1) <= o.loss_attempts)
			loss = o.loss;
		snprintf(text, sizeof text,
			 "ITERATION=%ld\nLOSS=%.6f\nSTEP_MS=%ld.0\nBUSY_MS=%ld.0\nTOKENS=%d", i,
			 loss, step, rank == o.slow_rank ? step : o.step_ms, 4096);
		long consumed = BATCH * (i - (!strcmp(o.data, "anew") && resume > 0 ? resume : 0));

		if (*o.data)
			snprintf(text + strlen(text), sizeof text - strlen(text),
				 "\nCONSUMED_SAMPLES=%ld", consumed);
		notify(text);
		if (rank == 0) {
			printf("step %ld/%ld loss %.6f grad_norm 1.00 lr 1.00e-03 step_ms %ld.0 "
			       "tokens 4096 tokens_per_s 100",
			       i, o.steps, loss, step);
			printf(*o.data ? " consumed_samples %ld\n" : "\n", consumed);
			fflush(stdout);
			save(&o, i);
		}
		while (first && i == o.stay && !terminated)
			wait_ms(5);
	}
	return 0;
}
