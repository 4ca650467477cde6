# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A peer that is several processes, one for each rank. See protocol.py.

Each rank is a process that answers the protocol itself, for its shard, and meets the
others before each run; the peer passes every question on to all of them and answers
with the results of all and the time of the slowest. The sequence is in zigzag order:
rank r of P has the r-th of 2 P chunks, and the r-th from the end. A rank computes in
one thread, and ranks are spread evenly over the processors.
"""

import json
import os
import selectors
import statistics
import subprocess
import sys
import tempfile
import warnings

import numpy
import protocol


def serve(script, load):
    """`load(ranks)` is called in the process of a rank, in its group, and gives a name
    and the function for Server, whose Runs are of shards."""
    if len(sys.argv) > 1:
        _be_rank(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], load)
    else:
        _lead(script)


def positions(rank, ranks, length):
    chunks = numpy.arange(length).reshape(2 * ranks, -1)
    return numpy.concatenate([chunks[rank], chunks[-1 - rank]])


def shards(attention, rank, names="qkvg"):
    """Of this rank, as arrays of (1, heads, positions, dim)."""
    if attention.keys % (2 * attention.ranks):
        raise protocol.Unsupported(f"sequence: got {attention.keys}, wanted a multiple of "
                                   f"{2 * attention.ranks}")
    held = positions(rank, attention.ranks, attention.keys)
    return [numpy.ascontiguousarray(x[:, :, held]) for x in protocol.draw(attention, names)]


def _be_rank(rank, ranks, store, load):
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[rank % len(processors)]})
    answer = protocol.answers()
    try:
        import torch
        from torch import distributed
        warnings.simplefilter("ignore", FutureWarning) # names of collectives change
        torch.set_num_threads(1)
        distributed.init_process_group("gloo", rank=rank, world_size=ranks,
                                       init_method=f"file://{store}")
        name, forms_of = load(rank, ranks)
    except ModuleNotFoundError as error:
        answer({"missing": error.name})
        return
    answer({"name": name})
    server = protocol.Server(forms_of, meet=distributed.barrier)
    for line in sys.stdin:
        answer(server.answer(json.loads(line)))
    os._exit(0) # the others may have ended already


class _Ranks:
    """The processes."""

    def __init__(self, script, ranks):
        self.folder = tempfile.TemporaryDirectory()
        environment = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1",
                           GLOO_SOCKET_IFNAME="lo")
        self.children = [subprocess.Popen(
            [sys.executable, script, str(rank), str(ranks), f"{self.folder.name}/store"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            for rank in range(ranks)]
        self.hello = self.hear()[0]

    def say(self, questions):
        for child, question in zip(self.children, questions, strict=True):
            child.stdin.write(json.dumps(question) + "\n")
            child.stdin.flush()

    def hear(self):
        """The answers of all, of one line each, or what failed first."""
        answers = {}
        with selectors.DefaultSelector() as waiting:
            for rank, child in enumerate(self.children):
                waiting.register(child.stdout, selectors.EVENT_READ, rank)
            while len(answers) < len(self.children):
                for key, _ in waiting.select():
                    waiting.unregister(key.fileobj)
                    line = key.fileobj.readline()
                    if not line:
                        status = self.children[key.data].wait()
                        raise RuntimeError(f"rank {key.data} ended with status {status}")
                    answers[key.data] = json.loads(line)
                    if "error" in answers[key.data]:
                        raise RuntimeError(f"rank {key.data}: {answers[key.data]['error']}")
        return [answers[rank] for rank in range(len(self.children))]

    def stop(self):
        for child in self.children:
            child.kill()
            child.wait()
        self.folder.cleanup()


class _Leader:
    def __init__(self, script):
        self.script = script
        self.group = None

    def answer(self, question):
        try:
            ranks = question.get("ranks", 1)
            if self.group is None or len(self.group.children) != ranks:
                self.stop()
                self.group = _Ranks(self.script, ranks)
            return self._answer(question, ranks)
        except Exception as error: # of a rank, which leaves the others waiting
            self.stop()
            return {"error": protocol.summary(error)}

    def _answer(self, question, ranks):
        path = question.get("path")
        self.group.say([{**question, "path": f"{self.group.folder.name}/{rank}.npz"}
                        for rank in range(ranks)])
        answers = self.group.hear()
        if "seconds" in answers[0]:
            slowest = [max(x) for x in zip(*(answer["all"] for answer in answers))]
            return {"seconds": statistics.median(slowest), "all": slowest}
        if "results" not in answers[0]:
            return answers[0]
        numpy.savez(path, **_whole([dict(numpy.load(answer["results"])) for answer in answers],
                                   ranks))
        return {"results": path}

    def stop(self):
        if self.group is not None:
            self.group.stop()
        self.group = None


def _whole(parts, ranks):
    whole = {}
    for rank, part in enumerate(parts):
        for name, x in part.items():
            length = x.shape[2] * ranks
            if name not in whole:
                whole[name] = numpy.empty((*x.shape[:2], length, x.shape[3]), numpy.float32)
            whole[name][:, :, positions(rank, ranks, length)] = x
    return whole


def _lead(script):
    answer = protocol.answers()
    leader = _Leader(script)
    try:
        leader.group = _Ranks(script, 4) # others are made where a question wants others
        answer(leader.group.hello)
    except Exception as error:
        answer({"error": protocol.summary(error)})
        return
    for line in sys.stdin:
        answer(leader.answer(json.loads(line)))
    leader.stop()
