/* Whatever a described struct holds, what is written of it can be read again: over all
 * descriptions, with everything absent, with absent elements, and with values at and beyond every
 * end. What has a form outside comes back as it was; the rest comes back as something that has one.
 * A record that can be written and not read would keep the controller from starting. */
#include "tests/unit/unit.h"

#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/agent/fence_book.h"
#include "agent/core/image/oci.h"
#include "agent/core/stepd/box.h"
#include "agent/core/stepd/image_config.h"
#include "agent/core/stepd/runtime_image.h"
#include "lib/model/runtime.h"
#include "agent/core/bind/bind.h"
#include "agent/core/agent/discovery.h"
#include "agent/core/bind/env_record.h"
#include "agent/core/bind/explain.h"
#include "agent/core/stepd/spool.h"
#include "daemon/api_cluster.h"
#include "daemon/api_events.h"
#include "daemon/api_exec.h"
#include "daemon/api_images.h"
#include "daemon/core/state/prefetch.h"
#include "daemon/images.h"
#include "daemon/api_explain.h"
#include "daemon/api_job_docs.h"
#include "daemon/api_jobs.h"
#include "daemon/api_nodes.h"
#include "daemon/api_plan.h"
#include "daemon/api_records.h"
#include "daemon/api_sd.h"
#include "daemon/api_signin.h"
#include "daemon/api_tokens.h"
#include "daemon/core/view/curve.h"
#include "daemon/core/view/matrix.h"
#include "daemon/core/view/topology.h"
#include "daemon/core/view/plan_drift.h"
#include "daemon/core/core.h"
#include "daemon/core/view/prepare.h"
#include "daemon/core/view/progress_view.h"
#include "daemon/core/view/report.h"
#include "daemon/core/view/stack_drift.h"
#include "daemon/core/state/interval.h"
#include "daemon/core/state/data_order.h"
#include "daemon/core/state/numbers.h"
#include "daemon/core/state/pace.h"
#include "daemon/core/state/record.h"
#include "daemon/core/state/record_v1.h"
#include "daemon/core/state/waiting.h"
#include "daemon/core/state/lemon.h"
#include "daemon/core/view/view_node.h"
#include "daemon/core/view/why_view.h"
#include "daemon/effects.h"
#include "daemon/webhooks.h"
#include "daemon/webhooks_sent.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/dryrun.h"
#include "lib/model/exec.h"
#include "lib/model/failure.h"
#include "lib/model/gpu.h"
#include "lib/model/image_check.h"
#include "lib/model/image_stored.h"
#include "lib/model/klog.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "lib/model/skip.h"
#include "lib/plan/plan_desc.h"
#include "lib/wire/backup.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"
#include "tests/before_keys.h"

