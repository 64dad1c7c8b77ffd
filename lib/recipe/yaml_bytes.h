/* What one pass over the bytes of a document shows, before its parser sees them. Private to
 * yaml.c. */
#pragma once
#include "lib/recipe/yaml.h"

/* An error at the first byte that is not UTF-8 text. */
void yaml_report_byte(const char *text, size_t n, const char *what, struct recipe_errors *errors);
/* libfyaml 0.7.12 is quadratic in the length of a directive line, in blanks and empty lines in a
 * row (60 kB: 8 s), in escapes of a tag, and in brackets that are not closed, and crashes at "?
 * a:\t|". Nobody writes such a file, so it is refused by one pass over the bytes. */
bool yaml_refuse_costly(const char *text, size_t n, struct recipe_errors *errors);
/* 1-based number of the first line indented with a tab, 0 if none: libfyaml reports such a line
 * somewhere before it. */
int64_t yaml_tab_line(const char *text, size_t n);
