/* Any bytes as an output line, against rules of several shapes. The first byte 0 makes the rest a
 * pattern, which may be refused but must not hurt. ROOMS: acore model base */
#include <stdlib.h>
#include "agent/core/text/lines.h"

static char step[] =
	"step (?<iteration>\\d+)/(?<steps>\\d+) loss (?<loss>\\S+)(?: grad_norm "
	"(?<grad_norm>\\S+))?(?: tokens (?<tokens>[\\d,]+) tokens_per_s (?<tokens_per_s>\\S+))?";
static char saved[] = "saved checkpoint (?<iteration>\\d+) (?<path>\\S+)";
static char empty[] = "(?<loss>\\d*)";
static char training[] = "training", train[] = "train";

static void on_fact(void *arg, const struct line_fact *f)
{
	size_t *n = arg;

	if (++*n > 10000 || f->kind < 0 || f->kind >= _LINE_KIND_N)
		abort();
}

static void feed(const struct line_rule *rules, size_t n_rules, const uint8_t *data, size_t size)
{
	_cleanup_(lines_freep) struct lines *l = NULL;
	size_t n = 0;

	if (lines_new(rules, n_rules, &l, NULL) == 0)
		lines_feed(l, (const char *)data, size, 4, on_fact, &n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct line_rule rules[] = {
		{ .kind = LINE_SAMPLE, .pattern = step, .missing_loss_is_nan = true },
		{ .kind = LINE_SAVED, .pattern = saved },
		{ .kind = LINE_SAMPLE, .pattern = empty },
		{ .kind = LINE_PHASE, .pattern = training, .phase = train },
	};

	if (size && data[0] == 0) {
		_cleanup_(mo_freep) char *pattern = mo_strndup((const char *)data + 1, size - 1);
		const struct line_rule own = { .kind = LINE_SAMPLE, .pattern = pattern };
		feed(&own, 1, data + 1, size - 1);
		return 0;
	}
	feed(rules, sizeof(rules) / sizeof(rules[0]), data, size);
	return 0;
}
