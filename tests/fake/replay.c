/* An engine that prints a recorded log: REPLAY_LOG, one line each REPLAY_MS milliseconds on
 * standard output (REPLAY_STDERR=1: on standard error), whatever its arguments are. Exits with
 * REPLAY_EXIT (default 0) at its end; REPLAY_HOLD=1: waits there for a signal. Where the line ends
 * in "\c", none follows in this write: two lines come glued. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	const char *path = getenv("REPLAY_LOG"), *ms = getenv("REPLAY_MS"),
		   *status = getenv("REPLAY_EXIT");
	long wait = ms ? strtol(ms, NULL, 10) : 5;
	FILE *f = path ? fopen(path, "re") : NULL, *out = getenv("REPLAY_STDERR") ? stderr : stdout;
	struct timespec t = { wait / 1000, wait % 1000 * 1000000 };
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	if (!f) {
		fprintf(stderr, "replay: REPLAY_LOG: %s\n", path ? path : "not set");
		return 2;
	}
	while ((n = getline(&line, &size, f)) >= 0) {
		if (n > 2 && memcmp(line + n - 3, "\\c\n", 3) == 0)
			n -= 3;
		fwrite(line, 1, (size_t)n, out);
		fflush(out);
		nanosleep(&t, NULL);
	}
	free(line);
	fclose(f);
	while (getenv("REPLAY_HOLD"))
		pause();
	return status ? (int)strtol(status, NULL, 10) : 0;
}
