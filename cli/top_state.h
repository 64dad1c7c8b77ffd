/* What an open `moectl top` shows, and what a key does to it. Pure: top_live.c asks the controller
 * and reads the keys, top_screen.c draws.
 *
 * A pane is text that a child printed as a verb does, so that it says the same. Panes of jobs and
 * of nodes are lists: a heading, then lines that begin with the name of what they show, one of
 * which is chosen; the others are texts that scroll. */
#pragma once
#include "lib/base/buf.h"

enum top_pane { PANE_JOBS, PANE_NODES, PANE_RANKS, PANE_EVENTS, PANE_WHY, PANE_HELP, _PANE_N };
extern const char *const top_pane_names[_PANE_N];

/* What the keys are for. */
enum top_mode {
	MODE_LOOK,
	MODE_FILTER,  /* a text is typed that lines must have */
	MODE_REASON,  /* the reason of what is done is typed */
	MODE_ASKING,  /* what that would mean is being asked */
	MODE_CONFIRM, /* it waits for a y */
};

struct top_act {
	char key;
	const char *verb;
	bool node, reason; /* of a node, else of a job; it wants a reason */
};

struct top {
	enum top_pane pane;
	enum top_mode mode;
	char **head, **lines; /* of the cluster; of the pane */
	size_t n_head, n_lines;
	bool loaded;   /* the lines are of this pane */
	bool of_node;  /* why: of the chosen node, not of the job */
	size_t at;     /* of lines that pass: the chosen one, or the first that is shown */
	size_t rows;   /* for them on the screen, as last drawn */
	size_t metric; /* of the ranks: index of matrix_metric_names */
	char *job, *node;
	struct mo_buf filter, reason;
	size_t width; /* of the screen, likewise; 0 = nothing was drawn */
	bool acting;  /* act is being done */
	const struct top_act *act;
	char *target;  /* of the act */
	char *message; /* what was answered, or is asked; NULL: nothing is to be said */
	char *trouble; /* why the newest text did not come; NULL: it did */
};

extern const char top_help[];

/* What is to be done after a key. */
enum top_want {
	WANT_NOTHING,
	WANT_PANE, /* its text is to be asked anew, and at once */
	WANT_ASK,  /* what act would mean for target: top_asked() */
	WANT_ACT,  /* act on target: top_said() */
	WANT_QUIT,
};

void top_init(struct top *t);
void top_done(struct top *t);
/* key: terminal.h */
enum top_want top_key(struct top *t, int key);
/* A text that was asked: lines about the cluster, a form feed, lines of the pane. What was chosen
 * stays chosen, wherever it stands now. */
void top_shown(struct top *t, const char *text);
/* The text did not come: what was shown stays. */
void top_missed(struct top *t, const char *why);
/* What the act would mean; asked for a y. */
void top_asked(struct top *t, const char *text);
/* What came of it, or why there is nothing to ask. */
void top_said(struct top *t, const char *text);
bool top_is_list(const struct top *t);
/* The n-th line of the pane that passes the filter, behind its heading; NULL behind the last. */
const char *top_line(const struct top *t, size_t n);
size_t top_count(const struct top *t);
