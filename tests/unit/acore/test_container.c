/* Whose boot id a container shows. */
#include "tests/unit/unit.h"

#include "agent/core/agent/container.h"

/* ORIGIN: a booted systemd-nspawn of Debian 12, and a Docker container of Ubuntu 22.04 */
static const char nspawn[] =
	"537 622 0:78 / /run rw - tmpfs tmpfs rw\n"
	"538 623 0:78 /.#proc-sys-kernel-random-boot-id44b7//deleted "
	"/proc/sys/kernel/random/boot_id ro,nosuid,nodev,noexec shared:183 - tmpfs tmpfs rw\n";
static const char docker[] =
	"710 600 0:60 / / rw - overlay overlay rw\n711 710 0:61 / /proc rw,nosuid - proc proc "
	"rw\n712 711 0:61 /sys /proc/sys ro - proc proc rw\n";

static void whose_it_is(void **state)
{
	assert_false(boot_id_is_hosts(NULL, docker)); /* a machine */
	assert_false(boot_id_is_hosts("", docker));
	/* one of its own at each start */
	assert_false(boot_id_is_hosts("systemd-nspawn", nspawn));
	assert_true(boot_id_is_hosts("lxc", docker));
	assert_true(boot_id_is_hosts("docker", NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(whose_it_is) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
