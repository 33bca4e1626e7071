#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev
# timeout: 900
"""Real parts: a store that verifies signatures (versitygw), the metadata service of EC2 (amazon-ec2-metadata-mock),
nginx as a proxy that fails, and strict stubs of ECS' task metadata and of Datadog's intake, which cannot be had. What
is built from Go modules is skipped, with the reason, where that is impossible."""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "library"), os.path.join(os.path.dirname(HERE), "servers")]
import build  # noqa: E402
import profiles  # noqa: E402
from shipping import (PROGRAM, WEFT, Skipped, arrived, check, end, environment, main, new_dir, record,  # noqa: E402
                      run, sealed, wait_for)
from ship_server import Store  # noqa: E402

build.limit_s = 400
ROLE_KEY, ROLE_SECRET = "rolekey", "rolesecret"
ROLE = {"Code": "Success", "LastUpdated": "2026-01-01T00:00:00Z", "Type": "AWS-HMAC", "AccessKeyId": ROLE_KEY,
        "SecretAccessKey": ROLE_SECRET, "Token": "", "Expiration": "2099-01-01T00:00:00Z"}  # the gateway takes no token
TASK = {  # as of the documentation of ECS, version 4
    "Cluster": "arn:aws:ecs:us-west-2:111122223333:cluster/default",
    "TaskARN": "arn:aws:ecs:us-west-2:111122223333:task/default/158d1c8083dd49d6b527399fd6414f5c",
    "Family": "curltest", "ServiceName": "MyService", "Revision": "26", "DesiredStatus": "RUNNING",
    "KnownStatus": "RUNNING", "PullStartedAt": "2020-10-02T00:43:06.202617438Z", "AvailabilityZone": "us-west-2d",
    "VPCID": "vpc-1234567890abcdef0", "LaunchType": "EC2", "Limits": {"CPU": 0.25, "Memory": 512}, "Containers": []}


def server(name):
    try:
        return build.server(name)
    except build.Unavailable as why:
        raise Skipped("%s: %s" % (name, why)) from why


def s3_gateway():
    """A gateway whose root has the keys of the instance's role. Its port and the folder with its buckets."""
    program, top, port = server("versitygw"), new_dir(), build.free_port()
    os.makedirs(top + "/data/profiles")
    build.start(port, program, "--port", "127.0.0.1:%d" % port, "posix", top + "/data", cwd=top,
                env={"ROOT_ACCESS_KEY": ROLE_KEY, "ROOT_SECRET_KEY": ROLE_SECRET})
    return port, top + "/data/profiles"


def metadata():
    program, top, port = server("metadata-mock"), new_dir(), build.free_port()
    with open(top + "/config.json", "w") as file:
        json.dump({"metadata": {"values": {"iam-security-credentials": ROLE}}}, file)
    build.start(port, program, "-n", "127.0.0.1", "-p", str(port), "--imdsv2", "-c", top + "/config.json", cwd=top,
                env={"HOME": top})
    return "http://127.0.0.1:%d" % port


def stored(folder):
    return {name: os.path.join(path, name) for path, _, names in os.walk(folder) for name in names
            if name.endswith(".weft")}


def all_stored(folder, directory):
    there = stored(folder)
    check(sorted(there) == sealed(directory), sorted(there), sealed(directory))
    for name, path in there.items():
        with open(path, "rb") as one, open(os.path.join(directory, name), "rb") as other:
            check(one.read() == other.read(), name, "has other bytes")


def a_gateway_that_verifies_signatures_takes_all():
    port, folder = s3_gateway()
    directory = new_dir()
    record(directory, 3)
    url = "s3://profiles/pre fix/a=b+c?endpoint=http://127.0.0.1:%d" % port
    keys = {"AWS_ACCESS_KEY_ID": ROLE_KEY, "AWS_SECRET_ACCESS_KEY": ROLE_SECRET}
    run(WEFT, "push", "-q", "--to", url, directory, env=environment(**keys))
    all_stored(folder + "/pre fix/a=b+c", directory)
    listed = json.loads(run(WEFT, "ls", "--json", url, env=environment(**keys)))["objects"]
    check(sorted(one["url"].rsplit("/", 1)[1] for one in listed) == sealed(directory), listed)
    out = run(WEFT, "push", "--wait", "0s", "--to", url + "&x=1", directory, code=1,
              env=environment(AWS_ACCESS_KEY_ID=ROLE_KEY, AWS_SECRET_ACCESS_KEY="wrong"))
    check("SignatureDoesNotMatch" in out, out)
    build.stop_all()


