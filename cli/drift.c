/* What the plan promised and what the job does (see drift.h): the run's own recipe is planned here, as `plan` does, and set against the median step and the highest memory that the controller
 * has of it. */
#include "cli/drift.h"

#include <string.h>

#include "cli/output.h"
#include "cli/planning.h"
#include "cli/value.h"

static void doc_done(struct plan_doc *d) { mo_desc_done(&plan_doc_desc, d); }

static double percent(double actual, double planned)
{
	return (actual / planned - 1) * 100;
}

static char *compare(const struct plan_doc *doc, double step, double memory, const char *id)
{
	const struct plan *p = &doc->plans[0];
	struct mo_buf b = { 0 };
	mo_buf_printf(&b, "step %.3g s, planned %.3g s (%+.0f %%)", step, p->step_time_s.total, percent(step, p->step_time_s.total));
	if (memory != MO_NONE_F && memory > 0)
		mo_buf_printf(&b, "; memory %.1f GB, planned %.1f GB (%+.0f %%)", memory, p->memory_gb.total, percent(memory, p->memory_gb.total));
	if (p->parallelism.pp > 1)
		mo_buf_printf(&b, "; bubble %.1f %% planned", p->bubble * 100);
	mo_buf_printf(&b, "; moectl report %s --anchor keeps this run for moectl plan --anchor", id);
	return mo_buf_take(&b);
}

char *drift_text(struct json_object *anchor, const char *id)
{
	_cleanup_(doc_done) struct plan_doc doc;
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	const struct plan_options o = { .top = 1 };
	struct json_object *run = js_at(js_get(anchor, "runs"), 0), *json = js_get(run, "recipe");
	double step = js_real(run, "measured.step_time_s");
	struct recipe recipe;
	char **warnings = NULL, *text = NULL;
	size_t n_warnings = 0;
	mo_desc_init(&plan_doc_desc, &doc);
	if (!json || step == MO_NONE_F || step <= 0 || js_int(run, "measured.steps") < DRIFT_STEPS)
		return NULL;
	mo_desc_init(&recipe_desc, &recipe);
	const char *document = json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (recipe_parse(document, strlen(document), NULL, 0, &recipe, NULL, &warnings, &n_warnings, &errors) >= 0 && recipe.model && recipe.gpu && planning(&recipe, NULL, &o, &doc, NULL) >= 0)
		text = compare(&doc, step, js_real(run, "measured.memory_gb"), id);
	for (size_t i = 0; i < n_warnings; i++)
		free(warnings[i]);
	free(warnings);
	mo_desc_done(&recipe_desc, &recipe);
	return text;
}

void drift_print(struct cli *cli, const char *id)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *path = mo_printf("/v1/jobs/%s/report?anchor=1", id), *text = NULL;
	const struct request request = { .path = path };
	if (client_send(cli, &request, &a) == 0 && a.status == 200 && a.body.data) {
		if (!a.doc)
			a.doc = json_tokener_parse(a.body.data);
		text = drift_text(a.doc, id);
	}
	if (text)
		printf("%-12s %s\n", "plan", text);
}
