/* Which device a file that hangs belongs to, what the next pass leaves out, and what stands in for
 * it. */
#include "tests/unit/unit.h"
#include <stdio.h>
#include <string.h>
#include "agent/core/agent/discovery.h"

#define PCI "/sys/bus/pci/devices/"
#define KFD "/sys/class/kfd/kfd/topology/nodes/"

static void which_device(void **state)
{
	static const struct {
		const char *file, *dir, *object;
	} cases[] = {
		{ PCI "0000:1e:00.0/numa_node", PCI "0000:1e:00.0", "0000:1e:00.0" },
		{ KFD "4/io_links/3/properties", KFD "4", "KFD node 4" },
		{ "/sys/class/infiniband/mlx5_1/device/numa_node", "/sys/class/infiniband/mlx5_1",
		  "mlx5_1" },
		{ "/proc/driver/nvidia/gpus/0000:00:06.0/information",
		  "/proc/driver/nvidia/gpus/0000:00:06.0", "0000:00:06.0" },
		{ "/dev/dri/renderD130", "/dev/dri/renderD130", "renderD130" },
		{ "/dev/nvidia0", "/dev/nvidia0", "nvidia0" },
		{ "/sys/devices/system (CPUs, caches and NUMA nodes)", NULL, NULL },
		{ PCI, NULL, NULL },
		{ "/sys/module/amdgpu/version", NULL, NULL },
		{ "", NULL, NULL },
	};
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct left_outs l = { 0 };
		assert_int_equal(left_outs_add(&l, cases[i].file), cases[i].dir != NULL);
		assert_int_equal(l.n, 1);
		assert_true(mo_streq(l.items[0].dir, cases[i].dir) &&
			    mo_streq(l.items[0].object, cases[i].object) &&
			    mo_streq(l.items[0].file, cases[i].file));
		left_outs_done(&l);
	}
}

static void a_round_leaves_out_only_what_still_hangs(void **state)
{
	struct left_outs l = { 0 };

	assert_true(left_outs_begin(&l));
	assert_true(left_outs_add(&l, PCI "0000:1e:00.0/numa_node"));
	assert_true(left_outs_add(&l, KFD "4/properties"));
	left_outs_gone(&l, PCI "0000:1e:00.0/numa_node");
	assert_int_equal(l.n, 2); /* until the next round */
	assert_true(left_outs_begin(&l));
	assert_int_equal(l.n, 1);
	assert_string_equal(l.items[0].object, "KFD node 4");
	left_outs_gone(&l, KFD "4/properties");
	assert_true(left_outs_begin(&l));
	assert_int_equal(l.n, 0);
	left_outs_done(&l);
}

static void what_is_of_no_device_is_not_read_twice(void **state)
{
	struct left_outs l = { 0 };

	assert_false(left_outs_add(&l, NULL));
	assert_false(left_outs_begin(&l)); /* its process lives */
	left_outs_gone(&l, NULL);
	assert_true(left_outs_begin(&l));
	assert_int_equal(l.n, 0);
	assert_true(left_outs_add(&l, KFD "4/properties"));
	assert_false(left_outs_add(&l, KFD "4/gpu_id")); /* it was left out, and yet */
	assert_false(left_outs_begin(&l));
	left_outs_gone(&l, KFD "4/gpu_id");
	assert_true(left_outs_begin(&l));
	assert_int_equal(l.n, 1);
	left_outs_done(&l);
}

static void looks_of_a_round_come_to_an_end(void **state)
{
	struct left_outs l = { 0 };
	size_t n = 0;
	bool again = true;

	for (; again && n < 1000; n++) {
		char file[64];
		snprintf(file, sizeof(file), KFD "%zu/properties", n);
		again = left_outs_add(&l, file);
	}
	assert_in_range(n, 16, 100);
	left_outs_done(&l);
}

/* ---- what stands in */

/* n GPUs 0000:0<i>:00.0 with a card each, all linked to slot 0; those of `skip` are not seen. */
static void machine(struct nodeinfo *info, size_t n, size_t skip)
{
	mo_desc_init(&nodeinfo_desc, info);
	info->cpus = 8;
	info->driver = mo_strdup("amdgpu 6");
	for (size_t i = 0; i < n; i++) {
		if (i == skip)
			continue;
		struct gpu_slot *g = MO_ADD(info, gpus, &gpu_slot_desc);
		struct nic_info *nic = MO_ADD(info, nics, &nic_info_desc);
		g->index = (int64_t)info->n_gpus - 1;
		g->bdf = mo_printf("0000:0%zu:00.0", i);
		g->numa_node = (int64_t)i / 2;
		nic->name = mo_printf("mlx5_%zu", i);
		nic->state = mo_strdup("ACTIVE");
		if (g->index > 0) {
			struct gpu_link *k = MO_ADD(info, links, &gpu_link_desc);
			k->from = 0;
			k->to = g->index;
			k->type = mo_strdup("xgmi");
			k->weight = 15;
		}
	}
}

