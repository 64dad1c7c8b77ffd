/* Any text as a file of sysfs or proc: every decoder ends within it.
 * ROOMS: acore model base */
#include <stdlib.h>

#include "agent/core/sysfs_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
	static char *(*const texts[])(const char *) = { text_line, text_state, text_chosen };
	_cleanup_(mo_freep) char *s = mo_strndup((const char *)data, n);
	char bdf[16];

	for (size_t i = 0; i < ELEMENTSOF(texts); i++)
		free(texts[i](s));
	free(text_key(s, "ue"));
	free(text_option(s, "iommu"));
	(void)text_int(s);
	(void)text_key_int(s, "ue");
	(void)text_leading(s);
	(void)text_dpm_mhz(s);
	(void)text_list_count(s);
	(void)text_bad_pages(s);
	(void)text_ras_events(s);
	(void)text_limit(s, "Max locked memory");
	(void)text_mount_size(s, "/dev/shm");
	(void)text_bdf(s, bdf);
	return 0;
}
