/* See yaml_bytes.h. */
#include "lib/recipe/yaml_bytes.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/model/limits.h"

/* An error at the first byte that is not UTF-8 text. */
static void report_byte(const char *text, size_t n, const char *what, struct recipe_errors *errors)
{
	int64_t line = 1, column = 1;
	size_t i = 0;

	while (i < n) {
		size_t len = 1;

		while (len < 4 && i + len < n && ((unsigned char)text[i + len] & 0xc0) == 0x80)
			len++;
		if (text[i] == 0 || !mo_utf8_valid(text + i, len))
			break;
		if (text[i] == '\n') {
			line++;
			column = 0;
		}
		column++;
		i += len;
	}
	errors_place(errors, line, column, "save the file as UTF-8",
		     "byte 0x%02x is not UTF-8 text: a %s is UTF-8",
		     i < n ? (unsigned)(unsigned char)text[i] : 0, what);
}

#define BLANKS_MAX 512 /* in a row, ends of lines too */
/* open, wherever they stand: a script may have some that are no YAML */
#define BRACKETS_MAX 1024

/* in one word that begins with !: a string may have some, a tag needs none */
#define ESCAPES_MAX 32

/* first: nothing but blanks in the line; escapes: of the tag, or what may be one */
struct scan {
	size_t blanks, open, escapes;
	bool first, comment, tag;
};

/* What is wrong at text[i], which s describes; NULL = nothing. */
static const char *costly(const struct scan *s, const char *text, size_t n, size_t i)
{
	bool word_before = i > 0 && !strchr(" \t\r\n[{,", text[i - 1]);
	bool word_behind = i + 1 < n && !strchr(" \t\r\n", text[i + 1]);

	if (text[i] == '%' && (i == 0 || strchr("\r\n", text[i - 1])))
		return "a directive (a line that begins with %) is not used here: remove it";
	if (text[i] == '?' && !s->comment && !word_before && !word_behind)
		return "a '?' by itself begins a key that is no plain word: put it beside a word";
	if (s->escapes > ESCAPES_MAX)
		return "tags (!name) are not used here: remove it";
	if (s->blanks > BLANKS_MAX)
		return "more than 512 blanks and empty lines in a row: remove them";
	return s->open > BRACKETS_MAX ? "more than 1024 brackets are open: close them" : NULL;
}

/* libfyaml 0.7.12 is quadratic in the length of a directive line, in blanks and empty lines in a
 * row (60 kB: 8 s), in escapes of a tag, and in brackets that are not closed, and crashes at "?
 * a:\t|". Nobody writes such a file, so it is refused by one pass over the bytes. */
static bool refuse_costly(const char *text, size_t n, struct recipe_errors *errors)
{
	size_t start = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	struct scan s = { .first = true };
	int64_t line = 1, column = 1;
	const char *why;

	text += start;
	n -= start;
	for (size_t i = 0; i < n; i++) {
		char c = text[i];
		bool blank = strchr(" \t\r\n", c);

		s.blanks = blank ? s.blanks + 1 : 0;
		s.open += c == '[' || c == '{';
		s.open -= s.open && (c == ']' || c == '}');
		s.comment = s.comment || (s.first && c == '#');
		s.first = s.first && blank;
		s.tag = !blank && (s.tag || (c == '!' &&
					     (i == 0 || strchr(" \t\r\n[{,:\"']}", text[i - 1]))));
		s.escapes = s.tag ? s.escapes + (c == '%') : 0;
		why = costly(&s, text, n, i);
		if (why) {
			errors_place(errors, line, column, NULL, "%s", why);
			return true;
		}
		if (c == '\n' || c == '\r') {
			s.first = true;
			s.comment = false;
		}
		line += c == '\n';
		column = c == '\n' ? 1 : column + ((c & 0xc0) != 0x80);
	}
	return false;
}

bool yaml_bytes_refused(const char *text, size_t n, const char *what, struct recipe_errors *errors)
{
	if (n > MO_RECIPE_BYTES_MAX) {
		errors_place(errors, 1, 1, NULL, "the %s is larger than %d bytes", what,
			     MO_RECIPE_BYTES_MAX);
		return true;
	}
	if (memchr(text, 0, n) || !mo_utf8_valid(text, n)) {
		report_byte(text, n, what, errors);
		return true;
	}
	return refuse_costly(text, n, errors);
}

int64_t yaml_tab_line(const char *text, size_t n)
{
	int64_t line = 1;
	bool indent = true;

	for (size_t i = 0; i < n; i++) {
		if (indent && text[i] == '\t')
			return line;
		indent = text[i] == '\n' || (indent && text[i] == ' ');
		line += text[i] == '\n';
	}
	return 0;
}
