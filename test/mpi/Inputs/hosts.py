# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command on the first of two hosts that a cable connects.

  hosts.py [--carried FILE] COMMAND...

The hosts are namespaces of this machine, with a name, a network and addresses of their
own, 10.231.0.1 and 10.231.0.2, and nothing else that connects them: mpirun starts ranks
on both with --host 10.231.0.1:4,10.231.0.2:4. FILE gets the number of bytes that the
cable has carried, both ways together.

Needs root, and iproute2. The hosts have no names in the system, and are gone when this
process is, however it ends.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ADDRESSES = ["10.231.0.1", "10.231.0.2"]


def enter(pid, command):
    return ["nsenter", f"--target={pid}", "--net", "--uts", "--", *command]


def run_on(pid, *command):
    return subprocess.run(enter(pid, command), check=True, capture_output=True, text=True).stdout


def make_host():
    """What keeps the namespaces ends when its input does."""
    holder = subprocess.Popen(["unshare", "--net", "--uts", "--", "cat"], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    own, until = os.readlink("/proc/self/ns/net"), time.monotonic() + 10
    while holder.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError): # of a process that has just ended
            if os.readlink(f"/proc/{holder.pid}/ns/net") != own:
                return holder
        time.sleep(0.001)
    sys.exit(f"hosts.py: unshare --net --uts: {holder.communicate()[1].strip()}")


def connect(pids):
    run_on(pids[0], "ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable",
           "netns", str(pids[1]))
    for number, pid in enumerate(pids):
        run_on(pid, "hostname", f"host{number + 1}")
        run_on(pid, "ip", "address", "add", f"{ADDRESSES[number]}/24", "dev", "cable")
        run_on(pid, "ip", "link", "set", "cable", "up")
        run_on(pid, "ip", "link", "set", "lo", "up")


def carried(pid):
    shown = run_on(pid, "ip", "-json", "-statistics", "link", "show", "cable")
    statistics = json.loads(shown)[0]["stats64"]
    return statistics["rx"]["bytes"] + statistics["tx"]["bytes"]


def start_on(host, command):
    """As ssh would, for mpirun."""
    pids = os.environ["BURST_TEST_HOSTS"].split()
    os.execvp("nsenter", enter(pids[ADDRESSES.index(host)], ["sh", "-c", " ".join(command)]))


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--start-on":
        start_on(arguments[1], arguments[2:])
    carried_file = None
    if arguments[0] == "--carried":
        carried_file, arguments = arguments[1], arguments[2:]
    hosts = [make_host(), make_host()]
    pids = [host.pid for host in hosts]
    try:
        connect(pids)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"hosts.py: {error}: {getattr(error, 'stderr', '')}")
    os.environ["BURST_TEST_HOSTS"] = " ".join(map(str, pids))
    os.environ["OMPI_MCA_plm_rsh_agent"] = f"{sys.executable} {__file__} --start-on"
    for what in ("btl_tcp", "oob_tcp"):
        os.environ[f"OMPI_MCA_{what}_if_include"] = "cable"
    status = subprocess.run(enter(pids[0], arguments)).returncode
    if carried_file:
        Path(carried_file).write_text(f"{carried(pids[0])}\n")
    sys.exit(status)


if __name__ == "__main__":
    main()
