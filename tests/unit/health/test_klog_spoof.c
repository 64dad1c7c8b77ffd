/* config/health/klog.yaml against those who would forge it. Driven by the file: every pattern needs
 * an example, and every example is put into every place of the kernel's log that a program can
 * fill: as its name, as the path of a file, in pieces over both. Only the rules that the forged
 * line is really about may count it. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/health/klog.h"
#include "agent/core/health/reading.h"
#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/recipe/klog_file.h"

#define COMM_BYTES 15 /* TASK_COMM_LEN without its end */

/* Lines of Linux that hold a name (@) or a path (#) of somebody's choice, and the rules that they
 * are about. ORIGIN: sources of Linux 5.15 to 6.8, amdgpu-dkms, NVIDIA 550. */
static const struct {
	const char *line, *rules;
} places[] = {
	{ "@[4242]: segfault at 0 ip 000055e1 sp 00007ffd error 4 in #[55e1+1000]", "segfault" },
	{ "traps: @[4242] general protection fault ip:55e1 sp:7ffd error:0 in #[55e1+1000]",
	  "segfault" },
	{ "traps: @[4242] trap invalid opcode ip:55e1 sp:7ffd error:0 in #[55e1+1000]", "" },
	{ "@[4242] bad frame in rt_sigreturn frame:55e1 ip:55e1 sp:7ffd orax:ffff in #[55e1+1000]",
	  "" },
	{ "@[4242]: unhandled signal 11 code 0x1 at 0x0 in #[55e1+1000]", "" },
	{ "@[4242] vsyscall attempted with vsyscall=none ip:55e1 cs:33 sp:7ffd ax:0 si:0 di:0",
	  "" },
	{ "@/4242: potentially unexpected fatal signal 11.", "" },
	{ "@ invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0", "" },
	{ "CPU: 5 PID: 4242 Comm: @ Not tainted 6.8.0-45-generic #45-Ubuntu", "" },
	{ "Out of memory: Killed process 4242 (@) total-vm:1kB, anon-rss:1kB, UID:1000", "oom" },
	{ "Memory cgroup out of memory: Killed process 4242 (@) total-vm:1kB, anon-rss:1kB",
	  "oom" },
	{ "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,oom_memcg=/user.slice/"
	  "#,task_memcg=/user.slice/#,task=@,pid=4242,uid=1000",
	  "" },
	{ "Tasks in /user.slice/# are going to be killed due to memory.oom.group set", "" },
	{ "memory: usage 1024kB, limit 1024kB, failcnt 12 in /user.slice/#", "" },
	{ "[   4242]  1000  4242      641      128    45056        0             0 @", "" },
	{ "INFO: task @:4242 blocked for more than 120 seconds.", "kernel-stall" },
	{ "task:@ state:D stack:0     pid:4242  ppid:1      flags:0x00000002", "" },
	{ "watchdog: BUG: soft lockup - CPU#5 stuck for 26s! [@:4242]", "kernel-stall" },
	{ "amdgpu 0000:3d:00.0: amdgpu:  for process @ pid 4242 thread @ pid 4243)", "" },
	{ "amdgpu 0000:3d:00.0: amdgpu:  Process @ pid 4242 thread @ pid 4243", "" },
	{ "amdgpu 0000:c6:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:3 "
	  "pasid:32769, for process @ pid 4242 thread @ pid 4243)",
	  "gpu-page-fault" },
	{ "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process @ pid 4242 "
	  "thread @ pid 4243",
	  "" },
	{ "NVRM: Xid (PCI:0000:06:00): 31, pid=4242, name=@, Ch 00000008, intr 10000000",
	  "xid-program" },
	{ "audit: type=1326 audit(1.2:3): auid=1000 uid=1000 ses=1 pid=4242 comm=\"@\" exe=\"/#\" "
	  "sig=31 arch=c000003e",
	  "" },
	{ "EXT4-fs error (device nvme0n1p2): ext4_lookup:1855: inode #12: comm @: deleted inode "
	  "referenced: 34",
	  "storage-fatal" },
	{ "Memory failure: 0x1234: Sending SIGBUS to @:4242 due to hardware memory corruption",
	  "machine-check" },
	{ "@ (4242): drop_caches: 3", "" },
	{ "@: page allocation failure: order:4, mode:0xcc0(GFP_KERNEL), "
	  "nodemask=(null),cpuset=#,mems_allowed=0",
	  "" },
	{ "@: vmalloc error: size 4096, page order 0, failed to allocate pages", "" },
	{ "@: Corrupted page table at address 55e1", "" },
	{ "@ (4242) used greatest stack depth: 10000 bytes left", "" },
	{ "@ (4242) uses deprecated remap_file_pages() syscall. See "
	  "Documentation/mm/remap_file_pages.rst.",
	  "" },
	{ "@ (pid 4242) is setting deprecated v1 encryption policy; recommend upgrading to v2.",
	  "" },
	{ "capability: warning: `@' uses 32-bit capabilities (legacy support in use)", "" },
	{ "process '#' started with executable stack", "" },
	{ "x86/split lock detection: #AC: @/4242 took a split_lock trap at address: 0x55e1", "" },
	{ "futex_wake_op: @ tries to shift op by -1; fix this program", "" },
	{ "overlayfs: failed to resolve '#': -2", "" },
	{ "ptrace attach of \"#\"[4242] was attempted by \"#\"[4243]", "" },
};

