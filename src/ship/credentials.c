/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/credentials.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "ship/cloud.h"
#include "ship/process.h"
#include "ship/profile.h"
#include "ship/url.h"
#include "ship/xml.h"

#define SOON_NS (300 * UINT64_C(1000000000)) /* they are looked for again so long before they end */

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int copy(char *to, size_t bytes, const char *text)
{
	return text && (size_t)snprintf(to, bytes, "%s", text) < bytes;
}

static uint64_t parse_time(const char *text)
{
	struct tm tm = {0};

	return text && strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? (uint64_t)timegm(&tm) * 1000000000u : 0;
}

static int fill(struct weft__credentials *c, const char *key_id, const char *secret, const char *token,
		const char *until)
{
	if (!copy(c->key_id, sizeof(c->key_id), key_id) || !copy(c->secret, sizeof(c->secret), secret) ||
	    !copy(c->token, sizeof(c->token), token ? token : ""))
		return -EIO;
	c->until_real_ns = parse_time(until);
	return 0;
}

int weft__credentials_json(struct weft__credentials *c, const char *text, struct weft_error *err)
{
	json_t *root = json_loads(text, 0, NULL);
	const char *token = json_string_value(json_object_get(root, "Token"));
	int r = fill(c, json_string_value(json_object_get(root, "AccessKeyId")),
		     json_string_value(json_object_get(root, "SecretAccessKey")),
		     token ? token : json_string_value(json_object_get(root, "SessionToken")),
		     json_string_value(json_object_get(root, "Expiration")));

	json_decref(root);
	return r ? weft__fail(err, r, "the reply has no credentials") : 0;
}

static int from_environment(struct weft__http *http, struct weft__credentials *c, struct weft_error *err)
{
	(void)http;
	(void)err;
	if (!variable("AWS_ACCESS_KEY_ID"))
		return 1;
	c->from = "environment";
	return fill(c, variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN"),
		    NULL);
}

static const char *home_file(const char *from, const char *name, char *path)
{
	const char *home = variable("HOME");

	if (variable(from))
		return variable(from);
	snprintf(path, PATH_MAX, "%s/.aws/%s", home ? home : "", name);
	return path;
}

static void config_section(char *to, size_t bytes)
{
	const char *profile = variable("AWS_PROFILE");

	snprintf(to, bytes, "%s%s", profile && strcmp(profile, "default") != 0 ? "profile " : "",
		 profile ? profile : "default");
}

static int from_file(const char *path, const char *section, struct weft__credentials *c)
{
	if (!weft__profile_get(path, section, "aws_access_key_id", c->key_id, sizeof(c->key_id)) ||
	    !weft__profile_get(path, section, "aws_secret_access_key", c->secret, sizeof(c->secret)))
		return 1;
	if (!weft__profile_get(path, section, "aws_session_token", c->token, sizeof(c->token)))
		c->token[0] = 0;
	c->until_real_ns = 0;
	c->from = "profile files";
	return 0;
}

/* The program that a profile names prints credentials. */
static int from_program(struct weft__http *http, const char *command, struct weft__credentials *c,
			struct weft_error *err)
{
	char *text = weft__alloc(PROCESS_MOST);
	struct weft_error why = {0};
	int r = text ? weft__process_read(http, command, text, PROCESS_MOST, &why) : -ENOMEM;

	if (!r)
		r = weft__credentials_json(c, text, &why);
	if (text)
		explicit_bzero(text, PROCESS_MOST);
	weft__free(text);
	c->from = "credential_process";
	if (r == -ECANCELED)
		return weft__fail(err, r, "stopped");
	return r ? weft__fail(err, -EACCES, "credential_process of the profile: %.200s", why.msg) : 0;
}

