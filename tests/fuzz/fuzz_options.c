/* Any bytes as a daemon's configuration file: nothing crashes or leaks, and a refused file has a
 * message. ROOMS: base */
#include <stdlib.h>
#include "lib/base/options.h"

struct config {
	char *url, *path, *name, *word;
	int64_t count, wait_us, bytes, first, last;
	bool on;
};
static const char *const words[] = { "auto", "yes", "no", NULL };
static const struct mo_option table[] = {
	{ "url", MO_OPTION_STR, offsetof(struct config, url), "x", "d", 0, 0, NULL },
	{ "path", MO_OPTION_PATH, offsetof(struct config, path), NULL, "d", 0, 0, NULL },
	{ "name", MO_OPTION_NAME, offsetof(struct config, name), NULL, "d", 0, 0, NULL },
	{ "word", MO_OPTION_WORD, offsetof(struct config, word), "auto", "d", 0, 0, words },
	{ "count", MO_OPTION_INT, offsetof(struct config, count), "3", "d", 0, 10, NULL },
	{ "wait", MO_OPTION_DURATION, offsetof(struct config, wait_us), "1s", "d", 1, 60000000,
	  NULL },
	{ "bytes", MO_OPTION_SIZE, offsetof(struct config, bytes), "1k", "d", -1, 1 << 20, NULL },
	{ "ports", MO_OPTION_RANGE, offsetof(struct config, first), "20-30", "d", 1, 65535, NULL },
	{ "on", MO_OPTION_BOOL, offsetof(struct config, on), NULL, "d", 0, 0, NULL },
};
static const struct mo_options options = { table, ELEMENTSOF(table) };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct config c;
	mo_options_init(&options, &c);
	int r = mo_options_text(&options, &c, "f", (const char *)data, n, &err);
	if ((r < 0) != (err.text != NULL) || c.count < 0 || c.count > 10 || c.first > c.last ||
	    c.wait_us < 1)
		abort();
	mo_options_done(&options, &c);
	return 0;
}
