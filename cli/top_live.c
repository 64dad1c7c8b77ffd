/* See top_live.h. Keys are answered at once whatever the controller does: children ask it
 * (errand.h), one for what is shown, one for what is done. A pane is asked again a second after its
 * text came, later where the controller took long for it. */
#include "cli/top_live.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/errand.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "cli/top_panes.h"
#include "cli/top_screen.h"
#include "cli/top_state.h"
#include "lib/base/clock.h"

#define SECOND_US 1000000LL
#define REDRAW_US (SECOND_US / 5) /* at most so often */
#define PAUSE_SHARE 4             /* asking takes at most a fifth of the time */
#define LOOK_LIMIT_US (10 * SECOND_US)
#define KEYS_MAX 256
#define REST_MS 25 /* between the bytes of one key */

struct live {
	struct cli *cli;
	struct top top;
	struct errand look, act;
	int64_t look_at, look_since, drawn_at, fresh_at;
	bool dirty;
};

static void on_resize(int number)
{
	(void)number; /* poll() returns */
}

static void read_size(struct live *l)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row ||
	    (size.ws_col == l->cli->width && size.ws_row == l->cli->height))
		return;
	l->cli->width = size.ws_col;
	l->cli->height = size.ws_row;
	l->dirty = true;
	errand_done(&l->look); /* its lines would be of the old width */
	l->look_at = 0;
}

static void start(struct live *l, struct errand *e, int (*work)(struct cli *, void *))
{
	int r = errand_start(e, work, l->cli, &l->top);

	if (r < 0) {
		_cleanup_(mo_freep) char *why =
			mo_printf("the controller cannot be asked: %s; end other programs",
				  strerror(-r));

		top_missed(&l->top, why);
		l->dirty = true;
	}
}

static void look(struct live *l, int64_t now)
{
	if (l->look.pid && now - l->look_since > LOOK_LIMIT_US) {
		errand_done(&l->look);
		top_missed(&l->top, "the controller does not answer; it is asked again");
		l->dirty = true;
	}
	if (l->look.pid || now < l->look_at)
		return;
	l->look_since = now;
	l->look_at = now + SECOND_US;
	start(l, &l->look, top_print_pane);
}

/* Its last line is why it failed, where it did. */
static const char *last_line(struct mo_buf *b)
{
	const char *at;

	while (b->len && b->data[b->len - 1] == '\n')
		b->data[--b->len] = 0;
	for (at = b->len ? b->data : "it failed without a word"; at[strcspn(at, "\f\n")];)
		at += strcspn(at, "\f\n") + 1;
	return mo_starts_with(at, "moectl: ") ? at + strlen("moectl: ") : at;
}

static void take_look(struct live *l, int64_t now)
{
	int r;

	if (!l->look.pid || !errand_read(&l->look, &r))
		return;
	if (r == CLI_OK && l->look.text.len) {
		top_shown(&l->top, l->look.text.data);
		l->fresh_at = now;
	} else {
		top_missed(&l->top, last_line(&l->look.text));
	}
	l->look_at = now + MO_MAX(SECOND_US, PAUSE_SHARE * (now - l->look_since));
	l->dirty = true;
}

static void take_act(struct live *l)
{
	int r;

	if (!l->act.pid || !errand_read(&l->act, &r))
		return;
	l->dirty = true;
	if (r != CLI_OK)
		top_said(&l->top, last_line(&l->act.text));
	else if (l->top.acting)
		top_said(&l->top, l->act.text.len ? l->act.text.data : "done");
	else
		top_asked(&l->top, l->act.text.len ? l->act.text.data : "");
	if (l->top.acting)
		l->look_at = 0; /* what it did is to be seen */
	l->top.acting = false;
}

/* False: it ends. */
static bool press(struct live *l, int key)
{
	switch (top_key(&l->top, key)) {
	case WANT_QUIT: return false;
	case WANT_PANE:
		errand_done(&l->look);
		l->look_at = 0;
		break;
	case WANT_ASK:
		errand_done(&l->act);
		start(l, &l->act, top_print_act);
		break;
	case WANT_ACT:
		start(l, &l->act, top_act);
		l->top.acting = l->act.pid > 0;
		break;
	case WANT_NOTHING: break;
	}
	l->dirty = true;
	return true;
}

/* The rest of an arrow may come a moment later. */
static bool is_begun(const char *bytes, size_t n)
{
	return n > 0 && (bytes[n - 1] == KEY_ESCAPE ||
			 (n > 1 && bytes[n - 2] == KEY_ESCAPE && strchr("[O", bytes[n - 1])));
}

/* False: it ends. */
static bool take_keys(struct live *l)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	char bytes[KEYS_MAX];
	const char *at = bytes;
	size_t left = 0;
	ssize_t n;

	do {
		n = read(STDIN_FILENO, bytes + left, sizeof(bytes) - left);
		if (n <= 0 && left == 0)
			return n == 0 || errno == EINTR || errno == EAGAIN; /* or it is gone */
		left += (size_t)MO_MAX(n, (ssize_t)0);
	} while (n > 0 && left < sizeof(bytes) && is_begun(bytes, left) &&
		 poll(&p, 1, REST_MS) == 1);
	while (left > 0)
		if (!press(l, terminal_key(&at, &left)))
			return false;
	return true;
}

static void draw(struct live *l, int64_t now)
{
	double age = l->fresh_at ? (double)(now - l->fresh_at) / SECOND_US : 0;

	if ((!l->dirty && now - l->drawn_at < SECOND_US) || now - l->drawn_at < REDRAW_US)
		return;
	top_draw(l->cli, &l->top, age);
	l->drawn_at = now;
	l->dirty = false;
}

static int wait_ms(const struct live *l, int64_t now)
{
	int64_t until = l->drawn_at + (l->dirty ? REDRAW_US : SECOND_US);

	if (!l->look.pid)
		until = MO_MIN(until, l->look_at);
	return (int)(MO_MAX(until - now, (int64_t)0) / 1000 + 1);
}

static void serve(struct live *l)
{
	while (!interrupt_wait(0)) {
		struct pollfd fds[] = {
			{ .fd = STDIN_FILENO, .events = POLLIN },
			{ .fd = l->look.pid ? l->look.fd : -1, .events = POLLIN },
			{ .fd = l->act.pid ? l->act.fd : -1, .events = POLLIN },
		};
		int64_t now = mo_clock_boot_us();

		(void)poll(fds, ELEMENTSOF(fds), wait_ms(l, now));
		if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return;
		if ((fds[0].revents & POLLIN) && !take_keys(l))
			return;
		now = mo_clock_boot_us();
		read_size(l);
		take_look(l, now);
		take_act(l);
		look(l, now);
		draw(l, now);
	}
}

int top_live(struct cli *cli)
{
	struct live l = { .cli = cli, .dirty = true };
	struct sigaction resize = { .sa_handler = on_resize };
	struct termios before;

	interrupt_catch();
	sigaction(SIGWINCH, &resize, NULL);
	top_init(&l.top);
	if (terminal_enter(&before) < 0)
		return cli_fail(CLI_FAILED,
				"the terminal cannot be used; `moectl top | cat` prints "
				"the cluster once");
	serve(&l);
	terminal_leave(&before);
	if (l.top.acting)
		fprintf(stderr,
			"moectl: %s %s was asked; `moectl status %s` tells what came of it\n",
			l.top.act->verb, l.top.target, l.top.target);
	else
		errand_done(&l.act);
	errand_done(&l.look);
	top_done(&l.top);
	return CLI_OK;
}
