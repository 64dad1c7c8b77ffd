/* See anchors.h. The recipe of a run is written with the sharding, micro-batch and recomputation
 * that it ran with, so that reading it again plans that run and searches nothing; and without
 * its environment, which a plan does not need and which may hold secrets. Runs whose recipe this
 * version refuses are left out. */
#include "daemon/anchors.h"
#include <json-c/json.h>
#include <string.h>
#include "daemon/core/state/anchor.h"
#include "lib/base/parse.h"
#include "lib/model/mask.h"
#include "lib/plan/anchor.h"
#include "lib/plan/plan_desc.h"
#include "lib/recipe/json.h"
#include "lib/recipe/recipe_file.h"
#include "lib/wire/encode.h"

static void put_int(struct json_object *o, const char *key, int64_t value)
{
	if (value != MO_NONE)
		json_object_object_add(o, key, json_object_new_int64(value));
}

static void put_str(struct json_object *o, const char *key, const char *value)
{
	if (value)
		json_object_object_add(o, key, json_object_new_string(value));
}

/* The mapping under key, made when there is none. */
static struct json_object *mapping(struct json_object *doc, const char *key)
{
	struct json_object *o = NULL;

	if (!json_object_object_get_ex(doc, key, &o) || !json_object_is_type(o, json_type_object))
		json_object_object_add(doc, key, o = json_object_new_object());
	return o;
}

/* What `parallelism: auto` became. */
static void write_chosen(struct json_object *doc, const struct recipe *r)
{
	const struct recipe_parallelism *p = &r->parallelism;
	struct json_object *old = NULL;

	if (!json_object_object_get_ex(doc, "parallelism", &old) ||
	    !json_object_is_type(old, json_type_string))
		return;
	struct json_object *o = mapping(doc, "parallelism");

	put_int(o, "tp", p->tp);
	put_int(o, "pp", p->pp);
	put_int(o, "vpp", p->vpp);
	put_int(o, "ep", p->ep);
	put_int(o, "etp", p->etp);
	put_int(o, "cp", p->cp);
	put_str(o, "sharding", p->sharding);
	put_str(o, "schedule", p->schedule);
	put_int(mapping(doc, "batch"), "micro", r->micro);
	put_str(doc, "recompute", r->recompute);
	/* stages that do not divide the layers got one */
	for (size_t i = 0; i < r->n_features; i++)
		if (mo_streq(r->features[i].key, "pipeline_layout"))
			put_str(mapping(doc, "features"), "pipeline_layout", r->features[i].value);
}

static bool readable(const char *text)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	char **warnings = NULL;
	size_t n_warnings = 0;
	struct recipe r;

	mo_desc_init(&recipe_desc, &r);
	int k = recipe_parse(text, strlen(text), NULL, 0, &r, NULL, &warnings, &n_warnings,
			     &errors);
	for (size_t i = 0; i < n_warnings; i++)
		free(warnings[i]);
	free(warnings);
	mo_desc_done(&recipe_desc, &r);
	return k >= 0;
}

static struct json_object *masked(const char *key, const char *text)
{
	_cleanup_(mo_freep) char *shown =
		key && mo_mask_argument(key) ? mo_strdup(MO_MASKED) : mo_mask_text(text);

	return json_object_new_string(shown);
}

static void mask(struct json_object *doc);

static void mask_list(struct json_object *list)
{
	size_t n = json_object_array_length(list);
	char **words = mo_alloc_array(n + 1, sizeof(*words));

	for (size_t i = 0; i < n; i++)
		words[i] = mo_strdup(json_object_get_string(json_object_array_get_idx(list, i)));
	for (size_t i = 0; i < n; i++)
		words[i] = words[i] ? words[i] : mo_strdup("");
	mo_mask_words(words, n);
	for (size_t i = 0; i < n; i++) {
		struct json_object *item = json_object_array_get_idx(list, i);

		if (json_object_is_type(item, json_type_string))
			json_object_array_put_idx(list, i, json_object_new_string(words[i]));
		else if (json_object_is_type(item, json_type_array))
			mask_list(item);
		else if (json_object_is_type(item, json_type_object))
			mask(item);
		free(words[i]);
	}
	free(words);
}

/* What looks like a credential, at any depth. */
static void mask(struct json_object *doc)
{
	json_object_object_foreach(doc, key, value) {
		if (json_object_is_type(value, json_type_object))
			mask(value);
		else if (json_object_is_type(value, json_type_array))
			mask_list(value);
		else if (json_object_is_type(value, json_type_string))
			json_object_object_add(doc, key,
					       masked(key, json_object_get_string(value)));
	}
}

