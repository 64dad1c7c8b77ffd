/* The dashboard: a fixed list of files, part of the program so that none can be missing. Names
 * outside the list do not exist. The page holds no data; everything comes from /v1. */
#include "daemon/web.h"

#include <string.h>

static const char csp[] = "Content-Security-Policy: default-src 'none'; script-src 'self'; "
			  "style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action "
			  "'self'; base-uri 'none'; frame-ancestors 'none'";

/* Bytes of files in daemon/web one behind the other, as they are; the Makefile knows that this file
 * depends on them. */
#define EMBED(symbol, files) \
	extern const char symbol##_begin[], symbol##_end[]; \
	__asm__(".pushsection .rodata\n" #symbol "_begin: " files #symbol \
		"_end: .byte 0\n.popsection\n")
#define LICENCE ".ascii \"/*\\n\"\n.incbin \"daemon/web/uPlot.LICENSE\"\n.ascii \"*/\\n\"\n"

#define FILE(name) ".incbin \"daemon/web/" name "\"\n"

/* A script and a style sheet, so that a first visit is four requests; uPlot's are behind ours. */
#define SCRIPTS \
	FILE("words.js") \
	FILE("rest.js") \
	FILE("tables.js") \
	FILE("job.js") \
	FILE("events.js") \
	FILE("curve.js") FILE("matrix.js") FILE("app.js") LICENCE FILE("uPlot.iife.min.js")
EMBED(web_index_html, FILE("index.html"));
EMBED(web_app_js, SCRIPTS);
EMBED(web_style_css, FILE("style.css") LICENCE FILE("uPlot.min.css"));
EMBED(web_favicon_svg, FILE("favicon.svg"));

static const struct {
	const char *path, *type, *begin, *end;
} files[] = {
	{ "/", "text/html; charset=utf-8", web_index_html_begin, web_index_html_end },
	{ "/app.js", "text/javascript; charset=utf-8", web_app_js_begin, web_app_js_end },
	{ "/style.css", "text/css; charset=utf-8", web_style_css_begin, web_style_css_end },
	{ "/favicon.svg", "image/svg+xml", web_favicon_svg_begin, web_favicon_svg_end },
};

void api_web(void *arg, struct http_request *r)
{
	static const char *const headers[] = { csp, "Referrer-Policy: no-referrer",
					       "X-Frame-Options: DENY", "Cache-Control: no-cache",
					       NULL };

	for (size_t i = 0; i < ELEMENTSOF(files); i++)
		if (strcmp(files[i].path, http_path(r)) == 0) {
			http_reply(r, 200, files[i].type, files[i].begin,
				   (size_t)(files[i].end - files[i].begin), headers);
			return;
		}
	http_problem(r, 404, "no such page; the dashboard is at /");
}
