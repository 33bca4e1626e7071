# SPDX-License-Identifier: Apache-2.0
"""Debian's source packages, without a change of the machine's own lists of packages."""
import os
import shutil
import subprocess

LISTS = "/etc/apt/sources.list.d/debian.sources"
DEFAULT = """Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""


def call(command, cwd, log):
    """Runs it, with all that it prints in LOG, which an error names."""
    with open(log, "ab") as out:
        try:
            subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=True)
        except subprocess.CalledProcessError as error:
            raise OSError("%s failed: %s" % (" ".join(command[:2]), log)) from error


def lists_of(machine):
    """The machine's own mirrors, if they are Debian's."""
    try:
        with open(machine) as file:
            text = file.read()
    except OSError:
        return DEFAULT
    return text.replace("Types: deb\n", "Types: deb-src\n") if "Types: deb\n" in text else DEFAULT


def fetch(package, to):
    """Unpacks the source of PACKAGE as TO, once."""
    if os.path.isdir(to):
        return
    work = to + ".apt"
    shutil.rmtree(work, ignore_errors=True)
    for part in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(work, part))
    with open(os.path.join(work, "src.sources"), "w") as file:
        file.write(lists_of(LISTS))
    log = to + ".log"
    apt = ["apt-get", "-q", "-o", "Dir::Etc::sourcelist=%s/src.sources" % work, "-o", "Dir::Etc::sourceparts=/dev/null", "-o", "Dir::State::lists=%s/lists" % work,
           "-o", "Dir::Cache=%s/cache" % work, "-o", "APT::Sandbox::User="]
    call(apt + ["update"], work, log)
    call(apt + ["source", "--download-only", package], work, log)
    described = [name for name in os.listdir(work) if name.endswith(".dsc")]
    call(["dpkg-source", "--skip-patches", "-x", described[0], "tree"], work, log)
    os.rename(os.path.join(work, "tree"), to)
    shutil.rmtree(work)
