/* Cost of reading lines by the rules of each engine file: seconds of processor per 10,000 lines of
 * the engine's iteration line, of its whole recorded log, and of plain text. Prints "KIND/what
 * us_per_line" rows; run by tests/bench/bench.py (footprint). */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/core/text/lines.h"
#include "lib/base/fd.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/engine_load.h"

#define LINES 40000

static const char text_line[] = "INFO 2026-11-21 08:30:50 trainer.py:218 rank 3: prefetching shard "
				"000123 of the training data, 48 samples wait in the queue";

static void on_fact(void *arg, const struct line_fact *f)
{
	*(size_t *)arg += f->kind >= 0;
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* All lines of the text one after the other, again and again. */
static double cost_us(struct lines *l, const char *text, size_t n, size_t *facts)
{
	size_t lines = 0;

	for (int warm = 0; warm < 2; warm++) {
		double before = cpu_s();

		for (lines = 0, *facts = 0; lines < LINES;)
			for (const char *p = text, *end = text + n; p < end && lines < LINES;
			     lines++) {
				const char *nl = memchr(p, '\n', (size_t)(end - p));
				size_t len = (size_t)((nl ? nl : end) - p);

				lines_feed(l, p, len, 8, on_fact, facts);
				p += len + 1;
			}
		if (warm)
			return (cpu_s() - before) * 1e6 / (double)lines;
	}
	return 0;
}

/* The line of the log with the most facts: that of an iteration. */
static size_t iteration_line(struct lines *l, const char *text, size_t n, const char **ret)
{
	size_t best = 0, best_len = 0;

	for (const char *p = text, *end = text + n; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((nl ? nl : end) - p), facts = 0;

		lines_feed(l, p, len, 8, on_fact, &facts);
		if (facts > best || (facts == best && facts && len > best_len && facts == 1)) {
			best = facts;
			best_len = len;
			*ret = p;
		}
		p += len + 1;
	}
	return best_len;
}

static int measure(const char *dir, const char *kind)
{
	_cleanup_(mo_freep) char *path = mo_printf("%s/%s/run.log", dir, kind);
	_cleanup_(mo_buf_done) struct mo_buf log = { 0 };
	_cleanup_(lines_freep) struct lines *l = NULL;
	struct mo_error err = { 0 };
	struct engine e;
	const char *line = NULL;
	size_t facts;

	mo_desc_init(&engine_desc, &e);
	if (engine_load(kind, &e, &err) < 0 || lines_new(e.rules, e.n_rules, &l, &err) < 0) {
		fprintf(stderr, "lines: %s\n", mo_error_text(&err, -1));
		return 1;
	}
	mo_desc_done(&engine_desc, &e);
	double text = cost_us(l, text_line, strlen(text_line), &facts);

	printf("%s/text %.3f\n", kind, text);
	if (mo_read_file(path, 1 << 20, &log) < 0)
		return 0;
	printf("%s/log %.3f\n", kind, cost_us(l, log.data, log.len, &facts));
	size_t n = iteration_line(l, log.data, log.len, &line);

	printf("%s/iteration %.3f\n", kind, cost_us(l, line, n, &facts));
	return 0;
}

int main(int argc, char **argv)
{
	int status = argc < 3;

	if (status)
		fprintf(stderr, "usage: lines FIXTURES KIND...\n");
	for (int i = 2; i < argc; i++)
		status |= measure(argv[1], argv[i]);
	return status;
}
