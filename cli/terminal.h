/* The terminal of a view that fills it: keys as they are typed, the screen given back as it was.
 * The few codes that it needs are written as such; nothing of terminfo is read. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

enum terminal_key {
	KEY_NONE,
	KEY_ESCAPE = 27,
	KEY_BACKSPACE = 127,
	KEY_UP = 256,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_ENTER,
};

/* Standard input and output become the view's. *ret_before: for terminal_leave(). -errno where
 * they are no terminal. */
int terminal_enter(struct termios *ret_before);
void terminal_leave(const struct termios *before);
/* The next key of bytes that were read, which are taken from them: a byte, or one of the above.
 * KEY_NONE: there is none, or a sequence that means nothing here. Pure. */
int terminal_key(const char **at, size_t *n);
