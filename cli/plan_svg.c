/* Plan picture (see plan_svg.h). */
#include "cli/plan_svg.h"

#include "cli/output.h"
#include "cli/value.h"

#define PLANS_SHOWN 8
#define LEFT 240
#define WIDE 620
#define BAR 18
#define ROW 66

struct part { const char *name, *colour; };
/* Okabe-Ito palette and greys. */
static const struct part memory_parts[] = { { "params", "#0072b2" }, { "grads", "#56b4e9" }, { "optimizer", "#009e73" }, { "activations", "#e69f00" }, { "comm", "#cc79a7" }, { "reserve", "#999999" } };
static const struct part time_parts[] = { { "compute", "#0072b2" }, { "a2a", "#d55e00" }, { "pp", "#cc79a7" }, { "dp", "#e69f00" }, { "cp", "#f0e442" }, { "tp", "#56b4e9" }, { "optimizer", "#009e73" }, { "launch", "#999999" } };

static void text(struct mo_buf *b, double x, double y, const char *anchor, const char *s)
{
	mo_buf_printf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	for (; *s; s++)
		if (*s == '<' || *s == '&' || *s == '>')
			mo_buf_printf(b, "&#%d;", *s);
		else
			mo_buf_add(b, s, 1);
	mo_buf_str(b, "</text>\n");
}

static void bar(struct mo_buf *b, struct json_object *values, const struct part *parts, size_t n, double y, double per_unit, const char *unit)
{
	double x = LEFT;
	for (size_t i = 0; i < n; i++) {
		double v = js_real(values, parts[i].name);
		if (v == MO_NONE_F || v <= 0)
			continue;
		mo_buf_printf(b, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>%s %s %s</title></rect>\n", x, y, v * per_unit, BAR, parts[i].colour, parts[i].name,
			      text_real(v, 3), unit);
		x += v * per_unit;
	}
}

