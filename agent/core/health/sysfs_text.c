/* Decoding of sysfs and proc texts (see sysfs_text.h). */
#include "agent/core/health/sysfs_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/idset.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"

static const char *next_line(const char *p)
{
	p += strcspn(p, "\n");
	return *p ? p + 1 : p;
}

static char *trimmed(const char *s, size_t n)
{
	while (n > 0 && isspace((unsigned char)*s)) {
		s++;
		n--;
	}
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	return n ? mo_strndup(s, n) : NULL;
}

/* Digits at s in base 10 or 16; *ret_n: how many characters were taken, 0 = none. */
static int64_t digits(const char *s, bool hex, size_t *ret_n)
{
	int64_t v = 0;
	size_t n = 0;
	bool fits = true;

	for (; hex ? isxdigit((unsigned char)s[n]) : isdigit((unsigned char)s[n]); n++) {
		int d = isdigit((unsigned char)s[n]) ? s[n] - '0'
						     : tolower((unsigned char)s[n]) - 'a' + 10;
		fits = fits && !__builtin_mul_overflow(v, (int64_t)(hex ? 16 : 10), &v) &&
		       !__builtin_add_overflow(v, (int64_t)d, &v);
	}
	*ret_n = n;
	return n && fits ? v : MO_NONE;
}

/* A number at s: sign, decimal or hexadecimal. *ret_end: behind it. */
static int64_t number(const char *s, const char **ret_end)
{
	bool minus = *s == '-', hex = false;
	size_t n;

	s += minus;
	hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	s += hex ? 2 : 0;
	int64_t v = digits(s, hex, &n);
	*ret_end = s + n;
	return v != MO_NONE && minus ? -v : v;
}

bool text_is_text(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)s[i] < ' ' && !strchr("\t\n\r", s[i])) || s[i] == 0x7f ||
		    s[i] == 0)
			return false;
	return mo_utf8_valid(s, n);
}

char *text_clean(const char *s, size_t n, size_t max)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t at = 0; at < n;) {
		size_t len = mo_utf8_next(s + at, n - at);
		bool shown = len > 1 || (len == 1 && (unsigned char)s[at] >= ' ' && s[at] != 0x7f);
		len = len ? len : 1;
		if (b.len + len > max) {
			mo_buf_str(&b, "...");
			break;
		}
		mo_buf_add(&b, shown ? s + at : "?", shown ? len : 1);
		at += len;
	}
	return b.data ? mo_buf_take(&b) : mo_strdup("");
}

bool text_no_value(const char *s)
{
	static const char *const words[] = { "18446744073709551615",
					     "0xffffffffffffffff",
					     "0xffffffff",
					     "0xffff",
					     "4294967295",
					     "N/A",
					     "Unknown",
					     "unknown" };
	_cleanup_(mo_freep) char *line = text_line(s);

	for (size_t i = 0; line && i < ELEMENTSOF(words); i++)
		if (mo_streq(line, words[i]))
			return true;
	return line && mo_starts_with(line, "Unknown ");
}

int64_t text_whole(const char *s)
{
	const char *end;

	s += strspn(s, " \t\n");
	int64_t v = number(s, &end);
	return end[strspn(end, " \t\n")] ? MO_NONE : v;
}

/* Start of the value of `key`, NULL when no line begins with it. A key ends where blanks or a
 * colon begin. */
static const char *value_of(const char *s, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = s; *p; p = next_line(p)) {
		const char *q = p + strspn(p, " \t");
		if (strncmp(q, key, n) == 0 && q[n] && strchr(" \t:", q[n]))
			return q + n + strspn(q + n, " \t:");
	}
	return NULL;
}

int64_t text_key_int(const char *s, const char *key)
{
	const char *v = value_of(s, key), *end;
	return v ? number(v, &end) : MO_NONE;
}

char *text_key(const char *s, const char *key)
{
	const char *v = value_of(s, key);
	return v ? trimmed(v, strcspn(v, "\n")) : NULL;
}

char *text_line(const char *s)
{
	return trimmed(s, strcspn(s, "\n"));
}

char *text_state(const char *s)
{
	size_t n;

	s += strspn(s, " \t");
	digits(s, false, &n);
	if (n && s[n] == ':')
		s += n + 1;
	return text_line(s);
}

char *text_chosen(const char *s)
{
	const char *open = strchr(s, '['), *close = open ? strchr(open, ']') : NULL;
	return close ? trimmed(open + 1, (size_t)(close - open - 1)) : NULL;
}

double text_leading(const char *s)
{
	char word[32];
	double v;

	s += strspn(s, " \t");
	size_t n = strspn(s, "0123456789.");
	if (n == 0 || n >= sizeof(word))
		return MO_NONE_F;
	memcpy(word, s, n);
	word[n] = 0;
	return mo_parse_double(word, &v) == 0 ? v : MO_NONE_F;
}

