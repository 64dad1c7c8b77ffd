/* The dashboard: a fixed list of files, read once at the first request. Names outside the list do not exist. The page holds no data; everything comes from /v1. */
#include <string.h>
#include "daemon/api.h"
#include "lib/base/fd.h"

#define FILE_MAX_BYTES (4u << 20)
#define CSP "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

static struct file { const char *path, *name, *type; char *data; size_t n; } files[] = {
	{ "/", "index.html", "text/html; charset=utf-8", NULL, 0 },
	{ "/app.js", "app.js", "text/javascript; charset=utf-8", NULL, 0 },
	{ "/style.css", "style.css", "text/css; charset=utf-8", NULL, 0 },
	{ "/favicon.svg", "favicon.svg", "image/svg+xml", NULL, 0 },
	{ "/uPlot.iife.min.js", "uPlot.iife.min.js", "text/javascript; charset=utf-8", NULL, 0 },
	{ "/uPlot.min.css", "uPlot.min.css", "text/css; charset=utf-8", NULL, 0 },
};

/* Installed: DATA/web/NAME. Run from the source tree: daemon/web/NAME. */
static char *find(const char *name)
{
	_cleanup_(mo_freep) char *installed = mo_printf("web/%s", name), *self = mo_libexec("moed");
	char *path = mo_data_file(installed);

	if (!path && self && mo_starts_with(self, MO_SOURCE_DIR "/"))
		path = mo_printf("%s/daemon/web/%s", MO_SOURCE_DIR, name);
	return path;
}

static bool load(struct file *f)
{
	_cleanup_(mo_buf_done) struct mo_buf b = {0};
	_cleanup_(mo_freep) char *path = f->data ? NULL : find(f->name);

	if (f->data)
		return true;
	if (!path || mo_read_file(path, FILE_MAX_BYTES, &b) < 0)
		return false;
	f->n = b.len;
	f->data = mo_buf_take(&b);
	return true;
}

void api_web(void *arg, struct http_request *r)
{
	static const char *const headers[] = { CSP, "Referrer-Policy: no-referrer", "X-Frame-Options: DENY", "Cache-Control: no-cache", NULL };

	for (size_t i = 0; i < ELEMENTSOF(files); i++)
		if (strcmp(files[i].path, http_path(r)) == 0 && load(&files[i])) {
			http_reply(r, 200, files[i].type, files[i].data, files[i].n, headers);
			return;
		}
	http_problem(r, 404, "the dashboard's files are not installed: look for web/ in the data directory");
}

void web_done(void)
{
	for (size_t i = 0; i < ELEMENTSOF(files); i++) {
		free(files[i].data);
		files[i].data = NULL;
	}
}