static void same(const struct nodeinfo *a, const struct nodeinfo *b)
{
	_cleanup_(mo_freep) char *diff = mo_desc_diff(&nodeinfo_desc, a, b);
	if (diff)
		fail_msg("%s differs", diff);
}

static void a_gpu_that_is_left_out_is_as_it_was(void **state)
{
	struct nodeinfo before, now;
	struct left_outs l = { 0 };

	machine(&before, 4, 9);
	machine(&now, 4, 9);
	left_outs_add(&l, PCI "0000:02:00.0/numa_node");
	now.gpus[2].numa_node = MO_NONE;
	now.gpus[3].numa_node = 7; /* of another one: this pass counts */
	discovery_join(&now, &before, &l);
	before.gpus[3].numa_node = 7;
	assert_int_equal(now.n_findings, 1);
	assert_string_equal(now.findings[0].object, "0000:02:00.0");
	assert_non_null(strstr(now.findings[0].text,
			       PCI "0000:02:00.0/numa_node could not be read in time"));
	assert_non_null(strstr(now.findings[0].text, "earlier look"));
	mo_vec_clear(&node_finding_desc, (void **)&now.findings, &now.n_findings);
	same(&now, &before);
	left_outs_done(&l);
	mo_desc_done(&nodeinfo_desc, &before);
	mo_desc_done(&nodeinfo_desc, &now);
}

static void a_gpu_that_cannot_be_seen_keeps_its_slot(void **state)
{
	struct nodeinfo before, now;
	struct left_outs l = { 0 };

	machine(&before, 4, 9);
	machine(&now, 4, 1);
	left_outs_add(&l, KFD "3/properties");
	discovery_join(&now, &before, &l);
	assert_int_equal(now.n_gpus, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(now.gpus[i].index, i);
		assert_string_equal(now.gpus[i].bdf, before.gpus[i].bdf);
	}
	assert_int_equal(now.n_links, 3);
	left_outs_done(&l);
	mo_desc_done(&nodeinfo_desc, &before);
	mo_desc_done(&nodeinfo_desc, &now);
}

static void a_gpu_that_is_gone_stays_gone(void **state)
{
	struct nodeinfo before, now;
	struct left_outs l = { 0 };

	machine(&before, 4, 9);
	machine(&now, 4, 1);
	left_outs_add(&l, "/sys/class/infiniband/mlx5_3/fw_ver"); /* that hides no GPU */
	discovery_join(&now, &before, &l);
	assert_int_equal(now.n_gpus, 3);
	/* the others keep their numbers in this boot */
	assert_int_equal(now.gpus[1].index, 2);
	left_outs_done(&l);
	mo_desc_done(&nodeinfo_desc, &before);
	mo_desc_done(&nodeinfo_desc, &now);
}

/* A full pass: the slot stays, for the jobs that were given it and the checks that miss it. */
static void a_gpu_that_vanished_keeps_its_slot(void **state)
{
	struct nodeinfo before, now;

	machine(&before, 4, 9);
	machine(&now, 4, 1);
	discovery_vanished(&now, NULL);
	assert_int_equal(now.n_gpus, 3); /* nothing is known of an earlier pass */
	discovery_vanished(&now, &before);
	assert_int_equal(now.n_gpus, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(now.gpus[i].index, i);
		assert_string_equal(now.gpus[i].bdf, before.gpus[i].bdf);
	}
	assert_int_equal(now.n_findings, 1);
	assert_string_equal(now.findings[0].object, before.gpus[1].bdf);
	mo_desc_copy(&nodeinfo_desc, &before, &now);
	/* found again each time, not once more for each time */
	discovery_vanished(&now, &before);
	assert_int_equal(now.n_gpus, 4);
	assert_int_equal(now.n_findings, 1);
	/* a card that was partitioned in another way is there */
	before.gpus[1].partition = 0;
	discovery_vanished(&now, &before);
	assert_int_equal(now.n_gpus, 4);
	assert_int_equal(now.n_findings, 1);
	mo_desc_done(&nodeinfo_desc, &before);
	mo_desc_done(&nodeinfo_desc, &now);
}