/* What a profile may ask for that is not done here. */
static int refuse_profile(const char *path, const char *section, struct weft_error *err)
{
	static const char *const sso[] = {"sso_session", "sso_start_url", "sso_account_id"};
	char value[300];
	size_t i;

	for (i = 0; i < sizeof(sso) / sizeof(sso[0]); i++)
		if (weft__profile_get(path, section, sso[i], value, sizeof(value)))
			return weft__fail(
				err, -EACCES,
				"[%.100s] signs in by SSO, which weft does not do: give it credential_process = "
				"aws configure export-credentials --profile NAME",
				section);
	if (weft__profile_get(path, section, "source_profile", value, sizeof(value)))
		return weft__fail(err, -EACCES,
				  "[%.100s] takes the role of another profile, which weft does not do: give it "
				  "credential_process = aws configure export-credentials --profile NAME",
				  section);
	return 1;
}

static int from_profile(struct weft__http *http, struct weft__credentials *c, struct weft_error *err)
{
	const char *profile = variable("AWS_PROFILE") ? variable("AWS_PROFILE") : "default", *paths[2], *sections[2];
	char path[2][PATH_MAX], section[128], command[1024];
	int i, r = 1;

	config_section(section, sizeof(section));
	paths[0] = home_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", path[0]);
	paths[1] = home_file("AWS_CONFIG_FILE", "config", path[1]);
	sections[0] = profile;
	sections[1] = section;
	for (i = 0; i < 2 && r; i++)
		r = from_file(paths[i], sections[i], c);
	for (i = 0; i < 2 && r > 0; i++)
		if (weft__profile_get(paths[i], sections[i], "credential_process", command, sizeof(command)))
			return from_program(http, command, c, err);
	for (i = 0; i < 2 && r > 0; i++)
		r = refuse_profile(paths[i], sections[i], err);
	return r;
}

void weft__credentials_region(char *to, size_t bytes)
{
	const char *region = variable("AWS_REGION") ? variable("AWS_REGION") : variable("AWS_DEFAULT_REGION");
	char path[PATH_MAX], section[128];

	to[0] = 0;
	config_section(section, sizeof(section));
	if (region)
		snprintf(to, bytes, "%s", region);
	else if (!weft__profile_get(home_file("AWS_CONFIG_FILE", "config", path), section, "region", to, bytes))
		to[0] = 0;
}

static void put_pair(struct weft__buf *to, const char *key, const char *value)
{
	if (to->n)
		weft__buf_u8(to, '&');
	weft__buf_put(to, key, strlen(key));
	weft__buf_u8(to, '=');
	weft__url_encode(to, value, 0);
}

static int take_sts(struct weft__credentials *c, const struct weft__http_reply *reply, struct weft_error *err)
{
	const char *body = (const char *)reply->body.bytes;
	char until[64] = "";

	if (reply->status != 200 || !weft__xml_text(body, NULL, "AccessKeyId", c->key_id, sizeof(c->key_id)) ||
	    !weft__xml_text(body, NULL, "SecretAccessKey", c->secret, sizeof(c->secret)) ||
	    !weft__xml_text(body, NULL, "SessionToken", c->token, sizeof(c->token)))
		return weft__fail(err, -EACCES, "STS refuses the web identity: status %ld", reply->status);
	weft__xml_text(body, NULL, "Expiration", until, sizeof(until));
	c->until_real_ns = parse_time(until);
	c->from = "web identity";
	return 0;
}

static int from_web_identity(struct weft__http *http, struct weft__credentials *c, struct weft_error *err)
{
	const char *file = variable("AWS_WEB_IDENTITY_TOKEN_FILE"), *role = variable("AWS_ROLE_ARN");
	const char *session = variable("AWS_ROLE_SESSION_NAME"), *endpoint = variable("AWS_ENDPOINT_URL_STS");
	struct weft__http_request request = {
		.method = "POST",
		.headers = {"Content-Type: application/x-www-form-urlencoded"},
		.n_headers = 1,
	};
	struct weft__http_reply reply = {0};
	struct weft__buf body = {0};
	char token[8192], url[300], region[64];
	int r;

	if (!file || !role)
		return 1;
	if (!weft__small_file(file, token, sizeof(token)))
		return weft__fail(err, -ENOENT, "%s (AWS_WEB_IDENTITY_TOKEN_FILE) cannot be read", file);
	weft__credentials_region(region, sizeof(region));
	snprintf(url, sizeof(url), "https://sts.%s.amazonaws.com/", region[0] ? region : "us-east-1");
	put_pair(&body, "Action", "AssumeRoleWithWebIdentity");
	put_pair(&body, "Version", "2011-06-15");
	put_pair(&body, "RoleArn", role);
	put_pair(&body, "RoleSessionName", session ? session : "weft");
	put_pair(&body, "WebIdentityToken", token);
	explicit_bzero(token, sizeof(token));
	request.url = endpoint ? endpoint : url;
	request.body = body.bytes;
	request.body_bytes = body.n;
	r = body.oom ? weft__fail(err, -ENOMEM, "out of memory") : weft__http_do(http, &request, &reply, err);
	weft__buf_free(&body);
	if (r)
		return r;
	r = take_sts(c, &reply, err);
	weft__http_reply_fini(&reply);
	return r;
}

