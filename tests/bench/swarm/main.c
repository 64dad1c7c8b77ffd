/* A fleet of emulated agents for benchmarks and tests of a real moed (swarm.h). Loopback only, and
 * no longer than `seconds`.
 *   swarm ADDRESS TOKEN-FILE NODES [KEY=VALUE...]
 *     ADDRESS     http://127.0.0.1:PORT, as in state_dir/address
 *     TOKEN-FILE  an agent token of no node, which moed takes on loopback
 *     gpus=8 spawn_ms=20 exit_ms=-1 progress=0 seconds=60 roads=1
 *     roads=0: by requests, as agents of the releases before
 * Reads commands, a line each: reboot, cut, fail N, mark, quit (what each does: swarm.h). Writes a
 * line of JSON each second: counts since the start; `late_*_ms`: beats since the last `mark`, how
 * much later than their time they were answered; launches since then, first and last, by the wall
 * clock. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "tests/bench/swarm/swarm.h"

#define EVENTS 1024
#define TICK_MS 20
#define ROUNDS 20
#define NODES_MAX 20000

static struct epoll_event events[EVENTS];

static double late_ms(const struct swarm *s, double share)
{
	int64_t n = 0, seen = 0;

	for (int i = 0; i < LATE_BUCKETS; i++)
		n += s->late[i];
	for (int i = 0; i < LATE_BUCKETS; i++)
		if ((seen += s->late[i]) > 0 && (double)seen >= share * (double)n)
			return i / 10.0;
	return 0;
}

static void tell(const struct swarm *s)
{
	const struct counts *c = &s->counts;

	printf("{\"t\":%.3f,\"up\":%zu,\"hellos\":%lld,\"welcomes\":%lld,\"syncs\":%lld,"
	       "\"news\":%lld,\"refused\":%lld,\"lost\":%lld,\"opened\":%lld,\"cut\":%lld,"
	       "\"launches\":%lld,\"running\":%lld,\"ended\":%lld,\"failed\":%lld,"
	       "\"launch_first\":%.6f,\"launch_last\":%.6f,\"late_p50_ms\":%.1f,"
	       "\"late_p99_ms\":%.1f,\"late_max_ms\":%.1f,\"cpu_s\":%.2f}\n",
	       (double)mo_clock_wall_us() / 1e6, s->n_up, (long long)c->hellos,
	       (long long)c->welcomes, (long long)c->syncs, (long long)c->news,
	       (long long)c->refused, (long long)c->lost, (long long)s->lines.opened,
	       (long long)s->lines.cut, (long long)c->launches, (long long)c->running,
	       (long long)c->ended, (long long)c->failed, (double)s->launch_first / 1e6,
	       (double)s->launch_last / 1e6, late_ms(s, 0.5), late_ms(s, 0.99), late_ms(s, 1),
	       (double)mo_clock_thread_ns() / 1e9);
	fflush(stdout);
}

/* false: it ends. */
static bool command(struct swarm *s, char *line)
{
	int64_t n = 1;

	line[strcspn(line, "\n")] = '\0';
	if (!strcmp(line, "reboot"))
		swarm_reboot(s);
	else if (!strcmp(line, "cut"))
		swarm_cut(s);
	else if (!strcmp(line, "mark"))
		swarm_mark(s);
	else if (mo_starts_with(line, "fail ") && mo_parse_i64(line + 5, 1, NODES_MAX, &n) >= 0)
		swarm_fail(s, n);
	else
		return false;
	return true;
}

/* All answers that came, before anybody gives up one. */
static void listen_all(struct swarm *s)
{
	int n, wait = TICK_MS;

	for (int round = 0; round < ROUNDS; round++, wait = 0) {
		n = epoll_wait(s->lines.epoll, events, EVENTS, wait);
		for (int i = 0; i < n; i++)
			swarm_ready(s, events[i].data.ptr, events[i].events);
		if (n < EVENTS)
			return;
	}
}

static void run(struct swarm *s, int64_t seconds)
{
	int64_t now = mo_clock_mono_ns(), end = now + seconds * 1000000000, second = now,
		tick = now;
	char line[256];
	ssize_t k;

	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	while (now < end) {
		listen_all(s);
		now = mo_clock_mono_ns();
		if (now - tick >= TICK_MS * 1000000LL) {
			swarm_tick(s, tick = now);
			k = read(STDIN_FILENO, line, sizeof(line) - 1);
			if (k == 0 || (k > 0 && (line[k] = '\0', !command(s, line))))
				return;
		}
		if (now - second >= 1000000000) {
			second = now;
			tell(s);
		}
	}
}

static bool option(const char *word, const char *key, int64_t min, int64_t max, int64_t *ret)
{
	size_t n = strlen(key);

	return !strncmp(word, key, n) && word[n] == '=' &&
	       mo_parse_i64(word + n + 1, min, max, ret) >= 0;
}

int main(int argc, char **argv)
{
	static struct swarm s = { .gpus = 8, .spawn_ms = 20, .exit_ms = -1 };
	int64_t nodes = 0, seconds = 60, progress = 0, roads = 1;
	struct rlimit files;
	char token[512] = "";
	FILE *f = argc > 3 ? fopen(argv[2], "r") : NULL;
	bool good = f && fgets(token, sizeof(token), f) &&
		    mo_parse_i64(argv[3], 1, NODES_MAX, &nodes) >= 0;

	if (f)
		fclose(f);
	for (int i = 4; i < argc; i++)
		good &= option(argv[i], "gpus", 1, 64, &s.gpus) ||
			option(argv[i], "spawn_ms", 0, 1000000, &s.spawn_ms) ||
			option(argv[i], "exit_ms", -1, 1000000000, &s.exit_ms) ||
			option(argv[i], "progress", 0, 1, &progress) ||
			option(argv[i], "roads", 0, 1, &roads) ||
			option(argv[i], "seconds", 1, 3600, &seconds);
	token[strcspn(token, "\n")] = '\0';
	if (!good || lines_begin(&s.lines, argv[1], token) < 0) {
		fprintf(stderr, "usage: swarm ADDRESS TOKEN-FILE NODES [gpus=8] [spawn_ms=20] "
				"[exit_ms=-1] [progress=0] [seconds=60] [roads=1]\n");
		return 2;
	}
	s.progress = progress;
	s.lines.roads = roads;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	swarm_begin(&s, (size_t)nodes);
	run(&s, seconds);
	tell(&s);
	swarm_done(&s);
	return 0;
}