/* clang-format off */
#define D(x) { #x, &x }
/* clang-format on */
static const struct {
	const char *name;
	const struct mo_desc *desc;
} all[] = {
	D(fence_file_desc),
	D(fence_boot_desc),
	D(image_order_desc),
	D(image_report_desc),
	D(rec_incident_desc),
	D(rec_measured_desc),
	D(record_v1_desc),
	D(waiting_desc),
	D(kv_desc),
	D(event_about_desc),
	D(recipe_desc),
	D(recipe_model_desc),
	D(recipe_env_desc),
	D(gpu_slot_desc),
	D(gpu_link_desc),
	D(nic_info_desc),
	D(numa_node_desc),
	D(node_finding_desc),
	D(nodeinfo_desc),
	D(klog_driver_desc),
	D(klog_rule_desc),
	D(klog_rules_desc),
	D(note_desc),
	D(dryrun_rank_desc),
	D(rank_coords_desc),
	D(rank_exit_desc),
	D(rank_desc),
	D(rank_view_desc),
	D(checkpoint_desc),
	D(checkpoint_view_desc),
	D(event_desc),
	D(waterfall_desc),
	D(incident_desc),
	D(failure_rule_desc),
	D(failure_rules_desc),
	D(failure_evidence_desc),
	D(failure_verdict_desc),
	D(env_item_desc),
	D(launch_desc),
	D(recipe_bind_desc),
	D(rank_progress_desc),
	D(rank_motion_desc),
	D(rank_activity_desc),
	D(recorder_wait_desc),
	D(rank_recorder_desc),
	D(recorder_answer_desc),
	D(webhook_desc),
	D(webhooks_file_desc),
	D(webhook_order_desc),
	D(webhook_answer_desc),
	D(webhook_delivery_desc),
	D(webhook_view_desc),
	D(webhook_sent_desc),
	D(webhooks_sent_desc),
	D(found_checkpoint_desc),
	D(unread_state_desc),
	D(step_report_desc),
	D(agent_hello_desc),
	D(step_ack_desc),
	D(agent_welcome_desc),
	D(scan_result_desc),
	D(agent_sync_desc),
	D(backup_head_desc),
	D(command_desc),
	D(sync_reply_desc),
	D(query_answer_desc),
	D(image_check_desc),
	D(image_checks_desc),
	D(image_stored_desc),
	D(amdgpu_release_desc),
	D(rdma_provider_desc),
	D(image_fits_desc),
	D(exec_ask_desc),
	D(exec_result_desc),
	D(token_trade_desc),
	D(token_traded_desc),
	D(line_rule_desc),
	D(ckpt_grid_desc),
	D(ckpt_need_desc),
	D(ckpt_layout_desc),
	D(engine_heartbeat_desc),
	D(engine_desc),
	D(engine_feature_desc),
	D(engine_rule_desc),
	D(engine_force_desc),
	D(engine_checks_desc),
	D(engine_traits_desc),
	D(reading_desc),
	D(probe_desc),
	D(health_check_desc),
	D(health_checks_desc),
	D(check_result_desc),
	D(health_moment_desc),
	D(health_counter_desc),
	D(health_memory_desc),
	D(stack_item_desc),
	D(gpu_sensors_desc),
	D(nic_sensors_desc),
	D(checked_attempt_desc),
	D(node_health_desc),
	D(env_profile_desc),
	D(sample_desc),
	D(skip_desc),
	D(gpu_type_desc),
	D(plan_stage_desc),
	D(plan_desc),
	D(plan_reliability_desc),
	D(plan_doc_desc),
	D(node_failure_desc),
	D(interval_desc),
	D(drift_odd_desc),
	D(drift_key_desc),
	D(drift_group_desc),
	D(drift_view_desc),
	D(effect_desc),
	D(effect_reply_desc),
	D(effect_event_desc),
	D(core_input_desc),
	D(in_clock_desc),
	D(in_late_desc),
	D(in_cancel_desc),
	D(in_pause_desc),
	D(in_resume_desc),
	D(in_restart_desc),
	D(in_drain_desc),
	D(in_undrain_desc),
	D(in_ack_desc),
	D(in_fence_desc),
	D(in_hello_desc),
	D(in_sync_desc),
	D(in_token_id_desc),
	D(in_refused_desc),
	D(in_resolve_desc),
	D(in_exec_desc),
	D(in_prefetch_desc),
	D(in_images_remove_desc),
	D(in_power_desc),
	D(in_fabric_desc),
	D(fabric_odd_desc),
	D(fabric_point_desc),
	D(fabric_result_desc),
	D(fabric_check_desc),
	D(exec_body_desc),
	D(image_pull_body_desc),
	D(images_view_desc),
	D(prefetch_desc),
	D(exec_desc),
	D(in_config_desc),
	D(in_store_desc),
	D(submit_desc),
	D(engine_own_desc),
	D(place_desc),
	D(ledger_mark_desc),
	D(ledger_view_desc),
	D(step_desc),
	D(job_desc),
	D(node_desc),
	D(token_desc),
	D(idem_desc),
	D(state_desc),
	D(promise_desc),
	D(measured_desc),
	D(numbers_desc),
	D(pace_desc),
	D(data_order_desc),
	D(found_straggler_desc),
	D(pace_view_desc),
	D(straggler_view_desc),
	D(config_read_desc),
	D(prepared_desc),
	D(prepare_view_desc),
	D(why_reason_desc),
	D(anchor_desc),
	D(actual_desc),
	D(job_view_desc),
	D(node_view_desc),
	D(cluster_view_desc),
	D(why_view_desc),
	D(report_view_desc),
	D(restart_part_desc),
	D(record_desc),
	D(spool_desc),
	D(box_desc),
	D(image_variable_desc),
	D(runtime_desc),
	D(runtime_image_desc),
	D(runtime_config_desc),
	D(image_config_desc),
	D(image_bundle_desc),
	D(oci_index_desc),
	D(oci_manifest_desc),
	D(oci_config_desc),
	D(saved_images_desc),
	D(recipe_container_desc),
	D(container_mount_desc),
	D(stepd_order_desc),
	D(stepd_word_desc),
	D(env_record_desc),
	D(bind_view_desc),
	D(cancel_body_desc),
	D(restart_body_desc),
	D(drain_body_desc),
	D(undrain_body_desc),
	D(fence_body_desc),
	D(ack_body_desc),
	D(resolve_body_desc),
	D(token_body_desc),
	D(use_body_desc),
	D(submitted_view_desc),
	D(samples_view_desc),
	D(curve_view_desc),
	D(matrix_view_desc),
	D(topology_view_desc),
	D(progress_view_desc),
	D(events_view_desc),
	D(explained_view_desc),
	D(token_view_desc),
	D(revoked_view_desc),
	D(whoami_view_desc),
	D(record_line_desc),
	D(records_view_desc),
	D(resolved_view_desc),
	D(sd_target_desc),
	D(session_view_desc),
	D(signin_view_desc),
	D(valid_view_desc),
	D(probe_view_desc),
	D(known_machine_desc),
	D(rank_bind_desc),
};

