/* See client.h. Lists longer than one answer. */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/value.h"
#include "cli/visible.h"

#define PAGE 1000
#define AS_TEXT (JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)

int client_pages(struct cli *cli, const char *what, const char *path, const char *from,
		 int (*fn)(void *arg, struct answer *page), void *arg)
{
	_cleanup_(mo_freep) char *key = mo_strdup(from);
	bool more = true;

	while (more) {
		_cleanup_(answer_done) struct answer page = { 0 };
		_cleanup_(mo_freep) char *after = key ? url_quote(key) : NULL;
		int r = client_get(cli, what, &page, "%s%climit=%d%s%s", path,
				   strchr(path, '?') ? '&' : '?', PAGE, after ? "&after=" : "",
				   after ? after : "");
		if (r)
			return r;
		struct json_object *next = js_get(page.doc, "next");
		const char *text = next ? json_object_get_string(next) : NULL;
		/* the same again would never end */
		more = text && !mo_streq(text, key) && js_items(page.doc);
		mo_str_set(&key, text);
		if ((r = fn(arg, &page)))
			return r;
	}
	return 0;
}

struct whole {
	struct answer *ret;
	size_t n_pages;
};

static int add_page(void *arg, struct answer *page)
{
	struct whole *w = arg;

	if (w->n_pages++ == 0) {
		*w->ret = *page;
		*page = (struct answer){ 0 };
		return 0;
	}
	struct json_object *items = js_items(w->ret->doc), *more = js_items(page->doc);
	for (size_t i = 0; i < js_len(more); i++)
		json_object_array_add(items, json_object_get(js_at(more, i)));
	return 0;
}

int client_get_all(struct cli *cli, const char *what, struct answer *ret, const char *path_fmt, ...)
{
	struct whole w = { .ret = ret };
	va_list ap;

	va_start(ap, path_fmt);
	_cleanup_(mo_freep) char *path = mo_vprintf(path_fmt, ap);
	va_end(ap);
	int r = client_pages(cli, what, path, NULL, add_page, &w);
	if (r || w.n_pages < 2)
		return r;
	json_object_object_add(ret->doc, "next", NULL);
	mo_buf_reset(&ret->body);
	mo_buf_str(&ret->body, json_object_to_json_string_ext(ret->doc, AS_TEXT));
	return 0;
}

/* What is printed already, and what the newest page has beside its items. */
struct printing {
	bool begun, items;
	struct json_object *rest;
};

/* The inside of a document or list, {...} or [...]; lines, as a page would be a long one. */
static void print_inside(struct json_object *o, const char *end)
{
	const char *text = json_object_to_json_string_ext(o, AS_TEXT);

	print_json_part(text + 1, strlen(text) - 2);
	puts(end);
}

static int print_page(void *arg, struct answer *page)
{
	struct printing *p = arg;
	struct json_object *items = js_items(page->doc);

	if (!p->begun && !js_get(page->doc, "next"))
		return print_answer(page);
	fputs(p->begun ? "" : "{\"items\":[", stdout);
	fputs(p->items && js_len(items) ? "," : "", stdout);
	print_inside(items, "");
	p->begun = true;
	p->items = p->items || js_len(items);
	json_object_put(p->rest);
	p->rest = json_object_get(page->doc);
	json_object_object_del(p->rest, "items");
	json_object_object_add(p->rest, "next", NULL);
	return ferror(stdout) ? CLI_FAILED : CLI_OK;
}

int client_print_all(struct cli *cli, const char *what, const char *path)
{
	struct printing p = { 0 };
	int r = client_pages(cli, what, path, NULL, print_page, &p);

	if (!r && p.begun) {
		fputs("],", stdout);
		print_inside(p.rest, "}");
	}
	json_object_put(p.rest);
	return ferror(stdout) ? CLI_OK : r; /* main() says that nothing could be written */
}
