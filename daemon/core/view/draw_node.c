/* A node as a text tree (see draw_node.h). Columns that nobody needs to know go first where the
 * terminal is narrow. */
#include "daemon/core/view/draw_node.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/view/draw_words.h"
#include "lib/base/utf8.h"

#define WIDTH 100
#define NARROWEST 40
#define COLUMNS 10

/* ---- the table of GPUs: one row per GPU, cells of which some columns are shown */
enum { C_SLOT, C_TROUBLE, C_MODEL, C_PCI, C_MODE, C_MEMORY, C_RENDER, C_NIC, C_LINK, C_USE };
struct row {
	char *cells[COLUMNS];
	int64_t numa;
};
struct rows {
	struct row *items;
	size_t n;
	size_t width[COLUMNS];
	bool shown[COLUMNS];
};

static void rows_done(struct rows *r)
{
	for (size_t i = 0; i < r->n; i++)
		for (size_t c = 0; c < COLUMNS; c++)
			free(r->items[i].cells[c]);
	free(r->items);
}

static char *span(const char *word, int64_t a, int64_t b)
{
	if (a == MO_NONE)
		return NULL;
	return a == b || b == MO_NONE ? mo_printf("%s%lld", word, (long long)a)
				      : mo_printf("%s%lld-%lld", word, (long long)a, (long long)b);
}

/* "mlx5_1 DOWN": what does not work is said beside the name, which every width has room for. */
static char *nic_name(const char *name, const struct nic_info *n)
{
	return n && !mo_streq(n->state, "ACTIVE")
		       ? mo_printf("%s %s", name, n->state ? n->state : "state unknown")
		       : mo_strdup(name);
}

static char *nic_words(const struct nic_info *n)
{
	struct mo_buf b = { 0 };

	if (!n)
		return NULL;
	mo_buf_str(&b, mo_streq(n->state, "ACTIVE") ? "ACTIVE" : "      ");
	if (n->rate_gbps != MO_NONE_F)
		mo_buf_printf(&b, " %g Gb/s", n->rate_gbps);
	if (n->netdev)
		mo_buf_printf(&b, " %s", n->netdev);
	if (mo_streq(n->link_layer, "Ethernet") && n->gid_index != MO_NONE)
		mo_buf_printf(&b, " GID %lld", (long long)n->gid_index);
	else if (mo_streq(n->link_layer, "Ethernet"))
		mo_buf_str(&b, " no GID");
	return mo_buf_take(&b);
}

static char *uses_of(const struct node_drawing *d, size_t from, size_t end)
{
	struct mo_buf b = { 0 };

	for (size_t i = from; i < end; i++) {
		const char *use = draw_use(d, d->info->gpus[i].index);
		if (use)
			mo_buf_printf(&b, "%s%s", b.len ? ", " : "", use);
	}
	return b.len ? mo_buf_take(&b) : NULL;
}

static void add_row(const struct node_drawing *d, size_t i, size_t end, struct rows *rows)
{
	const struct gpu_slot *g = &d->info->gpus[i], *last = &d->info->gpus[end - 1];
	struct row *r = MO_GROW(rows->items, rows->n);

	r->numa = g->numa_node;
	r->cells[C_SLOT] = span(end - i > 1 ? "GPUs " : "GPU ", g->index, last->index);
	const struct slot_trouble *trouble = draw_trouble(d, i, end);
	r->cells[C_TROUBLE] =
		trouble ? mo_strdup(trouble->missing ? "MISSING" : "see below") : NULL;
	r->cells[C_MODEL] = mo_strdup(g->model ? g->model : g->vendor);
	r->cells[C_PCI] = mo_strdup(g->bdf);
	if (g->compute_partition || g->memory_partition)
		r->cells[C_MODE] =
			mo_printf("%s%s%s", g->compute_partition ? g->compute_partition : "",
				  g->compute_partition && g->memory_partition ? "/" : "",
				  g->memory_partition ? g->memory_partition : "");
	_cleanup_(mo_freep) char *bytes = draw_bytes(g->vram_bytes);
	if (g->vram_bytes != MO_NONE)
		r->cells[C_MEMORY] =
			end - i > 1 ? mo_printf("%zu x %s", end - i, bytes) : mo_strdup(bytes);
	r->cells[C_RENDER] = span("D", g->render_minor, last->render_minor);
	r->cells[C_NIC] = g->nic ? nic_name(g->nic, draw_nic(d->info, g->nic)) : NULL;
	r->cells[C_LINK] = nic_words(draw_nic(d->info, g->nic));
	r->cells[C_USE] = uses_of(d, i, end);
	for (size_t c = 0; c < COLUMNS; c++)
		rows->width[c] = MO_MAX(rows->width[c], r->cells[c] ? strlen(r->cells[c]) : 0);
}