static uint64_t seed;

static size_t any(size_t of)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(seed >> 33) % of;
}
#define PICK(table) table[any(ELEMENTSOF(table))]

/* Of each kind, values that have a form outside first, then those that have none. wild: all of
 * them. */
enum fill { ABSENT, ABSENT_ELEMENTS, EXTREME, WILD };
#define CHOOSE(good, bad) (fill == WILD && any(2) ? PICK(bad) : PICK(good))

static int64_t choose_int(const struct mo_field *f, enum fill fill)
{
	static const int64_t ints[] = { INT64_MAX, INT64_MIN + 1, 0, -1, 1, MO_NONE, 1LL << 53 },
			     ids[] = { INT64_MAX, 0, 1, MO_NONE },
			     bad_ids[] = { -1, INT64_MIN + 1 };
	static const int64_t times[] = { INT64_C(-62135596800000000),
					 INT64_C(253402300799999999),
					 INT64_C(-62135596799999999),
					 -1,
					 0,
					 1,
					 -999,
					 -1000,
					 INT64_C(1795249850123456),
					 MO_NONE };
	static const int64_t bad_times[] = { INT64_MAX,
					     INT64_MIN + 1,
					     INT64_C(-62135596800000001),
					     INT64_C(253402300800000000),
					     INT64_C(-312345678901234567),
					     INT64_C(312345678901234567) };

	return f->kind == MO_TIME ? CHOOSE(times, bad_times)
	       : f->kind == MO_ID ? CHOOSE(ids, bad_ids)
				  : PICK(ints);
}

/* caller frees */
static char *choose_text(enum fill fill)
{
	static const char *const good[] = { NULL,
					    "",
					    "word",
					    "\"\\\n\t\r\x01\x1f\x7f",
					    "\xe2\x82\xac\xf0\x9f\x98\x80",
					    "parts 1 {}",
					    "{\"a\":[1,2",
					    "null" };
	static const char *const bad[] = { "\xff\xfe", "a\xc0\xaf", "\xed\xa0\x80", "\xe2\x82" };

	return mo_strdup(CHOOSE(good, bad));
}

static char *choose_json(enum fill fill)
{
	static const char *const good[] = { NULL,
					    "{}",
					    "[]",
					    "0",
					    "\"\"",
					    "{\"a\":{\"b\":[1,null,true,\"x\"]}}",
					    "9223372036854775807" };
	static const char *const bad[] = { "",
					   "{",
					   "nope",
					   "[1e999]",
					   "{\"a\":1,\"a\":2}",
					   "18446744073709551615",
					   "99999999999999999999999",
					   " { \"a\" : 1.50 } ",
					   "\"\xff\"",
					   "1e5",
					   "-0" };
	_cleanup_(mo_buf_done) struct mo_buf deep = { 0 };
	size_t depth = any(40);

	if (fill != WILD || any(3))
		return mo_strdup(CHOOSE(good, bad));
	for (size_t i = 0; i < depth; i++)
		mo_buf_str(&deep, i % 2 ? "[" : "{\"a\":");
	mo_buf_str(&deep, "1");
	for (size_t i = depth; i > 0; i--)
		mo_buf_str(&deep, (i - 1) % 2 ? "]" : "}");
	return mo_strdup(deep.data);
}

static void fill_object(const struct mo_desc *d, void *obj, enum fill fill);

static const double reals[] = { NAN,
				INFINITY,
				-INFINITY,
				DBL_MAX,
				DBL_MIN,
				5e-324,
				-5e-324,
				0.0,
				-0.0,
				1e15,
				0.1,
				1e300,
				123456789012345678.0,
				MO_NONE_F };

