/* Heads of frames: what is written is read again, and its bytes are what they were. */
#include "tests/unit/unit.h"

#include "lib/base/frame.h"
#include "lib/base/util.h"

static void test_both_ways(void **state)
{
	const struct frame all[] = { { 0 },
				     { UINT32_MAX, UINT32_MAX, UINT16_MAX, UINT16_MAX },
				     { 0x01020304, 0x8090a0b0, 0xfffe, 1 } };
	char head[FRAME_HEAD];
	struct frame f;

	for (size_t i = 0; i < ELEMENTSOF(all); i++) {
		frame_write(&all[i], head);
		frame_read(head, &f);
		assert_int_equal(f.length, all[i].length);
		assert_int_equal(f.id, all[i].id);
		assert_int_equal(f.code, all[i].code);
		assert_int_equal(f.after_s, all[i].after_s);
	}
}

/* What peers of other machines and releases read. */
static void test_bytes(void **state)
{
	char head[FRAME_HEAD];

	frame_write(&(struct frame){ 0x01020304, 0x8090a0b0, FRAME_SYNC, 0x0708 }, head);
	assert_memory_equal(head, "\x01\x02\x03\x04\x80\x90\xa0\xb0\x00\x02\x07\x08", FRAME_HEAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_both_ways),
					    cmocka_unit_test(test_bytes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
