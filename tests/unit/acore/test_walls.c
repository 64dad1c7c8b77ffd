/* Walls between jobs that share a node: when they stand, how the ranks' runtime counts behind them,
 * what the namespace is asked for, and what is found when it is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/bind/walls.h"
#include "agent/core/stepd/box_make.h"
#include "lib/base/buf.h"
#include "lib/model/recipe.h"

static const struct walls_terms all = { .wanted = true, .files = true, .able = true };

struct bed {
	struct spool spool;
	struct box box;
	struct device_file *here;
	size_t n_here;
};

static void device(struct bed *b, const char *path)
{
	struct device_file *f = MO_GROW(b->here, b->n_here);

	*f = (struct device_file){ .path = mo_strdup(path), .number = 100 + b->n_here };
}

/* 8 GPUs of AMD with a card each; the job has GPUs 4 and 6. */
static int setup(void **state)
{
	struct bed *b = mo_alloc(sizeof(*b));
	struct nodeinfo *info = &b->spool.info;
	char text[64];

	*b = (struct bed){ .n_here = 0 };
	mo_desc_init(&spool_desc, &b->spool);
	mo_desc_init(&box_desc, &b->box);
	for (int i = 0; i < 8; i++) {
		struct gpu_slot *g = MO_ADD(info, gpus, &gpu_slot_desc);
		struct nic_info *n = MO_ADD(info, nics, &nic_info_desc);

		g->index = i;
		g->vendor = mo_strdup("amd");
		g->render_minor = 128 + i;
		g->nic = mo_printf("mlx5_%d", i);
		n->name = mo_strdup(g->nic);
		n->uverbs = mo_printf("uverbs%d", 7 - i);
		snprintf(text, sizeof(text), "/dev/dri/renderD%d", 128 + i);
		device(b, text);
		snprintf(text, sizeof(text), "/dev/dri/card%d", 1 + i);
		device(b, text);
		snprintf(text, sizeof(text), "/dev/infiniband/uverbs%d", i);
		device(b, text);
	}
	device(b, "/dev/infiniband/umad0");
	device(b, "/dev/infiniband/rdma_cm");
	device(b, "/dev/kfd");
	mo_ints_add(&b->spool.launch.gpus, &b->spool.launch.n_gpus, 4);
	mo_ints_add(&b->spool.launch.gpus, &b->spool.launch.n_gpus, 6);
	b->spool.launch.bind.nic = mo_strdup("nearest");
	walls_settle(info, &all);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	mo_desc_done(&spool_desc, &b->spool);
	mo_desc_done(&box_desc, &b->box);
	device_files_clear(&b->here, &b->n_here);
	free(b);
	return 0;
}

static void asked(struct bed *b, const char *walled, const char *devices)
{
	_cleanup_(mo_buf_done) struct mo_buf w = { 0 }, d = { 0 };
	char *root = mo_strdup(b->box.root);

	mo_desc_done(&box_desc, &b->box);
	mo_desc_init(&box_desc, &b->box);
	b->box.root = root;
	box_devices(&b->spool, b->here, b->n_here, &b->box);
	for (size_t i = 0; i < b->box.n_walled; i++)
		mo_buf_printf(&w, "%s%s", i ? " " : "", b->box.walled[i]);
	for (size_t i = 0; i < b->box.n_devices; i++)
		mo_buf_printf(&d, "%s%s", i ? " " : "", b->box.devices[i].target);
	assert_string_equal(w.data ? w.data : "", walled);
	assert_string_equal(d.data ? d.data : "", devices);
	assert_int_equal(box_asks(&b->box), root || *walled);
}

static void test_stand(void **state)
{
	struct bed *b = *state;
	struct launch *l = &b->spool.launch;
	struct nodeinfo *info = &b->spool.info;

	assert_true(info->walls);
	assert_int_equal(info->n_findings, 0);
	assert_true(walls_gpus(l, info));
	assert_true(walls_nics(l, info));
	asked(b, "/dev/dri /dev/infiniband",
	      "/dev/dri/renderD132 /dev/dri/renderD134 /dev/infiniband/uverbs3 "
	      "/dev/infiniband/uverbs1 /dev/infiniband/rdma_cm");
	info->walls = false; /* an agent of before, or one that says it cannot */
	assert_false(walls_gpus(l, info));
	assert_int_equal(walls_number(l, info, 6), 6);
	asked(b, "", "");
}

