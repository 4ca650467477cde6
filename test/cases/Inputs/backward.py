# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the backward pass of each attention of a file of cases.

backward.py BURST-RUN [FUNCTION...] < FILE

Behind each attention its backward pass is put, with the same clauses, and what
a function gives becomes more: the gradients. Both things that may travel are
tried, one compiled and one interpreted, by turns; one of them, by turns, where
BURST_COMPILED asks for few problems.
"""

import os
import re
import subprocess
import sys


def types(text):
    """Splits at commas outside of brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def differentiate(module, function, strategy):
    pattern = (
        r"func\.func @%s\((?P<arguments>.*?)\)\s*->\s*\((?P<results>[^{]*?)\)\s*{\n"
        r"(?P<before>.*?)  %%(?P<o>\w+), %%(?P<lse>\w+) = burst\.attention "
        r"(?P<q>%%\w+), (?P<k>%%\w+), (?P<v>%%\w+)(?P<clauses>.*?)"
        r"\s:\s+\((?P<operands>[^{}]*?)\)\s*->\s*\((?P<made>[^{}]*?)\)\n  return[^\n]*\n}"
    ) % re.escape(function)
    found = re.search(pattern, module, re.S)
    if not found:
        sys.exit(f"{function}: no attention of the form that is expected")
    p = found.groupdict()
    q, k, v = types(p["operands"])
    o, lse = types(p["made"])
    text = f"""func.func @{function}({p["arguments"]}, %grad: {o})
    -> ({o}, {lse}, {q}, {k}, {v}) {{
{p["before"]}  %{p["o"]}, %{p["lse"]} = burst.attention {p["q"]}, {p["k"]}, {p["v"]}{p["clauses"]}
      : ({q}, {k}, {v}) -> ({o}, {lse})
  %dq, %dk, %dv = burst.attention_backward {p["q"]}, {p["k"]}, {p["v"]}, %{p["o"]}, %{p["lse"]}, %grad{p["clauses"]}
      strategy <{strategy}>
      : ({q}, {k}, {v}, {o}, {lse}, {o}) -> ({q}, {k}, {v})
  return %{p["o"]}, %{p["lse"]}, %dq, %dk, %dv : {o}, {lse}, {q}, {k}, {v}
}}"""
    return module[: found.start()] + text + module[found.end() :]


def main():
    run, *functions = sys.argv[1:]
    module = sys.stdin.read()
    functions = functions or re.findall(r"func\.func @(\w+)", module)
    for number, function in enumerate(functions):
        strategies = ["ring_kv", "ring_q"]
        if os.environ.get("BURST_COMPILED") == "1":
            strategies = [strategies[number // 2 % 2]]
        for strategy in strategies:
            text = differentiate(module, function, strategy)
            compiled = (strategy == "ring_q") == (number % 2 == 0)
            result = subprocess.run(
                [run, "-", "--check", "--entry", function]
                + ([] if compiled else ["--interpret"]),
                input=text,
                capture_output=True,
                text=True,
            )
            if result.returncode:
                print(text)
                sys.exit(f"{function} {strategy}: {result.stdout}{result.stderr}")
        print("ok:", function)


if __name__ == "__main__":
    main()
