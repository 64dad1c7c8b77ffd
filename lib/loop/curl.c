/* See curl.h. */
#include "lib/loop/curl.h"
#include <dlfcn.h>
#include <errno.h>

/* OpenSSL's and GnuTLS' builds have other names since Debian 13; 4 is the interface of them all */
#define CURL_LIBRARY "libcurl.so.4"

const struct curl_calls *curl;

static int load(struct curl_calls *calls, struct mo_error *err)
{
	void *library = dlopen(CURL_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!library)
		return mo_error_set(err, -ENOPKG, "%s: %s; install libcurl4", CURL_LIBRARY,
				    dlerror());
#define CURL_SYMBOL(name) \
	calls->name = (__typeof__(curl_##name) *)dlsym(library, "curl_" #name); \
	if (!calls->name) \
		return mo_error_set(err, -ENOPKG, \
				    "%s: curl_" #name " is missing; install libcurl4", \
				    CURL_LIBRARY);
	CURL_CALLS(CURL_SYMBOL)
	return calls->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
		       ? 0
		       : mo_error_set(err, -ENOPKG, "%s cannot be initialised", CURL_LIBRARY);
}

int curl_load(struct mo_error *err)
{
	static struct curl_calls calls;

	if (curl)
		return 0;
	int r = load(&calls, err);
	if (r == 0)
		curl = &calls;
	return r;
}
