/* Pipelines as pictures (see plan_lanes.h). A pipeline that would be wider than WIDTH_MAX loses
 * its middle, where every round looks like the one before: start and end are what bubbles are
 * seen in. */
#include "cli/plan_lanes.h"

#include <math.h>
#include <string.h>

#include "cli/output.h"

#define WIDTH_MAX 2600.0
#define PIECE_WIDTH 13.0 /* a forward piece as wide as this can be read */
#define PIECE_LEAST 6.5  /* as wide as this when the picture is enlarged */
#define CUT_WIDTH 30.0
#define LANE 18
#define LANE_LOW 11 /* of deep pipelines */
#define DEEP 40     /* stages */
#define LANE_GAP 3
#define HEAD 62 /* above the rows: two lines and the column titles */
#define FOOT 34 /* below them: the time scale */
#define SHADES 8
/* more pieces have no texts of their own: the picture would be slow */
#define PIECES_TITLED 12000

void svg_text(struct mo_buf *b, double x, double y, const char *anchor, const char *s)
{
	mo_buf_printf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	for (; *s; s++)
		if (*s == '<' || *s == '&' || *s == '>')
			mo_buf_printf(b, "&#%d;", *s);
		else
			mo_buf_add(b, s, 1);
	mo_buf_str(b, "</text>\n");
}

void svg_legend(struct mo_buf *b, const char *title, const struct svg_colour *parts, size_t n,
		double y)
{
	double x = SVG_LEFT;
	svg_text(b, SVG_LEFT - 10, y + 10, "end", title);
	for (size_t i = 0; i < n; i++) {
		mo_buf_printf(b,
			      "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\" "
			      "stroke=\"#999\" stroke-width=\"0.5\"/>\n",
			      x, y, parts[i].colour);
		svg_text(b, x + 15, y + 10, "start", parts[i].name);
		x += 34 + 6.6 * (double)strlen(parts[i].name);
	}
}

/* ---- sizes */
static double typical_forward(const struct timeline *t)
{
	double sum = 0;
	size_t n = 0;
	for (int64_t i = 0; i < t->s.pp; i++)
		for (size_t k = 0; k < t->s.ranks[i].n; k++)
			if (t->s.ranks[i].nodes[k].op == SCHED_F) {
				sum += t->s.ranks[i].nodes[k].end - t->s.ranks[i].nodes[k].start;
				n++;
			}
	return n ? sum / (double)n : 0;
}

static double lane_height(const struct timeline *t)
{
	return t->s.pp > DEEP ? LANE_LOW : LANE;
}

static double timeline_height(const struct timeline *t)
{
	return HEAD + (double)t->s.pp * (lane_height(t) + LANE_GAP) + FOOT;
}

struct lanes lanes_layout(const struct timeline *lines, size_t n, double least_width)
{
	struct lanes l = { .width = least_width };
	/* pieces: per second */
	double longest = 1e-9, pieces = 0;
	for (size_t i = 0; i < n; i++) {
		double f = typical_forward(&lines[i]);
		longest = MO_MAX(longest, lines[i].s.step);
		pieces = MO_MAX(pieces, f > 0 ? 1 / f : 0);
		l.height += timeline_height(&lines[i]);
	}
	l.per_second = MO_MAX(MO_MIN(pieces * PIECE_WIDTH,
				     MO_MAX(pieces * PIECE_LEAST, WIDTH_MAX / longest)),
			      least_width / longest);
	l.width = MO_MIN(MO_MAX(l.width, longest * l.per_second), WIDTH_MAX);
	l.height += n ? 28 : 0;
	return l;
}

/* ---- colours: darker for later chunks */
static const int shades[3][2][3] = { { { 0xc9, 0xdf, 0xf4 }, { 0x5b, 0x9b, 0xd5 } },
				     { { 0xcd, 0xeb, 0xd0 }, { 0x55, 0xb0, 0x6e } },
				     { { 0xfd, 0xe3, 0xb0 }, { 0xee, 0xa5, 0x3a } } };
static const char letters[] = "fbw";