static void test_whole_node(void **state)
{
	struct bed *b = *state;
	struct launch *l = &b->spool.launch;

	for (int i = 0; i < 8; i++)
		if (i != 4 && i != 6)
			mo_ints_add(&l->gpus, &l->n_gpus, i);
	assert_false(walls_gpus(l, &b->spool.info));
	assert_int_equal(walls_number(l, &b->spool.info, 6), 6);
	asked(b, "", "");
}

/* The runtime counts what it can open in the order of the slots, whatever the job's order is. */
static void test_number(void **state)
{
	struct bed *b = *state;
	struct launch *l = &b->spool.launch;

	assert_int_equal(walls_number(l, &b->spool.info, 4), 0);
	assert_int_equal(walls_number(l, &b->spool.info, 6), 1);
	mo_ints_add(&l->gpus, &l->n_gpus, 1);
	assert_int_equal(walls_number(l, &b->spool.info, 1), 0);
	assert_int_equal(walls_number(l, &b->spool.info, 4), 1);
	assert_int_equal(walls_number(l, &b->spool.info, 6), 2);
}

static void test_no_file_known(void **state)
{
	struct bed *b = *state;
	struct launch *l = &b->spool.launch;
	struct nodeinfo *info = &b->spool.info;

	info->gpus[6].render_minor = MO_NONE;
	assert_false(walls_gpus(l, info));
	assert_int_equal(walls_number(l, info, 4), 4);
	info->gpus[6].render_minor = 134;
	l->gpus[1] = 9;
	assert_false(walls_gpus(l, info));
}

static void test_nics(void **state)
{
	static const char *const dri = "/dev/dri",
				 *const gpus = "/dev/dri/renderD132 /dev/dri/renderD134";
	struct bed *b = *state;
	struct launch *l = &b->spool.launch;
	struct nodeinfo *info = &b->spool.info;

	mo_str_set(&l->bind.nic, "none");
	asked(b, dri, gpus);
	mo_str_set(&l->bind.nic, "nearest");
	mo_str_set(&info->nics[6].uverbs, NULL);
	asked(b, dri, gpus);
	mo_str_set(&info->nics[6].uverbs, "uverbs1");
	mo_str_set(&info->nics[5].uverbs, NULL); /* of another's GPU */
	assert_true(walls_nics(l, info));
	mo_str_set(&info->gpus[4].nic, NULL);
	mo_str_set(&info->gpus[6].nic, NULL);
	asked(b, dri, gpus);
	mo_str_set(&info->gpus[4].nic, "mlx5_4");
	assert_true(walls_nics(l, info));
	struct env_item *i = MO_ADD(l, env, &env_item_desc);
	i->name = mo_strdup("NCCL_IB_HCA");
	i->layer = ENV_PROFILE; /* the node's own word replaces it */
	assert_true(walls_nics(l, info));
	l->env[0].layer = ENV_RECIPE;
	asked(b, dri, gpus);
}

/* In an image all devices are asked for; what is another's is not among them. */
static void test_image(void **state)
{
	struct bed *b = *state;

	b->box.root = mo_strdup("/images/a");
	asked(b, "/dev/dri /dev/infiniband",
	      "/dev/dri/renderD132 /dev/dri/renderD134 /dev/infiniband/uverbs3 "
	      "/dev/infiniband/uverbs1 /dev/infiniband/rdma_cm /dev/kfd");
	b->spool.info.walls = false;
	device_files_clear(&b->here, &b->n_here);
	device(b, "/dev/dri/renderD128");
	device(b, "/dev/dri/renderD129");
	device(b, "/dev/infiniband/umad0");
	device(b, "/dev/kfd");
	asked(b, "", "/dev/dri/renderD128 /dev/dri/renderD129 /dev/infiniband/umad0 /dev/kfd");
}

