/* A node as an SVG (see draw_node.h): a column per NUMA node, a card per GPU with its NIC below
 * it, partitions as squares on the card. It has a ground of its own, so it reads on white and on
 * dark pages; colours of states are said in words too; no script, style sheet, font or link. */
#include <string.h>

#include "daemon/core/view/draw_node.h"
#include "daemon/core/view/draw_node_svg.h"
#include "daemon/core/view/draw_words.h"

#define NUMA_SHOWN 64
#define COLUMNS_MAX 4
#define MARGIN 16
#define COLUMN 286
#define GAP 14
#define HEAD 62 /* top of the picture */
#define COLUMN_HEAD 66
#define CARD 88
#define LINE 17

#define INK "#1b2430"
#define FAINT "#5b6675"
#define GROUND "#f7f9fb"
#define GOOD "#0b7a4b"
#define BAD "#b3261e"
#define BUSY "#dcebfa"
#define BROKEN "#fdeceb"

static void escape(struct mo_buf *b, const char *s, size_t n)
{
	for (size_t i = 0; i < n && s[i]; i++)
		if (strchr("<>&\"", s[i]))
			mo_buf_printf(b, "&#%d;", s[i]);
		else if ((unsigned char)s[i] < ' ' || s[i] == 0x7f)
			mo_buf_str(b, "?");
		else
			mo_buf_add(b, s + i, 1);
}

struct font {
	int size;
	const char *fill, *more;
};
static const struct font title = { 17, INK, " font-weight=\"bold\"" },
			 strong = { 13, INK, " font-weight=\"bold\"" }, plain = { 12, INK, "" },
			 faint = { 11, FAINT, "" };

/* Bytes of the first `chars` characters of s. */
static size_t bytes_of(const char *s, size_t chars)
{
	size_t n = 0;

	for (; s[n] && chars > 0; chars--) {
		n++;
		while (((unsigned char)s[n] & 0xc0) == 0x80)
			n++;
	}
	return n;
}

/* Text of at most `chars` characters; the whole of it is its title. */
static void text(struct mo_buf *b, int x, int y, const struct font *f, const char *fill,
		 size_t chars, const char *s)
{
	size_t n = strlen(s), cut = bytes_of(s, chars);

	if (cut < n)
		cut = bytes_of(s, chars - 1);
	mo_buf_printf(b, "<text x=\"%d\" y=\"%d\" font-size=\"%d\" fill=\"%s\"%s>", x, y, f->size,
		      fill ? fill : f->fill, f->more);
	if (cut < n) {
		mo_buf_str(b, "<title>");
		escape(b, s, MO_MIN(n, (size_t)4096));
		mo_buf_str(b, "</title>");
	}
	escape(b, s, cut);
	mo_buf_str(b, cut < n ? "…</text>\n" : "</text>\n");
}

static void box(struct mo_buf *b, int x, int y, int w, int h, const char *fill, const char *stroke)
{
	mo_buf_printf(b,
		      "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\" "
		      "stroke=\"%s\"/>\n",
		      x, y, w, h, fill, stroke);
}

static void add_word(struct mo_buf *line, const char *word)
{
	if (word && *word)
		mo_buf_printf(line, "%s%s", line->len ? " · " : "", word);
}

static void draw_nic_line(struct mo_buf *b, int x, int y, const char *name,
			  const struct nic_info *n)
{
	_cleanup_(mo_buf_done) struct mo_buf line = { 0 };
	bool no_gid = n && mo_streq(n->link_layer, "Ethernet") && n->gid_index == MO_NONE,
	     active = n && mo_streq(n->state, "ACTIVE") && !no_gid;

	add_word(&line, name ? name : "no NIC");
	if (n) {
		add_word(&line, n->state ? n->state : "state unknown");
		if (n->rate_gbps != MO_NONE_F) {
			_cleanup_(mo_freep) char *rate = mo_printf("%g Gb/s", n->rate_gbps);
			add_word(&line, rate);
		}
		add_word(&line, no_gid ? "no GID" : NULL);
		add_word(&line, n->netdev);
	}
	mo_buf_printf(b, "<circle cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"%s\"/>\n", x + 5, y - 4,
		      active ? GOOD
		      : n    ? BAD
			     : FAINT);
	text(b, x + 15, y, &plain, n && !active ? BAD : NULL, 41, line.data);
}