static struct klog_rules shipped;

static int load(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	mo_desc_init(&klog_rules_desc, &shipped);
	if (klog_rules_load(&shipped, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int unload(void **state)
{
	mo_desc_done(&klog_rules_desc, &shipped);
	return 0;
}

/* How many lines of `b` the rule counts. */
static double counted(const struct klog_rules *rules, const char *id, const char *text, size_t n)
{
	_cleanup_(klog_freep) struct klog *k = NULL;
	struct probe p;

	assert_int_equal(klog_new(rules, &k, NULL), 0);
	klog_feed_text(k, text, n);
	mo_desc_init(&probe_desc, &p);
	klog_readings(k, &p);
	double value = reading_value(&p, id);
	mo_desc_done(&probe_desc, &p);
	return value;
}

static void every_pattern_has_an_example(void **state)
{
	for (size_t i = 0; i < shipped.n_rules; i++)
		for (size_t m = 0; m < shipped.rules[i].n_match; m++) {
			struct klog_rule one = shipped.rules[i];
			struct klog_rules rules = { shipped.drivers, shipped.n_drivers, &one, 1 };
			bool found = false;

			one.match = &shipped.rules[i].match[m];
			one.n_match = 1;
			for (size_t e = 0; e < one.n_example && !found; e++)
				found = counted(&rules, one.id, one.example[e],
						strlen(one.example[e])) == 1;
			if (!found)
				fail_msg("rule %s: no example: of it matches '%s': write a line of "
					 "the driver there, and it is tried out as a forgery",
					 one.id, one.match[0]);
		}
}

static void add_text(struct mo_buf *b, const char *from, size_t n, size_t most)
{
	mo_buf_add(b, from, MO_MIN(n, most));
}

/* One record, as /dev/kmsg gives it. */
static void add_line(struct mo_buf *b, const char *place, const char *comm, size_t n_comm,
		     const char *path, size_t n_path)
{
	static int64_t seq;

	mo_buf_printf(b, "3,%lld,1,-;", (long long)seq++);
	for (; *place; place++) {
		if (*place == '@')
			add_text(b, comm, n_comm, COMM_BYTES);
		else if (*place == '#')
			add_text(b, path, n_path, 255);
		else
			mo_buf_add(b, place, 1);
	}
	mo_buf_str(b, "\n");
}

/* The example, or any end of it, in each place; and its beginning as the name with its end as the
 * path. */
static void forge(struct mo_buf *b, const char *place, const char *example)
{
	size_t n = strlen(example);

	for (size_t at = 0; at < n; at++) {
		add_line(b, place, example + at, n - at, example + at, n - at);
		add_line(b, place, example, MO_MIN(at + 1, (size_t)COMM_BYTES), example + at,
			 n - at);
		add_line(b, place, example, COMM_BYTES, example + at, n - at);
	}
}

static bool is_about(const char *rules, const char *id)
{
	const char *at = strstr(rules, id);

	return at && strlen(rules) == strlen(id);
}

static void nobody_speaks_for_the_driver(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(places); i++) {
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		_cleanup_(klog_freep) struct klog *k = NULL;
		struct probe p;

		for (size_t r = 0; r < shipped.n_rules; r++)
			for (size_t e = 0; e < shipped.rules[r].n_example; e++)
				forge(&b, places[i].line, shipped.rules[r].example[e]);
		assert_int_equal(klog_new(&shipped, &k, NULL), 0);
		klog_feed_text(k, b.data, b.len);
		mo_desc_init(&probe_desc, &p);
		klog_readings(k, &p);
		for (size_t r = 0; r < shipped.n_rules; r++) {
			const char *id = shipped.rules[r].id;
			_cleanup_(mo_freep) char *line = mo_printf("line.%s.1", id);

			if (!is_about(places[i].rules, id) && reading_value(&p, id) > 0)
				fail_msg("rule %s believes a program: %s", id,
					 reading_text(&p, line));
		}
		mo_desc_done(&probe_desc, &p);
	}
}

/* Whoever is named by a line of the kernel, whatever he calls himself. */
static void the_process_is_the_kernels_word(void **state)
{
	static const struct {
		const char *rule, *line;
	} lines[] = {
		{ "segfault",
		  "x[1]: segfault[4242]: segfault at 0 ip 55e1 sp 7ffd error 4 in a[55e1+1000]" },
		{ "oom", "Out of memory: Killed process 4242 (Killed process 1 () total-vm:1kB" },
		{ "xid-program",
		  "NVRM: Xid (PCI:0000:06:00): 31, pid=4242, name=pid=1, Ch 00000008" },
		{ "kernel-stall",
		  "INFO: task a:1 blocked:4242 blocked for more than 120 seconds." },
		{ "gpu-page-fault",
		  "amdgpu 0000:c6:00.0: amdgpu: [gfxhub0] page fault (src_id:0, for process x pid "
		  "1 thread pid 4242 thread y pid 7 thread pid 4242)" },
	};

	for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
		_cleanup_(klog_freep) struct klog *k = NULL;
		_cleanup_(mo_freep) char *key = mo_printf("pids.%s", lines[i].rule);
		struct probe p;

		assert_int_equal(klog_new(&shipped, &k, NULL), 0);
		klog_feed(k, lines[i].line, strlen(lines[i].line));
		mo_desc_init(&probe_desc, &p);
		klog_readings(k, &p);
		assert_string_equal(reading_text(&p, key), "4242");
		mo_desc_done(&probe_desc, &p);
	}
}

/* What dmesg and journals print before a record is no part of it, and stands there once. */
static void heads_of_text_files(void **state)
{
	static const struct {
		const char *line;
		int counts;
	} lines[] = {
		{ "amdgpu 0000:af:00.0: amdgpu: GPU reset begin!", 1 },
		{ "[19277.981083] amdgpu 0000:af:00.0: amdgpu: GPU reset begin!", 1 },
		{ "<3>[    1.000001] [  T42] amdgpu 0000:af:00.0: amdgpu: GPU reset begin!", 1 },
		{ " amdgpu 0000:af:00.0: amdgpu: GPU reset begin!", 1 },
		{ "[drm] VRAM is lost due to GPU reset!", 1 },
		{ "[1.000001] [drm] VRAM is lost due to GPU reset!", 1 },
		{ "[1.000001] [2.000001] amdgpu 0000:af:00.0: amdgpu: GPU reset begin!", 0 },
		{ "3,7,1,-;[1.000001] amdgpu 0000:af:00.0: amdgpu: GPU reset begin!", 0 },
		{ "[", 0 },
		{ "<3", 0 },
		{ "<3>[ 1.0", 0 },
		{ "[1.0] [T", 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(lines); i++)
		if (counted(&shipped, "gpu-reset", lines[i].line, strlen(lines[i].line)) !=
		    lines[i].counts)
			fail_msg("counted otherwise than %d: %s", lines[i].counts, lines[i].line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pattern_has_an_example),
		cmocka_unit_test(nobody_speaks_for_the_driver),
		cmocka_unit_test(the_process_is_the_kernels_word),
		cmocka_unit_test(heads_of_text_files),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
