/* webhooks.yaml: what it says, and what is refused of it with its place and without its secrets. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/webhooks_file.h"

#define WHOLE \
	"webhooks:\n" \
	"- name: oncall\n" \
	"  url: https://hooks.example.com/T0/B0\n" \
	"  secret: 0123456789abcdef\n" \
	"  types: [job.failed, node.*]\n" \
	"  jobs: [train-*]\n" \
	"  format: text\n" \
	"- name: relay\n" \
	"  url: http://127.0.0.1:8080\n"

static void read_whole(void **state)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct webhooks_file f;

	mo_desc_init(&webhooks_file_desc, &f);
	assert_int_equal(webhooks_parse(WHOLE, strlen(WHOLE), &f, &errors), 0);
	assert_int_equal(f.n_webhooks, 2);
	assert_string_equal(f.webhooks[0].name, "oncall");
	assert_string_equal(f.webhooks[0].secret, "0123456789abcdef");
	assert_string_equal(f.webhooks[0].types[1], "node.*");
	assert_string_equal(f.webhooks[0].jobs[0], "train-*");
	assert_int_equal(f.webhooks[0].format, WEBHOOK_TEXT);
	assert_int_equal(f.webhooks[1].format, WEBHOOK_EVENTS);
	assert_int_equal(f.webhooks[1].n_types, 0);
	assert_null(f.webhooks[1].secret);
	mo_desc_done(&webhooks_file_desc, &f);
}

static void refused(void **state)
{
	static const struct {
		const char *old, *new, *said;
		int64_t line;
	} rows[] = {
		{ "https://hooks.example.com/T0/B0", "ftp://x/hush", "url: expected https://", 3 },
		{ "https://hooks.example.com/T0/B0", "https:///hush", "url: expected https://", 3 },
		{ "https://hooks.example.com/T0/B0", "https://h?key=hush", "url: expected https://",
		  3 },
		{ "https://hooks.example.com/T0/B0", "http://far.example.com/hush",
		  "url: http:// to another machine", 3 },
		{ "https://hooks.example.com/T0/B0", "https://u:hush@far.example.com/",
		  "url: has a user or password", 3 },
		{ "https://hooks.example.com/T0/B0", "'https://far.example.com/hush x'",
		  "url: has a blank", 3 },
		{ "https://hooks.example.com/T0/B0", "\"https://far.example.com/hush\\r\\nX: 1\"",
		  "url: has a blank", 3 },
		{ "0123456789abcdef", "hush", "secret: shorter than 16", 4 },
		{ "job.failed", "job.faild", "types: no event is a 'job.faild'", 5 },
		{ "node.*", "nodes.*", "types: no event is a 'nodes.*'", 5 },
		{ "  types:", "  type:", "unknown key 'type'", 5 },
		{ "format: text", "format: xml", "format: ", 7 },
		{ "name: relay", "name: oncall", "name: there are two webhooks 'oncall'", 8 },
		{ "  url: http://127.0.0.1:8080\n", "", "missing key 'url'", 8 },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
		const char *at = strstr(WHOLE, rows[i].old);
		_cleanup_(mo_freep) char *text = mo_printf("%.*s%s%s", (int)(at - WHOLE), WHOLE,
							   rows[i].new, at + strlen(rows[i].old));
		struct webhooks_file f;
		bool found = false;

		mo_desc_init(&webhooks_file_desc, &f);
		assert_int_equal(webhooks_parse(text, strlen(text), &f, &errors), -EINVAL);
		for (size_t k = 0; k < errors.n; k++) {
			found |= errors.items[k].line == rows[i].line &&
				 strstr(errors.items[k].text, rows[i].said);
			assert_null(strstr(errors.items[k].text, "hush"));
		}
		if (!found)
			fail_msg("not said: %s; but %s", rows[i].said, errors.items[0].text);
		mo_desc_done(&webhooks_file_desc, &f);
	}
}

static void only_the_host_is_shown(void **state)
{
	static const char *const rows[][2] = {
		{ "https://hooks.example.com/T0/B0", "https://hooks.example.com" },
		{ "https://h:8443?key=hush", "https://h:8443" },
		{ "http://127.0.0.1:80", "http://127.0.0.1:80" },
		{ "https://h#x", "https://h" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *host = webhook_host(rows[i][0]);

		assert_string_equal(host, rows[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_whole),
		cmocka_unit_test(refused),
		cmocka_unit_test(only_the_host_is_shown),
	};

	return cmocka_run_group_tests_name("recipe/webhooks_file", tests, NULL, NULL);
}