/* Which columns fit: what a narrow terminal does without, in this order. */
static void choose_columns(struct rows *rows, size_t room)
{
	static const int expendable[] = { C_RENDER, C_MODE, C_MEMORY, C_PCI, C_LINK, C_MODEL };

	for (size_t c = 0; c < COLUMNS; c++)
		rows->shown[c] = rows->width[c] > 0;
	for (size_t i = 0; i < ELEMENTSOF(expendable); i++) {
		size_t sum = 0;
		for (size_t c = 0; c < COLUMNS; c++)
			sum += rows->shown[c] ? rows->width[c] + 2 : 0;
		if (sum > room)
			rows->shown[expendable[i]] = false;
	}
}

/* What a node says of itself moves no cursor. */
static void add_plain(struct mo_buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool c1 =
			i + 1 < n && (unsigned char)s[i] == 0xc2 && (unsigned char)s[i + 1] < 0xa0;
		if ((unsigned char)s[i] < ' ' || s[i] == 0x7f || c1)
			mo_buf_str(out, "?");
		else
			mo_buf_add(out, s + i, 1);
		i += c1;
	}
}

/* One line, cut at the width: characters, not bytes. */
static void put_line(struct mo_buf *out, int width, const char *line)
{
	size_t n = strlen(line), at = 0;
	int columns = 0;

	while (n > 0 && line[n - 1] == ' ')
		n--;
	while (at < n && columns < width) {
		size_t step = mo_utf8_next(line + at, n - at);
		at += step ? step : 1;
		columns++;
	}
	if (at < n) {
		while (at > 0 && ((unsigned char)line[at - 1] & 0xc0) == 0x80)
			at--;
		add_plain(out, line, at > 0 ? at - 1 : 0);
		mo_buf_str(out, "…\n");
		return;
	}
	add_plain(out, line, n);
	mo_buf_str(out, "\n");
}

static void put_rows(const struct node_drawing *d, const struct rows *rows, int64_t numa,
		     const char *stem, int width, struct mo_buf *out)
{
	size_t left = 0, others = 0;

	for (size_t i = 0; i < rows->n; i++)
		left += rows->items[i].numa == numa;
	for (size_t i = 0; i < d->info->n_nics; i++)
		others += d->info->nics[i].numa_node == numa &&
			  !draw_nic_serves(d->info, d->info->nics[i].name);
	for (size_t i = 0; i < rows->n; i++) {
		_cleanup_(mo_buf_done) struct mo_buf line = { 0 };
		if (rows->items[i].numa != numa)
			continue;
		mo_buf_printf(&line, "%s%s ", stem, --left || others ? "├─" : "└─");
		for (size_t c = 0; c < COLUMNS; c++)
			if (rows->shown[c])
				mo_buf_printf(&line, "%-*s  ", (int)rows->width[c],
					      rows->items[i].cells[c] ? rows->items[i].cells[c]
					      : c == C_NIC            ? "no NIC"
								      : "");
		put_line(out, width, line.data);
	}
	for (size_t i = 0; i < d->info->n_nics; i++) {
		const struct nic_info *n = &d->info->nics[i];
		if (n->numa_node != numa || draw_nic_serves(d->info, n->name))
			continue;
		_cleanup_(mo_freep) char *name = nic_name(n->name, n), *words = nic_words(n),
					 *line = mo_printf("%s%s NIC %s  %s", stem,
							   --others ? "├─" : "└─", name, words);
		put_line(out, width, line);
	}
}

