/* Kernel log records: numbers, facilities, what a line names, follow-up lines, limits. The lines
 * are those of real machines (ORIGIN: public issue threads of ROCm, see hardware facts 1.7). The
 * shipped rules are tested by tests/e2e/test_probe.py. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/health/klog.h"
#include "agent/core/health/reading.h"

static void rule(struct klog_rules *rules, const char *id, int severity, const char *match,
		 const char *unless)
{
	struct klog_rule *r = MO_ADD(rules, rules, &klog_rule_desc);

	mo_str_set(&r->id, id);
	r->severity = severity;
	mo_strs_add(&r->match, &r->n_match, match);
	if (unless)
		mo_strs_add(&r->unless, &r->n_unless, unless);
}

static struct klog *fresh(void)
{
	struct klog_rules rules;
	struct klog *k = NULL;

	mo_desc_init(&klog_rules_desc, &rules);
	rule(&rules, "fatal", KLOG_CRIT,
	     "amdgpu (?&bdf): \\{\\d+\\}uncorrectable hardware error\\(", NULL);
	rule(&rules, "aca", KLOG_CRIT, "amdgpu .*Accelerator Check Architecture events logged",
	     NULL);
	rule(&rules, "fault", KLOG_JOB, "amdgpu .*page fault", NULL);
	rule(&rules, "xid", KLOG_CRIT, "NVRM: Xid", NULL);
	rule(&rules, "reset", KLOG_WARN, "(?:6,9+,1,-;|amdgpu: )?GPU reset", "GPU reset begin");
	rule(&rules, "slow", KLOG_WARN, "(a+)+b$", NULL);
	assert_int_equal(klog_new(&rules, &k, NULL), 0);
	mo_desc_done(&klog_rules_desc, &rules);
	return k;
}

static void feed(struct klog *k, const char *line)
{
	klog_feed(k, line, strlen(line));
}

static struct probe result(struct klog *k)
{
	struct probe p;

	mo_desc_init(&probe_desc, &p);
	klog_readings(k, &p);
	klog_free(k);
	return p;
}

/* The GPU that reports is 68; the one whose registers hold the error is 9e. */
static void culprit_is_not_the_reporter(void **state)
{
	struct klog *k = fresh();

	feed(k, "3,100,8390785329,-;amdgpu 0000:68:00.0: {1}uncorrectable hardware "
		"error(ERREVENT_ATHUB_INTERRUPT) detected!\n SUBSYSTEM=pci\n "
		"DEVICE=+pci:0000:68:00.0");
	feed(k, "3,101,8390823777,-;amdgpu 0000:9e:00.0: {1}[Hardware Error]: Accelerator Check "
		"Architecture events logged");
	feed(k, "3,102,8390823790,-;amdgpu 0000:9e:00.0: {1}[Hardware Error]: aca "
		"entry[00].STATUS=0x98000800003e0000");
	feed(k, "3,103,8390823800,-;amdgpu 0000:4e:00.0: amdgpu: {2}[Hardware Error]: Accelerator "
		"Check Architecture events logged");
	struct probe p = result(k);
	assert_true(reading_value(&p, "fatal") == 1 && reading_value(&p, "aca") == 2 &&
		    reading_value(&p, "fault") == 0);
	assert_true(reading_value(&p, "last_seq") == 103 && reading_value(&p, "records") == 4);
	assert_string_equal(reading_text(&p, "devices.fatal"), "0000:68:00.0");
	assert_string_equal(reading_text(&p, "devices.aca"), "0000:9e:00.0 0000:4e:00.0");
	assert_string_equal(reading_text(&p, "events.aca"), "1 2");
	assert_string_equal(reading_text(&p, "line.fatal.1"),
			    "[8390.785329] amdgpu 0000:68:00.0: {1}uncorrectable hardware "
			    "error(ERREVENT_ATHUB_INTERRUPT) detected!");
	mo_desc_done(&probe_desc, &p);
}

static void since_and_facility(void **state)
{
	struct klog *k = fresh();

	klog_since(k, 100);
	feed(k, "3,100,1,-;amdgpu: GPU reset(1) failed"); /* seen already */
	/* written by a program: facility 1 */
	feed(k, "11,101,1,-;amdgpu: GPU reset(1) failed");
	feed(k, "3,102,1,-;amdgpu: GPU reset begin!"); /* unless */
	feed(k, "3,103,1,-;amdgpu: GPU reset succeeded");
	feed(k, "6,99999999999999999999,1,-;GPU reset"); /* no number: a plain line */
	struct probe p = result(k);
	assert_true(reading_value(&p, "reset") == 2);
	assert_true(reading_value(&p, "last_seq") == 104);
	mo_desc_done(&probe_desc, &p);
}

