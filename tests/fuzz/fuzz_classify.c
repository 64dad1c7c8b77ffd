/* Any bytes as a program's and a kernel's log: the classifier with the shipped signatures ends, its
 * evidence is bounded, the verdict is a document. ROOMS: recipe dcore plan wire model base */
#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/classify.h"
#include "lib/recipe/failures_file.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct classifier *shipped(void)
{
	static struct classifier *c;
	struct failure_rules rules;

	if (c)
		return c;
	mo_desc_init(&failure_rules_desc, &rules);
	if (failures_load(false, &rules, NULL) < 0 || classifier_new(&rules, &c, NULL) < 0)
		abort();
	mo_desc_done(&failure_rules_desc, &rules);
	return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct failure_verdict v;
	size_t half = n / 2;
	const struct classify_input in = { (const char *)data, (const char *)data + half, half,
					   n - half,           n > 1 ? data[0] : MO_NONE, MO_NONE };

	mo_desc_init(&failure_verdict_desc, &v);
	classify(shipped(), &in, &v);
	if (v.class < 0 || v.class >= _FAILURE_CLASS_N || v.n_evidence > 5)
		abort();
	wire_encode(&failure_verdict_desc, &v, &b);
	if (wire_decode(&failure_verdict_desc, b.data, b.len, true, &v, NULL) < 0)
		abort();
	mo_desc_done(&failure_verdict_desc, &v);
	return 0;
}
