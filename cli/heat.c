/* See heat.h. */
#include "cli/heat.h"

#include <math.h>
#include <string.h>

#include "cli/text.h"
#include "cli/value.h"
#include "daemon/core/state/robust.h"
#include "daemon/core/view/matrix.h"

#define CELLS_MIN 8 /* of a row, however narrow */

/* Distances from the middle of the stage, in standard deviations: here another level begins. The
 * first is seen as a shade only. */
static const double bounds[] = { 1, 3, 6 };
#define LEVELS ((int)ELEMENTSOF(bounds))
/* From far below to far above; blue to yellow, which colour-blind people tell apart too. */
static const struct shade {
	char letter;
	const char *code;
} shades[] = {
	{ '=', "48;5;26;38;5;231" },  { '-', "48;5;67;38;5;231" },  { '.', "48;5;240;38;5;252" },
	{ '.', "48;5;236;38;5;248" }, { '.', "48;5;101;38;5;231" }, { '+', "48;5;178;38;5;16" },
	{ '#', "48;5;226;38;5;16" },
};
static const struct shade unknown = { '?', "2" };

static void append_all(struct json_object *to, struct json_object *from)
{
	for (size_t i = 0; i < js_len(from); i++)
		json_object_array_add(to, json_object_get(js_at(from, i)));
}

static void add_counts(struct json_object *legend, struct json_object *more)
{
	for (size_t i = 0; i < js_len(legend) && i < js_len(more); i++)
		json_object_object_add(js_at(legend, i), "ranks",
				       json_object_new_int64(js_int(js_at(legend, i), "ranks") +
							     js_int(js_at(more, i), "ranks")));
}

bool heat_join(struct json_object *doc, struct json_object *page)
{
	if (js_int(page, "attempt") != js_int(doc, "attempt") ||
	    js_int(page, "ranks") != js_int(doc, "ranks") ||
	    !mo_streq(js_str(page, "metric"), js_str(doc, "metric")))
		return false;
	if (js_str(doc, "letters")) {
		_cleanup_(mo_freep) char *all =
			mo_printf("%s%s", js_str(doc, "letters"), text_or(js_str(page, "letters")));

		json_object_object_add(doc, "letters", json_object_new_string(all));
	}
	append_all(js_get(doc, "values"), js_get(page, "values"));
	add_counts(js_get(doc, "legend"), js_get(page, "legend"));
	append_all(js_get(doc, "worst"), js_get(page, "worst"));
	json_object_object_add(doc, "next", json_object_get(js_get(page, "next")));
	return true;
}

/* The letter that most ranks have; NULL: they have numbers. */
static struct json_object *most_common(struct json_object *doc)
{
	struct json_object *legend = js_get(doc, "legend"), *most = NULL;

	for (size_t i = 0; i < js_len(legend); i++)
		if (!most || js_int(js_at(legend, i), "ranks") > js_int(most, "ranks"))
			most = js_at(legend, i);
	return most;
}

static int by_score(const void *a, const void *b)
{
	double x = fabs(js_real(*(struct json_object *const *)a, "score")),
	       y = fabs(js_real(*(struct json_object *const *)b, "score"));

	return x > y ? -1 : x < y;
}

void heat_pick_worst(struct json_object *doc)
{
	struct json_object *all = js_get(doc, "worst"), *most = most_common(doc), *some;

	if (!all)
		return;
	if (!most)
		json_object_array_sort(all, by_score);
	some = json_object_new_array();
	for (size_t i = 0; i < js_len(all) && js_len(some) < MATRIX_WORST; i++) {
		struct json_object *w = js_at(all, i);

		/* a page may have had another majority than all of them have */
		if (!most || !mo_streq(js_str(w, "word"), js_str(most, "name")))
			json_object_array_add(some, json_object_get(w));
	}
	json_object_object_add(doc, "worst", some);
}

static int level_of(double score)
{
	int n = 0;

	while (n < LEVELS && fabs(score) > bounds[n])
		n++;
	return score < 0 ? -n : n;
}

/* Ranks of one stage. */
static void shade_stage(const double *values, size_t n, double *scratch, const struct shade **ret)
{
	double median = 0, sigma = 0;
	size_t known = 0;

	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i]) && values[i] != MO_NONE_F)
			scratch[known++] = values[i];
	if (known) {
		median = robust_median(scratch, known);
		sigma = matrix_sigma(scratch, known, median);
	}
	for (size_t i = 0; i < n; i++)
		ret[i] = !isfinite(values[i]) || values[i] == MO_NONE_F ? &unknown
			 : sigma > 0 ? &shades[LEVELS + level_of((values[i] - median) / sigma)]
				     : &shades[LEVELS];
}

/* A picture of each rank. Caller frees. */
static const struct shade **shades_of(struct json_object *doc, size_t n, size_t stage)
{
	const struct shade **ret = mo_alloc_array(n + 1, sizeof(*ret));
	_cleanup_(mo_freep) double *values = mo_alloc_array(n + 1, sizeof(*values)),
				   *scratch = mo_alloc_array(n + 1, sizeof(*scratch));
	struct json_object *list = js_get(doc, "values");

	for (size_t i = 0; i < n; i++)
		values[i] = js_real(js_at(list, i), "");
	for (size_t at = 0; at < n; at += stage)
		shade_stage(values + at, MO_MIN(stage, n - at), scratch, ret + at);
	return ret;
}

