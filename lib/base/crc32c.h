/* CRC32C (Castagnoli), as in RFC 3720 and as storage systems have it. By the CPU's instruction
 * where there is one, else by tables. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 at the beginning) with n bytes. */
uint32_t mo_crc32c(uint32_t crc, const void *data, size_t n);
/* The same without the instruction, for tests and other machines. */
uint32_t mo_crc32c_portable(uint32_t crc, const void *data, size_t n);
