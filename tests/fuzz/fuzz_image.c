/* Any bytes as what an image says about itself, as the environment of a plain root and as the
 * config.json of a bundle: what is taken is within its limits, and what is written of it is read
 * again as it was. ROOMS: acore wire model base */
#include <stdlib.h>
#include <string.h>

#include "agent/core/stepd/image_config.h"
#include "lib/base/utf8.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct image_config *c)
{
	_cleanup_(image_config_done) struct image_config again;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (c->n_env > IMAGE_VARIABLES_MAX || (c->workdir && c->workdir[0] != '/'))
		abort();
	for (size_t i = 0; i < c->n_env; i++)
		if (!c->env[i].name[0] || strchr(c->env[i].name, '=') ||
		    !mo_utf8_valid(c->env[i].value, strlen(c->env[i].value)))
			abort();
	mo_desc_init(&image_config_desc, &again);
	wire_encode(&image_config_desc, c, &b);
	if (b.len > IMAGE_CONFIG_JSON_MAX ||
	    wire_decode(&image_config_desc, b.data, b.len, true, &again, NULL) < 0 ||
	    !mo_desc_equal(&image_config_desc, c, &again))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *text = (const char *)data;
	_cleanup_(image_config_done) struct image_config plain;
	_cleanup_(image_config_done) struct image_config of_bundle;
	_cleanup_(image_bundle_done) struct image_bundle bundle;

	mo_desc_init(&image_config_desc, &plain);
	mo_desc_init(&image_config_desc, &of_bundle);
	mo_desc_init(&image_bundle_desc, &bundle);
	if (image_config_environment(text, n, &plain, NULL) == 0)
		check(&plain);
	if (wire_affordable(text, n, NULL) == 0 &&
	    wire_decode(&image_bundle_desc, text, n, false, &bundle, NULL) == 0 &&
	    image_config_bundle(&bundle, &of_bundle, NULL) == 0)
		check(&of_bundle);
	return 0;
}