void lanes_style(struct mo_buf *b)
{
	for (size_t op = 0; op < ELEMENTSOF(shades); op++)
		for (int i = 0; i < SHADES; i++) {
			int c[3];
			for (int k = 0; k < 3; k++)
				c[k] = shades[op][0][k] +
				       (shades[op][1][k] - shades[op][0][k]) * i / (SHADES - 1);
			mo_buf_printf(b, ".%c%d{fill:#%02x%02x%02x}", letters[op], i,
				      (unsigned)c[0], (unsigned)c[1], (unsigned)c[2]);
		}
	mo_buf_str(b, ".n{font-size:9px;text-anchor:middle}.s{font-size:7px;text-anchor:middle}.t{"
		      "font-size:5px;text-anchor:middle}.l{stroke:#fff;stroke-width:.7}.h{font-"
		      "weight:bold}.d{fill:#555}\n");
}

static int shade_of(const struct sched *s, int32_t chunk)
{
	return s->chunks < 2 ? SHADES / 2
			     : (int)(MO_MIN(MO_MAX((int64_t)chunk, 0), s->chunks - 1) *
				     (SHADES - 1) / (s->chunks - 1));
}

/* ---- one timeline: seconds to points, without what is cut out */
/* [from, to) is cut out; from = to: nothing */
struct view {
	const struct timeline *t;
	double per_second, width, from, to;
	bool titled;
};

static struct view view_of(const struct lanes *l, const struct timeline *t)
{
	struct view v = { .t = t, .per_second = l->per_second, .width = t->s.step * l->per_second };
	size_t pieces = 0;
	if (v.width > l->width + 1) {
		v.from = (l->width - CUT_WIDTH) / 2 / l->per_second;
		v.to = t->s.step - v.from;
		v.width = l->width;
	}
	for (int64_t i = 0; i < t->s.pp; i++)
		for (size_t k = 0; k < t->s.ranks[i].n; k++)
			pieces += t->s.ranks[i].nodes[k].end <= v.from ||
				  t->s.ranks[i].nodes[k].start >= v.to;
	v.titled = pieces <= PIECES_TITLED;
	return v;
}

static double place(const struct view *v, double seconds)
{
	return SVG_LEFT + (seconds < v->to ? seconds * v->per_second
					   : v->width - (v->t->s.step - seconds) * v->per_second);
}

static void piece(struct mo_buf *b, const struct view *v, const struct sched_node *n, double y,
		  double height)
{
	static const char *const words[] = { "forward", "backward", "weight gradient" };
	double start = n->start, end = n->end;
	if (v->to > v->from && start < v->from)
		end = MO_MIN(end, v->from);
	else if (v->to > v->from)
		start = MO_MAX(start, v->to);
	double x = place(v, start), width = (end - start) * v->per_second;
	if (width <= 0)
		return;
	mo_buf_printf(b,
		      "<rect class=\"%c%d%s\" x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%.0f\"",
		      letters[n->op], shade_of(&v->t->s, n->chunk), width > 3 ? " l" : "", x, y,
		      MO_MAX(width, 0.3), height);
	if (v->titled)
		mo_buf_printf(b, "><title>%s %d, chunk %d: %.1f to %.1f ms</title></rect>",
			      words[n->op], n->micro, n->chunk, n->start * 1000, n->end * 1000);
	else
		mo_buf_str(b, "/>");
	int digits = n->micro > 99 ? 3 : n->micro > 9 ? 2 : 1;
	if (width >= 5.2 * digits + 2 && height >= LANE)
		mo_buf_printf(b, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\">%d</text>", x + width / 2,
			      y + 12.5, n->micro);
	else if (width >= 2.9 * digits + 0.5)
		mo_buf_printf(b, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%d</text>",
			      width >= 4 * digits + 1 ? "s" : "t", x + width / 2,
			      y + height / 2 + 2.5, n->micro);
	mo_buf_str(b, "\n");
}

static void lane(struct mo_buf *b, const struct view *v, int64_t rank, double y)
{
	const struct timeline *t = v->t;
	const struct sched_rank *r = &t->s.ranks[rank];
	double height = lane_height(t), middle = y + height / 2 + 4;
	_cleanup_(mo_freep) char *label = mo_printf("pp %lld", (long long)rank),
				 *idle = mo_printf("%.1f %%",
						   t->s.step > 0 ? 100 * (1 - r->busy / t->s.step)
								 : 0);
	svg_text(b, SVG_LEFT - 10, middle, "end", label);
	svg_text(b, SVG_LEFT + v->width + 62, middle, "end", idle);
	if (t->memory_gb && t->memory_gb[rank] != MO_NONE_F) {
		_cleanup_(mo_freep) char *memory = mo_printf("%.1f GB", t->memory_gb[rank]);
		svg_text(b, SVG_LEFT + v->width + 150, middle, "end", memory);
	}
	mo_buf_printf(b,
		      "<rect x=\"%d\" y=\"%.0f\" width=\"%.1f\" height=\"%.0f\" "
		      "fill=\"#ececec\"/>\n",
		      SVG_LEFT, y, v->width, height);
	for (size_t i = 0; i < r->n; i++)
		if (r->nodes[i].start < v->from || r->nodes[i].end > v->to)
			piece(b, v, &r->nodes[i], y, height);
}

