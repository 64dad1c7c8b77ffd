/* The floor under a launch of many ranks: fan SPAWNERS RANKS PROGRAM FILE has so many processes
 * start, by posix_spawn and at the same time, their shares of RANKS programs, each with its RANK.
 * They stay until the process group is killed. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int spawn_share(int first, int end, char **argv)
{
	char rank[32];

	for (int i = first; i < end; i++) {
		snprintf(rank, sizeof(rank), "%d", i);
		if (setenv("RANK", rank, 1) < 0 ||
		    posix_spawn(&(pid_t){ 0 }, argv[0], NULL, NULL, argv, environ) != 0)
			return 1;
	}
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	int spawners, ranks;

	if (argc != 5 || sscanf(argv[1], "%d", &spawners) != 1 ||
	    sscanf(argv[2], "%d", &ranks) != 1)
		return 2;

	for (int i = 0; i < spawners; i++)
		if (fork() == 0)
			return spawn_share(i * ranks / spawners, (i + 1) * ranks / spawners,
					   argv + 3);
	pause();
	return 0;
}
