/* See top_state.h. */
#include "cli/top_state.h"

#include <string.h>

#include "cli/output.h"
#include "cli/terminal.h"
#include "daemon/core/view/matrix.h"

#define TYPED_MAX 200
#define CTRL_C 3

const char *const top_pane_names[_PANE_N] = { "jobs", "nodes", "ranks", "events", "why", "help" };

static const struct top_act acts[] = {
	{ 'p', "pause", false, false },  { 'c', "cancel", false, false },
	{ 'r', "resume", false, false }, { 'R', "restart", false, false },
	{ 'd', "drain", true, true },    { 'u', "undrain", true, false },
};

const char top_help[] = "1 to 5, Tab     jobs, nodes, ranks of the chosen job, events, why\n"
			"j k, arrows     choose, or scroll; PgUp PgDn g G too\n"
			"Enter           of a job its ranks, of a node why it is as it is\n"
			"/               only lines with a text; Esc: all again\n"
			"m               another value of the ranks\n"
			"w               why the job or node is in its state\n"
			"p c r R         pause, cancel, resume, restart the job\n"
			"d u             drain, undrain the node\n"
			"                each says what it would do, and waits for y\n"
			"q, Ctrl-C       ends; jobs go on\n";

void top_init(struct top *t)
{
	*t = (struct top){ .metric = MATRIX_DOING };
}

static void free_lines(char ***lines, size_t *n)
{
	for (size_t i = 0; i < *n; i++)
		free((*lines)[i]);
	free(*lines);
	*lines = NULL;
	*n = 0;
}

void top_done(struct top *t)
{
	free_lines(&t->head, &t->n_head);
	free_lines(&t->lines, &t->n_lines);
	mo_buf_done(&t->filter);
	mo_buf_done(&t->reason);
	free(t->job);
	free(t->node);
	free(t->target);
	free(t->message);
	free(t->trouble);
	top_init(t);
}

bool top_is_list(const struct top *t)
{
	return t->pane == PANE_JOBS || t->pane == PANE_NODES;
}

/* Colours do not count. */
static bool passes(const struct top *t, const char *line)
{
	_cleanup_(mo_buf_done) struct mo_buf plain = { 0 };

	if (!t->filter.len)
		return true;
	for (const char *s = line; *s; s++)
		if (*s == '\033')
			s += strcspn(s, "m") - !strchr(s, 'm');
		else
			mo_buf_add(&plain, s, 1);
	return plain.len && strcasestr(plain.data, t->filter.data);
}

const char *top_line(const struct top *t, size_t n)
{
	for (size_t i = top_is_list(t); i < t->n_lines; i++)
		if (passes(t, t->lines[i]) && n-- == 0)
			return t->lines[i];
	return NULL;
}

size_t top_count(const struct top *t)
{
	size_t n = 0;

	for (size_t i = top_is_list(t); i < t->n_lines; i++)
		n += passes(t, t->lines[i]);
	return n;
}

static char **chosen_of(struct top *t)
{
	return t->pane == PANE_JOBS ? &t->job : &t->node;
}

/* Its first word is its name. Caller frees; NULL: no line. */
static char *name_of(const char *line)
{
	return line ? mo_strndup(line, strcspn(line, " ")) : NULL;
}

static void go_to(struct top *t, size_t at)
{
	size_t n = top_count(t), last = top_is_list(t) ? 1 : MO_MAX(t->rows, (size_t)1);

	t->at = MO_MIN(at, n > last ? n - last : 0);
	if (top_is_list(t) && t->loaded) {
		free(*chosen_of(t));
		*chosen_of(t) = name_of(top_line(t, t->at));
	}
}

/* To the line of what was chosen; where it is gone, what stands in its place is. */
static void find_chosen(struct top *t)
{
	const char *line, *name = *chosen_of(t);

	for (size_t i = 0; name && (line = top_line(t, i)); i++)
		if (mo_starts_with(line, name) && strchr(" ", line[strlen(name)]))
			t->at = i;
	go_to(t, t->at);
}

