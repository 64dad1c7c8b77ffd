/* Plan picture (see plan_svg.h). */
#include "cli/plan_svg.h"

#include <string.h>

#include "cli/output.h"
#include "cli/plan_lanes.h"
#include "cli/text.h"
#include "cli/value.h"

#define PLANS_SHOWN 8
#define WIDE 1100
#define BAR 18
#define ROW 62

/* Okabe-Ito palette and greys. */
static const struct svg_colour memory_parts[] = {
	{ "parameters", "#0072b2", "params", true }, { "gradients", "#56b4e9", "grads" },
	{ "optimizer", "#009e73", "optimizer" },     { "activations", "#e69f00", "activations" },
	{ "exchange buffers", "#cc79a7", "comm" },   { "reserve", "#999999", "reserve" },
};
static const struct svg_colour time_parts[] = {
	{ "compute", "#0072b2", "compute", true },
	{ "all-to-all", "#d55e00", "a2a" },
	{ "pipeline: bubble and transfers", "#cc79a7", "pp" },
	{ "gradients", "#e69f00", "dp" },
	{ "context", "#f0e442", "cp" },
	{ "tensor", "#56b4e9", "tp" },
	{ "optimizer", "#009e73", "optimizer" },
	{ "launches", "#999999", "launch" },
};

static void bar(struct mo_buf *b, struct json_object *values, const struct svg_colour *parts,
		size_t n, double y, double per_unit, const char *unit)
{
	double x = SVG_LEFT;
	for (size_t i = 0; i < n; i++) {
		double v = js_real(values, parts[i].key), width = v * per_unit;
		if (v == MO_NONE_F || v <= 0)
			continue;
		mo_buf_printf(b,
			      "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" "
			      "fill=\"%s\"><title>%s %s %s</title></rect>\n",
			      x, y, width, BAR, parts[i].colour, parts[i].name, text_real(v, 3),
			      unit);
		_cleanup_(mo_freep) char *label =
			mo_printf("%s %s", text_real(v, v < 10 ? 2 : 1), unit);
		if (width > 7.5 * (double)strlen(label)) {
			mo_buf_printf(b, "<g fill=\"%s\">", parts[i].dark ? "#fff" : "#111");
			svg_text(b, x + width / 2, y + 13, "middle", label);
			mo_buf_str(b, "</g>\n");
		}
		x += width;
	}
}

static void one_plan(struct mo_buf *b, struct json_object *p, double y, double gb_max, double s_max)
{
	double capacity = js_real(p, "memory_gb.capacity");
	_cleanup_(mo_freep) char *etp =
		js_int(p, "parallelism.etp") > 1
			? mo_printf(" ETP%s", text_int(js_int(p, "parallelism.etp")))
			: mo_strdup("");
	_cleanup_(mo_freep) char *shape =
		mo_printf("TP%s PP%s VPP%s EP%s%s CP%s DP%s", text_int(js_int(p, "parallelism.tp")),
			  text_int(js_int(p, "parallelism.pp")),
			  text_int(js_int(p, "parallelism.vpp")),
			  text_int(js_int(p, "parallelism.ep")), etp,
			  text_int(js_int(p, "parallelism.cp")),
			  text_int(js_int(p, "parallelism.dp")));
	_cleanup_(mo_freep) char *memory =
		mo_printf("%s GB%s", text_real(js_real(p, "memory_gb.total"), 1),
			  json_object_get_boolean(js_get(p, "fits")) ? "" : " (too much)");
	_cleanup_(mo_freep) char *step =
		mo_printf("%s s +/- %s %%", text_real(js_real(p, "step_time_s.total"), 2),
			  text_real(js_real(p, "error_pct"), 0));
	_cleanup_(mo_freep) char *more =
		mo_printf("%s, %s%s%s", text_or(js_str(p, "parallelism.sharding")),
			  text_or(js_str(p, "schedule")),
			  mo_streq(js_str(p, "recompute"), "none") ? "" : ", recompute ",
			  mo_streq(js_str(p, "recompute"), "none")
				  ? ""
				  : text_or(js_str(p, "recompute")));
	svg_text(b, SVG_LEFT - 10, y + BAR + 18, "end", more);
	svg_text(b, SVG_LEFT - 10, y + 14, "end", shape);
	bar(b, js_get(p, "memory_gb"), memory_parts, ELEMENTSOF(memory_parts), y, WIDE / gb_max,
	    "GB");
	bar(b, js_get(p, "step_time_s"), time_parts, ELEMENTSOF(time_parts), y + BAR + 4,
	    WIDE / s_max, "s");
	if (capacity > 0)
		mo_buf_printf(b,
			      "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" "
			      "stroke=\"#d00000\" stroke-width=\"2\"><title>capacity %s "
			      "GB</title></line>\n",
			      SVG_LEFT + capacity * WIDE / gb_max,
			      SVG_LEFT + capacity * WIDE / gb_max, y - 3, y + BAR + 3,
			      text_real(capacity, 1));
	svg_text(b, SVG_LEFT + WIDE + 12, y + 14, "start", memory);
	svg_text(b, SVG_LEFT + WIDE + 12, y + BAR + 18, "start", step);
}

void plan_svg(struct json_object *doc, const struct timeline *lines, size_t n_lines,
	      struct mo_buf *b)
{
	struct json_object *plans = js_get(doc, "plans");
	size_t n = MO_MIN(js_len(plans), (size_t)PLANS_SHOWN);
	double gb_max = 1e-9, s_max = 1e-9;
	for (size_t i = 0; i < n; i++) {
		struct json_object *p = js_at(plans, i);
		gb_max = MO_MAX(gb_max, MO_MAX(js_real(p, "memory_gb.total"),
					       js_real(p, "memory_gb.capacity")));
		s_max = MO_MAX(s_max, js_real(p, "step_time_s.total"));
	}
	struct lanes lanes = lanes_layout(lines, n_lines, WIDE);
	double bars = 96 + (double)n * ROW;
	mo_buf_printf(b,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#111\" "
		      "role=\"img\">\n<title>moectl plan</title><style>\n",
		      SVG_LEFT + lanes.width + SVG_RIGHT, bars + lanes.height + 8);
	lanes_style(b);
	mo_buf_str(b, "</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
	_cleanup_(mo_freep) char *title = mo_printf("%s x %s: memory per GPU (upper bar; red line: "
						    "what a GPU has) and step time (lower bar)",
						    text_int(js_int(doc, "hardware.gpus")),
						    text_or(js_str(doc, "hardware.gpu")));
	svg_text(b, 12, 22, "start", title);
	svg_legend(b, "memory", memory_parts, ELEMENTSOF(memory_parts), 36);
	svg_legend(b, "step", time_parts, ELEMENTSOF(time_parts), 54);
	for (size_t i = 0; i < n; i++)
		one_plan(b, js_at(plans, i), 86 + (double)i * ROW, gb_max, s_max);
	lanes_draw(&lanes, lines, n_lines, bars, b);
	mo_buf_str(b, "</svg>\n");
}