/* A machine below a directory: its files are bound where they are; in an image where ranks look. */
static void test_other_root(void **state)
{
	struct bed *b = *state;

	b->spool.devices_root = mo_strdup("/m");
	mo_str_set(&b->spool.launch.bind.nic, "none");
	device_files_clear(&b->here, &b->n_here);
	asked(b, "/m/dev/dri", "/m/dev/dri/renderD132 /m/dev/dri/renderD134");
	b->box.root = mo_strdup("/images/a");
	asked(b, "/dev/dri", "/dev/dri/renderD132 /dev/dri/renderD134");
	assert_string_equal(b->box.devices[0].source, "/m/dev/dri/renderD132");
}

static void judged(struct bed *b, const struct device_file *inside, size_t n, const char *want)
{
	_cleanup_(mo_freep) char *got = box_judge(&b->box, inside, n, b->here, b->n_here);

	assert_string_equal(got ? got : "", want);
}

static void test_judge(void **state)
{
	struct bed *b = *state;
	struct device_file inside[4];

	mo_str_set(&b->spool.launch.bind.nic, "none");
	asked(b, "/dev/dri", "/dev/dri/renderD132 /dev/dri/renderD134");
	for (size_t i = 0; i < b->n_here; i++)
		for (size_t k = 0; k < 2; k++)
			if (mo_streq(b->here[i].path, b->box.devices[k].source))
				inside[k] = b->here[i];
	inside[2] = (struct device_file){ .path = (char *)"/dev/dri/renderD131", .number = 7 };
	inside[3] = (struct device_file){ .path = (char *)"/dev/infiniband/uverbs0" };
	judged(b, inside, 2, "");
	judged(b, inside, 3, "/dev/dri/renderD131 can be opened there, which is not the job's");
	judged(b, inside, 1, "/dev/dri/renderD134 is missing there");
	inside[2] = inside[3]; /* in a directory that is not walled */
	judged(b, inside, 3, "");
	inside[0].number++;
	judged(b, inside, 2,
	       "/dev/dri/renderD132 is another device there than /dev/dri/renderD132 on the node");
	_cleanup_(mo_freep) char *got = box_judge(&b->box, inside, 2, b->here, 0);
	assert_string_equal(got, "/dev/dri/renderD132 is missing on the node");
}

static void settles(struct bed *b, const struct walls_terms *t, const char *text)
{
	struct nodeinfo *info = &b->spool.info;

	for (int again = 0; again < 2; again++) { /* each look at the machine says it once */
		walls_settle(info, t);
		assert_int_equal(info->n_findings, *text ? 1 : 0);
		assert_false(info->walls);
		if (!*text)
			continue;
		assert_string_equal(info->findings[0].object, WALLS_OBJECT);
		assert_non_null(strstr(info->findings[0].text, text));
	}
}

static void test_settle(void **state)
{
	struct bed *b = *state;
	struct nodeinfo *info = &b->spool.info;
	struct walls_terms t = all;

	t.able = false;
	settles(b, &t, "the agent is not root");
	t.wanted = false;
	settles(b, &t, "");
	t = all;
	t.files = false; /* of a description */
	settles(b, &t, "");
	info->gpus[3].render_minor = MO_NONE;
	settles(b, &all, "which file is that of GPU 3");
	info->gpus[3].render_minor = 129;
	settles(b, &all, "GPUs 1 and 3 have one file");
	info->gpus[3].render_minor = 131;
	walls_settle(info, &all);
	assert_true(info->walls);
	assert_int_equal(info->n_findings, 0);
	mo_str_set(&info->gpus[3].vendor, "nvidia");
	settles(b, &all, "");
	mo_str_set(&info->gpus[3].vendor, "amd");
	while (info->n_gpus > 1)
		mo_vec_remove(&gpu_slot_desc, info->gpus, &info->n_gpus, 1);
	settles(b, &all, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stand, setup, teardown),
		cmocka_unit_test_setup_teardown(test_whole_node, setup, teardown),
		cmocka_unit_test_setup_teardown(test_number, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_file_known, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nics, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_root, setup, teardown),
		cmocka_unit_test_setup_teardown(test_judge, setup, teardown),
		cmocka_unit_test_setup_teardown(test_settle, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
