/* The smallest rank, for benchmarks: appends "RANK ATTEMPT PID CLOCK_REALTIME-ns" of its main() to
 * the file argv[1] with one write, then waits for a signal. argv[2] "exit": leaves at once with 0.
 * argv[2] "lines": prints argv[3] lines a second on stdout for argv[4] seconds, each a new
 * iteration; "text": lines that say nothing to a supervisor. TINY_PRIMUS in the environment:
 * whatever the arguments are, lines of Primus, that many a second for a minute. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum kind { TEXT, ITERATIONS, PRIMUS };

static void lines(enum kind kind, long per_second, long seconds)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	for (long tick = 0, i = 0; tick < seconds * 100; tick++) {
		for (long k = 0; k < per_second / 100; k++, i++)
			if (kind == PRIMUS)
				printf("[20251121 12:10:29][rank-0/1][INFO ] "
				       "[--------trainer.py:2488] :  iteration %8ld/999999999 | "
				       "consumed samples:      3104000 | elapsed time per "
				       "iteration (ms): 2701.3/2712.7 | "
				       "hip mem usage/free/total/usage_ratio: "
				       "227.35GB/28.63GB/255.98GB/88.81%% | throughput per GPU "
				       "(TFLOP/s/GPU): 210.5/217.3 | "
				       "tokens per GPU (tokens/s/GPU): 12130.4/12525.5 | learning "
				       "rate: 1.587349E-04 | global batch size:   256 | lm loss: "
				       "2.352391E+00 | loss scale: 1.0 | "
				       "grad norm: 0.132 | number of skipped iterations:   0 | "
				       "number of nan iterations:   0 |\n",
				       i);
			else if (kind == ITERATIONS)
				printf("step %ld/999999999 loss 2.345678 grad_norm 0.931 lr "
				       "1.00e-03 step_ms 171.2 tokens 2048 tokens_per_s 12000\n",
				       i);
			else
				printf("[2026-11-03 10:22:33,123] [INFO] [loader.py:132:prefetch] "
				       "worker 3: shard %ld of 00128 read in 12.3 ms, queue 4\n",
				       i);
		fflush(stdout);
		t.tv_nsec += 10000000;
		if (t.tv_nsec >= 1000000000) {
			t.tv_nsec -= 1000000000;
			t.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
}

int main(int argc, char **argv)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	const char *rank = getenv("RANK"), *attempt = getenv("MOE_ATTEMPT");
	char line[128];
	int n = snprintf(line, sizeof line, "%s %s %d %lld\n", rank ? rank : "0",
			 attempt ? attempt : "1", getpid(),
			 (long long)now.tv_sec * 1000000000LL + now.tv_nsec);
	if (getenv("TINY_PRIMUS")) {
		lines(PRIMUS, strtol(getenv("TINY_PRIMUS"), NULL, 10), 60);
		return 0;
	}
	int fd = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		return 2;
	close(fd);
	if (argc > 2 && !strcmp(argv[2], "exit"))
		return 0;
	if (argc > 4 && (!strcmp(argv[2], "lines") || !strcmp(argv[2], "text")))
		lines(argv[2][0] == 'l' ? ITERATIONS : TEXT, strtol(argv[3], NULL, 10),
		      strtol(argv[4], NULL, 10));
	for (;;)
		pause();
}
