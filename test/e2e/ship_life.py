#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev asan
"""The life of an agent: what it says of itself at the start, other options in one process, fork, exec, exit, secrets,
and where its names and labels come from."""
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "library"))
from shipping import (PROGRAM, TOP, WEFT, Skipped, arrived, check, end, environment, main, new_dir,  # noqa: E402
                      record, run, sealed, until, wait_for)
from ship_server import KEY, SECRET, Store  # noqa: E402

ASAN = os.environ.get("WEFT_PRESET") == "asan"
SEGMENT, SAMPLES, TARGETS = 1, 2, 4


def background(*args, **env):
    return subprocess.Popen([PROGRAM, *map(str, args)], env=environment(**env), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE if env.pop("log", None) else subprocess.DEVNULL, text=True)


def facts(directory):
    """Of the newest segment: key and value; and the id of its recording."""
    text = run(WEFT, "inspect", "--json", os.path.join(directory, sealed(directory)[-1]))
    segment = json.loads(text)["segments"][0]
    found = segment["facts"]
    return found if isinstance(found, dict) else {one["key"]: one["value"] for one in found}


def recordings(directory):
    ids = set()
    for name in sealed(directory):
        segment = json.loads(run(WEFT, "inspect", "--json", os.path.join(directory, name)))["segments"][0]
        ids.add((segment["recording"], name.split("-")[1]))
    return ids


def a_recorder_that_works_says_so_in_its_first_seconds():
    store, directory = Store(), new_dir()
    child = background(0, "wait", WEFT_DIR=directory, WEFT_SHIP_TO=store.url, WEFT_SAMPLE_HZ="199")
    until(child, "ok=1", "passed=%d" % (SEGMENT | SAMPLES | TARGETS), "failed=0")
    check(not store.requests and not sealed(directory), "the check sent something:", store.requests)
    end(child)
    store.close()


def a_store_that_is_not_there_is_reported_before_the_first_segment():
    directory = new_dir()
    child = background(0, "idle", WEFT_DIR=directory, WEFT_SHIP_TO="http://127.0.0.1:1/")
    line = until(child, "failed=%d" % TARGETS)
    check("ok=0" in line and "cannot be reached" in line and not sealed(directory), line)
    end(child)


def a_store_without_credentials_is_reported_before_the_first_segment():
    directory = new_dir()
    child = background(0, "idle", WEFT_DIR=directory, WEFT_SHIP_TO="s3://bucket/x?endpoint=http://127.0.0.1:1")
    line = until(child, "failed=%d" % TARGETS)
    check("no credentials of AWS" in line, line)
    end(child)


