/* Prints "UID EUID": who runs, and with whose rights. Static: it runs in any image. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	return printf("%u %u\n", (unsigned)getuid(), (unsigned)geteuid()) < 0;
}
