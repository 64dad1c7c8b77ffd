/* Reading files of the machine. Texts have only printable ASCII in them, whatever the file has. */
#pragma once
#include "lib/base/buf.h"
#include "lib/topo/finds.h"

#define FILE_MAX (64 * 1024)
#define ENTRIES_MAX 4096

/* Every file is read through here: says first which one it is, and does not touch what is left
 * out (-ECANCELED). */
int read_text(const struct finds *f, const char *path, struct mo_buf *b);
/* the same for what is not read but opened; false: left out */
bool reach(const struct finds *f, const char *path);
/* first line without blanks at its end; NULL and -errno when unreadable; ret_error may be NULL */
char *file_line(const struct finds *f, const char *path, int *ret_error);
int64_t file_int(const struct finds *f, const char *path, int64_t otherwise);
int64_t file_hex(const struct finds *f, const char *path); /* "0x1002"; -1 unknown */
/* A file of a device: missing or left out is NULL, unreadable is NULL and a finding. */
char *device_line(struct finds *f, const char *object, const char *dir, const char *file);
/* of "key value" or "Key:  value" lines; caller frees, NULL absent */
char *props_value(const char *text, const char *key);
/* MO_NONE: absent, malformed, beyond 63 bits, or all ones in 32 bits */
int64_t props_int(const char *text, const char *key);
/* 0: absent, malformed or all ones (which ret_ones tells) */
uint64_t props_u64(const char *text, const char *key, bool *ret_ones);
/* numbered entries, ascending */
int64_t *dir_numbers(const char *dir, size_t *ret_n);
char **dir_names(const char *dir, size_t *ret_n); /* sorted */
void names_free(char **names, size_t n);
/* "pci0000:04/0000:04:01.1/..."; NULL when it has none */
char *pci_path(const char *link);
/* NUMA node of a PCI device; MO_NONE unknown */
int64_t pci_numa(struct finds *f, const char *object, const char *dir);