def a_disk_without_room_is_reported_before_the_first_segment():
    """A file may not become longer than nothing: RLIMIT_FSIZE."""
    directory = new_dir()
    child = subprocess.Popen(["/bin/sh", "-c", "ulimit -f 0; trap '' XFSZ; exec \"$0\" 0 idle", PROGRAM],
                             env=environment(WEFT_DIR=directory, WEFT_RING="memory"), stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    line = until(child, "failed=%d" % SEGMENT)
    check("ok=0" in line and "cannot be written" in line, line)
    end(child)


def a_child_of_fork_has_an_id_of_its_own_or_records_nothing():
    for option, n in (("restart", 2), ("off", 1)):
        store, directory = Store(), new_dir()
        record(directory, 0, "fork", WEFT_FORK=option, WEFT_SHIP_TO=store.url, WEFT_SHIP_WAIT_MS="5000",
               ASAN_OPTIONS="detect_leaks=0")  # the child leaves alone what the parent's threads may have been at
        found = recordings(directory)
        check(len({one for one, _ in found}) == n and len({pid for _, pid in found}) == n, option, found)
        run(WEFT, "push", "-q", "--to", store.url, directory)
        arrived(store, directory)
        store.close()


def exec_leaks_nothing():
    """The new program has the descriptors, threads and signals that it would have."""
    store, directory = Store(), new_dir()
    store.always = "hang"
    env = environment(WEFT_DIR=directory, WEFT_SHIP_TO=store.url, WEFT_SAMPLE_HZ="199", WEFT_OFF_SIGNAL="USR1")
    child = subprocess.Popen([PROGRAM, "2", "exec"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
    out, _ = child.communicate("", timeout=60)
    names = [line.split("-> ")[1] for line in out.splitlines() if "-> " in line]
    names = [name for name in names if "/proc/" not in name]
    check(len(names) == 3 and all("pipe:" in name for name in names), "descriptors:", out)
    lines = dict(line.split(":\t") for line in out.splitlines() if ":\t" in line)
    check(lines["Threads"] == "1" and int(lines["SigBlk"], 16) == 0, out)
    check(out.splitlines()[-1] == "0", "something of weft is mapped:", out)
    store.close()
    later = Store()
    run(WEFT, "push", "-q", "--to", later.url, directory)
    arrived(later, directory)
    check(len(later.objects) == 3, later.puts)
    later.close()


def what_an_exit_left_goes_with_the_next_process_or_with_push():
    for how in ("next", "push"):
        store, directory = Store(), new_dir()
        begun = time.monotonic()
        record(directory, 2, "exit", WEFT_SHIP_TO="http://127.0.0.1:1/")
        check(time.monotonic() - begun < 20 and len(sealed(directory)) == 3, sealed(directory))
        if how == "next":
            record(directory, 0, WEFT_SHIP_TO=store.url, WEFT_SHIP_WAIT_MS="30000")
        else:
            run(WEFT, "push", "-q", "--to", store.url, directory)
        arrived(store, directory)
        store.close()


def the_signal_of_the_switch_is_given_back():
    """Before the recorder there was a handler's default; behind it there is again: the signal ends the program."""
    child = background(0, "wait", WEFT_DIR=new_dir(), WEFT_OFF_SIGNAL="USR1")
    until(child, "ok=1")
    child.send_signal(signal.SIGUSR1)
    until(child, "ok=0")
    end(child)
    out = run(PROGRAM, 1, "signal", env=environment(WEFT_DIR=new_dir(), WEFT_OFF_SIGNAL="USR1"), code=-signal.SIGUSR1)
    check("close took" in out, out)


def names_and_labels_come_from_usual_variables():
    ways = (
        ({"OTEL_SERVICE_NAME": "from otel", "DD_SERVICE": "dd", "DD_ENV": "prod", "DD_VERSION": "7",
          "OTEL_RESOURCE_ATTRIBUTES": "service.name=no,team=a%20b,deployment.environment.name=stage"},
         {"service.name": "from otel", "label.team": "a b", "label.env": "stage", "label.version": "7"}),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=attribute,service.version=9", "WEFT_LABELS": "version=8"},
         {"service.name": "attribute", "label.version": "8"}),
        ({"DD_SERVICE": "dd", "DD_TAGS": "team:x,zone:y"},
         {"service.name": "dd", "label.team": "x", "label.zone": "y"}),
        ({"WEFT_NAME": "own", "OTEL_SERVICE_NAME": "otel"}, {"service.name": "own"}),
        ({"POD_NAME": "p-1", "POD_NAMESPACE": "n", "NODE_NAME": "w"},
         {"k8s.pod.name": "p-1", "k8s.namespace.name": "n", "k8s.node.name": "w"}),
    )
    for env, wanted in ways:
        directory = new_dir()
        record(directory, 0, **env)
        got = facts(directory)
        for key, value in wanted.items():
            check(got.get(key) == value, key, value, got)
    out = run(WEFT, "config", env=environment(OTEL_SERVICE_NAME="shop"))
    check("shop" in out and "OTEL_SERVICE_NAME" in out, out)


def what_the_machine_is_goes_with_profiles():
    if ASAN:
        raise Skipped("the sanitizer has to come first in LD_PRELOAD")
    store, directory = Store(), new_dir()
    run(WEFT, "run", "-o", directory, "--start-after", "0", "--", sys.executable, "-c",
        "import time\nend = time.time() + 0.3\nwhile time.time() < end: pass",
        env=environment(WEFT_SAMPLE_HZ="99", POD_NAME="pod-7", WEFT_LABELS="cloud.region=mine,team=x"))
    at = store.url.split("://")[1]
    run(WEFT, "push", "-q", "--wait", "0s", "--to", "pyroscope+http://" + at, directory)
    body = json.loads(store.objects["/push.v1.PusherService/Push"])
    labels = {label["name"]: label["value"] for label in body["series"][0]["labels"]}
    check(labels["k8s_pod_name"] == "pod-7" and labels["cloud_region"] == "mine" and labels["team"] == "x", labels)
    check(len(labels) <= 30, "more than Pyroscope takes:", labels)
    store.close()


def credentials_of_a_program_that_a_profile_names():
    store, directory = Store(), new_dir()
    store.verify = True
    with open(TOP + "/helper", "w") as file:
        file.write("#!/bin/sh\n[ -z \"$LD_PRELOAD$WEFT_DIR\" ] || exit 9\necho noise >&2\n"
                   "echo '{\"Version\": 1, \"AccessKeyId\": \"%s\", \"SecretAccessKey\": \"%s\", "
                   "\"SessionToken\": \"t\", \"Expiration\": \"2099-01-01T00:00:00Z\"}'\n" % (KEY, SECRET))
    os.chmod(TOP + "/helper", 0o700)
    with open(TOP + "/config", "w") as file:
        file.write("[default]\ncredential_process = %s/helper --arg\n[profile bad]\ncredential_process = exit 3\n"
                   "[profile company]\nsso_session = x\nsso_account_id = 1\n[profile role]\nsource_profile = default\n"
                   % TOP)
    url = "s3://bucket/x?endpoint=" + store.url
    env = {"AWS_CONFIG_FILE": TOP + "/config"}
    record(directory, 1, WEFT_SHIP_TO=url, WEFT_SHIP_WAIT_MS="30000", **env)
    arrived(store, directory)
    for profile, words in (("bad", "ended with status 3"), ("company", "SSO"), ("role", "role of another profile")):
        out = run(WEFT, "push", "--wait", "0s", "--to", url + "&p=" + profile, directory,
                  env=environment(AWS_PROFILE=profile, **env), code=1)
        check(words in out and "credential_process" in out, out)
    store.close()


def secrets_are_in_no_log_and_in_no_file():
    store, directory = Store(), new_dir()
    store.always = 403
    secrets = ["Key4Test-" + word for word in ("url", "header", "secret", "session", "datadog", "query")]
    url, header, secret, session, datadog, query = secrets
    at = store.url.split("://")[1]
    env = dict(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=secret, AWS_SESSION_TOKEN=session, DD_API_KEY=datadog,
               WEFT_SHIP_HEADERS="Authorization=Bearer%20" + header, WEFT_SAMPLE_HZ="99",
               WEFT_SHIP_TO="http://me:%s@%s/?k=%s s3://bucket/x?endpoint=%s datadog+http://%s"
               % (url, at, query, store.url, at))
    out = record(directory, 2, WEFT_SHIP_WAIT_MS="2000", **env)
    out += run(WEFT, "config", "--all", env=environment(WEFT_DIR=directory, **env))
    out += run(WEFT, "push", "--wait", "0s", "--to", "http://me:%s@%s/?k=%s" % (url, at, query), directory,
               env=environment(**env), code=1)
    texts = [out.encode()]
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as file:
            texts.append(file.read())
    for name in sealed(directory):  # what is compressed, too
        texts.append(run(WEFT, "inspect", "--json", os.path.join(directory, name)).encode())
    for one in secrets:
        check(not any(one.encode() in text for text in texts), one, "is in what it wrote")
    sent = str(store.requests)
    check(header in sent and session in sent, "the secrets were not used, so nothing was tested")
    store.close()


def certificates_are_verified():
    if not shutil.which("openssl"):
        raise Skipped("there is no openssl to make a certificate")
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", TOP + "/key.pem", "-out", TOP + "/cert.pem")
    store, directory = Store(), new_dir()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TOP + "/cert.pem", TOP + "/key.pem")
    store.server.socket = context.wrap_socket(store.server.socket, server_side=True)
    url = store.url.replace("http://", "https://")
    record(directory, 1)
    out = run(WEFT, "push", "--wait", "0s", "--to", url, directory, code=1)
    check("certificate" in out.lower() and not store.requests, out)
    out = record(directory, 1, WEFT_SHIP_TO=url, WEFT_SHIP_WAIT_MS="3000")
    check("certificate" in out.lower() and not store.requests, out)
    run(WEFT, "push", "-q", "--to", url, directory, env=environment(SSL_CERT_FILE=TOP + "/cert.pem"))
    arrived(store, directory)
    store.close()


def proxies_are_used():
    store, directory = Store(), new_dir()
    record(directory, 1)
    run(WEFT, "push", "-q", "--to", "http://store.invalid/up", directory, env=environment(http_proxy=store.url))
    check(len(store.puts) == 2 and all(one[2].startswith("http://store.invalid/up/") for one in store.requests),
          store.requests)
    store.close()


def many_starts_and_stops_leave_nothing_behind():
    """1,000 of them in one process, with a target; in make check fewer under the sanitizer."""
    store, directory, n = Store(), new_dir(), 100 if ASAN else 1000
    out = run(PROGRAM, n, "cycles", timeout=300,
              env=environment(WEFT_DIR=directory, WEFT_SHIP_TO=store.url, WEFT_SHIP_DELETE="1", WEFT_SHIP_WAIT_MS="50",
                              WEFT_KEEP_BYTES="256M"))
    use = [dict(word.split("=") for word in line.split()[1:]) for line in out.splitlines() if line.startswith("use ")]
    first, last = use[len(use) // 4], use[-1]
    check(last["fds"] == first["fds"] and last["threads"] == first["threads"], first, last)
    check(ASAN or int(last["rss_kb"]) <= int(first["rss_kb"]) + 2048, "memory grew:", first, last)
    run(WEFT, "push", "-q", "--to", store.url, directory)
    check(len(store.objects) == n and len(store.puts) == n, len(store.objects), len(store.puts))
    store.close()


def recorders_with_other_options_follow_each_other():
    """In one process: other directories, rates, names, with a target and without. What one was told the next does not
    do, and nothing is left behind."""
    store, top, n = Store(), new_dir(), 30 if ASAN else 150
    out = run(PROGRAM, n, "reopen", top, store.url, timeout=300)
    for kind in range(3):
        directory = "%s/%d" % (top, kind)
        check(len(sealed(directory)) == 2 * n // 3, kind, len(sealed(directory)))
        got = facts(directory)
        check(got["service.name"] == "kind %d" % kind, got)
        check((got["sample.engine"] == "off") == (kind == 0), got)
        shipped = [name for name in os.listdir(directory) if ".ship-" in name]
        check(bool(shipped) == (kind == 2), shipped)
    arrived(store, top + "/2")
    use = [dict(word.split("=") for word in line.split()[1:]) for line in out.splitlines() if line.startswith("use ")]
    first, last = use[len(use) // 4], use[-1]
    check(last["fds"] == first["fds"] and last["threads"] == first["threads"], first, last)
    check(ASAN or int(last["rss_kb"]) <= int(first["rss_kb"]) + 2048, "memory grew:", first, last)
    store.close()


def packages_are_in_segments_that_are_written_by_default():
    """As facts, and no file of the machine is needed to know them: the report of a copy says the same."""
    directory = new_dir()
    child = background(0, "wait", WEFT_DIR=directory, WEFT_SEGMENT_SECONDS="4", WEFT_SAMPLE_HZ="199")
    wait_for(lambda: sealed(directory))
    end(child)
    found = {key[len("package:"):]: value for key, value in facts(directory).items() if key.startswith("package:")}
    check(found.get(os.path.realpath(PROGRAM)) == "program file ship_program", found)
    libc = [value for path, value in found.items() if os.path.basename(path) == "libc.so.6"]
    owner = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libc6"], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True) if shutil.which("dpkg-query") else None
    if owner and not owner.returncode:
        check(libc == ["system debian libc6 " + owner.stdout], libc, owner.stdout)
    else:
        check(libc == ["system file libc.so 6"], libc)
    check(all("\n" not in path + value for path, value in found.items()), found)


def a_soak_of_some_seconds_does_not_grow():
    """A new segment ten times a second, threads that come and go, a target that fails now and then; bench/agent.py has
    ten minutes of it."""
    store, directory, seconds = Store(), new_dir(), 10 if ASAN else 30
    stop = threading.Event()

    def trouble():
        while not stop.wait(3):
            store.faults = [500]
    threading.Thread(target=trouble, daemon=True).start()
    out = run(PROGRAM, seconds, "soak", timeout=200,
              env=environment(WEFT_DIR=directory, WEFT_SHIP_TO=store.url + " " + new_dir(), WEFT_SAMPLE_HZ="99",
                              WEFT_SHIP_DELETE="1", WEFT_KEEP_BYTES="64M"))
    stop.set()
    use = [dict(word.split("=") for word in line.split()[1:]) for line in out.splitlines() if line.startswith("use ")]
    settled = use[len(use) // 3:]
    first, last = settled[0], settled[-1]
    check(int(last["fds"]) <= int(first["fds"]) + 1 and int(last["threads"]) <= int(first["threads"]) + 1, first, last)
    check(ASAN or int(last["rss_kb"]) <= int(first["rss_kb"]) + 4096, "memory grew:", first, last)
    check(len(store.objects) > 20, len(store.objects))
    store.close()


sys.exit(main([a_recorder_that_works_says_so_in_its_first_seconds,
               a_store_that_is_not_there_is_reported_before_the_first_segment,
               a_store_without_credentials_is_reported_before_the_first_segment,
               a_disk_without_room_is_reported_before_the_first_segment,
               a_child_of_fork_has_an_id_of_its_own_or_records_nothing, exec_leaks_nothing,
               what_an_exit_left_goes_with_the_next_process_or_with_push, the_signal_of_the_switch_is_given_back,
               names_and_labels_come_from_usual_variables, what_the_machine_is_goes_with_profiles,
               credentials_of_a_program_that_a_profile_names, secrets_are_in_no_log_and_in_no_file,
               certificates_are_verified, proxies_are_used, many_starts_and_stops_leave_nothing_behind,
               recorders_with_other_options_follow_each_other, packages_are_in_segments_that_are_written_by_default,
               a_soak_of_some_seconds_does_not_grow]))
