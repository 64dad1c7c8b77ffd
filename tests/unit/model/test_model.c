/* Every described value of the model: names are complete and distinct, tables lie inside their
 * structs, copies are equal; sample_merge; rank_coords_of. */
#include "lib/base/desc_fit.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "lib/model/engine.h"
#include "lib/model/exec.h"
#include "lib/model/job.h"
#include "lib/model/launch.h"
#include "lib/model/message.h"
#include "lib/model/nodeinfo.h"
#include "lib/model/note.h"
#include "lib/model/recipe.h"
#include "lib/model/sample.h"

static void test_names(void **state)
{
	static const struct {
		const char *const *names;
		size_t n;
	} tables[] = {
#define T(x) { x, ELEMENTSOF(x) }
		T(phase_names),        T(line_kind_names),        T(metrics_rank_names),
		T(env_layer_names),    T(note_kind_names),        T(step_state_names),
		T(command_kind_names), T(job_state_names),        T(rank_state_names),
		T(node_state_names),   T(checkpoint_state_names), T(job_prefix),
	};

	for (size_t t = 0; t < ELEMENTSOF(tables); t++)
		for (size_t i = 0; i < tables[t].n; i++) {
			assert_non_null(tables[t].names[i]);
			assert_int_equal(mo_enum_parse(tables[t].names, tables[t].n,
						       tables[t].names[i]),
					 (int)i);
		}
	assert_string_equal(job_state_names[JOB_RECOVERING], "recovering");
	assert_string_equal(rank_state_names[RANK_LOST], "lost");
	assert_string_equal(node_state_names[NODE_DRAINED], "drained");
	assert_string_equal(checkpoint_state_names[CKPT_DELETED], "deleted");
	assert_string_equal(note_kind_names[NOTE_UNKILLABLE], "unkillable");
	assert_string_equal(step_state_names[STEP_HUNG], "hung");
	assert_string_equal(command_kind_names[CMD_QUERY], "query");
	assert_string_equal(phase_names[PHASE_EVAL], "eval");
	assert_string_equal(line_kind_names[LINE_ENDED], "ended");
	assert_string_equal(env_layer_names[ENV_LAUNCH], "launch");
}

static size_t field_size(const struct mo_field *f)
{
	switch (f->kind) {
	case MO_BOOL: return sizeof(bool);
	case MO_TRI: return sizeof(int8_t);
	case MO_ENUM: return sizeof(int);
	case MO_STRUCT: return f->sub->size;
	default: return 8;
	}
}

/* Each field lies in the struct, aligned, and overlaps no other; kinds have what they need. */
static void check_table(const struct mo_desc *d)
{
	_cleanup_(mo_freep) char *used = mo_alloc(d->size);

	for (size_t i = 0; i < d->n_fields; i++) {
		const struct mo_field *f = &d->fields[i];
		bool list = f->kind == MO_VEC || f->kind == MO_STRS || f->kind == MO_INTS ||
			    f->kind == MO_REALS;

		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(d->fields[k].name, f->name);
		assert_true(f->offset + field_size(f) <= d->size);
		for (size_t b = f->offset; b < f->offset + field_size(f); b++)
			assert_int_equal(used[b]++, 0);
		if (list)
			for (size_t b = f->count_offset; b < f->count_offset + sizeof(size_t); b++)
				assert_int_equal(used[b]++, 0);
		assert_int_equal(f->sub != NULL,
				 f->kind == MO_STRUCT || f->kind == MO_OPT || f->kind == MO_VEC);
		assert_int_equal(f->names != NULL, f->kind == MO_ENUM || f->kind == MO_ID);
		if (f->sub)
			check_table(f->sub);
	}
}

/* Bytes of the struct that no field covers: padding only. */
static size_t uncovered(const struct mo_desc *d)
{
	size_t covered = 0;

	for (size_t i = 0; i < d->n_fields; i++)
		covered += field_size(&d->fields[i]) +
			   (d->fields[i].kind == MO_VEC || d->fields[i].kind == MO_STRS ||
					    d->fields[i].kind == MO_INTS ||
					    d->fields[i].kind == MO_REALS
				    ? sizeof(size_t)
				    : 0);
	return d->size - covered;
}

static const struct mo_desc *const all[] = {
	&kv_desc,
	&recipe_desc,
	&recipe_model_desc,
	&recipe_bind_desc,
	&line_rule_desc,
	&ckpt_grid_desc,
	&ckpt_need_desc,
	&ckpt_layout_desc,
	&engine_desc,
	&gpu_slot_desc,
	&gpu_link_desc,
	&nic_info_desc,
	&numa_node_desc,
	&node_finding_desc,
	&nodeinfo_desc,
	&exec_ask_desc,
	&exec_result_desc,
	&sample_desc,
	&env_item_desc,
	&launch_desc,
	&note_desc,
	&rank_progress_desc,
	&step_report_desc,
	&agent_hello_desc,
	&step_ack_desc,
	&agent_welcome_desc,
	&found_checkpoint_desc,
	&scan_result_desc,
	&agent_sync_desc,
	&command_desc,
	&sync_reply_desc,
	&query_answer_desc,
	&rank_coords_desc,
	&rank_exit_desc,
	&rank_desc,
	&checkpoint_desc,
	&event_desc,
	&waterfall_desc,
	&incident_desc,
	&reading_desc,
	&probe_desc,
	&health_check_desc,
	&check_result_desc,
	&stack_item_desc,
	&gpu_sensors_desc,
	&nic_sensors_desc,
	&checked_attempt_desc,
	&node_health_desc,
};

