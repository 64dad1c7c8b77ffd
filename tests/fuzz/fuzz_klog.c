/* Any bytes as a kernel log, in one piece and as records, with the shipped rules: it ends, evidence
 * is bounded, the probe is a document. ROOMS: recipe acore wire model base */
#include <stdlib.h>
#include <string.h>

#include "agent/core/health/klog.h"
#include "agent/core/health/sysfs_text.h"
#include "lib/model/limits.h"
#include "lib/recipe/klog_file.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct klog_rules *shipped(void)
{
	static struct klog_rules rules;

	if (!rules.n_rules) {
		mo_desc_init(&klog_rules_desc, &rules);
		if (klog_rules_load(&rules, NULL) < 0)
			abort();
	}
	return &rules;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(klog_freep) struct klog *k = NULL;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct probe p;

	mo_desc_init(&probe_desc, &p);
	if (klog_new(shipped(), &k, NULL) < 0)
		abort();
	klog_feed(k, (const char *)data, n);
	klog_feed_text(k, (const char *)data, n);
	klog_readings(k, &p);
	if (p.n_readings >= MO_READINGS_MAX)
		abort();
	wire_encode(&probe_desc, &p, &b);
	if (wire_decode(&probe_desc, b.data, b.len, true, &p, NULL) < 0)
		abort();
	mo_desc_done(&probe_desc, &p);
	return 0;
}
