/* See doctor_image.h. The node looks and judges; here it is shown. */
#include "cli/doctor_image.h"

#include "cli/client.h"
#include "cli/output.h"
#include "cli/value.h"

static bool any_fails(struct json_object *items)
{
	for (size_t i = 0; i < js_len(items); i++)
		if (mo_streq(js_str(js_at(items, i), "state"), "fail"))
			return true;
	return false;
}

int doctor_image(struct cli *cli, const char *node, const char *image, const char *user)
{
	static const struct column columns[] = {
		{ "CHECK", "check" }, { "STATE", "state" }, { "TEXT", "text" }, { "NEXT", "next" }
	};
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *name = url_quote(node), *what = url_quote(image);
	_cleanup_(mo_freep) char *who = user ? url_quote(user) : NULL;
	int r = client_get(cli, node, &a, "/v1/nodes/%s/image?image=%s%s%s", name, what,
			   who ? "&user=" : "", who ? who : "");

	if (r)
		return r;
	struct json_object *items = js_items(a.doc);

	if (cli->json)
		r = print_answer(&a);
	else
		print_table(cli, columns, ELEMENTSOF(columns), items);
	return r ? r : any_fails(items) ? CLI_FAILED : CLI_OK;
}
