#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Segments are sent, all of them, under one name each, whatever the store does and however the process ends."""
import base64
import email
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "library"))
import profiles  # noqa: E402
from shipping import (PROGRAM, TOP, WEFT, arrived, check, environment, main, new_dir, record, run,  # noqa: E402
                      sealed, wait_for)
from ship_server import KEY, SECRET, Store  # noqa: E402


def push_sends_what_is_not_there_yet():
    store, directory = Store(), new_dir()
    record(directory)
    out = run(WEFT, "push", "--to", store.url + "/up?x=1", directory)
    check(out.count(" -> ") == 4, out)
    arrived(store, directory)
    path = store.puts[0]
    check(path.startswith("/up/ship_program/20") and path.count("/") == 6, path)
    check("nothing to send" in run(WEFT, "push", "--to", store.url + "/up?x=1", directory))
    record(directory, 1)
    run(WEFT, "push", "--to", store.url + "/up?x=1", directory)
    arrived(store, directory)
    one = os.path.join(directory, sealed(directory)[0])
    run(WEFT, "push", "--to", store.url + "/other", one)
    check(len([p for p in store.puts if p.startswith("/other")]) == 1, store.puts)
    store.close()


def a_store_that_fails_gets_everything_later():
    for faults in ([500, 503], [(429, "2")], ["cut", "close"], [403], [404], ["hang"]):
        store, directory = Store(), new_dir()
        record(directory, 2)
        store.faults = list(faults)
        run(WEFT, "push", "-q", "--timeout", "1s", "--to", store.url, directory)
        arrived(store, directory)
        if faults == [(429, "2")]:
            check(store.requests[1][0] - store.requests[0][0] >= 1.9, "Retry-After was not obeyed")
        store.close()


def a_store_that_is_gone_is_a_failure():
    directory = new_dir()
    record(directory, 1)
    out = run(WEFT, "push", "--wait", "0s", "--to", "http://127.0.0.1:1/", directory, code=1)
    check("2 of the segments are not at http://127.0.0.1:1/" in out, out)
    out = run(WEFT, "push", "--wait", "0s", "--to", "http://u:%s@host.invalid/?k=%s" % (SECRET[3:], SECRET[3:]),
              directory, code=1)
    check("host.invalid" in out and SECRET[3:] not in out, out)


def a_segment_that_is_refused_does_not_hold_the_others():
    store, directory = Store(), new_dir()
    record(directory, 2)
    store.faults = [413]
    out = run(WEFT, "push", "--to", store.url, directory, code=1)
    check(len(store.objects) == 2 and "status 413" in out, out, store.puts)
    run(WEFT, "push", "--again", "--to", store.url, directory)
    arrived(store, directory)
    store.close()


def s3_requests_are_signed():
    store, directory = Store(), new_dir()
    store.verify = True
    record(directory, 1)
    url = "s3://bucket/a b/c=d?region=eu-west-3&endpoint=" + store.url
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    run(WEFT, "push", "--to", url, directory, env=environment(**keys, AWS_SESSION_TOKEN="to/ken"))
    arrived(store, directory)
    check(store.puts[0].startswith("/bucket/a b/c=d/ship_program/"), store.puts)
    check(store.requests[0][3]["x-amz-security-token"] == "to/ken", store.requests[0])
    out = run(WEFT, "push", "--wait", "0s", "--to", url + "&x=2", directory,
              env=environment(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY="other"), code=1)
    check("SignatureDoesNotMatch" in out, out)
    run(WEFT, "push", "--to", url + "&owner=123456789012&x=3", directory, env=environment(**keys))
    check(store.requests[-1][3]["x-amz-expected-bucket-owner"] == "123456789012", store.requests[-1])
    out = run(WEFT, "push", "--wait", "0s", "--to", url + "&x=4", directory, code=1)
    check("no credentials of AWS" in out, out)
    store.close()


