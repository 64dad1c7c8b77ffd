/* Texts of sysfs and proc as real machines print them, and cut or foreign ones. */
#include "tests/unit/unit.h"

#include <string.h>
#include "agent/core/health/sysfs_text.h"

static void is_text(char *got, const char *expected)
{
	_cleanup_(mo_freep) char *s = got;

	if (!expected)
		assert_null(s);
	else
		assert_string_equal(s, expected);
}

static void numbers(void **state)
{
	assert_int_equal(text_whole("16\n"), 16);
	assert_int_equal(text_whole("-1\n"), -1);
	assert_int_equal(text_whole(" 0x74a1\n"), 0x74a1);
	assert_int_equal(text_whole("0xffffffffffffffff\n"), MO_NONE);
	assert_int_equal(text_whole(""), MO_NONE);
	assert_int_equal(text_whole("16 lanes"), MO_NONE);
	assert_int_equal(text_whole("0x"), MO_NONE);
	assert_true(text_leading("32.0 GT/s PCIe\n") == 32);
	assert_true(text_leading("2.5 GT/s PCIe\n") == 2.5);
	assert_true(text_leading("400 Gb/sec (4X NDR)\n") == 400);
	assert_true(text_leading("Unknown\n") == MO_NONE_F);
	assert_true(text_leading("1.2.3\n") == MO_NONE_F);
}

static void keys(void **state)
{
	static const char
		umc[] = "ue: 2\nce: 119\nde: 0\n",
		old[] = "ue: 0\nce: 7\n",
		meminfo[] =
			"Node 1 MemTotal:       1207959552 kB\nNode 1 MemFree:        716800 kB\n";
	assert_int_equal(text_key_int(umc, "ue"), 2);
	assert_int_equal(text_key_int(umc, "ce"), 119);
	assert_int_equal(text_key_int(umc, "de"), 0);
	assert_int_equal(text_key_int(old, "de"), MO_NONE);
	assert_int_equal(text_key_int("value: 5\n", "ue"), MO_NONE);
	assert_int_equal(text_key_int("Corr 1\nTOTAL_ERR_COR 1873\n", "TOTAL_ERR_COR"), 1873);
	assert_int_equal(text_key_int("location_id 7680\ndomain 0\n", "location_id"), 7680);
	assert_int_equal(text_key_int("unique_id 13000000000000000000\n", "unique_id"), MO_NONE);
	assert_int_equal(text_key_int(meminfo, "Node 1 MemFree"), 716800);
	is_text(text_key("Model: \t\t NVIDIA H200  \nX: y\n", "Model"), "NVIDIA H200");
	is_text(text_key("ue:", "ue"), NULL);
}

static void states(void **state)
{
	is_text(text_state("4: ACTIVE\n"), "ACTIVE");
	is_text(text_state("5: LinkUp\n"), "LinkUp");
	is_text(text_state("up\n"), "up");
	is_text(text_state("\n"), NULL);
	is_text(text_chosen("always [madvise] never\n"), "madvise");
	is_text(text_chosen("always madvise\n"), NULL);
	is_text(text_line("  SPX  \n more"), "SPX");
	is_text(text_option("ro iommu=pt pci=realloc=off\n", "iommu"), "pt");
	is_text(text_option("amd_iommu=on ro\n", "iommu"), NULL);
	is_text(text_option("ro\n", "iommu"), NULL);
	assert_int_equal(text_dpm_mhz("0: 132Mhz *\n1: 2100Mhz\n"), 132);
	assert_int_equal(text_dpm_mhz("0: 132Mhz\n1: 2100Mhz *\n"), 2100);
	assert_int_equal(text_dpm_mhz("0: 2.5GT/s, x16 77Mhz *\n"), MO_NONE);
	assert_int_equal(text_dpm_mhz("0: 132Mhz\n"), MO_NONE);
	assert_int_equal(text_list_count("0-31,128-159\n"), 64);
	assert_int_equal(text_list_count("\n"), 0);
	assert_int_equal(text_list_count("0-\n"), MO_NONE);
}

static void ras(void **state)
{
	static const char pages[] =
		"0x000000001a3f2000 : 0x0000000000001000 : R\n0x000000001a3f3000 : "
		"0x0000000000001000 : R\n\n0x1 : 0x1000 : P\n0x2 : 0x1000 : F \n";
	static const char *const no_pages[] = { "garbage : R\n",
						"0x3",
						"0x1 : 0x1000",
						"0x1 : 0x1000 : X",
						"0x1 : 0x1000 : RP",
						"1 : 0x1000 : R",
						"0x1 : 0x1000 : R\n777777",
						"0x : 0x1 : R",
						"none\n" };
	struct bad_pages b;
	assert_true(text_bad_pages(pages, &b));
	assert_int_equal(b.retired, 2);
	assert_int_equal(b.pending, 1);
	assert_int_equal(b.failed, 1);
	assert_true(text_bad_pages("", &b));
	assert_int_equal(b.retired + b.pending + b.failed, 0);
	for (size_t i = 0; i < ELEMENTSOF(no_pages); i++)
		assert_false(text_bad_pages(no_pages[i], &b));
	int64_t n[RAS_KINDS];
	assert_true(text_ras_counts("ue: 2\nce: 119\n", n));
	assert_true(n[RAS_UE] == 2 && n[RAS_CE] == 119 && n[RAS_DE] == MO_NONE);
	assert_true(text_ras_counts("ue: 0\nce: 0\nde: 7", n));
	assert_int_equal(n[RAS_DE], 7);
	static const char *const no_counts[] = { "",
						 "\n",
						 "ue 2x\n",
						 "ue: -5\nce: 1\n",
						 "ce: 99999999999999999999\n",
						 "queue: 3\n",
						 "ue: 1\nce: garbage\n" };
	for (size_t i = 0; i < ELEMENTSOF(no_counts); i++)
		assert_false(text_ras_counts(no_counts[i], n));
	struct ras_events e;
	assert_true(text_ras_events("current seqno: 16\nFatal Error: count:0, last_seqno:0\nPoison "
				    "Creation: count:2, last_seqno:15\nPoison Consumption: "
				    "count:1, last_seqno:16\n",
				    &e));
	assert_int_equal(e.fatal, 0);
	assert_int_equal(e.created, 2);
	assert_int_equal(e.consumed, 1);
	assert_false(text_ras_events("current seqno: 16\nPoison Creation: 2\n", &e));
	assert_int_equal(e.created, MO_NONE);
	assert_int_equal(e.fatal, MO_NONE);
}