static void fill_list(const struct mo_field *f, void *obj, void *p, enum fill fill)
{
	size_t *n = (void *)((char *)obj + f->count_offset), want = fill == ABSENT ? 0
								    : fill == ABSENT_ELEMENTS
									    ? 2
									    : any(3);

	for (size_t i = 0; i < want; i++) {
		_cleanup_(mo_freep) char *text =
			f->kind == MO_STRS && fill >= EXTREME ? choose_text(fill) : NULL;

		if (f->kind == MO_STRS)
			mo_strs_add(p, n, text);
		else if (f->kind == MO_INTS)
			mo_ints_add(p, n, fill >= EXTREME ? choose_int(f, fill) : MO_NONE);
		else if (f->kind == MO_REALS)
			mo_reals_add(p, n, fill >= EXTREME ? PICK(reals) : MO_NONE_F);
		else
			fill_object(f->sub, mo_vec_append(f, obj), fill);
	}
}

static void fill_field(const struct mo_field *f, void *obj, enum fill fill)
{
	const int enums[] = { -1, 0, (int)f->n_names - 1 },
		  bad_enums[] = { (int)f->n_names, INT_MAX, INT_MIN, -2 };
	void *p = (char *)obj + f->offset;

	if (f->kind == MO_STRUCT)
		fill_object(f->sub, p, fill);
	else if (f->kind == MO_VEC || f->kind == MO_STRS || f->kind == MO_INTS ||
		 f->kind == MO_REALS)
		fill_list(f, obj, p, fill);
	else if (f->kind == MO_OPT && fill != ABSENT && (fill == ABSENT_ELEMENTS || any(4)))
		fill_object(f->sub, *(void **)p = mo_desc_new(f->sub), fill);
	if (fill < EXTREME)
		return;
	switch (f->kind) {
	case MO_BOOL: *(bool *)p = any(2); break;
	case MO_TRI: *(int8_t *)p = (int8_t)((int)any(3) - 1); break;
	case MO_INT:
	case MO_ID:
	case MO_TIME: *(int64_t *)p = choose_int(f, fill); break;
	case MO_REAL: *(double *)p = PICK(reals); break;
	case MO_STR: *(char **)p = choose_text(fill); break;
	case MO_RAWJSON: *(char **)p = choose_json(fill); break;
	case MO_ENUM: *(int *)p = CHOOSE(enums, bad_enums); break;
	case MO_STRUCT:
	case MO_OPT:
	case MO_VEC:
	case MO_STRS:
	case MO_INTS:
	case MO_REALS: break;
	}
}

static void fill_object(const struct mo_desc *d, void *obj, enum fill fill)
{
	for (size_t i = 0; i < d->n_fields; i++)
		fill_field(&d->fields[i], obj, fill);
}

/* Read back from its own text, which must be possible. */
static void *through_text(const char *name, const struct mo_desc *d, const void *obj,
			  struct mo_buf *text)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	void *back = mo_desc_new(d);

	wire_encode(d, obj, text);
	if (wire_decode(d, text->data, text->len, false, back, &err) != 0)
		fail_msg("%s is written and not read: %s: %.2000s", name, err.text, text->data);
	return back;
}

static void check(const char *name, const struct mo_desc *d, enum fill fill)
{
	_cleanup_(mo_buf_done) struct mo_buf first = { 0 }, second = { 0 };
	void *obj = mo_desc_new(d), *back, *again;

	fill_object(d, obj, fill);
	back = through_text(name, d, obj, &first);
	again = through_text(name, d, back, &second);
	_cleanup_(mo_freep) char *lost = fill == WILD ? NULL : mo_desc_diff(d, obj, back),
				 *later = mo_desc_diff(d, back, again);
	if (lost || later)
		fail_msg("%s comes back changed at %s: %.2000s", name, lost ? lost : later,
			 first.data);
	mo_desc_free(d, obj);
	mo_desc_free(d, back);
	mo_desc_free(d, again);
}

static void test_absent(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(all); i++) {
		check(all[i].name, all[i].desc, ABSENT);
		check(all[i].name, all[i].desc, ABSENT_ELEMENTS);
	}
}

static void many(enum fill fill)
{
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		for (uint64_t round = 0; round < 60; round++) {
			seed = round * 1000003 + i;
			check(all[i].name, all[i].desc, fill);
		}
}

static void test_extreme(void **state)
{
	many(EXTREME);
}
static void test_wild(void **state)
{
	many(WILD);
}

/* A text that ends too early is not what was written: it is refused with a sentence, and nothing of
 * it is taken for the whole. Records, snapshots, launches, fences, what an agent keeps of its
 * checks and of its machine, and the lines of a step's journal are such texts. Of a long one so
 * many cuts that each length is met in some round. */
