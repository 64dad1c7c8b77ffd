/* CRC32C against the vectors of RFC 3720 B.4 and the check value of the polynomial; both ways agree
 * at every alignment. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/crc32c.h"
#include "lib/base/util.h"

static void both(const void *data, size_t n, uint32_t want)
{
	assert_int_equal(mo_crc32c(0, data, n), want);
	assert_int_equal(mo_crc32c_portable(0, data, n), want);
}

static void test_vectors(void **state)
{
	unsigned char bytes[32];

	both("", 0, 0);
	both("a", 1, 0xc1d04330);
	both("123456789", 9, 0xe3069283);
	memset(bytes, 0, sizeof(bytes));
	both(bytes, 32, 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	both(bytes, 32, 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char)i;
	both(bytes, 32, 0x46dd794e);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char)(31 - i);
	both(bytes, 32, 0x113fdb5c);
}

static void test_pieces(void **state)
{
	_cleanup_(mo_freep) unsigned char *data = mo_alloc(4096);

	for (size_t i = 0; i < 4096; i++)
		data[i] = (unsigned char)(i * 7 + i / 13);
	for (size_t from = 0; from < 17; from++)
		for (size_t n = 0; n < 70; n++)
			assert_int_equal(mo_crc32c(0, data + from, n),
					 mo_crc32c_portable(0, data + from, n));
	for (size_t cut = 0; cut < 4096; cut += 37)
		assert_int_equal(mo_crc32c(mo_crc32c(0, data, cut), data + cut, 4096 - cut),
				 mo_crc32c(0, data, 4096));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_vectors),
					    cmocka_unit_test(test_pieces) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
