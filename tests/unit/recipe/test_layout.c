/* checkpoint.layout and checkpoint.resume_args: what a text means, and every way to write it wrong,
 * with its place. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/desc.h"
#include "lib/recipe/layout_text.h"

#include "tests/unit/recipe/read.h"

#define HEAD \
	"recipe: 1\nname: a\nengine: {kind: torch, entry: /x/train.py}\ncluster: {gpus: 1}\n" \
	"checkpoint:\n  dir: /c\n"

static const struct {
	const char *text, *entry, *subdir, *marker;
	bool unnumbered;
} good[] = {
	{ "ckpt.pt", "^ckpt\\.pt$", NULL, NULL, true },
	{ "last/", "^last$", NULL, NULL, true },
	{ "out/last/model.pt", "^model\\.pt$", "out/last", NULL, true },
	{ "best*.pt", "^best[^/]*?\\.pt$", NULL, NULL, true },
	{ "ckpt_{iteration}.pt", "^ckpt_(?<iteration>\\d+)\\.pt$", NULL, NULL, false },
	{ "epoch=*-step={iteration}.ckpt", "^epoch\\=[^/]*?\\-step\\=(?<iteration>\\d+)\\.ckpt$",
	  NULL, NULL, false },
	{ "e=*-step={iteration}-*.pt", "^e\\=(?>[^/]*?\\-step\\=(?<iteration>\\d+)\\-)[^/]*?\\.pt$",
	  NULL, NULL, false },
	{ "**x*", "^(?>[^/]*?)(?>[^/]*?x)[^/]*?$", NULL, NULL, true },
	{ "out/checkpoint-{iteration}/", "^checkpoint\\-(?<iteration>\\d+)$", "out", NULL, false },
	{ "checkpoint-{iteration}/trainer_state.json", "^checkpoint\\-(?<iteration>\\d+)$", NULL,
	  "trainer_state.json", false },
	{ "{iteration}/a/DONE", "^(?<iteration>\\d+)$", NULL, "a/DONE", false },
};

static void what_a_text_means(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(good); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf(HEAD
				  "  layout: '%s'\n"
				  "  resume_args: [--init_from=resume, '--from={dir}/{iteration}', "
				  "'{steps}']\nsteps: 7\n",
				  good[i].text);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);
		const struct ckpt_layout *l = &p.engine.layout;

		if (p.errors.n)
			fail_msg("%s: %s", good[i].text, said);
		assert_string_equal(l->entry, good[i].entry);
		assert_true(mo_streq(l->subdir, good[i].subdir));
		assert_true(mo_streq(l->n_markers ? l->markers[0] : NULL, good[i].marker));
		assert_int_equal(l->unnumbered, good[i].unnumbered);
		assert_true(l->given && l->n_state_names > 0 && !l->announced_is_complete);
		assert_int_equal(p.engine.n_resume, 3);
		assert_string_equal(p.engine.resume[0], "--init_from=resume");
		assert_string_equal(p.engine.resume[1], "--from={dir}/{iteration}");
		assert_string_equal(p.engine.resume[2], "7");
		assert_int_equal(p.n_warnings, good[i].unnumbered); /* it is overwritten in place */
	}
}

/* Names that almost fit, and one that does. */
static void many_stars(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	struct ckpt_layout l;
	char name[256];
	int code;
	PCRE2_SIZE at;

	for (int i = 0; i < 60; i++)
		mo_buf_str(&text, "*a");
	mo_buf_str(&text, "-{iteration}.b");
	mo_desc_init(&ckpt_layout_desc, &l);
	layout_from_text(text.data, &l);
	pcre2_code *re =
		pcre2_compile((PCRE2_SPTR)l.entry, PCRE2_ZERO_TERMINATED, 0, &code, &at, NULL);
	pcre2_match_data *data = pcre2_match_data_create(4, NULL);
	pcre2_match_context *limits = pcre2_match_context_create(NULL);

	assert_non_null(re);
	pcre2_set_match_limit(limits, 100000);
	memset(name, 'a', sizeof(name));
	assert_int_equal(pcre2_match(re, (PCRE2_SPTR)name, 255, 0, 0, data, limits),
			 PCRE2_ERROR_NOMATCH);
	memcpy(name + 249, "-123.b", 6);
	assert_true(pcre2_match(re, (PCRE2_SPTR)name, 255, 0, 0, data, limits) > 0);
	pcre2_match_context_free(limits);
	pcre2_match_data_free(data);
	pcre2_code_free(re);
	mo_desc_done(&ckpt_layout_desc, &l);
}