/* Words that need a person, words that most have, and the rest. */
static const char *code_of(struct json_object *letter, struct json_object *most)
{
	static const char *const bad[] = { "exited", "lost", "collective-stuck", "host-stuck",
					   "gpu-hung" };

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		if (mo_streq(js_str(letter, "name"), bad[i]))
			return shades[2 * LEVELS].code;
	return letter == most ? shades[LEVELS].code : shades[1].code;
}

/* The same where they are letters; *table: the pictures that they point into, the caller's. */
static const struct shade **letters_of(struct json_object *doc, size_t n, struct shade **ret_table)
{
	const struct shade **ret = mo_alloc_array(n + 1, sizeof(*ret));
	struct json_object *legend = js_get(doc, "legend"), *most = most_common(doc);
	struct shade *table = *ret_table = mo_alloc_array(js_len(legend) + 1, sizeof(*table));
	const char *letters = js_str(doc, "letters");

	for (size_t i = 0; i < js_len(legend); i++)
		table[i] = (struct shade){ *text_or(js_str(js_at(legend, i), "letter")),
					   code_of(js_at(legend, i), most) };
	for (size_t i = 0; i < n; i++) {
		ret[i] = &unknown;
		for (size_t k = 0; k < js_len(legend); k++)
			if (table[k].letter == letters[i])
				ret[i] = &table[k];
	}
	return ret;
}

static void add_cells(const struct shade *const *cells, size_t n, bool colour, struct mo_buf *ret)
{
	const char *code = NULL;

	for (size_t i = 0; i < n; i++) {
		if (colour && cells[i]->code != code)
			mo_buf_printf(ret, "\033[0;%sm", code = cells[i]->code);
		mo_buf_add(ret, &cells[i]->letter, 1);
	}
	mo_buf_str(ret, code ? "\033[0m\n" : "\n");
}

static int digits(size_t n)
{
	return n < 10 ? 1 : 1 + digits(n / 10);
}

/* Ranks of a pipeline stage, which follow each other; all, where they are no places in a mesh. */
static size_t stage_size(struct json_object *doc, size_t n)
{
	int64_t pp = js_int(doc, "sizes.pp");

	return MO_MAX(n / (size_t)MO_MAX(pp, (int64_t)1), (size_t)1);
}

void heat_map(struct json_object *doc, int width, bool colour, struct mo_buf *ret)
{
	const char *letters = js_str(doc, "letters");
	size_t n = letters ? strlen(letters) : js_len(js_get(doc, "values")),
	       stage = stage_size(doc, n), tp = (size_t)MO_MAX(js_int(doc, "sizes.tp"), (int64_t)1);
	_cleanup_(mo_freep) struct shade *table = NULL;
	_cleanup_(mo_freep) const struct shade **cells =
		letters ? letters_of(doc, n, &table) : shades_of(doc, n, stage);
	int stages = js_get(doc, "sizes") ? digits(n / stage) : 0, ranks = digits(n);
	size_t room = (size_t)MO_MAX(width - ranks - 2 - (stages ? stages + 3 : 0), CELLS_MIN);

	if (room >= tp) /* the ranks of one layer stay in one line */
		room -= room % tp;
	for (size_t at = 0, end; at < n; at = end) {
		end = MO_MIN(MO_MIN(at + room, at - at % stage + stage), n);
		if (stages && at % stage == 0)
			mo_buf_printf(ret, "pp%*zu ", stages, at / stage);
		else if (stages)
			mo_buf_printf(ret, "%*s", stages + 3, "");
		mo_buf_printf(ret, "%*zu  ", ranks, at);
		add_cells(cells + at, end - at, colour, ret);
	}
}

/* Parts with two spaces between them, as many in a line as fit. */
static void add_part(struct mo_buf *b, size_t *line, int width, const char *part)
{
	size_t n = strlen(part);

	if (*line && *line + 2 + n > (size_t)MO_MAX(width, 1)) {
		mo_buf_str(b, "\n");
		*line = 0;
	}
	mo_buf_printf(b, "%s%s", *line ? "  " : "", part);
	*line += n + (*line ? 2 : 0);
}

void heat_legend(struct json_object *doc, int width, struct mo_buf *ret)
{
	static const char *const levels[] = { ". as its stage", "+ more than 3 deviations above",
					      "# more than 6",  "- more than 3 below",
					      "= more than 6",  "? not known" };
	struct json_object *legend = js_get(doc, "legend");
	size_t line = 0;

	for (size_t i = 0; !legend && i < ELEMENTSOF(levels); i++)
		add_part(ret, &line, width, levels[i]);
	for (size_t i = 0; i < js_len(legend); i++) {
		struct json_object *l = js_at(legend, i);
		_cleanup_(mo_freep) char *part =
			mo_printf("%s %s %s", text_or(js_str(l, "letter")),
				  text_or(js_str(l, "name")), text_int(js_int(l, "ranks")));

		if (js_int(l, "ranks") > 0)
			add_part(ret, &line, width, part);
	}
	mo_buf_str(ret, line ? "\n" : "");
}
