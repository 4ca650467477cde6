# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes programs in ways that a proof of their text has to see.

changes.py FOLDER BURST_OPT... lowers a ring, a double ring, and heads that are
exchanged, changes them one way after the other, and expects each to be refused,
with a reason.
"""

import pathlib
import re
import subprocess
import sys

ATTENTION = """
shard.grid @mesh(shape = {grid})
!q = tensor<2x{rows}x4x16xf32>
!l = tensor<2x4x{rows}xf32>
func.func @step(%q: !q, %k: !q, %v: !q) -> !q {{
  %o, %lse = burst.attention %q, %k, %v mask window<left = {left}, right = {right}>
      sequence <@mesh, contiguous> strategy <{strategy}> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}}
"""

HEADS = """
shard.grid @g(shape = {grid})
!q = tensor<1x32x{heads}x16xf32>
!k = tensor<1x32x{keys}x16xf32>
!l = tensor<1x{heads}x32xf32>
func.func @step(%q: !q, %k: !k, %v: !k, %do: !q) -> (!q, !q, !k, !k) {{
  %o, %lse = burst.attention %q, %k, %v sequence <@g, contiguous> strategy <{strategy}>
      : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      sequence <@g, contiguous> strategy <{strategy}> : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}}
"""

# The backward pass is not that of the forward pass beside it.
APART = HEADS.replace("%do: !q)", "%do: !q, %x: !q, %y: !l)").replace("%o, %lse, %do", "%x, %y, %do")

TENSOR = "tensor<2x4x4x16xf32>"
MOVED = f"({TENSOR}) -> !ring.token<{TENSOR}>"
SENT = "dims [1] of <contiguous over 3>"


def run(arguments, text):
    done = subprocess.run(arguments, input=text, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def lower(burst_opt, program=ATTENTION, proved="for every number of ranks", **what):
    options = ["--burst-to-ring=overlap=false", "--remarks-filter=ring-verify"]
    code, text, errors = run([*burst_opt, *options], program.format(**what))
    assert code == 0, errors
    assert proved in errors, errors
    return text


def change(text, *pairs):
    for pattern, instead in pairs:
        text, count = re.subn(pattern, instead, text, flags=re.MULTILINE)
        assert count > 0, f"the text has no {pattern!r}"
    return text


def function(text):
    """Puts a function in front of that of a rank."""
    return r"^(  func\.func @step\()", text + r"\n\1"


def in_loop(text):
    return r"^(      %\S+ = ring\.start )", text + r"\n\1"


def in_front(text):
    return r"^(    %\S+ = shard\.process_multi_index )", text + r"\n\1"


def slices(number, channel, tensor="%arg1", owner="%proc_linear_idx"):
    """A shard that the rank behind sends."""
    return f"""
    %t{number} = ring.start {tensor} {SENT}[{owner}] extent %c12 to %to
        receive[%from] from %from channel <@mesh, {channel}> : {MOVED}
    %s{number} = ring.wait %t{number} : !ring.token<{TENSOR}>"""


def held():
    """What is passed on for more turns than there are is held behind them."""
    carried = ", ".join(f"%x{i} = %s{min(i, 2)}" for i in range(5))
    types = ", ".join([TENSOR] * 5)
    onward = ", ".join(["%s8"] + [f"%x{i}" for i in range(4)])
    lines = """
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %three = arith.constant 3 : index
    %ahead = arith.addi %proc_linear_idx, %one : index
    %to = arith.remui %ahead, %three : index
    %behind = arith.addi %proc_linear_idx, %two : index
    %from = arith.remui %behind, %three : index"""
    lines += slices(0, 5) + slices(1, 5) + slices(2, 5)
    lines += f"""
    %w:5 = scf.for %u = %c0 to %two step %one iter_args({carried}) -> ({types}) {{"""
    lines += slices(8, 3)
    lines += f"""
      scf.yield {onward} : {types}
    }}"""
    lines += slices(3, 5)
    for i in (2, 3, 4):
        lines += f"""
    %e{i} = ring.start %w#{i} {SENT}[%from] extent %c12 to %to
        receive[%last] from %from channel <@mesh, 6> : {MOVED}
    %f{i} = ring.wait %e{i} : !ring.token<{TENSOR}>"""
    last = """
    %past = arith.addi %from, %two : index
    %last = arith.remui %past, %three : index"""
    return lines.replace("\n    %e2", last + "\n    %e2", 1)


def add_heads(text):
    """Two ranks with a head each add theirs, as if they shared one."""
    shard = r"tensor<1x\dx3x16xf32>"
    return change(
        text,
        (rf"(start %dk, %dv .*)x3x16xf32>, (tensor<1x\dx)3x16xf32>>",
         r"\1x6x16xf32>, \g<2>6x16xf32>>"),
        (rf"^    (%\d+):2 = ring\.wait (.*)(tensor<1x\dx)3x16xf32>, {shard}>$",
         r"""    \1:2 = ring.wait \2\g<3>6x16xf32>, \g<3>6x16xf32>>
    %addedK = ring.round \1#0 : \g<3>6x16xf32> -> \g<3>3x16xf32>
    %addedV = ring.round \1#1 : \g<3>6x16xf32> -> \g<3>3x16xf32>"""),
        (r"^    return (%\d+), (%\d+), %\d+#0, %\d+#1 :", r"    return \1, \2, %addedK, %addedV :"),
    )


