# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m burst doctor"""

import sys

from burst import doctor


def main(arguments: list[str]) -> int:
    if arguments != ["doctor"]:
        print("usage: python -m burst doctor", file=sys.stderr)
        return 2
    for name, found in doctor.report():
        print(f"{name + ':':20}{found}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
