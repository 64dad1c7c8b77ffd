/* Readings of a probe by key: adding them while a device is read, finding them while it is
 * judged. Pure. */
#pragma once
#include "lib/base/buf.h"
#include "lib/model/health.h"

/* bytes of a text; longer ones are cut, and bytes that cannot be shown become '?' */
#define READING_TEXT_MAX 1000

/* MO_NONE_F adds nothing; nor does anything once the probe holds MO_READINGS_MAX readings. */
void reading_add(struct probe *p, const char *key, double value);
/* MO_NONE adds nothing */
void reading_add_int(struct probe *p, const char *key, int64_t value);
/* NULL and "" add nothing */
void reading_add_text(struct probe *p, const char *key, const char *text);
/* nothing when it is not there */
void reading_drop(struct probe *p, const char *key);
const struct reading *reading_find(const struct probe *p, const char *key); /* NULL if none */
/* MO_NONE_F when it is missing or a text */
double reading_value(const struct probe *p, const char *key);
/* NULL when it is missing or a number */
const char *reading_text(const struct probe *p, const char *key);
/* Texts are cleaned like those of readings. One more thing that could not be read: the probe's
 * `problem` is a list separated by "; ", cut off with "..." above 3000 bytes. */
void probe_problem(struct probe *p, const char *fmt, ...) _printf_(2, 3);
