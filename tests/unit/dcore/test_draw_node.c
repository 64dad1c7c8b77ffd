/* Drawings of nodes: what must be in them, at any width, and that nothing in a name can break the
 * picture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "daemon/core/view/draw_node.h"
#include "daemon/core/view/draw_node_svg.h"
#include "lib/base/parse.h"
#include "daemon/core/view/draw_words.h"
#include "lib/base/utf8.h"

struct bed {
	struct nodeinfo info;
	struct node_drawing d;
	struct mo_buf out;
};

static void add_gpu(struct nodeinfo *info, int64_t numa, const char *bdf, const char *nic,
		    int64_t partition)
{
	struct gpu_slot *g = MO_ADD(info, gpus, &gpu_slot_desc);

	g->index = (int64_t)info->n_gpus - 1;
	g->vendor = mo_strdup("amd");
	g->model = mo_strdup("mi300x");
	g->bdf = mo_strdup(bdf);
	g->numa_node = numa;
	g->vram_bytes = 206141652992;
	g->nic = mo_strdup(nic);
	g->partition = partition;
	g->compute_partition = mo_strdup(partition == MO_NONE ? "SPX" : "CPX");
	g->memory_partition = mo_strdup("NPS1");
	g->hive = mo_strdup("5ac1000003000001");
	g->render_minor = 127 + (int64_t)info->n_gpus;
}

static void add_nic(struct nodeinfo *info, const char *name, int64_t numa, const char *state)
{
	struct nic_info *n = MO_ADD(info, nics, &nic_info_desc);

	n->name = mo_strdup(name);
	n->state = mo_strdup(state);
	n->rate_gbps = 400;
	n->numa_node = numa;
	n->link_layer = mo_strdup("Ethernet");
	n->gid_index = 3;
}

static int setup(void **state)
{
	struct bed *b = mo_alloc(sizeof(*b));

	mo_desc_init(&nodeinfo_desc, &b->info);
	b->info.sockets = 2;
	b->info.cpus = 8;
	b->info.mem_bytes = 2LL << 40;
	b->info.cpu_model = mo_strdup("AMD EPYC 9654");
	for (int i = 0; i < 2; i++) {
		struct numa_node *n = MO_ADD(&b->info, numa, &numa_node_desc);
		n->id = i;
		n->cpus = mo_strdup(i ? "4-7" : "0-3");
		n->cores = mo_strdup(i ? "4,5;6,7" : "0,1;2,3");
		n->l3 = mo_strdup(i ? "4-5;6-7" : "0-1;2-3");
		n->mem_bytes = 1LL << 40;
		n->distances = mo_strdup(i ? "32 10" : "10 32");
	}
	b->d = (struct node_drawing){ .name = "n1", .state = "up", .info = &b->info };
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	mo_desc_done(&nodeinfo_desc, &b->info);
	mo_buf_done(&b->out);
	free(b);
	return 0;
}

static const char *drawn(struct bed *b, int width)
{
	mo_buf_reset(&b->out);
	b->d.width = width;
	draw_node_text(&b->d, &b->out);
	return b->out.data;
}

static const char *pictured(struct bed *b)
{
	mo_buf_reset(&b->out);
	draw_node_svg(&b->d, &b->out);
	return b->out.data;
}

/* Longest line in characters. */
static int longest(const char *s)
{
	int best = 0, n = 0;

	for (; *s; s++) {
		n = *s == '\n' ? 0 : n + (((unsigned char)*s & 0xc0) != 0x80);
		best = MO_MAX(best, n);
	}
	return best;
}

static void link_pair(struct nodeinfo *info, int64_t from, int64_t to)
{
	struct gpu_link *l = MO_ADD(info, links, &gpu_link_desc);

	l->from = from;
	l->to = to;
	l->type = mo_strdup("xgmi");
	l->weight = 15;
}