/* One GPU: slots i to end. */
static void draw_card(struct mo_buf *b, const struct node_drawing *d, size_t i, size_t end, int x,
		      int y)
{
	const struct gpu_slot *g = &d->info->gpus[i];
	_cleanup_(mo_buf_done) struct mo_buf head = { 0 }, detail = { 0 };
	_cleanup_(
		mo_freep) char *bytes = draw_bytes(g->vram_bytes),
			       *slots = end - i > 1
						? mo_printf("GPUs %lld-%lld", (long long)g->index,
							    (long long)d->info->gpus[end - 1].index)
						: mo_printf("GPU %lld", (long long)g->index);
	const char *use = draw_use(d, g->index);

	for (size_t k = i + 1; !use && k < end; k++)
		use = draw_use(d, d->info->gpus[k].index);
	const struct slot_trouble *trouble = draw_trouble(d, i, end);
	box(b, x, y, COLUMN - 20, CARD - 10,
	    trouble ? BROKEN
	    : use   ? BUSY
		    : "#ffffff",
	    trouble ? BAD
	    : use   ? "#2b6cb0"
		    : "#b8c2cf");
	mo_buf_printf(&head, "%s  %s", slots, g->model ? g->model : "");
	text(b, x + 10, y + 19, &strong, NULL, 24, head.data);
	add_word(&detail, g->bdf);
	add_word(&detail, g->compute_partition);
	add_word(&detail, g->memory_partition);
	_cleanup_(mo_freep) char *memory =
		end - i > 1 ? mo_printf("%zu x %s", end - i, bytes) : mo_strdup(bytes);
	if (g->vram_bytes != MO_NONE)
		add_word(&detail, memory);
	if (trouble)
		text(b, x + 10, y + 37, &faint, BAD, 48, trouble->text);
	else if (detail.len)
		text(b, x + 10, y + 37, &faint, NULL, 48, detail.data);
	if (end - i > 1) {
		for (size_t k = i; k < end && k < i + 8; k++)
			mo_buf_printf(b,
				      "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" "
				      "fill=\"%s\" stroke=\"#2b6cb0\"><title>slot "
				      "%lld</title></rect>\n",
				      x + COLUMN - 128 + (int)(k - i) * 13, y + 10,
				      draw_use(d, d->info->gpus[k].index) ? "#2b6cb0" : "#ffffff",
				      (long long)d->info->gpus[k].index);
	} else if (use) {
		text(b, x + 150, y + 19, &plain, "#1d4e89", 18, use);
	}
	mo_buf_printf(b, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#d5dce4\"/>\n",
		      x + 10, y + 47, x + COLUMN - 30, y + 47);
	draw_nic_line(b, x + 10, y + 66, g->nic, draw_nic(d->info, g->nic));
}

static bool known_numa(const struct nodeinfo *info, int64_t id)
{
	for (size_t i = 0; i < info->n_numa && i < NUMA_SHOWN; i++)
		if (info->numa[i].id == id)
			return true;
	return false;
}

/* Whether a device belongs into column `numa` (n_numa = those without a known node). */
static bool belongs(const struct nodeinfo *info, size_t numa, int64_t id)
{
	return numa < info->n_numa ? info->numa[numa].id == id : !known_numa(info, id);
}

/* Cards and spare NICs of a column; measures only when b is NULL. Returns the height below the
 * column's head. */
static int draw_devices(struct mo_buf *b, const struct node_drawing *d, size_t numa, int x, int y)
{
	int top = y;

	for (size_t i = 0, end; i < d->info->n_gpus; i = end) {
		end = draw_gpu_end(d->info, i);
		if (!belongs(d->info, numa, d->info->gpus[i].numa_node))
			continue;
		if (b)
			draw_card(b, d, i, end, x, y);
		y += CARD;
	}
	for (size_t i = 0; i < d->info->n_nics; i++) {
		const struct nic_info *n = &d->info->nics[i];
		if (!belongs(d->info, numa, n->numa_node) || draw_nic_serves(d->info, n->name))
			continue;
		if (b)
			draw_nic_line(b, x + 10, y + 12, n->name, n);
		y += LINE;
	}
	return y - top;
}

static void draw_column_head(struct mo_buf *b, const struct node_drawing *d, size_t i, int x, int y)
{
	if (i >= d->info->n_numa) {
		text(b, x, y + 18, &strong, NULL, 40, "NUMA node unknown");
		return;
	}
	const struct numa_node *n = &d->info->numa[i];
	int64_t socket = draw_socket(d->info, i);
	_cleanup_(mo_freep) char *memory = draw_bytes(n->mem_bytes),
				 *cores = draw_cores(d->info, i);
	_cleanup_(mo_freep) char *head =
		socket == MO_NONE ? mo_printf("NUMA %lld · %s", (long long)n->id, memory)
				  : mo_printf("NUMA %lld · socket %lld · %s", (long long)n->id,
					      (long long)socket, memory);
	_cleanup_(mo_freep) char *cpus =
		mo_printf("CPUs %s%s%s", n->cpus && *n->cpus ? n->cpus : "none",
			  n->distances && *n->distances ? " · distances " : "",
			  n->distances ? n->distances : "");

	text(b, x, y + 18, &strong, NULL, 44, head);
	text(b, x, y + 36, &faint, NULL, 52, cores);
	text(b, x, y + 52, &faint, NULL, 52, cpus);
}