static void test_every_cut(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(all); i++) {
		const struct mo_desc *d = all[i].desc;

		for (uint64_t round = 0; round < 8; round++) {
			_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
			void *obj = mo_desc_new(d);

			seed = round * 1000003 + i;
			fill_object(d, obj, round ? EXTREME : ABSENT);
			wire_encode(d, obj, &text);
			for (size_t n = 0; n < text.len; n += 1 + text.len / 512 * (1 + any(2))) {
				_cleanup_(mo_error_done) struct mo_error err = { 0 };
				_cleanup_(mo_freep) char *cut = mo_strndup(text.data, n);
				void *back = mo_desc_new(d);

				if (wire_decode(d, cut, n, false, back, &err) >= 0 || !err.text)
					fail_msg("%s: the first %zu of %zu bytes are taken: "
						 "%.2000s",
						 all[i].name, n, text.len, cut);
				mo_desc_free(d, back);
			}
			mo_desc_free(d, obj);
		}
	}
}

/* What a released version wrote of absent elements. */
static void test_older_text(void **state)
{
	static const char text[] = "{\"name\":\"n\",\"waived\":[\"a\",\"b\"],\"waived_counts\":[-"
				   "9223372036854775808,3]}";
	struct node n;

	mo_desc_init(&node_desc, &n);
	assert_int_equal(wire_decode(&node_desc, text, strlen(text), false, &n, NULL), 0);
	assert_int_equal(n.findings.n_waived_counts, 2);
	assert_true(n.findings.waived_counts[0] == MO_NONE && n.findings.waived_counts[1] == 3);
	mo_desc_done(&node_desc, &n);
}

/* A released version stored when nodes were heard, which is set anew at each start. */
static void test_older_state(void **state)
{
	static const char text[] = "{\"epoch\":7,\"nodes\":[{\"name\":\"n\",\"heard_at\":5000000,"
				   "\"registered_at\":4000000}]}";
	struct state s;

	mo_desc_init(&state_desc, &s);
	assert_int_equal(wire_decode_large(&state_desc, text, strlen(text), &s, NULL), 0);
	assert_int_equal(s.n_nodes, 1);
	assert_int_equal(s.nodes[0]->registered_at, 4000000);
	mo_desc_done(&state_desc, &s);
	(void)state;
}

/* Of a header's text, every description that it declares. */
static void check_listed(const char *file, const char *text)
{
	static const char mark[] = "extern const struct mo_desc ";

	for (const char *p = text; (p = strstr(p, mark)) != NULL;) {
		const char *end = strchr(p += strlen(mark), ';');

		while (p < end) {
			size_t n = strcspn(p, ",; \n\t");
			bool known = false;
			for (size_t i = 0; i < ELEMENTSOF(all); i++)
				known |=
					strlen(all[i].name) == n && strncmp(all[i].name, p, n) == 0;
			if (!known)
				fail_msg("%s: %.*s is not in the table of this test", file, (int)n,
					 p);
			p += n + strspn(p + n, ", \n\t");
		}
	}
}

static void test_all_are_listed(void **state)
{
	static const char *const patterns[] = { "/lib/*/*.h",        "/daemon/*.h",
						"/daemon/core/*.h",  "/daemon/core/*/*.h",
						"/agent/*.h",        "/agent/*/*.h",
						"/agent/core/*/*.h", "/cli/*.h" };
	glob_t found = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(patterns); i++) {
		_cleanup_(mo_freep) char *pattern = mo_printf(MO_SOURCE_DIR "%s", patterns[i]);
		assert_int_equal(glob(pattern, i ? GLOB_APPEND : 0, NULL, &found), 0);
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		assert_int_equal(mo_read_file(found.gl_pathv[i], 1 << 20, &b), 0);
		check_listed(found.gl_pathv[i], b.data ? b.data : "");
	}
	assert_true(found.gl_pathc > 50);
	globfree(&found);
}

/* What is said to have come later is there: a key that was renamed since is none that was added. */
static void test_later_keys(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(later_keys); i++) {
		bool found = false;

		for (size_t k = 0; k < ELEMENTSOF(all); k++)
			for (size_t f = 0; f < all[k].desc->n_fields; f++)
				found |= mo_streq(all[k].desc->name, later_keys[i].of) &&
					 mo_streq(all[k].desc->fields[f].name, later_keys[i].key);
		if (!found)
			fail_msg("%s has no key %s", later_keys[i].of, later_keys[i].key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absent),         cmocka_unit_test(test_extreme),
		cmocka_unit_test(test_wild),           cmocka_unit_test(test_older_text),
		cmocka_unit_test(test_all_are_listed), cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_older_state),    cmocka_unit_test(test_later_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
