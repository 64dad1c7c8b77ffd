/* Any text as a file of sysfs or proc: every decoder ends within it.
 * ROOMS: acore model base */
#include <stdlib.h>
#include <string.h>

#include "agent/core/health/sysfs_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char *(*const texts[])(const char *) = { text_line, text_state, text_chosen,
							text_cmdline };
	_cleanup_(mo_freep) char *s = mo_strndup((const char *)data, n);
	char bdf[16];
	struct bad_pages pages;
	struct ras_events events;
	int64_t counts[RAS_KINDS];

	for (size_t i = 0; i < ELEMENTSOF(texts); i++)
		free(texts[i](s));
	free(text_key(s, "ue"));
	free(text_option(s, "iommu"));
	(void)text_whole(s);
	(void)text_key_int(s, "ue");
	(void)text_leading(s);
	(void)text_dpm_mhz(s);
	(void)text_list_count(s);
	(void)text_bad_pages(s, &pages);
	(void)text_ras_events(s, &events);
	(void)text_ras_counts(s, counts);
	(void)text_no_value(s);
	_cleanup_(mo_freep) char *clean = text_clean((const char *)data, n, 40);
	if (!text_is_text(clean, strlen(clean)) || strlen(clean) > 43)
		abort();
	(void)text_limit(s, "Max locked memory");
	(void)text_mount_size(s, "/dev/shm");
	(void)text_bdf(s, bdf);
	return 0;
}
