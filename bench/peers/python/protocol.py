# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of other libraries, asked for results and timings by scripts/bench-python.

A peer reads questions from the standard input, one a line in JSON, and answers each
with a line on the standard output: the protocol of bench/peers/torch_sdpa.py, of which
every question is one of these, too. The first line that a peer writes is its name,
{"name": "PyTorch 2.13.0"}, or the package that it lacks, {"missing": "torch"}. Questions
are

    {"kind": "forward", "backward" or "step", "type": "f32" or "bf16", "causal": true,
     "heads": 8, "sequence": 4096, "dim": 128}
        attention, its gradients alone, or both; and with one of these, too,
        "key_heads" (else as many as heads), "queries" (else as many as the keys, of
        which there are "sequence"), "documents" (packed into the sequence, none else),
        "ranks" (processes that share it, 1 else), "batch" (1 else)

and what is asked about it:

    "ask": "forms"
        {"forms": ["name", ...]}: the ways in which the library can compute it, of which
        the fastest counts; {"none": "why"} if it cannot
    "ask": "results", "form": name, "path": FILE
        {"results": FILE}: runs it once and writes to an .npz "o", or "dq", "dk", "dv",
        or all, as float32 of (batch, heads, sequence, dim)
    "ask": "seconds", "form": name, "runs": n
        {"seconds": s, "all": [s, ...]}: the median of n runs, of which one more,
        untimed, comes first if n > 1. Without "ask" it is one run of the first form

The answer is {"error": "why not"} where something fails. What a form runs on is kept
until another attention is asked about. All peers draw the same numbers.
"""

import dataclasses
import functools
import json
import os
import statistics
import sys
import time

import numpy


class Unsupported(Exception):
    """The library cannot compute it; the text says what it lacks."""


@dataclasses.dataclass(frozen=True)
class Attention:
    """What is computed."""

    kind: str
    type: str
    causal: bool
    heads: int
    key_heads: int
    queries: int
    keys: int
    dim: int
    documents: int = 0
    ranks: int = 1
    batch: int = 1

    @staticmethod
    def of(question):
        heads, keys = question["heads"], question["sequence"]
        found = Attention(question["kind"], question["type"], question["causal"], heads,
                          question.get("key_heads", heads), question.get("queries", keys), keys,
                          question["dim"], question.get("documents", 0), question.get("ranks", 1),
                          question.get("batch", 1))
        for name, values in (("kind", ("forward", "backward", "step")), ("type", ("f32", "bf16"))):
            if getattr(found, name) not in values:
                raise Unsupported(f"{name}: got {getattr(found, name)}, wanted one of {values}")
        return found

    @property
    def is_forward(self):
        return self.kind == "forward"


def draw(attention, names="qkv"):
    """Arrays of float32, (batch, heads, sequence, dim), of numbers that the type has:
    q, k, v and, for a backward pass, g, the gradient of the result."""
    drawn = {}
    for seed, name in enumerate("qkvg"):
        heads = attention.heads if name in "qg" else attention.key_heads
        length = attention.queries if name in "qg" else attention.keys
        generator = numpy.random.default_rng(seed)
        if name in names:
            x = generator.standard_normal((attention.batch, heads, length, attention.dim),
                                          dtype=numpy.float32)
            drawn[name] = rounded(x) if attention.type == "bf16" else x
    return [drawn[name] for name in names]


def rounded(x):
    """To the nearest number of bfloat16, to the even one of two."""
    bits = x.view(numpy.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000).astype(numpy.uint32).view(
        numpy.float32)


def bits_of_bfloat16(x):
    """The upper halves of floats that are numbers of bfloat16."""
    return (x.view(numpy.uint32) >> 16).astype(numpy.uint16)


def floats_of_bfloat16(bits):
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


def document_ids(attention):
    """Which document each position is of; as in bench/Problem.cpp the longest are seven
    times as long as the shortest."""
    weights = numpy.array([1 + n * 5 % 7 for n in range(attention.documents)])
    ends = attention.keys * numpy.cumsum(weights) // weights.sum()
    return numpy.searchsorted(ends, numpy.arange(attention.keys), side="right")


@functools.lru_cache(maxsize=1)
def kept_pairs(attention):
    """The mask as truths, (queries, keys); None where it keeps all."""
    i, j = numpy.arange(attention.queries)[:, None], numpy.arange(attention.keys)
    kept = i >= j if attention.causal else None
    if attention.documents:
        ids = document_ids(attention)
        same = ids[:, None] == ids
        kept = same if kept is None else kept & same
    return kept


def added_to_scores(attention):
    """The mask as what is added to scores, float32."""
    return numpy.where(kept_pairs(attention), numpy.float32(0), numpy.float32(-numpy.inf))


class Run:
    """A form that is ready: `run` gives what `results` makes arrays of, by name, of
    (batch, heads, sequence, dim); `start` comes before the runs of a question, untimed."""

    def __init__(self, run, results, start=lambda: None):
        self.run, self.results, self.start = run, results, start


class Server:
    """Answers questions with forms_of(attention): functions that give a Run, by name.
    `meet` is called before each run that is timed."""

    def __init__(self, forms_of, meet=lambda: None):
        self.forms_of, self.meet = forms_of, meet
        self.attention, self.forms, self.made = None, {}, {}

    def answer(self, question):
        try:
            return self._answer(question)
        except Unsupported as error:
            return {"none": str(error)}
        except Exception as error: # whatever a library raises
            self.attention = None
            return {"error": summary(error)}

    def _answer(self, question):
        attention = Attention.of(question)
        if attention != self.attention:
            self.attention, self.forms, self.made = None, {}, {}
            self.forms = self.forms_of(attention)
            self.attention = attention
        what = question.get("ask", "seconds")
        if what == "forms":
            return {"forms": list(self.forms)}
        name = question.get("form", next(iter(self.forms)))
        if name not in self.forms:
            raise ValueError(f"form: got {name!r}, wanted one of {list(self.forms)}")
        if name not in self.made:
            self.made[name] = self.forms[name]()
        form = self.made[name]
        form.start()
        if what == "results":
            self.meet()
            numpy.savez(question["path"], **form.results(form.run()))
            return {"results": question["path"]}
        if what != "seconds":
            raise ValueError(f"ask: got {what!r}, wanted forms, results or seconds")
        runs = question.get("runs", 1)
        if runs > 1:
            self._time(form)
        seconds = [self._time(form) for _ in range(runs)]
        return {"seconds": statistics.median(seconds), "all": seconds}

    def _time(self, form):
        self.meet()
        begin = time.perf_counter()
        result = form.run()
        seconds = time.perf_counter() - begin
        del result # its memory is given back outside of the time
        return seconds


def summary(error):
    """The first line of what an error says, with its type where that says more."""
    text = str(error).strip().split("\n")[0].strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def threads():
    return int(os.environ.get("OMP_NUM_THREADS", "1"))


def answers():
    """A function that writes an answer. What libraries print must not come between."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(fields):
        print(json.dumps(fields), file=channel, flush=True)

    return answer


def serve(load):
    """`load` imports the library, and gives its name and the function for Server."""
    answer = answers()
    try:
        name, forms_of = load()
    except ModuleNotFoundError as error:
        answer({"missing": error.name})
        return
    answer({"name": name})
    server = Server(forms_of)
    for line in sys.stdin:
        answer(server.answer(json.loads(line)))
