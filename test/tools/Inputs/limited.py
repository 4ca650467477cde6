# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command as one in trouble.

  limited.py file BYTES COMMAND...     no file may be larger
  limited.py memory BYTES COMMAND...   no more memory is there
  limited.py interrupt FILE COMMAND... gets SIGINT as soon as the file is there;
                                       prints its status
"""

import os
import resource
import signal
import subprocess
import sys
import time

kind, value, *command = sys.argv[1:]
if kind == "interrupt":
    # Whoever runs the tests may ignore it.
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, preexec_fn=heed)
    while process.poll() is None and not os.path.exists(value):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    print("status", process.wait(60))
    sys.exit(0)
limit = {"file": resource.RLIMIT_FSIZE, "memory": resource.RLIMIT_AS}[kind]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(limit, (int(value), int(value)))
os.execvp(command[0], command)
