/* Waiting that an interrupt ends (interrupt.h). */
#include "cli/interrupt.h"

#include <signal.h>
#include <time.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

void interrupt_catch(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

bool interrupt_wait(int64_t ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	if (!interrupted)
		nanosleep(&t, NULL);
	return interrupted;
}
