/* The dashboard: a fixed list of files, part of the program so that none can be missing. Names
 * outside the list do not exist. The page holds no data; everything comes from /v1. */
#include "daemon/web.h"

#include <string.h>

static const char csp[] = "Content-Security-Policy: default-src 'none'; script-src 'self'; "
			  "style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action "
			  "'self'; base-uri 'none'; frame-ancestors 'none'";

/* The bytes of daemon/web/NAME as they are, behind a comment that holds the licence where there
 * is one; the Makefile knows that this file depends on them. */
#define EMBED_AFTER(before, symbol, name) \
	extern const char symbol##_begin[], symbol##_end[]; \
	__asm__(".pushsection .rodata\n" #symbol "_begin: " before ".incbin \"daemon/web/" name \
		"\"\n" #symbol "_end: .byte 0\n.popsection\n")
#define EMBED(symbol, name) EMBED_AFTER("", symbol, name)
#define LICENCE ".ascii \"/*\\n\"\n.incbin \"daemon/web/uPlot.LICENSE\"\n.ascii \"*/\\n\"\n"

EMBED(web_index_html, "index.html");
EMBED(web_draw_js, "draw.js");
EMBED(web_app_js, "app.js");
EMBED(web_style_css, "style.css");
EMBED(web_favicon_svg, "favicon.svg");
EMBED_AFTER(LICENCE, web_uplot_js, "uPlot.iife.min.js");
EMBED_AFTER(LICENCE, web_uplot_css, "uPlot.min.css");

static const struct {
	const char *path, *type, *begin, *end;
} files[] = {
	{ "/", "text/html; charset=utf-8", web_index_html_begin, web_index_html_end },
	{ "/draw.js", "text/javascript; charset=utf-8", web_draw_js_begin, web_draw_js_end },
	{ "/app.js", "text/javascript; charset=utf-8", web_app_js_begin, web_app_js_end },
	{ "/style.css", "text/css; charset=utf-8", web_style_css_begin, web_style_css_end },
	{ "/favicon.svg", "image/svg+xml", web_favicon_svg_begin, web_favicon_svg_end },
	{ "/uPlot.iife.min.js", "text/javascript; charset=utf-8", web_uplot_js_begin,
	  web_uplot_js_end },
	{ "/uPlot.min.css", "text/css; charset=utf-8", web_uplot_css_begin, web_uplot_css_end },
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
