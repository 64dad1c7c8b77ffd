/* Control characters of texts that somebody else wrote, as visible text ("\x1b"): output of
 * ranks, reasons, names and paths must not steer the reader's terminal. Every document that a
 * verb shows comes through client_send() and is made visible there; what comes another way says
 * so itself. `--raw` leaves all of it out. */
#pragma once
#include <json-c/json.h>
#include "lib/base/buf.h"

/* Appends s[0..n): newlines and tabs stay, and carriage returns where the text is the output of
 * a rank; everything else below 0x20, 0x7f, and 0x80 to 0x9f as bytes or as UTF-8 does not, nor
 * what ends a line or turns the order of letters around in Unicode: nobody would see that the words
 * of a line stand where they are not. */
enum visible_kind { VISIBLE_TEXT, VISIBLE_OUTPUT };
void visible_add(struct mo_buf *b, const char *s, size_t n, enum visible_kind kind);
char *visible(const char *s); /* caller frees */
/* All strings of a document, member names too. */
void visible_json(struct json_object *o);
/* A JSON text as it is, but for such characters from 0x7f on in its strings, which need no escape
 * there: they get one. With a newline, to stdout. No other file prints JSON (tests/lint/house). */
void print_json(const char *text, size_t n);
void print_json_part(const char *text, size_t n); /* without the newline */
void print_json_doc(struct json_object *doc);
