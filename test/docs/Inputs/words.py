# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds retired words: words.py ROOT.

Names and phrases that gave way to the terms of docs/glossary.md do not come back.
Each entry of RETIRED is a pattern, the files and folders in which it is retired, and
what to say instead. A word that means something else in another folder, such as a
`channel` of transfers, is retired only where it meant the other thing.
"""

import os
import re
import sys

EVERYWHERE = ["README.md", "CONTRIBUTING.md", "bench", "codegen", "dialect", "docs", "examples",
              "jit", "passes", "runtime", "scripts", "support", "test", "tools"]
CUDA = ["bench/gpu/primitives.cu", "codegen/cuda", "dialect/Cuda", "docs/rationale-cuda.md",
        "docs/reference/cuda-passes.md", "docs/reference/cuda.md", "test/codegen/cuda",
        "test/dialect/cuda", "test/unit/kernels"]
CTAS = CUDA + ["docs/reference/passes.md", "passes", "test/passes", "tools"]
SUFFIXES = (".c", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".in", ".inc", ".md", ".mlir", ".py", ".td",
            ".test", ".txt")

RETIRED = [
    # Pipelines of CUTLASS.
    (r"\bcuda\.channel\b|\b(Cuda_)?Channel(Type|Op)\b|placeChannels", CUDA, "pipeline"),
    (r"(?i)\bchannels?\b|[a-z]Channel\b", CUDA, "pipeline"),
    (r"(?i)\bslots?\d*\b|getSlot", CUDA, "stage"),
    (r"\bcuda\.acquire\b|\b(Cuda_)?AcquireOp\b|\.acquire\(\)", CUDA, "producer_acquire"),
    (r"\bcuda\.publish\b|\b(Cuda_)?PublishOp\b|\.publish\(\)", CUDA, "producer_commit"),
    (r"\bcuda\.receive\b|\b(Cuda_)?ReceiveOp\b|\.receive\(\)", CUDA, "consumer_wait"),
    (r"\bcuda\.release\b|\b(Cuda_)?ReleaseOp\b|\.release\(\)", CUDA, "consumer_release"),
    (r"\bcuda\.bring\b|\b(Cuda_)?BringOp\b|\bbring\(", EVERYWHERE, "tma_load"),
    (r"(?i)\b(brings?|bringing|brought)\b", CUDA, "load, TMA load or copy"),
    # Warp specialization.
    (r"\bcuda\.roles\b|\b(Cuda_)?RolesOp\b|[Hh]asRoles|[Ww]ithRoles", EVERYWHERE,
     "warp_specialize, warp-specialized"),
    (r"(?i)\b(with|without|have|has|no)\s+roles\b", CUDA, "warp-specialized"),
    (r"\bcuda\.team\b|\bteamAttr\b", EVERYWHERE, "tile.warps, warpsAttr"),
    (r"\bcuda\.(warps|gradient|host|upload)\b", EVERYWHERE, "tile.warps, gradient, host, upload"),
    (r"Team(Gradient|Shape)|(query|key)TeamOf|verifyTeam", EVERYWHERE, "Cta"),
    (r"(?i)\bteams?\b", CTAS, "CTA, consumer warps"),
    # Mask bits.
    (r"\bcuda\.(mark|hide)\b|\b(Cuda_)?(Mark|Hide)Op\b|SharedMarks|[Oo]fMarks", EVERYWHERE,
     "mask_bits, apply_mask_bits"),
    (r"(?i)\bmarkers?\b|\bisMarker\b", CUDA, "mask warps"),
    # Scheduling of consumer warps, by FlashAttention-3.
    (r"\bcuda\.(begin_turns|take_turn|pass_turn|end_turns)\b|(BeginTurns|TakeTurn|PassTurn|EndTurns)Op",
     EVERYWHERE, "ping_pong_begin, ping_pong_wait, ping_pong_signal, ping_pong_end"),
    (r"cuda-take-turns|TakeTurnsPass|\bTurns<|takesTurns", EVERYWHERE, "ping-pong scheduling"),
    (r"(?i)\bin turns\b|\btakes? turns\b", CUDA, "ping-pong scheduling"),
    (r"(?i)\b(a|each|first|last|next|this) turns?\b", CUDA, "iteration"),
    (r"(?i)cuda-skew|\bskew(ed|er|ing|s)?\b|\bis_?skewed\b", CUDA + ["README.md", "tools"],
     "software pipelining, pipelined"),
    # Who has what of a sequence.
    (r"(?i)\b(re)?deal(s|t|ing)?\b|\b(get|resolve)Dealt?\b|\bburst_dealt\b", EVERYWHERE,
     "layout, shard, assign"),
    (r"\b(ShareTable|shareOf)\b", EVERYWHERE, "shard"),
    (r"(?i)\b(comes?|came|coming|goes|go|going|sent|brings?) home\b|\bat home\b|TransferKind::Home",
     ["dialect", "docs", "passes", "test/passes", "test/unit/simulation"], "return to the owner"),
    (r"\b(Ring)?Meeting\b|\bQuestion\b|\bMachineModel\b", ["dialect", "passes", "test/unit"],
     "inputs of an attend, attention that is proved, hardware"),
    (r"\b(is|are|as) no numbers?\b", ["codegen", "dialect", "passes"], "NaN"),
    # What ptxas says.
    (r"(?i)\bcomplain(s|ed|ts?)?\b", CUDA + ["test/unit/cuda"], "rejection reason, reject"),
    (r"(?i)\ball warps (\w+ )*meet\b", CUDA, "all warps synchronize (a CTA-wide barrier)"),
]


def files(root, place):
    """Text files of a place, but for this one and its test."""
    path = os.path.join(root, place)
    if os.path.isfile(path):
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(f for f in folders if f not in ("build", "__pycache__"))
        yield from (os.path.join(folder, name) for name in sorted(names)
                    if name.endswith(SUFFIXES) and name not in ("words.py", "words.test"))


def check(root):
    patterns = {}  # by file
    for pattern, places, instead in RETIRED:
        for place in places:
            for path in files(root, place):
                patterns.setdefault(path, []).append((re.compile(pattern), instead))
    for path in sorted(patterns):
        with open(path, encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                for pattern, instead in patterns[path]:
                    if found := pattern.search(line):
                        yield (f"{os.path.relpath(path, root)}:{number}: "
                               f"'{found[0]}' is retired, say: {instead}")


problems = list(check(sys.argv[1]))
print(*problems, sep="\n")
sys.exit(bool(problems))
