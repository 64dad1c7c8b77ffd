/* RDMA devices below a root directory: state, rate and addresses of the port that training would
 * use, which is the lowest active one. Formats: hardware facts 1.4
 * (Documentation/ABI/stable/sysfs-class-infiniband of the kernel). Called by topo.c, in the
 * discovery helper. */
#include "lib/topo/nics.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/topo/files.h"

#define GIDS_MAX 1024

/* "4: ACTIVE" -> ACTIVE; NULL when it is not of that form. */
static char *state_word(const char *line)
{
	const char *colon = line ? strchr(line, ':') : NULL;

	if (!colon)
		return NULL;
	colon += 1 + strspn(colon + 1, " ");
	return *colon ? mo_strdup(colon) : NULL;
}

/* "400 Gb/sec (4X NDR)" */
static double rate_of(const char *line)
{
	double rate;

	if (!line)
		return MO_NONE_F;
	_cleanup_(mo_freep) char *number = mo_strndup(line, strcspn(line, " "));
	return mo_starts_with(line + strlen(number), " Gb/sec") &&
			       mo_parse_double(number, &rate) == 0 && rate >= 0 && rate < 1e6
		       ? rate
		       : MO_NONE_F;
}

/* An address that packets can be routed to: neither empty nor link-local. */
static bool gid_usable(const char *gid)
{
	return strspn(gid, "0:") != strlen(gid) && !mo_starts_with(gid, "fe8") &&
	       !mo_starts_with(gid, "fe9") && !mo_starts_with(gid, "fea") &&
	       !mo_starts_with(gid, "feb");
}

/* The lowest index of a usable RoCE v2 address. Empty slots have no readable type, so the
 * address is tried first. */
static int64_t lowest_gid(const struct finds *f, const char *port)
{
	_cleanup_(mo_freep) char *dir = mo_path(port, "gids");
	size_t n;
	_cleanup_(mo_freep) int64_t *ids = dir_numbers(dir, &n);

	for (size_t i = 0; i < n && i < GIDS_MAX; i++) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%lld", (long long)ids[i]),
					 *gid = file_line(f, path, NULL);
		if (!gid || !gid_usable(gid))
			continue;
		_cleanup_(mo_freep) char *type_path = mo_path(port, "gid_attrs/types/%lld",
							      (long long)ids[i]),
					 *type = file_line(f, type_path, NULL);
		if (mo_streq(type, "RoCE v2"))
			return ids[i];
	}
	return MO_NONE;
}

static int64_t choose_port(const struct finds *f, const char *link)
{
	_cleanup_(mo_freep) char *dir = mo_path(link, "ports");
	size_t n;
	_cleanup_(mo_freep) int64_t *ports = dir_numbers(dir, &n);

	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%lld/state", (long long)ports[i]),
					 *line = file_line(f, path, NULL),
					 *state = state_word(line);
		if (mo_streq(state, "ACTIVE"))
			return ports[i];
	}
	return n ? ports[0] : MO_NONE;
}

/* The interface of the port's first address, else the device's first one. */
static char *netdev_of(const struct finds *f, const char *link, const char *port)
{
	_cleanup_(mo_freep) char *first = port ? mo_path(port, "gid_attrs/ndevs/0") : NULL,
				 *dir = mo_path(link, "device/net");
	char *name = first ? file_line(f, first, NULL) : NULL;
	size_t n;

	if (name && *name)
		return name;
	free(name);
	char **names = dir_names(dir, &n);
	name = n ? mo_strdup(names[0]) : NULL;
	names_free(names, n);
	return name;
}

const char *nic_family(int64_t vendor, const char *driver, const char *name)
{
	if (vendor == 0x15b3 || mo_starts_with(driver, "mlx") || mo_starts_with(name, "mlx"))
		return "mellanox";
	if (vendor == 0x14e4 || mo_starts_with(driver, "bnxt") || mo_starts_with(name, "bnxt"))
		return "broadcom";
	if (vendor == 0x1dd8 || mo_starts_with(driver, "ionic") || mo_starts_with(name, "ionic"))
		return "ainic";
	return "other";
}

static void read_device(struct finds *f, const char *link, struct nic_info *nic)
{
	_cleanup_(mo_freep) char *device = mo_path(link, "device"),
				 *vendor = mo_path(device, "vendor"),
				 *driver = mo_path(device, "driver"),
				 *real = realpath(device, NULL);
	char target[PATH_MAX];
	ssize_t n = readlink(driver, target, sizeof(target) - 1);

	target[MO_MAX(n, (ssize_t)0)] = 0;
	const char *slash = strrchr(target, '/'), *last = real ? strrchr(real, '/') : NULL;
	nic->family =
		mo_strdup(nic_family(file_hex(f, vendor), slash ? slash + 1 : target, nic->name));
	if (last && strlen(last + 1) < 16 && strchr(last, ':') && strchr(last, '.'))
		nic->bdf = mo_strdup(last + 1);
	nic->numa_node = pci_numa(f, nic->name, device);
}

static void read_port(struct finds *f, const char *link, struct nic_info *nic)
{
	nic->port = choose_port(f, link);
	if (nic->port == MO_NONE) {
		nic->netdev = netdev_of(f, link, NULL);
		finds_odd(f, nic->name, "it has no port: nothing can be sent over it");
		return;
	}
	_cleanup_(mo_freep) char *port = mo_path(link, "ports/%lld", (long long)nic->port);
	_cleanup_(mo_freep) char *state = device_line(f, nic->name, port, "state"),
				 *rate = device_line(f, nic->name, port, "rate");
	nic->state = state_word(state);
	nic->rate_gbps = rate_of(rate);
	nic->link_layer = device_line(f, nic->name, port, "link_layer");
	nic->netdev = netdev_of(f, link, port);
	if (mo_streq(nic->link_layer, "Ethernet"))
		nic->gid_index = lowest_gid(f, port);
}

/* A card with several RDMA devices has a file for each. NULL: none is known. */
static char *uverbs_of(const struct finds *f, const char *link, const char *device)
{
	_cleanup_(mo_freep) char *dir = mo_path(link, "device/infiniband_verbs");
	size_t n;
	char **names = dir_names(dir, &n), *found = NULL;

	for (size_t i = 0; i < n && !found; i++) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%s/ibdev", names[i]),
					 *of = file_line(f, path, NULL);
		if (mo_starts_with(names[i], "uverbs") && mo_streq(of, device))
			found = mo_strdup(names[i]);
	}
	names_free(names, n);
	return found;
}

void find_nics(struct finds *f)
{
	_cleanup_(mo_freep) char *dir = mo_printf("%s/sys/class/infiniband", f->root);
	size_t n;
	char **names = dir_names(dir, &n);

	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *link = mo_path(dir, "%s", names[i]);
		struct found_nic *nic = finds_add_nic(f);
		nic->nic.name = mo_strdup(names[i]);
		nic->path = pci_path(link);
		read_device(f, link, &nic->nic);
		read_port(f, link, &nic->nic);
		nic->nic.uverbs = uverbs_of(f, link, names[i]);
		nic->nic.fw = device_line(f, names[i], link, "fw_ver");
	}
	names_free(names, n);
}