static void limits(void **state)
{
	static const char text[] =
		"Limit                     Soft Limit           Hard Limit           Units     "
		"\nMax open files            1048576              1048576              files     \n"
		"Max locked memory         unlimited            unlimited            bytes     \n";
	assert_true(text_limit(text, "Max open files") == 1048576);
	assert_true(text_limit(text, "Max locked memory") == TEXT_UNLIMITED);
	assert_true(text_limit(text, "Max processes") == MO_NONE_F);
	assert_int_equal(text_mount_size("proc /proc proc rw 0 0\ntmpfs /dev/shm tmpfs "
					 "rw,size=8388608k 0 0\n",
					 "/dev/shm"),
			 8388608LL * 1024);
	assert_int_equal(text_mount_size("tmpfs /dev/shm tmpfs rw 0 0\n", "/dev/shm"), MO_NONE);
	assert_int_equal(text_mount_size("tmpfs /dev/shmoo tmpfs rw,size=1k 0 0\n", "/dev/shm"),
			 MO_NONE);
}

/* Nothing of a command line is reported but what is known to matter. */
static void command_lines(void **state)
{
	is_text(text_cmdline("BOOT_IMAGE=/boot/vmlinuz root=UUID=1-2 ro iommu=pt "
			     "amdgpu.ras_enable=1 amdgpu=x token=abc\n"),
		"ro iommu=pt amdgpu.ras_enable=1");
	is_text(text_cmdline(
			"systemd.setenv=TOKEN=s3cret ds=nocloud-net;s=http://user:pw@10.0.0.1/ "
			"rd.luks.key=/k ip=10.0.0.7 console=ttyS0"),
		NULL);
	is_text(text_cmdline("iommupt iommu.passthrough=1 xiommu=pt pci=realloc=off\n"),
		"iommu.passthrough=1 pci=realloc=off");
	is_text(text_cmdline(""), NULL);
	_cleanup_(mo_freep) char *many = mo_alloc_array(20001, 1);
	for (size_t i = 0; i < 20000; i += 10)
		memcpy(many + i, "iommu=pt  ", 10);
	_cleanup_(mo_freep) char *cut = text_cmdline(many);
	assert_in_range(strlen(cut), 900, 1100);
}

static void clean(void **state)
{
	assert_true(text_is_text("SPX\n", 4) && text_is_text("\xc3\xa4\t", 3) &&
		    text_is_text("", 0));
	assert_false(text_is_text("a\0", 2) || text_is_text("\x1b[2J", 4) ||
		     text_is_text("\xff", 1) || text_is_text("\x7f", 1));
	is_text(text_clean("\x1b[2J\xff\xc3\xa4\n", 8, 40), "?[2J?\xc3\xa4?");
	is_text(text_clean("a\0b", 3, 40), "a?b");
	is_text(text_clean("\xc3\xa4\xc3\xa4", 4, 3), "\xc3\xa4...");
	assert_true(text_no_value("N/A\n") && text_no_value("18446744073709551615") &&
		    text_no_value("4294967295\n") && text_no_value("Unknown speed\n"));
	assert_false(text_no_value("0\n") || text_no_value("") || text_no_value("garbage"));
}

static void addresses(void **state)
{
	char bdf[16];
	assert_true(text_bdf("0000:9f:00.0", bdf));
	assert_string_equal(bdf, "0000:9f:00.0");
	assert_true(text_bdf("00000000:0F:1F.7", bdf));
	assert_string_equal(bdf, "0000:0f:1f.7");
	assert_true(text_bdf("0fffffff:00:06.0", bdf));
	assert_string_equal(bdf, "fffffff:00:06.0");
	static const char *const bad[] = { "",
					   "0000:9f:00",
					   "0000:9f:00.8",
					   "0000:9f:20.0",
					   "../../etc",
					   "0000:9f:00.0/..",
					   "9f:00.0",
					   "0000:9f:00.0\n",
					   "00000000000:9f:00.0" };
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_false(text_bdf(bad[i], bdf));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers), cmocka_unit_test(keys),
		cmocka_unit_test(states),  cmocka_unit_test(ras),
		cmocka_unit_test(limits),  cmocka_unit_test(command_lines),
		cmocka_unit_test(clean),   cmocka_unit_test(addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