/* Lines of the text; width: longer ones go on in the next, 0 = they do not. */
static void split(const char *text, size_t n, size_t width, char ***ret, size_t *ret_n)
{
	free_lines(ret, ret_n);
	for (const char *s = text, *end; s < text + n; s = end + 1) {
		_cleanup_(mo_freep) char *line = NULL;

		end = memchr(s, '\n', (size_t)(text + n - s));
		end = end ? end : text + n;
		line = mo_strndup(s, (size_t)(end - s));
		for (const char *at = line;;) {
			size_t part = width ? text_fold(at, width) : strlen(at);

			*MO_GROW(*ret, *ret_n) = mo_strndup(at, part);
			at += part;
			at += *at == ' ';
			if (!*at)
				break;
		}
	}
}

/* NULL where there is no word. */
static void set_line(char **line, const char *text)
{
	size_t n = text ? strlen(text) : 0;

	while (n && text[n - 1] == '\n')
		n--;
	free(*line);
	*line = n ? mo_strndup(text, n) : NULL;
	for (char *s = *line; s && *s; s++)
		if (*s == '\n')
			*s = ' ';
}

void top_said(struct top *t, const char *text)
{
	set_line(&t->message, text);
	if (t->mode != MODE_FILTER)
		t->mode = MODE_LOOK;
}

void top_missed(struct top *t, const char *why)
{
	set_line(&t->trouble, why);
}

void top_shown(struct top *t, const char *text)
{
	const char *body = strchr(text, '\f');

	if (!body)
		return;
	split(text, (size_t)(body - text), 0, &t->head, &t->n_head);
	split(body + 1, strlen(body + 1), t->pane == PANE_WHY ? t->width : 0, &t->lines,
	      &t->n_lines);
	t->loaded = true;
	top_missed(t, NULL);
	if (top_is_list(t))
		find_chosen(t);
	else
		go_to(t, t->at);
}

void top_asked(struct top *t, const char *text)
{
	if (t->mode != MODE_ASKING)
		return;
	top_said(t, text);
	t->mode = MODE_CONFIRM;
}

/* Is it a node that is chosen, and no job? */
static bool node_here(const struct top *t)
{
	return t->pane == PANE_NODES || (t->pane == PANE_WHY && t->of_node);
}

static enum top_want open_pane(struct top *t, enum top_pane pane)
{
	t->of_node = pane == PANE_WHY && node_here(t);
	t->pane = pane;
	t->at = 0;
	t->loaded = false;
	mo_buf_reset(&t->filter);
	free_lines(&t->lines, &t->n_lines);
	if (pane == PANE_HELP)
		split(top_help, strlen(top_help), 0, &t->lines, &t->n_lines);
	return WANT_PANE;
}

static enum top_want begin(struct top *t, const struct top_act *act)
{
	const char *target = act->node ? t->node : t->job;

	if (act->node != node_here(t) || t->pane == PANE_EVENTS || t->pane == PANE_HELP ||
	    !target) {
		_cleanup_(mo_freep) char *text =
			mo_printf("%s is for a %s: choose one (%s)", act->verb,
				  act->node ? "node" : "job", act->node ? "2" : "1");

		top_said(t, text);
		return WANT_NOTHING;
	}
	if (t->acting) {
		top_said(t, "what was asked before is not answered yet; wait");
		return WANT_NOTHING;
	}
	t->act = act;
	mo_str_set(&t->target, target);
	mo_buf_reset(&t->reason);
	t->mode = act->reason ? MODE_REASON : MODE_ASKING;
	return act->reason ? WANT_NOTHING : WANT_ASK;
}

