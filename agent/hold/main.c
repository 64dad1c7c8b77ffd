/* moe-hold FIFO: the only process of a container that holds the image of a step (decision 023).
 * moe-stepd, and nobody else, has the other end of the FIFO: at its end of file this process ends,
 * also when the runtime that started it is dead. It reads nothing, writes nothing and has no child.
 * Static, as nothing of the node's is beside it. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char *argv[])
{
	/* does not wait for a supervisor that has ended meanwhile: read() then says so */
	int life = argc == 2 ? open(argv[1], O_RDONLY | O_NONBLOCK) : -1;
	char byte;
	ssize_t n;

	if (life < 0 || fcntl(life, F_SETFL, 0) < 0)
		return 1;
	do
		n = read(life, &byte, 1);
	while (n > 0 || (n < 0 && errno == EINTR));
	return 0;
}
