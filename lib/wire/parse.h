/* JSON text -> tree of json-c, which is less strict than it says. */
#pragma once
#include <json-c/json.h>
#include "lib/base/error.h"

/* of a text that is parsed: whoever writes one that is to be read again stays below */
#define WIRE_BYTES_MAX (1024U * 1024 * 1024)
/* Checked parse of any JSON text: depth, size, UTF-8, trailing bytes, duplicate keys. err tells
 * line and column too. */
int wire_parse(const char *text, size_t n, struct json_object **ret, struct mo_error *err);
/* Length of the number of RFC 8259 at text, 0 = none. */
size_t wire_number(const char *text, size_t n);
