/* Loaded into moe-config by a job's own LD_PRELOAD: $HOSTILE says what it does in its place.
 * "hang": it says nothing more and never ends; else a byte as a number, of which it prints as many
 * as are read. Nothing in any other program. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void take_its_place(void)
{
	static char text[160 * 1024];
	const char *what = getenv("HOSTILE");
	size_t done = 0;

	if (!what || strcmp(program_invocation_short_name, "moe-config") != 0)
		return;
	if (strcmp(what, "hang") == 0) {
		for (int fd = 0; fd < 4; fd++)
			close(fd);
		for (;;)
			pause();
	}
	memset(text, atoi(what), sizeof(text));
	while (done < sizeof(text)) {
		ssize_t n = write(STDOUT_FILENO, text + done, sizeof(text) - done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	_exit(0);
}