int64_t text_dpm_mhz(const char *s)
{
	for (const char *p = s; *p; p = next_line(p)) {
		size_t n = strcspn(p, "\n");
		const char *colon = memchr(p, ':', n), *unit;
		if (!colon || !memchr(p, '*', n))
			continue;
		int64_t mhz = number(colon + 1 + strspn(colon + 1, " \t"), &unit);
		return strncasecmp(unit, "mhz", 3) == 0 ? mhz : MO_NONE;
	}
	return MO_NONE;
}

int64_t text_list_count(const char *s)
{
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
	_cleanup_(mo_freep) char *line = text_line(s);

	if (!line)
		return 0;
	return mo_idset_parse(line, &set) < 0 ? MO_NONE : (int64_t)mo_idset_count(&set);
}

/* Whether `name` (of n bytes) is reported. A name that ends with '.' stands for all parameters of
 * that module. Others may hold tokens, passwords, addresses or paths (systemd.setenv,
 * ds=nocloud-net;s=http://..., root=): none of them is reported, whatever its value looks like. */
static bool cmdline_known(const char *name, size_t n)
{
	/* clang-format off */
	static const char *const known[] = {
		/* PCI, IOMMU, memory */
		"iommu", "amd_iommu", "amd_iommu_intr", "intel_iommu", "iommu.passthrough",
		"iommu.strict", "iommu.forcedac", "intremap", "swiotlb", "pci", "pcie_aspm",
		"pcie_ports", "pcie_port_pm", "pci_hotplug", "pcie_acs_override", "mem", "memmap",
		"memory_hotplug.", "movable_node", "kernelcore", "movablecore", "numa",
		"numa_balancing", "numa_zonelist_order", "hugepages", "hugepagesz",
		"default_hugepagesz", "hugetlb_cma", "cma", "transparent_hugepage",
		"transparent_hugepage_shmem", "mem_encrypt", "kvm_amd.", "zswap.", "slab_nomerge",
		"init_on_alloc", "init_on_free", "page_alloc.shuffle", "page_poison",
		"slub_debug", "sysctl.", "swapaccount",
		/* CPUs and time */
		"isolcpus", "nohz", "nohz_full", "rcu_nocbs", "rcu_nocb_poll", "rcutree.",
		"rcupdate.", "irqaffinity", "kthread_cpus", "threadirqs", "maxcpus", "nr_cpus",
		"possible_cpus", "nosmt", "mitigations", "spectre_v2",
		"spec_store_bypass_disable", "retbleed", "l1tf", "mds", "tsx", "pti", "nopti",
		"processor.max_cstate", "intel_idle.max_cstate", "cpuidle.off",
		"cpuidle.governor", "idle", "amd_pstate", "intel_pstate", "amd_prefcore",
		"cpufreq.default_governor", "acpi_pad.", "processor.", "tsc", "clocksource",
		"hpet", "x2apic_phys", "noapic", "nolapic", "lapic", "skew_tick", "preempt",
		"split_lock_detect", "workqueue.", "sched_", "psi", "skip_tsc", "highres",
		/* watching, errors, security, control groups */
		"nmi_watchdog", "watchdog", "watchdog_thresh", "nowatchdog", "nosoftlockup",
		"softlockup_panic", "hung_task_panic", "hardlockup_panic", "panic",
		"panic_on_oops", "oops", "mce", "mce_amd.", "edac_core.", "amd64_edac.", "ghes.",
		"ghes_edac.", "erst_disable", "hest_disable", "ras", "audit", "selinux",
		"apparmor", "security", "lsm", "lockdown", "cgroup_disable", "cgroup_enable",
		"cgroup_no_v1", "systemd.unified_cgroup_hierarchy", "log_buf_len", "loglevel",
		"quiet", "ro", "rw", "acpi", "efi", "modeset", "nomodeset", "module_blacklist",
		"modprobe.blacklist",
		/* drivers */
		"amdgpu.", "amdkfd.", "amdttm.", "ttm.", "drm.", "nvidia.", "nvidia_drm.",
		"nvidia-drm.", "nvidia_uvm.", "nvidia_peermem.", "nouveau.", "mlx5_core.",
		"mlx5_ib.", "bnxt_en.", "bnxt_re.", "ionic.", "ionic_rdma.", "ib_core.",
		"ib_uverbs.", "rdma_cm.", "rdma_ucm.", "ice.", "irdma.", "i40e.", "nvme.",
		"nvme_core.", "vfio.", "vfio_pci.", "vfio_iommu_type1.",
	};
	/* clang-format on */
	for (size_t i = 0; i < ELEMENTSOF(known); i++) {
		size_t len = strlen(known[i]);
		bool family = known[i][len - 1] == '.' || known[i][len - 1] == '_';
		if (n >= len && strncmp(name, known[i], len) == 0 && (family || n == len))
			return true;
	}
	return false;
}

char *text_cmdline(const char *s)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (const char *p = s + strspn(s, " \t\n"); *p; p += strspn(p, " \t\n")) {
		size_t n = strcspn(p, " \t\n"), name = strcspn(p, " \t\n=");
		if (n <= TEXT_LINE_MAX && cmdline_known(p, name) && b.len + n < 4 * TEXT_LINE_MAX)
			mo_buf_printf(&b, "%s%.*s", b.len ? " " : "", (int)n, p);
		p += n;
	}
	return b.data ? mo_buf_take(&b) : NULL;
}