/* Hosts that a token may be sent to without TLS: this machine, and the services of ECS and EKS. */
static int is_local(const char *url)
{
	static const char *const hosts[] = {"http://localhost",     "http://127.0.0.1",      "http://[::1]",
					    "http://169.254.170.2", "http://169.254.170.23", "http://[fd00:ec2::23]"};
	size_t i;

	for (i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (!strncmp(url, hosts[i], strlen(hosts[i])) && strchr("/:", url[strlen(hosts[i])]))
			return 1;
	return !strncmp(url, "https://", 8);
}

static int from_container(struct weft__http *http, struct weft__credentials *c, struct weft_error *err)
{
	const char *relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	const char *token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	const char *file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	char url[600], header[4200], from_token_file[4096];
	struct weft__buf body = {0};
	int r;

	if (!relative && !full)
		return 1;
	snprintf(url, sizeof(url), "%s%s", relative ? "http://169.254.170.2" : "", relative ? relative : full);
	if (!is_local(url))
		return weft__fail(err, -EPERM, "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor local");
	if (file && weft__small_file(file, from_token_file, sizeof(from_token_file)))
		token = from_token_file;
	snprintf(header, sizeof(header), "Authorization: %s", token ? token : "");
	r = weft__cloud_get(http, url, token ? header : NULL, &body, err);
	if (!r)
		r = weft__credentials_json(c, (const char *)body.bytes, err);
	weft__buf_free(&body);
	c->from = "container";
	return r;
}

static int from_imds(struct weft__http *http, struct weft__credentials *c, struct weft_error *err)
{
	struct weft__buf role = {0}, body = {0};
	char path[300];
	int r = weft__cloud_imds(http, "latest/meta-data/iam/security-credentials/", &role, err);

	if (r)
		return r == -ENODEV ? 1 : r;
	snprintf(path, sizeof(path), "latest/meta-data/iam/security-credentials/%.*s",
		 (int)strcspn((char *)role.bytes, "\r\n"), (char *)role.bytes);
	weft__buf_free(&role);
	r = weft__cloud_imds(http, path, &body, err);
	if (!r)
		r = weft__credentials_json(c, (const char *)body.bytes, err);
	weft__buf_free(&body);
	c->from = "EC2 instance role";
	return r;
}

int weft__credentials_get(struct weft__http *http, struct weft__credentials *c, struct weft_error *err)
{
	static int (*const chain[])(struct weft__http *, struct weft__credentials *, struct weft_error *) = {
		from_environment, from_web_identity, from_profile, from_container, from_imds};
	size_t i;
	int r = 1;

	if (c->from && (!c->until_real_ns || weft__clock_real() + SOON_NS < c->until_real_ns))
		return 0;
	weft__credentials_drop(c);
	for (i = 0; i < sizeof(chain) / sizeof(chain[0]) && r > 0; i++)
		r = chain[i](http, c, err);
	if (r)
		weft__credentials_drop(c);
	if (r > 0)
		return weft__fail(err, -EACCES,
				  "no credentials of AWS: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, write "
				  "~/.aws/credentials, or give the machine or container a role");
	return r;
}

void weft__credentials_drop(struct weft__credentials *c)
{
	explicit_bzero(c, sizeof(*c));
}
