/* The words of a drawing of a node, for its text and its SVG. */
#include "daemon/core/view/draw_words.h"

#include <stdio.h>

#include "daemon/core/view/draw_node.h"
#include "lib/base/idset.h"

#define WEIGHTS_MAX 8

const struct nic_info *draw_nic(const struct nodeinfo *info, const char *name)
{
	for (size_t i = 0; name && i < info->n_nics; i++)
		if (mo_streq(info->nics[i].name, name))
			return &info->nics[i];
	return NULL;
}

const char *draw_use(const struct node_drawing *d, int64_t slot)
{
	for (size_t i = 0; i < d->n_uses; i++)
		if (d->uses[i].slot == slot)
			return d->uses[i].text;
	return NULL;
}

const struct slot_trouble *draw_trouble(const struct node_drawing *d, size_t from, size_t end)
{
	const struct slot_trouble *found = NULL;

	for (size_t i = from; i < end; i++)
		for (size_t k = 0; k < d->n_troubles; k++)
			if (d->troubles[k].slot == d->info->gpus[i].index &&
			    (!found || (d->troubles[k].missing && !found->missing)))
				found = &d->troubles[k];
	return found;
}

size_t draw_gpu_end(const struct nodeinfo *info, size_t i)
{
	size_t end = i + 1;

	while (info->gpus[i].partition != MO_NONE && end < info->n_gpus &&
	       info->gpus[end].partition != MO_NONE &&
	       mo_streq(info->gpus[i].bdf, info->gpus[end].bdf))
		end++;
	return end;
}

bool draw_nic_serves(const struct nodeinfo *info, const char *name)
{
	for (size_t i = 0; i < info->n_gpus; i++)
		if (mo_streq(info->gpus[i].nic, name))
			return true;
	return false;
}

char *draw_bytes(int64_t bytes)
{
	double gb = (double)bytes / 1e9;

	if (bytes == MO_NONE || bytes < 0)
		return mo_strdup("-");
	return gb >= 1000  ? mo_printf("%.2f TB", gb / 1000)
	       : gb >= 100 ? mo_printf("%.0f GB", gb)
			   : mo_printf("%.1f GB", gb);
}

static size_t parts_of(const char *list, char between)
{
	size_t n = list && *list;

	for (; list && *list; list++)
		n += *list == between;
	return n;
}

static size_t cpus_of(const char *list)
{
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 };

	return list && mo_idset_parse(list, &set) == 0 ? mo_idset_count(&set) : 0;
}

char *draw_cores(const struct nodeinfo *info, size_t numa)
{
	const struct numa_node *n = &info->numa[numa];
	size_t cpus = cpus_of(n->cpus), cores = parts_of(n->cores, ';'), l3 = parts_of(n->l3, ';');
	struct mo_buf b = { 0 };

	if (!cpus)
		return mo_strdup("no usable CPU");
	if (cores && cores != cpus)
		mo_buf_printf(&b, "%zu core%s, ", cores, cores == 1 ? "" : "s");
	mo_buf_printf(&b, "%zu CPU%s", cpus, cpus == 1 ? "" : "s");
	if (l3 > 1 && cpus % l3 == 0)
		mo_buf_printf(&b, ", %zu L3 groups of %zu", l3, cpus / l3);
	else if (l3 > 1)
		mo_buf_printf(&b, ", %zu L3 groups", l3);
	return mo_buf_take(&b);
}

/* The kernel numbers the NUMA nodes of a socket one after the other. */
int64_t draw_socket(const struct nodeinfo *info, size_t numa)
{
	if (info->sockets == MO_NONE || info->sockets < 1 || info->n_numa == 0 ||
	    info->n_numa % (size_t)info->sockets)
		return MO_NONE;
	return (int64_t)(numa / (info->n_numa / (size_t)info->sockets));
}

char *draw_summary(const struct nodeinfo *info)
{
	struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *memory = draw_bytes(info->mem_bytes);

	if (info->cpu_model)
		mo_buf_printf(&b, "%s, ", info->cpu_model);
	if (info->sockets != MO_NONE && info->sockets > 0)
		mo_buf_printf(&b, "%lld socket%s, ", (long long)info->sockets,
			      info->sockets == 1 ? "" : "s");
	mo_buf_printf(&b, "%lld CPUs, %s", (long long)MO_MAX(info->cpus, 0), memory);
	if (info->driver)
		mo_buf_printf(&b, ", %s", info->driver);
	if (info->simulated)
		mo_buf_str(&b, ", simulated");
	return mo_buf_take(&b);
}

/* Pairs among the GPUs of a hive that the driver links by XGMI, and the weights seen. */
static void link_words(const struct nodeinfo *info, const struct mo_idset *members,
		       struct mo_buf *b)
{
	size_t n = mo_idset_count(members), want = n * (n - 1) / 2, have = 0, n_weights = 0;
	int64_t weights[WEIGHTS_MAX];

	for (size_t i = 0; i < info->n_links; i++) {
		const struct gpu_link *l = &info->links[i];
		bool seen = false;
		if (!mo_streq(l->type, "xgmi") || l->from < 0 || l->to < 0 ||
		    !mo_idset_has(members, (size_t)l->from) ||
		    !mo_idset_has(members, (size_t)l->to))
			continue;
		have += l->from < l->to;
		for (size_t k = 0; k < n_weights; k++)
			seen |= weights[k] == l->weight;
		if (!seen && n_weights < WEIGHTS_MAX)
			weights[n_weights++] = l->weight;
	}
	if (n < 2)
		mo_buf_str(b, " alone");
	else if (have >= want)
		mo_buf_str(b, ", each linked to each");
	else
		mo_buf_printf(b, ", %zu of %zu pairs linked", have, want);
	for (size_t i = 0; i < n_weights; i++)
		mo_buf_printf(b, "%s%lld",
			      i               ? ", "
			      : n_weights > 1 ? " (weights "
					      : " (weight ",
			      (long long)weights[i]);
	mo_buf_str(b, n_weights ? ")\n" : "\n");
}

char *draw_links(const struct nodeinfo *info)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < info->n_gpus; i++) {
		_cleanup_(mo_idset_done) struct mo_idset members = { 0 };
		bool first = info->gpus[i].hive != NULL;
		for (size_t k = 0; k < info->n_gpus && first; k++) {
			if (!mo_streq(info->gpus[k].hive, info->gpus[i].hive) ||
			    info->gpus[k].index < 0)
				continue;
			first = k >= i;
			mo_idset_add(&members, (size_t)info->gpus[k].index);
		}
		if (!first)
			continue;
		_cleanup_(mo_freep) char *list = mo_idset_format(&members);
		mo_buf_printf(&b, "XGMI hive %s: slots %s", info->gpus[i].hive, list);
		link_words(info, &members, &b);
	}
	return mo_buf_take(&b);
}