static enum top_want other_key(struct top *t, int key)
{
	for (size_t i = 0; i < ELEMENTSOF(acts); i++)
		if (acts[i].key == key)
			return begin(t, &acts[i]);
	if (key >= '1' && key < '1' + PANE_HELP)
		return open_pane(t, (enum top_pane)(key - '1'));
	switch (key) {
	case 'q':
	case CTRL_C: return WANT_QUIT;
	case '?': return open_pane(t, PANE_HELP);
	case '\t': return open_pane(t, t->pane + 1 < PANE_HELP ? t->pane + 1 : PANE_JOBS);
	case 'w': return open_pane(t, PANE_WHY);
	case KEY_ENTER: return open_pane(t, t->pane == PANE_JOBS ? PANE_RANKS : PANE_WHY);
	case 'm':
		t->metric = (t->metric + 1) % _MATRIX_N;
		return t->pane == PANE_RANKS ? WANT_PANE : open_pane(t, PANE_RANKS);
	case '/': t->mode = MODE_FILTER; return WANT_NOTHING;
	case KEY_ESCAPE:
		mo_buf_reset(&t->filter);
		go_to(t, t->at);
		return WANT_NOTHING;
	default: return WANT_NOTHING;
	}
}

static enum top_want look_key(struct top *t, int key)
{
	size_t page = MO_MAX(t->rows, (size_t)1);

	free(t->message);
	t->message = NULL;
	switch (key) {
	case 'k':
	case KEY_UP: go_to(t, t->at ? t->at - 1 : 0); return WANT_NOTHING;
	case 'j':
	case KEY_DOWN: go_to(t, t->at + 1); return WANT_NOTHING;
	case KEY_PAGE_UP: go_to(t, t->at > page ? t->at - page : 0); return WANT_NOTHING;
	case KEY_PAGE_DOWN: go_to(t, t->at + page); return WANT_NOTHING;
	case 'g':
	case KEY_HOME: go_to(t, 0); return WANT_NOTHING;
	case 'G':
	case KEY_END: go_to(t, t->n_lines); return WANT_NOTHING;
	default: return other_key(t, key);
	}
}

/* One more letter, or one less. */
static void type(struct mo_buf *b, int key)
{
	char c = (char)key;

	if (key == KEY_BACKSPACE && b->len) {
		do
			b->len--;
		while (b->len && ((unsigned char)b->data[b->len] & 0xc0) == 0x80);
		b->data[b->len] = 0;
	} else if (key >= ' ' && key < 256 && key != KEY_BACKSPACE && b->len < TYPED_MAX) {
		mo_buf_add(b, &c, 1);
	}
}

static enum top_want filter_key(struct top *t, int key)
{
	if (key == KEY_ESCAPE)
		mo_buf_reset(&t->filter);
	if (key == KEY_ESCAPE || key == KEY_ENTER)
		t->mode = MODE_LOOK;
	else
		type(&t->filter, key);
	go_to(t, 0);
	return WANT_NOTHING;
}

static enum top_want reason_key(struct top *t, int key)
{
	if (key == KEY_ESCAPE || (key == KEY_ENTER && !t->reason.len)) {
		top_said(t, "nothing was done");
	} else if (key == KEY_ENTER) {
		t->mode = MODE_ASKING;
		return WANT_ASK;
	} else {
		type(&t->reason, key);
	}
	return WANT_NOTHING;
}

enum top_want top_key(struct top *t, int key)
{
	if (key == KEY_NONE)
		return WANT_NOTHING;
	if (key == CTRL_C)
		return WANT_QUIT;
	switch (t->mode) {
	case MODE_FILTER: return filter_key(t, key);
	case MODE_REASON: return reason_key(t, key);
	case MODE_CONFIRM:
		top_said(t, key == 'y' ? "asked; waiting for the answer" : "nothing was done");
		return key == 'y' ? WANT_ACT : WANT_NOTHING;
	case MODE_ASKING: top_said(t, "nothing was done"); return WANT_NOTHING;
	case MODE_LOOK: break;
	}
	return look_key(t, key);
}