static void test_tree(void **state)
{
	struct bed *b = *state;
	const struct slot_use uses[] = { { 1, "j-7 rank 1" } };

	add_gpu(&b->info, 0, "0000:0c:00.0", "ionic_0", MO_NONE);
	add_gpu(&b->info, 1, "0000:9f:00.0", "ionic_1", MO_NONE);
	add_nic(&b->info, "ionic_0", 0, "ACTIVE");
	add_nic(&b->info, "ionic_1", 1, "DOWN");
	add_nic(&b->info, "mlx5_9", 1, "ACTIVE");
	link_pair(&b->info, 0, 1);
	b->d.uses = uses;
	b->d.n_uses = 1;
	static const char want[] =
		"n1  AMD EPYC 9654, 2 sockets, 8 CPUs, 2.20 TB\n"
		"├─ NUMA 0 (socket 0)  2 cores, 4 CPUs, 2 L3 groups of 2, 1.10 TB, distances 10 "
		"32\n"
		"│   CPUs 0-3\n"
		"│  └─ GPU 0  mi300x  0000:0c:00.0  SPX/NPS1  206 GB  D128  ionic_0       ACTIVE "
		"400 Gb/s GID 3\n"
		"└─ NUMA 1 (socket 1)  2 cores, 4 CPUs, 2 L3 groups of 2, 1.10 TB, distances 32 "
		"10\n"
		"    CPUs 4-7\n"
		"   ├─ GPU 1  mi300x  0000:9f:00.0  SPX/NPS1  206 GB  D129  ionic_1 DOWN         "
		"400 Gb/s GID 3  j-7 rank 1\n"
		"   └─ NIC mlx5_9  ACTIVE 400 Gb/s GID 3\n"
		"XGMI hive 5ac1000003000001: slots 0-1, each linked to each (weight 15)\n";
	assert_string_equal(drawn(b, 120), want);
}

static void test_narrow(void **state)
{
	struct bed *b = *state;

	for (int i = 0; i < 8; i++)
		add_gpu(&b->info, i / 4, "0000:0c:00.0", "ionic_0", MO_NONE);
	add_nic(&b->info, "ionic_0", 0, "ACTIVE");
	for (int width = 40; width <= 120; width++) {
		const char *text = drawn(b, width);
		assert_true(longest(text) <= width);
		assert_non_null(strstr(text, "GPU 7"));
		assert_non_null(strstr(text, "ionic_0"));
		assert_true(mo_utf8_valid(text, strlen(text)));
	}
	mo_str_set(&b->info.nics[0].state, "DOWN");
	assert_non_null(strstr(drawn(b, 40), "ionic_0 DOWN"));
	assert_null(strstr(drawn(b, 60), "D128"));
	assert_non_null(strstr(drawn(b, 100), "D128"));
}

static void test_partitions_are_one_gpu(void **state)
{
	struct bed *b = *state;

	for (int i = 0; i < 16; i++)
		add_gpu(&b->info, 0, i < 8 ? "0000:0c:00.0" : "0000:15:00.0", NULL, i % 8);
	assert_non_null(strstr(drawn(b, 100), "GPUs 0-7 "));
	assert_non_null(strstr(b->out.data, "GPUs 8-15"));
	assert_non_null(strstr(b->out.data, "8 x 206 GB"));
	assert_non_null(strstr(b->out.data, "0 of 120 pairs linked"));
	assert_non_null(strstr(pictured(b), "<title>slot 15</title>"));
}

static void test_strays_and_findings(void **state)
{
	struct bed *b = *state;
	struct node_finding *f = MO_ADD(&b->info, findings, &node_finding_desc);

	f->object = mo_strdup("0000:0c:00.0");
	f->text = mo_strdup("numa_node 7 does not exist here");
	add_gpu(&b->info, 7, "0000:0c:00.0", NULL, MO_NONE);
	add_gpu(&b->info, MO_NONE, NULL, NULL, MO_NONE);
	assert_non_null(strstr(drawn(b, 100), "└─ NUMA node unknown\n   ├─ GPU 0"));
	assert_non_null(strstr(b->out.data, "! 0000:0c:00.0: numa_node 7 does not exist here\n"));
	assert_non_null(strstr(pictured(b), "NUMA node unknown"));
	assert_non_null(strstr(b->out.data, "! 0000:0c:00.0: numa_node 7"));
}

