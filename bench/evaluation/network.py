# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of processes: what nobody else sends on, and links of a given rate.

They are namespaces without names, which end with the processes that are in them: nothing has to
be taken down, whatever happens."""

import contextlib
import ctypes
import functools
import itertools
import os
import pathlib
import shutil
import subprocess

NEW_NETWORK = 0x40000000 # CLONE_NEWNET
SWITCH = "switch"


def isolate():
    """Gives this process, and those that it starts, a loopback of their own. Why it cannot, if
    so: then others' bytes are counted as well."""
    for tool in ("ip", "tc", "nsenter"):
        if shutil.which(tool) is None:
            return f"this machine lacks {tool}"
    if why := _leave():
        return why
    _run("ip", "link", "set", "lo", "up")
    _keep_from_sending_again()
    return None


def add_switch():
    """To the network of this process, for `join`. Why it cannot, if so."""
    found = subprocess.run(["ip", "link", "add", SWITCH, "type", "bridge"], capture_output=True,
                           text=True)
    if found.returncode:
        return f"this machine lacks bridges: {found.stderr.strip()}"
    _run("ip", "link", "set", SWITCH, "up")
    try: # whether links can be made, and slowed
        _run("ip", "link", "add", "try0", "type", "veth", "peer", "name", "try1")
        _run("tc", *_slowed("try0", "1gbit"))
        _run("ip", "link", "del", "try0")
    except RuntimeError as error:
        return f"this machine lacks veth or tbf: {error}"
    return None


def join(rate, subnet, rank):
    """Gives a rank a network of its own, behind a link to the switch of its parent that carries
    `rate` each way, such as 500mbit; None: as fast as it can."""
    outside = ("nsenter", "-t", str(os.getppid()), "-n")
    if why := _leave():
        raise RuntimeError(why)
    peer = f"link{os.getpid()}" # that of a rank before may be there for a moment
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "net0", "type", "veth", "peer", "name", peer, "netns",
         str(os.getppid()))
    _run("ip", "addr", "add", f"10.77.{subnet}.{rank + 1}/24", "dev", "net0")
    _run("ip", "link", "set", "net0", "up")
    _run(*outside, "ip", "link", "set", peer, "master", SWITCH, "up")
    if rate is not None:
        _run("tc", *_slowed("net0", rate))
        _run(*outside, "tc", *_slowed(peer, rate))
    os.environ |= {"GLOO_SOCKET_IFNAME": "net0", "MASTER_ADDR": f"10.77.{subnet}.1"}


def link(rate):
    """What ranks.run calls first in each rank. Networks of ranks that have ended are there for a
    while, and answer for their addresses: each run has others."""
    return functools.partial(join, rate, next(_subnets))


_subnets = itertools.cycle(range(256))


def _slowed(device, rate):
    return ("qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "256kb", "latency",
            "200ms")


def _keep_from_sending_again():
    """A loopback loses nothing, but TCP takes a receiver that waits for a core for a loss, sends
    the last segments again (tail loss probes), and so adds to what is counted."""
    of_tcp = pathlib.Path("/proc/sys/net/ipv4")
    for name, value in (("tcp_early_retrans", 0), ("tcp_rto_min_us", 5_000_000)):
        with contextlib.suppress(OSError): # older systems lack the second
            (of_tcp / name).write_text(str(value))


def _leave():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NETWORK):
        return f"this machine lacks networks of processes: {os.strerror(ctypes.get_errno())}"
    return None


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
