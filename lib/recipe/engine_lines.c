/* Rules of printed lines, of an engine file and of a recipe (engine_lines.h). Patterns are
 * compiled here, so that a bad one is found with its place when the file is read and never on a
 * node. */
#include "lib/recipe/engine_lines.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/engine_pairs.h"
#include "lib/recipe/runaway.h"
#include "lib/recipe/schema_scalar.h"

/* Groups of line patterns: fields of a sample and what marks checkpoints (lib/model/engine.h). */
static const char *const group_names[] = {
	"iteration",      "steps",  "loss",   "grad_norm",    "lr",
	"step_ms",        "step_s", "tokens", "tokens_per_s", "tokens_per_s_per_gpu",
	"tflops_per_gpu", "mfu",    "mem_gb", "mem_gib",      "mem_mib",
	"skipped",        "nan",    "path",   "seconds",      "consumed_samples",
	"batch_samples"
};
static const char *const needed_names[] = {
	"loss",           "grad_norm", "lr",      "step_ms", "tokens", "tokens_per_s_per_gpu",
	"tflops_per_gpu", "mfu",       "skipped", "nan"
};
static const char *const words_kind[] = { "sample",  "phase", "saved", "saving",
					  "resumed", "ended", NULL };
const char *const engine_phases[6] = { "init", "load", "train", "save", "eval", NULL };

void engine_pattern_check(struct reader *r, const struct ynode *v, const char *needed)
{
	int code;
	PCRE2_SIZE offset;
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)v->text, PCRE2_ZERO_TERMINATED, PCRE2_DUPNAMES,
				       &code, &offset, NULL);
	uint32_t n = 0, size = 0;
	PCRE2_SPTR table = NULL;
	bool found = !needed;

	if (!re) {
		PCRE2_UCHAR text[256] = "";

		pcre2_get_error_message(code, text, sizeof(text));
		errors_at(r->errors, v, NULL, "pattern: %s, at its character %zu",
			  (const char *)text, (size_t)offset + 1);
		return;
	}
	pcre2_pattern_info(re, PCRE2_INFO_NAMECOUNT, &n);
	pcre2_pattern_info(re, PCRE2_INFO_NAMEENTRYSIZE, &size);
	pcre2_pattern_info(re, PCRE2_INFO_NAMETABLE, &table);
	for (uint32_t i = 0; i < n; i++) {
		/* two bytes of group number come first */
		const char *name = (const char *)table + i * size + 2;

		found = found || mo_streq(name, needed);
		if (mo_enum_parse(group_names, ELEMENTSOF(group_names), name) < 0)
			errors_at(r->errors, v, NULL, "pattern: unknown group '%s'", name);
	}
	if (!found)
		errors_at(r->errors, v, NULL, "pattern: it needs a group (?<%s>...)", needed);
	if (pattern_runs_away(v->text))
		errors_at(r->errors, v,
			  "a repetition inside a repetition, such as (a+)+, tries every way to "
			  "divide a text: write a+",
			  "pattern: it backtracks without end on 64 equal characters");
	pcre2_code_free(re);
}

static void read_pattern(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct line_rule *rule = r->bases[0];
	bool begin = mo_streq(k->path, "begin");

	/* A loss without an iteration is that of the iteration that was read last. */
	if (value_text(r, k->path, v, begin ? &rule->begin : &rule->pattern))
		engine_pattern_check(r, v,
				     rule->kind == LINE_SAMPLE &&
						     (begin || !strstr(v->text, "(?<loss>"))
					     ? "iteration"
					     : NULL);
}