static size_t shown_columns(const struct node_drawing *d)
{
	bool strays = d->info->n_numa == 0;

	for (size_t i = 0; i < d->info->n_gpus; i++)
		strays |= !known_numa(d->info, d->info->gpus[i].numa_node);
	for (size_t i = 0; i < d->info->n_nics; i++)
		strays |= !known_numa(d->info, d->info->nics[i].numa_node) &&
			  !draw_nic_serves(d->info, d->info->nics[i].name);
	return MO_MIN(d->info->n_numa, (size_t)NUMA_SHOWN) + strays;
}

/* Which NUMA node column c shows: the last one may be that of strays. */
static size_t column_numa(const struct node_drawing *d, size_t c)
{
	return c < MO_MIN(d->info->n_numa, (size_t)NUMA_SHOWN) ? c : d->info->n_numa;
}

static int draw_columns(struct mo_buf *b, const struct node_drawing *d, size_t n, size_t per_row,
			int y)
{
	for (size_t from = 0; from < n; from += per_row) {
		int high = 0;
		for (size_t c = from; c < n && c < from + per_row; c++)
			high = MO_MAX(high, draw_devices(NULL, d, column_numa(d, c), 0, 0));
		for (size_t c = from; c < n && c < from + per_row; c++) {
			int x = MARGIN + (int)(c - from) * (COLUMN + GAP);
			box(b, x, y, COLUMN, COLUMN_HEAD + high + 6, "#eef2f6", "#d5dce4");
			draw_column_head(b, d, column_numa(d, c), x + 10, y);
			draw_devices(b, d, column_numa(d, c), x + 10, y + COLUMN_HEAD);
		}
		y += COLUMN_HEAD + high + 6 + GAP;
	}
	return y;
}

/* A finding on as many lines as it needs. Returns where the next one begins. */
static int paragraph(struct mo_buf *b, int y, size_t chars, char *line)
{
	for (char *p = line; *p; y += LINE) {
		size_t n = bytes_of(p, chars), blank = n;
		bool more = strlen(p) > n;
		while (more && blank > n / 2 && p[blank] != ' ')
			blank--;
		char *end = p + (more && p[blank] == ' ' ? blank : n), was = *end;
		*end = 0;
		text(b, MARGIN, y + 12, &plain, BAD, chars, p);
		*end = was;
		p = end + (was == ' ');
	}
	return y;
}

void draw_node_svg(const struct node_drawing *d, struct mo_buf *out)
{
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	_cleanup_(mo_freep) char *summary = draw_summary(d->info), *links = draw_links(d->info),
				 *head = d->state ? mo_printf("%s · %s", d->name, d->state)
						  : mo_strdup(d->name);
	size_t n = shown_columns(d), per_row = MO_MAX(MO_MIN(n, (size_t)COLUMNS_MAX), (size_t)2);
	int width = 2 * MARGIN + (int)per_row * COLUMN + (int)(per_row - 1) * GAP;
	size_t chars = (size_t)(width - 2 * MARGIN) / 6;

	text(&body, MARGIN, 28, &title, NULL, chars / 2, head);
	text(&body, MARGIN, 48, &plain, NULL, chars, summary);
	int y = draw_columns(&body, d, n, per_row, HEAD);
	for (char *p = links, *end; *p; p = end + 1, y += LINE) {
		end = strchr(p, '\n');
		*end = 0;
		text(&body, MARGIN, y + 12, &plain, NULL, chars, p);
	}
	for (size_t i = 0; i < d->info->n_findings; i++) {
		_cleanup_(mo_freep) char *line = mo_printf("! %s: %s", d->info->findings[i].object,
							   d->info->findings[i].text);
		y = paragraph(&body, y, chars, line);
	}
	for (size_t i = 0; i < d->n_notes; i++) {
		_cleanup_(mo_freep) char *line = mo_printf("! %s", d->notes[i]);
		y = paragraph(&body, y, chars, line);
	}
	int height = y + MARGIN;
	mo_buf_printf(out,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		      "viewBox=\"0 0 %d %d\" font-family=\"system-ui, sans-serif\">\n",
		      width, height, width, height);
	mo_buf_printf(out, "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"" GROUND "\"/>\n",
		      width, height);
	mo_buf_add(out, body.data, body.len);
	mo_buf_str(out, "</svg>\n");
}
