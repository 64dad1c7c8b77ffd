/* Human output: aligned tables, short numbers, state colours, the progress line. Colour only
 * when cli->colour. */
#pragma once
#include <json-c/json.h>
#include "cli/cli.h"
#include "lib/base/util.h"

/* A table: the first row added is the heading. Cells are UTF-8; numbers (heading starting with
 * '>') are right-aligned. */
struct table;
enum cell_kind { CELL_TEXT, CELL_INT, CELL_REAL, CELL_SI, CELL_BYTES, CELL_SECONDS, CELL_PERCENT };
struct column {
	const char *title, *path; /* of the member that is shown */
	enum cell_kind kind;
	int digits; /* CELL_REAL: after the point */
	int less;   /* of two that do not both fit the one with less is shown, else the left one */
	void (*cell)(struct table *t, struct json_object *o); /* instead of path: adds one cell */
};
/* last_min: so many columns of the terminal are enough for the last one, which is cut; 0: nothing
 * is left out */
struct table {
	char **cells;
	size_t n_cells;
	const struct column *columns;
	size_t n_columns, last_min;
};
void table_done(struct table *t);
void table_head(struct table *t, const struct column *columns, size_t n);
void table_row(struct table *t, struct json_object *o);
/* "" and NULL-like values are written "-" by the text_ helpers */
void table_cell(struct table *t, const char *fmt, ...) _printf_(2, 3);
/* Prints to stdout; on a terminal the last column is cut at its width. State words are coloured.
 * False: columns were left out (last_min): those that say nothing first, then those with more of
 * `less`, never the first. */
bool table_print(const struct cli *cli, const struct table *t);

/* All of it: a row for each of items. A terminal gets the columns that fit, and a line when
 * some did not. */
void print_table(const struct cli *cli, const struct column *columns, size_t n,
		 struct json_object *items);

/* Word coloured by its meaning when cli->colour. */
const char *paint_state(const struct cli *cli, const char *state);

/* The numbers in it: "iteration 34/60  57 %  loss 2.913"; empty while there is nothing to tell.
 * room: columns that there are, 0 = any number; with few the bar goes first, and loss, speed and
 * eta stay. Caller frees. */
char *progress_numbers(const struct cli *cli, struct json_object *job, int room);
/* Progress of one Job document:
 * "running  iteration 34/60 ######....  57 %  loss 2.913  12.3k tok/s/GPU  eta 3 s".
 * Caller frees. */
char *progress_line(const struct cli *cli, struct json_object *job, int room);
/* At most width columns of a line with colours in it: what would wrap could not be redrawn in
 * place. */
void print_clipped(const char *s, int width);
/* How many bytes of a line with colours in it go into width columns: up to the last space that
 * fits, or as many letters as do. At least one while there is one. */
size_t text_fold(const char *s, size_t width);
double job_fraction(struct json_object *job); /* 0..1, or MO_NONE_F */
