/* Any bytes as JSON and as messages of the agent protocol: nothing crashes or leaks; what is taken
 * survives a round trip unchanged and what we write we accept; what is read directly the tree reads
 * as the same. ROOMS: wire model base */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "lib/model/job.h"
#include "lib/model/message.h"
#include "lib/wire/decode.h"
#include "lib/wire/direct.h"
#include "lib/wire/encode.h"
#include "lib/wire/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void try(const struct mo_desc *d, const char *text, size_t n, bool strict)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	void *obj = mo_desc_new(d), *back = mo_desc_new(d);

	if (wire_decode(d, text, n, strict, obj, NULL) == 0) {
		wire_encode(d, obj, &b);
		if (wire_decode(d, b.data, b.len, strict, back, NULL) < 0 ||
		    !mo_desc_equal(d, obj, back))
			abort();
	}
	mo_desc_free(d, obj);
	mo_desc_free(d, back);
}

static void agree(const struct mo_desc *d, const char *text, size_t n, bool strict)
{
	struct json_object *json = NULL;
	void *direct = mo_desc_new(d), *tree = mo_desc_new(d);

	if (wire_direct(d, text, n, strict, direct) &&
	    (wire_parse(text, n, &json, NULL) < 0 ||
	     wire_from_json(d, json, strict, tree, NULL) < 0 || !mo_desc_equal(d, direct, tree)))
		abort();
	json_object_put(json);
	mo_desc_free(d, direct);
	mo_desc_free(d, tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct mo_desc *const descs[] = { &agent_sync_desc, &agent_hello_desc,
						       &sync_reply_desc, &event_desc,
						       &rank_desc,       &note_desc };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *text = mo_strndup((const char *)data, n);
	struct json_object *json = NULL;

	for (size_t i = 0; i < ELEMENTSOF(descs); i++) {
		try(descs[i], (const char *)data, n, i % 2 == 0);
		agree(descs[i], (const char *)data, n, i % 2 == 0);
	}
	wire_string(text, &b);
	if (wire_parse(b.data, b.len, &json, NULL) < 0)
		abort();
	json_object_put(json);
	return 0;
}