static bool lists_node(const struct nodeinfo *info, int64_t id)
{
	for (size_t i = 0; i < info->n_numa; i++)
		if (info->numa[i].id == id)
			return true;
	return false;
}

/* Devices whose NUMA node is unknown or not among those listed come together at the end. */
static bool make_rows(const struct node_drawing *d, struct rows *rows)
{
	bool strays = false;

	for (size_t i = 0, end; i < d->info->n_gpus; i = end) {
		end = draw_gpu_end(d->info, i);
		add_row(d, i, end, rows);
		struct row *r = &rows->items[rows->n - 1];
		if (!lists_node(d->info, r->numa))
			r->numa = MO_NONE;
		strays |= r->numa == MO_NONE;
	}
	for (size_t i = 0; i < d->info->n_nics; i++)
		strays |= d->info->nics[i].numa_node == MO_NONE &&
			  !draw_nic_serves(d->info, d->info->nics[i].name);
	if (rows->width[C_NIC])
		rows->width[C_NIC] = MO_MAX(rows->width[C_NIC], strlen("no NIC"));
	return strays;
}

static void put_numa(const struct node_drawing *d, size_t i, bool last, int width,
		     struct mo_buf *out)
{
	const struct numa_node *n = &d->info->numa[i];
	int64_t socket = draw_socket(d->info, i);
	_cleanup_(mo_freep) char *cores = draw_cores(d->info, i),
				 *memory = draw_bytes(n->mem_bytes);
	_cleanup_(mo_freep) char *where =
		socket == MO_NONE ? mo_strdup("") : mo_printf(" (socket %lld)", (long long)socket);
	_cleanup_(mo_freep) char *line =
		mo_printf("%s NUMA %lld%s  %s, %s%s%s", last ? "└─" : "├─", (long long)n->id, where,
			  cores, memory, n->distances && *n->distances ? ", distances " : "",
			  n->distances ? n->distances : "");
	_cleanup_(mo_freep) char *cpus =
		mo_printf("%s  CPUs %s", last ? "  " : "│ ", n->cpus ? n->cpus : "");

	put_line(out, width, line);
	if (n->cpus && *n->cpus)
		put_line(out, width, cpus);
}

void draw_node_text(const struct node_drawing *d, struct mo_buf *out)
{
	_cleanup_(rows_done) struct rows rows = { 0 };
	_cleanup_(mo_freep) char *summary = draw_summary(d->info), *links = draw_links(d->info);
	int width = d->width > 0 ? MO_MAX(d->width, NARROWEST) : WIDTH;
	bool strays = make_rows(d, &rows);

	choose_columns(&rows, (size_t)width - 5);
	_cleanup_(mo_freep) char *head = mo_printf("%s  %s", d->name, summary);
	put_line(out, width, head);
	for (size_t i = 0; i < d->info->n_numa; i++) {
		bool last = i + 1 == d->info->n_numa && !strays;
		put_numa(d, i, last, width, out);
		put_rows(d, &rows, d->info->numa[i].id, last ? "   " : "│  ", width, out);
	}
	if (strays) {
		put_line(out, width, "└─ NUMA node unknown");
		put_rows(d, &rows, MO_NONE, "   ", width, out);
	}
	for (char *p = links, *end; *p; p = end + 1) {
		end = strchr(p, '\n');
		*end = 0;
		put_line(out, width, p);
	}
	for (size_t i = 0; i < d->info->n_findings; i++) {
		_cleanup_(mo_freep) char *line = mo_printf("! %s: %s", d->info->findings[i].object,
							   d->info->findings[i].text);
		put_line(out, INT32_MAX, line);
	}
	for (size_t i = 0; i < d->n_notes; i++) {
		_cleanup_(mo_freep) char *line = mo_printf("! %s", d->notes[i]);
		put_line(out, INT32_MAX, line);
	}
}
