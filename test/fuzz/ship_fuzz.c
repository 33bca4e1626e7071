/* SPDX-License-Identifier: Apache-2.0 */
/* What shipping reads of others: URLs, lists and errors of S3, profile files, documents of metadata services, the
 * configuration file. The first byte chooses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/options.h"
#include "ship/credentials.h"
#include "ship/host.h"
#include "ship/profile.h"
#include "ship/s3.h"
#include "ship/url.h"

static int take_object(const struct weft__s3_object *object, void *data)
{
	*(size_t *)data += strlen(object->key) + strlen(object->time);
	return 0;
}

static void take_fact(const char *key, const char *value, void *data)
{
	*(size_t *)data += strlen(key) + strlen(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char *text = malloc(n + 2), value[64], token[128], shown[100], tag[9];
	struct weft__credentials credentials;
	struct weft__url url;
	size_t sum = 0;
	int stop = 0;

	if (!n || !text) {
		free(text);
		return 0;
	}
	memcpy(text, bytes + 1, n - 1);
	text[n - 1] = 0;
	text[n] = 1; /* the end of a configuration */
	switch (bytes[0] % 6) {
	case 0:
		weft__url_show(text, shown, sizeof(shown));
		weft__url_tag(text, tag);
		weft__url_parse(&url, text, NULL);
		break;
	case 1:
		weft__s3_page(text, token, sizeof(token), take_object, &sum, &stop);
		break;
	case 2:
		weft__profile_text(text, "team", "key", value, sizeof(value));
		break;
	case 3:
		weft__credentials_json(&credentials, text, NULL);
		break;
	case 4:
		weft__host_ecs(text, take_fact, &sum);
		weft__host_ec2(text, take_fact, &sum);
		break;
	default:
		weft__config_get(text, "WEFT_SHIP_TO");
	}
	free(text);
	return 0;
}