char *text_option(const char *cmdline, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = cmdline + strspn(cmdline, " \t\n"); *p;
	     p += strcspn(p, " \t\n"), p += strspn(p, " \t\n"))
		if (strncmp(p, name, n) == 0 && p[n] == '=')
			return trimmed(p + n + 1, strcspn(p + n + 1, " \t\n"));
	return NULL;
}

/* "0x1a3f2000" and blanks; NULL: something else. */
static const char *behind_hex(const char *s)
{
	size_t n;

	s += strspn(s, " \t");
	if (!mo_starts_with(s, "0x"))
		return NULL;
	digits(s + 2, true, &n);
	return n ? s + 2 + n + strspn(s + 2 + n, " \t") : NULL;
}

bool text_bad_pages(const char *s, struct bad_pages *ret)
{
	*ret = (struct bad_pages){ 0 };
	for (const char *p = s; *p; p = next_line(p)) {
		if (!p[strspn(p, " \t")] || p[strspn(p, " \t")] == '\n')
			continue;
		const char *size = behind_hex(p),
			   *state = size && *size == ':' ? behind_hex(size + 1) : NULL;
		if (!state || *state++ != ':')
			return false;
		state += strspn(state, " \t");
		switch (*state) {
		case 'R': ret->retired++; break;
		case 'P': ret->pending++; break;
		case 'F': ret->failed++; break;
		default: return false;
		}
		if (state[1 + strspn(state + 1, " \t")] != '\n' &&
		    state[1 + strspn(state + 1, " \t")])
			return false;
	}
	return true;
}

static int64_t event_count(const char *s, const char *name)
{
	_cleanup_(mo_freep) char *line = text_key(s, name);
	int64_t n = line && mo_starts_with(line, "count:") ? text_key_int(line, "count") : MO_NONE;
	return n < 0 ? MO_NONE : n;
}

bool text_ras_events(const char *s, struct ras_events *ret)
{
	*ret = (struct ras_events){ event_count(s, "Fatal Error"),
				    event_count(s, "Poison Creation"),
				    event_count(s, "Poison Consumption") };
	return ret->fatal != MO_NONE || ret->created != MO_NONE || ret->consumed != MO_NONE;
}

const char *const ras_kinds[RAS_KINDS] = { "ue", "ce", "de" };

bool text_ras_counts(const char *s, int64_t ret[static RAS_KINDS])
{
	size_t n = 0;

	for (size_t i = 0; i < RAS_KINDS; i++) {
		_cleanup_(mo_freep) char *count = text_key(s, ras_kinds[i]);
		ret[i] = count ? text_whole(count) : MO_NONE;
		if (count && ret[i] < 0)
			return false;
		n += count != NULL;
	}
	return n > 0;
}

double text_limit(const char *s, const char *row)
{
	const char *v = value_of(s, row), *end;

	if (!v)
		return MO_NONE_F;
	if (mo_starts_with(v, "unlimited"))
		return TEXT_UNLIMITED;
	int64_t n = number(v, &end);
	return n == MO_NONE ? MO_NONE_F : (double)n;
}

int64_t text_mount_size(const char *s, const char *where)
{
	for (const char *p = s; *p; p = next_line(p)) {
		_cleanup_(mo_freep) char *line = text_line(p);
		const char *space = line ? strchr(line, ' ') : NULL;
		size_t n = strlen(where);
		if (!space || strncmp(space + 1, where, n) != 0 || space[1 + n] != ' ')
			continue;
		const char *size = strstr(line, "size="), *end;
		if (!size)
			return MO_NONE;
		int64_t v = number(size + 5, &end), unit = *end == 'k'   ? 1024
							   : *end == 'm' ? 1024 * 1024
							   : *end == 'g' ? 1024LL * 1024 * 1024
									 : 1;
		return v == MO_NONE || __builtin_mul_overflow(v, unit, &v) ? MO_NONE : v;
	}
	return MO_NONE;
}

bool text_bdf(const char *s, char ret[static 16])
{
	size_t n[4];
	int64_t v[4];
	static const char after[] = { ':', ':', '.', 0 };
	static const struct {
		size_t min, max;
		int64_t limit;
	} part[] = { { 4, 8, 0xfffffff }, { 2, 2, 0xff }, { 2, 2, 0x1f }, { 1, 1, 7 } };

	for (size_t i = 0; i < 4; i++) {
		v[i] = digits(s, true, &n[i]);
		if (n[i] < part[i].min || n[i] > part[i].max || v[i] > part[i].limit ||
		    s[n[i]] != after[i])
			return false;
		s += n[i] + (after[i] ? 1 : 0);
	}
	snprintf(ret, 16, "%04x:%02x:%02x.%x", (unsigned)v[0], (unsigned)v[1], (unsigned)v[2],
		 (unsigned)v[3]);
	return true;
}