static void test_empty(void **state)
{
	struct bed *b = *state;
	struct nodeinfo nothing;

	mo_desc_init(&nodeinfo_desc, &nothing);
	b->d.info = &nothing;
	assert_non_null(strstr(drawn(b, 0), "n1  0 CPUs, -"));
	assert_non_null(strstr(pictured(b), "</svg>\n"));
	mo_desc_done(&nodeinfo_desc, &nothing);
}

static void test_names_cannot_break_the_picture(void **state)
{
	struct bed *b = *state;

	add_gpu(&b->info, 0, "<script>&\"", "<x>", MO_NONE);
	add_nic(&b->info, "<x>", 0, "</text>");
	mo_str_set(&b->info.gpus[0].model, "ééééééééééééééééééééééééééééééééééé");
	mo_str_set(&b->info.gpus[0].bdf, "a\033[2Jb\302\233c");
	const char *text = drawn(b, 200);
	assert_non_null(strstr(text, "a?[2Jb?c"));
	for (const char *p = text; *p; p++)
		assert_true((unsigned char)*p >= ' ' || *p == '\n');
	mo_str_set(&b->info.gpus[0].bdf, "<script>&\"\001");
	const char *svg = pictured(b);
	assert_null(strchr(svg, 1));
	assert_null(strstr(svg, "<script>"));
	assert_null(strstr(svg, "<x>"));
	assert_non_null(strstr(svg, "&#60;script&#62;&#38;"));
	assert_true(mo_utf8_valid(svg, strlen(svg)));
}

static void test_a_missing_gpu_is_drawn(void **state)
{
	struct bed *b = *state;
	const struct slot_use uses[] = { { 1, "j-7 rank 1" } };
	const struct slot_trouble troubles[] = {
		{ 0, false, "gpu.ras_ue crit" },
		{ 1, true, "missing since 2026-11-21T12:03:04Z (gpu.count, gpu.read)" }
	};
	const char *const notes[] = { "GPU 1 0000:9f:00.0: missing since 2026-11-21T12:03:04Z" };

	add_gpu(&b->info, 0, "0000:0c:00.0", "ionic_0", MO_NONE);
	add_gpu(&b->info, 1, "0000:9f:00.0", "ionic_1", MO_NONE);
	b->d.uses = uses;
	b->d.n_uses = 1;
	assert_null(strstr(drawn(b, 100), "MISSING"));
	assert_null(strstr(pictured(b), "#fdeceb"));
	b->d.troubles = troubles;
	b->d.n_troubles = 2;
	b->d.notes = notes;
	b->d.n_notes = 1;
	for (int width = 40; width <= 160; width += 20) {
		const char *line = strstr(drawn(b, width), "GPU 1  MISSING");
		assert_non_null(line);
		assert_non_null(strstr(b->out.data, "GPU 0  see below"));
		assert_non_null(strstr(b->out.data, "! GPU 1 0000:9f:00.0: missing since"));
	}
	assert_non_null(strstr(drawn(b, 100), "j-7 rank 1"));
	assert_non_null(
		strstr(pictured(b), "missing since 2026-11-21T12:03:04Z (gpu.count, gpu.read)"));
	assert_non_null(strstr(b->out.data, "#fdeceb"));
	assert_ptr_equal(draw_trouble(&b->d, 0, 2), &troubles[1]);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = { T(test_tree),
					    T(test_a_missing_gpu_is_drawn),
					    T(test_narrow),
					    T(test_partitions_are_one_gpu),
					    T(test_strays_and_findings),
					    T(test_empty),
					    T(test_names_cannot_break_the_picture) };
	return cmocka_run_group_tests_name("draw_node", tests, NULL, NULL);
}
