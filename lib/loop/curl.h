/* libcurl, loaded when the first request over TCP is made: with the thirty libraries behind it
 * (TLS, LDAP, Kerberos ...) it takes 3 ms to load, more than a whole `moectl submit` over the UNIX
 * socket. Private to lib/loop. */
#pragma once
#define CURL_DISABLE_TYPECHECK /* its macros would hide the functions */
#include <curl/curl.h>
#include "lib/base/error.h"
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

/* clang-format off */
#define CURL_CALLS(X) \
	X(easy_init) X(easy_setopt) X(easy_getinfo) X(easy_perform) X(easy_strerror) \
	X(easy_cleanup) X(easy_send) X(easy_recv) X(slist_append) X(slist_free_all) \
	X(global_init) X(multi_init) X(multi_setopt) X(multi_assign) X(multi_add_handle) \
	X(multi_remove_handle) X(multi_socket_action) X(multi_info_read) X(multi_cleanup)
/* clang-format on */
#define CURL_MEMBER(name) __typeof__(curl_##name) *name;
struct curl_calls {
	CURL_CALLS(CURL_MEMBER)
};
extern const struct curl_calls *curl; /* valid once curl_load() has returned 0 */
/* 0, or -ENOPKG with the reason: libcurl is not installed, or not one that has all of these. */
int curl_load(struct mo_error *err);