static const struct {
	const char *lines, *says;
} bad[] = {
	{ "  layout: ''\n", "7:11 checkpoint.layout: it is empty" },
	{ "  layout: /c/ckpt.pt\n",
	  "7:11 checkpoint.layout: '/c/ckpt.pt' does not stay below checkpoint.dir" },
	{ "  layout: ../ckpt.pt\n",
	  "7:11 checkpoint.layout: '../ckpt.pt' does not stay below checkpoint.dir" },
	{ "  layout: a//b.pt\n",
	  "7:11 checkpoint.layout: 'a//b.pt' does not stay below checkpoint.dir" },
	{ "  layout: .moe-kept/ckpt.pt\n", "7:11 checkpoint.layout: '.moe-kept/ckpt.pt'" },
	{ "  layout: 'ckpt_{step}.pt'\n",
	  "7:11 checkpoint.layout: unknown placeholder '{step}': expected {iteration}" },
	{ "  layout: 'a-{iteration}/b-{iteration}.pt'\n",
	  "7:11 checkpoint.layout: {iteration} stands there twice" },
	{ "  layout: 'a*/ckpt_{iteration}.pt'\n",
	  "7:11 checkpoint.layout: '*' may stand in the name of a checkpoint only" },
	{ "  layout: [a]\n", "7:11 checkpoint.layout: expected a text" },
	{ "  layout:\n", "7:3 checkpoint.layout" },
	{ "  resume_args: --init_from=resume\n", "7:16 checkpoint.resume_args: expected a list" },
	{ "  resume_args: ['{what}']\n",
	  "7:17 checkpoint.resume_args: unknown placeholder '{what}'" },
	{ "  resume_args: ['{steps}']\n",
	  "7:17 checkpoint.resume_args: '{steps}' needs steps, which the recipe does not give" },
	{ "  layout: ckpt.pt\n  resume_args: [x]\n"
	  "  keep: 2\n",
	  "9:9 checkpoint.keep: 'ckpt.pt' is written over by each save" },
};

static void how_it_is_refused(void **state)
{
	size_t n_wrong = 0;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_freep) char *text = mo_printf(HEAD "%s", bad[i].lines);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);

		if (p.errors.n != 1 || !mo_starts_with(said, bad[i].says)) {
			print_message("%s expected %s, got %s\n", bad[i].lines, bad[i].says, said);
			n_wrong++;
		}
	}
	assert_int_equal(n_wrong, 0);
}

static void not_without_a_directory_and_not_for_every_engine(void **state)
{
	_cleanup_(parsed_done) struct parsed a = parse("recipe: 1\nname: a\n"
						       "engine: {kind: torch, entry: /x}\n"
						       "cluster: {gpus: 1}\n"
						       "checkpoint: {layout: a.pt}\n",
						       NULL);
	_cleanup_(parsed_done) struct parsed b = parse("recipe: 1\nname: a\n"
						       "engine: {kind: megatron-lm}\n"
						       "cluster: {gpus: 1}\nsteps: 1\n"
						       "checkpoint: {dir: /c, layout: a.pt}\n",
						       NULL);
	_cleanup_(parsed_done) struct parsed c = parse("recipe: 1\nname: a\n"
						       "engine: {kind: megatron-lm}\n"
						       "cluster: {gpus: 1}\nsteps: 1\n"
						       "checkpoint: {dir: /c, resume_args: [x]}\n",
						       NULL);
	_cleanup_(parsed_done) struct parsed d = parse("recipe: 1\nname: a\n"
						       "engine: {kind: deepspeed, entry: /x}\n"
						       "cluster: {gpus: 1}\nsteps: 1\n"
						       "checkpoint: {dir: /c, resume_args: [x]}\n",
						       NULL);
	_cleanup_(parsed_done) struct parsed e = parse(HEAD "  layout: '{iteration}.pt'\n", NULL);
	_cleanup_(mo_freep) char *no_dir = errors_text(&a.errors), *layout = errors_text(&b.errors),
				 *words = errors_text(&c.errors);

	assert_true(mo_starts_with(no_dir, "5:22 checkpoint.layout: it needs checkpoint.dir"));
	assert_true(mo_starts_with(layout, "6:31 checkpoint.layout: engine megatron-lm"));
	assert_true(mo_starts_with(words, "6:36 checkpoint.resume_args: engine megatron-lm"));
	assert_int_equal(d.errors.n, 0);
	assert_int_equal(e.n_warnings, 1);
	assert_non_null(strstr(e.warnings[0], "checkpoint.resume_args"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_text_means), cmocka_unit_test(many_stars),
		cmocka_unit_test(how_it_is_refused),
		cmocka_unit_test(not_without_a_directory_and_not_for_every_engine)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
