/* See terminal.h. */
#include "cli/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"

int terminal_enter(struct termios *ret_before)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, ret_before) < 0)
		return -errno;
	raw = *ret_before;
	/* Ctrl-C is a key: what it stops is the view, in order */
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) < 0)
		return -errno;
	fputs("\033[?1049h\033[?25l", stdout); /* the other screen, without a cursor */
	fflush(stdout);
	return 0;
}

void terminal_leave(const struct termios *before)
{
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, before);
}

/* Behind "ESC [" or "ESC O", to its final letter. */
static int read_sequence(const char **at, size_t *n)
{
	static const struct {
		const char *text;
		int key;
	} sequences[] = {
		{ "A", KEY_UP },   { "B", KEY_DOWN },       { "5~", KEY_PAGE_UP },
		{ "H", KEY_HOME }, { "6~", KEY_PAGE_DOWN }, { "1~", KEY_HOME },
		{ "F", KEY_END },  { "4~", KEY_END },
	};
	const char *s = *at;
	size_t len = 0;

	while (len < *n && (s[len] < 0x40 || s[len] > 0x7e))
		len++;
	len = MO_MIN(len + 1, *n);
	*at += len;
	*n -= len;
	for (size_t i = 0; i < ELEMENTSOF(sequences); i++)
		if (strlen(sequences[i].text) == len && !strncmp(sequences[i].text, s, len))
			return sequences[i].key;
	return KEY_NONE;
}

int terminal_key(const char **at, size_t *n)
{
	unsigned char c;

	if (*n == 0)
		return KEY_NONE;
	c = (unsigned char)*(*at)++;
	(*n)--;
	if (c == KEY_ESCAPE && *n && (**at == '[' || **at == 'O')) {
		(*at)++;
		(*n)--;
		return read_sequence(at, n);
	}
	return c == '\r' || c == '\n' ? KEY_ENTER : c == '\b' ? KEY_BACKSPACE : c;
}