def an_instance_of_ec2_sends_with_the_keys_of_its_role():
    """Token, role, keys and identity document of IMDSv2; no key is configured anywhere."""
    port, folder = s3_gateway()
    service, directory = metadata(), new_dir()
    child = subprocess.Popen(
        [PROGRAM, "1", "wait"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=environment(WEFT_DIR=directory, WEFT_SHIP_TO="s3://profiles/ec2?endpoint=http://127.0.0.1:%d" % port,
                        WEFT_SEGMENT_SECONDS="1", AWS_EC2_METADATA_DISABLED="false",
                        AWS_EC2_METADATA_SERVICE_ENDPOINT=service))
    wait_for(lambda: len(stored(folder)) >= 4)
    end(child)
    newest = sorted(stored(folder).items())[-1][1]
    text = run(WEFT, "inspect", "--json", newest)
    for key, value in (("host.id", "i-1234567890abcdef0"), ("cloud.region", "us-east-1"), ("host.type", "m4.xlarge"),
                       ("cloud.account.id", "0123456789"), ("cloud.availability_zone", "us-east-1f")):
        check('"%s"' % key in text and '"%s"' % value in text, key, value, text[:2000])
    build.stop_all()


def a_task_of_ecs_goes_before_the_instance():
    store, directory = Store(), new_dir()
    service = metadata()
    store.replies = {("GET", "/v4/0123-abc/task"): (200, [("Content-Type", "application/json")],
                                                    json.dumps(TASK).encode())}
    child = subprocess.Popen(
        [PROGRAM, "0", "wait"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=environment(WEFT_DIR=directory, WEFT_SHIP_TO=store.url + "/up", WEFT_SEGMENT_SECONDS="1",
                        AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT=service,
                        ECS_CONTAINER_METADATA_URI_V4=store.url + "/v4/0123-abc"))
    wait_for(lambda: any("/v4/" in one[2] for one in store.requests))
    wait_for(lambda: len(sealed(directory)) >= 3)
    end(child)
    text = run(WEFT, "inspect", "--json", os.path.join(directory, sealed(directory)[-1]))
    for value in (TASK["TaskARN"], TASK["Cluster"], "curltest", "us-west-2d", "us-west-2", "111122223333", "0.25"):
        check('"%s"' % value in text, value, text[:2000])
    check("i-1234567890abcdef0" not in text, "the instance was asked, too")
    store.close()
    build.stop_all()


NGINX = """
daemon off; pid %(top)s/pid; error_log %(top)s/error.log; worker_processes 1;
events { worker_connections 64; }
http {
    access_log %(top)s/access.log; client_body_temp_path %(top)s; proxy_temp_path %(top)s; fastcgi_temp_path %(top)s;
    uwsgi_temp_path %(top)s; scgi_temp_path %(top)s; client_max_body_size 0;
    split_clients "$request_id" $luck { 25%% 503; 15%% 502; 10%% 444; * well; }
    server {
        listen 127.0.0.1:%(port)d;
        location / {
            if ($luck = 503) { add_header Retry-After 1 always; return 503; }
            if ($luck = 502) { return 502; }
            if ($luck = 444) { return 444; }
            proxy_set_header Host $http_host; proxy_pass http://127.0.0.1:%(behind)d;
        }
    }
}
"""


def a_proxy_that_fails_half_of_the_time_loses_nothing():
    """nginx before the gateway: 503 with Retry-After, 502, and connections that end without a word."""
    nginx = shutil.which("nginx") or ("/usr/sbin/nginx" if os.path.exists("/usr/sbin/nginx") else None)
    if not nginx:
        raise Skipped("there is no nginx")
    behind, folder = s3_gateway()
    top, port, directory = new_dir(), build.free_port(), new_dir()
    with open(top + "/nginx.conf", "w") as file:
        file.write(NGINX % {"top": top, "port": port, "behind": behind})
    build.start(port, nginx, "-p", top, "-c", top + "/nginx.conf", cwd=top)
    record(directory, 5)
    run(WEFT, "push", "-q", "--wait", "90s", "--to", "s3://profiles/x?endpoint=http://127.0.0.1:%d" % port, directory,
        env=environment(AWS_ACCESS_KEY_ID=ROLE_KEY, AWS_SECRET_ACCESS_KEY=ROLE_SECRET))
    all_stored(folder, directory)
    with open(top + "/access.log") as file:
        statuses = re.findall(r'HTTP/1.1" (\d+)', file.read())
    check(statuses.count("200") == 6, "a segment was stored twice:", statuses)
    build.stop_all()


def parts_of(body, kind):
    """The parts of a multipart body, by RFC 2046 and RFC 7578, and nothing that is not there: name -> (filename, type,
    bytes), in order."""
    match = re.fullmatch(r"multipart/form-data; boundary=([0-9A-Za-z'()+_,./:=?-]{1,70})", kind)
    check(match, "Content-Type:", kind)
    line = b"--" + match[1].encode()
    check(body.startswith(line + b"\r\n") and body.endswith(b"\r\n" + line + b"--\r\n"), "the ends of the body")
    found = {}
    for part in body[len(line) + 2:-len(line) - 6].split(b"\r\n" + line + b"\r\n"):
        head, _, content = part.partition(b"\r\n\r\n")
        headers = dict(one.split(": ", 1) for one in head.decode().split("\r\n"))
        names = re.fullmatch(r'form-data; name="([^"]+)"; filename="([^"]+)"', headers.pop("Content-Disposition"))
        check(names and names[1] not in found, headers)
        found[names[1]] = (names[2], headers.pop("Content-Type", None), content)
        check(not headers, "headers of a part:", headers)
    return found


def datadogs_intake_gets_what_it_wants():
    """Strictly by what libdatadog sends: version 4, parts and names, times, tags, a profile that decodes."""
    store, directory = Store(), new_dir()
    run(WEFT, "run", "-o", directory, "--start-after", "0", "--", sys.executable, "-c",
        "import time\nend = time.time() + 0.5\nwhile time.time() < end: pass",
        env=environment(WEFT_SAMPLE_HZ="99", DD_SERVICE="shop", DD_ENV="stage", DD_VERSION="1.2", WEFT_LABELS="t=a,b"))
    run(WEFT, "push", "-q", "--wait", "0s", "--to", "datadog+http://127.0.0.1:%d" % store.port, directory)
    (_, method, path, headers), = store.requests
    check((method, path) == ("POST", "/profiling/v1/input"), method, path)
    check(headers["DD-EVP-ORIGIN"] == "weft" and headers["DD-EVP-ORIGIN-VERSION"], headers)
    check("DD-API-KEY" not in headers, "a local agent has the key itself")
    body = store.objects[path]
    check(int(headers["Content-Length"]) == len(body), headers)
    parts = parts_of(body, headers["Content-Type"])
    event = json.loads(parts["event"][2])
    check(parts["event"][:2] == ("event.json", "application/json"), parts["event"][:2])
    check(set(event) == {"attachments", "tags_profiler", "start", "end", "family", "version"}, event)
    check(event["version"] == "4" and event["family"] == "native", event)
    check(sorted(event["attachments"]) == sorted(one[0] for name, one in parts.items() if name != "event"), event)
    check(all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", event[key]) for key in ("start", "end")) and
          event["start"] < event["end"], event)
    tags = dict(tag.split(":", 1) for tag in event["tags_profiler"].split(","))
    check(tags["service"] == "shop" and tags["env"] == "stage" and tags["version"] == "1.2", tags)
    check(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", tags["runtime-id"]), tags)
    check({"host", "process_id", "language", "runtime", "profiler_version", "profile_seq"} <= set(tags), tags)
    content = next(one[2] for one in parts.values() if one[0] == "profile.pprof")
    check(content[:2] == b"\x1f\x8b" and len(gzip.decompress(content)) > 500)
    profile = profiles.pprof(content)
    check(profile["samples"], "an empty profile")
    provenance = json.loads(next(one[2] for one in parts.values() if one[0] == "code-provenance.json"))
    check(set(provenance) == {"v1"} and all({"kind", "name"} <= set(one) for one in provenance["v1"]), provenance)
    store.close()


try:
    status = main([a_gateway_that_verifies_signatures_takes_all, an_instance_of_ec2_sends_with_the_keys_of_its_role,
                   a_task_of_ecs_goes_before_the_instance, a_proxy_that_fails_half_of_the_time_loses_nothing,
                   datadogs_intake_gets_what_it_wants])
finally:
    build.stop_all()
sys.exit(status)
