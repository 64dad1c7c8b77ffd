/* See top_screen.h. ASCII alone, and at most one line of the terminal for each line here: what
 * wrapped would push the rest away. */
#include "cli/top_screen.h"

#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/text.h"

#define HEAD_FROM 12 /* lower terminals have no lines about the cluster */
#define OLD_S 3      /* from here on its age is shown */

struct page {
	const struct cli *cli;
	int left; /* lines that there still are */
};

static void put_line(struct page *p, const char *gutter, const char *s)
{
	if (p->left <= 0)
		return;
	/* before the text: behind a full line the cursor still stands on its last letter */
	printf("\033[%c%.*s", p->left > 1 ? 'K' : 'J', p->cli->width, gutter);
	print_clipped(s, p->cli->width - (int)strlen(gutter));
	if (--p->left > 0)
		fputs("\r\n", stdout);
}

static void put_tabs(struct page *p, const struct top *t, double age_s)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (int i = 0; i < PANE_HELP; i++)
		mo_buf_printf(&b, t->pane == (enum top_pane)i ? "[%d %s] " : " %d %s  ", i + 1,
			      top_pane_names[i]);
	if (t->filter.len)
		mo_buf_printf(&b, " /%s", t->filter.data);
	if (age_s >= OLD_S)
		mo_buf_printf(&b, "  %s old", text_seconds(age_s));
	put_line(p, "", b.data);
}

/* Caller frees. */
static char *foot_of(const struct top *t)
{
	switch (t->mode) {
	case MODE_FILTER: return mo_printf("/%s_", t->filter.len ? t->filter.data : "");
	case MODE_REASON:
		return mo_printf("%s %s: why? others will read it: %s_", t->act->verb, t->target,
				 t->reason.len ? t->reason.data : "");
	case MODE_ASKING: return mo_printf("%s %s: asking ...", t->act->verb, t->target);
	case MODE_CONFIRM: return mo_printf("%s  y = yes, any other key = no", t->message);
	case MODE_LOOK: break;
	}
	return mo_strdup(t->message   ? t->message
			 : t->trouble ? t->trouble
			 : !t->loaded ? "asking ..."
			 : t->n_lines ? "? keys  / filter  q ends"
				      : "nothing here  ? keys  q ends");
}

static int fold_count(const char *s, size_t width)
{
	int n = 0;

	for (; *s; n++) {
		s += text_fold(s, width);
		s += *s == ' ';
	}
	return n;
}

static void put_foot(struct page *p, const char *s)
{
	while (*s && p->left > 0) {
		size_t n = text_fold(s, (size_t)p->cli->width);
		_cleanup_(mo_freep) char *line = mo_strndup(s, n);

		put_line(p, "", line);
		s += n;
		s += *s == ' ';
	}
}

static void put_rows(struct page *p, struct top *t, int below)
{
	bool list = top_is_list(t);
	size_t rows, first;

	if (list && t->n_lines)
		put_line(p, "  ", t->lines[0]);
	rows = (size_t)MO_MAX(p->left - below, 0);
	t->rows = rows;
	t->width = (size_t)MO_MAX(p->cli->width, 1);
	first = !list ? t->at : t->at < rows ? 0 : t->at - rows + 1;
	for (size_t i = 0; i < rows; i++) {
		const char *line = top_line(t, first + i);

		put_line(p,
			 !list                        ? ""
			 : line && first + i == t->at ? "> "
						      : "  ",
			 line ? line : "");
	}
}

void top_draw(const struct cli *cli, struct top *t, double age_s)
{
	struct page p = { cli, MO_MAX(cli->height, 1) };
	_cleanup_(mo_freep) char *foot = foot_of(t);
	int below = MO_MIN(fold_count(foot, (size_t)MO_MAX(cli->width, 1)),
			   MO_MAX(p.left - 2, 1)); /* a question is read to its end */

	fputs("\033[H", stdout);
	if (p.left > below)
		put_tabs(&p, t, age_s);
	for (size_t i = 0; cli->height >= HEAD_FROM && i < t->n_head; i++)
		put_line(&p, "", t->head[i]);
	put_rows(&p, t, below);
	put_foot(&p, foot);
	fflush(stdout);
}
