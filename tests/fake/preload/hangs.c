/* Loaded into moe-stepd: a file system that does not answer. Whoever reads a file NAME.hangs makes
 * NAME.hangs.asked and waits for ever. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t read(int fd, void *to, size_t n)
{
	char link[64], path[4096];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof(path) - 16);
	if (len > 6 && memcmp(path + len - 6, ".hangs", 6) == 0) {
		strcpy(path + len, ".asked");
		close(open(path, O_WRONLY | O_CREAT, 0600));
		for (;;)
			pause();
	}
	return syscall(SYS_read, fd, to, n);
}