/* 1, 2 or 5 times a power of ten. */
static double round_step(double least)
{
	double power = pow(10, floor(log10(least))), times = least / power;
	return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static void scale_line(struct mo_buf *b, const struct view *v, double top, double y)
{
	double each = round_step(MO_MAX(90 / v->per_second, 1e-6)), step = v->t->s.step;
	bool seconds = step >= 2;
	int digits = seconds && each < 1 ? each < 0.1 ? 2 : 1 : 0;
	for (int64_t i = 0; (double)i * each <= step * 1.0001; i++) {
		double s = (double)i * each;

		if (s > v->from - 110 / v->per_second && s < v->to + 110 / v->per_second &&
		    v->to > v->from)
			continue;
		_cleanup_(mo_freep) char *label =
			mo_printf(seconds ? "%.*f s" : "%.*f ms", digits, seconds ? s : s * 1000);
		mo_buf_printf(b,
			      "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" "
			      "stroke=\"#888\" stroke-width=\"0.7\"/>",
			      place(v, s), place(v, s), y, y + 5);
		mo_buf_printf(b,
			      "<text class=\"d\" x=\"%.1f\" y=\"%.1f\" "
			      "text-anchor=\"middle\">%s</text>\n",
			      place(v, s), y + 17, label);
	}
	if (v->to <= v->from)
		return;
	double x = SVG_LEFT + (v->width - CUT_WIDTH) / 2;
	_cleanup_(mo_freep) char *left_out =
		mo_printf("%.3g s like these left out", v->to - v->from);
	mo_buf_printf(b,
		      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#fff\"/>",
		      x, top - 2, CUT_WIDTH, y - top + 2);
	mo_buf_printf(b,
		      "<path d=\"M%.1f %.1fV%.1fM%.1f %.1fV%.1f\" stroke=\"#888\" "
		      "stroke-dasharray=\"3 3\" fill=\"none\"/>\n",
		      x + 2, top - 2, y, x + CUT_WIDTH - 2, top - 2, y);
	svg_text(b, x + CUT_WIDTH / 2, y + 17, "middle", left_out);
}

static void timeline(struct mo_buf *b, const struct view *v, double y)
{
	const struct timeline *t = v->t;
	double top = y + HEAD, each = lane_height(t) + LANE_GAP;
	mo_buf_printf(b, "<g class=\"h\">");
	svg_text(b, 12, y + 14, "start", t->title);
	mo_buf_str(b, "</g><g class=\"d\">\n");
	if (t->more)
		svg_text(b, 12, y + 32, "start", t->more);
	svg_text(b, SVG_LEFT - 10, top - 8, "end", "rank");
	svg_text(b, SVG_LEFT + v->width + 62, top - 8, "end", "idle");
	if (t->memory_gb)
		svg_text(b, SVG_LEFT + v->width + 150, top - 8, "end", "memory");
	mo_buf_str(b, "</g>\n");
	for (int64_t i = 0; i < t->s.pp; i++)
		lane(b, v, i, top + (double)i * each);
	scale_line(b, v, top, top + (double)t->s.pp * each);
}

void lanes_draw(const struct lanes *l, const struct timeline *lines, size_t n, double y,
		struct mo_buf *b)
{
	static const struct svg_colour ops[] = {
		{ .name = "forward", .colour = "#92bde5" },
		{ .name = "backward", .colour = "#91cea0" },
		{ .name = "weight gradients, where they are a piece of their own",
		  .colour = "#f6c475" },
		{ .name = "idle", .colour = "#ececec" }
	};
	if (!n)
		return;
	svg_legend(b, "pipeline", ops, ELEMENTSOF(ops), y);
	svg_text(b, SVG_LEFT + 620, y + 10, "start",
		 "numbers: micro-batches; darker: later chunks of a rank's layers");
	y += 28;
	for (size_t i = 0; i < n; i++) {
		struct view v = view_of(l, &lines[i]);
		timeline(b, &v, y);
		y += timeline_height(&lines[i]);
	}
}