def with_room(text):
    """The forward pass has room for five of each four query heads, and counts them so."""
    return change(
        text,
        (r"^    %out, %lse = ring\.attend %\d+ at ",
         """    %c5 = arith.constant 5 : index
    %c40 = arith.constant 40 : index
    %begun = ring.start %arg0 dims [1] of <contiguous over 8>[%proc_linear_idx] extent %c32
        all_to_all heads over 8 groups 4 channel <@g[0], 2>
        : (tensor<1x4x28x16xf32>) -> !ring.token<tensor<1x32x5x16xf32>>
    %five = ring.wait %begun : !ring.token<tensor<1x32x5x16xf32>>
    %first = arith.muli %proc_linear_idx, %c5 : index
    %out, %lse = ring.attend %five at """),
        (r"first last offsets \(%c0 of %c1, %\d+ of %c32\)",
         "first last offsets (%c0 of %c1, %first of %c40)"),
        (r": \(tensor<1x32x4x16xf32>, (tensor<1x32x1x16xf32>, tensor<1x32x1x16xf32>)\) -> "
         r"\(tensor<1x32x4x16xf32>, tensor<1x4x32xf32>\)",
         r": (tensor<1x32x5x16xf32>, \1) -> (tensor<1x32x5x16xf32>, tensor<1x5x32xf32>)"),
        (r"(start %out .*) : \(tensor<1x32x4x16xf32>\)", r"\1 : (tensor<1x32x5x16xf32>)"),
    )


def main(folder, *burst_opt):
    heads = lower(burst_opt, HEADS, grid="8", heads=28, keys=4, strategy="ulysses")
    beside = lower(burst_opt, HEADS, "for these ranks", grid="2x8", heads=28, keys=4,
                   strategy="ulysses on [1], ring_kv on [0]")
    apart = lower(burst_opt, APART, grid="8", heads=28, keys=4, strategy="ulysses")
    own = lower(burst_opt, HEADS, grid="8", heads=3, keys=3, strategy="ulysses")
    shared = (r"(start %arg3 .*) groups 4", r"\1")
    ring = lower(burst_opt, grid="5", rows=20, left=0, right=7, strategy="ring_kv")
    short = lower(burst_opt, grid="3", rows=12, left=3, right=0, strategy="ring_kv")
    nest = lower(burst_opt, grid="3x4", rows=48, left=9, right=0, strategy="double_ring_kv")
    fault = """
  func.func private @bad({0}){1} {{
    %zero = arith.subi %a, %a : index
    %x = arith.divui %a, %zero : index
    return {2}
  }}"""
    given = fault.format("%a: index", " -> index", "%x : index")
    nothing = fault.format("%a: index", "", "")
    changes = {
        # Rows meet the queries of the same heads.
        "heads of rows": change(heads, shared),
        "heads of rows beside a ring": change(beside, shared),
        "added heads": add_heads(own),
        "room": with_room(apart),
        # Of a direction that nobody reads, tables may be of the other one.
        "direction": change(
            ring,
            (r"%0#2 : index", "%c1 : index"),
            (r"return (%\w+), %\w+, %\w+ :", r"return \1, %generated_1, %c4 :"),
        ),
        # A reach whose arithmetic wraps around is not what it is in numbers.
        "wrap": change(
            ring,
            (
                r"^    return (%\w+), %\w+, (%\w+) :(.*tensor<(5x\dx?)index>.*)$",
                r"""    %less = arith.subi %c0, %c1 : index
    %isLess = arith.cmpi ult, %less, %c1 : index
    %far = arith.select %isLess, %c0, %c4 : index
    %wraps = tensor.generate {
    ^bb0(%x: index, %y: index):
      tensor.yield %far : index
    } : tensor<\4index>
    return \1, %wraps, \2 :\3""",
            ),
            # The rank attends its own shard alone.
            (r"(?s)^    %\d+:6 = scf\.for .*?^    \}\n", ""),
            (r"%\d#0, %\d#1 at %\d#2", "%arg1, %arg2 at %proc_linear_idx"),
            (r"%\d#3, %\d#4, %\d#5", "%o, %m, %l"),
        ),
        # Functions may end a program, wherever they are called.
        "fault in a loop": change(
            ring, function(given), in_loop("      %bad = func.call @bad(%c5) : (index) -> index")
        ),
        "fault without a result": change(
            ring, function(nothing), in_front("    func.call @bad(%c5) : (index) -> ()")
        ),
        # Of a negative number a quotient is another one.
        "quotient": change(
            nest,
            (
                r"^    (%\w+) = arith\.divui (%\w+), %c4 : index",
                r"""    %less = arith.subi \2, %c4 : index
    %quotient = arith.divui %less, %c4 : index
    \1 = arith.addi %quotient, %c1 : index""",
            ),
        ),
        "held": change(
            short,
            (
                r"ring\.grid = @mesh",
                "ring.grid = @mesh, ring.max_slices = array<i64: 2, 2, 2, 9, 2, 2, 4>",
            ),
            (r"^(    %out, )", held() + r"\n\1"),
        ),
    }
    reasons = {
        "heads of rows": "takes outGrad with heads in 1 groups for queries with heads in 4",
        "heads of rows beside a ring": "takes outGrad with heads in 1 groups",
        "added heads": "adds heads of 1 groups to 3",
        "room": "may attend heads .* a rank only has room for",
        "direction": "which was not received",
        "wrap": "which no attend has computed|which was not received",
        "fault in a loop": "divides 5 by 0",
        "fault without a result": "divides 5 by 0",
        "quotient": "reads flags of segments",
        "held": "receives a slice while 2 of channel 5 are still needed",
    }
    for name, text in changes.items():
        path = pathlib.Path(folder) / (name.replace(" ", "-") + ".mlir")
        path.write_text(text)
        options = ["--ring-verify=allow-needless", "-o", "/dev/null"]
        code, _, errors = run([*burst_opt, *options, str(path)], "")
        print(f"{name}: {'refused' if code else 'accepted'}: {errors[:300]}")
        assert code != 0, name
        assert re.search(reasons[name], errors), errors
    print("all are refused")


main(*sys.argv[1:])
