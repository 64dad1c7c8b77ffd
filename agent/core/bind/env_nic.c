/* See env_nic.h. All ranks of a node get the same list in the node's order: RCCL chooses the NIC
 * for each GPU itself, and lists that differ between ranks end in a hang. */
#include "agent/core/bind/env_nic.h"

#include <string.h>

#include "lib/base/buf.h"

#define GID "NCCL_IB_GID_INDEX"

struct nics {
	const struct nic_info *items[64];
	size_t n;
};

bool env_nic_used(const struct launch *l, const struct nodeinfo *info, const char *nic)
{
	for (size_t i = 0; i < l->n_gpus; i++)
		for (size_t k = 0; k < info->n_gpus; k++)
			if (info->gpus[k].index == l->gpus[i] && mo_streq(info->gpus[k].nic, nic))
				return true;
	return false;
}

static struct nics nics_of(const struct launch *l, const struct nodeinfo *info)
{
	struct nics ret = { .n = 0 };

	for (size_t i = 0; i < info->n_nics && ret.n < ELEMENTSOF(ret.items); i++)
		if (env_nic_used(l, info, info->nics[i].name))
			ret.items[ret.n++] = &info->nics[i];
	return ret;
}

static void add(struct env_item **items, size_t *n_items, const char *name, const char *value,
		char *reason, const char *source)
{
	struct env_item *item = mo_vec_add(&env_item_desc, (void **)items, n_items);

	item->layer = ENV_PROFILE;
	item->name = mo_strdup(name);
	item->value = mo_strdup(value);
	item->reason = reason;
	item->source = mo_strdup(source);
}

/* Without "=" in front NCCL takes the names as beginnings: mlx5_1 would take mlx5_10 too. */
static bool needs_exact(const struct nics *nics, const struct nodeinfo *info)
{
	for (size_t i = 0; i < nics->n; i++)
		for (size_t k = 0; k < info->n_nics; k++) {
			bool chosen = false;
			for (size_t j = 0; j < nics->n; j++)
				chosen = chosen || nics->items[j] == &info->nics[k];
			if (!chosen && mo_starts_with(info->nics[k].name, nics->items[i]->name))
				return true;
		}
	return false;
}

static void add_hca(const struct launch *l, const struct nics *nics, const struct nodeinfo *info,
		    struct env_item **items, size_t *n_items)
{
	_cleanup_(mo_buf_done) struct mo_buf value = { 0 }, down = { 0 };
	bool exact = needs_exact(nics, info);

	for (size_t i = 0; i < nics->n; i++) {
		const struct nic_info *nic = nics->items[i];
		mo_buf_printf(&value, "%s%s:%lld",
			      i       ? ","
			      : exact ? "="
				      : "",
			      nic->name, (long long)(nic->port == MO_NONE ? 1 : nic->port));
		if (nic->state && !mo_streq(nic->state, "ACTIVE"))
			mo_buf_printf(&down, "; %s is %s and not used while it is", nic->name,
				      nic->state);
	}
	add(items, n_items, "NCCL_IB_HCA", value.data,
	    mo_printf("the NICs paired with this job's GPUs (%zu of the node's %zu), the same for "
		      "all ranks: each rank's nearest is chosen by the library%s%s",
		      nics->n, info->n_nics,
		      exact ? "; = in front because another NIC's name begins with one of these"
			    : "",
		      down.len ? down.data : ""),
	    l->n_gpus == info->n_gpus ? "node: RDMA devices, whole node"
				      : "node: RDMA devices, part of the node");
}

static void add_gid(const struct nics *nics, struct env_item *profile, struct env_item **items,
		    size_t *n_items)
{
	int64_t index = nics->items[0]->gid_index;
	const struct nic_info *other = NULL;
	bool infiniband = true;

	for (size_t i = 0; i < nics->n; i++) {
		infiniband = infiniband && mo_streq(nics->items[i]->link_layer, "InfiniBand");
		if (nics->items[i]->gid_index != index)
			other = nics->items[i];
	}
	if (infiniband) {
		if (profile)
			add(items, n_items, GID, NULL,
			    mo_strdup("the ports are InfiniBand: there are no RoCE GIDs to choose "
				      "from, and an index beyond the port's table fails"),
			    "node: link layer of the RDMA devices");
		return;
	}
	if (other) {
		add(items, n_items, GID, NULL,
		    mo_printf("RoCE v2 stands at different indexes (%s and %s differ), so one "
			      "number cannot be right: the library looks for itself",
			      nics->items[0]->name, other->name),
		    "node: GIDs of the RDMA devices");
		return;
	}
	if (index == MO_NONE)
		return; /* none was seen: the profile's word is all there is */
	_cleanup_(mo_freep) char *value = mo_printf("%lld", (long long)index);
	const char *others = nics->n > 1 ? " and the others" : "";
	if (profile && mo_streq(profile->value, value)) {
		_cleanup_(mo_freep) char *reason =
			mo_printf("%s; on this node it is the lowest routable RoCE v2 GID of %s%s",
				  profile->reason ? profile->reason : "", nics->items[0]->name,
				  others);
		mo_str_set(&profile->reason, reason);
		return;
	}
	_cleanup_(mo_freep) char *verdict =
		profile ? mo_printf("; %s says %s, which is not that on this node",
				    profile->source ? profile->source : "the profile",
				    profile->value ? profile->value : "nothing")
			: mo_strdup("");
	add(items, n_items, GID, value,
	    mo_printf("the lowest routable RoCE v2 GID of %s%s%s", nics->items[0]->name, others,
		      verdict),
	    "node: GIDs of the RDMA devices");
}

void env_nics(const struct launch *l, const struct nodeinfo *info, struct env_item *gid,
	      const char *ifname, struct env_item **items, size_t *n_items)
{
	static const char *const names[] = { "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME" };
	struct nics nics = nics_of(l, info);

	if (nics.n && !mo_streq(l->bind.nic, "none")) {
		add_hca(l, &nics, info, items, n_items);
		add_gid(&nics, gid, items, n_items);
	}
	for (size_t i = 0; i < ELEMENTSOF(names) && ifname && l->n_nodes > 1; i++)
		add(items, n_items, names[i], ifname,
		    mo_printf("the interface that owns %s, under which the other nodes reach this "
			      "one (others: Primus takes the first address of hostname -I, often "
			      "the management network)",
			      l->address),
		    "node: interface of the agent's address");
}
