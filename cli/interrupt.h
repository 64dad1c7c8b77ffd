/* What Ctrl-C and SIGTERM mean to a verb that waits: it stops waiting and says so, in place of
 * an end without a word. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* SIGINT and SIGTERM are noted from now on. */
void interrupt_catch(void);
/* Waits ms; true when one of them came meanwhile (interrupt_catch() must have been called once). */
bool interrupt_wait(int64_t ms);