static void a_card_that_is_left_out_is_as_it_was(void **state)
{
	struct nodeinfo before, now;
	struct left_outs l = { 0 };

	machine(&before, 2, 9);
	machine(&now, 2, 9);
	left_outs_add(&l, "/sys/class/infiniband/mlx5_1/ports/1/state");
	mo_str_set(&now.nics[1].state, NULL);
	mo_str_set(&now.nics[0].state, "DOWN");
	discovery_join(&now, &before, &l);
	assert_string_equal(now.nics[0].state, "DOWN");
	assert_string_equal(now.nics[1].state, "ACTIVE");
	left_outs_done(&l);
	mo_desc_done(&nodeinfo_desc, &before);
	mo_desc_done(&nodeinfo_desc, &now);
}

static void without_an_earlier_pass_only_the_device_is_unknown(void **state)
{
	struct nodeinfo now, found;
	struct left_outs l = { 0 };

	machine(&now, 2, 9);
	machine(&found, 2, 9);
	left_outs_add(&l, PCI "0000:01:00.0/numa_node");
	discovery_join(&now, NULL, &l);
	assert_int_equal(now.n_findings, 1);
	assert_non_null(strstr(now.findings[0].text, "unknown"));
	mo_vec_clear(&node_finding_desc, (void **)&now.findings, &now.n_findings);
	same(&now, &found);
	left_outs_done(&l);
	mo_desc_done(&nodeinfo_desc, &now);
	mo_desc_done(&nodeinfo_desc, &found);
}

/* Several of one device count as one place, which is free when the last is gone; what is of no
 * device keeps everybody waiting. */
static void processes_of_an_agent_before_this_one(void **state)
{
	struct left_outs l = { 0 };
	const char *first = left_outs_orphan(&l, PCI "0000:01:00.0/numa_node", 4711);
	char *text;

	assert_string_equal(left_outs_orphan(&l, PCI "0000:01:00.0/mem_info_vram_total", 4712),
			    first);
	assert_int_equal(l.n, 1);
	assert_true(left_outs_begin(&l));
	text = discovery_says(&l, NULL, true);
	assert_non_null(strstr(text, "numa_node could not be read in time (process 4711 of an "
				     "agent before this one hangs there)"));
	free(text);
	left_outs_gone(&l, first);
	assert_true(left_outs_begin(&l));
	assert_int_equal(l.n, 1);
	left_outs_gone(&l, first);
	assert_true(left_outs_begin(&l));
	assert_int_equal(l.n, 0);
	first = left_outs_orphan(&l, "/sys/devices/system (CPUs): /sys/devices/system/cpu/online",
				 4711);
	assert_string_equal(left_outs_orphan(&l,
					     "/sys/devices/system (CPUs): "
					     "/sys/devices/system/cpu/online",
					     4712),
			    first);
	assert_int_equal(l.n, 1);
	assert_false(left_outs_begin(&l));
	left_outs_done(&l);
}

static void it_is_said(void **state)
{
	struct left_outs l = { 0 };
	char *text = discovery_says(&l, NULL, true);

	assert_null(text);
	text = discovery_says(&l, "moe-discover was killed by signal 11", false);
	assert_string_equal(text, "moe-discover was killed by signal 11; nothing is known of this "
				  "machine");
	free(text);
	left_outs_add(&l, PCI "0000:01:00.0/numa_node");
	left_outs_add(&l, KFD "4/properties");
	text = discovery_says(&l, NULL, true);
	assert_string_equal(text, "0000:01:00.0 is left out: " PCI
				  "0000:01:00.0/numa_node could not be read in time, KFD node 4 is "
				  "left out: " KFD "4/properties could not be read in time"
				  "; what is known of that is from an earlier look in this boot");
	free(text);
	left_outs_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_device),
		cmocka_unit_test(a_round_leaves_out_only_what_still_hangs),
		cmocka_unit_test(what_is_of_no_device_is_not_read_twice),
		cmocka_unit_test(looks_of_a_round_come_to_an_end),
		cmocka_unit_test(a_gpu_that_is_left_out_is_as_it_was),
		cmocka_unit_test(a_gpu_that_cannot_be_seen_keeps_its_slot),
		cmocka_unit_test(a_gpu_that_is_gone_stays_gone),
		cmocka_unit_test(a_gpu_that_vanished_keeps_its_slot),
		cmocka_unit_test(a_card_that_is_left_out_is_as_it_was),
		cmocka_unit_test(without_an_earlier_pass_only_the_device_is_unknown),
		cmocka_unit_test(processes_of_an_agent_before_this_one),
		cmocka_unit_test(it_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
