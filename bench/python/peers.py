# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that are asked, each a library: see bench/peers/python/protocol.py."""

import dataclasses
import json
import os
import pathlib
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 3 # a peer that failed as often in a row is not started again
FOLDER = pathlib.Path(__file__).resolve().parents[1] / "peers" / "python"

INSTALLED_BY = {
    "torch": "missing: scripts/peers installs it",
    "numpy": "missing: scripts/python-env installs it",
    **dict.fromkeys(("jax", "jaxlib", "onnx", "onnxruntime", "openvino"),
                    "missing: scripts/peers --all installs it")}


class Failure(Exception):
    """Of a peer, of one question."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A column: what it is called, its program, and whether it is of several ranks."""

    name: str
    title: str
    command: tuple
    many: bool = False


def python(name):
    return (sys.executable, str(FOLDER / f"{name}.py"))


BURST = Kind("burst", "burst", python("burst_attention"))
BURST_RANKS = Kind("burst", "burst", python("ranks_burst"), many=True)
OTHERS = (
    Kind("torch", "SDPA of PyTorch", python("torch_sdpa")),
    Kind("flex", "flex_attention, compiled", python("torch_flex")),
    Kind("openvino", "OpenVINO", python("openvino_sdpa")),
    Kind("onnxruntime", "ONNX Runtime", python("onnxruntime_mha")),
    Kind("jax", "JAX", python("jax_sdpa")),
    Kind("gather", "all-gather and SDPA", python("ranks_gather"), many=True),
)


def named(text):
    """Of NAME=COMMAND."""
    name, _, command = text.partition("=")
    taken = [kind.name for kind in (BURST, *OTHERS)]
    if not name or not command or name in taken:
        raise ValueError(f"--peer: got {text!r}, wanted NAME=COMMAND, with a name beside "
                         f"{', '.join(taken)}")
    return Kind(name, name, tuple(shlex.split(command)))


# Pools of threads that look for work, in place of sleeping, take time of the others.
# Memory that results had is kept, not mapped anew with every call, as in bench/Peer.cpp.
def environment(threads):
    dropped = ("OMP_", "GOMP_", "KMP_", "MKL_", "MALLOC_", "XLA_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | {
        "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "NPROC": str(threads),
        "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0",
        "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}


class Peer:
    def __init__(self, kind, threads, timeout):
        self.kind, self.threads, self.timeout = kind, threads, timeout
        self.name = None # what it said of itself
        self.why = None # nothing is asked any more
        self.child = None
        self.failures = 0

    def start(self):
        """Without waiting for it."""
        self.errors = tempfile.TemporaryFile()
        self.heard = b""
        try:
            # A group of its own, to be ended as a whole.
            self.child = subprocess.Popen(
                self.kind.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self.errors, env=environment(self.threads), start_new_session=True)
        except OSError as error:
            self.why = f"cannot start {self.kind.command[0]}: {error.strerror}"

    def greet(self):
        """Its name, or what it lacks."""
        if self.why is None and self.name is None:
            try:
                hello = self._hear()
                if "missing" in hello:
                    self.why = INSTALLED_BY.get(hello["missing"],
                                                f"failed: no module {hello['missing']}")
                    self.stop()
                elif "name" not in hello:
                    self.why = str(hello.get("error", f"said {hello}, not its name"))
                    self.stop()
                else:
                    self.name = hello["name"]
            except Failure as failure:
                self.why = str(failure)
        return self.name or self.why

    def ask(self, question):
        """The answer, which may be {"none": why}."""
        if self.why is not None:
            raise Failure(self.why)
        try:
            if self.child is None:
                self.start()
                self._hear()
            self.child.stdin.write(json.dumps(question).encode() + b"\n")
            self.child.stdin.flush()
            answer = self._hear()
        except (Failure, OSError) as failure:
            self.stop()
            self.failures += 1
            if self.failures == PATIENCE:
                self.why = f"given up: {failure}"
            raise Failure(str(failure)) from None
        self.failures = 0
        if "error" in answer:
            raise Failure(answer["error"])
        return answer

    def _hear(self):
        end = time.monotonic() + self.timeout
        while b"\n" not in self.heard:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.child.stdout], [], [], left)[0]:
                raise self._broken(f"no answer in {self.timeout} s")
            part = os.read(self.child.stdout.fileno(), 1 << 16)
            if not part:
                try:
                    status = f"ended with status {self.child.wait(timeout=5)}"
                except subprocess.TimeoutExpired:
                    status = "closed its output"
                raise self._broken(status)
            self.heard += part
        line, _, self.heard = self.heard.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._broken(f"answered {line[:60].decode(errors='replace')!r}, no line of JSON")
        return answer

    def _broken(self, what):
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        self.stop()
        return Failure(f"{what}: {lines[-1]}" if lines else what)

    def stop(self):
        if self.child is None:
            return
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()
        for channel in (self.child.stdin, self.child.stdout):
            try:
                channel.close()
            except OSError: # what was still to be written
                pass
        self.child = None