char *anchor_run_text(const struct recipe *chosen, const char *recipe_text,
		      const struct measured *m)
{
	_cleanup_(mo_freep) char *json = recipe_text ? recipe_json(recipe_text, strlen(recipe_text))
						     : NULL,
				 *recipe = NULL;
	struct json_object *doc = json ? json_tokener_parse(json) : NULL, *experiment = NULL;
	struct mo_buf b = { 0 };

	if (!doc)
		return NULL;
	json_object_object_del(doc, "env");
	if (json_object_object_get_ex(doc, "experiment", &experiment) &&
	    json_object_is_type(experiment, json_type_object))
		/* the engine's own keys: no plan goes by them */
		json_object_object_del(experiment, "result");
	mask(doc);
	write_chosen(doc, chosen);
	recipe = mo_strdup(
		json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN |
							    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(doc);
	if (!readable(recipe))
		return NULL;
	mo_buf_printf(&b,
		      "{\"recipe\":%s,\"measured\":{\"step_time_s\":%.6f,\"steps\":%lld,\"memory_"
		      "gb\":",
		      recipe, m->step_time_s, (long long)m->steps);
	if (m->memory_gb == MO_NONE_F)
		mo_buf_str(&b, "null}}");
	else
		mo_buf_printf(&b, "%.3f}}", m->memory_gb);
	return mo_buf_take(&b);
}

static bool fits(const struct state *s, const struct anchor *a, const char *gpu,
		 const char *precision)
{
	return (!gpu || (mo_streq(a->gpu, gpu) && mo_streq(a->precision, precision))) &&
	       anchor_current(s, a);
}

/* text: NULL when the recipe cannot be read */
struct anchor_text {
	int64_t job, time;
	char *text;
};
struct anchor_texts {
	struct anchor_text *items;
	size_t n;
};

struct anchor_texts *anchor_texts_free(struct anchor_texts *t)
{
	for (size_t i = 0; t && i < t->n; i++)
		free(t->items[i].text);
	if (t)
		free(t->items);
	free(t);
	return NULL;
}

/* Those of runs that are no anchors any more, or were measured again. */
static void forget_texts(struct anchor_texts *t, const struct state *s)
{
	for (size_t i = 0; i < t->n;) {
		bool stays = false;

		for (size_t k = 0; k < s->n_anchors; k++)
			stays |= s->anchors[k].job == t->items[i].job &&
				 s->anchors[k].measured.time == t->items[i].time;
		if (stays) {
			i++;
			continue;
		}
		free(t->items[i].text);
		t->items[i] = t->items[--t->n];
	}
}

static const char *text_of(struct anchor_texts *t, const struct anchor *a)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->items[i].job == a->job && t->items[i].time == a->measured.time)
			return t->items[i].text;
	struct anchor_text *fresh = MO_GROW(t->items, t->n);

	*fresh = (struct anchor_text){ a->job, a->measured.time,
				       anchor_run_text(&a->recipe, a->recipe_text, &a->measured) };
	return fresh->text;
}

char *anchors_document(struct anchor_texts **texts, const struct state *s, const struct viewer *v,
		       const char *gpu, const char *precision)
{
	struct mo_buf b = { 0 };
	size_t n = 0;

	if (!*texts)
		*texts = mo_alloc(sizeof(**texts));
	forget_texts(*texts, s);
	mo_buf_str(&b, "{\"anchor\":1,\"runs\":[");
	for (size_t i = 0; i < s->n_anchors; i++) {
		const struct anchor *a = &s->anchors[i];
		bool shown =
			fits(s, a, gpu, precision) && (!v || viewer_sees(v, job_find(s, a->job)));
		const char *run = shown ? text_of(*texts, a) : NULL;

		if (!run)
			continue;
		mo_buf_printf(&b,
			      "%s%.*s,\"stack\":{\"job\":\"j-%lld\",\"software\":", n++ ? "," : "",
			      (int)strlen(run) - 1, run, (long long)a->job);
		wire_string(a->software ? a->software : "", &b);
		mo_buf_str(&b, ",\"rocm\":");
		if (a->version)
			wire_string(a->version, &b);
		else
			mo_buf_str(&b, "null");
		mo_buf_str(&b, "}}");
	}
	mo_buf_str(&b, "]}");
	if (n)
		return mo_buf_take(&b);
	mo_buf_done(&b);
	return NULL;
}

void anchors_apply(const struct state *s, const struct recipe *r, const struct gpu_type *gpu,
		   struct plan_doc *doc)
{
	const struct plan_options one = { .top = 1, .figures = true };
	struct plan_anchor all = { 0 };

	for (size_t i = 0; i < s->n_anchors; i++) {
		const struct anchor *a = &s->anchors[i];
		struct recipe chosen = a->recipe;
		struct plan_doc run;

		if (!fits(s, a, gpu->name, r->precision))
			continue;
		/* the planner has filled it in: nothing to search */
		chosen.parallelism.automatic = false;
		/* a record of an older version, whose engine's file may be gone */
		if (!a->recipe.engine.traits && recipe_traits_renew(&chosen, NULL) < 0)
			continue;
		mo_desc_init(&plan_doc_desc, &run);
		if (plan_make(&chosen, gpu, &one, &run, NULL) >= 0)
			plan_anchor_add(&all, &chosen, &run, a->measured.step_time_s,
					a->measured.memory_gb);
		if (!a->recipe.engine.traits)
			mo_desc_free(&engine_traits_desc, chosen.engine.traits);
		mo_desc_done(&plan_doc_desc, &run);
	}
	plan_anchor_apply(&all, r, gpu->name, doc);
	plan_anchor_done(&all);
}

/* Runs that calibrated the plan, as its note tells. */
static int64_t calibrated_by(const struct plan *p)
{
	static const char words[] = "calibrated by ";

	for (size_t i = 0; i < p->n_notes; i++) {
		const char *number =
			mo_starts_with(p->notes[i], words) ? p->notes[i] + sizeof(words) - 1 : NULL;
		_cleanup_(mo_freep) char *digits =
			number ? mo_strndup(number, strspn(number, "0123456789")) : NULL;
		int64_t n;

		if (digits && mo_parse_i64(digits, 0, INT32_MAX, &n) == 0)
			return n;
	}
	return 0;
}

struct promise *promise_of(const struct plan_doc *doc)
{
	const struct plan *p = doc->n_plans ? &doc->plans[0] : NULL;
	struct promise *ret = p ? mo_desc_new(&promise_desc) : NULL;

	if (p)
		*ret = (struct promise){ .step_time_s = p->step_time_s.total,
					 .memory_gb = p->memory_gb.total,
					 .bubble = p->bubble,
					 .error_pct = p->error_pct,
					 .checkpoint_gb = doc->reliability.checkpoint_gb,
					 .anchors = calibrated_by(p) };
	return ret;
}