static void legend(struct mo_buf *b, const char *title, const struct part *parts, size_t n, double y)
{
	double x = LEFT;
	text(b, LEFT - 10, y + 10, "end", title);
	for (size_t i = 0; i < n; i++, x += 92) {
		mo_buf_printf(b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n", x, y, parts[i].colour);
		text(b, x + 14, y + 10, "start", parts[i].name);
	}
}

static void one_plan(struct mo_buf *b, struct json_object *p, double y, double gb_max, double s_max)
{
	double capacity = js_real(p, "memory_gb.capacity");
	_cleanup_(mo_freep) char *shape = mo_printf("TP%s PP%s VPP%s EP%s CP%s DP%s %s", text_int(js_int(p, "parallelism.tp")), text_int(js_int(p, "parallelism.pp")), text_int(js_int(p, "parallelism.vpp")),
						     text_int(js_int(p, "parallelism.ep")), text_int(js_int(p, "parallelism.cp")), text_int(js_int(p, "parallelism.dp")), text_or(js_str(p, "parallelism.sharding")));
	_cleanup_(mo_freep) char *memory = mo_printf("%s GB%s", text_real(js_real(p, "memory_gb.total"), 1), json_object_get_boolean(js_get(p, "fits")) ? "" : " (too much)");
	_cleanup_(mo_freep) char *step = mo_printf("%s", text_seconds(js_real(p, "step_time_s.total")));
	text(b, LEFT - 10, y + 14, "end", shape);
	bar(b, js_get(p, "memory_gb"), memory_parts, ELEMENTSOF(memory_parts), y, WIDE / gb_max, "GB");
	bar(b, js_get(p, "step_time_s"), time_parts, ELEMENTSOF(time_parts), y + BAR + 4, WIDE / s_max, "s");
	if (capacity > 0)
		mo_buf_printf(b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#d00000\" stroke-width=\"2\"><title>capacity %s GB</title></line>\n", LEFT + capacity * WIDE / gb_max,
			      LEFT + capacity * WIDE / gb_max, y - 3, y + BAR + 3, text_real(capacity, 1));
	text(b, LEFT + WIDE + 12, y + 14, "start", memory);
	text(b, LEFT + WIDE + 12, y + BAR + 18, "start", step);
}

#define LANE 16
#define LANE_GAP 2
#define LABEL_WIDTH 11           /* a box as wide as this has room for a number */

static double timeline_height(const struct timeline *t)
{
	return 52 + (double)t->s.pp * (LANE + LANE_GAP);
}

/* Darker for later chunks. */
static const char *piece_colour(const struct sched_node *n)
{
	static const char *const colours[3][2] = { { "#9ecae9", "#4a90c8" }, { "#a8dcb5", "#3fa567" }, { "#fdd08a", "#e69f00" } };
	return colours[n->op][n->chunk % 2];
}

static void lane(struct mo_buf *b, const struct timeline *t, int64_t rank, double y, double per_second)
{
	static const char *const words[] = { "forward", "backward", "weight gradient" };
	const struct sched_rank *r = &t->s.ranks[rank];
	_cleanup_(mo_freep) char *label = mo_printf("rank %lld", (long long)rank), *idle = mo_printf("idle %.1f %%", t->s.step > 0 ? 100 * (1 - r->busy / t->s.step) : 0);
	text(b, LEFT - 10, y + 12, "end", label);
	text(b, LEFT + WIDE + 12, y + 12, "start", idle);
	mo_buf_printf(b, "<rect x=\"%d\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"#eee\"/>\n", LEFT, y, t->s.step * per_second, LANE);
	for (size_t i = 0; i < r->n; i++) {
		const struct sched_node *n = &r->nodes[i];
		double x = LEFT + n->start * per_second, width = (n->end - n->start) * per_second;
		mo_buf_printf(b, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"%s><title>%s %d, chunk %d: %.1f to %.1f ms</title></rect>\n", x, y, width, LANE, piece_colour(n),
			      width > 3 ? " stroke=\"#fff\" stroke-width=\"0.6\"" : "", words[n->op], n->micro, n->chunk, n->start * 1000, n->end * 1000);
		if (width >= LABEL_WIDTH)
			mo_buf_printf(b, "<text x=\"%.2f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"9\">%d</text>\n", x + width / 2, y + 11.5, n->micro);
	}
}

static void pipeline(struct mo_buf *b, const struct timeline *t, double y, double per_second)
{
	text(b, 12, y + 12, "start", t->title);
	for (int64_t i = 0; i < t->s.pp; i++)
		lane(b, t, i, y + 22 + (double)i * (LANE + LANE_GAP), per_second);
}

static void pipelines(struct mo_buf *b, const struct timeline *lines, size_t n, double y)
{
	static const struct part ops[] = { { "forward", "#4a90c8" }, { "backward", "#3fa567" }, { "weights", "#e69f00" }, { "idle", "#eee" } };
	double longest = 1e-9;
	for (size_t i = 0; i < n; i++)
		longest = MO_MAX(longest, lines[i].s.step);
	if (n)
		legend(b, "pipeline", ops, ELEMENTSOF(ops), y);
	y += 26;
	for (size_t i = 0; i < n; i++) {
		pipeline(b, &lines[i], y, WIDE / longest);
		y += timeline_height(&lines[i]);
	}
}

void plan_svg(struct json_object *doc, const struct timeline *lines, size_t n_lines, struct mo_buf *b)
{
	struct json_object *plans = js_get(doc, "plans");
	size_t n = MO_MIN(js_len(plans), (size_t)PLANS_SHOWN);
	double gb_max = 1e-9, s_max = 1e-9;
	for (size_t i = 0; i < n; i++) {
		struct json_object *p = js_at(plans, i);
		gb_max = MO_MAX(gb_max, MO_MAX(js_real(p, "memory_gb.total"), js_real(p, "memory_gb.capacity")));
		s_max = MO_MAX(s_max, js_real(p, "step_time_s.total"));
	}
	int bars = 96 + (int)n * ROW, height = bars + (n_lines ? 26 : 0);
	for (size_t i = 0; i < n_lines; i++)
		height += (int)timeline_height(&lines[i]);
	mo_buf_printf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#111\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		      LEFT + WIDE + 150, height);
	_cleanup_(mo_freep) char *title = mo_printf("%s x %s: memory per GPU (upper bar; red line = capacity) and step time (lower bar)", text_int(js_int(doc, "hardware.gpus")), text_or(js_str(doc, "hardware.gpu")));
	text(b, 12, 22, "start", title);
	legend(b, "memory", memory_parts, ELEMENTSOF(memory_parts), 36);
	legend(b, "step", time_parts, ELEMENTSOF(time_parts), 54);
	for (size_t i = 0; i < n; i++)
		one_plan(b, js_at(plans, i), 86 + (double)i * ROW, gb_max, s_max);
	pipelines(b, lines, n_lines, bars);
	mo_buf_str(b, "</svg>\n");
}
