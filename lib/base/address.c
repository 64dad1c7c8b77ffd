/* See address.h. */
#include "lib/base/address.h"
#include <arpa/inet.h>
#include <string.h>
#include <strings.h>
#include "lib/base/util.h"

bool mo_address_loopback(const char *address)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, address, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, address, &v6) != 1)
		return false;
	return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

bool mo_url_clear_text(const char *url)
{
	static const char scheme[] = "http://";
	char host[256] = "";

	if (strncasecmp(url, scheme, strlen(scheme)) != 0)
		return false;
	url += strlen(scheme);
	size_t whole = strcspn(url, "/?#");
	bool bracket = *url == '[';
	size_t n = bracket ? strcspn(url + 1, "]") : strcspn(url, ":/?#");

	/* "user@host" would make the host another one than it seems */
	if (memchr(url, '@', whole) || n >= sizeof(host))
		return true;
	memcpy(host, url + bracket, n);
	return strcasecmp(host, "localhost") != 0 && !mo_address_loopback(host);
}
