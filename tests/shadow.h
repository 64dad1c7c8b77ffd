/* The second core of tests: it gets nothing but what the first one wrote, through text, as a store
 * would give it back, and must become equal. Shared by the unit tests of the core, the simulator
 * and the fuzzer of records; each says in its own way that the promise is broken. */
#pragma once
#include <stdlib.h>

#include "daemon/core/core.h"
#include "lib/base/buf.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

/* What is wrong with a struct that was written and read again, else NULL; the caller frees. */
static inline char *through_text(const struct mo_desc *d, const void *obj, void *ret)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	wire_encode(d, obj, &b);
	if (wire_decode(d, b.data, b.len, false, ret, &err) == 0)
		return NULL;
	return mo_printf("does not read back: %s: %s", err.text, b.data);
}

/* What is wrong with a record, else NULL; the caller frees. */
static inline char *shadow_feed(struct core *shadow, const struct record *r)
{
	struct record back;

	mo_desc_init(&record_desc, &back);
	char *wrong = through_text(&record_desc, r, &back);

	if (!wrong && core_update(shadow, &back) != 0)
		wrong = mo_strdup("refused at replay");
	mo_desc_done(&record_desc, &back);
	return wrong;
}

/* Where the shadow differs, else NULL; the caller frees. */
static inline char *shadow_differs(const struct core *core, const struct core *shadow)
{
	struct state a, b;

	mo_desc_init(&state_desc, &a);
	mo_desc_init(&state_desc, &b);
	mo_desc_copy(&state_desc, &a, core_state(core));
	mo_desc_copy(&state_desc, &b, core_state(shadow));
	char *where = mo_desc_equal(&state_desc, &a, &b) ? NULL : mo_desc_diff(&state_desc, &a, &b);

	mo_desc_done(&state_desc, &a);
	mo_desc_done(&state_desc, &b);
	return where;
}