/* Keys of printed pairs (or members of a JSON object) and the values of a sample that they are. */
static void read_targets(struct reader *r, const char *what, const struct ynode *v, struct kv **ret,
			 size_t *n_ret)
{
	engine_pairs_read(r, what, v, ret, n_ret);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++) {
		const struct ynode *value = v->items[i].value;
		const char *near =
			value->kind == YAML_SCALAR
				? mo_near_miss(value->text, group_names, ELEMENTSOF(group_names))
				: NULL;
		_cleanup_(mo_freep) char *hint =
			near ? mo_printf("did you mean '%s'?", near) : NULL;

		if (value->kind == YAML_SCALAR &&
		    (mo_enum_parse(group_names, ELEMENTSOF(group_names), value->text) < 0 ||
		     mo_streq(value->text, "path")))
			errors_at(r->errors, value, hint, "%s: '%s' is no value of a sample", what,
				  value->text);
	}
}

static void read_fields(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct line_rule *rule = r->bases[0];

	read_targets(r, "fields", v, &rule->fields, &rule->n_fields);
}

#define L(f, t, ...) \
	{ \
		.path = #f, .type = (t), .offset = offsetof(struct line_rule, f), ##__VA_ARGS__ \
	}
static const struct key line_keys[] = {
	L(kind, KEY_ENUM, .words = words_kind, .required = true),
	{ .path = "pattern", .type = KEY_CUSTOM, .read = read_pattern },
	{ .path = "begin", .type = KEY_CUSTOM, .read = read_pattern },
	L(separator, KEY_TEXT),
	{ .path = "fields", .type = KEY_CUSTOM, .read = read_fields },
	L(needs, KEY_LIST, .count_offset = offsetof(struct line_rule, n_needs)),
	L(phase, KEY_WORD, .words = engine_phases),
	L(iteration_offset, KEY_INT, .min = -1000000, .max = 1000000),
	L(missing_loss_is_nan, KEY_BOOL),
	L(of_steps, KEY_BOOL),
};

static void check_line(struct reader *r, const struct ynode *item, const struct line_rule *rule)
{
	if (rule->kind == LINE_PHASE && ynode_is_null(ynode_get(item, "phase")))
		errors_at(r->errors, item, NULL, "a phase rule needs 'phase'");
	if (rule->of_steps && !strstr(rule->pattern ? rule->pattern
				      : rule->begin ? rule->begin
						    : "",
				      "(?<steps>"))
		errors_at(r->errors, ynode_get(item, "of_steps"), NULL,
			  "lines: of_steps needs a group (?<steps>...)");
	if (!ynode_get(item, "pattern") == !ynode_get(item, "begin"))
		errors_at(r->errors, item, NULL,
			  "lines: a rule needs either 'pattern', or 'begin' with 'fields'");
	if (!ynode_get(item, "begin") != !ynode_get(item, "fields"))
		errors_at(r->errors, item, NULL, "lines: 'begin' and 'fields' go together");
	if (ynode_get(item, "separator") && !ynode_get(item, "fields"))
		errors_at(r->errors, ynode_get(item, "separator"), NULL,
			  "lines: 'separator' is for 'fields'");
	for (size_t i = 0; i < rule->n_needs; i++)
		if (mo_enum_parse(needed_names, ELEMENTSOF(needed_names), rule->needs[i]) < 0)
			errors_at(r->errors, ynode_get(item, "needs"), NULL,
				  "lines: needs: '%.60s' is no value that a sample keeps, such as "
				  "loss or step_ms",
				  rule->needs[i]);
}

void engine_lines_read(struct recipe_errors *errors, const char *what, const struct ynode *v,
		       struct line_rule **ret, size_t *n_ret)
{
	if (v->kind != YAML_LIST) {
		errors_at(errors, v, NULL,
			  "%s: expected a list of {kind, pattern} or {kind, begin, fields}", what);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *item = v->items[i].value;
		struct line_rule *rule = mo_vec_add(&line_rule_desc, (void **)ret, n_ret);
		struct reader lines = { .errors = errors,
					.keys = line_keys,
					.n_keys = ELEMENTSOF(line_keys),
					.bases = { rule } };

		if (item->kind != YAML_MAP) {
			errors_at(errors, item, NULL, "%s: expected {kind, pattern}", what);
			continue;
		}
		schema_read(&lines, "", item);
		check_line(&lines, item, rule);
	}
}