def credentials_come_from_where_aws_puts_them():
    store, directory = Store(), new_dir()
    store.verify = True
    record(directory, 1)
    url = "s3://bucket/x?endpoint=" + store.url
    document = ('{"AccessKeyId": "%s", "SecretAccessKey": "%s", "Token": "t", "Expiration": "2099-01-01T00:00:00Z"}'
                % (KEY, SECRET)).encode()
    with open(TOP + "/profiles", "w") as file:
        file.write("[default]\naws_access_key_id = no\n[team]\naws_access_key_id = %s\n"
                   "aws_secret_access_key = %s\n" % (KEY, SECRET))
    with open(TOP + "/token", "w") as file:
        file.write("web token\n")
    store.replies = {
        ("GET", "/creds"): (200, [], document),
        ("PUT", "/latest/api/token"): (200, [], b"imds-token"),
        ("GET", "/latest/meta-data/iam/security-credentials/"): (200, [], b"the-role"),
        ("GET", "/latest/meta-data/iam/security-credentials/the-role"): (200, [], document),
        ("POST", "/sts"): (200, [], b"<R><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey>"
                           b"<SessionToken>t</SessionToken></R>" % (KEY.encode(), SECRET.encode())),
    }
    ways = (
        {"AWS_SHARED_CREDENTIALS_FILE": TOP + "/profiles", "AWS_PROFILE": "team"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": store.url + "/creds", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "tok"},
        {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": store.url},
        {"AWS_WEB_IDENTITY_TOKEN_FILE": TOP + "/token", "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
         "AWS_ENDPOINT_URL_STS": store.url + "/sts"},
    )
    for i, way in enumerate(ways):
        run(WEFT, "push", "--wait", "0s", "--to", "%s&way=%d" % (url, i), directory, env=environment(**way))
    check(len(store.puts) == 2 * len(ways) and len(store.objects) == 2, store.puts)
    tokens = [r[3].get("x-aws-ec2-metadata-token") or r[3].get("X-aws-ec2-metadata-token") for r in store.requests]
    check("imds-token" in tokens, tokens)
    store.close()


def the_recorder_sends_while_it_records():
    store, directory = Store(), new_dir()
    out = record(directory, 3, WEFT_SHIP_TO=store.url, WEFT_SHIP_WAIT_MS="30000")
    check("ok=0 targets=1 failing=0 sent=4 waiting=0 refused=0 passed=4 failed=0 why=it does not record" in out, out)
    arrived(store, directory)
    store.close()


def several_targets_do_not_hold_each_other():
    good, bad, directory, copies = Store(), Store(), new_dir(), new_dir()
    bad.always = 500
    out = record(directory, 2, WEFT_SHIP_TO="%s %s  %s" % (bad.url, good.url, copies), WEFT_SHIP_WAIT_MS="5000")
    arrived(good, directory)
    check(sealed(copies) == sealed(directory), os.listdir(copies))
    check("targets=3 failing=1 sent=6" in out and "status 500" in out, out)
    bad.always = None
    run(WEFT, "push", "-q", "--to", bad.url, directory)
    arrived(bad, directory)
    good.close()
    bad.close()


def segments_are_removed_when_all_have_them():
    first, second, directory = Store(), Store(), new_dir()
    second.always = 503
    urls = "%s %s" % (first.url, second.url)
    record(directory, 2, WEFT_SHIP_TO=urls, WEFT_SHIP_DELETE="1")
    check(len(sealed(directory)) == 3, os.listdir(directory))
    second.always = None
    record(directory, 0, WEFT_SHIP_TO=urls, WEFT_SHIP_DELETE="1", WEFT_SHIP_WAIT_MS="30000")
    check(sorted(first.objects) == sorted(second.objects) and len(first.objects) == 4, first.puts)
    check(not [name for name in os.listdir(directory) if ".weft" in name and "lock" not in name],
          os.listdir(directory))
    first.close()
    second.close()


def an_outage_delays_neither_stop_nor_exit():
    store, directory = Store(), new_dir()
    store.always = "hang"
    out = record(directory, 2, WEFT_SHIP_TO=store.url, WEFT_SHIP_WAIT_MS="300")
    check(float(out.split("stop took ")[1].split()[0]) < 2, out)
    check(float(out.split("close took ")[1].split()[0]) < 1, out)
    out = record(directory, 2, "exit", WEFT_SHIP_TO=store.url)
    check(time.monotonic() - float(out.split("exiting ")[1].split()[0]) < 2, out)
    check(len(sealed(directory)) == 6, os.listdir(directory))
    store.close()
    later = Store()  # another place, as seen from here; the next process sends all of it
    record(directory, 0, WEFT_SHIP_TO=later.url, WEFT_SHIP_WAIT_MS="30000")
    arrived(later, directory)
    later.close()


def killed_while_it_sends():
    store, directory = Store(), new_dir()
    store.always = "hang"
    env = environment(WEFT_DIR=directory, WEFT_SHIP_TO=store.url)
    child = subprocess.Popen([PROGRAM, "3", "wait"], env=env, stdout=subprocess.DEVNULL)
    wait_for(lambda: store.requests)
    child.send_signal(signal.SIGKILL)
    child.wait()
    store.always = None
    store.released.set()
    check(not store.objects, store.puts)
    run(WEFT, "push", "-q", "--to", store.url, directory)  # recovers the last segment, too
    arrived(store, directory)
    check(len(store.objects) == 4, store.puts)
    store.close()


def killed_before_it_is_noted():
    """The store has it and the process does not know: it is sent again, under the same name."""
    store, directory = Store(), new_dir()
    record(directory, 1)
    store.faults = []
    run(WEFT, "push", "-q", "--to", store.url, directory)
    marks = [name for name in os.listdir(directory) if ".ship-" in name]
    os.unlink(os.path.join(directory, marks[0]))
    with open(os.path.join(directory, marks[1]), "r+") as file:
        file.truncate(3)
    run(WEFT, "push", "-q", "--to", store.url, directory)
    arrived(store, directory, only_once=False)
    check(len(store.puts) == 4, store.puts)
    store.close()


def processes_beside_each_other_send_each_segment_once():
    store, directory = Store(), new_dir()
    env = environment(WEFT_DIR=directory, WEFT_SHIP_TO=store.url, WEFT_SHIP_WAIT_MS="500")
    children = [subprocess.Popen([PROGRAM, "5", "stop"], env=env, stdout=subprocess.DEVNULL) for _ in range(4)]
    for child in children:
        check(child.wait() == 0)
    run(WEFT, "push", "-q", "--to", store.url, directory)
    arrived(store, directory)
    check(len(store.objects) == 24, len(store.objects))
    store.close()


def planted_links_are_not_followed():
    store, directory = Store(), new_dir()
    record(directory, 0)
    victim = TOP + "/victim"
    with open(victim, "w") as file:
        file.write("precious\n")
    run(WEFT, "push", "-q", "--to", store.url, directory)
    mark = [name for name in os.listdir(directory) if ".ship-" in name][0]
    os.unlink(os.path.join(directory, mark))
    os.symlink(victim, os.path.join(directory, mark))
    os.symlink(victim, os.path.join(directory, "planted-1-2-000000.weft"))
    run(WEFT, "push", "-q", "--to", store.url, directory, code=None)
    with open(victim) as file:
        check(file.read() == "precious\n")
    check(len(set(store.puts)) == 1, store.puts)
    store.close()


def profiles_go_to_those_who_take_them():
    """Names of the requests, and that what is in them is the profile that weft export makes."""
    store, directory = Store(), new_dir()
    run(WEFT, "run", "-o", directory, "--start-after", "0", "--", sys.executable, "-c",
        "import time\nend = time.time() + 0.5\nwhile time.time() < end: pass",
        env=environment(WEFT_SAMPLE_HZ="99", WEFT_LABELS="env=test,team=a b"))
    (name,) = sealed(directory)
    run(WEFT, "export", os.path.join(directory, name), "-o", TOP + "/x.pb.gz")
    run(WEFT, "export", os.path.join(directory, name), "--otlp", "-o", TOP + "/x.otlp")
    profile, otlp = (open(TOP + "/" + file, "rb").read() for file in ("x.pb.gz", "x.otlp"))
    at = store.url.split("://")[1]
    env = environment(WEFT_SHIP_HEADERS="X-Scope-OrgID=me%20too,Authorization=Bearer%20" + SECRET[3:], DD_API_KEY="k")
    for kind in ("pyroscope", "parca", "datadog", "otlp"):
        run(WEFT, "push", "-q", "--wait", "0s", "--to", kind + "+http://" + at, directory, env=env)
    check(store.requests[0][3]["X-Scope-OrgID"] == "me too", store.requests[0][3])
    body = json.loads(store.objects["/push.v1.PusherService/Push"])
    check(same_profile(base64.b64decode(body["series"][0]["samples"][0]["rawProfile"]), profile))
    found = profiles.pprof(base64.b64decode(body["series"][0]["samples"][0]["rawProfile"]))
    names = {name for one in found["samples"] for name in one["labels"]}
    check("thread_name" in names and all(name.replace("_", "a").isalnum() for name in names), names)
    labels = {label["name"]: label["value"] for label in body["series"][0]["labels"]}
    check(labels["__name__"] == "process_cpu" and labels["env"] == "test" and labels["team"] == "a b"
          and labels["service_name"].startswith("python"), labels)
    body = json.loads(store.objects["/api/profiles/writeraw"])
    check(same_profile(base64.b64decode(body["series"][0]["samples"][0]["raw_profile"]), profile))
    check(len(store.objects["/v1development/profiles"]) == len(otlp), "another OTLP than that of weft export")
    message = email.message_from_bytes(
        b"Content-Type: %s\r\n\r\n" % store.requests[2][3]["Content-Type"].encode()
        + store.objects["/profiling/v1/input"])
    parts = {part.get_filename(): part.get_payload(decode=True) for part in message.get_payload()}
    event = json.loads(parts["event.json"])
    check(event["version"] == "4" and event["family"] == "native"
          and event["attachments"] == ["profile.pprof", "code-provenance.json"], event)
    check("env:test" in event["tags_profiler"].split(",") and event["start"] < event["end"], event)
    check(same_profile(parts["profile.pprof"], profile) and json.loads(parts["code-provenance.json"])["v1"] is not None)
    copies = new_dir()
    record(new_dir(), 1, WEFT_SHIP_TO="pyroscope+http://%s %s" % (at, copies))
    check(len(sealed(copies)) == 2, os.listdir(copies))
    store.close()


def same_profile(a, b):
    """The same stacks with the same values; names of labels may be as the store wants them."""
    def rows(data):
        found = profiles.pprof(data)
        return found["types"], sorted((str(one["stack"]), one["values"]) for one in found["samples"])
    return rows(a) == rows(b) and rows(a)[1]


def a_function_of_the_program_takes_segments():
    directory = new_dir()
    out = record(directory, 2, "call", WEFT_SHIP_WAIT_MS="30000")
    taken = sorted(line.split()[1] for line in out.splitlines() if line.startswith("took "))
    check(taken == sealed(directory), out)


def it_starts_and_stops_many_times():
    store, directory = Store(), new_dir()
    record(directory, 20, "cycles", WEFT_SHIP_TO=store.url, WEFT_SHIP_WAIT_MS="30000")
    arrived(store, directory)
    check(len(store.objects) == 20, len(store.objects))
    store.close()


def a_child_of_fork_sends_nothing():
    store, directory = Store(), new_dir()
    record(directory, 2, "fork", WEFT_SHIP_TO=store.url, WEFT_SHIP_WAIT_MS="30000")
    arrived(store, directory)
    store.close()


def segments_say_what_machine_it_was():
    """ECS goes before EC2; what Kubernetes says comes from the environment. Neither holds anything up."""
    store, directory = Store(), new_dir()
    store.replies = {
        ("GET", "/v4/task"): (200, [], b'{"Cluster": "c", "TaskARN": "arn:aws:ecs:eu-west-3:123456789012:task/c/1", '
                              b'"Family": "web", "Limits": {"CPU": 0.5, "Memory": 512}}'),
        ("PUT", "/latest/api/token"): (200, [], b"t"),
        ("GET", "/latest/dynamic/instance-identity/document"):
            (200, [], b'{"instanceId": "i-1", "region": "eu-west-1", "accountId": "1", "instanceType": "m7"}'),
    }
    metadata = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": store.url}
    ecs = {"ECS_CONTAINER_METADATA_URI_V4": store.url + "/v4", "POD_NAME": "pod-1", "POD_NAMESPACE": "prod"}
    for more, wanted in ((dict(metadata, **ecs), {"aws.ecs.task.arn": "arn:aws:ecs:eu-west-3:123456789012:task/c/1",
                                                  "cloud.region": "eu-west-3", "aws.ecs.task.cpus": "0.5",
                                                  "k8s.pod.name": "pod-1", "k8s.namespace.name": "prod"}),
                         (metadata, {"host.id": "i-1", "cloud.region": "eu-west-1", "host.type": "m7"})):
        directory = new_dir()
        env = environment(WEFT_DIR=directory, WEFT_SHIP_TO=store.url + "/up", WEFT_SEGMENT_SECONDS="1", **more)
        store.requests.clear()
        child = subprocess.Popen([PROGRAM, "1", "wait"], env=env, stdout=subprocess.DEVNULL)
        wait_for(lambda: any("/task" in r[2] or "document" in r[2] for r in store.requests))
        wait_for(lambda: len(sealed(directory)) >= 3)
        child.kill()
        child.wait()
        facts = json.loads(run(WEFT, "inspect", "--json", os.path.join(directory, sealed(directory)[-1])))
        text = json.dumps(facts)
        for key, value in wanted.items():
            check('"%s"' % key in text and '"%s"' % value in text, key, value, text[:3000])
    store.close()


def recording_can_be_switched_off():
    """By the environment, by a file, and by a signal."""
    directory, switch = new_dir(), TOP + "/off"
    check("off" in record(directory, 1, WEFT_OFF="1") and not sealed(directory))
    env = environment(WEFT_DIR=directory, WEFT_OFF_FILE=switch, WEFT_OFF_SIGNAL="USR1")
    open(switch, "w").close()
    child = subprocess.Popen([PROGRAM, "0", "wait"], env=env, stdout=subprocess.PIPE, text=True)

    def until(word):
        for line in child.stdout:
            if word in line:
                return
        check(False, "it never said", word)
    until("ok=0")
    os.unlink(switch)
    until("ok=1")
    child.send_signal(signal.SIGUSR1)
    until("ok=0")
    child.send_signal(signal.SIGUSR1)
    until("ok=1")
    open(switch, "w").close()
    until("ok=0")
    os.unlink(switch)
    child.kill()
    child.wait()
    child.stdout.close()


def a_wrong_target_does_not_keep_it_from_recording():
    directory = new_dir()
    out = record(directory, 1, WEFT_SHIP_TO="gopher://x")
    check("failing=1" in out and "there is no such target" in out and len(sealed(directory)) == 2, out)


sys.exit(main([push_sends_what_is_not_there_yet, a_store_that_fails_gets_everything_later,
           a_store_that_is_gone_is_a_failure, a_segment_that_is_refused_does_not_hold_the_others,
           s3_requests_are_signed, credentials_come_from_where_aws_puts_them, the_recorder_sends_while_it_records,
           several_targets_do_not_hold_each_other, segments_are_removed_when_all_have_them,
           an_outage_delays_neither_stop_nor_exit, killed_while_it_sends, killed_before_it_is_noted,
           processes_beside_each_other_send_each_segment_once, planted_links_are_not_followed,
           profiles_go_to_those_who_take_them, a_function_of_the_program_takes_segments,
           it_starts_and_stops_many_times, segments_say_what_machine_it_was, recording_can_be_switched_off,
           a_child_of_fork_sends_nothing, a_wrong_target_does_not_keep_it_from_recording]))
