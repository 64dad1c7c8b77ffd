/* What an emulated node consists of: two sockets, so many MI300X, each with an RDMA card. */
#include <stdio.h>

#include "tests/bench/swarm/swarm.h"

#define CORES 48

static void add_gpu(const struct agent *a, int64_t i, int64_t n, struct nodeinfo *ret)
{
	struct gpu_slot *g = MO_ADD(ret, gpus, &gpu_slot_desc);
	struct nic_info *c = MO_ADD(ret, nics, &nic_info_desc);

	g->index = i;
	g->vendor = mo_strdup("amd");
	g->model = mo_strdup("MI300X");
	g->bdf = mo_printf("0000:%02x:00.0", (int)(5 + 16 * i));
	g->unique_id = mo_printf("%08zx%08x", a->index + 1, (int)i + 1);
	g->numa_node = 2 * i / n;
	g->vram_bytes = 192LL << 30;
	g->nic = mo_printf("rdma%d", (int)i);
	g->compute_partition = mo_strdup("SPX");
	g->memory_partition = mo_strdup("NPS1");
	g->render_minor = 128 + i;
	c->name = mo_strdup(g->nic);
	c->bdf = mo_printf("0000:%02x:00.0", (int)(6 + 16 * i));
	c->netdev = mo_printf("ens%d", (int)i);
	c->family = mo_strdup("thor2");
	c->numa_node = g->numa_node;
	c->port = 1;
	c->state = mo_strdup("ACTIVE");
	c->link_layer = mo_strdup("Ethernet");
	c->rate_gbps = 400;
	c->gid_index = 3;
	for (int64_t k = 0; k < i; k++) {
		struct gpu_link *l = MO_ADD(ret, links, &gpu_link_desc);

		*l = (struct gpu_link){ k, i, mo_strdup("xgmi"), 15 };
	}
}

void swarm_nodeinfo(const struct agent *a, struct nodeinfo *ret)
{
	int64_t n = a->swarm->gpus;

	ret->hostname = mo_printf("swarm-%zu", a->index);
	ret->arch = mo_strdup("x86_64");
	ret->kernel = mo_strdup("6.1.0");
	for (int64_t i = 0; i < n; i++)
		add_gpu(a, i, n, ret);
	for (int i = 0; i < 2; i++) {
		struct numa_node *m = MO_ADD(ret, numa, &numa_node_desc);

		m->id = i;
		m->cpus = mo_printf("%d-%d", CORES * i, CORES * i + CORES - 1);
		m->mem_bytes = 1LL << 40;
		m->distances = mo_strdup(i ? "32 10" : "10 32");
	}
	ret->cpus = 2LL * CORES;
	ret->sockets = 2;
	ret->mem_bytes = 2LL << 40;
	ret->driver = mo_strdup("6.12.12");
	ret->cpu_model = mo_strdup("emulated");
	ret->simulated = true;
}