static void a_fault_names_its_process(void **state)
{
	struct klog *k = fresh();

	feed(k, "[19277.981083] amdgpu 0000:3d:00.0: amdgpu: [mmhub0] retry page fault (src_id:0 "
		"ring:0 vmid:3 pasid:32790)");
	/* another device's */
	feed(k, "[19277.981100] amdgpu 0000:c6:00.0: amdgpu:  for process other pid 1 thread other "
		"pid 1)");
	feed(k, "[19277.981250] amdgpu 0000:3d:00.0: amdgpu:  for process python3.12 pid 6071 "
		"thread python3.12 pid 6071)");
	feed(k, "[19277.981300] amdgpu 0000:3d:00.0: amdgpu:  for process late pid 7 thread late "
		"pid 7)");
	feed(k, "[20000.000000] amdgpu 0000:03:00.0: amdgpu: [mmhub0] no-retry page fault "
		"(src_id:0 ring:0 vmid:0 pasid:0, for process pid 0 thread pid 0)");
	feed(k, "[20001.000000] amdgpu 0000:03:00.0: [gfxhub] page fault (src_id:0, for process "
		"pt_main_thread pid 12924 thread pt_main_thread pid 12924)");
	struct probe p = result(k);
	assert_true(reading_value(&p, "fault") == 3);
	assert_string_equal(reading_text(&p, "pids.fault"), "6071 12924");
	assert_string_equal(reading_text(&p, "devices.fault"), "0000:3d:00.0 0000:03:00.0");
	assert_non_null(strstr(reading_text(&p, "line.fault.2"), "pid 6071"));
	mo_desc_done(&probe_desc, &p);
}

static void nvidia(void **state)
{
	struct klog *k = fresh();

	feed(k, "NVRM: Xid (PCI:0000:06:00): 79, pid=1234, GPU has fallen off the bus.");
	struct probe p = result(k);
	assert_string_equal(reading_text(&p, "devices.xid"), "0000:06:00.0");
	assert_string_equal(reading_text(&p, "pids.xid"), "1234");
	mo_desc_done(&probe_desc, &p);
}

static void bounded(void **state)
{
	struct klog *k = fresh();
	char line[9000];

	for (int i = 0; i < 500; i++) {
		int n = snprintf(line, sizeof(line),
				 "3,%d,1,-;amdgpu %04x:68:00.0: {%d}uncorrectable hardware error(",
				 i, i, i);
		memset(line + n, 'x', sizeof(line) - (size_t)n);
		klog_feed(k, line, sizeof(line));
	}
	/* a pattern that explodes: no match, and it ends */
	memset(line, 'a', 4000);
	klog_feed(k, line, 4000);
	struct probe p = result(k);
	assert_true(reading_value(&p, "fatal") == 500 && reading_value(&p, "slow") == 0);
	assert_non_null(reading_text(&p, "line.fatal.8"));
	assert_null(reading_text(&p, "line.fatal.9"));
	assert_true(strlen(reading_text(&p, "line.fatal.8")) < KLOG_EVIDENCE_BYTES + 32);
	assert_int_equal(strlen(reading_text(&p, "devices.fatal")), KLOG_NAMED_MAX * 13 - 1);
	mo_desc_done(&probe_desc, &p);
}

static void text_files(void **state)
{
	static const char records[] = "3,7,1,-;amdgpu: GPU reset(1) failed\n SUBSYSTEM=pci\n "
				      "DEVICE=GPU reset\n\n3,9,1,-;GPU reset(2) failed";
	struct klog *k = fresh();

	klog_feed_text(k, records, strlen(records));
	klog_feed_text(k, "", 0);
	klog_feed_text(k, "\n\n\n", 3);
	assert_int_equal(klog_last(k), 9);
	struct probe p = result(k);
	assert_true(reading_value(&p, "reset") == 2);
	mo_desc_done(&probe_desc, &p);
	k = fresh();
	/* a dmesg file may indent */
	klog_feed_text(k, " GPU reset(1) failed\n\0GPU reset failed\n", 38);
	p = result(k);
	/* behind a NUL it does not begin the line */
	assert_true(reading_value(&p, "reset") == 1);
	mo_desc_done(&probe_desc, &p);
}

static void bad_rule(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct klog_rules rules;
	struct klog *k = NULL;

	mo_desc_init(&klog_rules_desc, &rules);
	rule(&rules, "x", KLOG_WARN, "(", NULL);
	assert_int_equal(klog_new(&rules, &k, &err), -EINVAL);
	assert_null(k);
	assert_non_null(strstr(err.text, "missing closing parenthesis"));
	mo_desc_done(&klog_rules_desc, &rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(culprit_is_not_the_reporter),
		cmocka_unit_test(since_and_facility),
		cmocka_unit_test(a_fault_names_its_process),
		cmocka_unit_test(nvidia),
		cmocka_unit_test(bounded),
		cmocka_unit_test(text_files),
		cmocka_unit_test(bad_rule),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