static void test_tables(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(all); i++) {
		size_t small = 0;

		check_table(all[i]);
		/* a forgotten field would be at least 8 bytes above what aligning bools, tris and
		 * enums costs */
		for (size_t k = 0; k < all[i]->n_fields; k++)
			small += field_size(&all[i]->fields[k]) < 8 ? 7 : 0;
		if (uncovered(all[i]) > small)
			print_error("%s: %zu bytes are not described\n", all[i]->name,
				    uncovered(all[i]));
		assert_true(uncovered(all[i]) <= small);
	}
	check_table(&rank_view_desc);
}

static void test_copies(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(all); i++) {
		void *a = mo_desc_new(all[i]), *b;

		/* one element in each list, one object in each option, a word in each string */
		for (size_t k = 0; k < all[i]->n_fields; k++) {
			const struct mo_field *f = &all[i]->fields[k];
			void *p = (char *)a + f->offset;
			size_t *n = (size_t *)(void *)((char *)a + f->count_offset);

			if (f->kind == MO_STR)
				*(char **)p = mo_strdup("word");
			else if (f->kind == MO_OPT)
				*(void **)p = mo_desc_new(f->sub);
			else if (f->kind == MO_VEC)
				mo_vec_append(f, a);
			else if (f->kind == MO_STRS)
				mo_strs_add(p, n, "word");
		}
		b = mo_desc_dup(all[i], a);
		assert_true(mo_desc_equal(all[i], a, b));
		mo_desc_free(all[i], a);
		mo_desc_free(all[i], b);
	}
}

/* The documented keys, in the documented order. */
static void check_keys(const struct mo_desc *d, const char *keys)
{
	char text[512] = "";

	for (size_t i = 0; i < d->n_fields; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			 d->fields[i].name);
	assert_string_equal(text, keys);
}

static void test_documented(void **state)
{
	check_keys(&sample_desc,
		   "iteration time loss grad_norm lr step_ms tokens tokens_per_s_per_gpu "
		   "tflops_per_gpu mfu mem_gb skipped nan consumed_samples batch_samples "
		   "phase attempt");
	check_keys(&rank_view_desc,
		   "rank node local_rank pid state cpus numa_node gpu nic bind_verified bind_note "
		   "iteration step_ms coords exit gpu_note doing own_times");
	check_keys(&rank_coords_desc, "tp pp ep cp dp");
	check_keys(&rank_exit_desc, "code signal cause");
	check_keys(&checkpoint_view_desc, "iteration path state level bytes saved_at verified_at "
					  "attempt reason fixed held failed_loads");
	check_keys(&event_desc, "seq time type job node rank attempt message data");
	check_keys(&incident_desc, "time attempt class first_rank node cause evidence action "
				   "later rule why gpu device iteration elsewhere lost_iterations "
				   "waterfall_ms open");
	check_keys(&waterfall_desc,
		   "unfinished detect stop place image launch init load recompute");
}

static void test_merge(void **state)
{
	struct sample a, b;

	mo_desc_init(&sample_desc, &a);
	mo_desc_init(&sample_desc, &b);
	a.iteration = 5;
	a.loss = 2.5;
	a.phase = PHASE_TRAIN;
	b.iteration = 6;
	b.loss = 9;
	b.grad_norm = 1.5;
	b.tokens = 100;
	b.nan = 0;
	b.phase = PHASE_SAVE;
	b.attempt = 2;
	sample_merge(&a, &b);
	assert_true(a.iteration == 5 && a.loss == 2.5 && a.phase == PHASE_TRAIN);
	assert_true(a.grad_norm == 1.5 && a.tokens == 100 && a.nan == 0 && a.attempt == 2);
	assert_true(a.lr == MO_NONE_F && a.skipped == MO_NONE && a.time == MO_NONE);
	/* a field added to the struct but not to the merge would differ here */
	mo_desc_init(&sample_desc, &a);
	b = (struct sample){ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, PHASE_EVAL, 17 };
	sample_merge(&a, &b);
	assert_null(mo_desc_diff(&sample_desc, &a, &b));
}

static void test_coords(void **state)
{
	const int64_t tp = 2, cp = 3, dp = 4, ep = 6, pp = 5;

	for (int64_t r = 0; r < tp * cp * dp * pp; r++) {
		struct rank_coords c = rank_coords_of(r, tp, cp, ep, dp, pp);

		assert_true(((c.pp * dp + c.dp) * cp + c.cp) * tp + c.tp == r);
		assert_true(c.ep == (c.dp * cp + c.cp) % ep);
	}
	assert_true(rank_coords_of(7, 1, 1, 1, 8, 1).dp == 7);
	assert_true(rank_coords_of(7, 1, 1, 8, 8, 1).ep == 7);
	assert_true(rank_coords_of(7, 1, 1, 1, 1, 8).pp == 7);
	assert_true(rank_coords_of(7, 8, 1, 1, 1, 1).tp == 7);
}

/* Epochs hold the time of their incarnation, and numbers of questions their epoch: what an agent
 * answers finds its question whatever the time is. */
static void a_question_keeps_its_number(void **state)
{
	const int64_t numbers[] = { 1, 1LL << 32, 1LL << 60, (1LL << 62) + 7, INT64_MAX };

	for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
		struct query_answer a;

		mo_desc_init(&query_answer_desc, &a);
		a.query = numbers[i];
		mo_desc_fit(&query_answer_desc, &a);
		assert_int_equal(a.query, numbers[i]);
		mo_desc_done(&query_answer_desc, &a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_keeps_its_number),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_documented),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_coords),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
